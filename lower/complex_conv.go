package lower

import "nxvk/graph"

// expandComplexConv writes a convolution as a real one of twice as many channels on both sides: each input channel is two,
// its parts, and the kernel holds for each pair of channels the matrix by which it acts on them.
func expandComplexConv(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error) {
	if !n.Type.Complex() {
		return nil, nil
	}
	c := *n.Attrs.Conv
	w := &walker{x: x}
	rank := len(n.Shape)
	input, kernel := w.transpose(in[0], c.InputPerm), w.transpose(in[1], c.KernelPerm)

	parts := w.do(func() (graph.Ref, error) { return x.castParts(input, n.Type) })
	channels := w.merge(parts, 1, rank)

	// matrices[o, i, …, p, q] to [o, q, i, p, …].
	matrices := w.do(func() (graph.Ref, error) { return x.acting(kernel, n.Type) })
	perm := []int{0, rank + 1, 1, rank}
	for i := 2; i < rank; i++ {
		perm = append(perm, i)
	}
	matrices = w.transpose(matrices, perm)
	filters := w.merge(w.merge(matrices, 0, 1), 1, 2)

	identity := make([]int, rank)
	for i := range identity {
		identity[i] = i
	}
	plain := make(graph.Shape, rank) // of the result: batch, channels, spatial axes
	back := make([]int, rank)
	for i, a := range c.OutputPerm {
		plain[i], back[a] = n.Shape[a], i
	}
	twice := append(graph.Shape{}, plain...)
	twice[1] *= 2
	at := n.Attrs
	c.InputPerm, c.KernelPerm, c.OutputPerm = identity, identity, identity
	at.Conv = &c
	r := w.add(graph.OpConv, graph.Spec{Type: n.Type.Part(), Shape: twice}, at, channels, filters)

	split := append(graph.Shape{plain[0], plain[1], 2}, plain[2:]...)
	r = w.add(graph.OpReshape, graph.Spec{Type: n.Type.Part(), Shape: split}, graph.Attrs{}, r)
	last := []int{0, 1}
	for i := 3; i <= rank; i++ {
		last = append(last, i)
	}
	r = w.transpose(r, append(last, 2))
	r = w.add(graph.OpFromParts, graph.Spec{Type: n.Type, Shape: plain}, graph.Attrs{}, r)
	r = w.transpose(r, back)
	return []graph.Ref{r}, w.err
}

// walker adds operations until one fails.
type walker struct {
	x   *expansion
	err error
}

func (w *walker) do(f func() (graph.Ref, error)) graph.Ref {
	if w.err != nil {
		return 0
	}
	r, err := f()
	w.err = err
	return r
}

func (w *walker) add(op graph.Op, s graph.Spec, at graph.Attrs, in ...graph.Ref) graph.Ref {
	return w.do(func() (graph.Ref, error) { return w.x.add(op, s, at, in...) })
}

func (w *walker) spec(r graph.Ref) graph.Spec {
	if w.err != nil {
		return graph.Spec{}
	}
	return w.x.g.SpecOf(r)
}

func (w *walker) transpose(r graph.Ref, perm []int) graph.Ref {
	if w.err != nil {
		return 0
	}
	s := w.spec(r)
	shape := make(graph.Shape, len(perm))
	for i, a := range perm {
		shape[i] = s.Shape[a]
	}
	return w.add(graph.OpTranspose, graph.Spec{Type: s.Type, Shape: shape}, graph.Attrs{Axes: perm}, r)
}

// merge makes one axis of r of axis to and axis from, which moves behind it.
func (w *walker) merge(r graph.Ref, to, from int) graph.Ref {
	if w.err != nil {
		return 0
	}
	s := w.spec(r)
	var perm []int
	var shape graph.Shape
	for i, d := range s.Shape {
		if i == from {
			continue
		}
		perm, shape = append(perm, i), append(shape, d)
		if i == to {
			perm = append(perm, from)
			shape[len(shape)-1] *= s.Shape[from]
		}
	}
	return w.add(graph.OpReshape, graph.Spec{Type: s.Type, Shape: shape}, graph.Attrs{}, w.transpose(r, perm))
}
