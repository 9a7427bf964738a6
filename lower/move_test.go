package lower

import (
	"fmt"
	"math/rand"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
	"nxvk/test/devtest"
)

// from makes the tensor whose element at an index is f of it.
func from(s graph.Spec, f func(at []int) uint64) tensor {
	t := tensor{Spec: s, bits: make([]uint64, s.Shape.Size())}
	each(s.Shape, func(n int, at []int) { t.bits[n] = f(at) })
	return t
}

func (t tensor) at(at []int) uint64 {
	return t.bits[offset(graph.Contiguous(t.Shape), at)]
}

func same(t *testing.T, what string, got, want tensor) {
	t.Helper()
	if got.Spec.String() != want.Spec.String() {
		t.Fatalf("%s: got %v, want %v", what, got.Spec, want.Spec)
	}
	for i := range want.bits {
		if got.bits[i] != want.bits[i] {
			t.Fatalf("%s: element %d is %#x, want %#x", what, i, got.bits[i], want.bits[i])
		}
	}
}

// randomShape draws a shape of a rank, extents up to most, ones often.
func randomShape(r *rand.Rand, rank, most int) graph.Shape {
	s := make(graph.Shape, rank)
	for i := range s {
		s[i] = 1 + r.Intn(most)
		if r.Intn(4) == 0 {
			s[i] = 1
		}
	}
	return s
}

// mostOf keeps tensors of high rank small.
func mostOf(rank int) int { return []int{1, 60, 30, 9, 6, 4, 3, 3, 3}[rank] }

// trial is one random case of a moving op: the node, its operands, what it must yield.
type trial struct {
	n    graph.Node
	in   []tensor
	want tensor
}

func convert(b uint64, from, to graph.Type) uint64 {
	if from == to {
		return b
	}
	return numberOf(b, from).write(to)
}

var moveTrials = map[graph.Op]func(r *rand.Rand, ty graph.Type) trial{
	graph.OpTranspose: func(r *rand.Rand, ty graph.Type) trial {
		rank := 1 + r.Intn(8)
		x := random(r, graph.Spec{Type: ty, Shape: randomShape(r, rank, mostOf(rank))})
		axes := r.Perm(rank)
		s := make(graph.Shape, rank)
		for i, a := range axes {
			s[i] = x.Shape[a]
		}
		want := from(graph.Spec{Type: ty, Shape: s}, func(at []int) uint64 {
			src := make([]int, rank)
			for i, a := range axes {
				src[a] = at[i]
			}
			return x.at(src)
		})
		return trial{graph.Node{Op: graph.OpTranspose, Spec: want.Spec, Attrs: graph.Attrs{Axes: axes}}, []tensor{x}, want}
	},
	graph.OpReverse: func(r *rand.Rand, ty graph.Type) trial {
		rank := 1 + r.Intn(4)
		x := random(r, graph.Spec{Type: ty, Shape: randomShape(r, rank, mostOf(rank))})
		var axes []int
		flip := make([]bool, rank)
		for a := range x.Shape {
			if r.Intn(2) == 0 {
				axes, flip[a] = append(axes, a), true
			}
		}
		want := from(x.Spec, func(at []int) uint64 {
			src := append([]int(nil), at...)
			for a := range src {
				if flip[a] {
					src[a] = x.Shape[a] - 1 - src[a]
				}
			}
			return x.at(src)
		})
		return trial{graph.Node{Op: graph.OpReverse, Spec: x.Spec, Attrs: graph.Attrs{Axes: axes}}, []tensor{x}, want}
	},
	graph.OpReshape: func(r *rand.Rand, ty graph.Type) trial {
		a, b, c, d := 1+r.Intn(5), 1+r.Intn(5), 1+r.Intn(5), 1+r.Intn(5)
		shapes := []graph.Shape{{a, b, c, d}, {a * b, c * d}, {a, b * c, d}, {a * b * c * d}, {a, 1, b, 1, c * d}, {d, c, b, a}, {a * d, b, 1, c}}
		x := random(r, graph.Spec{Type: ty, Shape: shapes[r.Intn(len(shapes))]})
		want := tensor{graph.Spec{Type: ty, Shape: shapes[r.Intn(len(shapes))]}, x.bits}
		return trial{graph.Node{Op: graph.OpReshape, Spec: want.Spec}, []tensor{x}, want}
	},
	graph.OpBroadcast: func(r *rand.Rand, ty graph.Type) trial {
		rank := r.Intn(5)
		s := randomShape(r, rank, mostOf(rank))
		var axes []int
		var xs graph.Shape
		for a := range s {
			if r.Intn(3) > 0 {
				axes = append(axes, a)
				xs = append(xs, s[a])
				if r.Intn(3) == 0 {
					xs[len(xs)-1] = 1
				}
			}
		}
		x := random(r, graph.Spec{Type: ty, Shape: xs})
		want := from(graph.Spec{Type: ty, Shape: s}, func(at []int) uint64 {
			src := make([]int, len(axes))
			for i, a := range axes {
				src[i] = min(at[a], xs[i]-1)
			}
			return x.at(src)
		})
		return trial{graph.Node{Op: graph.OpBroadcast, Spec: want.Spec, Attrs: graph.Attrs{Axes: axes}}, []tensor{x}, want}
	},
	graph.OpPad: func(r *rand.Rand, ty graph.Type) trial {
		rank := r.Intn(5)
		x := random(r, graph.Spec{Type: ty, Shape: randomShape(r, rank, mostOf(rank))})
		vt := graph.RealTypes[r.Intn(len(graph.RealTypes))]
		out := ty
		if r.Intn(3) == 0 {
			out = graph.RealTypes[r.Intn(len(graph.RealTypes))]
		}
		v := random(r, graph.Spec{Type: vt})
		pads := make([]graph.PadDim, rank)
		s := make(graph.Shape, rank)
		for i := range pads {
			for {
				if r.Intn(3) > 0 {
					pads[i] = graph.PadDim{Lo: r.Intn(5) - 2, Hi: r.Intn(5) - 2, Interior: r.Intn(3)}
				} else {
					pads[i] = graph.PadDim{}
				}
				s[i] = pads[i].Lo + pads[i].Hi + x.Shape[i] + (x.Shape[i]-1)*pads[i].Interior
				if s[i] > 0 {
					break
				}
			}
		}
		want := from(graph.Spec{Type: out, Shape: s}, func(at []int) uint64 {
			src := make([]int, rank)
			for k, p := range pads {
				c := at[k] - p.Lo
				if c < 0 || c%(p.Interior+1) != 0 || c/(p.Interior+1) >= x.Shape[k] {
					return convert(v.bits[0], vt, out)
				}
				src[k] = c / (p.Interior + 1)
			}
			return convert(x.at(src), ty, out)
		})
		return trial{graph.Node{Op: graph.OpPad, Spec: want.Spec, Attrs: graph.Attrs{Pad: pads}}, []tensor{x, v}, want}
	},
	graph.OpSlice: func(r *rand.Rand, ty graph.Type) trial {
		rank := 1 + r.Intn(4)
		x := random(r, graph.Spec{Type: ty, Shape: randomShape(r, rank, mostOf(rank))})
		n := graph.Node{Op: graph.OpSlice}
		in := []tensor{x}
		s := make(graph.Shape, rank)
		starts := make([]int, rank)
		for i, d := range x.Shape {
			l, step := 1+r.Intn(d), 1+r.Intn(3)
			n.Attrs.Lengths, n.Attrs.Strides = append(n.Attrs.Lengths, l), append(n.Attrs.Strides, step)
			s[i] = (l + step - 1) / step
			st := randomStart(r, d)
			in = append(in, st)
			starts[i] = clampStart(st.bits[0], st.Type, d-l)
		}
		want := from(graph.Spec{Type: ty, Shape: s}, func(at []int) uint64 {
			src := make([]int, rank)
			for i := range src {
				src[i] = starts[i] + at[i]*n.Attrs.Strides[i]
			}
			return x.at(src)
		})
		n.Spec = want.Spec
		return trial{n, in, want}
	},
	graph.OpPutSlice: func(r *rand.Rand, ty graph.Type) trial {
		rank := 1 + r.Intn(4)
		x := random(r, graph.Spec{Type: ty, Shape: randomShape(r, rank, mostOf(rank))})
		ut, out := ty, ty
		if r.Intn(2) == 0 {
			ut = graph.RealTypes[r.Intn(len(graph.RealTypes))]
			out = mergeTypes(ut, ty)
		}
		us := make(graph.Shape, rank)
		in := []tensor{x, {}}
		starts := make([]int, rank)
		for i, d := range x.Shape {
			us[i] = 1 + r.Intn(d)
			if r.Intn(3) == 0 {
				us[i] = d
			}
			st := randomStart(r, d)
			in = append(in, st)
			starts[i] = clampStart(st.bits[0], st.Type, d-us[i])
		}
		u := random(r, graph.Spec{Type: ut, Shape: us})
		in[1] = u
		want := from(graph.Spec{Type: out, Shape: x.Shape}, func(at []int) uint64 {
			src := make([]int, rank)
			for i := range src {
				src[i] = at[i] - starts[i]
				if src[i] < 0 || src[i] >= us[i] {
					return convert(x.at(at), ty, out)
				}
			}
			return convert(u.at(src), ut, out)
		})
		return trial{graph.Node{Op: graph.OpPutSlice, Spec: want.Spec}, in, want}
	},
	graph.OpConcat: func(r *rand.Rand, ty graph.Type) trial {
		rank := 1 + r.Intn(4)
		s := randomShape(r, rank, mostOf(rank))
		axis, count := r.Intn(rank), 1+r.Intn(11)
		out := ty
		var in []tensor
		s[axis] = 0
		for i := 0; i < count; i++ {
			xs := append(graph.Shape(nil), s...)
			xs[axis] = 1 + r.Intn(4)
			t := ty
			if r.Intn(6) == 0 {
				t = graph.RealTypes[r.Intn(len(graph.RealTypes))]
				out = mergeTypes(out, t)
			}
			in = append(in, random(r, graph.Spec{Type: t, Shape: xs}))
		}
		for _, x := range in {
			s[axis] += x.Shape[axis]
		}
		want := from(graph.Spec{Type: out, Shape: s}, func(at []int) uint64 {
			src := append([]int(nil), at...)
			for _, x := range in {
				if src[axis] < x.Shape[axis] {
					return convert(x.at(src), x.Type, out)
				}
				src[axis] -= x.Shape[axis]
			}
			panic("beyond the operands")
		})
		return trial{graph.Node{Op: graph.OpConcat, Spec: want.Spec, Attrs: graph.Attrs{Axis: axis}}, in, want}
	},
	graph.OpStack: func(r *rand.Rand, ty graph.Type) trial {
		rank := r.Intn(4)
		s := randomShape(r, rank, mostOf(rank))
		axis, count := r.Intn(rank+1), 1+r.Intn(10)
		var in []tensor
		for i := 0; i < count; i++ {
			in = append(in, random(r, graph.Spec{Type: ty, Shape: s}))
		}
		os := append(graph.Shape(nil), s[:axis]...)
		os = append(append(os, count), s[axis:]...)
		want := from(graph.Spec{Type: ty, Shape: os}, func(at []int) uint64 {
			src := append([]int(nil), at[:axis]...)
			return in[at[axis]].at(append(src, at[axis+1:]...))
		})
		return trial{graph.Node{Op: graph.OpStack, Spec: want.Spec, Attrs: graph.Attrs{Axis: axis}}, in, want}
	},
	graph.OpIota: func(r *rand.Rand, ty graph.Type) trial {
		rank := r.Intn(4)
		s := randomShape(r, rank, mostOf(rank))
		axis := r.Intn(rank+1) - 1
		want := from(graph.Spec{Type: ty, Shape: s}, func(at []int) uint64 {
			n := offset(graph.Contiguous(s), at)
			if axis >= 0 {
				n = at[axis]
			}
			return whole(int64(n)).write(ty)
		})
		return trial{graph.Node{Op: graph.OpIota, Spec: want.Spec, Attrs: graph.Attrs{Axis: axis}}, nil, want}
	},
	graph.OpEye: func(r *rand.Rand, ty graph.Type) trial {
		rank := 2 + r.Intn(3)
		want := from(graph.Spec{Type: ty, Shape: randomShape(r, rank, mostOf(rank))}, func(at []int) uint64 {
			return boolean(at[rank-1] == at[rank-2]).write(ty)
		})
		return trial{graph.Node{Op: graph.OpEye, Spec: want.Spec}, nil, want}
	},
	graph.OpConstant: func(r *rand.Rand, ty graph.Type) trial {
		v := random(r, graph.Spec{Type: ty})
		want := from(graph.Spec{Type: ty, Shape: randomShape(r, 2, 9)}, func([]int) uint64 { return v.bits[0] })
		return trial{graph.Node{Op: graph.OpConstant, Spec: want.Spec, Attrs: graph.Attrs{Value: v.bits[0]}}, nil, want}
	},
	graph.OpBitcast: func(r *rand.Rand, ty graph.Type) trial {
		x := random(r, graph.Spec{Type: ty, Shape: randomShape(r, 2, 9)})
		want := x
		for want.Type = graph.RealTypes[r.Intn(len(graph.RealTypes))]; want.Type.Bits() != ty.Bits(); {
			want.Type = graph.RealTypes[r.Intn(len(graph.RealTypes))]
		}
		if ty.Bits() < 8 {
			want = from(want.Spec, func(at []int) uint64 { return canonical(x.at(at), want.Type) })
		}
		return trial{graph.Node{Op: graph.OpBitcast, Spec: want.Spec}, []tensor{x}, want}
	},
	graph.OpAsType: func(r *rand.Rand, ty graph.Type) trial {
		x := random(r, graph.Spec{Type: ty, Shape: randomShape(r, 3, 9)})
		return trial{graph.Node{Op: graph.OpAsType, Spec: x.Spec}, []tensor{x}, x}
	},
}

// randomStart is a start for an axis of extent d: inside, outside, huge or negative, of any integer type.
func randomStart(r *rand.Rand, d int) tensor {
	ints := []graph.Type{graph.U8, graph.U16, graph.U32, graph.U64, graph.S8, graph.S16, graph.S32, graph.S64, graph.S4, graph.U2}
	t := tensor{Spec: graph.Spec{Type: ints[r.Intn(len(ints))]}}
	v := uint64(r.Intn(d + 2))
	switch r.Intn(6) {
	case 0:
		v = r.Uint64()
	case 1:
		v = -v
	}
	t.bits = []uint64{canonical(v, t.Type)}
	return t
}

// TestMoves holds everything that moves elements to its definition: every type, layout and class of
// device, scalars by value, as constants and in memory, and results read straight and through an addition of
// nothing (so that views are read by a kernel).
func TestMoves(t *testing.T) {
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	for op, make := range moveTrials {
		r := rand.New(rand.NewSource(6))
		t.Run(string(op), func(t *testing.T) {
			for _, ty := range graph.RealTypes {
				for k := 0; k < rounds; k++ {
					moveOnce(t, r, make(r, ty), interpreted(testTargets[[]string{"cpu", "discrete"}[k&1]]))
				}
			}
		})
	}
}

func moveOnce(t *testing.T, r *rand.Rand, c trial, m machine) {
	g := &graph.Graph{}
	var in []laidOut
	n := c.n
	var consts []graph.Node
	for _, x := range c.in {
		kind := layoutKinds[r.Intn(len(layoutKinds))]
		if len(x.Shape) == 0 && r.Intn(3) == 0 {
			v := x.first()
			consts = append(consts, graph.Node{Op: graph.OpConstant, Spec: x.Spec, Attrs: graph.Attrs{Value: v.Lo, Upper: v.Hi}})
			n.In = append(n.In, -graph.Ref(len(consts)))
			continue
		}
		n.In = append(n.In, graph.Ref(len(g.Params)))
		l := layOut(x, layoutOf(kind, x.Shape))
		l.value = len(x.Shape) == 0 && r.Intn(2) == 0
		g.Params = append(g.Params, graph.Param{Spec: x.Spec})
		in = append(in, l)
	}
	for i, ref := range n.In {
		if ref < 0 {
			n.In[i] = graph.Ref(len(g.Params)) - ref - 1
		}
	}
	g.Nodes = append(consts, n)
	last := graph.Ref(len(g.Params) + len(g.Nodes) - 1)
	g.Outs = []graph.Ref{last}
	if c.want.Type.Int() {
		g.Nodes = append(g.Nodes, graph.Node{Op: "bitwise_or", In: []graph.Ref{last, last}, Spec: c.want.Spec})
		g.Outs = append(g.Outs, last+1)
	}
	for _, out := range runGraph(t, m, g, in) {
		same(t, g.String(), out, c.want)
	}
}

// TestMovesOnDevice runs the kernels of the device's own class, and those for GPUs.
func TestMovesOnDevice(t *testing.T) {
	m := onDevice(t)
	classes := []kernel.Class{m.Class, kernel.Discrete}
	for op, make := range moveTrials {
		r := rand.New(rand.NewSource(8))
		for i, ty := range graph.RealTypes {
			m.Class = classes[i&1]
			t.Run(string(op), func(t *testing.T) { moveOnce(t, r, make(r, ty), m) })
		}
	}
}

// TestLarge adds tensors of more than 128 MiB, beyond the storage buffer range of some devices, and reads
// the far end of one through a view.
func TestLarge(t *testing.T) {
	if testing.Short() {
		fmt.Println("SKIPPED TestLarge: 400 MB of buffers, not in -short")
		t.SkipNow()
	}
	d := devtest.Open(t)
	n := 36 << 20
	s := graph.Spec{Type: graph.U32, Shape: graph.Shape{n}}
	g := &graph.Graph{
		Params: []graph.Param{{Spec: s}},
		Nodes: []graph.Node{
			{Op: graph.OpIota, Spec: s, Attrs: graph.Attrs{Axis: -1}},
			{Op: "add", In: []graph.Ref{0, 1}, Spec: s},
			{Op: graph.OpReverse, In: []graph.Ref{2}, Spec: s, Attrs: graph.Attrs{Axes: []int{0}}},
			{Op: graph.OpAsType, In: []graph.Ref{3}, Spec: s},
		},
		Outs: []graph.Ref{4},
	}
	p, err := Lower(g, d.Target)
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(p); err != nil {
		t.Fatal(err)
	}
	r := prepare(t, d, p)
	defer r.release()
	stream := d.Dev.NewStream()
	in := make([]byte, 4*n)
	for i := 0; i < n; i++ {
		put(in, graph.U32, i, uint64(i)*7)
	}
	if err := stream.Upload(r.free[0], 0, in); err != nil {
		t.Fatal(err)
	}
	for _, step := range r.steps {
		if err := step(stream); err != nil {
			t.Fatal(err)
		}
	}
	checked := false
	err = stream.Read(r.free[p.Outs[0].Buf], 0, uint64(4*n), func(out []byte, err error) {
		if err != nil {
			t.Error(err)
			return
		}
		for i := 0; i < n; i++ {
			if got, want := get(out, graph.U32, i), uint64(uint32((n-1-i)*8)); got != want {
				t.Errorf("element %d is %d, want %d", i, got, want)
				return
			}
		}
		checked = true
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Wait(); err != nil {
		t.Fatal(err)
	}
	if !checked {
		t.Error("nothing was read")
	}
}
