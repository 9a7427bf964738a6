package host

import (
	"errors"
	"sync"

	"nxvk/graph"
	"nxvk/host/linalg"
)

func init() {
	register(matrices(triangularSolve), graph.OpTriangularSolve)
	register(matrices(solve), graph.OpSolve)
	register(matrices(choleskyOf), graph.OpCholesky)
	register(matrices(luOf), graph.OpLU)
	register(matrices(qrOf), graph.OpQR)
	register(matrices(svdOf), graph.OpSVD)
	register(matrices(eighOf), graph.OpEigh)
	register(matrices(determinantOf), graph.OpDeterminant)
}

// problem is one matrix of a batch, with what stands beside it: the operands in, and where results go.
type problem struct {
	n   *graph.Node
	in  []Tensor // rank 2, the right side of a system may be of rank 1
	out []Tensor // likewise
}

// matrices makes a Func of a function of one matrix. The batch is what stands before the last two axes of the first
// operand.
func matrices(f func(p *problem) error) Func {
	return func(n *graph.Node, in []Tensor) ([]Tensor, error) {
		lead := len(in[0].Shape) - 2
		batch := in[0].Shape[:lead]
		rows, cols := in[0].Shape[lead], in[0].Shape[lead+1]
		outs := []Tensor{New(n.Spec)}
		for _, s := range n.More {
			outs = append(outs, New(s))
		}
		var mu sync.Mutex
		var failed error
		parallel(batch.Size(), 8*rows*cols*min(rows, cols), func(lo, hi int) {
			var at [graph.MaxRank]int
			for k := lo; k < hi; k++ {
				indexOf(at[:lead], batch, k)
				p := &problem{n: n, in: inner(in, at[:lead]), out: inner(outs, at[:lead])}
				if err := f(p); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
			}
		})
		if errors.Is(failed, linalg.ErrSingular) {
			return nil, valueError(n.Op, Singular, "%v", failed)
		}
		return outs, failed
	}
}

// inner are the parts of tensors at an index of their leading axes.
func inner(xs []Tensor, at []int) []Tensor {
	out := make([]Tensor, len(xs))
	for i, x := range xs {
		off := x.Layout.Offset
		for a, k := range at {
			off += k * x.Layout.Strides[a]
		}
		x.Shape = x.Shape[len(at):]
		x.Layout = graph.Layout{Offset: off, Strides: x.Layout.Strides[len(at):]}
		out[i] = x
	}
	return out
}

// put stores numbers as result i.
func put[T float64 | float32 | complex128](p *problem, i int, v []T) {
	o := p.out[i]
	switch v := any(v).(type) {
	case []float64:
		storeFloats(o.Data, o.Type, o.Layout.Offset, v)
	case []float32:
		storeFloats(o.Data, o.Type, o.Layout.Offset, recast[float64](v))
	case []complex128:
		storeComplex(o.Data, o.Type, o.Layout.Offset, v)
	}
}

func recast[T, F linalg.Float](x []F) []T {
	out := make([]T, len(x))
	for i, v := range x {
		out[i] = T(v)
	}
	return out
}

// reals are the elements of an operand in a type to compute in.
func reals[F linalg.Float](x Tensor) []F { return recast[F](values[float64](x)) }

// arithmetic is what an operation over operands of some types computes in.
type arithmetic uint8

const (
	f32 arithmetic = iota
	f64
	c64
	c128
)

func arithmeticOf(xs ...Tensor) arithmetic {
	a := f32
	for _, x := range xs {
		switch {
		case x.Type == graph.C128:
			a |= c128
		case x.Type.Complex():
			a |= c64
		case x.Type == graph.F64:
			a |= f64
		}
	}
	return a
}

func (a arithmetic) complex() bool { return a >= c64 }

func (a arithmetic) field() linalg.Field { return linalg.Field{Single: a == c64} }

// sides is how many right sides a system has.
func sides(b Tensor, right bool) int {
	switch {
	case len(b.Shape) == 1:
		return 1
	case right:
		return b.Shape[0]
	}
	return b.Shape[1]
}

func triangularSolve(p *problem) error {
	a, b, at := p.in[0], p.in[1], p.n.Attrs.Solve
	n := a.Shape[0]
	cols := sides(b, at.Right)
	o := linalg.Solving{Upper: at.Upper, Right: at.Right, Transpose: at.Transform == graph.Transpose}
	if arithmeticOf(a, b).complex() {
		m := complexes(a)
		if at.Transform == graph.Conjugate {
			m = linalg.Conjugated(m)
		}
		x, err := linalg.Field{}.Triangular(m, complexes(b), n, cols, o)
		if err == nil {
			put(p, 0, x)
		}
		return err
	}
	x, err := linalg.Triangular(floats(a), floats(b), n, cols, o)
	if err == nil {
		put(p, 0, x)
	}
	return err
}

func solve(p *problem) error {
	a, b := p.in[0], p.in[1]
	n := a.Shape[0]
	cols := sides(b, false)
	both, single := arithmeticOf(a, b), arithmeticOf(a) == f32
	switch {
	case both.complex():
		x, err := both.field().Solve(complexes(a), complexes(b), n, cols)
		if err == nil {
			put(p, 0, x)
		}
		return err
	case both == f32:
		return solveReal[float32, float32](p, n, cols)
	case single:
		return solveReal[float32, float64](p, n, cols)
	}
	return solveReal[float64, float64](p, n, cols)
}

func solveReal[F, G linalg.Float](p *problem, n, cols int) error {
	x, err := linalg.Solve[F, G](reals[F](p.in[0]), floats(p.in[1]), n, cols)
	if err == nil {
		put(p, 0, x)
	}
	return err
}

func choleskyOf(p *problem) error {
	n := p.in[0].Shape[0]
	switch a := arithmeticOf(p.in[0]); a {
	case f32:
		put(p, 0, linalg.Cholesky(reals[float32](p.in[0]), n))
	case f64:
		put(p, 0, linalg.Cholesky(floats(p.in[0]), n))
	default:
		put(p, 0, a.field().Cholesky(complexes(p.in[0]), n))
	}
	return nil
}

func luOf(p *problem) error {
	n := p.in[0].Shape[0]
	var perm []int
	switch a := arithmeticOf(p.in[0]); a {
	case f32:
		perm = luReal(p, reals[float32](p.in[0]), n)
	case f64:
		perm = luReal(p, floats(p.in[0]), n)
	default:
		x := complexes(p.in[0])
		perm = a.field().LU(x, n)
		l, u := linalg.Split(x, n)
		put(p, 1, l)
		put(p, 2, u)
	}
	m := make([]float64, n*n)
	for i, from := range perm {
		m[from*n+i] = 1
	}
	put(p, 0, m)
	return nil
}

func luReal[F linalg.Float](p *problem, x []F, n int) []int {
	perm := linalg.LU(x, n)
	l, u := linalg.Split(x, n)
	put(p, 1, l)
	put(p, 2, u)
	return perm
}

func qrOf(p *problem) error {
	m, n, at := p.in[0].Shape[0], p.in[0].Shape[1], &p.n.Attrs
	switch a := arithmeticOf(p.in[0]); a {
	case f32:
		q, r := linalg.QR(reals[float32](p.in[0]), m, n, at.Full, float32(at.Eps))
		put(p, 0, q)
		put(p, 1, r)
	case f64:
		q, r := linalg.QR(floats(p.in[0]), m, n, at.Full, at.Eps)
		put(p, 0, q)
		put(p, 1, r)
	default:
		q, r := a.field().QR(complexes(p.in[0]), m, n, at.Full, at.Eps)
		put(p, 0, q)
		put(p, 1, r)
	}
	return nil
}

func svdOf(p *problem) error {
	if arithmeticOf(p.in[0]) == f64 {
		svdReal(p, floats(p.in[0]))
	} else {
		svdReal(p, reals[float32](p.in[0]))
	}
	return nil
}

func svdReal[F linalg.Float](p *problem, x []F) {
	at := &p.n.Attrs
	u, s, vt := linalg.SVD(x, p.in[0].Shape[0], p.in[0].Shape[1], at.Full, at.MaxIter)
	put(p, 0, u)
	put(p, 1, s)
	put(p, 2, vt)
}

func eighOf(p *problem) error {
	n, at := p.in[0].Shape[0], &p.n.Attrs
	switch a := arithmeticOf(p.in[0]); a {
	case f32:
		w, v := linalg.Eigh(reals[float32](p.in[0]), n, at.MaxIter, float32(at.Eps))
		put(p, 0, w)
		put(p, 1, v)
	case f64:
		w, v := linalg.Eigh(floats(p.in[0]), n, at.MaxIter, at.Eps)
		put(p, 0, w)
		put(p, 1, v)
	default:
		w, v := a.field().Eigh(complexes(p.in[0]), n, at.MaxIter, at.Eps)
		put(p, 0, w)
		put(p, 1, v)
	}
	return nil
}

func determinantOf(p *problem) error {
	n, a := p.in[0].Shape[0], arithmeticOf(p.in[0])
	if p.in[0].Type.Int() && n <= 3 {
		a = f64 // products of integers are exact
	}
	switch a {
	case f32:
		put(p, 0, []float32{linalg.Determinant(reals[float32](p.in[0]), n)})
	case f64:
		put(p, 0, []float64{linalg.Determinant(floats(p.in[0]), n)})
	default:
		put(p, 0, []complex128{a.field().Determinant(complexes(p.in[0]), n)})
	}
	return nil
}
