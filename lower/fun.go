package lower

import (
	"nxvk/graph"
	"nxvk/shaders"
)

// identities of scalars: operations that do nothing to one element.
var identities = map[graph.Op]bool{
	graph.OpReshape: true, graph.OpSqueeze: true, graph.OpBroadcast: true, graph.OpTranspose: true, graph.OpReverse: true,
	graph.OpSum: true, graph.OpProduct: true, graph.OpReduceMax: true, graph.OpReduceMin: true, graph.OpAsType: true,
}

// function is the function of a reduction as a region of scalars, whose first operands are the function's.
func (l *lowering) function(n *graph.Node) (*shaders.Region, error) {
	g, err := expand(n.Attrs.Fun, l.t)
	if err != nil {
		return nil, err
	}
	r := &shaders.Region{Shape: graph.Shape{}}
	for _, p := range g.Params {
		r.In = append(r.In, shaders.Leaf{Operand: shaders.Operand{Spec: p.Spec}})
	}
	// Constants stand among the operands, one for each use, since an operation may want its own narrow form of it.
	// Until all are known, node i is the value -1-i.
	number := func(ref graph.Ref, op graph.Op, out graph.Type) int {
		if int(ref) < len(g.Params) {
			return int(ref)
		}
		c := &g.Nodes[int(ref)-len(g.Params)]
		if c.Op != graph.OpConstant {
			return -1 - (int(ref) - len(g.Params))
		}
		leaf := shaders.Leaf{Operand: shaders.Operand{Spec: graph.Spec{Type: c.Type, Shape: graph.Shape{}}}, Const: true, Bits: c.Attrs.Value, Upper: c.Attrs.Upper}
		leaf.Type, leaf.Bits = NarrowValue(op, out, leaf.Type, leaf.Bits)
		r.In = append(r.In, leaf)
		return len(r.In) - 1
	}
	at := make([]int, len(g.Nodes)) // the region's node of each node
	for i := range g.Nodes {
		x := &g.Nodes[i]
		op := x.Op
		switch {
		case op == graph.OpConstant:
			continue
		case identities[op]:
			op = graph.OpAsType
		case !shaders.ElementwiseOp(op):
			return nil, &shaders.Unsupported{Op: n.Op, Type: n.Type, Why: "its function takes " + string(op)}
		}
		node := shaders.RegionNode{Op: op, Type: x.Type}
		for _, ref := range x.In {
			node.In = append(node.In, number(ref, op, x.Type))
		}
		at[i] = len(r.Nodes)
		r.Nodes = append(r.Nodes, node)
	}
	out := number(g.Outs[0], "", graph.Invalid)
	settle := func(v int) int {
		if v < 0 {
			return len(r.In) + at[-1-v]
		}
		return v
	}
	for i := range r.Nodes {
		for k, v := range r.Nodes[i].In {
			r.Nodes[i].In[k] = settle(v)
		}
	}
	r.Outs = []int{settle(out)}
	return r, nil
}

// reduction plans reduce and window_reduce.
func (l *lowering) reduction(n *graph.Node, in []place) (*shaders.Plan, error) {
	f, err := l.function(n)
	if err != nil {
		return nil, err
	}
	x, init := l.operand(&in[0]), l.leaf(&in[1], "", 0)
	if n.Op == graph.OpReduce {
		return shaders.ReduceFun(l.t, x, init, n.Spec, n.Attrs.Axes, f)
	}
	return shaders.WindowReduce(l.t, x, init, n.Spec, &n.Attrs, f)
}
