package test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"nxvk/vkrt"
)

// A real BEAM drives the real port; then it is killed while the device is busy, and the port is gone
// within a second.
func TestBEAM(t *testing.T) {
	if ds, err := vkrt.Devices(); err != nil || len(ds) == 0 {
		fmt.Printf("SKIPPED test TestBEAM: no device: %v\n", err)
		t.SkipNow()
	}
	if _, err := exec.LookPath("escript"); err != nil {
		fmt.Println("SKIPPED test TestBEAM: no escript on PATH")
		t.SkipNow()
	}
	port := filepath.Join(t.TempDir(), "nxvk_port")
	build := exec.Command("go", "build", "-o", port, "nxvk/cmd/nxvk_port")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	beam := exec.Command("escript", "testdata/port.escript", port)
	beam.Env = append(os.Environ(), "NXVK_CACHE=-")
	var stderr bytes.Buffer
	beam.Stderr = &stderr
	out, err := beam.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := beam.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { beam.Process.Kill(); beam.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, perr := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || perr != nil {
		rest := make([]byte, 4000)
		n, _ := out.Read(rest)
		t.Fatalf("the BEAM says %q%s %v\n%s", line, rest[:n], err, stderr.String())
	}
	if syscall.Kill(pid, 0) != nil {
		t.Fatalf("the port, process %d, is gone already", pid)
	}
	if err := beam.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Second); syscall.Kill(pid, 0) == nil && !zombie(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the port is still there a second after the BEAM was killed")
		}
	}
}

// zombie reports whether a process has ended but nobody has asked for its status: in a container without
// an init nobody does.
func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(rest, "Z")
}
