package linalg

import "math"

// float is a type that the decompositions compute in. Every operation rounds to it, but that sums of
// products gather in f64, in the order of the contracted index, and round once at their end: the steps and
// roundings of Nx's own definitions, so that results agree with them to the last bit. The conversions
// around products keep the compiler from fusing them with an addition.
type Float interface{ float32 | float64 }

func sqrt[F Float](x F) F { return F(math.Sqrt(float64(x))) }

func abs[F Float](x F) F { return F(math.Abs(float64(x))) }

// dot is Σ x[i]·y[i].
func dot[F Float](x, y []F) F {
	s := 0.0
	for i, v := range x {
		s += float64(float64(v) * float64(y[i]))
	}
	return F(s)
}

// dots calls f with the product of y and each row from lo to hi-1 of a matrix; row i is a[i·stride+from:], as long as
// y. Four rows go side by side, since a sum waits for itself.
func dots[F Float](a []F, stride, from, lo, hi int, y []F, f func(i int, s F)) {
	i := lo
	for ; i+4 <= hi; i += 4 {
		at := i*stride + from
		p, q, r, s := a[at:][:len(y)], a[at+stride:][:len(y)], a[at+2*stride:][:len(y)], a[at+3*stride:][:len(y)]
		var ps, qs, rs, ss float64
		for k, v := range y {
			w := float64(v)
			ps += float64(float64(p[k]) * w)
			qs += float64(float64(q[k]) * w)
			rs += float64(float64(r[k]) * w)
			ss += float64(float64(s[k]) * w)
		}
		f(i, F(ps))
		f(i+1, F(qs))
		f(i+2, F(rs))
		f(i+3, F(ss))
	}
	for ; i < hi; i++ {
		f(i, dot(a[i*stride+from:][:len(y)], y))
	}
}

// matmul is the product of a {m, k} and b {k, n}.
func matmul[F Float](a, b []F, m, k, n int) []F {
	out := make([]F, m*n)
	split(m, k*n, func(lo, hi int) {
		sums := make([]float64, n)
		for i := lo; i < hi; i++ {
			clear(sums)
			for p, v := range a[i*k : (i+1)*k] {
				axpy(sums, float64(v), b[p*n:(p+1)*n])
			}
			for j, s := range sums {
				out[i*n+j] = F(s)
			}
		}
	})
	return out
}

// axpy adds f·x to sums.
func axpy[F Float](sums []float64, f float64, x []F) {
	x = x[:len(sums)]
	for j := range sums {
		sums[j] += float64(f * float64(x[j]))
	}
}

// transposed is a {m, n} as {n, m}.
func transposed[F any](a []F, m, n int) []F {
	out := make([]F, len(a))
	for i := range m {
		for j := range n {
			out[j*m+i] = a[i*n+j]
		}
	}
	return out
}

// identity is a {m, n} with ones on its diagonal.
func identity[F Float](m, n int) []F {
	out := make([]F, m*n)
	for i := range min(m, n) {
		out[i*n+i] = 1
	}
	return out
}

// flushed replaces what is at most eps by zero, in place.
func flushed[F Float](a []F, eps F) []F {
	for i, v := range a {
		if abs(v) <= eps {
			a[i] = 0
		}
	}
	return a
}

// choleskyEps is what Nx adds to each pivot, and takes for zero.
const choleskyEps = 1e-10

// Cholesky is the lower factor of a {n, n}. A matrix that is not positive definite yields NaN.
func Cholesky[F Float](a []F, n int) []F {
	l := make([]F, n*n)
	for j := range n {
		row := l[j*n : j*n+j]
		pivot := sqrt(a[j*n+j] - dot(row, row))
		l[j*n+j] = pivot
		pivot += F(choleskyEps)
		split(n-j-1, j, func(lo, hi int) {
			dots(l, n, 0, j+1+lo, j+1+hi, row, func(i int, s F) { l[i*n+j] = (a[i*n+j] - s) / pivot })
		})
	}
	return flushed(l, F(choleskyEps))
}

// LU factors a {n, n} in place, with partial pivoting: the strict lower part of L, and U. perm[i] is the row
// of a that stands at row i. A pivot of zero leaves its column as it is.
func LU[F Float](a []F, n int) (perm []int) {
	perm = make([]int, n)
	for i := range perm {
		perm[i] = i
	}
	for k := range n {
		p := k
		for i := k; i < n; i++ {
			// The first of the largest; of NaNs the last.
			if v := a[i*n+k]; v != v || abs(v) > abs(a[p*n+k]) {
				p = i
			}
		}
		top := a[k*n : (k+1)*n]
		if p != k {
			perm[k], perm[p] = perm[p], perm[k]
			for j, v := range a[p*n : (p+1)*n] {
				top[j], a[p*n+j] = v, top[j]
			}
		}
		pivot := top[k]
		split(n-k-1, n-k, func(lo, hi int) {
			for i := k + 1 + lo; i < k+1+hi; i++ {
				row := a[i*n : (i+1)*n]
				if pivot != 0 {
					row[k] /= pivot
				}
				f := row[k]
				for j := k + 1; j < n; j++ {
					row[j] -= F(f * top[j])
				}
			}
		})
	}
	return perm
}

// Determinant of a {n, n}, which it may overwrite.
func Determinant[F Float](a []F, n int) F {
	diagonal := func(at ...int) F {
		p := 1.0
		for _, i := range at {
			p *= float64(a[i])
		}
		return F(p)
	}
	switch n {
	case 2:
		return diagonal(0, 3) - diagonal(1, 2)
	case 3:
		return diagonal(0, 4, 8) + diagonal(1, 5, 6) + diagonal(2, 3, 7) -
			diagonal(2, 4, 6) - diagonal(1, 3, 8) - diagonal(0, 5, 7)
	}
	perm := LU(a, n)
	p := 1.0
	for i := range n {
		if a[i*n+i] == 0 {
			return 0
		}
		p *= float64(a[i*n+i])
	}
	if odd(perm) {
		return -F(p)
	}
	return F(p)
}

// odd reports whether a permutation is one of an odd number of exchanges.
func odd(perm []int) bool {
	seen := make([]bool, len(perm))
	exchanges := 0
	for i := range perm {
		for j := i; !seen[j]; j = perm[j] {
			seen[j] = true
			if perm[j] != i {
				exchanges++
			}
		}
	}
	return exchanges&1 == 1
}
