package shaders

import "nxvk/kernel"

// svd is by the eigenvectors of aᵀa, unless full matrices are wanted.
func (g *linalg) svd() (*Plan, error) {
	if g.n.Attrs.Full {
		return g.svdFull()
	}
	m, n := g.rows, g.cols
	rowStep, colStep := n, 1 // of a as a tall matrix
	wide := m < n
	if wide {
		m, n = n, m
		rowStep, colStep = 1, m
	}
	k, err := g.start(g.batch, m*n, 0)
	if err != nil {
		return nil, err
	}
	x := k.operand(0, g.batch, m*n)
	tall, s, square := 1, 2, 3
	if wide {
		tall, square = 3, 1
	}
	toTall, toS, toSquare := k.result(tall, g.batch, m*n), k.result(s, g.batch, n), k.result(square, g.batch, n*n)
	j := k.newJacobi(n)
	last := k.array(k.mem, n)        // singular values in order
	place := k.array(kernel.M32, n)  // which eigenvalue each is of
	filled := k.array(kernel.M32, n) // whether a column holds anything
	if err := k.settle(); err != nil {
		return nil, err
	}
	j.bind(svdEighEps, g.n.Attrs.MaxIter)
	rows, step, across := k.number("m", m), k.number("row", rowStep), k.number("col", colStep)
	tallRow, tallCol := k.number("tall.row", rowStep), k.number("tall.col", colStep)
	squareRow, squareCol := 1, n // of Vᵀ, by component and vector
	if wide {
		squareRow, squareCol = n, 1
	}
	vRow, vCol := k.number("v.row", squareRow), k.number("v.col", squareCol)
	tolerance := k.real("tolerance", float64(n)*svdEps)
	zero := k.I32(0)
	k.over(func() {
		a := func(r, c kernel.Value) kernel.Value { return x(k.problem, k.Add(k.Mul(r, step), k.Mul(c, across))) }
		some := k.anything(filled, rows, j.n, a)
		j.load(func(r, c kernel.Value) kernel.Value {
			return k.dot(zero, rows, func(i kernel.Value) (kernel.Value, kernel.Value) { return a(i, r), a(i, c) })
		})
		k.sync()
		j.decompose(n)
		root := func(c kernel.Value) kernel.Value {
			w := j.w.get(c)
			return k.sqrt(k.Select(k.Cmp(kernel.FLe, w, k.Zero(k.t)), k.Zero(k.t), w))
		}
		k.each(zero, j.n, func(c kernel.Value) {
			v := root(c)
			to := k.rank(c, j.n, v, root)
			last.set(to, v)
			place.set(to, c)
		})
		k.sync()
		least := k.Mul(tolerance, last.get(zero))
		identity := func(r, c, v kernel.Value) kernel.Value {
			one := k.Select(k.Cmp(kernel.IEq, r, c), k.c(1), k.Zero(k.t))
			return k.Select(some, v, one)
		}
		k.each(zero, j.n, func(c kernel.Value) { toS(k.problem, c, last.get(c)) })
		k.each2(zero, j.n, zero, j.n, func(r, c kernel.Value) {
			toSquare(k.problem, k.Add(k.Mul(r, vRow), k.Mul(c, vCol)), identity(r, c, j.vector(r, place.get(c))))
		})
		k.each2(zero, rows, zero, j.n, func(r, c kernel.Value) {
			value, from := last.get(c), place.get(c)
			inverse := k.Select(k.Cmp(kernel.FLt, least, value), k.div(k.c(1), value), k.Zero(k.t))
			sum := k.dot(zero, j.n, func(i kernel.Value) (kernel.Value, kernel.Value) { return a(r, i), j.vector(i, from) })
			toTall(k.problem, k.Add(k.Mul(r, tallRow), k.Mul(c, tallCol)), identity(r, c, k.Mul(sum, inverse)))
		})
	})
	return k.plan(), nil
}

// svdEps is the unit of roundoff of f32, in which Nx measures singular values; svdEighEps the eps of eigh where it serves
// svd.
const (
	svdEps     = 1.1920929e-07
	svdEighEps = 1e-4
)
