package host

import (
	"slices"

	"nxvk/graph"
)

func init() {
	register(gather, graph.OpGather)
	register(take, graph.OpTake)
	register(takeAlong, graph.OpTakeAlongAxis)
	register(indexed, graph.OpIndexedAdd, graph.OpIndexedPut)
}

// indices reads integers that name places of an axis of x. One that does not is an error, as in Nx.BinaryBackend.
func indices(n *graph.Node, idx Tensor, shape graph.Shape, axisOf func(k int) int) ([]int64, error) {
	v := ints(idx)
	for k, i := range v {
		a := axisOf(k)
		if i < 0 || i >= int64(shape[a]) {
			return nil, valueError(n.Op, OutOfRange, "index %v is out of bounds for axis %d in shape %v", bigOf(i, idx.Type == graph.U64), a, shape)
		}
	}
	return v, nil
}

// places are the offsets, in elements of layout l, that the last axis of idx names.
func places(n *graph.Node, idx Tensor, s graph.Shape, l graph.Layout) ([]int, error) {
	axes := n.Attrs.Axes
	depth := len(axes)
	if depth == 0 {
		return make([]int, product(idx.Shape[:len(idx.Shape)-1]...)), nil
	}
	v, err := indices(n, idx, s, func(k int) int { return axes[k%depth] })
	if err != nil {
		return nil, err
	}
	offs := make([]int, len(v)/depth)
	for k, i := range v {
		offs[k/depth] += int(i) * l.Strides[axes[k%depth]]
	}
	return offs, nil
}

// without is a shape and a layout without some axes.
func without(s graph.Shape, l graph.Layout, axes []int) (graph.Shape, graph.Layout) {
	rest, lay := graph.Shape{}, graph.Layout{Offset: l.Offset, Strides: []int{}}
	for a, d := range s {
		if !slices.Contains(axes, a) {
			rest, lay.Strides = append(rest, d), append(lay.Strides, l.Strides[a])
		}
	}
	return rest, lay
}

// gather copies the slice of x at each index.
func gather(n *graph.Node, in []Tensor) ([]Tensor, error) {
	x := in[0]
	offs, err := places(n, in[1], x.Shape, x.Layout)
	if err != nil {
		return nil, err
	}
	rest, l := without(x.Shape, x.Layout, n.Attrs.Axes)
	out, count, size := New(n.Spec), rest.Size(), x.Type.Size()
	v := stridedOf(rest, l)
	base := v.off
	parallel(len(offs), 2*count, func(lo, hi int) {
		w := v
		for k := lo; k < hi; k++ {
			w.off = base + offs[k]
			w.runs(0, count, func(j, off, m int) { copyRun(out.Data, k*count+j, 1, x.Data, off, w.step(), m, size) })
		}
	})
	return []Tensor{out}, nil
}

// take copies the slices of x along an axis that the indices name.
func take(n *graph.Node, in []Tensor) ([]Tensor, error) {
	x, axis := in[0], n.Attrs.Axis
	v, err := indices(n, in[1], x.Shape, func(int) int { return axis })
	if err != nil {
		return nil, err
	}
	out := New(n.Spec)
	inner := product(x.Shape[axis+1:]...)
	// As outer, index, inner: each index moves a slice of the outer axes by the inner ones.
	rest, l := without(x.Shape, x.Layout, []int{axis})
	src, dst := stridedOf(rest, l), graph.Layout{Strides: make([]int, len(rest))}
	for a, k := len(rest)-1, 1; a >= 0; a-- {
		if a == axis-1 {
			k *= len(v)
		}
		dst.Strides[a] = k
		k *= rest[a]
	}
	count := rest.Size()
	parallel(len(v), 3*count, func(lo, hi int) {
		for k := lo; k < hi; k++ {
			to := dst
			to.Offset = k * inner
			s := source{src, x.Type, x.Data}
			s.v.off += int(v[k]) * x.Layout.Strides[axis]
			tv := stridedOf(rest, to)
			tv.runs(0, count, func(j, off, m int) {
				s.v.runs(j, j+m, func(i, soff, c int) {
					copyRun(out.Data, off+i*tv.step(), tv.step(), x.Data, soff, s.v.step(), c, x.Type.Size())
				})
			})
		}
	})
	return []Tensor{out}, nil
}

// takeAlong copies for each index the element of x whose place differs from the index's own along one axis.
func takeAlong(n *graph.Node, in []Tensor) ([]Tensor, error) {
	x, axis := in[0], n.Attrs.Axis
	v, err := indices(n, in[1], x.Shape, func(int) int { return axis })
	if err != nil {
		return nil, err
	}
	out, size := New(n.Spec), x.Type.Size()
	l := graph.Layout{Offset: x.Layout.Offset, Strides: slices.Clone(x.Layout.Strides)}
	l.Strides[axis] = 0
	w := stridedOf(n.Shape, l)
	along := x.Layout.Strides[axis]
	parallel(len(v), 4, func(lo, hi int) {
		w.runs(lo, hi, func(k, off, m int) {
			for i := range m {
				copyRun(out.Data, lo+k+i, 1, x.Data, off+i*w.step()+int(v[lo+k+i])*along, 1, 1, size)
			}
		})
	})
	return []Tensor{out}, nil
}

// indexed adds updates to the slices of x that the indices name, or puts them there: of several the last. What falls on
// one place is summed first, in order, and then added.
func indexed(n *graph.Node, in []Tensor) ([]Tensor, error) {
	x := in[0]
	dense := graph.Contiguous(x.Shape)
	offs, err := places(n, in[1], x.Shape, dense)
	if err != nil {
		return nil, err
	}
	rest, l := without(x.Shape, dense, n.Attrs.Axes)
	out := as(n.Spec, x)
	if n.Op == graph.OpIndexedPut {
		u := as(graph.Spec{Type: n.Type, Shape: in[2].Shape}, in[2])
		count, size := rest.Size(), n.Type.Size()
		v := stridedOf(rest, l)
		base := v.off
		for k, o := range offs {
			v.off = base + o
			v.runs(0, count, func(j, off, m int) { copyRun(out.Data, off, v.step(), u.Data, k*count+j, 1, m, size) })
		}
		return []Tensor{out}, nil
	}
	c := classOf(x.Type, in[2].Type)
	if c == integer && !n.Type.Int() {
		c = float
	}
	v := stridedOf(rest, l)
	switch c {
	case integer:
		addAt[int64](out, x, in[2], offs, v, rest.Size())
	case float:
		addAt[float64](out, x, in[2], offs, v, rest.Size())
	default:
		addAt[complex128](out, x, in[2], offs, v, rest.Size())
	}
	return []Tensor{out}, nil
}

// addAt sums updates place by place, and writes to out the elements of x that some update falls on, with the sum added.
func addAt[T number](out, x, updates Tensor, offs []int, v strided, count int) {
	sums := make([]T, x.Shape.Size())
	hit := make([]bool, len(sums))
	u := values[T](updates)
	base := v.off
	for k, o := range offs {
		v.off = base + o
		step := v.step()
		v.runs(0, count, func(j, off, m int) {
			for i := range m {
				sums[off+i*step] += u[k*count+j+i]
				hit[off+i*step] = true
			}
		})
	}
	s := sourceOf(x)
	parallel(len(sums), 6, func(lo, hi int) {
		var part [scratch]T
		for k := lo; k < hi; k += scratch {
			p := part[:min(scratch, hi-k)]
			read(p, &s, k)
			for i := range p {
				if hit[k+i] {
					store(out.Data, out.Type, k+i, []T{p[i] + sums[k+i]}, false)
				}
			}
		}
	})
}
