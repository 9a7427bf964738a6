package test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nxvk/dispatch"
	"nxvk/etf"
	"nxvk/graph"
	"nxvk/test/devtest"
)

// The frames that Nx's backend sent, replayed on this machine's device, against what Nx.BinaryBackend
// answered. README.md has the format; `mix nx_vulkan.vectors` writes them.
func TestVectors(t *testing.T) { testVectors(t, false) }

// The same, with every operation on the processor.
func TestVectorsOnHost(t *testing.T) { testVectors(t, true) }

func testVectors(t *testing.T, hostOnly bool) {
	files, err := filepath.Glob("vectors/*.etf")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	d := devtest.Open(t)
	c, done := dispatch.Local(dispatch.Config{Device: d.Dev, Target: d.Target, HostOnly: hostOnly})
	defer done()
	if _, err := c.Hello(etf.Map{}); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".etf"), func(t *testing.T) {
			vs, err := readVectors(file)
			if err != nil {
				t.Fatal(err)
			}
			bad := 0
			for _, v := range vs {
				if err := v.replay(c); err != nil {
					t.Errorf("%s: %v", v.name, err)
					if bad++; bad == 10 {
						t.Fatal("and more")
					}
				}
			}
		})
	}
}

// vector is one case: frames to send, the tensor that they make, and what it must hold.
type vector struct {
	name   string
	frames [][]byte
	id     int
	made   []int // every tensor that the frames make
	typ    graph.Type
	want   []byte
	skip   map[int]bool // elements where BinaryBackend has no answer
	ulps   int64        // units in the last place that an element may lie off
	bound  float64      // or this far, when it is not 0
}

func readVectors(file string) ([]vector, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	term, err := etf.Decode(b, etf.Limits{})
	if err != nil {
		return nil, err
	}
	head, ok := term.(etf.Tuple)
	if !ok || len(head) != 3 || head[0] != etf.Atom("nx_vulkan_vectors") || head[1] != any(int64(1)) && head[1] != any(1) {
		return nil, fmt.Errorf("%s holds no vectors of version 1", file)
	}
	var vs []vector
	for _, x := range head[2].(etf.Seq) {
		f := x.(etf.Tuple)
		v := vector{name: string(f[0].(etf.Binary)), id: number(f[2]), made: numbers(f[3]), want: f[6].(etf.Binary), skip: map[int]bool{}}
		for _, frame := range f[1].(etf.Seq) {
			v.frames = append(v.frames, frame.(etf.Binary))
		}
		if v.typ, ok = graph.ParseType(string(f[4].(etf.Atom))); !ok {
			return nil, fmt.Errorf("%s: %s: unknown type %v", file, v.name, f[4])
		}
		for _, i := range numbers(f[7]) {
			v.skip[i] = true
		}
		v.ulps, v.bound = int64(number(f[8])), f[9].(float64)
		vs = append(vs, v)
	}
	return vs, nil
}

func number(t etf.Term) int {
	switch n := t.(type) {
	case int64:
		return int(n)
	case int:
		return n
	}
	panic(fmt.Sprintf("%v (%T) is no number", t, t))
}

func numbers(t etf.Term) []int {
	var ns []int
	for _, x := range t.(etf.Seq) {
		ns = append(ns, number(x))
	}
	return ns
}

func (v *vector) replay(c *dispatch.Client) error {
	for _, f := range v.frames {
		if err := c.Frame(f); err != nil {
			return err
		}
	}
	got, err := c.Read(v.id, 0, len(v.want))
	if err == nil {
		err = v.compare(got)
	}
	if e := c.Free(v.made...); err == nil {
		err = e
	}
	return err
}

func (v *vector) compare(got []byte) error {
	if v.typ.Complex() { // part by part
		parts := *v
		parts.typ = v.typ.Part()
		return parts.compare(got)
	}
	size, wrong := v.typ.Size(), ""
	n := 0
	if v.typ.Bits() < 8 {
		got, v.want = unpacked(v.typ, got), unpacked(v.typ, v.want)
	}
	for i := 0; i*size < len(v.want); i++ {
		w, g := bits(v.want[i*size:], size), bits(got[i*size:], size)
		if v.skip[i] || v.agrees(w, g) {
			continue
		}
		if n++; n <= 3 {
			wrong += fmt.Sprintf("\n\telement %d is %s, want %s", i, v.show(g), v.show(w))
		}
	}
	if n > 0 {
		return fmt.Errorf("%d of %d elements of %v differ from Nx.BinaryBackend's:%s", n, len(v.want)/size, v.typ, wrong)
	}
	return nil
}

// unpacked is one byte for each element of a packed tensor, and for the padding after the last one.
func unpacked(t graph.Type, b []byte) []byte {
	elems := make([]byte, len(b)*8/t.Bits())
	graph.Unpack(t, elems, b)
	return elems
}

func (v *vector) agrees(w, g uint64) bool {
	if w == g {
		return true
	}
	if !v.typ.Float() {
		return false
	}
	x, y := v.float(w), v.float(g)
	if math.IsNaN(x) || math.IsNaN(y) {
		return math.IsNaN(x) && math.IsNaN(y)
	}
	if v.bound > 0 {
		return math.Abs(x-y) <= v.bound
	}
	d := v.ordinal(w) - v.ordinal(g)
	return -v.ulps <= d && d <= v.ulps
}

// ordinal orders floats as integers, -0.0 one below 0.0.
func (v *vector) ordinal(b uint64) int64 {
	top := uint64(1) << (8*v.typ.Size() - 1)
	if b&top != 0 {
		return -int64(b&(top-1)) - 1
	}
	return int64(b)
}

func (v *vector) float(b uint64) float64 {
	switch v.typ {
	case graph.F64:
		return math.Float64frombits(b)
	case graph.F32:
		return float64(math.Float32frombits(uint32(b)))
	case graph.BF16:
		return float64(math.Float32frombits(uint32(b) << 16))
	case graph.F8, graph.F8E4M3FN:
		return graph.ToFloat(b, v.typ)
	}
	// f16: 5 bits of exponent, 10 of fraction.
	sign := 1 - 2*float64(b>>15)
	exp, frac := int(b>>10&31), float64(b&1023)
	switch {
	case exp == 31 && frac != 0:
		return math.NaN()
	case exp == 31:
		return sign * math.Inf(1)
	case exp == 0:
		return sign * math.Ldexp(frac, -24)
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

func (v *vector) show(b uint64) string {
	switch {
	case v.typ.Float():
		return fmt.Sprintf("%v (%#x)", v.float(b), b)
	case v.typ.Signed():
		shift := 64 - 8*v.typ.Size()
		return fmt.Sprint(int64(b<<shift) >> shift)
	}
	return fmt.Sprint(b)
}

func bits(b []byte, size int) uint64 {
	var x [8]byte
	copy(x[:size], b)
	return binary.LittleEndian.Uint64(x[:])
}
