package lower

import (
	"math/rand"
	"strings"
	"testing"

	"nxvk/graph"
	"nxvk/host"
	"nxvk/kernel"
)

// hostEval evaluates g on the processor alone.
func hostEval(t *testing.T, g *graph.Graph, in []laidOut) []tensor {
	t.Helper()
	xs := make([]host.Tensor, len(in))
	for i, x := range in {
		xs[i] = host.Tensor{Spec: x.Spec, Layout: x.layout, Data: x.buf}
	}
	out, err := host.Eval(g, xs)
	if err != nil {
		t.Fatalf("%v\n%v", err, g)
	}
	var ts []tensor
	for _, o := range out {
		x := tensor{Spec: o.Spec, bits: make([]uint64, len(o.Data)/o.Type.Part().Size())}
		for i := range x.bits {
			x.bits[i] = get(o.Data, o.Type.Part(), i)
		}
		ts = append(ts, x)
	}
	return ts
}

func agree(t *testing.T, g *graph.Graph, got, want []tensor) {
	t.Helper()
	for k := range want {
		for i, w := range want[k].bits {
			b, ty := got[k].bits[i], want[k].Type
			if b != w && !(ty.Float() && nanBits(b, ty) && nanBits(w, ty)) {
				t.Fatalf("result %d, element %d of %v: %#x, want %#x\n%v", k, i, want[k].Spec, b, w, g)
			}
		}
	}
}

func nanBits(b uint64, t graph.Type) bool { f := graph.ToFloat(b, t); return f != f }

// exact are operations that device and host agree on to the bit.
var exact = []graph.Op{"add", "subtract", "multiply", "divide", "min", "max", "negate", "abs", "as_type", "transpose", "reverse", "reshape", "concatenate", "broadcast", "reduce_max", "select", "equal"}

// randomGraph draws a graph of exact operations over tensors of the given types.
func randomGraph(r *rand.Rand, types []graph.Type, nodes int) (*graph.Graph, []laidOut) {
	g := &graph.Graph{}
	var in []laidOut
	for range 1 + r.Intn(3) {
		s := make(graph.Shape, r.Intn(4))
		for i := range s {
			s[i] = 1 + r.Intn(4)
		}
		x := layOut(random(r, graph.Spec{Type: types[r.Intn(len(types))], Shape: s}), layoutOf(layoutKinds[r.Intn(len(layoutKinds))], s))
		in = append(in, x)
		g.Params = append(g.Params, graph.Param{Spec: x.Spec})
	}
	for len(g.Nodes) < nodes {
		n := len(g.Params) + len(g.Nodes)
		a, b := graph.Ref(r.Intn(n)), graph.Ref(r.Intn(n))
		x, y := g.SpecOf(a), g.SpecOf(b)
		node := graph.Node{Op: exact[r.Intn(len(exact))], In: []graph.Ref{a}, Spec: x}
		rank := len(x.Shape)
		switch node.Op {
		case "as_type":
			node.Type = types[r.Intn(len(types))]
		case "transpose":
			node.Attrs.Axes = r.Perm(rank)
			node.Shape = nil
			for _, p := range node.Attrs.Axes {
				node.Shape = append(node.Shape, x.Shape[p])
			}
		case "reverse", "reduce_max":
			if rank == 0 {
				continue
			}
			node.Attrs.Axes = []int{r.Intn(rank)}
			if node.Op == "reduce_max" {
				node.Attrs.Keep = true
				node.Shape = append(graph.Shape{}, x.Shape...)
				node.Shape[node.Attrs.Axes[0]] = 1
			}
		case "reshape":
			node.Shape = graph.Shape{x.Shape.Size()}
		case "concatenate":
			if rank == 0 || x.Shape.Size() > 100 {
				continue
			}
			node.In, node.Attrs.Axis = []graph.Ref{a, a}, r.Intn(rank)
			node.Shape = append(graph.Shape{}, x.Shape...)
			node.Shape[node.Attrs.Axis] *= 2
		case "broadcast":
			node.Shape = append(graph.Shape{2}, x.Shape...)
			for i := range x.Shape {
				node.Attrs.Axes = append(node.Attrs.Axes, i+1)
			}
			if node.Shape.Size() > 200 || len(node.Shape) > 6 {
				continue
			}
		case "negate", "abs":
		default:
			s, ok := graph.Broadcast(x.Shape, y.Shape)
			if !ok || s.Size() > 200 {
				continue
			}
			node.Spec, node.In = graph.Spec{Type: mergeTypes(x.Type, y.Type), Shape: s}, []graph.Ref{a, b}
			switch {
			case node.Op == "divide" && !node.Type.Float():
				node.Type = graph.F32
			case node.Op == "equal":
				node.Type = graph.U8
			case node.Op == "select":
				node.In = []graph.Ref{a, a, b}
			}
		}
		g.Nodes = append(g.Nodes, node)
	}
	for range 1 + r.Intn(2) {
		g.Outs = append(g.Outs, graph.Ref(len(g.Params)+r.Intn(nodes)))
	}
	g.Outs = append(g.Outs, graph.Ref(len(g.Params)+nodes-1))
	return g, in
}

// Random graphs agree with the processor's own evaluation: all on kernels, with what lacks a type on the processor, and
// with every step there.
func TestHostAgrees(t *testing.T) {
	all := []graph.Type{graph.U8, graph.S16, graph.S32, graph.U64, graph.F16, graph.BF16, graph.F32, graph.F64}
	// Where f64 is missing, the device's own f32 holds these.
	small := []graph.Type{graph.U8, graph.S16, graph.F16, graph.BF16, graph.F32, graph.F64}
	lacking := testTargets["cpu"]
	lacking.F64, lacking.I64 = false, false
	mixed := 0
	for seed := range int64(200) {
		r := rand.New(rand.NewSource(seed))
		target, types := testTargets["cpu"], all
		if seed%2 == 1 {
			target, types = lacking, small
		}
		g, in := randomGraph(r, types, 1+r.Intn(12))
		want := hostEval(t, g, in)
		agree(t, g, runGraph(t, interpreted(target), g, in), want)
		p, _ := Lower(g, target)
		if n := len(p.HostOps()); n > 0 && n < len(p.Steps) {
			mixed++
		}
		p, err := LowerToHost(g, lacking)
		if err == nil {
			err = Check(p)
		}
		if err != nil || len(p.Kernels) > 0 {
			t.Fatalf("%v\n%v%v", err, g, p)
		}
		out, err := execute(t, interpreted(lacking), p, in)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, g, out, want)
	}
	if mixed < 5 {
		t.Errorf("only %d programs have steps of both kinds", mixed)
	}
}

// hostProgram has a step of the host between two of the device, and shares memory.
func hostProgram(t *testing.T) *Program {
	s := graph.Spec{Type: graph.F32, Shape: graph.Shape{100}}
	wide := graph.Spec{Type: graph.F64, Shape: s.Shape}
	g := &graph.Graph{Params: []graph.Param{{Spec: s}, {Spec: graph.Spec{Type: graph.F64, Shape: graph.Shape{}}, ByValue: true}}, Nodes: []graph.Node{
		{Op: "negate", In: []graph.Ref{0}, Spec: s},
		{Op: "as_type", In: []graph.Ref{2}, Spec: wide},
		{Op: "add", In: []graph.Ref{3, 1}, Spec: wide},
		{Op: "as_type", In: []graph.Ref{4}, Spec: s},
		{Op: "abs", In: []graph.Ref{5}, Spec: s},
	}, Outs: []graph.Ref{6}}
	target := testTargets["cpu"]
	target.F64 = false
	p, err := Lower(g, target)
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(p); err != nil {
		t.Fatalf("%v\n%v", err, p)
	}
	return p
}

func TestHostStepsAreChecked(t *testing.T) {
	for name, spoil := range map[string]func(*Program){
		"no barrier":             func(p *Program) { p.Steps[2].Barrier = false },
		"no access to a result":  func(p *Program) { s := &p.Steps[2]; s.Access = s.Access[:len(s.Access)-1] },
		"no access to operands":  func(p *Program) { s := &p.Steps[2]; s.Access = s.Access[1:] },
		"a buffer that is none":  func(p *Program) { p.Steps[1].Host.In[0].Buf = 99 },
		"a parameter by address": func(p *Program) { p.Steps[2].Host.In[1].Param = 0 },
		"a layout out of bounds": func(p *Program) { p.Steps[1].Host.In[0].Layout.Offset = 1 },
		"another node":           func(p *Program) { p.Steps[1].Host.Node.Shape = graph.Shape{99} },
		"no result":              func(p *Program) { p.Steps[1].Host.Out = nil },
	} {
		p := hostProgram(t)
		spoil(p)
		if Check(p) == nil {
			t.Errorf("%s: not refused\n%v", name, p)
		}
	}
	text := hostProgram(t).String()
	if !strings.Contains(text, "host add (f64{100}=&") || !strings.Contains(text, "f64{}=param 1") {
		t.Errorf("the program is printed as\n%s", text)
	}
}

// An operation that the device can run goes to the host where that is preferred, alone.
func TestPreferredHost(t *testing.T) {
	s := graph.Spec{Type: graph.F32, Shape: graph.Shape{4, 4}}
	large := graph.Spec{Type: graph.F32, Shape: graph.Shape{8, 8}}
	preferences["sum"] = func(n *graph.Node, in []graph.Spec, _ kernel.Target) bool { return in[0].Shape.Size() > 20 }
	defer delete(preferences, "sum")
	for spec, want := range map[*graph.Spec]Tier{&s: Device, &large: Host} {
		n := graph.Node{Op: "sum", Spec: graph.Spec{Type: graph.F32, Shape: graph.Shape{}}, Attrs: graph.Attrs{Axes: []int{0, 1}}}
		if tier := TierOf(testTargets["cpu"], n, []graph.Param{{Spec: *spec}}); tier != want {
			t.Errorf("%v runs on %v, want %v", *spec, tier, want)
		}
	}
}
