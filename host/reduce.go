package host

import (
	"slices"

	"nxvk/graph"
)

func init() {
	register(one(reduce), graph.OpSum, graph.OpProduct, graph.OpReduceMax, graph.OpReduceMin)
	register(one(reduceBool), graph.OpAll, graph.OpAny)
	register(one(argReduce), graph.OpArgMax, graph.OpArgMin)
}

// lanes is x as rows: one for each element of the result, of the elements that it is reduced from, in row-major order
// of the axes. count is the number of elements in a row.
func lanes(x Tensor, axes []int) (view Tensor, count int) {
	order := make([]int, 0, len(x.Shape))
	for a := range x.Shape {
		if !slices.Contains(axes, a) {
			order = append(order, a)
		}
	}
	count = 1
	for _, a := range axes {
		count *= x.Shape[a]
	}
	return permuted(x, append(order, axes...)), count
}

// foldRows folds each row of a tensor from init on, in order, and yields one number a row.
func foldRows[T number](view Tensor, count int, init T, first bool, f func(acc, x T) T) []T {
	rows := view.Shape.Size() / count
	out := make([]T, rows)
	s := sourceOf(view)
	parallel(rows, 3*count, func(lo, hi int) {
		var v [scratch]T
		for r := lo; r < hi; r++ {
			acc, from := init, r*count
			for k := 0; k < count; k += scratch {
				part := v[:min(scratch, count-k)]
				read(part, &s, from+k)
				if k == 0 && first {
					acc, part = part[0], part[1:]
				}
				for _, x := range part {
					acc = f(acc, x)
				}
			}
			out[r] = acc
		}
	})
	return out
}

// reduce is a sum, product, maximum or minimum. Floats accumulate in f64.
func reduce(n *graph.Node, in []Tensor) Tensor {
	view, count := lanes(in[0], n.Attrs.Axes)
	unsigned := in[0].Type == graph.U64
	switch classOf(in[0].Type) {
	case integer:
		if !n.Type.Int() && (n.Op == graph.OpSum || n.Op == graph.OpProduct) {
			break
		}
		f := map[graph.Op]func(acc, x int64) int64{
			graph.OpSum:     func(acc, x int64) int64 { return acc + x },
			graph.OpProduct: func(acc, x int64) int64 { return acc * x },
			graph.OpReduceMax: func(acc, x int64) int64 {
				if compareInts(x, unsigned, acc, unsigned) > 0 {
					return x
				}
				return acc
			},
			graph.OpReduceMin: func(acc, x int64) int64 {
				if compareInts(x, unsigned, acc, unsigned) < 0 {
					return x
				}
				return acc
			},
		}[n.Op]
		init, first := identity(n.Op)
		return tensor(n.Spec, foldRows(view, count, int64(init), first, f), unsigned)
	case complex_:
		f := func(acc, x complex128) complex128 { return acc + x }
		if n.Op == graph.OpProduct {
			f = func(acc, x complex128) complex128 { return mulComplex(x, acc) }
		}
		init, _ := identity(n.Op)
		return tensor(n.Spec, foldRows(view, count, complex(init, 0), false, f), false)
	}
	f := map[graph.Op]func(acc, x float64) float64{
		graph.OpSum:       func(acc, x float64) float64 { return acc + x },
		graph.OpProduct:   func(acc, x float64) float64 { return acc * x },
		graph.OpReduceMax: maxFloat,
		graph.OpReduceMin: minFloat,
	}[n.Op]
	init, first := identity(n.Op)
	return tensor(n.Spec, foldRows(view, count, init, first, f), false)
}

// identity is what a fold starts from, or that it starts from the first element.
func identity(op graph.Op) (init float64, first bool) {
	switch op {
	case graph.OpSum:
		return 0, false
	case graph.OpProduct:
		return 1, false
	}
	return 0, true
}

// reduceBool is 1 where all, or any, of the elements are not 0. NaN is not 0.
func reduceBool(n *graph.Node, in []Tensor) Tensor {
	view, count := lanes(truth(in[0]), n.Attrs.Axes)
	if n.Op == graph.OpAll {
		return tensor(n.Spec, foldRows(view, count, int64(1), false, func(acc, x int64) int64 { return acc & x }), false)
	}
	return tensor(n.Spec, foldRows(view, count, int64(0), false, func(acc, x int64) int64 { return acc | x }), false)
}

// argReduce is the index of the greatest or least element: of equal ones the first, or the last; of NaNs the last.
func argReduce(n *graph.Node, in []Tensor) Tensor {
	x := in[0]
	axes := []int{n.Attrs.Axis}
	if n.Attrs.Axis < 0 {
		axes = axes[:0]
		for a := range x.Shape {
			axes = append(axes, a)
		}
	}
	view, count := lanes(x, axes)
	unsigned := x.Type == graph.U64
	sign := 1
	if n.Op == graph.OpArgMin {
		sign = -1
	}
	least := 1 // the comparison, with the best so far, that takes its place
	if n.Attrs.High {
		least = 0
	}
	if classOf(x.Type) == integer {
		return tensor(n.Spec, argRows(view, count, func(x, best int64) bool {
			return sign*compareInts(x, unsigned, best, unsigned) >= least
		}), false)
	}
	return tensor(n.Spec, argRows(view, count, func(x, best float64) bool {
		if x != x {
			return true
		}
		c := compareFloats(x, best)
		return c != 2 && sign*c >= least
	}), false)
}

func argRows[T number](view Tensor, count int, better func(x, best T) bool) []int64 {
	rows := view.Shape.Size() / count
	out := make([]int64, rows)
	s := sourceOf(view)
	parallel(rows, 3*count, func(lo, hi int) {
		var v [scratch]T
		for r := lo; r < hi; r++ {
			var best T
			for k := 0; k < count; k += scratch {
				part := v[:min(scratch, count-k)]
				read(part, &s, r*count+k)
				for i, x := range part {
					if k+i == 0 || better(x, best) {
						best, out[r] = x, int64(k+i)
					}
				}
			}
		}
	})
	return out
}
