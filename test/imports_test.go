// Package test holds what crosses packages and languages.
package test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed says which packages of the project each folder may import, tests excluded. An arrow goes
// one way: nothing below may know what stands above it.
var allowed = map[string][]string{
	"etf":      {},
	"graph":    {},
	"host":     {"graph"},
	"kernel":   {},
	"vkrt":     {"vkrt/vk"},
	"spirv":    {"kernel"},
	"shaders":  {"graph", "kernel"},
	"lower":    {"graph", "host", "kernel", "shaders"},
	"device":   {"kernel", "shaders", "spirv", "vkrt"},
	"dispatch": {"etf", "graph", "host", "kernel", "lower", "shaders", "spirv", "vkrt", "device"},
}

func TestImportsPointOneWay(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "nxvk/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		pkg := strings.TrimPrefix(f[0], "nxvk/")
		top := strings.Split(pkg, "/")[0]
		may, ruled := allowed[top]
		if !ruled {
			continue
		}
		seen++
		for _, imp := range f[1:] {
			dep, ours := strings.CutPrefix(imp, "nxvk/")
			if !ours || dep == top || strings.HasPrefix(dep, top+"/") || strings.HasPrefix(pkg, dep+"/") {
				continue
			}
			if !slices.Contains(may, dep) && !slices.Contains(may, strings.Split(dep, "/")[0]) {
				t.Errorf("%s imports %s; %s may import %v", pkg, dep, top, may)
			}
		}
	}
	if seen < 5 {
		t.Errorf("go list named only %d of the ruled packages", seen)
	}
}
