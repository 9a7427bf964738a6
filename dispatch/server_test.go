package dispatch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"nxvk/device"
	"nxvk/etf"
	"nxvk/graph"
	"nxvk/kernel"
	"nxvk/vkrt"
)

var open = sync.OnceValues(func() (*vkrt.Device, error) { return vkrt.Open(vkrt.Options{CacheDir: "-"}) })

var target = sync.OnceValues(func() (kernel.Target, error) {
	d, err := open()
	if err != nil {
		return kernel.Target{}, err
	}
	return device.Probe(d)
})

// config is a server on the local device.
func config(t testing.TB) Config {
	t.Helper()
	d, err := open()
	if err != nil {
		fmt.Printf("SKIPPED dispatch %s: %v\n", t.Name(), err)
		t.SkipNow()
	}
	tg, err := target()
	if err != nil {
		t.Fatal(err)
	}
	return Config{Device: d, Target: tg, Log: func(level, message string) {
		if level == "error" && strings.Contains(message, "goroutine") {
			t.Errorf("the port logs %s", message)
		}
	}}
}

// serve is a client of a server; the server has ended and returned its memory when the test ends.
func serve(t testing.TB, cfg Config) *Client {
	t.Helper()
	before := cfg.Device.Memory().InUse
	c, done := Local(cfg)
	t.Cleanup(func() {
		if err := done(); err != nil {
			t.Errorf("serve: %v", err)
		}
		if after := cfg.Device.Memory().InUse; after != before {
			t.Errorf("%d bytes of device memory in use before, %d after", before, after)
		}
	})
	return c
}

func f32s(xs ...float32) []byte {
	var b []byte
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func spec(t graph.Type, dims ...int) graph.Spec { return graph.Spec{Type: t, Shape: graph.Shape(dims)} }

func scalar(x float32) etf.Term { return etf.Tuple{etf.Atom("f32"), etf.Binary(f32s(x))} }

func axes(ns ...int) etf.Seq {
	s := make(etf.Seq, len(ns))
	for i, n := range ns {
		s[i] = n
	}
	return s
}

func attrs(kv ...any) etf.Map {
	var m etf.Map
	for i := 0; i < len(kv); i += 2 {
		m = append(m, etf.Pair{Key: etf.Atom(kv[i].(string)), Value: kv[i+1]})
	}
	return m
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantBytes(t *testing.T, c *Client, id int, want []byte) {
	t.Helper()
	got, err := c.Read(id, 0, len(want))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("tensor %d: got % x, %v\nwant % x", id, got, err, want)
	}
}

func wantFailure(t *testing.T, err error, op string, reason Reason, parts ...string) {
	t.Helper()
	var f *Failure
	if !errors.As(err, &f) || f.Op != op || f.Reason != reason {
		t.Errorf("got %+v, want a failure of %s, reason %s", err, op, reason)
		return
	}
	for _, p := range parts {
		if !strings.Contains(f.Message, p) {
			t.Errorf("message %q does not say %q", f.Message, p)
		}
	}
}

func TestOps(t *testing.T) {
	c := serve(t, config(t))
	x, err := c.Hello(attrs("epoch", 7))
	must(t, err)
	if m := x.(etf.Map); m.Get("version") != int64(Version) || m.Get("epoch") != int64(7) || m.Get("device").(etf.Map).Get("name") == nil {
		t.Errorf("hello: %v", x)
	}
	s := spec(graph.F32, 2, 3)
	must(t, c.Upload(1, s, f32s(1, 2, 3, 4, 5, 6)))
	must(t, c.Op("add", s, nil, []etf.Term{1, scalar(10)}, 2))
	wantBytes(t, c, 2, f32s(11, 12, 13, 14, 15, 16))
	// The same program with another scalar, and with an id as the second operand.
	must(t, c.Op("add", s, nil, []etf.Term{1, scalar(-1)}, 3))
	wantBytes(t, c, 3, f32s(0, 1, 2, 3, 4, 5))
	must(t, c.Op("multiply", s, nil, []etf.Term{2, 3}, 4))
	wantBytes(t, c, 4, f32s(0, 12, 26, 42, 60, 80))
	// A view, read through a copy, and computed with.
	must(t, c.Op("transpose", spec(graph.F32, 3, 2), attrs("axes", axes(1, 0)), []etf.Term{1}, 5))
	wantBytes(t, c, 5, f32s(1, 4, 2, 5, 3, 6))
	must(t, c.Free(1))
	must(t, c.Op("sum", spec(graph.F32, 3), attrs("axes", axes(1), "keep_axes", etf.Atom("false")), []etf.Term{5}, 6))
	wantBytes(t, c, 6, f32s(5, 7, 9))
	must(t, c.Op("dot", spec(graph.F32, 3, 3), attrs("contract_a", axes(1), "batch_a", axes(), "contract_b", axes(0), "batch_b", axes()),
		[]etf.Term{5, 2}, 7))
	wantBytes(t, c, 7, f32s(1*11+4*14, 1*12+4*15, 1*13+4*16, 2*11+5*14, 2*12+5*15, 2*13+5*16, 3*11+6*14, 3*12+6*15, 3*13+6*16))
	part, err := c.Read(7, 8, 8)
	if err != nil || !bytes.Equal(part, f32s(77, 92)) {
		t.Errorf("part of a tensor: % x, %v", part, err)
	}
	if b, err := c.Read(7, 36, 0); err != nil || len(b) != 0 {
		t.Errorf("nothing of a tensor: % x, %v", b, err)
	}
	must(t, c.Sync(2, 3, 4))
	st, err := c.Call(etf.Atom("stats"))
	must(t, err)
	if m := st.(etf.Map); m.Get("ops") != int64(6) || m.Get("views") != int64(1) || m.Get("tensors") != int64(6) || m.Get("program_hits") != int64(1) {
		t.Errorf("stats: %v", st)
	}
	info, err := c.Call(etf.Atom("info"))
	if err != nil || info.(etf.Map).Get("numerics") == nil {
		t.Errorf("info: %v, %v", info, err)
	}
}

func TestFailures(t *testing.T) {
	c := serve(t, config(t))
	s := spec(graph.F32, 2)
	must(t, c.Upload(1, s, f32s(1, 2)))

	read := func(id int) error { _, err := c.Read(id, 0, 8); return err }
	// The first error passes through what is computed from it, op after op.
	must(t, c.Op("add", s, nil, []etf.Term{1, 99}, 2))
	must(t, c.Op("exp", s, nil, []etf.Term{2}, 3))
	must(t, c.Op("multiply", s, nil, []etf.Term{3, 1}, 4))
	wantFailure(t, read(4), "add", ReasonUnknownID, "tensor 99", "freed, or never made")
	wantFailure(t, c.Sync(1, 4), "add", ReasonUnknownID, "tensor 99")
	must(t, c.Free(4, 4, 77))
	must(t, c.Free(4))
	wantFailure(t, read(4), "read", ReasonUnknownID, "tensor 4")

	for i, bad := range []struct {
		op     graph.Op
		s      graph.Spec
		attrs  etf.Map
		ins    []etf.Term
		opName string
		reason Reason
		text   string
	}{
		{"frobnicate", s, nil, []etf.Term{1}, "op", ReasonBadOp, "frobnicate"},
		{"add", spec(graph.F32, 3), nil, []etf.Term{1, 1}, "add", ReasonBadOp, "{2}"},
		{"add", s, nil, []etf.Term{1}, "add", ReasonBadOp, "2 operands"},
		{"add", spec(graph.F32, 0), nil, []etf.Term{1, 1}, "add", ReasonBadOp, "extent 0"},
		{"add", spec(graph.F32, 1<<39, 1<<39), nil, []etf.Term{scalar(1), scalar(2)}, "add", ReasonBadOp, "add: shape {549755813888, 549755813888} has more than 1099511627776 elements"},
		{"iota", spec(graph.F32, 1<<38), nil, nil, "iota", ReasonMemory, "out of memory"},
		{"sum", spec(graph.F32), attrs("axes", axes(5)), []etf.Term{1}, "sum", ReasonBadOp, "ax"},
		{"sum", spec(graph.F32), attrs("colour", axes(0)), []etf.Term{1}, "sum", ReasonBadOp, "colour"},
		{"add", s, nil, []etf.Term{1, etf.Tuple{etf.Atom("f32"), etf.Binary{1}}}, "add", ReasonBadRequest, "1 bytes"},
		{"add", s, nil, []etf.Term{1, etf.Tuple{etf.Atom("c64"), etf.Binary{1}}}, "add", ReasonBadRequest, "c64"},
		{"add", s, nil, []etf.Term{1, etf.Atom("one")}, "add", ReasonBadRequest, "an integer"},
	} {
		id := 100 + i
		must(t, c.Op(bad.op, bad.s, bad.attrs, bad.ins, id))
		wantFailure(t, read(id), bad.opName, bad.reason, bad.text)
	}
	// Results under ids in use, or of another number, are refused and leave the others alone.
	must(t, c.Op("exp", s, nil, []etf.Term{1}, 50, 1))
	wantFailure(t, read(50), "exp", ReasonDuplicateID, "id 1 ")
	wantBytes(t, c, 1, f32s(1, 2))
	must(t, c.Op("exp", s, nil, []etf.Term{1}, 51, 52))
	wantFailure(t, read(51), "exp", ReasonBadRequest, "1 results")

	_, err := c.Read(1, 4, 8)
	wantFailure(t, err, "read", ReasonBadRequest, "bytes 4 to 12")
	_, err = c.Read(1, -1, 4)
	wantFailure(t, err, "read", ReasonBadRequest)
	_, err = c.Call(etf.Tuple{etf.Atom("hello"), Version + 1, etf.Map{}})
	wantFailure(t, err, "hello", ReasonVersion, "upgrade nxvk_port")
	_, err = c.Call(etf.Atom("dance"))
	wantFailure(t, err, "request", ReasonBadRequest, "dance")
	_, err = c.Call(etf.Tuple{etf.Atom("free"), etf.Seq{}})
	wantFailure(t, err, "free", ReasonBadRequest, "is a cast")
	_, err = c.Call(etf.Tuple{etf.Atom("read"), 1})
	wantFailure(t, err, "read", ReasonBadRequest, "4 elements")
	must(t, c.Upload(60, s, f32s(1)))
	wantFailure(t, read(60), "upload", ReasonBadRequest, "4 bytes for f32{2}, wants 8")
}

// What is no request gets an error event, and the port lives on.
func TestMalformed(t *testing.T) {
	cfg := config(t)
	events := make(chan string, 100)
	c := serve(t, cfg)
	c.mu.Lock()
	c.Event = func(e etf.Term) { events <- fmt.Sprintf("%s", e) }
	c.mu.Unlock()
	deep := append([]byte{131}, bytes.Repeat([]byte{108, 0, 0, 0, 1}, 1<<20)...)
	for _, frame := range [][]byte{
		nil, {131}, {7, 7, 7}, {131, 104, 200}, {131, 97, 5}, deep,
		append(deep, bytes.Repeat([]byte{106}, 1<<20+1)...),
		{131, 80, 255, 255, 255, 255, 1, 2, 3},
		bytes.Repeat([]byte{131}, 1000),
		make([]byte, MaxFrame+1),
		{131, 104, 1, 119, 1, 'x'},
	} {
		must(t, c.Frame(frame))
		select {
		case e := <-events:
			if !strings.Contains(e, "log") {
				t.Errorf("event %s", e)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("no event for a frame of %d bytes", len(frame))
		}
	}
	must(t, c.Sync())
	// A frame with garbage behind its term does nothing at all.
	b, _ := etf.Encode(opTerm("eye", spec(graph.F32, 2, 2), nil, nil, 5))
	must(t, c.Frame(append(b, 1)))
	_, err := c.Read(5, 0, 4)
	wantFailure(t, err, "read", ReasonUnknownID)
}

func TestUploadParts(t *testing.T) {
	c := serve(t, config(t))
	part := func(id, off int, data []byte) {
		must(t, c.Cast(etf.Tuple{etf.Atom("upload_part"), id, etf.Atom("f32"), etf.Tuple{4}, off, etf.Binary(data)}))
	}
	all := f32s(1, 2, 3, 4)
	part(1, 0, all[:4])
	_, err := c.Read(1, 0, 4)
	wantFailure(t, err, "read", ReasonUnknownID, "not wholly uploaded")
	part(1, 4, all[4:12])
	part(1, 12, all[12:])
	wantBytes(t, c, 1, all)
	part(2, 0, all[:4])
	part(2, 8, all[8:])
	_, err = c.Read(2, 0, 4)
	wantFailure(t, err, "upload_part", ReasonBadRequest, "piece at byte 8, wants 4")
	part(3, 0, all[:8])
	must(t, c.Free(3))
	_, err = c.Read(3, 0, 4)
	wantFailure(t, err, "read", ReasonUnknownID)
	part(4, 0, all[:8]) // left unfinished: its memory must come back
	part(5, 0, append(all, 1))
	_, err = c.Read(5, 0, 4)
	wantFailure(t, err, "upload_part", ReasonBadRequest, "17 bytes")
}

func TestBulkFiles(t *testing.T) {
	c := serve(t, config(t))
	dir := t.TempDir()
	_, err := c.Hello(attrs("runtime_dir", etf.Binary(dir), "bulk_threshold", 1024))
	must(t, err)
	data := make([]byte, 4096)
	for i := range data {
		data[i] = byte(i * 7)
	}
	upload := func(id int, name string, size int) {
		must(t, c.Cast(etf.Tuple{etf.Atom("upload"), id, etf.Atom("u8"), etf.Tuple{4096},
			etf.Tuple{etf.Atom("file"), etf.Binary(name), size}}))
	}
	write := func(name string, b []byte, mode os.FileMode) {
		must(t, os.WriteFile(filepath.Join(dir, name), b, mode))
		must(t, os.Chmod(filepath.Join(dir, name), mode)) // whatever the umask
	}
	write("a", data, 0o600)
	upload(1, "a", 4096)
	wantBytes(t, c, 1, data[:1000])
	if _, err := os.Stat(filepath.Join(dir, "a")); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	x, err := c.Call(etf.Tuple{etf.Atom("read"), 1, 0, 4096})
	must(t, err)
	f, ok := x.(etf.Tuple)
	if !ok || len(f) != 3 || f[0] != etf.Atom("file") || f[2] != int64(4096) {
		t.Fatalf("a large read answers %v", x)
	}
	got, err := os.ReadFile(filepath.Join(dir, string(f[1].(etf.Binary))))
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("bulk file: %d bytes, %v", len(got), err)
	}

	outside := filepath.Join(t.TempDir(), "x")
	must(t, os.WriteFile(outside, data, 0o600))
	must(t, os.Symlink(outside, filepath.Join(dir, "link")))
	write("open", data, 0o644)
	write("short", data[:100], 0o600)
	for i, name := range []string{"link", "open", "short", "missing", "../x", "", ".", "a/b", dir} {
		upload(10+i, name, 4096)
		if _, err := c.Read(10+i, 0, 1); err == nil {
			t.Errorf("file %q was taken", name)
		} else {
			wantFailure(t, err, "upload", ReasonBadFile)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a file outside was touched: %v", err)
	}
}

func TestCompile(t *testing.T) {
	c := serve(t, config(t))
	f32, shape := etf.Atom("f32"), etf.Tuple{2, 2}
	node := func(op string, attrs etf.Term, refs ...int) etf.Term {
		return etf.Tuple{etf.Atom(op), f32, shape, attrs, axes(refs...)}
	}
	// exp(p0 + p1) and p0 transposed, where p1 is a host scalar.
	g := etf.Tuple{
		etf.Seq{etf.Tuple{f32, shape}, etf.Tuple{f32, etf.Atom("value")}},
		etf.Seq{node("add", etf.Seq{}, 0, 1), node("negate", etf.Seq{}, 2), node("transpose", attrs("axes", axes(1, 0)), 0)},
		axes(3, 4),
	}
	x, err := c.Call(etf.Tuple{etf.Atom("compile"), g})
	must(t, err)
	program := x.(etf.Tuple)[0]
	if again, err := c.Call(etf.Tuple{etf.Atom("compile"), g}); err != nil || again.(etf.Tuple)[0] != program {
		t.Errorf("an equal graph is another program: %v, %v", again, err)
	}
	run := func(program etf.Term, ins etf.Seq, outs ...int) {
		must(t, c.Cast(etf.Tuple{etf.Atom("run"), program, ins, axes(outs...)}))
	}
	must(t, c.Upload(1, spec(graph.F32, 2, 2), f32s(1, 2, 3, 4)))
	run(program, etf.Seq{1, scalar(0.5)}, 2, 3)
	wantBytes(t, c, 2, f32s(-1.5, -2.5, -3.5, -4.5))
	wantBytes(t, c, 3, f32s(1, 3, 2, 4))
	// On a view, the result of the run before.
	run(program, etf.Seq{3, scalar(0)}, 4, 5)
	wantBytes(t, c, 4, f32s(-1, -3, -2, -4))
	wantBytes(t, c, 5, f32s(1, 2, 3, 4))

	fails := func(id int, reason Reason, text string) {
		t.Helper()
		_, err := c.Read(id, 0, 4)
		wantFailure(t, err, "run", reason, text)
	}
	run(program, etf.Seq{1}, 10, 11)
	fails(11, ReasonBadRequest, "2 operands, got 1")
	run(program, etf.Seq{1, 1}, 12, 13)
	fails(12, ReasonBadRequest, "operand 1")
	run(12345, etf.Seq{1}, 14)
	fails(14, ReasonUnknownID, "12345")
	for _, bad := range []etf.Term{
		etf.Tuple{etf.Seq{}, etf.Seq{node("add", etf.Seq{}, 0, 1)}, axes(0)},
		etf.Tuple{etf.Seq{}, etf.Seq{}, axes(3)},
		etf.Atom("graph"),
	} {
		if _, err := c.Call(etf.Tuple{etf.Atom("compile"), bad}); err == nil {
			t.Errorf("%v compiles", bad)
		} else {
			wantFailure(t, err, "compile", ReasonBadOp)
		}
	}
}

func TestPlan(t *testing.T) {
	c := serve(t, config(t))
	plan := func(node etf.Term, specs ...etf.Term) (etf.Term, error) {
		return c.Call(etf.Tuple{etf.Atom("plan"), node, etf.Seq(specs)})
	}
	f32, shape := etf.Atom("f32"), etf.Tuple{2}
	x, err := plan(etf.Tuple{etf.Atom("add"), f32, shape, etf.Seq{}}, etf.Tuple{f32, shape}, etf.Tuple{f32, etf.Atom("value")})
	if err != nil || x != etf.Atom("device") {
		t.Errorf("add: %v, %v", x, err)
	}
	x, err = plan(etf.Tuple{etf.Atom("teleport"), f32, shape, etf.Seq{}}, etf.Tuple{f32, shape})
	if err != nil || x != etf.Atom("none") {
		t.Errorf("teleport: %v, %v", x, err)
	}
	x, err = plan(etf.Tuple{etf.Atom("add"), etf.Atom("f256"), shape, etf.Seq{}}, etf.Tuple{etf.Atom("f256"), shape})
	if err != nil || x != etf.Atom("none") {
		t.Errorf("f256: %v, %v", x, err)
	}
	_, err = plan(etf.Tuple{etf.Atom("add"), f32, shape, etf.Seq{}}, etf.Tuple{f32, shape})
	wantFailure(t, err, "add", ReasonBadOp, "2 operands")
}

// Memory that later frees give back serves an op that waits for it.
func TestOutOfMemory(t *testing.T) {
	cfg := config(t)
	d, err := vkrt.Open(vkrt.Options{CacheDir: "-", Limit: 64 << 20})
	must(t, err)
	defer d.Close()
	cfg.Device = d
	c, done := Local(cfg)
	big := spec(graph.U8, 40<<20)
	zero := attrs("value", etf.Binary{0})
	must(t, c.Op(graph.OpConstant, big, zero, nil, 1))
	must(t, c.Op(graph.OpConstant, big, zero, nil, 2)) // waits for …
	must(t, c.Free(1))                                 // … this one
	must(t, c.Sync(2))
	must(t, c.Op(graph.OpConstant, big, zero, nil, 3)) // nobody frees
	wantFailure(t, c.Sync(3), "constant", ReasonMemory, "out of memory")
	must(t, c.Sync(2))
	must(t, done())
	if m := d.Memory(); m.InUse != 0 {
		t.Errorf("%d bytes in use after the end", m.InUse)
	}
}

// 100,000 ops that drop each result need no more memory than a few do.
func TestBoundedMemory(t *testing.T) {
	cfg := config(t)
	c := serve(t, cfg)
	n := 100_000
	if testing.Short() {
		n = 5_000
	}
	s := spec(graph.F32, 1000)
	must(t, c.Op(graph.OpConstant, s, attrs("value", etf.Binary(f32s(1))), nil, 1))
	for id := 2; id < n; id++ {
		must(t, c.Op("add", s, nil, []etf.Term{1, scalar(1)}, id))
		must(t, c.Free(id))
		if id%10_000 == 0 {
			must(t, c.Sync())
			if m := cfg.Device.Memory(); m.InUse > 64<<20 {
				t.Fatalf("%d bytes in use after %d ops", m.InUse, id)
			}
		}
	}
	must(t, c.Sync())
}

func TestRecordAndReplay(t *testing.T) {
	cfg := config(t)
	var rec bytes.Buffer
	cfg.Record = &rec
	dir := t.TempDir()
	c, done := Local(cfg)
	_, err := c.Hello(attrs("runtime_dir", etf.Binary(dir), "bulk_threshold", 64))
	must(t, err)
	data := f32s(make([]float32, 64)...)
	must(t, os.WriteFile(filepath.Join(dir, "f"), data, 0o600))
	must(t, c.Cast(etf.Tuple{etf.Atom("upload"), 1, etf.Atom("f32"), etf.Tuple{64}, etf.Tuple{etf.Atom("file"), etf.Binary("f"), 256}}))
	must(t, c.Op("cos", spec(graph.F32, 64), nil, []etf.Term{1}, 2))
	_, err = c.Call(etf.Tuple{etf.Atom("read"), 2, 0, 256}) // by file
	must(t, err)
	_, err = c.Read(99, 0, 1)
	wantFailure(t, err, "read", ReasonUnknownID)
	must(t, done())
	recording := bytes.Clone(rec.Bytes())
	if !bytes.HasPrefix(recording, []byte("NXVKREC1")) {
		t.Fatalf("the recording starts with %q", recording[:8])
	}

	cfg.Record = nil
	replay := func(rec []byte, tolerance float64) (Summary, []Difference) {
		var ds []Difference
		s, err := Replay(cfg, bytes.NewReader(rec), tolerance, func(d Difference) { ds = append(ds, d) })
		must(t, err)
		return s, ds
	}
	s, ds := replay(recording, 0)
	if s.Frames != 5 || s.Calls != 3 || s.Compared != 2 || s.Different != 0 || len(ds) != 0 {
		t.Errorf("replay: %+v %v", s, ds)
	}
	// A recorded answer that is a little off, or in the middle of nowhere, is found.
	i := bytes.LastIndex(recording, f32s(1, 1, 1))
	off := bytes.Clone(recording)
	copy(off[i:], f32s(1.0001))
	if s, ds := replay(off, 0); s.Different != 1 || math.Abs(ds[0].Relative-1e-4) > 1e-5 {
		t.Errorf("replay of a changed answer: %+v %v", s, ds)
	}
	if s, _ := replay(off, 1e-3); s.Different != 0 {
		t.Errorf("replay within a tolerance: %+v", s)
	}
	// One that a crash cut off runs as far as it goes.
	if s, _ := replay(recording[:i], 0); s.Frames != 4 || s.Different != 0 {
		t.Errorf("replay of half a recording: %+v", s)
	}
	// A damaged one ends, whichever byte it is: a call that nobody can read gets no answer.
	for i := range recording {
		damaged := bytes.Clone(recording)
		damaged[i] ^= 0x15
		_, _ = Replay(cfg, bytes.NewReader(damaged), 0, func(Difference) {})
	}
}

// A read of a part of a view copies that part: the whole may be larger than any memory. Every range of a small view
// is what it is of the whole.
func TestReadOfPartOfAView(t *testing.T) {
	c := serve(t, config(t))
	must(t, c.Op(graph.OpIota, spec(graph.F32, 2), nil, nil, 1))
	must(t, c.Op(graph.OpBroadcast, spec(graph.F32, 1<<36, 2), attrs("axes", axes(1)), []etf.Term{1}, 2))
	got, err := c.Read(2, 1<<38+4, 12)
	if err != nil || !bytes.Equal(got, f32s(1, 0, 1)) {
		t.Errorf("got % x, %v", got, err)
	}
	must(t, c.Op(graph.OpIota, spec(graph.F32, 2, 3, 4), nil, nil, 3))
	for id, op := range map[int]graph.Op{4: graph.OpTranspose, 5: graph.OpReverse} {
		order := axes(2, 0, 1)
		to := spec(graph.F32, 4, 2, 3)
		if op == graph.OpReverse {
			order, to = axes(0, 2), spec(graph.F32, 2, 3, 4)
		}
		must(t, c.Op(op, to, attrs("axes", order), []etf.Term{3}, id))
		whole, err := c.Read(id, 0, 96)
		must(t, err)
		for from := range 96 {
			for n := 1; n <= 96-from; n += 7 {
				if got, err := c.Read(id, from, n); err != nil || !bytes.Equal(got, whole[from:from+n]) {
					t.Fatalf("%v: bytes %d to %d: % x, %v\nwant % x", op, from, from+n, got, err, whole[from:from+n])
				}
			}
		}
	}
}

// A caller who does not read holds up neither other work nor the port.
func TestSlowReader(t *testing.T) {
	cfg := config(t)
	toPort, out := io.Pipe()
	in, fromPort := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(cfg, toPort, fromPort) }()
	w := newFrameWriter(out)
	send := func(x etf.Term) {
		b, err := etf.Encode(x)
		must(t, err)
		must(t, w.write(b))
	}
	const size, reads = 8 << 20, 24 // 192 MiB of answers, three times what may wait
	send(opTerm(graph.OpIota, spec(graph.U32, size/4), nil, nil, 1))
	for i := range reads {
		send(etf.Tuple{i, etf.Tuple{etf.Atom("read"), 1, 0, size}})
	}
	send(etf.Tuple{etf.Atom("free"), axes(1)}) // reads hold on to what they read
	send(opTerm(graph.OpIota, spec(graph.U32, 4), nil, nil, 2))
	send(etf.Tuple{reads, etf.Tuple{etf.Atom("sync"), axes(2)}})
	must(t, w.flush())
	// All was taken in, and nobody has read a byte so far.
	seen := map[uint64]int{}
	for range reads + 1 {
		var head [4]byte
		_, err := io.ReadFull(in, head[:])
		must(t, err)
		frame := make([]byte, binary.BigEndian.Uint32(head[:]))
		_, err = io.ReadFull(in, frame)
		must(t, err)
		req := binary.BigEndian.Uint64(frame[1:])
		seen[req] = len(frame)
		if req < reads && binary.LittleEndian.Uint32(frame[len(frame)-4:]) != size/4-1 {
			t.Errorf("answer %d ends in % x", req, frame[len(frame)-4:])
		}
	}
	if len(seen) != reads+1 {
		t.Errorf("%d answers to %d calls", len(seen), reads+1)
	}
	out.Close()
	must(t, <-served)
}
