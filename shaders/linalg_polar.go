package shaders

import (
	"encoding/binary"
	"math"

	"nxvk/kernel"
)

// qrEps is the eps of qr where it serves svd.
const qrEps = 1e-10

// halleyRow is what a step of Halley's iteration takes from the table: whether it goes by QR, the root of the weight c or
// c itself, the factors of the two terms, and whether the bound is not yet near 1.
const halleyRow = 5

// halleyTable is the weights of each step of the iteration that finds a polar decomposition (QDWH: Nakatsukasa, Bai and
// Gygi, 2010). They follow from a bound of the least singular value alone, so all matrices share them; in f32.
func halleyTable(steps int) []byte {
	sqrt := func(x float32) float32 { return float32(math.Sqrt(float64(x))) }
	eps := float32(svdEps)
	l := eps
	var table []byte
	for range steps {
		l2 := max(float32(l*l), eps)
		dd := float32(math.Cbrt(float64(float32(4*(1/l2-1)) / l2)))
		root := sqrt(1 + dd)
		a := root + sqrt(8-float32(4*dd)+float32(8*(2-l2))/float32(l2*root))/2
		b := float32((a-1)*(a-1)) / 4
		c := a + b - 1
		l = float32(l*(a+float32(b*l2))) / (1 + float32(c*l2))
		e := b / c
		row := [halleyRow]float32{0, c, e, a - e, 0}
		if c > 100 {
			row[0], row[1], row[3] = 1, sqrt(c), (a-e)/sqrt(c)
		}
		if float32(math.Abs(float64(1-l))) > float32(5*svdEps) {
			row[4] = 1
		}
		for _, v := range row {
			table = binary.LittleEndian.AppendUint32(table, math.Float32bits(v))
		}
	}
	return table
}

// polar is the decomposition x = u·h of square matrices, u orthogonal and h symmetric.
type polar struct {
	k        *matrixKernel
	x, u     *array // {n, n}
	before   *array // u a step ago, and other squares
	t        *array
	h        *reflections // of {2n, n}
	s        *substitution
	rows     *array // sums by row, and by column
	cols     *array
	far      *array // F64, by row
	n        kernel.Value
	maxSteps kernel.Value
	table    kernel.Ptr
	steps    int
}

// newPolar declares what matrices of n rows need.
func (k *matrixKernel) newPolar(n, steps int) *polar {
	square := func() *array { return k.array(k.mem, n*n) }
	return &polar{
		k: k, x: square(), u: square(), before: square(), t: square(), h: k.newReflections(2*n, n), s: k.newSubstitution(n, n),
		rows: k.array(k.mem, n), cols: k.array(k.mem, n), far: k.array(kernel.MF64, n), steps: max(1, steps),
	}
}

// bind declares the iteration's numbers and its table; consts are the plan's.
func (p *polar) bind(n int) (consts [][]byte) {
	k := p.k
	p.n, p.maxSteps = k.number("n", n), k.number("steps", p.steps)
	p.h.m, p.h.n, p.h.count, p.h.eps = k.number("2n", 2*n), p.n, k.number("count", reflected(2*n, n)), k.c(qrEps)
	p.s.n, p.s.cols = p.n, p.n
	p.table = k.dense("table", kernel.MF32, k.slot+len(k.temps), p.steps*halleyRow, false)
	return [][]byte{halleyTable(p.steps)}
}

func (p *polar) entry(i, j kernel.Value) kernel.Value { return p.k.entry(i, j, p.n) }

// weight is entry col of a step's row, in the kernel's type.
func (p *polar) weight(step kernel.Value, col int) kernel.Value {
	k := p.k
	return k.Conv(kernel.FConv, k.t, k.Load(p.table, k.AddI(k.MulI(step, halleyRow), col)))
}

// squares runs f for every element of a square.
func (p *polar) squares(f func(i, j, at kernel.Value)) {
	zero := p.k.I32(0)
	p.k.each2(zero, p.n, zero, p.n, func(i, j kernel.Value) { f(i, j, p.entry(i, j)) })
}

// product is Σ f over the contracted index.
func (p *polar) product(f func(i kernel.Value) (x, y kernel.Value)) kernel.Value {
	return p.k.dot(p.k.I32(0), p.n, f)
}

// run finds u of what is in x, and leaves h in t, before it is made symmetric.
func (p *polar) run() {
	k := p.k
	alpha := p.scale()
	p.squares(func(_, _, at kernel.Value) { p.u.set(at, k.div(p.x.get(at), alpha)) })
	k.sync()
	step := k.NewVar(k.I32(0))
	// Cube root of five units, in f32.
	tol := k.Conv(kernel.FConv, k.t, k.ConstFloat(kernel.F32, math.Cbrt(float64(float32(5*svdEps)))))
	k.Loop(func() {
		i := k.Get(step)
		p.squares(func(_, _, at kernel.Value) { p.before.set(at, p.u.get(at)) })
		k.sync()
		k.If(k.Cmp(kernel.FNe, p.weight(i, 0), k.Zero(k.t)), func() { p.byQR(i) }, func() { p.byCholesky(i) })
		more := k.Cmp(kernel.FNe, p.weight(i, 4), k.Zero(k.t))
		k.Set(step, k.AddI(i, 1))
		k.BreakIf(k.Not(k.Or(more, k.Cmp(kernel.FLt, tol, p.distance()))))
		k.BreakIf(k.Not(k.Cmp(kernel.ULt, k.Get(step), p.maxSteps)))
	})
	// One step of Newton and Schulz.
	p.squares(func(i, j, at kernel.Value) {
		p.t.set(at, p.product(func(q kernel.Value) (kernel.Value, kernel.Value) {
			return p.u.get(p.entry(q, i)), p.u.get(p.entry(q, j))
		}))
	})
	k.sync()
	p.squares(func(i, j, at kernel.Value) {
		p.before.set(at, p.product(func(q kernel.Value) (kernel.Value, kernel.Value) {
			return p.u.get(p.entry(i, q)), p.t.get(p.entry(q, j))
		}))
	})
	k.sync()
	p.squares(func(_, _, at kernel.Value) {
		p.u.set(at, k.Sub(k.Mul(k.c(1.5), p.u.get(at)), k.Mul(k.c(0.5), p.before.get(at))))
	})
	k.sync()
	p.squares(func(i, j, at kernel.Value) {
		p.t.set(at, p.product(func(q kernel.Value) (kernel.Value, kernel.Value) {
			return p.u.get(p.entry(q, i)), p.x.get(p.entry(q, j))
		}))
	})
	k.sync()
}

// scale is the root of the product of the 1- and the ∞-norm of x.
func (p *polar) scale() kernel.Value {
	k, zero := p.k, p.k.I32(0)
	k.each(zero, p.n, func(i kernel.Value) {
		sum := func(at func(j kernel.Value) kernel.Value) kernel.Value {
			acc := k.NewVar(k.Zero(kernel.F64))
			k.loop(zero, p.n, func(j kernel.Value) { k.Set(acc, k.Add(k.Get(acc), k.f64(k.abs(p.x.get(at(j)))))) })
			return k.round(k.Get(acc))
		}
		p.rows.set(i, sum(func(j kernel.Value) kernel.Value { return p.entry(i, j) }))
		p.cols.set(i, sum(func(j kernel.Value) kernel.Value { return p.entry(j, i) }))
	})
	k.sync()
	cols, rows := k.sqrt(p.most(p.cols)), k.sqrt(p.most(p.rows))
	return k.Mul(cols, rows)
}

// most is the largest of n numbers, NaN where one is.
func (p *polar) most(a *array) kernel.Value {
	k := p.k
	best := k.NewVar(a.get(k.I32(0)))
	k.loop(k.I32(1), p.n, func(i kernel.Value) {
		v, b := a.get(i), k.Get(best)
		k.Set(best, k.Select(k.Or(k.Cmp(kernel.FLt, b, v), k.Cmp(kernel.FNe, v, v)), v, b))
	})
	return k.Get(best)
}

// mix sets u to e·u + f·z.
func (p *polar) mix(step kernel.Value, z func(i, j kernel.Value) kernel.Value) {
	k := p.k
	e, f := p.weight(step, 2), p.weight(step, 3)
	p.squares(func(i, j, at kernel.Value) { p.u.set(at, k.Add(k.Mul(e, p.u.get(at)), k.Mul(f, z(i, j)))) })
	k.sync()
}

func (p *polar) byQR(step kernel.Value) {
	k := p.k
	root := p.weight(step, 1)
	p.h.run(func(i, j kernel.Value) kernel.Value {
		v := k.NewVar(k.Zero(k.t))
		k.If(k.Cmp(kernel.ULt, i, p.n), func() {
			k.Set(v, k.Mul(root, p.u.get(p.entry(i, j))))
		}, func() {
			k.Set(v, k.Select(k.Cmp(kernel.IEq, k.Sub(i, p.n), j), k.c(1), k.Zero(k.t)))
		})
		return k.Get(v)
	})
	q := func(i, j kernel.Value) kernel.Value { return k.flushed(p.h.q.get(k.entry(i, j, p.h.m)), p.h.eps) }
	p.mix(step, func(i, j kernel.Value) kernel.Value {
		return p.product(func(c kernel.Value) (kernel.Value, kernel.Value) { return q(i, c), q(k.Add(p.n, j), c) })
	})
}

func (p *polar) byCholesky(step kernel.Value) {
	k, zero := p.k, p.k.I32(0)
	c := p.weight(step, 1)
	p.squares(func(i, j, at kernel.Value) {
		v := p.product(func(q kernel.Value) (kernel.Value, kernel.Value) {
			return p.u.get(p.entry(q, i)), p.u.get(p.entry(q, j))
		})
		v = k.Mul(v, c)
		p.t.set(at, k.Select(k.Cmp(kernel.IEq, i, j), k.Add(v, k.c(1)), v))
	})
	k.sync()
	l := p.h.q // {n, n} of it
	k.factorCholesky(p.n, l, p.t.get)
	factor := func(i, j kernel.Value) kernel.Value { return k.f64(k.flushed(l.get(p.entry(i, j)), k.c(choleskyEps))) }
	s := p.s
	s.start, s.dir = zero, k.I32(1)
	s.a = factor
	s.pivot = func(i kernel.Value) kernel.Value { return factor(i, i) }
	s.rhs = func(i, j kernel.Value) kernel.Value { return k.f64(p.u.get(p.entry(j, i))) }
	s.out = func(i, j, v kernel.Value) { p.t.set(p.entry(i, j), k.round(v)) }
	s.run()
	s.start, s.dir = k.AddI(p.n, -1), k.I32(-1)
	s.a = func(i, j kernel.Value) kernel.Value { return factor(j, i) }
	s.rhs = func(i, j kernel.Value) kernel.Value { return k.f64(p.t.get(p.entry(i, j))) }
	s.run()
	p.mix(step, func(i, j kernel.Value) kernel.Value { return p.t.get(p.entry(j, i)) })
}

// distance is the Frobenius norm of what a step changed.
func (p *polar) distance() kernel.Value {
	k, zero := p.k, p.k.I32(0)
	change := func(at kernel.Value) kernel.Value { return k.abs(k.Sub(p.u.get(at), p.before.get(at))) }
	k.each(zero, p.n, func(i kernel.Value) {
		best := k.NewVar(k.Zero(k.t))
		k.loop(zero, p.n, func(j kernel.Value) {
			v, b := change(p.entry(i, j)), k.Get(best)
			k.Set(best, k.Select(k.Or(k.Cmp(kernel.FLt, b, v), k.Cmp(kernel.FNe, v, v)), v, b))
		})
		p.rows.set(i, k.Get(best))
	})
	k.sync()
	largest := p.most(p.rows)
	largest = k.Select(k.Cmp(kernel.FLt, k.Zero(k.t), largest), largest, k.c(1))
	k.each(zero, p.n, func(i kernel.Value) {
		acc := k.NewVar(k.Zero(kernel.F64))
		k.loop(zero, p.n, func(j kernel.Value) {
			v := k.div(change(p.entry(i, j)), largest)
			k.Set(acc, k.Add(k.Get(acc), k.f64(k.Mul(v, v))))
		})
		p.far.set(i, k.Get(acc))
	})
	k.sync()
	acc := k.NewVar(k.Zero(kernel.F64))
	k.loop(zero, p.n, func(i kernel.Value) { k.Set(acc, k.Add(k.Get(acc), p.far.get(i))) })
	return k.Mul(k.sqrt(k.round(k.Get(acc))), largest)
}

// svdFull is by the polar decomposition and the eigenvectors of its symmetric part; a tall matrix is brought to a square
// by qr.
func (g *linalg) svdFull() (*Plan, error) {
	m, n := g.rows, g.cols
	rowStep, colStep := n, 1 // of a as a tall matrix
	tall, square := 1, 3     // which result is U of it, and which V
	wide := m < n
	if wide {
		m, n = n, m
		rowStep, colStep = 1, m
		tall, square = square, tall
	}
	k, err := g.start(g.batch, 2*m*n, 0)
	if err != nil {
		return nil, err
	}
	x := k.operand(0, g.batch, m*n)
	toTall, toS, toSquare := k.result(tall, g.batch, m*m), k.result(2, g.batch, n), k.result(square, g.batch, n*n)
	var h *reflections
	if m > n {
		h = k.newReflections(m, n)
	}
	p, j := k.newPolar(n, g.n.Attrs.MaxIter), k.newJacobi(n)
	filled := k.array(kernel.M32, n)
	if err := k.settle(); err != nil {
		return nil, err
	}
	consts := p.bind(n)
	j.bind(svdEighEps, g.n.Attrs.MaxIter)
	rows, step, across := k.number("m", m), k.number("row", rowStep), k.number("col", colStep)
	if h != nil {
		h.m, h.n, h.count, h.eps = rows, p.n, k.number("tall.count", reflected(m, n)), k.c(qrEps)
	}
	// U of a wide matrix is V of the tall one, and Vᵀ its U transposed.
	pick := func(a, b int) int {
		if wide {
			return b
		}
		return a
	}
	tallRow, tallCol := k.number("tall.row", pick(m, 1)), k.number("tall.col", pick(1, m))
	vRow, vCol := k.number("v.row", pick(1, n)), k.number("v.col", pick(n, 1))
	zero := k.I32(0)
	k.over(func() {
		a := func(r, c kernel.Value) kernel.Value { return x(k.problem, k.Add(k.Mul(r, step), k.Mul(c, across))) }
		some := k.anything(filled, rows, p.n, a)
		if h != nil {
			h.run(a)
			p.squares(func(r, c, at kernel.Value) { p.x.set(at, k.flushed(h.r.get(at), h.eps)) })
		} else {
			p.squares(func(r, c, at kernel.Value) { p.x.set(at, a(r, c)) })
		}
		k.sync()
		p.run()
		j.load(func(r, c kernel.Value) kernel.Value {
			return k.div(k.Add(p.t.get(p.entry(r, c)), p.t.get(p.entry(c, r))), k.c(2))
		})
		k.sync()
		j.decompose(n)
		negative := func(c kernel.Value) kernel.Value { return k.Cmp(kernel.FLt, j.w.get(c), k.Zero(k.t)) }
		vector := func(r, c kernel.Value) kernel.Value {
			v := j.vector(r, c)
			return k.Select(negative(c), k.Un(kernel.FNeg, v), v)
		}
		p.squares(func(r, c, at kernel.Value) {
			p.before.set(at, p.product(func(q kernel.Value) (kernel.Value, kernel.Value) { return p.u.get(p.entry(r, q)), vector(q, c) }))
		})
		k.sync()
		identity := func(r, c, v kernel.Value) kernel.Value {
			one := k.Select(k.Cmp(kernel.IEq, r, c), k.c(1), k.Zero(k.t))
			return k.Select(some, v, one)
		}
		k.each(zero, p.n, func(c kernel.Value) { toS(k.problem, c, k.Select(some, k.abs(j.w.get(c)), k.Zero(k.t))) })
		k.each2(zero, p.n, zero, p.n, func(r, c kernel.Value) {
			toSquare(k.problem, k.Add(k.Mul(r, vRow), k.Mul(c, vCol)), identity(r, c, vector(r, c)))
		})
		k.each2(zero, rows, zero, rows, func(r, c kernel.Value) {
			u := k.NewVar(k.Zero(k.t))
			if h == nil {
				k.Set(u, p.before.get(p.entry(r, c)))
			} else {
				q := func(r, c kernel.Value) kernel.Value { return k.flushed(h.q.get(k.entry(r, c, rows)), h.eps) }
				k.If(k.Cmp(kernel.ULt, c, p.n), func() {
					k.Set(u, p.product(func(i kernel.Value) (kernel.Value, kernel.Value) { return q(r, i), p.before.get(p.entry(i, c)) }))
				}, func() { k.Set(u, q(r, c)) })
			}
			toTall(k.problem, k.Add(k.Mul(r, tallRow), k.Mul(c, tallCol)), identity(r, c, k.Get(u)))
		})
	})
	plan := k.plan()
	plan.Consts = consts
	return plan, nil
}

// anything reports whether a matrix {m, n} holds anything but zeros. filled is of n elements.
func (k *matrixKernel) anything(filled *array, m, n kernel.Value, a func(r, c kernel.Value) kernel.Value) kernel.Value {
	zero := k.I32(0)
	k.each(zero, n, func(c kernel.Value) {
		found := k.NewVar(zero)
		k.loop(zero, m, func(r kernel.Value) {
			k.Set(found, k.Select(k.Cmp(kernel.FNe, a(r, c), k.Zero(k.t)), k.I32(1), k.Get(found)))
		})
		filled.set(c, k.Get(found))
	})
	k.sync()
	some := k.NewVar(zero)
	k.loop(zero, n, func(c kernel.Value) { k.Set(some, k.Or(k.Get(some), filled.get(c))) })
	return k.Cmp(kernel.INe, k.Get(some), zero)
}

// decompose is run, for a matrix of n rows, which may be one.
func (j *jacobi) decompose(n int) {
	k, zero := j.k, j.k.I32(0)
	if n > 1 {
		j.run()
		return
	}
	j.turned = k.NewVar(zero)
	k.single(func() {
		j.w.set(zero, j.a.get(zero))
		j.from.set(zero, zero)
		j.v.set(zero, k.c(1))
	})
	k.sync()
}
