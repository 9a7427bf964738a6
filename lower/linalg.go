package lower

import (
	"nxvk/graph"
	"nxvk/kernel"
	"nxvk/shaders"
)

func init() {
	for _, op := range shaders.LinalgOps {
		preferences[op] = preferHostLinalg
		composites[op] = (*lowering).linalg
	}
}

// preferHostLinalg reports whether matrices go to the processor though kernels could take them.
func preferHostLinalg(n *graph.Node, in []graph.Spec, t kernel.Target) bool {
	if n.Op == graph.OpCholesky && blockedCholesky(n, in[0], t) {
		return false
	}
	return !shaders.LinalgPays(t, n, in[0].Shape)
}

// linalg brings the operands to the type that the operation computes in, row-major, and its results to theirs.
func (l *lowering) linalg(n *graph.Node, in []place) ([]place, error) {
	t, err := computed(n, in)
	if err != nil {
		return nil, err
	}
	shapes := make([]graph.Shape, len(in))
	for k := range in {
		shapes[k] = in[k].spec.Shape
		if in[k], err = l.dense(in[k], t); err != nil {
			return nil, err
		}
	}
	plan, err := shaders.Linalg(l.t, n, t, shapes)
	if err != nil {
		return nil, err
	}
	specs := append([]graph.Spec{n.Spec}, n.More...)
	results := make([]place, len(specs))
	for i, s := range specs {
		results[i] = l.result(graph.Spec{Type: t, Shape: s.Shape})
	}
	l.emit(n.Op, plan, in, results...)
	for i, s := range specs {
		if results[i], err = l.dense(results[i], s.Type); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// computed is the type that kernels compute an operation in, F32 or F64.
func computed(n *graph.Node, in []place) (graph.Type, error) {
	t := graph.F32
	for k := range in {
		switch x := in[k].spec.Type; {
		case x.Complex():
			return t, &shaders.Unsupported{Op: n.Op, Type: x, Why: "kernels take real matrices"}
		case x == graph.F64:
			t = graph.F64
		case x.Int() && n.Op == graph.OpTriangularSolve, x.Int() && n.Op == graph.OpDeterminant && in[k].spec.Shape[len(in[k].spec.Shape)-1] <= 3:
			t = graph.F64 // integers are exact there
		}
	}
	if n.Op == graph.OpSolve && t == graph.F64 && in[0].spec.Type != graph.F64 {
		// The matrix is factored in f32, and the system solved in f64.
		return t, &shaders.Unsupported{Op: n.Op, Type: t, Why: "kernels take operands of one type"}
	}
	return t, nil
}

// dense is p with elements of type t, row-major from the start of its buffer.
func (l *lowering) dense(p place, t graph.Type) (place, error) {
	if p.tensor() && p.spec.Type == t && p.layout.Offset == 0 && p.layout.IsContiguous(p.spec.Shape) {
		return p, nil
	}
	n := graph.Node{Op: graph.OpAsType, Spec: graph.Spec{Type: t, Shape: p.spec.Shape}}
	out, err := l.compute(&n, []place{p})
	if err != nil {
		return p, wrap(&n, err)
	}
	return out[0], nil
}
