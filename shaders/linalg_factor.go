package shaders

import "nxvk/kernel"

// choleskyEps is what Nx adds to each pivot, and takes for zero.
const choleskyEps = 1e-10

// cholesky makes the lower factor column by column.
func (g *linalg) cholesky() (*Plan, error) {
	size := g.cols
	k, err := g.start(g.batch, size*size, 0)
	if err != nil {
		return nil, err
	}
	x, to := k.operand(0, g.batch, size*size), k.result(1, g.batch, size*size)
	n := k.number("n", size)
	l := k.array(k.mem, size*size)
	if err := k.settle(); err != nil {
		return nil, err
	}
	zero, eps := k.I32(0), k.c(choleskyEps)
	k.over(func() {
		k.factorCholesky(n, l, func(at kernel.Value) kernel.Value { return x(k.problem, at) })
		k.each2(zero, n, zero, n, func(i, j kernel.Value) {
			k.If(k.Cmp(kernel.ULe, j, i), func() {
				to(k.problem, k.entry(i, j, n), k.flushed(l.get(k.entry(i, j, n)), eps))
			}, func() {
				to(k.problem, k.entry(i, j, n), k.Zero(k.t))
			})
		})
	})
	return k.plan(), nil
}

// factorCholesky leaves in l the lower factor of the matrix of n rows whose element at x yields. What stands above its
// diagonal is not written.
func (k *matrixKernel) factorCholesky(n kernel.Value, l *array, x func(at kernel.Value) kernel.Value) {
	zero, eps := k.I32(0), k.c(choleskyEps)
	k.loop(zero, n, func(j kernel.Value) {
		rest := func(i kernel.Value) kernel.Value {
			sum := k.dot(zero, j, func(p kernel.Value) (kernel.Value, kernel.Value) {
				return l.get(k.entry(i, p, n)), l.get(k.entry(j, p, n))
			})
			return k.Sub(x(k.entry(i, j, n)), sum)
		}
		pivot := k.sqrt(rest(j))
		k.single(func() { l.set(k.entry(j, j, n), pivot) })
		divisor := k.Add(pivot, eps)
		k.each(k.AddI(j, 1), n, func(i kernel.Value) { l.set(k.entry(i, j, n), k.div(rest(i), divisor)) })
		k.sync()
	})
}

// factor is the LU factorization of a matrix in a, with partial pivoting: the strict lower part of L, and U. perm is
// the row of the matrix that stands at each row.
type factor struct {
	k       *matrixKernel
	a, perm *array
	n       kernel.Value
	odd     kernel.Var // 1 after an odd number of exchanges
}

func (k *matrixKernel) newFactor(size int) *factor {
	return &factor{k: k, a: k.array(k.mem, size*size), perm: k.array(kernel.M32, size), n: k.number("n", size)}
}

// run factors the matrix whose element i load yields.
func (f *factor) run(load func(i kernel.Value) kernel.Value) {
	k, a, n, zero := f.k, f.a, f.n, f.k.I32(0)
	k.each2(zero, n, zero, n, func(i, j kernel.Value) { a.set(k.entry(i, j, n), load(k.entry(i, j, n))) })
	k.each(zero, n, func(i kernel.Value) { f.perm.set(i, i) })
	f.odd = k.NewVar(zero)
	k.sync()
	k.loop(zero, n, func(s kernel.Value) {
		// The first of the largest; of NaNs the last.
		best, at := k.NewVar(k.abs(a.get(k.entry(s, s, n)))), k.NewVar(s)
		k.loop(k.AddI(s, 1), n, func(i kernel.Value) {
			v := k.abs(a.get(k.entry(i, s, n)))
			better := k.Or(k.Cmp(kernel.FNe, v, v), k.Cmp(kernel.FLt, k.Get(best), v))
			k.Set(best, k.Select(better, v, k.Get(best)))
			k.Set(at, k.Select(better, i, k.Get(at)))
		})
		p := k.Get(at)
		k.sync()
		moved := k.Cmp(kernel.INe, p, s)
		k.Set(f.odd, k.Xor(k.Get(f.odd), k.Select(moved, k.I32(1), zero)))
		k.If(moved, func() {
			k.each(zero, n, func(j kernel.Value) {
				up, down := a.get(k.entry(s, j, n)), a.get(k.entry(p, j, n))
				a.set(k.entry(s, j, n), down)
				a.set(k.entry(p, j, n), up)
			})
			k.single(func() {
				up, down := f.perm.get(s), f.perm.get(p)
				f.perm.set(s, down)
				f.perm.set(p, up)
			})
		}, nil)
		k.sync()
		pivot, next := a.get(k.entry(s, s, n)), k.AddI(s, 1)
		k.If(k.Cmp(kernel.FNe, pivot, k.Zero(k.t)), func() {
			k.each(next, n, func(i kernel.Value) { a.set(k.entry(i, s, n), k.div(a.get(k.entry(i, s, n)), pivot)) })
		}, nil)
		k.sync()
		k.each2(next, n, next, n, func(i, j kernel.Value) {
			at := k.entry(i, j, n)
			a.set(at, k.Sub(a.get(at), k.Mul(a.get(k.entry(i, s, n)), a.get(k.entry(s, j, n)))))
		})
		k.sync()
	})
}

func (g *linalg) lu() (*Plan, error) {
	size := g.cols
	k, err := g.start(g.batch, size*size, 0)
	if err != nil {
		return nil, err
	}
	x := k.operand(0, g.batch, size*size)
	toP, toL, toU := k.result(1, g.batch, size*size), k.result(2, g.batch, size*size), k.result(3, g.batch, size*size)
	f := k.newFactor(size)
	if err := k.settle(); err != nil {
		return nil, err
	}
	n, zero := f.n, k.I32(0)
	k.over(func() {
		f.run(func(i kernel.Value) kernel.Value { return x(k.problem, i) })
		k.each2(zero, n, zero, n, func(i, j kernel.Value) {
			at := k.entry(i, j, n)
			v := f.a.get(at)
			below, on := k.Cmp(kernel.ULt, j, i), k.Cmp(kernel.IEq, i, j)
			none := k.Zero(k.t)
			// The zeros of L are positive.
			l := k.Select(k.Cmp(kernel.FEq, v, none), none, v)
			toL(k.problem, at, k.Select(on, k.c(1), k.Select(below, l, none)))
			toU(k.problem, at, k.Select(below, none, v))
			toP(k.problem, at, k.Select(k.Cmp(kernel.IEq, f.perm.get(j), i), k.c(1), none))
		})
	})
	return k.plan(), nil
}

func (g *linalg) determinant() (*Plan, error) {
	size := g.cols
	k, err := g.start(g.batch, size*size, 0)
	if err != nil {
		return nil, err
	}
	x, to := k.operand(0, g.batch, size*size), k.result(1, g.batch, 1)
	zero := k.I32(0)
	if size == 2 || size == 3 {
		k.over(func() {
			k.single(func() { to(k.problem, zero, k.small(size, func(i int) kernel.Value { return x(k.problem, k.I32(i)) })) })
		})
		return k.plan(), nil
	}
	f := k.newFactor(size)
	if err := k.settle(); err != nil {
		return nil, err
	}
	k.over(func() {
		f.run(func(i kernel.Value) kernel.Value { return x(k.problem, i) })
		product, none := k.NewVar(k.ConstFloat(kernel.F64, 1)), k.NewVar(k.ConstBool(false))
		k.loop(zero, f.n, func(i kernel.Value) {
			v := f.a.get(k.entry(i, i, f.n))
			k.Set(product, k.Mul(k.Get(product), k.f64(v)))
			k.Set(none, k.Or(k.Get(none), k.Cmp(kernel.FEq, v, k.Zero(k.t))))
		})
		v := k.round(k.Get(product))
		v = k.Select(k.Cmp(kernel.IEq, k.Get(f.odd), zero), v, k.Un(kernel.FNeg, v))
		k.single(func() { to(k.problem, zero, k.Select(k.Get(none), k.Zero(k.t), v)) })
	})
	return k.plan(), nil
}

// small is the determinant of a 2×2 or 3×3 matrix by its diagonals.
func (k *matrixKernel) small(size int, x func(i int) kernel.Value) kernel.Value {
	diagonal := func(at ...int) kernel.Value {
		p := k.f64(x(at[0]))
		for _, i := range at[1:] {
			p = k.Mul(p, k.f64(x(i)))
		}
		return k.round(p)
	}
	if size == 2 {
		return k.Sub(diagonal(0, 3), diagonal(1, 2))
	}
	v := k.Add(k.Add(diagonal(0, 4, 8), diagonal(1, 5, 6)), diagonal(2, 3, 7))
	return k.Sub(k.Sub(k.Sub(v, diagonal(2, 4, 6)), diagonal(1, 3, 8)), diagonal(0, 5, 7))
}
