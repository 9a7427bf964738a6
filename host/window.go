package host

import (
	"math"

	"nxvk/graph"
)

func init() {
	register(one(window), graph.OpWindowSum, graph.OpWindowProduct, graph.OpWindowMax, graph.OpWindowMin)
	register(one(windowScatter), graph.OpWindowScatterMax, graph.OpWindowScatterMin)
}

// windows walks over the positions of a window on a tensor of a shape. It keeps no table: windows and padding may be
// far larger than the tensor.
type windows struct {
	shape, out, window graph.Shape
	stride, dilation   []int
	lo                 []int // padding
	strides            []int // of the row-major tensor
}

func newWindows(shape, out graph.Shape, at *graph.Attrs, dilation []int) *windows {
	w := &windows{shape: shape, out: out, window: at.Window, stride: at.Strides, dilation: dilation, strides: shape.Strides()}
	for _, p := range at.Pad {
		w.lo = append(w.lo, p.Lo)
	}
	return w
}

// size is about the number of steps that a window takes.
func (w *windows) size() int {
	n := 1
	for a, k := range w.window {
		n *= min(k, w.shape[a]+1)
	}
	return n
}

// inside calls f with the flat index of each element of the tensor in the window at pos, in row-major order.
func (w *windows) inside(pos []int, f func(i int)) { w.insideFrom(pos, 0, 0, f) }

func (w *windows) insideFrom(pos []int, a, off int, f func(i int)) {
	if a == len(w.shape) {
		f(off)
		return
	}
	first, d := pos[a]*w.stride[a]-w.lo[a], w.dilation[a]
	k := 0
	if first < 0 {
		k = (-first + d - 1) / d
	}
	for i := first + k*d; k < w.window[a] && i < w.shape[a]; k, i = k+1, i+d {
		w.insideFrom(pos, a+1, off+i*w.strides[a], f)
	}
}

// at is the flat index of element idx of the window at pos, -1 in the padding.
func (w *windows) at(pos, idx []int) int {
	off := 0
	for a, k := range idx {
		i := pos[a]*w.stride[a] + k*w.dilation[a] - w.lo[a]
		if i < 0 || i >= w.shape[a] {
			return -1
		}
		off += i * w.strides[a]
	}
	return off
}

// visit is inside with the padding: f is called with -1 there.
func (w *windows) visit(pos []int, f func(i int)) {
	idx := make([]int, len(w.window))
	for {
		f(w.at(pos, idx))
		if odometer(idx, w.window) {
			return
		}
	}
}

// positions calls f for each position of the windows in [lo, hi).
func (w *windows) positions(lo, hi int, f func(k int, pos []int)) {
	pos := make([]int, len(w.out))
	indexOf(pos, w.out, lo)
	for k := lo; k < hi; k++ {
		f(k, pos)
		odometer(pos, w.out)
	}
}

// foldWindows folds each window, without its padding, from init on.
func foldWindows[T number](w *windows, x []T, init T, f func(acc, x T) T) []T {
	out := make([]T, w.out.Size())
	parallel(len(out), 4*w.size(), func(lo, hi int) {
		w.positions(lo, hi, func(k int, pos []int) {
			acc := init
			w.inside(pos, func(i int) { acc = f(acc, x[i]) })
			out[k] = acc
		})
	})
	return out
}

// extremes of types: what a maximum and a minimum of nothing are, as integers.
func leastInt(t graph.Type) int64 {
	if t.Signed() {
		return -1 << (t.Bits() - 1)
	}
	return 0
}

func greatestInt(t graph.Type) int64 {
	if t.Signed() {
		return 1<<(t.Bits()-1) - 1
	}
	return int64(^uint64(0) >> (64 - t.Bits()))
}

// window is a sum, product, maximum or minimum over windows. Padding counts for nothing; what is all padding gets 0, 1,
// and for maxima and minima the extreme of the type. Of equal extremes (±0) it is the last.
func window(n *graph.Node, in []Tensor) Tensor {
	x := in[0]
	w := newWindows(x.Shape, n.Shape, &n.Attrs, n.Attrs.Dilation)
	unsigned := x.Type == graph.U64
	c := classOf(x.Type)
	if c == integer && !n.Type.Int() {
		c = float
	}
	switch c {
	case integer:
		init, f := int64(0), func(acc, x int64) int64 { return acc + x }
		switch n.Op {
		case graph.OpWindowProduct:
			init, f = 1, func(acc, x int64) int64 { return acc * x }
		case graph.OpWindowMax:
			init, f = leastInt(x.Type), func(acc, x int64) int64 {
				if compareInts(x, unsigned, acc, unsigned) > 0 {
					return x
				}
				return acc
			}
		case graph.OpWindowMin:
			init, f = greatestInt(x.Type), func(acc, x int64) int64 {
				if compareInts(x, unsigned, acc, unsigned) < 0 {
					return x
				}
				return acc
			}
		}
		return tensor(n.Spec, foldWindows(w, ints(x), init, f), unsigned)
	case float:
		init, f := 0.0, func(acc, x float64) float64 { return x + acc }
		switch n.Op {
		case graph.OpWindowProduct:
			init, f = 1, func(acc, x float64) float64 { return x * acc }
		case graph.OpWindowMax:
			init, f = math.Inf(-1), func(acc, x float64) float64 {
				if acc != acc {
					return acc
				}
				return maxFloat(x, acc)
			}
		case graph.OpWindowMin:
			init, f = math.Inf(1), func(acc, x float64) float64 {
				if acc != acc {
					return acc
				}
				return minFloat(x, acc)
			}
		}
		return tensor(n.Spec, foldWindows(w, floats(x), init, f), false)
	}
	if n.Op == graph.OpWindowProduct {
		return tensor(n.Spec, foldWindows(w, complexes(x), 1, func(acc, x complex128) complex128 { return mulComplex(x, acc) }), false)
	}
	return tensor(n.Spec, foldWindows(w, complexes(x), 0, func(acc, x complex128) complex128 { return x + acc }), false)
}

// windowScatter adds each element of the source where the extreme of its window lies, to the initial value. Padding is
// the initial value, and what falls on it is lost; of equal extremes it is the last.
func windowScatter(n *graph.Node, in []Tensor) Tensor {
	x, src, init := in[0], in[1], in[2]
	ones := make([]int, len(x.Shape))
	for i := range ones {
		ones[i] = 1
	}
	w := newWindows(x.Shape, src.Shape, &n.Attrs, ones)
	sign := 1
	if n.Op == graph.OpWindowScatterMin {
		sign = -1
	}
	var hits []int
	if c := classOf(x.Type, init.Type); c == integer {
		ux, ui := x.Type == graph.U64, init.Type == graph.U64
		if ux == ui || ints(init)[0] >= 0 {
			u := ux || ui
			hits = hitsOf(w, ints(x), ints(init)[0], func(a, b int64) bool { return sign*compareInts(a, u, b, u) >= 0 })
		}
	}
	if hits == nil {
		hits = hitsOf(w, floats(x), floats(init)[0], func(a, b float64) bool {
			c := compareFloats(a, b)
			return c != 2 && sign*c >= 0
		})
	}
	switch c := classOf(src.Type, init.Type); {
	case c == complex_:
		return tensor(n.Spec, scattered(hits, complexes(src), complexes(init)[0], x.Shape.Size()), false)
	case c == integer && n.Type.Int():
		return tensor(n.Spec, scattered(hits, ints(src), ints(init)[0], x.Shape.Size()), n.Type == graph.U64)
	}
	return tensor(n.Spec, scattered(hits, floats(src), floats(init)[0], x.Shape.Size()), false)
}

// hitsOf finds for each window the last element that holds against the best before it; -1 is in the padding.
func hitsOf[T number](w *windows, x []T, init T, holds func(x, best T) bool) []int {
	out := make([]int, w.out.Size())
	parallel(len(out), 4*w.size(), func(lo, hi int) {
		w.positions(lo, hi, func(k int, pos []int) {
			first := true
			var best T
			w.visit(pos, func(i int) {
				v := init
				if i >= 0 {
					v = x[i]
				}
				if first || holds(v, best) {
					best, out[k], first = v, i, false
				}
			})
		})
	})
	return out
}

func scattered[T number](hits []int, src []T, init T, size int) []T {
	out := make([]T, size)
	for i := range out {
		out[i] = init
	}
	for k, i := range hits {
		if i >= 0 {
			out[i] += src[k]
		}
	}
	return out
}
