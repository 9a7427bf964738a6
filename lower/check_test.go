package lower

import (
	"math/rand"
	"strings"
	"testing"

	"nxvk/graph"
)

// network is a small training step's worth of nodes: matmul, bias, relu, sums, slices, concatenation.
func network() *graph.Graph {
	f := func(s ...int) graph.Spec { return graph.Spec{Type: graph.F32, Shape: s} }
	return &graph.Graph{
		Params: []graph.Param{{Spec: f(6, 5)}, {Spec: f(5, 7)}, {Spec: f(7)}, {Spec: f(), ByValue: true}},
		Nodes: []graph.Node{
			{Op: graph.OpDot, In: []graph.Ref{0, 1}, Spec: f(6, 7), Attrs: graph.Attrs{ContractA: []int{1}, ContractB: []int{0}}}, // 4
			{Op: "add", In: []graph.Ref{4, 2}, Spec: f(6, 7)},                                                                     // 5
			{Op: "max", In: []graph.Ref{5, 3}, Spec: f(6, 7)},                                                                     // 6
			{Op: graph.OpTranspose, In: []graph.Ref{6}, Spec: f(7, 6), Attrs: graph.Attrs{Axes: []int{1, 0}}},                     // 7
			{Op: graph.OpReshape, In: []graph.Ref{7}, Spec: f(42)},                                                                // 8: a copy
			{Op: graph.OpSum, In: []graph.Ref{6}, Spec: f(7), Attrs: graph.Attrs{Axes: []int{0}}},                                 // 9
			{Op: graph.OpConcat, In: []graph.Ref{8, 9}, Spec: f(49), Attrs: graph.Attrs{Axis: 0}},                                 // 10
			{Op: "exp", In: []graph.Ref{4}, Spec: f(6, 7)},                                                                        // 11: dead
			{Op: "multiply", In: []graph.Ref{10, 10}, Spec: f(49)},                                                                // 12
			{Op: graph.OpReverse, In: []graph.Ref{0}, Spec: f(6, 5), Attrs: graph.Attrs{Axes: []int{0}}},                          // 13: a view
		},
		Outs: []graph.Ref{12, 6, 13},
	}
}

func lowered(t *testing.T) *Program {
	t.Helper()
	g := network()
	if err := graph.Verify(g); err != nil {
		t.Fatal(err)
	}
	p, err := Lower(g, testTargets["discrete"])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCheckBarriers deletes each barrier in turn: the checker must miss every one.
func TestCheckBarriers(t *testing.T) {
	p := lowered(t)
	if err := Check(p); err != nil {
		t.Fatalf("%v\n%v", err, p)
	}
	barriers := 0
	for i := range p.Steps {
		if !p.Steps[i].Barrier {
			continue
		}
		barriers++
		p.Steps[i].Barrier = false
		if err := Check(p); err == nil {
			t.Errorf("without the barrier before step %d nothing is wrong:\n%v", i, p)
		}
		p.Steps[i].Barrier = true
	}
	if barriers < 4 {
		t.Errorf("%d barriers in a chain of at least five dependent steps", barriers)
	}
}

// TestCheckFaults breaks a sound Program in every way that the checker is for.
func TestCheckFaults(t *testing.T) {
	addr := func(s *Step) *Arg {
		for i := range s.Args {
			if s.Args[i].Kind == ArgAddr {
				return &s.Args[i]
			}
		}
		return nil
	}
	written := func(s *Step) int {
		for _, a := range s.Access {
			if a.Write {
				return a.Buf
			}
		}
		return -1
	}
	faults := map[string]func(p *Program){
		"which has":           func(p *Program) { p.Steps[0].Access[0].Hi += 1 << 20 },
		"no access covers":    func(p *Program) { p.Steps[1].Access = p.Steps[1].Access[:1] },
		"aligned":             func(p *Program) { addr(&p.Steps[1]).Offset++ },
		"arguments for":       func(p *Program) { p.Steps[0].Args = p.Steps[0].Args[1:] },
		"an empty grid":       func(p *Program) { p.Steps[0].Grid[1] = 0 },
		"an input":            func(p *Program) { p.Bufs[written(&p.Steps[0])].Kind = BufParam },
		"no step has written": func(p *Program) { p.Steps = p.Steps[1:] },
		"does not outlive":    func(p *Program) { p.Bufs[p.Outs[0].Buf].Kind = BufTemp },
		"lie outside":         func(p *Program) { p.Outs[0].Layout.Offset = 1 },
		"wrong kind":          func(p *Program) { *addr(&p.Steps[0]) = Arg{Kind: ArgImm} },
	}
	for want, break_ := range faults {
		p := lowered(t)
		break_(p)
		if err := Check(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func TestViewsCostNothing(t *testing.T) {
	p := lowered(t)
	if o := p.Outs[2]; p.Bufs[o.Buf].Kind != BufParam || o.Layout.Strides[0] != -5 {
		t.Errorf("a reversed parameter is not a view of it:\n%v", p)
	}
	for _, k := range p.Kernels {
		if strings.HasPrefix(k.Name, "exp") {
			t.Errorf("a dead node was lowered:\n%v", p)
		}
	}
}

// TestNetwork runs the whole graph against each node by itself.
func TestNetwork(t *testing.T) {
	g := network()
	r := rand.New(rand.NewSource(7))
	var in []laidOut
	for _, p := range g.Params {
		x := from(p.Spec, func([]int) uint64 { return graph.FromFloat(float64(r.Intn(17)-8), graph.F32) })
		l := flatOf(x)
		l.value = p.ByValue
		in = append(in, l)
	}
	for _, tg := range testTargets {
		whole := runGraph(t, interpreted(tg), g, in)
		vals := make([]tensor, 0, len(g.Params)+len(g.Nodes))
		for _, x := range in {
			vals = append(vals, x.tensor)
		}
		for _, n := range g.Nodes {
			single := graph.Node{Op: n.Op, Spec: n.Spec, Attrs: n.Attrs}
			var specs []graph.Spec
			var ops []laidOut
			for _, ref := range n.In {
				specs = append(specs, vals[ref].Spec)
				ops = append(ops, flatOf(vals[ref]))
			}
			vals = append(vals, runGraph(t, interpreted(tg), one(single, specs...), ops)[0])
		}
		for i, ref := range g.Outs {
			same(t, "result", whole[i], vals[ref])
		}
	}
}

// TestKernelsAreGeneric lowers one op at many sizes: they share a kernel.
func TestKernelsAreGeneric(t *testing.T) {
	hashes := map[[32]byte]bool{}
	for _, n := range []int{32, 33, 17, 1000, 5} {
		s := graph.Spec{Type: graph.F32, Shape: graph.Shape{n, 10}}
		p, err := Lower(one(graph.Node{Op: "add", Spec: s}, s, graph.Spec{Type: graph.F32, Shape: graph.Shape{10}}), testTargets["cpu"])
		if err != nil {
			t.Fatal(err)
		}
		hashes[p.Kernels[0].Hash()] = true
	}
	if len(hashes) != 1 {
		t.Errorf("%d kernels for one addition at five batch sizes", len(hashes))
	}
}

func TestTier(t *testing.T) {
	small := testTargets["cpu"]
	small.F64 = false
	s := func(ty graph.Type) graph.Param { return graph.Param{Spec: graph.Spec{Type: ty, Shape: graph.Shape{3}}} }
	if tier := TierOf(small, graph.Node{Op: "add", Spec: s(graph.F64).Spec}, []graph.Param{s(graph.F64), s(graph.F64)}); tier != Host {
		t.Errorf("f64 without f64: %v", tier)
	}
	if tier := TierOf(small, graph.Node{Op: "add", Spec: s(graph.F32).Spec}, []graph.Param{s(graph.F32), s(graph.S16)}); tier != Device {
		t.Errorf("f32 + s16: %v", tier)
	}
	// f32 would round the operand first.
	if tier := TierOf(small, graph.Node{Op: "add", Spec: s(graph.F32).Spec}, []graph.Param{s(graph.F32), s(graph.S64)}); tier != Host {
		t.Errorf("f32 + s64: %v", tier)
	}
	value := graph.Param{Spec: graph.Spec{Type: graph.S32}, ByValue: true}
	if tier := TierOf(small, graph.Node{Op: "add", Spec: s(graph.F32).Spec}, []graph.Param{s(graph.F32), value}); tier != Device {
		t.Errorf("f32 + a number: %v", tier)
	}
	// Without 64-bit integers tensors of 8-byte elements are still moved, and starts of slices that come with the call are 64-bit.
	narrow := testTargets["discrete"]
	narrow.F64, narrow.I64 = false, false
	start := graph.Param{Spec: graph.Spec{Type: graph.S64}, ByValue: true}
	slice := graph.Node{Op: graph.OpSlice, Spec: graph.Spec{Type: graph.F32, Shape: graph.Shape{2}}, Attrs: graph.Attrs{Lengths: []int{2}, Strides: []int{1}}}
	if tier := TierOf(narrow, slice, []graph.Param{s(graph.F32), start}); tier != Device {
		t.Errorf("a slice from a 64-bit start: %v", tier)
	}
	reversed := s(graph.S64)
	reversed.Layout = graph.Layout{Offset: 2, Strides: []int{-1}}
	broadcast := graph.Node{Op: graph.OpBroadcast, Spec: graph.Spec{Type: graph.S64, Shape: graph.Shape{2, 3}}, Attrs: graph.Attrs{Axes: []int{1}}}
	if tier := TierOf(narrow, broadcast, []graph.Param{reversed}); tier != Device {
		t.Errorf("a broadcast of s64: %v", tier)
	}
	if tier := TierOf(narrow, graph.Node{Op: "add", Spec: s(graph.S64).Spec}, []graph.Param{s(graph.S64), s(graph.S64)}); tier != Host {
		t.Errorf("s64 without s64: %v", tier)
	}
	large := graph.Param{Spec: graph.Spec{Type: graph.U8, Shape: graph.Shape{1 << 31}}}
	if tier := TierOf(narrow, graph.Node{Op: "negate", Spec: large.Spec}, []graph.Param{large}); tier != Host {
		t.Errorf("2^31 elements without 64-bit indices: %v", tier)
	}
	if tier := TierOf(small, graph.Node{Op: "no_such_op", Spec: s(graph.F32).Spec}, []graph.Param{s(graph.F32)}); tier != None {
		t.Errorf("an unknown op: %v", tier)
	}
}

// TestShare lowers a long chain: its temporaries take turns in a few buffers.
func TestShare(t *testing.T) {
	g := &graph.Graph{Params: []graph.Param{{Spec: f32(50)}}}
	for i := 0; i < 40; i++ {
		g.Nodes = append(g.Nodes, graph.Node{Op: "add", In: []graph.Ref{graph.Ref(i), 0}, Spec: f32(50)})
	}
	g.Outs = []graph.Ref{40}
	x := from(f32(50), func(at []int) uint64 { return graph.FromFloat(float64(at[0]), graph.F32) })
	out := runGraph(t, interpreted(testTargets["cpu"]), g, []laidOut{flatOf(x)})[0]
	same(t, "chain", out, from(f32(50), func(at []int) uint64 { return graph.FromFloat(float64(41*at[0]), graph.F32) }))
	p, err := Lower(g, testTargets["cpu"])
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Bufs) > 6 {
		t.Errorf("%d buffers for a chain of 40 additions:\n%v", len(p.Bufs), p)
	}
}

// TestRandomGraphs runs random programs against the same nodes one by one.
func TestRandomGraphs(t *testing.T) {
	r := rand.New(rand.NewSource(9))
	for round := 0; round < 60; round++ {
		g := &graph.Graph{}
		var in []laidOut
		s := graph.Spec{Type: graph.S32, Shape: graph.Shape{4, 4}}
		for i := 0; i < 3; i++ {
			x := random(r, s)
			g.Params = append(g.Params, graph.Param{Spec: s})
			in = append(in, layOut(x, layoutOf(layoutKinds[r.Intn(len(layoutKinds))], s.Shape)))
		}
		for i := 0; i < 25; i++ {
			ref := func() graph.Ref { return graph.Ref(r.Intn(len(g.Params) + len(g.Nodes))) }
			n := graph.Node{Spec: s, In: []graph.Ref{ref()}}
			switch r.Intn(7) {
			case 0:
				n.Op, n.Attrs.Axes = graph.OpTranspose, []int{1, 0}
			case 1:
				n.Op, n.Attrs.Axes = graph.OpReverse, []int{r.Intn(2)}
			case 2:
				n.Op, n.Attrs = graph.OpPad, graph.Attrs{Pad: []graph.PadDim{{Lo: 1, Hi: -1}, {Lo: -2, Hi: 2}}}
				g.Nodes = append(g.Nodes, graph.Node{Op: graph.OpConstant, Spec: graph.Spec{Type: graph.S32}, Attrs: graph.Attrs{Value: uint64(r.Intn(9))}})
				n.In = append(n.In, graph.Ref(len(g.Params)+len(g.Nodes)-1))
			case 3:
				n.Op = "subtract"
				n.In = append(n.In, ref())
			default:
				n.Op = []graph.Op{"add", "multiply", "bitwise_xor"}[r.Intn(3)]
				n.In = append(n.In, ref())
			}
			for _, ref := range n.In {
				if len(g.SpecOf(ref).Shape) != 2 && n.Op != graph.OpPad {
					n.In = []graph.Ref{0, 1}
					n.Op = "add"
				}
			}
			if n.Op == graph.OpPad && len(g.SpecOf(n.In[0]).Shape) != 2 {
				n.In[0] = 0
			}
			g.Nodes = append(g.Nodes, n)
		}
		last := graph.Ref(len(g.Params) + len(g.Nodes) - 1)
		g.Outs = []graph.Ref{last, last - graph.Ref(r.Intn(5)), graph.Ref(r.Intn(3))}
		whole := runGraph(t, interpreted(testTargets["discrete"]), g, in)
		var vals []tensor
		for _, x := range in {
			vals = append(vals, x.tensor)
		}
		for _, n := range g.Nodes {
			var specs []graph.Spec
			var ops []laidOut
			for _, ref := range n.In {
				specs, ops = append(specs, vals[ref].Spec), append(ops, flatOf(vals[ref]))
			}
			vals = append(vals, runGraph(t, interpreted(testTargets["cpu"]), one(graph.Node{Op: n.Op, Spec: n.Spec, Attrs: n.Attrs}, specs...), ops)[0])
		}
		for i, ref := range g.Outs {
			same(t, g.String(), whole[i], vals[ref])
		}
	}
}
