package lower

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"nxvk/graph"
	"nxvk/host"
	"nxvk/kernel"
	"nxvk/shaders"
	"nxvk/test/devtest"
)

// A tensor of the tests: its elements in row-major order, each as the bits of its type. Those of a complex
// type are pairs.
type tensor struct {
	graph.Spec
	bits []uint64
}

// laidOut is a tensor in a buffer, in some layout.
type laidOut struct {
	tensor
	layout graph.Layout
	buf    []byte
	value  bool // travels by value
}

// A machine is what a test runs Programs on: the interpreter, or the device beside the interpreter.
type machine struct {
	kernel.Target
	run func(tb testing.TB, k *kernel.Kernel, grid [3]uint32, args []kernel.Bind) error
}

func interpreted(t kernel.Target) machine {
	return machine{t, func(_ testing.TB, k *kernel.Kernel, grid [3]uint32, args []kernel.Bind) error {
		return kernel.Run(k, grid, args)
	}}
}

// onDevice runs each kernel on the device and in the interpreter: they must agree.
func onDevice(t *testing.T) machine {
	d := devtest.Open(t)
	return machine{d.Target, func(tb testing.TB, k *kernel.Kernel, grid [3]uint32, args []kernel.Bind) error {
		for i, got := range devtest.Both(tb, k, grid, args...) {
			copy(args[i].Buf, got.Buf)
		}
		return nil
	}}
}

var testTargets = map[string]kernel.Target{
	"cpu":      target(kernel.CPU),
	"discrete": target(kernel.Discrete),
}

func target(c kernel.Class) kernel.Target {
	return kernel.Target{Class: c, F64: true, I64: true, Mem8: true, Mem16: true, MaxShared: 32 << 10, MaxInvocations: 1024,
		MaxGroups: [3]uint32{65535, 65535, 65535}, Subgroup: 8, Num: kernel.Exact}
}

func put(buf []byte, t graph.Type, i int, bits uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	copy(buf[i*t.Size():(i+1)*t.Size()], b[:])
}

func get(buf []byte, t graph.Type, i int) uint64 {
	var b [8]byte
	copy(b[:], buf[i*t.Size():(i+1)*t.Size()])
	return binary.LittleEndian.Uint64(b[:])
}

// each calls f with every index of s, in row-major order.
func each(s graph.Shape, f func(n int, at []int)) {
	at := make([]int, len(s))
	for n := 0; n < s.Size(); n++ {
		f(n, at)
		for k := len(s) - 1; k >= 0; k-- {
			at[k]++
			if at[k] < s[k] {
				break
			}
			at[k] = 0
		}
	}
}

func offset(l graph.Layout, at []int) int {
	o := l.Offset
	for k, i := range at {
		o += i * l.Strides[k]
	}
	return o
}

// layOut puts t into a buffer in a layout.
func layOut(t tensor, l graph.Layout) laidOut {
	_, hi := graph.Reach(t.Shape, l)
	x := laidOut{tensor: t, layout: l, buf: make([]byte, hi*t.Type.Size())}
	each(t.Shape, func(n int, at []int) {
		if !t.Type.Complex() {
			put(x.buf, t.Type, offset(l, at), t.bits[n])
			return
		}
		for p := range 2 {
			put(x.buf, t.Type.Part(), 2*offset(l, at)+p, t.bits[2*n+p])
		}
	})
	return x
}

// first is element 0 of t.
func (t *tensor) first() graph.Value {
	if t.Type.Complex() {
		return graph.Join(t.Type, t.bits[0], t.bits[1])
	}
	return graph.Real(t.bits[0])
}

// layoutKinds are ways to lie in memory that tests go through.
var layoutKinds = []string{"contiguous", "offset", "transposed", "reversed", "spread"}

// layoutOf makes a layout of a kind for a shape.
func layoutOf(kind string, s graph.Shape) graph.Layout {
	l := graph.Contiguous(s)
	switch kind {
	case "offset":
		l.Offset = 3
	case "transposed": // column-major
		n := 1
		for k := range s {
			l.Strides[k] = n
			n *= s[k]
		}
	case "reversed":
		for k := range s {
			l.Offset += (s[k] - 1) * l.Strides[k]
			l.Strides[k] = -l.Strides[k]
		}
	case "spread":
		n := 2
		for k := len(s) - 1; k >= 0; k-- {
			l.Strides[k] = n
			n *= s[k] + 1
		}
		l.Offset = 4
	}
	return l
}

// runGraph lowers g, checks the Program and runs it on the interpreter.
func runGraph(t *testing.T, m machine, g *graph.Graph, in []laidOut) []tensor {
	t.Helper()
	for i := range in {
		g.Params[i].Layout = in[i].layout
		g.Params[i].ByValue = in[i].value
		if in[i].value {
			g.Params[i].Layout = graph.Layout{}
		}
	}
	if err := graph.Verify(g); err != nil {
		t.Fatalf("%v\n%v", err, g)
	}
	p, err := Lower(g, m.Target)
	if err != nil {
		t.Fatalf("%v\n%v", err, g)
	}
	if err := Check(p); err != nil {
		t.Fatalf("%v\n%v%v", err, g, p)
	}
	wantHost(t, m.Target, g, p)
	out, err := execute(t, m, p, in)
	if err != nil {
		t.Fatalf("%v\n%v%v", err, g, p)
	}
	return out
}

// wantHost wants the processor to run an elementwise operation for which the device lacks a type, and
// no other, but what f32 would round. g is that operation alone; other graphs are let through.
func wantHost(t *testing.T, d kernel.Target, g *graph.Graph, p *Program) {
	t.Helper()
	if len(g.Nodes) > 1 || !graph.Elementwise(g.Nodes[0].Op) {
		return
	}
	n := &g.Nodes[0]
	missing, open := !shaders.Has(d, n.Type), false
	for _, r := range n.In {
		open = open || !d.F64 && g.Params[r].Type.Complex()
		missing = missing || !shaders.Has(d, g.Params[r].Type)
		open = open || g.Params[r].ByValue // a small number does with another type
		open = open || !d.F64 && n.Type.Float() && g.Params[r].Type != n.Type
	}
	if on := p.HostOps(); slices.Contains(on, n.Op) != missing && !open {
		t.Fatalf("%s: the processor runs %v, the device lacks a type: %v\n%v", n.Op, on, missing, g)
	}
}

// execute runs a Program on a machine.
func execute(tb testing.TB, m machine, p *Program, in []laidOut) ([]tensor, error) {
	bufs := make([][]byte, len(p.Bufs))
	for i, b := range p.Bufs {
		switch b.Kind {
		case BufParam:
			bufs[i] = in[b.Index].buf
			if uint64(len(bufs[i])) < b.Bytes {
				return nil, fmt.Errorf("parameter %d has %d bytes, the program wants %d", b.Index, len(bufs[i]), b.Bytes)
			}
		case BufConst:
			bufs[i] = b.Data
		case BufFlag:
			bufs[i] = make([]byte, b.Bytes)
		default:
			bufs[i] = make([]byte, b.Bytes)
			for k := range bufs[i] {
				bufs[i][k] = 0xa5
			}
		}
	}
	for i, s := range p.Steps {
		if h := s.Host; h != nil {
			value := func(k int) []byte {
				b := make([]byte, in[k].Type.Size())
				put(b, in[k].Type, 0, in[k].bits[0])
				return b
			}
			out, err := host.Run(&h.Node, h.Tensors(func(b int) []byte { return bufs[b] }, value))
			if err != nil {
				return nil, fmt.Errorf("step %d: %w", i, err)
			}
			for k, b := range h.Out {
				copy(bufs[b], out[k].Data)
			}
			continue
		}
		k := p.Kernels[s.Kernel]
		args := make([]kernel.Bind, len(s.Args))
		for j, a := range s.Args {
			switch a.Kind {
			case ArgAddr:
				args[j].Buf = bufs[a.Buf][a.Offset:reach(&s, a)]
			case ArgImm:
				args[j].Bits = a.Imm
			case ArgValue:
				args[j].Bits = a.Conv.Bits(in[a.Param].first())
			}
		}
		if err := m.run(tb, k, s.Grid, args); err != nil {
			return nil, fmt.Errorf("step %d: %w\n%s", i, err, k.Text())
		}
	}
	for i := range p.Bounds {
		b := &p.Bounds[i]
		if b.Message != "" {
			if get(bufs[b.Flag], graph.U32, 0) != 0 {
				return nil, fmt.Errorf("%s: %s: %s", b.Op, b.Reason, b.Message)
			}
			continue
		}
		lo, hi := b.Range()
		failed := b.Failed(bufs[b.Index][lo:hi])
		if flagged := get(bufs[b.Flag], graph.U32, 0) != 0; flagged != (failed != nil) {
			return nil, fmt.Errorf("bound %d: flagged %v, and it is %v", i, flagged, failed)
		}
		if failed != nil {
			return nil, failed
		}
	}
	var outs []tensor
	for _, o := range p.Outs {
		t := tensor{Spec: o.Spec}
		each(o.Spec.Shape, func(n int, at []int) {
			if !t.Type.Complex() {
				t.bits = append(t.bits, get(bufs[o.Buf], o.Spec.Type, offset(o.Layout, at)))
				return
			}
			for p := range 2 {
				t.bits = append(t.bits, get(bufs[o.Buf], t.Type.Part(), 2*offset(o.Layout, at)+p))
			}
		})
		outs = append(outs, t)
	}
	return outs, nil
}

// hard are values of t that find mistakes.
func hard(t graph.Type) []uint64 {
	m := ^uint64(0) >> (64 - 8*t.Size())
	if t.Int() {
		vs := []uint64{0, 1, 2, 3, 5, 7, 8, 10, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 1<<15 - 1, 1 << 15, 1<<16 - 1, 1 << 24, 1<<24 + 1, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 53, 1<<53 + 1,
			1<<60 + 1<<36 + 1, 1<<63 - 1, 1 << 63, 1<<64 - 1}
		for i, n := 0, len(vs); i < n; i++ {
			vs = append(vs, -vs[i])
		}
		for i := range vs {
			vs[i] = canonical(vs[i], t)
		}
		return vs
	}
	var vs []uint64
	for _, f := range hardFloats {
		vs = append(vs, graph.FromFloat(f, t), graph.FromFloat(-f, t))
	}
	quiet := quietNaN[t]
	inf := map[graph.Type]uint64{graph.F8: 0x7c, graph.F8E4M3FN: 0x7e, graph.F16: 0x7c00, graph.BF16: 0x7f80, graph.F32: 0x7f800000, graph.F64: 0x7ff0 << 48}[t]
	return append(vs, quiet, inf|1, quiet|(m+1)>>1, inf, inf-1, 1, 2, 3)
}

var hardFloats = []float64{0, 1, 2, 3, 10, 0.5, 1.5, 2.5, 0.25, 0.3, 0.7, 7, 100, 127.5, 128, 255, 256, 300.7, 2049, 2051, 32767.5, 32768, 65504, 65519, 65520, 65535, 1 << 24, 1<<24 + 1, 1<<31 - 1, 1 << 31, 1<<32 - 1,
	1 << 32, 1 << 53, 1 << 62, 1 << 63, 1 << 64, 1e10, 1e20, 3.4028234663852886e38, 3.4028235677973366e38, 1e300, 6.1e-5, 5.96e-8, 2.98e-8, 2.9802322387695312e-8, 1.1754943508222875e-38, 1e-40, 1.4e-45, 1e-300, 5e-324, 2049 + 0x1p-30}

// random draws elements of t: hard ones, small ones and any bits.
func random(r *rand.Rand, s graph.Spec) tensor {
	t := tensor{Spec: s, bits: make([]uint64, s.Shape.Size())}
	h := hard(s.Type)
	for i := range t.bits {
		switch r.Intn(3) {
		case 0:
			t.bits[i] = h[r.Intn(len(h))]
		case 1:
			if s.Type.Float() {
				t.bits[i] = graph.FromFloat(r.NormFloat64()*10, s.Type)
			} else {
				t.bits[i] = canonical(uint64(r.Intn(41)-20), s.Type)
			}
		default:
			t.bits[i] = canonical(r.Uint64(), s.Type)
		}
	}
	return t
}

// reach is the end of what a step says it touches through a pointer: a kernel that goes on is refused.
func reach(s *Step, a Arg) uint64 {
	var hi uint64
	for _, x := range s.Access {
		if x.Buf == a.Buf && x.Lo <= a.Offset {
			hi = max(hi, x.Hi)
		}
	}
	return hi
}
