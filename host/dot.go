package host

import "nxvk/graph"

func init() { register(one(dot), graph.OpDot) }

// dot multiplies matrices of batches: the terms of an element add up in the order of the contraction axes, in f64, or
// modulo 2^64.
func dot(n *graph.Node, in []Tensor) Tensor {
	at := &n.Attrs
	a := operandOf(in[0], at.BatchA, at.ContractA)
	b := operandOf(in[1], at.BatchB, at.ContractB)
	c := classOf(in[0].Type, in[1].Type)
	if c == integer && !n.Type.Int() {
		c = float
	}
	switch c {
	case integer:
		return tensor(n.Spec, matmul(a, b, func(acc, x, y int64) int64 { return acc + x*y }), n.Type == graph.U64)
	case float:
		return tensor(n.Spec, matmulFloats(a, b), false)
	}
	return tensor(n.Spec, matmul(a, b, func(acc, x, y complex128) complex128 { return mulComplex(x, y) + acc }), false)
}

// matrix is an operand of dot: batches of rows, each of which is contracted.
type matrix struct {
	x                 Tensor
	batch, rows, cols int
}

func operandOf(x Tensor, batch, contract []int) matrix {
	used := make([]bool, len(x.Shape))
	order := append([]int(nil), batch...)
	m := matrix{batch: 1, rows: 1, cols: 1}
	for _, a := range batch {
		used[a] = true
		m.batch *= x.Shape[a]
	}
	for _, a := range contract {
		used[a] = true
		m.cols *= x.Shape[a]
	}
	for a, d := range x.Shape {
		if !used[a] {
			order = append(order, a)
			m.rows *= d
		}
	}
	m.x = permuted(x, append(order, contract...))
	return m
}

func matmul[T number](a, b matrix, f func(acc, x, y T) T) []T {
	x, y := values[T](a.x), values[T](b.x)
	out := make([]T, product(a.batch, a.rows, b.rows))
	parallel(a.batch*a.rows, 3*a.cols*b.rows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			row, batch := x[r*a.cols:][:a.cols], r/a.rows
			for j := range b.rows {
				col := y[(batch*b.rows+j)*b.cols:][:len(row)]
				var acc T
				for k, v := range row {
					acc = f(acc, v, col[k])
				}
				out[r*b.rows+j] = acc
			}
		}
	})
	return out
}

// matmulFloats is matmul of floats, four columns at a time: sums do not wait for each other.
func matmulFloats(a, b matrix) []float64 {
	x, y := floats(a.x), floats(b.x)
	out := make([]float64, product(a.batch, a.rows, b.rows))
	parallel(a.batch*a.rows, a.cols*b.rows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			row, batch := x[r*a.cols:][:a.cols], r/a.rows
			cols, to := y[batch*b.rows*b.cols:], out[r*b.rows:][:b.rows]
			n := len(row)
			j := 0
			for ; j+4 <= b.rows; j += 4 {
				c0, c1, c2, c3 := cols[j*n:][:n], cols[(j+1)*n:][:n], cols[(j+2)*n:][:n], cols[(j+3)*n:][:n]
				var s0, s1, s2, s3 float64
				for k, v := range row {
					s0 += float64(v * c0[k])
					s1 += float64(v * c1[k])
					s2 += float64(v * c2[k])
					s3 += float64(v * c3[k])
				}
				to[j], to[j+1], to[j+2], to[j+3] = s0, s1, s2, s3
			}
			for ; j < b.rows; j++ {
				col := cols[j*n:][:n]
				s := 0.0
				for k, v := range row {
					s += float64(v * col[k])
				}
				to[j] = s
			}
		}
	})
	return out
}
