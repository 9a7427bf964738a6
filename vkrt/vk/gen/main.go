// Command gen writes the binding of package vk from the Vulkan registry, vk.xml: the structs, enums and
// commands that commands.txt names, and what those need. The result is committed, so a build needs no
// registry. Debian's package libvulkan-dev has the file.
//
//	go run ./gen -registry /usr/share/vulkan/registry/vk.xml
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// wanted lists what is bound: "global", "instance" and "device" name the level at which the commands
// that follow are loaded, "struct" names structs that only pNext chains reach, "extension" names
// extensions whose enum values are wanted, "hot" commands listed elsewhere that also get a form which does not allocate.
//
//go:embed commands.txt
var wanted string

func main() {
	path := flag.String("registry", "/usr/share/vulkan/registry/vk.xml", "the Vulkan registry `file`")
	out := flag.String("out", ".", "the `folder` of package vk")
	flag.Parse()
	files, err := generate(*path)
	if err == nil {
		for name, data := range files {
			if err = os.WriteFile(filepath.Join(*out, name), data, 0o644); err != nil {
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// list is commands.txt, parsed.
type list struct {
	levels     map[string][]string // global, instance, device → commands
	structs    []string
	hot        map[string]bool
	extensions []string
}

func parseList(text string) (list, error) {
	l := list{levels: map[string][]string{}, hot: map[string]bool{}}
	section := ""
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case strings.HasSuffix(line, ":"):
			section = strings.TrimSuffix(line, ":")
		case section == "struct":
			l.structs = append(l.structs, strings.Fields(line)...)
		case section == "extension":
			l.extensions = append(l.extensions, strings.Fields(line)...)
		case section == "hot":
			for _, c := range strings.Fields(line) {
				l.hot[c] = true
			}
		case section == "global" || section == "instance" || section == "device":
			l.levels[section] = append(l.levels[section], strings.Fields(line)...)
		default:
			return l, fmt.Errorf("commands.txt:%d: %q is under no known section", n+1, line)
		}
	}
	return l, nil
}
