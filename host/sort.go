package host

import (
	"math"
	"slices"

	"nxvk/graph"
)

func init() {
	register(one(sortOp), graph.OpSort, graph.OpArgSort)
	register(topK, graph.OpTopK)
}

// ranked is an element of a row: its key in the order of the sort, and its place.
type ranked struct {
	key uint64
	at  int
}

// keysOf maps elements to unsigned numbers of the same order: NaN is the greatest, zeros are equal.
func keysOf(dst []ranked, x []float64) {
	for i, v := range x {
		bits := math.Float64bits(v)
		switch {
		case v != v:
			bits = math.MaxUint64
		case v == 0:
			bits = 1 << 63
		case bits>>63 == 1:
			bits = ^bits
		default:
			bits |= 1 << 63
		}
		dst[i] = ranked{bits, i}
	}
}

// sortedRows calls f with the order of each row of an axis: the places of its elements, sorted.
func sortedRows(x Tensor, axis int, desc bool, f func(row int, order []ranked)) {
	axes := make([]int, 0, len(x.Shape))
	for a := range x.Shape {
		if a != axis {
			axes = append(axes, a)
		}
	}
	s := sourceOf(permuted(x, append(axes, axis)))
	count := x.Shape[axis]
	isFloat := classOf(x.Type) != integer
	flip := uint64(1) << 63
	if !x.Type.Signed() {
		flip = 0
	}
	parallel(x.Shape.Size()/count, 50*count, func(lo, hi int) {
		order := make([]ranked, count)
		fs, is := make([]float64, count), make([]int64, count)
		for r := lo; r < hi; r++ {
			if isFloat {
				read(fs, &s, r*count)
				keysOf(order, fs)
			} else {
				read(is, &s, r*count)
				for i, v := range is {
					order[i] = ranked{uint64(v) ^ flip, i}
				}
			}
			if desc {
				for i := range order {
					order[i].key = ^order[i].key
				}
			}
			slices.SortFunc(order, func(a, b ranked) int {
				switch {
				case a.key < b.key:
					return -1
				case a.key > b.key:
					return 1
				}
				return a.at - b.at
			})
			f(r, order)
		}
	})
}

// rowsOf are the offset of each row of an axis, in row-major order of the other axes, and the step along the axis.
func rowsOf(s graph.Shape, l graph.Layout, axis int) (rows strided, step int) {
	rest, lay := without(s, l, []int{axis})
	return stridedOf(rest, lay), l.Strides[axis]
}

func (v *strided) at(k int) (off int) {
	v.runs(k, k+1, func(_, o, _ int) { off = o })
	return off
}

// sortOp sorts along an axis, or yields the places of the elements in that order. It is stable; NaN is the greatest.
func sortOp(n *graph.Node, in []Tensor) Tensor {
	x, axis := in[0], n.Attrs.Axis
	out := New(n.Spec)
	to, step := rowsOf(n.Shape, out.Layout, axis)
	from, along := rowsOf(x.Shape, x.Layout, axis)
	sortedRows(x, axis, n.Attrs.Desc, func(row int, order []ranked) {
		o, src := to.at(row), from.at(row)
		for i, e := range order {
			if n.Op == graph.OpArgSort {
				storeInts(out.Data, n.Type, o+i*step, []int64{int64(e.at)}, false)
			} else {
				copyRun(out.Data, o+i*step, 1, x.Data, src+e.at*along, 1, 1, n.Type.Size())
			}
		}
	})
	return out
}

// topK yields the greatest elements of the last axis, in descending order, and their places.
func topK(n *graph.Node, in []Tensor) ([]Tensor, error) {
	x, axis := in[0], len(in[0].Shape)-1
	k := n.Shape[axis]
	vals, idx := New(n.Spec), New(n.More[0])
	from, along := rowsOf(x.Shape, x.Layout, axis)
	sortedRows(x, axis, true, func(row int, order []ranked) {
		src := from.at(row)
		for i, e := range order[:k] {
			copyRun(vals.Data, row*k+i, 1, x.Data, src+e.at*along, 1, 1, n.Type.Size())
			storeInts(idx.Data, idx.Type, row*k+i, []int64{int64(e.at)}, false)
		}
	})
	return []Tensor{vals, idx}, nil
}
