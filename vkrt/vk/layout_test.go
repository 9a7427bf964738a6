package vk

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

type layout struct {
	name   string
	size   uintptr
	fields []field
}

type field struct {
	name         string
	offset, size uintptr
}

type constant struct {
	name  string
	value int64
}

// compileC builds and runs a C program against the Vulkan headers, or skips.
func compileC(t *testing.T, src string) string {
	t.Helper()
	cc := os.Getenv("CC")
	for _, name := range []string{"cc", "gcc", "clang"} {
		if cc == "" {
			cc, _ = exec.LookPath(name)
		}
	}
	if cc == "" {
		fmt.Println("SKIPPED vkrt/vk layout: no C compiler")
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	probe := filepath.Join(dir, "probe.c")
	os.WriteFile(probe, []byte("#include <vulkan/vulkan.h>\nint main(void){return VK_HEADER_VERSION < 239;}\n"), 0o600)
	exe := filepath.Join(dir, "a.out")
	if out, err := exec.Command(cc, "-o", exe, probe).CombinedOutput(); err != nil {
		fmt.Println("SKIPPED vkrt/vk layout: no Vulkan headers")
		t.Skipf("%s: %s", cc, out)
	}
	if exec.Command(exe).Run() != nil {
		fmt.Println("SKIPPED vkrt/vk layout: the Vulkan headers are older than the binding")
		t.Skip("old headers")
	}
	file := filepath.Join(dir, "layout.c")
	if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-o", exe, file).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cc, err, out)
	}
	out, err := exec.Command(exe).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestLayout holds every struct's size, every field's offset and size, and every enum constant against the C headers.
func TestLayout(t *testing.T) {
	var c, want bytes.Buffer
	c.WriteString("#include <stdio.h>\n#include <stddef.h>\n#include <vulkan/vulkan.h>\n")
	c.WriteString("#define S(t) printf(#t \" %zu\\n\", sizeof(t))\n")
	c.WriteString("#define F(t, f) printf(#t \".\" #f \" %zu %zu\\n\", offsetof(t, f), sizeof(((t*)0)->f))\n")
	c.WriteString("#define E(n) printf(#n \" %lld\\n\", (long long)n)\nint main(void) {\n")
	for _, l := range layouts {
		fmt.Fprintf(&c, "S(%s);\n", l.name)
		fmt.Fprintf(&want, "%s %d\n", l.name, l.size)
		for _, f := range l.fields {
			fmt.Fprintf(&c, "F(%s, %s);\n", l.name, f.name)
			fmt.Fprintf(&want, "%s.%s %d %d\n", l.name, f.name, f.offset, f.size)
		}
	}
	for _, k := range constants {
		fmt.Fprintf(&c, "E(%s);\n", k.name)
		fmt.Fprintf(&want, "%s %d\n", k.name, k.value)
	}
	c.WriteString("return 0;\n}\n")
	got := strings.Split(compileC(t, c.String()), "\n")
	for i, w := range strings.Split(want.String(), "\n") {
		if i >= len(got) || got[i] != w {
			t.Errorf("Go has %q, C has %q", w, got[min(i, len(got)-1)])
		}
	}
	if len(layouts) < 40 || len(constants) < 200 {
		t.Errorf("only %d structs and %d constants", len(layouts), len(constants))
	}
}

// TestGenerated runs the generator again where the registry is the one that the committed files came from.
func TestGenerated(t *testing.T) {
	const registry = "/usr/share/vulkan/registry/vk.xml"
	head, err := os.ReadFile("zstructs.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(head), "(VK_HEADER_VERSION ")
	version, _, _ := strings.Cut(rest, ")")
	xml, err := os.ReadFile(registry)
	if err != nil || !strings.Contains(string(xml), "<name>VK_HEADER_VERSION</name> "+version+"<") {
		fmt.Println("SKIPPED vkrt/vk generator: no registry of header version", version)
		t.Skip("no such registry")
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "run", "./gen", "-registry", registry, "-out", dir).CombinedOutput(); err != nil {
		t.Fatalf("gen: %v\n%s", err, out)
	}
	for _, name := range []string{"zcommands.go", "zenums.go", "zstructs.go", "zlayout_test.go"} {
		got, _ := os.ReadFile(filepath.Join(dir, name))
		want, _ := os.ReadFile(name)
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator writes: run go generate ./vkrt/vk", name)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		call string
		r    Result
		want string
	}{
		{"vkQueueSubmit", ErrorDeviceLost, "vulkan: vkQueueSubmit: VK_ERROR_DEVICE_LOST"},
		{"vkCreateDevice", -12345, "vulkan: vkCreateDevice: VkResult(-12345)"},
		{"vkWaitSemaphores", Timeout, ""},
		{"vkCreateInstance", Success, ""},
	} {
		got := ""
		if err := Check(c.call, c.r); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %d: %q, want %q", c.call, c.r, got, c.want)
		}
	}
}

// TestNoLoader holds the message that a machine without Vulkan gives.
func TestNoLoader(t *testing.T) {
	_, err := open([]string{"libno-such-vulkan.so.1", "libc.so.6"})
	if err == nil {
		t.Fatal("opened libc as a Vulkan loader")
	}
	for _, want := range []string{ErrNoLoader.Error(), "libno-such-vulkan.so.1", "libc.so.6"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	for _, goos := range []string{"linux", "freebsd", "darwin"} {
		for _, cause := range []error{ErrNoLoader, ErrNoDriver, ErrNoDevice} {
			if Advice(goos, cause) == "" {
				t.Errorf("no advice for %s on %s", cause, goos)
			}
		}
	}
}
