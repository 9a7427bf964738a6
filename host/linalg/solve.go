package linalg

import "errors"

// ErrSingular is the failure of a triangular system with a zero on its diagonal.
var ErrSingular = errors.New("can't solve for singular matrix")

// Solving says which triangular system is solved: op(a)·x = b, or x·op(a) = b.
type Solving struct {
	Upper     bool // of a, before it is transposed
	Right     bool
	Transpose bool
}

// Triangular solves a {n, n} for b {n, cols}, or {cols, n} on the right. It computes in f64 and rounds the results alone.
func Triangular[F Float](a, b []F, n, cols int, o Solving) ([]F, error) {
	// x·op(a) = b is op(a)ᵀ·xᵀ = bᵀ.
	trans := o.Transpose != o.Right
	forward := o.Upper == trans
	rowStep, colStep := n, 1 // of op(a)
	if trans {
		rowStep, colStep = 1, n
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
	out := make([]F, len(b))
	x := make([]float64, n*cols) // by step, then column
	for t := range n {
		i := t
		if !forward {
			i = n - 1 - t
		}
		sums := x[t*cols : (t+1)*cols]
		for p := range t {
			k := p
			if !forward {
				k = n - 1 - p
			}
			f := float64(a[i*rowStep+k*colStep])
			for j, v := range x[p*cols : (p+1)*cols] {
				sums[j] += float64(f * v)
			}
		}
		pivot := float64(a[i*n+i])
		for j := range sums {
			at := i*bRow + j*bCol
			sums[j] = (float64(b[at]) - sums[j]) / pivot
			out[at] = F(sums[j])
		}
	}
	return out, nil
}

// Solve solves a {n, n} for b {n, cols}, by LU. It overwrites a. Both triangular systems are solved in f64, and their
// results rounded to G.
func Solve[F, G Float](a []F, b []float64, n, cols int) ([]G, error) {
	perm := LU(a, n)
	y, err := Triangular(widened(unit(a, n)), permuted(perm, b, cols), n, cols, Solving{})
	if err != nil {
		return nil, err
	}
	for i, v := range y {
		y[i] = float64(G(v))
	}
	x, err := Triangular(widened(a), y, n, cols, Solving{Upper: true})
	return narrowed[G](x), err
}

// Solve solves a {n, n} for b {n, cols}, as over the reals.
func (f Field) Solve(a, b []complex128, n, cols int) ([]complex128, error) {
	perm := f.LU(a, n)
	y, err := f.Triangular(unit(a, n), permuted(perm, b, cols), n, cols, Solving{})
	if err != nil {
		return nil, err
	}
	return f.Triangular(a, y, n, cols, Solving{Upper: true})
}

type number interface{ Float | complex128 }

// Split is L and U of what lu left.
func Split[F number](a []F, n int) (l, u []F) {
	l, u = unit(a, n), make([]F, n*n)
	for i := range n {
		copy(u[i*n+i:(i+1)*n], a[i*n+i:])
	}
	return l, u
}

// unit is L of what lu left. Its zeros are positive.
func unit[F number](a []F, n int) []F {
	l := make([]F, n*n)
	for i := range n {
		for j, x := range a[i*n : i*n+i] {
			l[i*n+j] = x + 0
		}
		l[i*n+i] = 1
	}
	return l
}

// permuted is the rows of b {n, cols} in the order that lu took them. Its zeros are positive.
func permuted[F number](perm []int, b []F, cols int) []F {
	out := make([]F, 0, len(b))
	for _, from := range perm {
		for _, x := range b[from*cols : (from+1)*cols] {
			out = append(out, x+0)
		}
	}
	return out
}
