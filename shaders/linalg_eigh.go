package shaders

import "nxvk/kernel"

// jacobi is the parallel Jacobi method of Brent and Luk for a symmetric matrix: a round rotates half pairs of rows and columns
// at once, then rows move on. They move in name only: place p of round r is a row that where finds.
type jacobi struct {
	k         *matrixKernel
	a, v      *array // {size, size}: the matrix, and the transposed eigenvectors
	c, s      *array // rotations of the pairs
	top, low  *array // the diagonal after them
	all, off  *array // sums of squares by row of pairs, F64
	w         *array // the eigenvalues, in order
	from      *array // the row of each of them
	extent    int
	n         kernel.Value
	half      kernel.Value
	size      kernel.Value
	turned    kernel.Var // rounds modulo size-1
	eps       kernel.Value
	limit     kernel.Value
	maxSweeps kernel.Value
}

func (k *matrixKernel) newJacobi(n int) *jacobi {
	half := (n + 1) / 2
	size := 2 * half
	return &jacobi{
		k: k, a: k.array(k.mem, size*size), v: k.array(k.mem, size*size),
		c: k.array(k.mem, half), s: k.array(k.mem, half), top: k.array(k.mem, half), low: k.array(k.mem, half),
		all: k.array(kernel.MF64, half), off: k.array(kernel.MF64, half), w: k.array(k.mem, n), from: k.array(kernel.M32, n),
		extent: n,
	}
}

// bind declares the method's numbers.
func (j *jacobi) bind(eps float64, maxSweeps int) {
	k := j.k
	half := (j.extent + 1) / 2
	j.n, j.half, j.size = k.number("n", j.extent), k.number("half", half), k.number("size", 2*half)
	j.eps, j.limit, j.maxSweeps = k.real("eps", eps), k.real("limit", eps*eps), k.number("sweeps", maxSweeps)
}

// where is the row that stands at place p: places 1 … size-1 are a circle, the upper half upwards and the lower one
// downwards, that turns by one each round.
func (j *jacobi) where(p kernel.Value) kernel.Value {
	k := j.k
	last := k.AddI(j.size, -1) // of the circle: its length
	mirror := k.Sub(k.AddI(k.Add(j.half, j.size), -2), p)
	upper := func(p kernel.Value) kernel.Value { return k.Cmp(kernel.ULt, p, j.half) }
	q := k.Select(upper(p), k.AddI(p, -1), mirror)
	q = k.Sub(q, k.Get(j.turned))
	q = k.Select(k.Cmp(kernel.SLt, q, k.I32(0)), k.Add(q, last), q)
	row := k.Select(upper(k.AddI(q, 1)), k.AddI(q, 1), k.Sub(k.AddI(k.Add(j.half, j.size), -2), q))
	return k.Select(k.Cmp(kernel.IEq, p, k.I32(0)), p, row)
}

func (j *jacobi) entry(r, c kernel.Value) kernel.Value { return j.k.entry(r, c, j.size) }

// run decomposes the matrix that is in a, rows and columns beyond n being zero: w and from tell the eigenvalues.
func (j *jacobi) run() {
	k, zero := j.k, j.k.I32(0)
	k.each2(zero, j.size, zero, j.size, func(r, c kernel.Value) {
		j.v.set(j.entry(r, c), k.Select(k.Cmp(kernel.IEq, r, c), k.c(1), k.Zero(k.t)))
	})
	j.turned = k.NewVar(zero)
	sweep := k.NewVar(zero)
	k.sync()
	k.Loop(func() {
		k.BreakIf(k.Not(k.Cmp(kernel.ULt, k.Get(sweep), j.maxSweeps)))
		all, off := j.norms()
		k.BreakIf(k.Not(k.Cmp(kernel.FLt, k.Mul(j.limit, all), off)))
		k.loop(zero, j.n, func(kernel.Value) { j.round() })
		k.Set(sweep, k.AddI(k.Get(sweep), 1))
	})
	j.order()
}

// norms are the sums of all squares, and of those off the diagonal.
func (j *jacobi) norms() (all, off kernel.Value) {
	k, zero := j.k, j.k.I32(0)
	k.each(zero, j.half, func(r kernel.Value) {
		up, down := j.where(r), j.where(k.Add(r, j.half))
		allAcc, offAcc := k.NewVar(k.Zero(kernel.F64)), k.NewVar(k.Zero(kernel.F64))
		k.loop(zero, j.half, func(c kernel.Value) {
			left, right := j.where(c), j.where(k.Add(c, j.half))
			square := func(r, c kernel.Value) kernel.Value {
				x := j.a.get(j.entry(r, c))
				return k.Mul(x, x)
			}
			tl, tr, bl, br := square(up, left), square(up, right), square(down, left), square(down, right)
			sum := func(tl, br kernel.Value) kernel.Value { return k.f64(k.Add(k.Add(k.Add(tl, tr), bl), br)) }
			k.Set(allAcc, k.Add(k.Get(allAcc), sum(tl, br)))
			diagonal := k.Cmp(kernel.IEq, r, c)
			none := k.Zero(k.t)
			k.Set(offAcc, k.Add(k.Get(offAcc), sum(k.Select(diagonal, none, tl), k.Select(diagonal, none, br))))
		})
		j.all.set(r, k.Get(allAcc))
		j.off.set(r, k.Get(offAcc))
	})
	k.sync()
	total := func(a *array) kernel.Value {
		acc := k.NewVar(k.Zero(kernel.F64))
		k.loop(zero, j.half, func(r kernel.Value) { k.Set(acc, k.Add(k.Get(acc), a.get(r))) })
		return k.round(k.Get(acc))
	}
	all, off = total(j.all), total(j.off)
	k.sync()
	return all, off
}

// rotation finds the rotation of pair i.
func (j *jacobi) rotation(i kernel.Value) {
	k := j.k
	up, down := j.where(i), j.where(k.Add(i, j.half))
	p, t, q := j.a.get(j.entry(up, up)), j.a.get(j.entry(up, down)), j.a.get(j.entry(down, down))
	none, one := k.Zero(k.t), k.c(1)
	zero := k.Cmp(kernel.FEq, t, none)
	tau := k.div(k.Sub(q, p), k.Mul(k.c(2), k.Select(zero, one, t)))
	tau = k.Select(zero, none, tau)
	root := k.sqrt(k.Add(one, k.Mul(tau, tau)))
	root = k.Select(k.Cmp(kernel.FLe, none, tau), root, k.Un(kernel.FNeg, root))
	tan := k.div(one, k.Add(tau, root))
	ap, aq := k.abs(p), k.abs(q)
	// The smaller; NaN when one is.
	least := k.Select(k.Or(k.Cmp(kernel.FLt, aq, ap), k.Cmp(kernel.FNe, aq, aq)), aq, ap)
	tan = k.Select(k.Cmp(kernel.FLe, k.abs(t), k.Mul(k.c(1e-5), least)), none, tan)
	secant := k.sqrt(k.Add(one, k.Mul(tan, tan)))
	j.c.set(i, k.div(one, secant))
	j.s.set(i, k.div(tan, secant))
	j.top.set(i, k.Sub(p, k.Mul(tan, t)))
	j.low.set(i, k.Add(q, k.Mul(tan, t)))
}

func (j *jacobi) round() {
	k, zero := j.k, j.k.I32(0)
	k.each(zero, j.half, j.rotation)
	k.sync()
	// turn is x·c - y·s and x·s + y·c.
	turn := func(x, y, c, s kernel.Value) (kernel.Value, kernel.Value) {
		return k.Sub(k.Mul(x, c), k.Mul(y, s)), k.Add(k.Mul(x, s), k.Mul(y, c))
	}
	k.each2(zero, j.half, zero, j.half, func(r, l kernel.Value) {
		up, down, left, right := j.where(r), j.where(k.Add(r, j.half)), j.where(l), j.where(k.Add(l, j.half))
		at := [4]kernel.Value{j.entry(up, left), j.entry(up, right), j.entry(down, left), j.entry(down, right)}
		c, s, c2, s2 := j.c.get(r), j.s.get(r), j.c.get(l), j.s.get(l)
		tl, bl := turn(j.a.get(at[0]), j.a.get(at[2]), c, s)
		tr, br := turn(j.a.get(at[1]), j.a.get(at[3]), c, s)
		tl, tr = turn(tl, tr, c2, s2)
		bl, br = turn(bl, br, c2, s2)
		diagonal, none := k.Cmp(kernel.IEq, r, l), k.Zero(k.t)
		j.a.set(at[0], k.Select(diagonal, j.top.get(r), tl))
		j.a.set(at[1], k.Select(diagonal, none, tr))
		j.a.set(at[2], k.Select(diagonal, none, bl))
		j.a.set(at[3], k.Select(diagonal, j.low.get(r), br))
	})
	k.each2(zero, j.half, zero, j.size, func(r, l kernel.Value) {
		up, down := j.entry(j.where(r), l), j.entry(j.where(k.Add(r, j.half)), l)
		x, y := turn(j.v.get(up), j.v.get(down), j.c.get(r), j.s.get(r))
		j.v.set(up, x)
		j.v.set(down, y)
	})
	next := k.AddI(k.Get(j.turned), 1)
	k.Set(j.turned, k.Select(k.Cmp(kernel.IEq, next, k.AddI(j.size, -1)), zero, next))
	k.sync()
}

// order puts the eigenvalues of largest magnitude first: each counts those that go before it.
func (j *jacobi) order() {
	k, zero := j.k, j.k.I32(0)
	value := func(p kernel.Value) kernel.Value {
		row := j.where(p)
		return j.a.get(j.entry(row, row))
	}
	k.each(zero, j.n, func(p kernel.Value) {
		v := value(p)
		to := k.rank(p, j.n, v, value)
		j.w.set(to, k.flushed(v, j.eps))
		j.from.set(to, j.where(p))
	})
	k.sync()
}

// rank is the place of element p, whose value is v, among n in descending order of magnitude, NaN first, else in the order that
// they have.
func (k *matrixKernel) rank(p, n, v kernel.Value, value func(p kernel.Value) kernel.Value) kernel.Value {
	count := k.NewVar(k.I32(0))
	mine := k.abs(v)
	nan := k.Cmp(kernel.FNe, mine, mine)
	k.loop(k.I32(0), n, func(q kernel.Value) {
		his := k.abs(value(q))
		hisNaN := k.Cmp(kernel.FNe, his, his)
		more := k.Or(k.Cmp(kernel.FLt, mine, his), k.And(hisNaN, k.Not(nan)))
		same := k.Or(k.Cmp(kernel.FEq, mine, his), k.And(hisNaN, nan))
		before := k.Or(more, k.And(same, k.Cmp(kernel.ULt, q, p)))
		k.Set(count, k.Add(k.Get(count), k.Select(before, k.I32(1), k.I32(0))))
	})
	return k.Get(count)
}

// vector is component i of eigenvector c.
func (j *jacobi) vector(i, c kernel.Value) kernel.Value {
	return j.k.flushed(j.v.get(j.entry(j.from.get(c), i)), j.eps)
}

func (g *linalg) eigh() (*Plan, error) {
	n, at := g.cols, &g.n.Attrs
	k, err := g.start(g.batch, n*n, 0)
	if err != nil {
		return nil, err
	}
	x, toW, toV := k.operand(0, g.batch, n*n), k.result(1, g.batch, n), k.result(2, g.batch, n*n)
	if n == 1 {
		k.over(func() {
			k.single(func() {
				toW(k.problem, k.I32(0), x(k.problem, k.I32(0)))
				toV(k.problem, k.I32(0), k.c(1))
			})
		})
		return k.plan(), nil
	}
	j := k.newJacobi(n)
	if err := k.settle(); err != nil {
		return nil, err
	}
	j.bind(at.Eps, at.MaxIter)
	zero := k.I32(0)
	k.over(func() {
		j.load(func(r, c kernel.Value) kernel.Value { return x(k.problem, k.entry(r, c, j.n)) })
		j.run()
		k.each(zero, j.n, func(c kernel.Value) { toW(k.problem, c, j.w.get(c)) })
		k.each2(zero, j.n, zero, j.n, func(r, c kernel.Value) { toV(k.problem, k.entry(r, c, j.n), j.vector(r, c)) })
	})
	return k.plan(), nil
}

// load puts a matrix of n rows and columns into a.
func (j *jacobi) load(x func(r, c kernel.Value) kernel.Value) {
	k, zero := j.k, j.k.I32(0)
	k.each2(zero, j.size, zero, j.size, func(r, c kernel.Value) {
		v := k.NewVar(k.Zero(k.t))
		k.If(k.And(k.Cmp(kernel.ULt, r, j.n), k.Cmp(kernel.ULt, c, j.n)), func() { k.Set(v, x(r, c)) }, nil)
		j.a.set(j.entry(r, c), k.Get(v))
	})
}
