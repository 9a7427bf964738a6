package linalg

import (
	"math"
	"slices"
)

// Eigh is the eigenvalues of a symmetric {n, n}, those of largest magnitude first, and its eigenvectors as columns.
// It is Brent and Luk's parallel Jacobi method: all rotations of a round act on disjoint pairs of rows and columns,
// i and i+half; then rows and columns move on, so that every pair meets once in a sweep. What is at most eps
// is taken for zero, and sweeps end when the squares off the diagonal are eps² of all.
func Eigh[F Float](a []F, n, maxIter int, eps F) (w, v []F) {
	if n == 1 {
		return []F{a[0]}, []F{1}
	}
	if n > jacobiMax {
		return eighLapack(a, n, eps)
	}
	j := newJacobi(a, n)
	limit := F(float64(eps) * float64(eps))
	for i := 0; i < maxIter; i++ {
		if all, off := j.norms(); !(off > F(limit*all)) {
			break
		}
		for range n {
			j.round()
		}
	}
	return j.results(n, eps)
}

type jacobi[F Float] struct {
	half, size int
	a, v       []F   // of the matrix, and of the transposed eigenvectors: {size, size}
	a2, v2     []F   // where a round leaves its results
	next       []int // where a row (and column) goes after a round
	c, s       []F
	top, low   []F // the diagonal after the rotations, upper and lower half
}

func newJacobi[F Float](a []F, n int) *jacobi[F] {
	half := (n + 1) / 2
	size := 2 * half
	j := &jacobi[F]{
		half: half, size: size,
		a: make([]F, size*size), v: identity[F](size, size), a2: make([]F, size*size), v2: make([]F, size*size),
		next: roundRobin(half),
		c:    make([]F, half), s: make([]F, half), top: make([]F, half), low: make([]F, half),
	}
	for i := range n {
		copy(j.a[i*size:], a[i*n:(i+1)*n])
	}
	return j
}

// roundRobin says where each of 2·half rows goes, so that in 2·half-1 rounds each meets every other: row 0 stays, the
// others go round.
func roundRobin(half int) []int {
	next := make([]int, 2*half)
	for i := range half {
		next[i], next[half+i] = i+1, half+i-1
	}
	next[0], next[half] = 0, 1
	if half > 1 {
		next[half-1] = 2*half - 1
	} else {
		next[half] = half
	}
	return next
}

// norms are the sums of all squares, and of those off the diagonal.
func (j *jacobi[F]) norms() (all, off F) {
	h, n := j.half, j.size
	sumAll, sumOff := 0.0, 0.0
	for r := range h {
		for c := range h {
			tl, tr := j.a[r*n+c], j.a[r*n+h+c]
			bl, br := j.a[(h+r)*n+c], j.a[(h+r)*n+h+c]
			tl, tr, bl, br = F(tl*tl), F(tr*tr), F(bl*bl), F(br*br)
			sumAll += float64(tl + tr + bl + br)
			if r == c {
				tl, br = 0, 0
			}
			sumOff += float64(tl + tr + bl + br)
		}
	}
	return F(sumAll), F(sumOff)
}

// rotation finds the rotation that takes element t between diagonal elements p and q to zero.
func rotation[F Float](p, t, q F) (c, s, top, low F) {
	tau := F(0)
	if t != 0 {
		tau = (q - p) / (2 * t)
	}
	tan := sqrt(1 + F(tau*tau))
	if !(tau >= 0) {
		tan = -tan
	}
	tan = 1 / (tau + tan)
	if abs(t) <= F(F(1e-5)*least(abs(q), abs(p))) {
		tan = 0
	}
	secant := sqrt(1 + F(tan*tan))
	return 1 / secant, tan / secant, p - F(tan*t), q + F(tan*t)
}

// least is the smaller of two numbers, NaN when one is.
func least[F Float](x, y F) F { return F(math.Min(float64(x), float64(y))) }

func (j *jacobi[F]) round() {
	h, n, a, v := j.half, j.size, j.a, j.v
	for i := range h {
		j.c[i], j.s[i], j.top[i], j.low[i] = rotation(a[i*n+i], a[i*n+h+i], a[(h+i)*n+h+i])
	}
	for i := range h {
		ci, si := j.c[i], j.s[i]
		up, down := a[i*n:(i+1)*n], a[(h+i)*n:(h+i+1)*n]
		up2, down2 := j.a2[j.next[i]*n:][:n], j.a2[j.next[h+i]*n:][:n]
		for k := range h {
			ck, sk := j.c[k], j.s[k]
			tl, tr, bl, br := up[k], up[h+k], down[k], down[h+k]
			tl, bl = F(tl*ci)-F(bl*si), F(tl*si)+F(bl*ci)
			tr, br = F(tr*ci)-F(br*si), F(tr*si)+F(br*ci)
			tl, tr = F(tl*ck)-F(tr*sk), F(tl*sk)+F(tr*ck)
			bl, br = F(bl*ck)-F(br*sk), F(bl*sk)+F(br*ck)
			if i == k {
				tl, tr, bl, br = j.top[i], 0, 0, j.low[i]
			}
			left, right := j.next[k], j.next[h+k]
			up2[left], up2[right], down2[left], down2[right] = tl, tr, bl, br
		}
		up, down = v[i*n:(i+1)*n], v[(h+i)*n:(h+i+1)*n]
		up2, down2 = j.v2[j.next[i]*n:][:n], j.v2[j.next[h+i]*n:][:n]
		for k, x := range up {
			y := down[k]
			up2[k], down2[k] = F(x*ci)-F(y*si), F(x*si)+F(y*ci)
		}
	}
	j.a, j.a2, j.v, j.v2 = j.a2, j.a, j.v2, j.v
}

func (j *jacobi[F]) results(n int, eps F) (w, v []F) {
	diagonal := make([]F, n)
	for i := range n {
		diagonal[i] = j.a[i*j.size+i]
	}
	w, v = make([]F, n), make([]F, n*n)
	for to, from := range byMagnitude(diagonal) {
		w[to] = diagonal[from]
		for i := range n {
			v[i*n+to] = j.v[from*j.size+i]
		}
	}
	return flushed(w, eps), flushed(v, eps)
}

// byMagnitude lists the positions of w, largest magnitude first, NaN before all.
func byMagnitude[F Float](w []F) []int {
	at := make([]int, len(w))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(i, j int) int {
		x, y := abs(w[i]), abs(w[j])
		switch {
		case x > y, x != x && y == y:
			return -1
		case x < y, x == x && y != y:
			return 1
		}
		return 0
	})
	return at
}
