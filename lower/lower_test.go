package lower

import (
	"math/rand"
	"testing"

	"nxvk/graph"
)

// one is a graph of one node over parameters of the given specs.
func one(n graph.Node, in ...graph.Spec) *graph.Graph {
	g := &graph.Graph{Outs: []graph.Ref{graph.Ref(len(in))}}
	for i, s := range in {
		g.Params = append(g.Params, graph.Param{Spec: s})
		n.In = append(n.In, graph.Ref(i))
	}
	g.Nodes = []graph.Node{n}
	return g
}

func TestAdd(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	s := graph.Spec{Type: graph.S32, Shape: graph.Shape{3, 37}}
	x, y := random(r, s), random(r, s)
	for name, tg := range testTargets {
		for _, kind := range layoutKinds {
			out := runGraph(t, interpreted(tg), one(graph.Node{Op: "add", Spec: s}, s, s), []laidOut{layOut(x, layoutOf(kind, s.Shape)), layOut(y, graph.Contiguous(s.Shape))})
			for i, got := range out[0].bits {
				if want := (x.bits[i] + y.bits[i]) & 0xffffffff; got != want {
					t.Fatalf("%s %s: element %d: %d + %d = %d, want %d", name, kind, i, x.bits[i], y.bits[i], got, want)
				}
			}
		}
	}
}

func TestNarrowValue(t *testing.T) {
	for _, c := range []struct {
		op       graph.Op
		out, typ graph.Type
		bits     uint64
		want     graph.Type
	}{
		{"multiply", graph.F32, graph.S32, 2, graph.F32},
		{"multiply", graph.F32, graph.S32, 1<<24 + 1, graph.S32},
		{"multiply", graph.BF16, graph.F32, 0x40200000, graph.BF16},     // 2.5
		{"multiply", graph.BF16, graph.F32, 0x3dcccccd, graph.F32},      // 0.1
		{"less", graph.U8, graph.S64, ^uint64(0), graph.S16},            // -1
		{"less", graph.U8, graph.U64, ^uint64(0), graph.U64},            // not -1
		{"add", graph.S64, graph.U32, 0xffffffff, graph.U32},            // likewise
		{graph.OpBitcast, graph.S32, graph.U32, 1, graph.U32},           // not by value
		{"population_count", graph.U32, graph.U32, 1, graph.U32},        // likewise
		{"divide", graph.F32, graph.F64, 0x3ff0000000000000, graph.F32}, // 1
		{"pow", graph.F32, graph.U64, 3, graph.F32},                     //
		{"quotient", graph.S32, graph.S32, 40000, graph.S32},            // too large
		{"left_shift", graph.U32, graph.U64, 7, graph.S16},              //
		{"divide", graph.F32, graph.F32, 0x3ff00000, graph.F32},         //
		{"divide", graph.F64, graph.F64, 0x3ff0000000000001, graph.F64}, //
		{"divide", graph.F16, graph.F64, 0x3ff0000000000001, graph.F64}, //
		{"add", graph.F16, graph.F64, 0x8000000000000000, graph.F16},    // -0
		{"add", graph.F16, graph.S64, ^uint64(0) - 2047, graph.F16},     // -2048
		{"add", graph.F16, graph.S64, ^uint64(0) - 2048, graph.S16},     // -2049
		{"add", graph.BF16, graph.S64, 1 << 40, graph.BF16},             //
		{"add", graph.S8, graph.S32, 0xffffff80, graph.S16},             //
	} {
		typ, bits := NarrowValue(c.op, c.out, c.typ, c.bits)
		if typ != c.want {
			t.Errorf("%s -> %v of %v %#x: took %v, want %v", c.op, c.out, c.typ, c.bits, typ, c.want)
		}
		if numberOf(bits, typ).cmp(numberOf(c.bits, c.typ)) != 0 {
			t.Errorf("%s of %v %#x: became another number, %v %#x", c.op, c.typ, c.bits, typ, bits)
		}
	}
}
