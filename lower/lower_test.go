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
