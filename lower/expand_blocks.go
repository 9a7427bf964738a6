package lower

import "nxvk/graph"

// chain adds nodes one after another; after the first error it adds nothing.
type chain struct {
	*expansion
	err error
}

func (c *chain) node(op graph.Op, s graph.Spec, at graph.Attrs, in ...graph.Ref) graph.Ref {
	if c.err != nil {
		return 0
	}
	var r graph.Ref
	r, c.err = c.add(op, s, at, in...)
	return r
}

// number is a scalar as Nx makes one of a float literal: an f32, whatever it meets.
func (c *chain) number(x float64) graph.Ref {
	return c.node(graph.OpConstant, graph.Spec{Type: graph.F32, Shape: graph.Shape{}}, graph.Attrs{Value: graph.FromFloat(x, graph.F32)})
}

func (c *chain) typeOf(r graph.Ref) graph.Type { return c.g.SpecOf(r).Type }

// expandFFT2 transforms one axis after the other.
func expandFFT2(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error) {
	op := graph.OpFFT
	if n.Op == graph.OpIFFT2 {
		op = graph.OpIFFT
	}
	c := chain{expansion: x}
	at := in[0]
	shape := append(graph.Shape(nil), x.g.SpecOf(at).Shape...)
	for i, a := range n.Attrs.Axes {
		shape = append(graph.Shape(nil), shape...)
		shape[a] = n.Attrs.Lengths[i]
		at = c.node(op, graph.Spec{Type: n.Type, Shape: shape}, graph.Attrs{Axis: a, Length: shape[a], Eps: n.Attrs.Eps}, at)
	}
	return []graph.Ref{at}, c.err
}

func expandPhase(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error) {
	c := chain{expansion: x}
	re, im := c.node("real", n.Spec, graph.Attrs{}, in[0]), c.node("imag", n.Spec, graph.Attrs{}, in[0])
	return []graph.Ref{c.node("atan2", n.Spec, graph.Attrs{}, im, re)}, c.err
}

// expandAllClose writes all_close as Nx defines it, with its types: |a-b| ≤ atol + rtol·|b|, where integers
// take |b| as f64; infinities must be equal, and NaNs may be.
func expandAllClose(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error) {
	c := chain{expansion: x}
	a, b := in[0], in[1]
	as, bs := x.g.SpecOf(a), x.g.SpecOf(b)
	shape, _ := graph.Broadcast(as.Shape, bs.Shape)
	of := func(t graph.Type, s graph.Shape) graph.Spec { return graph.Spec{Type: t, Shape: s} }
	each := func(op graph.Op, t graph.Type, in ...graph.Ref) graph.Ref {
		return c.node(op, of(t, shape), graph.Attrs{}, in...)
	}
	both := graph.MergeTypes(as.Type, bs.Type)
	ints := both.Int()
	magnitude := b
	if ints {
		magnitude = c.node(graph.OpAsType, of(graph.F64, bs.Shape), graph.Attrs{}, b)
	}
	if c.err != nil {
		return nil, c.err
	}
	limit := c.typeOf(magnitude).Part() // of rtol·|b|
	magnitude = c.node("abs", of(limit, bs.Shape), graph.Attrs{}, magnitude)
	if limit.Int() {
		limit = graph.F32
	}
	bound := c.node("multiply", of(limit, bs.Shape), graph.Attrs{}, c.number(n.Attrs.RTol), magnitude)
	bound = c.node("add", of(limit, bs.Shape), graph.Attrs{}, c.number(n.Attrs.ATol), bound)
	close := each("less_equal", graph.U8, each("abs", both.Part(), each("subtract", both, a, b)), bound)
	if !ints {
		flag := func(op graph.Op, r graph.Ref, s graph.Shape) graph.Ref {
			return c.node(op, of(graph.U8, s), graph.Attrs{}, r)
		}
		infinite := each("logical_or", graph.U8, flag("is_infinity", a, as.Shape), flag("is_infinity", b, bs.Shape))
		close = each(graph.OpSelect, graph.U8, infinite, each("equal", graph.U8, a, b), close)
		if n.Attrs.EqualNaN {
			nans := each("logical_and", graph.U8, flag("is_nan", a, as.Shape), flag("is_nan", b, bs.Shape))
			close = each("logical_or", graph.U8, nans, close)
		}
	}
	axes := make([]int, len(shape))
	for i := range axes {
		axes[i] = i
	}
	return []graph.Ref{c.node(graph.OpAll, n.Spec, graph.Attrs{Axes: axes}, close)}, c.err
}
