package lower

import (
	"math/rand"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
)

// randomFun draws a function of two scalars of type t, of operations that are exact.
func randomFun(r *rand.Rand, t graph.Type) *graph.Graph {
	scalar := func(t graph.Type) graph.Spec { return graph.Spec{Type: t, Shape: graph.Shape{}} }
	g := &graph.Graph{Params: []graph.Param{{Spec: scalar(t)}, {Spec: scalar(t)}}}
	add := func(n graph.Node) graph.Ref {
		g.Nodes = append(g.Nodes, n)
		return graph.Ref(len(g.Params) + len(g.Nodes) - 1)
	}
	for range r.Intn(2) {
		ty := graph.Types[r.Intn(len(graph.Types))]
		if ty.Complex() {
			ty = t
		}
		add(graph.Node{Op: graph.OpConstant, Spec: scalar(ty), Attrs: graph.Attrs{Value: moderate(r, scalar(ty)).bits[0]}})
	}
	ops := []graph.Op{"add", "subtract", "multiply", "max", "min", "select", "equal", "greater", "logical_not", "as_type", "reshape", "negate"}
	for range 1 + r.Intn(6) {
		n := len(g.Params) + len(g.Nodes)
		a, b := graph.Ref(r.Intn(n)), graph.Ref(max(0, n-1-r.Intn(3)))
		node := graph.Node{Op: ops[r.Intn(len(ops))], In: []graph.Ref{a, b}}
		node.Spec = scalar(mergeTypes(g.SpecOf(a).Type, g.SpecOf(b).Type))
		switch node.Op {
		case "equal", "greater":
			node.Type = graph.U8
		case "select":
			node.In = []graph.Ref{a, a, b}
		case "logical_not":
			node.In, node.Type = node.In[1:], graph.U8
		case "as_type":
			node.In, node.Type = node.In[1:], t
		case "reshape", "negate":
			node.In, node.Spec = node.In[1:], g.SpecOf(b)
		}
		add(node)
	}
	out := graph.Ref(len(g.Params) + len(g.Nodes) - 1)
	if g.SpecOf(out).Type != t {
		out = add(graph.Node{Op: graph.OpAsType, In: []graph.Ref{out}, Spec: scalar(t)})
	}
	// The function depends on both: their order shows.
	if r.Intn(3) > 0 {
		out = add(graph.Node{Op: "subtract", In: []graph.Ref{out, graph.Ref(r.Intn(2))}, Spec: scalar(t)})
	}
	g.Outs = []graph.Ref{out}
	return g
}

// complete reports whether a device has every type.
func complete(t kernel.Target) bool { return t.F64 && t.I64 && t.Mem8 && t.Mem16 }

// testFunctions holds reduce and window_reduce with random functions to the host, bit for bit.
func testFunctions(t *testing.T, m machine, seed int64, trials int) {
	r := rand.New(rand.NewSource(seed))
	for range trials {
		for _, ty := range graph.Types {
			if ty.Complex() {
				continue
			}
			rank := r.Intn(7)
			x := moderate(r, graph.Spec{Type: ty, Shape: randomShape(r, rank, min(mostOf(rank), 8))})
			if r.Intn(3) == 0 {
				x = random(r, x.Spec)
			}
			n := graph.Node{Op: graph.OpReduce, In: []graph.Ref{0, 1}, Spec: graph.Spec{Type: ty, Shape: graph.Shape{}}}
			n.Attrs.Keep = r.Intn(2) == 0
			for k, d := range x.Shape {
				switch reduced := r.Intn(2) == 0; {
				case !reduced:
					n.Shape = append(n.Shape, d)
				case n.Attrs.Keep:
					n.Shape = append(n.Shape, 1)
					fallthrough
				default:
					n.Attrs.Axes = append(n.Attrs.Axes, k)
				}
			}
			if r.Intn(2) == 0 {
				at, outs := randomWindows(r, x.Shape, true)
				n = graph.Node{Op: graph.OpWindowReduce, In: n.In, Spec: graph.Spec{Type: ty, Shape: outs}, Attrs: at}
			}
			n.Attrs.Fun = randomFun(r, ty)
			init := moderate(r, graph.Spec{Type: ty, Shape: graph.Shape{}})
			g := &graph.Graph{Params: []graph.Param{{Spec: x.Spec}, {Spec: init.Spec}}, Nodes: []graph.Node{n}, Outs: []graph.Ref{2}}
			in := []laidOut{layOut(x, layoutOf(layoutKinds[r.Intn(len(layoutKinds))], x.Shape)), layOut(init, graph.Contiguous(init.Shape))}
			want := hostEval(t, g, in)
			in[1].value = r.Intn(2) == 0
			agree(t, g, runGraph(t, m, g, in), want)
			if p, _ := Lower(g, m.Target); len(p.HostOps()) > 0 && complete(m.Target) {
				t.Fatalf("runs on the host\n%v", g)
			}
		}
	}
}

func TestFunctions(t *testing.T) {
	for name, target := range testTargets {
		t.Run(name, func(t *testing.T) { testFunctions(t, interpreted(target), 1, 20) })
	}
}

func TestFunctionsOnDevice(t *testing.T) {
	m := onDevice(t)
	testFunctions(t, m, 2, 3)
	m.Target.Class = kernel.Discrete
	testFunctions(t, m, 3, 2)
}
