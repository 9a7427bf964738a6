package lower

import (
	"math"
	"math/rand"
	"testing"

	"nxvk/graph"
	"nxvk/host"
)

// onHost runs a node on the processor.
func onHost(t *testing.T, n graph.Node, in []tensor) []tensor {
	t.Helper()
	var operands []host.Tensor
	for i, x := range in {
		n.In = append(n.In, graph.Ref(i))
		h := host.New(x.Spec)
		for k, b := range x.bits {
			put(h.Data, x.Type, k, b)
		}
		operands = append(operands, h)
	}
	got, err := host.Run(&n, operands)
	if err != nil {
		t.Fatal(err)
	}
	var out []tensor
	for _, h := range got {
		x := tensor{Spec: h.Spec, bits: make([]uint64, h.Shape.Size())}
		for k := range x.bits {
			x.bits[k] = get(h.Data, x.Type, k)
		}
		out = append(out, x)
	}
	return out
}

// TestSorting holds sorts and running extremes, sums of integers too, to the processor's.
func TestSorting(t *testing.T) {
	r := rand.New(rand.NewSource(81))
	ops := []graph.Op{graph.OpSort, graph.OpArgSort, graph.OpTopK, graph.OpCumulativeSum, graph.OpCumulativeMin}
	for round := range 60 {
		for name, target := range testTargets {
			ty := graph.RealTypes[r.Intn(len(graph.RealTypes))]
			s := randomShape(r, 1+r.Intn(4), 9)
			axis := r.Intn(len(s))
			op := ops[round%len(ops)]
			if op == graph.OpCumulativeSum {
				ty = intTypes[r.Intn(len(intTypes))]
			}
			n := graph.Node{Op: op, Spec: graph.Spec{Type: ty, Shape: s}, Attrs: graph.Attrs{Axis: axis}}
			x := random(r, n.Spec)
			switch op {
			case graph.OpArgSort:
				n.Type, n.Attrs.Desc = graph.S32, r.Intn(2) == 0
			case graph.OpSort:
				n.Attrs.Desc = r.Intn(2) == 0
			case graph.OpTopK:
				n.Shape = append(append(graph.Shape(nil), s[:len(s)-1]...), 1+r.Intn(s[len(s)-1]))
				n.Attrs = graph.Attrs{}
				n.More = []graph.Spec{{Type: graph.S32, Shape: n.Shape}}
			case graph.OpCumulativeMin:
				for i, b := range x.bits {
					if ty.Float() && graph.ToFloat(b, ty) == 0 {
						x.bits[i] = 0 // of zeros, here the lesser is kept and there the first
					}
				}
				n.Attrs.Reverse = r.Intn(2) == 0
			default:
				n.Attrs.Reverse = r.Intn(2) == 0
			}
			want := onHost(t, n, []tensor{x})
			in := layOut(x, layoutOf(layoutKinds[r.Intn(len(layoutKinds))], s))
			g := &graph.Graph{Params: []graph.Param{{Spec: x.Spec}}}
			n.In = []graph.Ref{0}
			nodes, outs := graph.One(n, 1)
			g.Nodes, g.Outs = nodes, outs
			for i, got := range runGraph(t, interpreted(target), g, []laidOut{in}) {
				same(t, name+" "+g.String(), got, want[i])
			}
		}
	}
}

// TestAllClose holds all_close and its ways with infinities and NaNs to its definition.
func TestAllClose(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	cases := []struct {
		a, b     []float64
		nan      bool
		at, bt   graph.Type
		want     uint64
		absolute float64
	}{
		{[]float64{1, 2}, []float64{1, 2}, false, graph.F32, graph.F32, 1, 0},
		{[]float64{1, 2}, []float64{1, 2.001}, false, graph.F32, graph.F32, 0, 0},
		{[]float64{1, 2}, []float64{1, 2.001}, false, graph.F32, graph.F32, 1, 0.01},
		{[]float64{1, inf}, []float64{1, inf}, false, graph.F32, graph.F64, 1, 0},
		{[]float64{1, inf}, []float64{1, -inf}, false, graph.F32, graph.F32, 0, 0},
		{[]float64{1, inf}, []float64{1, 3}, false, graph.F64, graph.F64, 0, 0},
		{[]float64{1, nan}, []float64{1, nan}, false, graph.F32, graph.F32, 0, 0},
		{[]float64{1, nan}, []float64{1, nan}, true, graph.F32, graph.F16, 1, 0},
		{[]float64{1, nan}, []float64{1, 1}, true, graph.F32, graph.F32, 0, 0},
		{[]float64{-128, 5}, []float64{-128, 5}, false, graph.S8, graph.S8, 1, 0},
		{[]float64{-128, 5}, []float64{-128, 6}, false, graph.S8, graph.S8, 0, 0},
		{[]float64{100000, 5}, []float64{100001, 5}, false, graph.S32, graph.S64, 1, 0},
		{[]float64{3}, []float64{3, 3}, false, graph.S32, graph.BF16, 1, 0},
	}
	for i, c := range cases {
		of := func(vs []float64, ty graph.Type) tensor {
			x := tensor{Spec: graph.Spec{Type: ty, Shape: graph.Shape{len(vs)}}}
			for _, v := range vs {
				x.bits = append(x.bits, graph.ConvertBits(math.Float64bits(v), graph.F64, ty))
			}
			return x
		}
		a, b := of(c.a, c.at), of(c.b, c.bt)
		n := graph.Node{Op: graph.OpAllClose, Spec: graph.Spec{Type: graph.U8, Shape: graph.Shape{}},
			Attrs: graph.Attrs{RTol: 1e-5, ATol: 1e-8 + c.absolute, EqualNaN: c.nan}}
		for name, target := range testTargets {
			got := runGraph(t, interpreted(target), one(n, a.Spec, b.Spec), []laidOut{flatOf(a), flatOf(b)})[0]
			if got.bits[0] != c.want {
				t.Errorf("%s: case %d: %d, want %d", name, i, got.bits[0], c.want)
			}
		}
	}
}

// TestTransforms checks the Programs of transforms: hazards, and that all access is inside buffers.
func TestTransforms(t *testing.T) {
	for _, length := range []int{1, 6, 17, 64, 97, 1000, 1 << 12, 100003} {
		for _, op := range []graph.Op{graph.OpFFT, graph.OpIFFT, graph.OpRFFT, graph.OpIRFFT} {
			out := graph.Spec{Type: graph.C64, Shape: graph.Shape{3, length}}
			switch op {
			case graph.OpRFFT:
				out.Shape[1] = length/2 + 1
			case graph.OpIRFFT:
				out.Type = graph.F32
			}
			g := one(graph.Node{Op: op, Spec: out, Attrs: graph.Attrs{Axis: 1, Length: length, Eps: 1e-10}}, graph.Spec{Type: graph.F32, Shape: graph.Shape{3, 40}})
			if err := graph.Verify(g); err != nil {
				t.Fatal(err)
			}
			for name, target := range testTargets {
				p, err := Lower(g, target)
				if err == nil {
					err = Check(p)
				}
				if err != nil {
					t.Fatalf("%s: %s of length %d: %v", name, op, length, err)
				}
			}
		}
	}
	n := graph.Node{Op: graph.OpIFFT2, Spec: graph.Spec{Type: graph.C64, Shape: graph.Shape{4, 5, 7}}, Attrs: graph.Attrs{Axes: []int{2, 1}, Lengths: []int{7, 5}, Eps: 1e-10}}
	p, err := Lower(one(n, graph.Spec{Type: graph.F32, Shape: graph.Shape{4, 6, 7}}), testTargets["cpu"])
	if err == nil {
		err = Check(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	without := testTargets["cpu"]
	without.F64 = false
	if tier := TierOf(without, n, []graph.Param{{Spec: graph.Spec{Type: graph.F32, Shape: graph.Shape{4, 6, 7}}}}); tier != Host {
		t.Errorf("a transform without f64 runs on the %v", tier)
	}
}
