package lower

import (
	"math"
	"math/rand"
	"testing"

	"nxvk/graph"
)

// draw makes a random node of a family, its operands, and how far floats may lie off, relative to the largest of the
// result (0: not at all); nil where the dice fell badly.
type draw func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64)

func smallShape(r *rand.Rand, rank int) graph.Shape {
	s := make(graph.Shape, rank)
	for i := range s {
		s[i] = 1 + r.Intn(5)
	}
	return s
}

// moderate draws numbers whose sums and products stay finite.
func moderate(r *rand.Rand, s graph.Spec) tensor {
	x := tensor{Spec: s, bits: make([]uint64, s.Shape.Size())}
	for i := range x.bits {
		x.bits[i] = graph.ConvertBits(math.Float64bits(float64(r.Intn(41)-20)/2), graph.F64, s.Type)
	}
	return x
}

func indicesInto(r *rand.Rand, lead graph.Shape, axes []int, s graph.Shape) tensor {
	x := tensor{Spec: graph.Spec{Type: graph.S32, Shape: append(append(graph.Shape{}, lead...), len(axes))}}
	for range lead.Size() {
		for _, a := range axes {
			x.bits = append(x.bits, uint64(r.Intn(s[a])))
		}
	}
	return x
}

func splitAxes(r *rand.Rand, rank int) (axes []int, rest []int) {
	for a := range rank {
		if r.Intn(2) == 0 {
			axes = append(axes, a)
		} else {
			rest = append(rest, a)
		}
	}
	return axes, rest
}

func windowNode(r *rand.Rand, op graph.Op, x graph.Spec, dilated bool) *graph.Node {
	n := &graph.Node{Op: op, Spec: graph.Spec{Type: x.Type}}
	for _, d := range x.Shape {
		w, st, di := 1+r.Intn(3), 1+r.Intn(3), 1
		if dilated {
			di += r.Intn(2)
		}
		p := graph.PadDim{Lo: r.Intn(4) - 1, Hi: r.Intn(4) - 1}
		out := d + p.Lo + p.Hi - (w-1)*di
		if out < 1 {
			return nil
		}
		n.Shape = append(n.Shape, (out-1)/st+1)
		n.Attrs.Window, n.Attrs.Strides, n.Attrs.Pad = append(n.Attrs.Window, w), append(n.Attrs.Strides, st), append(n.Attrs.Pad, p)
		if dilated {
			n.Attrs.Dilation = append(n.Attrs.Dilation, di)
		}
	}
	return n
}

var families = map[string]draw{
	"window": func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
		x := moderate(r, graph.Spec{Type: t, Shape: smallShape(r, 1+r.Intn(3))})
		op := []graph.Op{graph.OpWindowSum, graph.OpWindowMax, graph.OpWindowMin}[r.Intn(3)]
		return windowNode(r, op, x.Spec, true), []tensor{x}, 1e-6
	},
	"window_scatter": func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
		x := moderate(r, graph.Spec{Type: t, Shape: smallShape(r, 1+r.Intn(3))})
		n := windowNode(r, []graph.Op{graph.OpWindowScatterMax, graph.OpWindowScatterMin}[r.Intn(2)], x.Spec, false)
		if n == nil {
			return nil, nil, 0
		}
		src := moderate(r, n.Spec)
		n.Shape = x.Shape
		return n, []tensor{x, src, moderate(r, graph.Spec{Type: t, Shape: graph.Shape{}})}, 1e-6
	},
	"sort": func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
		x := random(r, graph.Spec{Type: t, Shape: smallShape(r, 1+r.Intn(3))})
		at := graph.Attrs{Axis: r.Intn(len(x.Shape)), Desc: r.Intn(2) == 0}
		if r.Intn(2) == 0 {
			return &graph.Node{Op: graph.OpSort, Spec: x.Spec, Attrs: at}, []tensor{x}, 0
		}
		return &graph.Node{Op: graph.OpArgSort, Spec: graph.Spec{Type: graph.S32, Shape: x.Shape}, Attrs: at}, []tensor{x}, 0
	},
	"cumulative": func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
		x := moderate(r, graph.Spec{Type: t, Shape: smallShape(r, 1+r.Intn(3))})
		op := []graph.Op{graph.OpCumulativeSum, graph.OpCumulativeMax, graph.OpCumulativeMin}[r.Intn(3)]
		return &graph.Node{Op: op, Spec: x.Spec, Attrs: graph.Attrs{Axis: r.Intn(len(x.Shape)), Reverse: r.Intn(2) == 0}}, []tensor{x}, 1e-6
	},
	"gather": func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
		x := random(r, graph.Spec{Type: t, Shape: smallShape(r, 1+r.Intn(3))})
		axes, rest := splitAxes(r, len(x.Shape))
		lead := smallShape(r, r.Intn(3))
		if len(axes) == 0 {
			return nil, nil, 0
		}
		out := append(graph.Shape{}, lead...)
		for _, a := range rest {
			out = append(out, x.Shape[a])
		}
		return &graph.Node{Op: graph.OpGather, Spec: graph.Spec{Type: t, Shape: out}, Attrs: graph.Attrs{Axes: axes}}, []tensor{x, indicesInto(r, lead, axes, x.Shape)}, 0
	},
	"indexed": func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
		x := moderate(r, graph.Spec{Type: t, Shape: smallShape(r, 1+r.Intn(3))})
		axes, rest := splitAxes(r, len(x.Shape))
		lead := smallShape(r, 1)
		if len(axes) == 0 {
			return nil, nil, 0
		}
		u := append(graph.Shape{}, lead...)
		for _, a := range rest {
			u = append(u, x.Shape[a])
		}
		op := []graph.Op{graph.OpIndexedAdd, graph.OpIndexedPut}[r.Intn(2)]
		return &graph.Node{Op: op, Spec: x.Spec, Attrs: graph.Attrs{Axes: axes}},
			[]tensor{x, indicesInto(r, lead, axes, x.Shape), moderate(r, graph.Spec{Type: t, Shape: u})}, 1e-6
	},
	"take": func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
		x := random(r, graph.Spec{Type: t, Shape: smallShape(r, 1+r.Intn(3))})
		a, lead := r.Intn(len(x.Shape)), smallShape(r, r.Intn(3))
		idx := indicesInto(r, lead, []int{a}, x.Shape)
		idx.Shape = lead
		out := append(append(append(graph.Shape{}, x.Shape[:a]...), lead...), x.Shape[a+1:]...)
		return &graph.Node{Op: graph.OpTake, Spec: graph.Spec{Type: t, Shape: out}, Attrs: graph.Attrs{Axis: a}}, []tensor{x, idx}, 0
	},
	"pad": func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
		x := random(r, graph.Spec{Type: t, Shape: smallShape(r, 1+r.Intn(3))})
		n := &graph.Node{Op: graph.OpPad, Spec: graph.Spec{Type: t}}
		for _, d := range x.Shape {
			p := graph.PadDim{Lo: r.Intn(6) - 3, Hi: r.Intn(6) - 3, Interior: r.Intn(3)}
			n.Attrs.Pad = append(n.Attrs.Pad, p)
			n.Shape = append(n.Shape, p.Lo+p.Hi+d+(d-1)*p.Interior)
		}
		return n, []tensor{x, random(r, graph.Spec{Type: t, Shape: graph.Shape{}})}, 0
	},
	"dot": func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
		b, m, k, n := 1+r.Intn(3), 1+r.Intn(5), 1+r.Intn(6), 1+r.Intn(5)
		x, y := moderate(r, graph.Spec{Type: t, Shape: graph.Shape{b, m, k}}), moderate(r, graph.Spec{Type: t, Shape: graph.Shape{b, k, n}})
		return &graph.Node{Op: graph.OpDot, Spec: graph.Spec{Type: t, Shape: graph.Shape{b, m, n}},
			Attrs: graph.Attrs{ContractA: []int{2}, ContractB: []int{1}, BatchA: []int{0}, BatchB: []int{0}}}, []tensor{x, y}, 1e-6
	},
	"conv": func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
		if !t.Float() {
			t = graph.F32
		}
		spatial := 1 + r.Intn(2)
		c := &graph.Conv{FeatureGroups: 1 + r.Intn(2), BatchGroups: 1}
		if c.FeatureGroups == 1 {
			c.BatchGroups = 1 + r.Intn(2)
		}
		groups := c.FeatureGroups * c.BatchGroups
		x, k := graph.Shape{c.BatchGroups * (1 + r.Intn(2)), c.FeatureGroups * (1 + r.Intn(2))}, graph.Shape{groups * (1 + r.Intn(2)), 0}
		k[1] = x[1] / c.FeatureGroups
		n := &graph.Node{Op: graph.OpConv, Attrs: graph.Attrs{Conv: c}}
		out := graph.Shape{x[0] / c.BatchGroups, k[0]}
		for range spatial {
			d, w, id, kd, st := 1+r.Intn(5), 1+r.Intn(3), 1+r.Intn(2), 1+r.Intn(2), 1+r.Intn(2)
			p := graph.PadDim{Lo: r.Intn(3), Hi: r.Intn(3) - 1}
			room := (d-1)*id + 1 + p.Lo + p.Hi - (w-1)*kd
			if room < 1 {
				return nil, nil, 0
			}
			x, k, out = append(x, d), append(k, w), append(out, (room-1)/st+1)
			c.InputDilation, c.KernelDilation = append(c.InputDilation, id), append(c.KernelDilation, kd)
			n.Attrs.Strides, n.Attrs.Pad = append(n.Attrs.Strides, st), append(n.Attrs.Pad, p)
		}
		// natural axis i of x lies at InputPerm[i] of the operand.
		place := func(s graph.Shape) (perm []int, at graph.Shape) {
			perm, at = r.Perm(len(s)), make(graph.Shape, len(s))
			for i, a := range perm {
				at[a] = s[i]
			}
			return perm, at
		}
		var xs, ks graph.Shape
		c.InputPerm, xs = place(x)
		c.KernelPerm, ks = place(k)
		c.OutputPerm = r.Perm(len(out))
		n.Spec = graph.Spec{Type: t}
		for _, a := range c.OutputPerm {
			n.Shape = append(n.Shape, out[a])
		}
		return n, []tensor{moderate(r, graph.Spec{Type: t, Shape: xs}), moderate(r, graph.Spec{Type: t, Shape: ks})}, 1e-6
	},
}

// Every family on kernels agrees with the host: integers and moves to the bit, sums of floats nearly.
func TestFamiliesAgreeWithHost(t *testing.T) {
	types := []graph.Type{graph.U8, graph.S16, graph.S32, graph.U64, graph.F16, graph.F32, graph.F64}
	for name, family := range families {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewSource(7))
			ran := 0
			for range 60 {
				n, xs, tolerance := family(r, types[r.Intn(len(types))])
				if n == nil {
					continue
				}
				specs, in := make([]graph.Spec, len(xs)), make([]laidOut, len(xs))
				for i, x := range xs {
					specs[i] = x.Spec
					in[i] = layOut(x, layoutOf(layoutKinds[r.Intn(len(layoutKinds))], x.Shape))
				}
				g := one(*n, specs...)
				if graph.Verify(g) != nil {
					continue // a shape that is empty, say
				}
				ran++
				want := hostEval(t, g, in)
				target := testTargets[[]string{"cpu", "discrete"}[r.Intn(2)]]
				if tier := TierOf(target, *n, g.Params); tier != Device {
					t.Errorf("%v: the %v runs it", g, tier)
				}
				got := runGraph(t, interpreted(target), g, in)
				nearly(t, g, got, want, tolerance)
			}
			if ran < 15 {
				t.Errorf("only %d nodes were drawn", ran)
			}
		})
	}
}

// nearly is agree where floats may lie off by a part of the largest magnitude, and by a unit of their type.
func nearly(t *testing.T, g *graph.Graph, got, want []tensor, tolerance float64) {
	t.Helper()
	for k := range want {
		ty := want[k].Type
		if !ty.Float() || tolerance == 0 {
			agree(t, g, got[k:k+1], want[k:k+1])
			continue
		}
		if ty == graph.F16 {
			tolerance = 1e-3
		}
		most := 0.0
		for _, w := range want[k].bits {
			most = max(most, math.Abs(graph.ToFloat(w, ty)))
		}
		for i, w := range want[k].bits {
			a, b := graph.ToFloat(got[k].bits[i], ty), graph.ToFloat(w, ty)
			if got[k].bits[i] != w && !(math.Abs(a-b) <= tolerance*max(most, 1)) {
				t.Fatalf("result %d, element %d of %v: %v, want %v\n%v", k, i, want[k].Spec, a, b, g)
			}
		}
	}
}
