package shaders

import (
	"nxvk/graph"
	"nxvk/kernel"
)

// substitution solves a triangular system of n rows for right sides side by side, from its first row on or its last. It
// takes one row after another and subtracts it from those that follow, in F64.
type substitution struct {
	k          *matrixKernel
	sums, x    *array
	n, cols    kernel.Value
	start, dir kernel.Value                         // row t of the order is start + t·dir
	a          func(i, j kernel.Value) kernel.Value // of op(a), F64
	pivot      func(i kernel.Value) kernel.Value    // F64
	rhs        func(i, j kernel.Value) kernel.Value // F64
	out        func(i, j, v kernel.Value)           // takes an F64
	singular   func()                               // tells of a zero on the diagonal; nil where there can be none
}

func (k *matrixKernel) newSubstitution(size, cols int) *substitution {
	return &substitution{k: k, sums: k.array(kernel.MF64, size*cols), x: k.array(kernel.MF64, cols)}
}

func (s *substitution) run() {
	k, n, zero := s.k, s.n, s.k.I32(0)
	row := func(t kernel.Value) kernel.Value { return k.Add(s.start, k.Mul(t, s.dir)) }
	k.each2(zero, n, zero, s.cols, func(t, j kernel.Value) { s.sums.set(k.entry(t, j, s.cols), k.Zero(kernel.F64)) })
	k.sync()
	k.loop(zero, n, func(t kernel.Value) {
		i := row(t)
		pivot := s.pivot(i)
		if s.singular != nil {
			k.If(k.Cmp(kernel.FEq, pivot, k.Zero(kernel.F64)), s.singular, nil)
		}
		k.each(zero, s.cols, func(j kernel.Value) {
			v := k.div(k.Sub(s.rhs(i, j), s.sums.get(k.entry(t, j, s.cols))), pivot)
			s.x.set(j, v)
			s.out(i, j, v)
		})
		k.sync()
		k.each2(k.AddI(t, 1), n, zero, s.cols, func(u, j kernel.Value) {
			at := k.entry(u, j, s.cols)
			s.sums.set(at, k.Add(s.sums.get(at), k.Mul(s.a(row(u), i), s.x.get(j))))
		})
		k.sync()
	})
}

// sides is how many right sides a system has, and how many of them a problem takes.
func (g *linalg) sides(most int) (cols, tile int) {
	b := g.in[1]
	lead := len(g.in[0]) - 2
	cols = 1
	if len(b) == lead+2 {
		cols = b[lead+1]
		if g.n.Op == graph.OpTriangularSolve && g.n.Attrs.Solve.Right {
			cols = b[lead]
		}
	}
	return cols, min(cols, most)
}

// across is the number of neighbouring columns that invocations take, for cols of them.
func across(cols int) int {
	n := 1
	for n < cols && n < 16 {
		n *= 2
	}
	return n
}

// tile is how many right sides of n rows a problem of triangular takes.
func (g *linalg) tile() int {
	if g.d.Class == kernel.CPU {
		return 1
	}
	return max(1, min(16, g.d.MaxShared/8/(g.cols+257)))
}

// triangular gives each problem some right sides of a matrix.
func (g *linalg) triangular() (*Plan, error) {
	size, at := g.cols, g.n.Attrs.Solve
	cols, tile := g.sides(g.tile())
	tiles := (cols + tile - 1) / tile
	k, err := g.start(g.batch*tiles, size*tile, across(tile))
	if err != nil {
		return nil, err
	}
	x, b, to := k.operand(0, g.batch, size*size), k.operand(1, g.batch, size*cols), k.result(2, g.batch, size*cols)
	s := k.newSubstitution(size, tile)
	flag := k.flag(0, Singular, singular)
	if err := k.settle(); err != nil {
		return nil, err
	}
	trans := (at.Transform == graph.Transpose) != at.Right
	pick := func(c bool, x, y int) int {
		if c {
			return x
		}
		return y
	}
	forward := at.Upper == trans
	s.n = k.number("n", size)
	s.start, s.dir = k.number("start", pick(forward, 0, size-1)), k.number("dir", pick(forward, 1, -1))
	aRow, aCol := k.number("a.row", pick(trans, 1, size)), k.number("a.col", pick(trans, size, 1))
	bRow, bCol := k.number("b.row", pick(at.Right, 1, cols)), k.number("b.col", pick(at.Right, size, 1))
	div := k.divisor("tiles", tiles, kernel.I32)
	all, width := k.number("cols", cols), k.number("tile", tile)
	k.over(func() {
		matrix, t := div.DivMod(k.Builder, k.problem)
		first := k.Mul(t, width)
		left := k.Sub(all, first)
		s.cols = k.Select(k.Cmp(kernel.ULt, left, width), left, width)
		s.a = func(i, j kernel.Value) kernel.Value {
			return k.f64(x(matrix, k.Add(k.Mul(i, aRow), k.Mul(j, aCol))))
		}
		s.pivot = func(i kernel.Value) kernel.Value { return s.a(i, i) }
		place := func(i, j kernel.Value) kernel.Value {
			return k.Add(k.Mul(i, bRow), k.Mul(k.Add(first, j), bCol))
		}
		s.rhs = func(i, j kernel.Value) kernel.Value { return k.f64(b(matrix, place(i, j))) }
		s.out = func(i, j, v kernel.Value) { to(matrix, place(i, j), k.round(v)) }
		s.singular = func() { k.single(func() { k.AtomicAdd(flag, k.I32(0), k.I32(1)) }) }
		s.run()
	})
	return k.plan(), nil
}

// solve factors each matrix, and substitutes twice.
func (g *linalg) solve() (*Plan, error) {
	size := g.cols
	most := 16
	if g.d.Class != kernel.CPU {
		left := g.d.MaxShared - capacity(size*size)*g.t.Size() - 1024
		most = max(1, min(16, left/(8*size+g.t.Size()*size+1)))
	}
	cols, tile := g.sides(most)
	k, err := g.start(g.batch, size*size, across(tile))
	if err != nil {
		return nil, err
	}
	x, b, to := k.operand(0, g.batch, size*size), k.operand(1, g.batch, size*cols), k.result(2, g.batch, size*cols)
	f := k.newFactor(size)
	s := k.newSubstitution(size, tile)
	y := k.array(k.mem, size*tile)
	flag := k.flag(0, Singular, singular)
	if err := k.settle(); err != nil {
		return nil, err
	}
	all, width, last := k.number("cols", cols), k.number("tile", tile), k.number("last", size-1)
	n := f.n
	s.n = n
	k.over(func() {
		f.run(func(i kernel.Value) kernel.Value { return x(k.problem, i) })
		s.a = func(i, j kernel.Value) kernel.Value { return k.f64(f.a.get(k.entry(i, j, n))) }
		k.For(k.I32(0), all, width, func(first kernel.Value) {
			left := k.Sub(all, first)
			s.cols = k.Select(k.Cmp(kernel.ULt, left, width), left, width)
			s.start, s.dir = k.I32(0), k.I32(1)
			s.pivot = func(kernel.Value) kernel.Value { return k.ConstFloat(kernel.F64, 1) }
			s.rhs = func(i, j kernel.Value) kernel.Value {
				v := k.f64(b(k.problem, k.Add(k.Mul(f.perm.get(i), all), k.Add(first, j))))
				zero := k.Zero(kernel.F64)
				return k.Select(k.Cmp(kernel.FEq, v, zero), zero, v)
			}
			s.out = func(i, j, v kernel.Value) { y.set(k.entry(i, j, s.cols), k.round(v)) }
			s.singular = nil
			s.run()
			s.start, s.dir = last, k.I32(-1)
			s.pivot = func(i kernel.Value) kernel.Value { return s.a(i, i) }
			s.rhs = func(i, j kernel.Value) kernel.Value { return k.f64(y.get(k.entry(i, j, s.cols))) }
			s.out = func(i, j, v kernel.Value) {
				to(k.problem, k.Add(k.Mul(i, all), k.Add(first, j)), k.round(v))
			}
			s.singular = func() { k.single(func() { k.AtomicAdd(flag, k.I32(0), k.I32(1)) }) }
			s.run()
		})
	})
	return k.plan(), nil
}
