package host

import "nxvk/graph"

func init() {
	register(one(joined), graph.OpComplex)
	register(one(relabeled), graph.OpParts, graph.OpFromParts)
}

// joined is the complex tensor whose parts are two real ones.
func joined(n *graph.Node, in []Tensor) Tensor {
	out := New(n.Spec)
	for which, x := range in {
		part := sourceOf(as(graph.Spec{Type: n.Type.Part(), Shape: n.Shape}, x))
		to := graph.Layout{Offset: which, Strides: n.Shape.Strides()}
		for i := range to.Strides {
			to.Strides[i] *= 2
		}
		scatterInto(out.Data, to, n.Shape, &part)
	}
	return out
}

// relabeled sees the bytes of complex numbers as those of their parts, or the other way round.
func relabeled(n *graph.Node, in []Tensor) Tensor {
	x := as(in[0].Spec, in[0])
	return Tensor{Spec: n.Spec, Layout: graph.Contiguous(n.Shape), Data: x.Data}
}
