package linalg

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// jacobiMax is the extent from which LAPACK's eigenvalues and singular values come sooner than those of the
// iterations here. LAPACK computes in f64; signs are made those of a rotation from the axes: the
// largest component of an eigenvector, or right singular vector, is positive.
const jacobiMax = 100

// thinFrom is the number of rows from which the thin Q of a matrix four times as tall as wide is made without
// the full one.
const thinFrom = 128

func finite[F Float](a []F) bool {
	for _, v := range a {
		if v-v != 0 {
			return false
		}
	}
	return true
}

func widened[F Float](a []F) []float64 {
	out := make([]float64, len(a))
	for i, v := range a {
		out[i] = float64(v)
	}
	return out
}

func narrowed[F Float](a []float64) []F {
	out := make([]F, len(a))
	for i, v := range a {
		out[i] = F(v)
	}
	return out
}

func nans[F Float](n int) []F {
	out := make([]F, n)
	for i := range out {
		out[i] = F(math.NaN())
	}
	return out
}

// eighLapack is eigh by tridiagonal reduction and implicit QL. It reads the upper triangle of a.
func eighLapack[F Float](a []F, n int, eps F) (w, v []F) {
	if !finite(a) {
		return nans[F](n), nans[F](n * n)
	}
	x, d, work := widened(a), make([]float64, n), make([]float64, 1)
	s := blas64.Symmetric{N: n, Stride: n, Data: x, Uplo: blas.Upper}
	lapack64.Syev(lapack.EVCompute, s, d, work, -1)
	work = make([]float64, int(work[0]))
	if !lapack64.Syev(lapack.EVCompute, s, d, work, len(work)) {
		return nans[F](n), nans[F](n * n)
	}
	w, v = make([]F, n), make([]F, n*n)
	for to, from := range byMagnitude(d) {
		sign := signOf(x[from:], n, n)
		w[to] = F(d[from])
		for i := range n {
			v[i*n+to] = F(sign * x[i*n+from])
		}
	}
	return flushed(w, eps), flushed(v, eps)
}

// signOf is the sign of the largest of n numbers, step apart.
func signOf(x []float64, n, step int) float64 {
	best := x[0]
	for i := 1; i < n; i++ {
		if v := x[i*step]; math.Abs(v) > math.Abs(best) {
			best = v
		}
	}
	return math.Copysign(1, best)
}

// svdLapack is svd by bidiagonal reduction and implicit QR.
func svdLapack[F Float](a []F, m, n int, full bool) (u, s, vt []F) {
	k := min(m, n)
	rows, cols, job := k, k, lapack.SVDStore
	if full {
		rows, cols, job = m, n, lapack.SVDAll
	}
	if !finite(a) {
		return nans[F](m * rows), nans[F](k), nans[F](cols * n)
	}
	g := func(m, n int, data []float64) blas64.General {
		return blas64.General{Rows: m, Cols: n, Stride: n, Data: data}
	}
	u2, d, vt2, work := g(m, rows, make([]float64, m*rows)), make([]float64, k), g(cols, n, make([]float64, cols*n)), make([]float64, 1)
	x := g(m, n, widened(a))
	lapack64.Gesvd(job, job, x, u2, vt2, d, work, -1)
	work = make([]float64, int(work[0]))
	if !lapack64.Gesvd(job, job, x, u2, vt2, d, work, len(work)) {
		return nans[F](m * rows), nans[F](k), nans[F](cols * n)
	}
	for i := range k {
		row := vt2.Data[i*n : (i+1)*n]
		if signOf(row, n, 1) > 0 {
			continue
		}
		for j := range row {
			row[j] = -row[j]
		}
		for j := range m {
			u2.Data[j*rows+i] = -u2.Data[j*rows+i]
		}
	}
	return narrowed[F](u2.Data), narrowed[F](d), narrowed[F](vt2.Data)
}

// qrThin is the reduced qr of a matrix that is much taller than wide: reflections are kept where they clear R, and Q's
// columns come from the last reflection to the first.
func qrThin[F Float](a []F, m, n int, eps F) (q, r []F) {
	r = append([]F(nil), a...)
	vs, scales := make([][]F, n), make([]F, n)
	sums := make([]float64, n)
	apply := func(x []F, i int) { // to rows i and below of x {m, n}
		v, scale := vs[i], scales[i]
		clear(sums)
		for k := i; k < m; k++ {
			axpy(sums, float64(v[k-i]), x[k*n:(k+1)*n])
		}
		for k := i; k < m; k++ {
			row := x[k*n : (k+1)*n]
			for j, s := range sums {
				row[j] -= F(scale * F(v[k-i]*F(s)))
			}
		}
	}
	for i := range n {
		v := make([]F, m)
		if scales[i] = reflector(r, v, m, n, i, eps); scales[i] != 0 {
			vs[i] = v[i:]
			apply(r, i)
		}
	}
	q = identity[F](m, n)
	for i := n - 1; i >= 0; i-- {
		if scales[i] != 0 {
			apply(q, i)
		}
	}
	return flushed(q, eps), flushed(r[:n*n], eps)
}
