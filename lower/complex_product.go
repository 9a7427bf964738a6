package lower

import (
	"nxvk/graph"
	"nxvk/shaders"
)

// expandComplexTruth makes all and any of a complex tensor those of whether its elements differ from 0.
func expandComplexTruth(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error) {
	w := &walker{x: x}
	s := x.g.SpecOf(in[0])
	zero := w.add(graph.OpConstant, graph.Spec{Type: s.Type, Shape: graph.Shape{}}, graph.Attrs{})
	truth := w.add("not_equal", graph.Spec{Type: graph.U8, Shape: s.Shape}, graph.Attrs{}, in[0], zero)
	return []graph.Ref{w.add(n.Op, n.Spec, n.Attrs, truth)}, w.err
}

// factors reports whether n is a complex product that the device can form: in f64, whatever the type, since in f32 the
// roundings of many products add up.
func (x *expansion) factors(n *graph.Node) bool {
	return n.Type.Complex() && shaders.Has(x.t, graph.C128)
}

// expandComplexProduct multiplies the halves of the reduced axes element by element, then the halves of that, and so on:
// the order is fixed by the shape.
func expandComplexProduct(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error) {
	if !x.factors(n) {
		return nil, nil
	}
	w := &walker{x: x}
	s := x.g.SpecOf(in[0])
	var perm []int
	var shape graph.Shape
	count := 1
	reduced := make([]bool, len(s.Shape))
	for _, a := range n.Attrs.Axes {
		reduced[a] = true
		count *= s.Shape[a]
	}
	for a, d := range s.Shape {
		if !reduced[a] {
			perm, shape = append(perm, a), append(shape, d)
		}
	}
	r := w.transpose(in[0], append(perm, n.Attrs.Axes...))
	r = w.add(graph.OpReshape, graph.Spec{Type: s.Type, Shape: append(shape, count)}, graph.Attrs{}, r)
	axis, t := len(shape), graph.C128
	rest, some := graph.Ref(0), false // what odd counts leave over
	for count > 1 {
		half := count / 2
		if count%2 == 1 {
			last := w.cut(r, axis, count-1, 1, 1)
			if some {
				last = w.times(t, rest, last)
			}
			rest, some = last, true
		}
		r = w.times(t, w.cut(r, axis, 0, half, 1), w.cut(r, axis, half, half, 1))
		count = half
	}
	if some {
		r = w.times(t, r, rest)
	}
	r = w.timesOne(t, r)
	r = w.add(graph.OpReshape, graph.Spec{Type: w.spec(r).Type, Shape: n.Shape}, graph.Attrs{}, r)
	return []graph.Ref{w.cast(n.Type, r)}, w.err
}

// expandComplexWindowProduct multiplies along one axis after the other: products of windows of 1, 2, 4 … elements are
// formed from those before, and of these the window's is made.
func expandComplexWindowProduct(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error) {
	if !x.factors(n) {
		return nil, nil
	}
	w, at, t := &walker{x: x}, &n.Attrs, graph.C128
	r := w.cast(n.Type, in[0])
	shape := append(graph.Shape{}, w.spec(r).Shape...)
	padded := false
	for i, p := range at.Pad {
		shape[i] += p.Lo + p.Hi
		padded = padded || p != graph.PadDim{}
	}
	if padded {
		r = w.add(graph.OpPad, graph.Spec{Type: n.Type, Shape: shape}, graph.Attrs{Pad: at.Pad}, r, w.one(n.Type))
	}
	for axis := range n.Shape {
		reach := (n.Shape[axis]-1)*at.Strides[axis] + 1 // of the windows' first elements
		powers, done, some := r, 0, false
		for bit := 1; bit <= at.Window[axis] && w.err == nil; bit *= 2 {
			if at.Window[axis]&bit != 0 {
				piece := w.cut(powers, axis, done*at.Dilation[axis], reach, at.Strides[axis])
				if some {
					piece = w.times(t, r, piece)
				}
				r, some = piece, true
				done += bit
			}
			if 2*bit <= at.Window[axis] && w.err == nil {
				step := bit * at.Dilation[axis]
				length := w.spec(powers).Shape[axis] - step
				powers = w.times(t, w.cut(powers, axis, 0, length, 1), w.cut(powers, axis, step, length, 1))
			}
		}
	}
	return []graph.Ref{w.cast(n.Type, w.timesOne(t, r))}, w.err
}

// one is the number 1 of complex type t.
func (w *walker) one(t graph.Type) graph.Ref {
	v := graph.ConvertValue(graph.Real(1), graph.U8, t)
	return w.add(graph.OpConstant, graph.Spec{Type: t, Shape: graph.Shape{}}, graph.Attrs{Value: v.Lo, Upper: v.Hi})
}

// timesOne is 1·r, which is not r where a part is infinite: Nx's products start from 1.
func (w *walker) timesOne(t graph.Type, r graph.Ref) graph.Ref {
	return w.add("multiply", graph.Spec{Type: t, Shape: w.spec(r).Shape}, graph.Attrs{}, w.one(t), r)
}

func (w *walker) cast(t graph.Type, r graph.Ref) graph.Ref {
	return w.do(func() (graph.Ref, error) { return w.x.cast(t, r) })
}

// times is a·b, of one shape.
func (w *walker) times(t graph.Type, a, b graph.Ref) graph.Ref {
	return w.add("multiply", graph.Spec{Type: t, Shape: w.spec(a).Shape}, graph.Attrs{}, a, b)
}

// cut is length elements of r along an axis, every stride-th of them: a view.
func (w *walker) cut(r graph.Ref, axis, from, length, stride int) graph.Ref {
	s := w.spec(r)
	at := graph.Attrs{Lengths: append([]int{}, s.Shape...), Strides: make([]int, len(s.Shape))}
	in := []graph.Ref{r}
	shape := append(graph.Shape{}, s.Shape...)
	for i := range s.Shape {
		start := 0
		at.Strides[i] = 1
		if i == axis {
			start, at.Lengths[i], at.Strides[i], shape[i] = from, length, stride, (length+stride-1)/stride
		}
		in = append(in, w.add(graph.OpConstant, graph.Spec{Type: graph.S64, Shape: graph.Shape{}}, graph.Attrs{Value: uint64(start)}))
	}
	return w.add(graph.OpSlice, graph.Spec{Type: s.Type, Shape: shape}, at, in...)
}
