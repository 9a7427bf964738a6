package shaders

import "nxvk/kernel"

// Div emits x/y, correctly rounded on every device; x and y are both F32 or both F64.
func Div(b *kernel.Builder, x, y kernel.Value) kernel.Value {
	switch {
	case b.TypeOf(x) == kernel.F64 || b.T.Num.DivF32:
		return b.Bin(kernel.FDiv, x, y)
	case b.T.F64:
		// 53 ≥ 2·24+2: the second rounding is innocuous.
		w := func(v kernel.Value) kernel.Value { return b.Conv(kernel.FConv, kernel.F64, v) }
		return narrow(b, b.Bin(kernel.FDiv, w(x), w(y)))
	}
	return b.Bin(kernel.FDiv, x, y)
}

// Sqrt emits √x, correctly rounded on every device; x is F32 or F64.
func Sqrt(b *kernel.Builder, x kernel.Value) kernel.Value {
	switch {
	case b.TypeOf(x) == kernel.F64 || b.T.Num.SqrtF32:
		return b.Un(kernel.FSqrt, x)
	case b.T.F64:
		return narrow(b, b.Un(kernel.FSqrt, b.Conv(kernel.FConv, kernel.F64, x)))
	}
	return b.Un(kernel.FSqrt, x)
}

func (f *fp) sqrt(x val) val { return Sqrt(f.b, x) }

// rsqrt is 1/√x, for binary64 in two rounded steps, as Nx.BinaryBackend computes it; for binary32
// rounded once.
func (f *fp) rsqrt(x val) val {
	if f.is64() {
		return Div(f.b, f.c(1), Sqrt(f.b, x))
	}
	sub := f.b.Cmp(kernel.SLt, f.bits(x), f.bits(f.c(0x1p-126)))
	finite := f.b.And(f.lt(f.c(0), x), f.lt(x, f.inf(1)))
	v := f.normal(f.sel(finite, x, f.c(1)), sub)
	// Scaled towards 1 by an even power of two, which keeps the exact products normal.
	e := f.b.And(f.b.Sub(f.b.ShrUI(f.bits(v), f.mant), f.ci(int64(f.bias))), f.ci(-2))
	v = f.float(f.b.Sub(f.bits(v), f.b.ShlI(e, f.mant)))
	r := f.sum(f.divPair(f.single(f.c(1)), f.sqrtPair(f.single(v))))
	half := f.b.Sub(f.sel(sub, f.ci(12), f.ci(0)), f.b.ShrSI(e, 1))
	r = f.mul(r, f.pow2(half))
	edge := f.sel(f.eq(x, f.c(0)), f.withSign(f.inf(1), x), f.sel(f.eq(x, f.inf(1)), f.c(0), f.nan()))
	return f.sel(finite, r, edge)
}

// Fmod emits x - trunc(x/y)·y exactly, with the sign of x; x and y are both F32 or both F64. An
// infinite x, a zero y or a NaN gives NaN; an infinite y gives x.
func Fmod(b *kernel.Builder, x, y kernel.Value) kernel.Value {
	return newFP(b, b.TypeOf(x)).fmod(x, y)
}

// fmod divides the mantissas as integers, chunk bits of the quotient at a time.
func (f *fp) fmod(x, y val) val {
	b := f.b
	ax, ay := f.abs(x), f.abs(y)
	chunk := f.width() - f.mant - 1
	out := f.branch(f.lt(ax, ay), []kernel.Type{f.t}, func() []val { return []val{ax} }, func() []val {
		mx, ex := f.mantissaOf(ax)
		my, ey := f.mantissaOf(ay)
		my = f.sel(b.Cmp(kernel.IEq, my, f.ci(0)), f.ci(1), my)
		rem := b.NewVar(b.Bin(kernel.URem, mx, my))
		left := b.NewVar(b.Sub(ex, ey))
		b.Loop(func() {
			n := b.Get(left)
			b.BreakIf(b.Cmp(kernel.SLe, n, f.ci(0)))
			step := f.sel(b.Cmp(kernel.SLt, n, f.ci(int64(chunk))), n, f.ci(int64(chunk)))
			b.Set(rem, b.Bin(kernel.URem, b.Bin(kernel.Shl, b.Get(rem), step), my))
			b.Set(left, b.Sub(n, step))
		})
		r := b.Conv(kernel.UToF, f.t, b.Get(rem))
		// Exact: the remainder is below ay, in units of its last place.
		return []val{f.scale(r, ey)}
	})
	bad := b.Or(b.Not(f.lt(ax, f.inf(1))), b.Or(f.eq(ay, f.c(0)), f.isNaN(y)))
	return f.sel(bad, f.nan(), f.withSign(out[0], x))
}

// mantissaOf is a = m·2^e, m an integer, for a ≥ 0.
func (f *fp) mantissaOf(a val) (m, e val) {
	b := f.b
	bits := f.bits(a)
	m = b.And(bits, f.ci(1<<f.mant-1))
	e = b.ShrUI(bits, f.mant)
	sub := b.Cmp(kernel.IEq, e, f.ci(0))
	m = f.sel(sub, m, b.Or(m, f.ci(1<<f.mant)))
	e = b.AddI(f.sel(sub, f.ci(1), e), -f.bias-f.mant)
	return m, e
}
