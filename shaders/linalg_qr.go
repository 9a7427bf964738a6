package shaders

import (
	"nxvk/graph"
	"nxvk/kernel"
)

// reflections are Householder's: they turn r {m, n} into R, and an identity {m, m} into Q.
type reflections struct {
	k     *matrixKernel
	r, q  *array
	v, vr *array // v {m}, vᵀR {n}
	qv    *array // {m}
	m, n  kernel.Value
	count kernel.Value // of columns that are reflected
	eps   kernel.Value
}

// newReflections declares what matrices of up to m × n need.
func (k *matrixKernel) newReflections(m, n int) *reflections {
	return &reflections{
		k: k, r: k.array(k.mem, m*n), q: k.array(k.mem, m*m), v: k.array(k.mem, m), vr: k.array(k.mem, n), qv: k.array(k.mem, m),
	}
}

// reflected is how many columns of {m, n} are reflected.
func reflected(m, n int) int {
	if m > n {
		return n
	}
	return max(0, m-1)
}

// run factors what load yields.
func (h *reflections) run(load func(i, j kernel.Value) kernel.Value) {
	k, m, n, zero := h.k, h.m, h.n, h.k.I32(0)
	k.each2(zero, m, zero, n, func(i, j kernel.Value) { h.r.set(k.entry(i, j, n), load(i, j)) })
	k.each2(zero, m, zero, m, func(i, j kernel.Value) {
		h.q.set(k.entry(i, j, m), k.Select(k.Cmp(kernel.IEq, i, j), k.c(1), k.Zero(k.t)))
	})
	k.sync()
	k.loop(zero, h.count, func(s kernel.Value) {
		column := func(i kernel.Value) kernel.Value { return h.r.get(k.entry(i, s, n)) }
		square := k.dot(s, m, func(i kernel.Value) (kernel.Value, kernel.Value) {
			v := column(i)
			return v, v
		})
		x, norm := column(s), k.sqrt(square)
		below := k.Sub(square, k.Mul(x, x))
		k.sync()
		k.If(k.Not(k.Cmp(kernel.FLt, below, h.eps)), func() { h.reflect(s, x, norm, below) }, nil)
	})
}

// reflect applies the reflection of column s, whose first element is x, its norm norm, and the squares of the others sum
// to below.
func (h *reflections) reflect(s, x, norm, below kernel.Value) {
	k, m, n, zero := h.k, h.m, h.n, h.k.I32(0)
	positive := k.Cmp(kernel.FLt, k.Zero(k.t), x)
	first := k.NewVar(k.Sub(x, norm))
	k.If(positive, func() { k.Set(first, k.div(k.Un(kernel.FNeg, below), k.Add(x, norm))) }, nil)
	pivot := k.Get(first)
	k.each(s, m, func(i kernel.Value) {
		v := k.Select(k.Cmp(kernel.IEq, i, s), pivot, h.r.get(k.entry(i, s, n)))
		h.v.set(i, k.div(v, pivot))
	})
	k.sync()
	scale := k.div(k.c(2), k.dot(s, m, func(i kernel.Value) (kernel.Value, kernel.Value) {
		v := h.v.get(i)
		return v, v
	}))
	k.each(zero, n, func(j kernel.Value) {
		h.vr.set(j, k.dot(s, m, func(i kernel.Value) (kernel.Value, kernel.Value) { return h.v.get(i), h.r.get(k.entry(i, j, n)) }))
	})
	k.each(zero, m, func(i kernel.Value) {
		h.qv.set(i, k.dot(s, m, func(j kernel.Value) (kernel.Value, kernel.Value) { return h.q.get(k.entry(i, j, m)), h.v.get(j) }))
	})
	k.sync()
	k.each2(s, m, zero, n, func(i, j kernel.Value) {
		at := k.entry(i, j, n)
		h.r.set(at, k.Sub(h.r.get(at), k.Mul(scale, k.Mul(h.v.get(i), h.vr.get(j)))))
	})
	k.each2(zero, m, s, m, func(i, j kernel.Value) {
		at := k.entry(i, j, m)
		h.q.set(at, k.Sub(h.q.get(at), k.Mul(scale, k.Mul(h.qv.get(i), h.v.get(j)))))
	})
	k.sync()
}

func (g *linalg) qr() (*Plan, error) {
	m, n := g.rows, g.cols
	inner := min(m, n)
	if g.n.Attrs.Full {
		inner = m
	}
	k, err := g.start(g.batch, m*max(m, n), 0)
	if err != nil {
		return nil, err
	}
	x, toQ, toR := k.operand(0, g.batch, m*n), k.result(1, g.batch, m*inner), k.result(2, g.batch, inner*n)
	h := k.newReflections(m, n)
	if err := k.settle(); err != nil {
		return nil, err
	}
	h.m, h.n, h.count = k.number("m", m), k.number("n", n), k.number("count", reflected(m, n))
	h.eps = k.real("eps", g.n.Attrs.Eps)
	cols := k.number("inner", inner)
	zero := k.I32(0)
	k.over(func() {
		h.run(func(i, j kernel.Value) kernel.Value { return x(k.problem, k.entry(i, j, h.n)) })
		k.each2(zero, h.m, zero, cols, func(i, j kernel.Value) {
			toQ(k.problem, k.entry(i, j, cols), k.flushed(h.q.get(k.entry(i, j, h.m)), h.eps))
		})
		k.each2(zero, cols, zero, h.n, func(i, j kernel.Value) {
			at := k.entry(i, j, h.n)
			toR(k.problem, at, k.flushed(h.r.get(at), h.eps))
		})
	})
	return k.plan(), nil
}

// real declares a number of the kernel's type.
func (k *matrixKernel) real(name string, v float64) kernel.Value {
	t := graph.F32
	if k.t == kernel.F64 {
		t = graph.F64
	}
	return k.scalar(name, k.t, Arg{Kind: Imm, Imm: graph.FromFloat(v, t)})
}
