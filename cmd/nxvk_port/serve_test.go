package main

import (
	"bytes"
	be "encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nxvk/dispatch"
	"nxvk/etf"
	"nxvk/graph"
	"nxvk/vkrt"
)

// binary builds nxvk_port once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "nxvk_port_test")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "nxvk_port")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %v\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if ds, err := vkrt.Devices(); err != nil || len(ds) == 0 {
		fmt.Printf("SKIPPED cmd/nxvk_port %s: no device: %v\n", t.Name(), err)
		t.SkipNow()
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "NXVK_CACHE="+t.TempDir())
	return cmd
}

// started is a port of its own process.
type started struct {
	*dispatch.Client
	in     io.WriteCloser
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

func start(t *testing.T, env ...string) *started {
	t.Helper()
	s := &started{cmd: command(t)}
	s.cmd.Env = append(s.cmd.Env, env...)
	s.cmd.Stderr = &s.stderr
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	s.Client = dispatch.NewClient(out, s.in)
	if _, err := s.Hello(etf.Map{}); err != nil {
		t.Fatalf("hello: %v\n%s", err, s.stderr.String())
	}
	return s
}

// long keeps the device busy for many seconds.
func (s *started) long(t *testing.T) {
	t.Helper()
	sp := graph.Spec{Type: graph.F64, Shape: graph.Shape{2048, 2048}}
	two := etf.Map{{Key: etf.Atom("axis"), Value: 0}}
	attrs := etf.Map{
		{Key: etf.Atom("contract_a"), Value: etf.Seq{1}}, {Key: etf.Atom("contract_b"), Value: etf.Seq{0}},
		{Key: etf.Atom("batch_a"), Value: etf.Seq{}}, {Key: etf.Atom("batch_b"), Value: etf.Seq{}},
	}
	if err := s.Op(graph.OpIota, sp, two, nil, 1); err != nil {
		t.Fatal(err)
	}
	for id := 2; id < 160; id++ {
		if err := s.Op(graph.OpDot, sp, attrs, []etf.Term{id - 1, 1}, id); err != nil {
			t.Fatal(err)
		}
	}
}

// goneIn demands that the process ends within d.
func (s *started) goneIn(t *testing.T, d time.Duration) {
	t.Helper()
	ended := make(chan error, 1)
	begin := time.Now()
	go func() { ended <- s.cmd.Wait() }()
	select {
	case err := <-ended:
		t.Logf("gone after %v: %v", time.Since(begin), err)
	case <-time.After(d):
		t.Fatalf("the port is still there after %v\n%s", d, s.stderr.String())
	}
}

// Why a port cannot start is told to the node, which may run where nobody sees stderr.
func TestRefusalToStartIsAnEvent(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"NXVK_DEVICE=no such device", "no such device"},
		{"NXVK_RECORD=/nowhere/recording", "NXVK_RECORD"},
	} {
		cmd := command(t, "serve")
		cmd.Env = append(cmd.Env, c.env)
		out, err := cmd.Output()
		if err == nil {
			t.Errorf("%s: the port ends without an error", c.env)
		}
		if len(out) < 4 || int(be.BigEndian.Uint32(out)) != len(out)-4 || out[4] != 1 ||
			!bytes.Contains(out, []byte("fault")) || !bytes.Contains(out, []byte(c.want)) {
			t.Errorf("%s: got %q, want one fault event that says %q", c.env, out, c.want)
		}
	}
}

func TestEndOfStdinEndsTheProcess(t *testing.T) {
	s := start(t)
	s.long(t)
	time.Sleep(500 * time.Millisecond) // the device is at it
	s.in.Close()
	s.goneIn(t, 3*time.Second)
}

// The reader, who would see the end of stdin, waits for room, and still the process ends.
func TestEndOfStdinWhileTheQueueIsFull(t *testing.T) {
	s := start(t)
	if _, err := s.Call(etf.Tuple{etf.Atom("profile"), etf.Atom("true")}); err != nil {
		t.Fatal(err)
	}
	s.long(t)
	go s.Call(etf.Tuple{etf.Atom("profile"), etf.Atom("false")}) // waits for the device
	time.Sleep(200 * time.Millisecond)
	var uploads atomic.Int64
	go func() {
		sp := graph.Spec{Type: graph.U8, Shape: graph.Shape{8 << 20}}
		data := make([]byte, 8<<20)
		for id := 1000; s.Upload(id, sp, data) == nil; id++ {
			uploads.Add(1)
		}
	}()
	for n, still := int64(-1), 0; still < 5; time.Sleep(200 * time.Millisecond) {
		if m := uploads.Load(); m != n {
			n, still = m, 0
		} else {
			still++
		}
	}
	if n := uploads.Load(); n > 20 {
		t.Errorf("%d uploads of 8 MiB were taken: the queue is not bounded", n)
	}
	s.in.Close()
	s.goneIn(t, 3*time.Second)
}

func TestClosedStdoutEndsTheProcess(t *testing.T) {
	s := &started{cmd: command(t)}
	s.cmd.Stderr = &s.stderr
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stdout = w
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	r.Close()
	b, _ := etf.Encode(etf.Tuple{1, etf.Atom("info")})
	s.in.Write(append([]byte{0, 0, 0, byte(len(b))}, b...))
	s.goneIn(t, 20*time.Second) // the driver has to be loaded first
	if !strings.Contains(s.stderr.String(), "gone") {
		t.Errorf("stderr says %q", s.stderr.String())
	}
}

func TestRecordingOfAProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rec")
	s := start(t, "NXVK_RECORD="+path)
	sp := graph.Spec{Type: graph.F32, Shape: graph.Shape{4}}
	if err := s.Op(graph.OpIota, sp, nil, nil, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Op("exp", sp, nil, []etf.Term{1}, 2); err != nil {
		t.Fatal(err)
	}
	if b, err := s.Read(2, 0, 16); err != nil || len(b) != 16 {
		t.Fatal(b, err)
	}
	s.in.Close()
	s.goneIn(t, 3*time.Second)
	out, err := command(t, "replay", "--json", path).Output()
	var sum struct{ Frames, Calls, Compared, Different int }
	if err == nil {
		err = json.Unmarshal(out, &sum)
	}
	if err != nil || sum.Frames != 4 || sum.Calls != 2 || sum.Compared != 1 || sum.Different != 0 {
		t.Errorf("replay: %s %v", out, err)
	}
	// The next port leaves that recording alone.
	before, _ := os.ReadFile(path)
	s = start(t, "NXVK_RECORD="+path)
	s.in.Close()
	s.goneIn(t, 20*time.Second)
	after, err := os.ReadFile(path)
	if _, e := os.Stat(path + ".1"); err != nil || e != nil || !bytes.Equal(before, after) {
		t.Errorf("the second port: %v %v, the first recording went from %d to %d bytes", err, e, len(before), len(after))
	}
	cut := filepath.Join(t.TempDir(), "cut")
	if err := os.WriteFile(cut, before[:len(before)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := command(t, "replay", cut, "--rel", "1e-5", "--json").CombinedOutput(); err != nil || !strings.Contains(string(out), `"truncated":true`) ||
		!strings.Contains(string(out), "cut off") {
		t.Errorf("a recording without its end: %v %s", err, out)
	}
	out, err = command(t, "info", "--program", path).Output()
	if err != nil || !strings.Contains(string(out), "= exp p0") || !strings.Contains(string(out), "step 0: exp") {
		t.Errorf("info --program: %v\n%s", err, out)
	}
}

func TestInfo(t *testing.T) {
	out, err := command(t, "info", "--json").Output()
	var d described
	if err == nil {
		err = json.Unmarshal(out, &d)
	}
	if err != nil || len(d.Devices) == 0 || d.Chosen < 0 || d.Numerics == nil || d.Cache.Files == 0 {
		t.Errorf("info --json: %v\n%s", err, out)
	}
	out, err = command(t, "info").Output()
	if err != nil || !strings.Contains(string(out), d.Devices[0].Name) || !strings.Contains(string(out), "numerics") {
		t.Errorf("info: %v\n%s", err, out)
	}
	if out, err := command(t, "dance").CombinedOutput(); err == nil || !strings.Contains(string(out), "no command") {
		t.Errorf("dance: %v %s", err, out)
	}
	cmd := command(t)
	cmd.Env = append(cmd.Env, "NXVK_DEVICE=no such device")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "no such device") {
		t.Errorf("an unknown device: %v %s", err, out)
	}
	// info lists the devices there are, and fails for want of the one that was asked for.
	cmd = command(t, "info")
	cmd.Env = append(cmd.Env, "NXVK_DEVICE=no such device")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), d.Devices[0].Name) || !strings.Contains(string(out), "no such device") {
		t.Errorf("info of an unknown device: %v %s", err, out)
	}
}

// The version is that of the package, which mix.exs has.
func TestVersion(t *testing.T) {
	mix, err := os.ReadFile("../../elixir/mix.exs")
	if err != nil {
		t.Fatal(err)
	}
	out, err := command(t, "version").Output()
	if err != nil || !strings.Contains(string(out), packageVersion) || !strings.Contains(string(mix), `@version "`+packageVersion+`"`) {
		t.Errorf("version: %v, %s", err, out)
	}
}
