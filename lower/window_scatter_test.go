package lower

import (
	"math/rand"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
)

// testScatters holds window_scatter_max and window_scatter_min to the host, bit for bit: windows that overlap and that do
// not, ties, NaN, padding that wins, operands of other types.
func testScatters(t *testing.T, m machine, seed int64, trials int) {
	r := rand.New(rand.NewSource(seed))
	hosted := 0
	for range trials {
		for _, ty := range graph.Types {
			if ty.Complex() {
				continue
			}
			rank := r.Intn(7)
			x := moderate(r, graph.Spec{Type: ty, Shape: randomShape(r, rank, mostOf(rank))})
			switch r.Intn(4) {
			case 0:
				x = random(r, x.Spec)
			case 1:
				x = from(x.Spec, func([]int) uint64 { return hard(ty)[r.Intn(2)] }) // ties, of either zero
			}
			at, outs := randomWindows(r, x.Shape, false)
			st, it := ty, ty
			if r.Intn(4) == 0 {
				st = graph.Types[r.Intn(12)]
			}
			if r.Intn(4) == 0 {
				it = graph.Types[r.Intn(12)]
			}
			src := moderate(r, graph.Spec{Type: st, Shape: outs})
			init := moderate(r, graph.Spec{Type: it, Shape: graph.Shape{}})
			if r.Intn(3) > 0 {
				init.bits[0] = 0
			}
			op := []graph.Op{graph.OpWindowScatterMax, graph.OpWindowScatterMin}[r.Intn(2)]
			n := graph.Node{Op: op, In: []graph.Ref{0, 1, 2}, Spec: graph.Spec{Type: mergeTypes(st, it), Shape: x.Shape}, Attrs: at}
			g := &graph.Graph{Params: []graph.Param{{Spec: x.Spec}, {Spec: src.Spec}, {Spec: init.Spec}}, Nodes: []graph.Node{n}, Outs: []graph.Ref{3}}
			spread := layoutOf(layoutKinds[r.Intn(len(layoutKinds))], outs)
			if r.Intn(4) == 0 { // one element for all, as a gradient often is
				src = from(src.Spec, func([]int) uint64 { return src.bits[0] })
				spread = graph.Layout{Strides: make([]int, rank)}
			}
			in := []laidOut{layOut(x, layoutOf(layoutKinds[r.Intn(len(layoutKinds))], x.Shape)),
				layOut(src, spread), layOut(init, graph.Contiguous(init.Shape))}
			want := hostEval(t, g, in)
			in[2].value = r.Intn(2) == 0
			agree(t, g, runGraph(t, m, g, in), want)
			if p, _ := Lower(g, m.Target); len(p.HostOps()) > 0 {
				if hosted++; ty == it && complete(m.Target) {
					t.Fatalf("runs on the host\n%v", g)
				}
			}
		}
	}
	if hosted > trials*3 && complete(m.Target) {
		t.Errorf("%d of %d run on the host", hosted, trials*len(graph.Types))
	}
}

func TestScatters(t *testing.T) {
	for name, target := range testTargets {
		t.Run(name, func(t *testing.T) { testScatters(t, interpreted(target), 1, 20) })
	}
}

func TestScattersOnDevice(t *testing.T) {
	m := onDevice(t)
	testScatters(t, m, 2, 3)
	m.Target.Class = kernel.Discrete
	testScatters(t, m, 3, 2)
}
