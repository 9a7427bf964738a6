package linalg

import (
	"math"
	"slices"
)

// Field is complex arithmetic whose every operation rounds to c64, when single, or c128. Sums of products gather in
// c128 and round once, as over the reals.
type Field struct{ Single bool }

func (f Field) rounded(z complex128) complex128 {
	if f.Single {
		return complex128(complex64(z))
	}
	return z
}

func (f Field) real(x float64) float64 {
	if f.Single {
		return float64(float32(x))
	}
	return x
}

func cmul(x, y complex128) complex128 {
	a, b, c, d := real(x), imag(x), real(y), imag(y)
	return complex(float64(a*c)-float64(b*d), float64(b*c)+float64(a*d))
}

func cdiv(x, y complex128) complex128 {
	a, b, c, d := real(x), imag(x), real(y), imag(y)
	den := float64(c*c) + float64(d*d)
	return complex((float64(a*c)+float64(b*d))/den, (float64(b*c)-float64(a*d))/den)
}

func conj(z complex128) complex128 { return complex(real(z), -imag(z)) }

func cabs(z complex128) float64 {
	x, y := math.Abs(real(z)), math.Abs(imag(z))
	switch {
	case x == 0:
		return y
	case y == 0:
		return x
	case x > y:
		return x * math.Sqrt(1+float64(y/x*(y/x)))
	}
	return y * math.Sqrt(1+float64(x/y*(x/y)))
}

// csqrt is the root with a real part that is not negative.
func csqrt(z complex128) complex128 {
	r, i := real(z), imag(z)
	if r == 0 && i == 0 {
		return z
	}
	x, y := math.Abs(r), math.Abs(i)
	var w float64
	if x >= y {
		w = math.Sqrt(x) * math.Sqrt(0.5*(1+math.Sqrt(1+float64(y/x*(y/x)))))
	} else {
		w = math.Sqrt(y) * math.Sqrt(0.5*(x/y+math.Sqrt(1+float64(x/y*(x/y)))))
	}
	if r >= 0 {
		return complex(w, i/(2*w))
	}
	if !(i >= 0) {
		w = -w
	}
	return complex(i/(2*w), w)
}

// Conjugated is the conjugates of a.
// Conjugated is the conjugates of a.
func Conjugated(a []complex128) []complex128 {
	out := make([]complex128, len(a))
	for i, z := range a {
		out[i] = conj(z)
	}
	return out
}

// dot is Σ x[i]·y[i].
func (f Field) dot(x, y []complex128) complex128 {
	s := complex128(0)
	for i, v := range x {
		s += cmul(v, y[i])
	}
	return f.rounded(s)
}

func (f Field) flushed(a []complex128, eps float64) []complex128 {
	eps = f.real(eps)
	for i, v := range a {
		if f.real(cabs(v)) <= eps {
			a[i] = 0
		}
	}
	return a
}

func identityC(m int) []complex128 {
	out := make([]complex128, m*m)
	for i := range m {
		out[i*m+i] = 1
	}
	return out
}

// Cholesky is the lower factor of a Hermitian {n, n}.
func (f Field) Cholesky(a []complex128, n int) []complex128 {
	l := make([]complex128, n*n)
	eps := complex(f.real(choleskyEps), 0)
	for i := range n {
		row := l[i*n : (i+1)*n]
		for j := range i + 1 {
			// What stands right of j is zero; its products decide the signs of zeros.
			rest := f.rounded(a[i*n+j] - f.dot(row, Conjugated(l[j*n:(j+1)*n])))
			if i == j {
				row[j] = f.rounded(csqrt(rest))
			} else {
				row[j] = f.rounded(cdiv(rest, f.rounded(l[j*n+j]+eps)))
			}
		}
	}
	return f.flushed(l, choleskyEps)
}

// LU factors a {n, n} in place, as over the reals.
func (f Field) LU(a []complex128, n int) (perm []int) {
	perm = make([]int, n)
	for i := range perm {
		perm[i] = i
	}
	for k := range n {
		p := k
		for i := k; i < n; i++ {
			if v := f.real(cabs(a[i*n+k])); v != v || v > f.real(cabs(a[p*n+k])) {
				p = i
			}
		}
		if p != k {
			perm[k], perm[p] = perm[p], perm[k]
			for j := range n {
				a[k*n+j], a[p*n+j] = a[p*n+j], a[k*n+j]
			}
		}
		pivot := a[k*n+k]
		for i := k + 1; i < n; i++ {
			if pivot != 0 {
				a[i*n+k] = f.rounded(cdiv(a[i*n+k], pivot))
			}
			for j := k + 1; j < n; j++ {
				a[i*n+j] = f.rounded(a[i*n+j] - f.rounded(cmul(a[i*n+k], a[k*n+j])))
			}
		}
	}
	return perm
}

func (f Field) Determinant(a []complex128, n int) complex128 {
	diagonal := func(at ...int) complex128 {
		p := complex128(1)
		for _, i := range at {
			p = cmul(a[i], p)
		}
		return f.rounded(p)
	}
	switch n {
	case 2:
		return f.rounded(diagonal(0, 3) - diagonal(1, 2))
	case 3:
		sum := f.rounded(diagonal(0, 4, 8) + diagonal(1, 5, 6))
		sum = f.rounded(sum + diagonal(2, 3, 7))
		sum = f.rounded(sum - diagonal(2, 4, 6))
		sum = f.rounded(sum - diagonal(1, 3, 8))
		return f.rounded(sum - diagonal(0, 5, 7))
	}
	perm := f.LU(a, n)
	at := make([]int, n)
	for i := range n {
		at[i] = i * (n + 1)
		if a[at[i]] == 0 {
			return 0
		}
		a[at[i]] = cmul(1, a[at[i]])
	}
	sign := complex128(1)
	if odd(perm) {
		sign = -1
	}
	return f.rounded(cmul(sign, diagonal(at...)))
}

// QR is Q and R of a {m, n}, as over the reals, but that a reflection gives the diagonal of R the phase opposite to that of
// the element that was there.
func (f Field) QR(a []complex128, m, n int, full bool, eps float64) (q, r []complex128) {
	r = slices.Clone(a)
	q = identityC(m)
	v, qv, vr := make([]complex128, m), make([]complex128, m), make([]complex128, n)
	count := reflections(m, n)
	if m < n {
		count = m
	}
	for i := range count {
		if !f.reflector(r, v, m, n, i, eps) {
			continue
		}
		for j := range n {
			s := complex128(0)
			for k := range m {
				s += cmul(conj(v[k]), r[k*n+j])
			}
			vr[j] = f.rounded(s)
		}
		for k := range m {
			for j := range n {
				r[k*n+j] = f.rounded(r[k*n+j] - f.rounded(cmul(2, f.rounded(cmul(v[k], vr[j])))))
			}
		}
		for k := range m {
			qv[k] = f.dot(q[k*m:(k+1)*m], v)
		}
		for k := range m {
			for j := range m {
				q[k*m+j] = f.rounded(q[k*m+j] - f.rounded(cmul(2, f.rounded(cmul(qv[k], conj(v[j]))))))
			}
		}
	}
	if inner := min(m, n); !full && inner < m {
		q, r = columns(q, m, m, inner), r[:inner*n]
	}
	return f.flushed(q, eps), f.flushed(r, eps)
}

// reflector finds v of length 1 such that I - 2·v·vᴴ clears column i of r below its diagonal; none for a column that is
// zero.
func (f Field) reflector(r, v []complex128, m, n, i int, eps float64) bool {
	clear(v[:i])
	for k := i; k < m; k++ {
		v[k] = r[k*n+i]
	}
	norm := f.rounded(csqrt(f.dot(v, Conjugated(v))))
	phase := f.real(math.Atan2(imag(v[i]), real(v[i])))
	turn := f.rounded(complex(math.Cos(phase), math.Sin(phase)))
	v[i] = f.rounded(v[i] + f.rounded(cmul(turn, norm)))
	square := f.dot(v, Conjugated(v))
	if real(square) < f.real(eps) {
		return false
	}
	length := f.rounded(csqrt(square))
	for k := range v {
		v[k] = f.rounded(cdiv(v[k], length))
	}
	return true
}

// Triangular solves a {n, n} for b, as over the reals. Nx's conjugate does not transpose.
func (f Field) Triangular(a, b []complex128, n, cols int, o Solving) ([]complex128, error) {
	trans := o.Transpose != o.Right
	forward := o.Upper == trans
	if trans {
		a = transposed(a, n, n)
	}
	bRow, bCol := cols, 1
	if o.Right {
		bRow, bCol = 1, n
	}
	for i := range n {
		if a[i*n+i] == 0 {
			return nil, ErrSingular
		}
	}
	at := func(t int) int {
		if forward {
			return t
		}
		return n - 1 - t
	}
	out := make([]complex128, len(b))
	x := make([]complex128, n)
	for j := range cols {
		for t := range n {
			i := at(t)
			sum := complex128(0)
			for p := range t {
				sum += cmul(a[i*n+at(p)], x[p])
			}
			to := i*bRow + j*bCol
			x[t] = cdiv(b[to]-sum, a[i*n+i])
			out[to] = f.rounded(x[t])
		}
	}
	return out, nil
}
