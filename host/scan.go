package host

import (
	"slices"

	"nxvk/graph"
)

func init() {
	register(one(cumulative), graph.OpCumulativeSum, graph.OpCumulativeProduct, graph.OpCumulativeMax, graph.OpCumulativeMin)
}

// cumulative folds along an axis and keeps each step. Floats accumulate in f64 and are rounded as they are kept.
func cumulative(n *graph.Node, in []Tensor) Tensor {
	x := in[0]
	unsigned := x.Type == graph.U64
	c := classOf(x.Type)
	if c == integer && !n.Type.Int() {
		c = float
	}
	switch c {
	case integer:
		return scan(n, x, map[graph.Op]func(acc, x int64) int64{
			graph.OpCumulativeSum:     func(acc, x int64) int64 { return acc + x },
			graph.OpCumulativeProduct: func(acc, x int64) int64 { return acc * x },
			graph.OpCumulativeMax: func(acc, x int64) int64 {
				if compareInts(x, unsigned, acc, unsigned) > 0 {
					return x
				}
				return acc
			},
			graph.OpCumulativeMin: func(acc, x int64) int64 {
				if compareInts(x, unsigned, acc, unsigned) < 0 {
					return x
				}
				return acc
			},
		}[n.Op])
	case float:
		return scan(n, x, map[graph.Op]func(acc, x float64) float64{
			graph.OpCumulativeSum:     func(acc, x float64) float64 { return acc + x },
			graph.OpCumulativeProduct: func(acc, x float64) float64 { return acc * x },
			graph.OpCumulativeMax:     maxFloat,
			graph.OpCumulativeMin:     minFloat,
		}[n.Op])
	}
	if n.Op == graph.OpCumulativeProduct {
		return scan(n, x, mulComplex)
	}
	return scan(n, x, func(acc, x complex128) complex128 { return acc + x })
}

func scan[T number](n *graph.Node, x Tensor, f func(acc, x T) T) Tensor {
	out, axis := New(n.Spec), n.Attrs.Axis
	count := x.Shape[axis]
	axes := make([]int, 0, len(x.Shape))
	for a := range x.Shape {
		if a != axis {
			axes = append(axes, a)
		}
	}
	s := sourceOf(permuted(x, append(axes, axis)))
	to, step := rowsOf(n.Shape, out.Layout, axis)
	parallel(x.Shape.Size()/count, 6*count, func(lo, hi int) {
		row := make([]T, count)
		packed := make([]byte, count*n.Type.Size())
		for r := lo; r < hi; r++ {
			read(row, &s, r*count)
			if n.Attrs.Reverse {
				slices.Reverse(row)
			}
			for i := 1; i < count; i++ {
				row[i] = f(row[i-1], row[i])
			}
			if n.Attrs.Reverse {
				slices.Reverse(row)
			}
			store(packed, n.Type, 0, row, x.Type == graph.U64)
			copyRun(out.Data, to.at(r), step, packed, 0, 1, count, n.Type.Size())
		}
	})
	return out
}
