package host

import "nxvk/graph"

// map1 computes an operation of one operand, in blocks.
func map1[A, R number](s graph.Spec, a Tensor, unsigned bool, f func(A) R) Tensor {
	out := New(s)
	x := stretch(a, s.Shape)
	parallel(s.Shape.Size(), 8, func(lo, hi int) {
		var xs [scratch]A
		var rs [scratch]R
		for k := lo; k < hi; k += scratch {
			n := min(scratch, hi-k)
			read(xs[:n], &x, k)
			for i, v := range xs[:n] {
				rs[i] = f(v)
			}
			store(out.Data, s.Type, k, rs[:n], unsigned)
		}
	})
	return out
}

// map2 computes an operation of two operands, in blocks.
func map2[A, B, R number](s graph.Spec, a, b Tensor, unsigned bool, f func(A, B) R) Tensor {
	out := New(s)
	x, y := stretch(a, s.Shape), stretch(b, s.Shape)
	parallel(s.Shape.Size(), 10, func(lo, hi int) {
		var xs [scratch]A
		var ys [scratch]B
		var rs [scratch]R
		for k := lo; k < hi; k += scratch {
			n := min(scratch, hi-k)
			read(xs[:n], &x, k)
			read(ys[:n], &y, k)
			for i, v := range xs[:n] {
				rs[i] = f(v, ys[i])
			}
			store(out.Data, s.Type, k, rs[:n], unsigned)
		}
	})
	return out
}

// map3 computes an operation of three operands, in blocks.
func map3[P, A, R number](s graph.Spec, p, a, b Tensor, unsigned bool, f func(P, A, A) R) Tensor {
	out := New(s)
	w, x, y := stretch(p, s.Shape), stretch(a, s.Shape), stretch(b, s.Shape)
	parallel(s.Shape.Size(), 12, func(lo, hi int) {
		var ps [scratch]P
		var xs, ys [scratch]A
		var rs [scratch]R
		for k := lo; k < hi; k += scratch {
			n := min(scratch, hi-k)
			read(ps[:n], &w, k)
			read(xs[:n], &x, k)
			read(ys[:n], &y, k)
			for i, v := range ps[:n] {
				rs[i] = f(v, xs[i], ys[i])
			}
			store(out.Data, s.Type, k, rs[:n], unsigned)
		}
	})
	return out
}

func init() {
	for _, op := range graph.Binary {
		register(one(binaryOp), op)
	}
	for _, op := range graph.Unary {
		register(one(unaryOp), op)
	}
	register(one(convert), graph.OpAsType)
	register(one(selectOp), graph.OpSelect)
	register(one(clip), graph.OpClip)
	register(one(logicalNot), graph.OpLogicalNot)
	register(one(phase), graph.OpPhase)
}

// convert is x in the type of the result: what as_type does, and what operations do that take operands of any type.
func convert(n *graph.Node, in []Tensor) Tensor { return as(n.Spec, in[0]) }

// as converts x, stretched to the shape of s, to the type of s. Elements that have it already keep their bits.
func as(s graph.Spec, x Tensor) Tensor {
	if x.Type == s.Type {
		out := New(s)
		v := stretch(x, s.Shape)
		copyInto(out.Data, &v)
		return out
	}
	unsigned := x.Type == graph.U64
	switch classOf(x.Type) {
	case integer:
		if s.Type.Int() {
			return map1(s, x, unsigned, func(v int64) int64 { return v })
		}
		return map1(s, x, false, func(v float64) float64 { return v })
	case float:
		return map1(s, x, false, func(v float64) float64 { return v })
	}
	return map1(s, x, false, func(v complex128) complex128 { return v })
}

// selectOp reads its predicate as a truth value. NaN is true.
func selectOp(n *graph.Node, in []Tensor) Tensor {
	c := classOf(in[1].Type, in[2].Type)
	if c == integer && !n.Type.Int() {
		c = float
	}
	if n.Type.Complex() {
		c = complex_
	}
	p := as(graph.Spec{Type: graph.U8, Shape: in[0].Shape}, truth(in[0]))
	switch c {
	case integer:
		return selectAs[int64](n.Spec, p, in[1], in[2])
	case float:
		return selectAs[float64](n.Spec, p, in[1], in[2])
	}
	return selectAs[complex128](n.Spec, p, in[1], in[2])
}

func selectAs[T number](s graph.Spec, p, a, b Tensor) Tensor {
	return map3(s, p, a, b, false, func(p int64, a, b T) T {
		if p != 0 {
			return a
		}
		return b
	})
}

// truth is 1 for each element of x that is not 0, as u8.
func truth(x Tensor) Tensor {
	s := graph.Spec{Type: graph.U8, Shape: x.Shape}
	switch classOf(x.Type) {
	case integer:
		return map1(s, x, false, func(v int64) int64 { return boolean(v != 0) })
	case float:
		return map1(s, x, false, func(v float64) int64 { return boolean(v != 0) })
	}
	return map1(s, x, false, func(v complex128) int64 { return boolean(v != 0) })
}

func boolean(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func logicalNot(n *graph.Node, in []Tensor) Tensor {
	return map1(n.Spec, truth(in[0]), false, func(v int64) int64 { return 1 - v })
}

// clip yields the operand where it is greater than the lower bound, else that; and then what is less than the upper bound,
// else that. So NaN becomes the lower bound.
func clip(n *graph.Node, in []Tensor) Tensor {
	x, lo, hi := in[0], in[1], in[2]
	if classOf(x.Type, lo.Type, hi.Type) == integer {
		ux, ul, uh := x.Type == graph.U64, lo.Type == graph.U64, hi.Type == graph.U64
		return map3(n.Spec, x, lo, hi, ux && ul && uh, func(x, lo, hi int64) int64 {
			u := ux
			if compareInts(x, ux, lo, ul) <= 0 {
				x, u = lo, ul
			}
			if compareInts(x, u, hi, uh) < 0 {
				return x
			}
			return hi
		})
	}
	return map3(n.Spec, x, lo, hi, false, func(x, lo, hi float64) float64 {
		if !(x > lo) {
			x = lo
		}
		if x < hi {
			return x
		}
		return hi
	})
}

// phase is the angle of a complex number; of a real one 0 or π.
func phase(n *graph.Node, in []Tensor) Tensor {
	return map1(n.Spec, in[0], false, func(z complex128) float64 { return atan2(imag(z), real(z)) })
}
