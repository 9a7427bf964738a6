package shaders

import "nxvk/kernel"

// Div emits x/y, correctly rounded on every device; x and y are both F32 or both F64.
func Div(b *kernel.Builder, x, y kernel.Value) kernel.Value {
	t := b.TypeOf(x)
	switch {
	case t == kernel.F64 && b.T.Num.DivF64, t == kernel.F32 && b.T.Num.DivF32:
		return b.Bin(kernel.FDiv, x, y)
	case t == kernel.F32 && wide(b) && b.T.Num.DivF64:
		// 53 ≥ 2·24+2: the second rounding is innocuous.
		w := func(v kernel.Value) kernel.Value { return b.Conv(kernel.FConv, kernel.F64, v) }
		return narrow(b, b.Bin(kernel.FDiv, w(x), w(y)))
	}
	return newFP(b, t).divInt(x, y)
}

// Sqrt emits √x, correctly rounded on every device; x is F32 or F64.
func Sqrt(b *kernel.Builder, x kernel.Value) kernel.Value {
	t := b.TypeOf(x)
	switch {
	case t == kernel.F64 && b.T.Num.SqrtF64, t == kernel.F32 && b.T.Num.SqrtF32:
		return b.Un(kernel.FSqrt, x)
	case t == kernel.F32 && wide(b) && b.T.Num.SqrtF64:
		return narrow(b, b.Un(kernel.FSqrt, b.Conv(kernel.FConv, kernel.F64, x)))
	}
	return newFP(b, t).sqrtInt(x)
}

// divInt corrects the device's quotient of the mantissas, a few ulp off at most, by the integer
// remainder, and rounds by hand: the remainder is small, so its low word is all of it.
func (f *fp) divInt(x, y val) val {
	b := f.b
	inf := f.inf(1)
	ax, ay := f.abs(x), f.abs(y)
	usual := b.And(b.And(f.lt(f.c(0), ax), f.lt(ax, inf)), b.And(f.lt(f.c(0), ay), f.lt(ay, inf)))
	mx, ex := f.normalMantissa(f.sel(usual, ax, f.c(1)))
	my, ey := f.normalMantissa(f.sel(usual, ay, f.c(1)))
	q := b.Bin(kernel.FDiv, f.unit(mx), f.unit(my))
	n := b.Conv(kernel.FToS, f.i, f.mul(q, f.pow2(f.ci(int64(f.mant+2)))))
	r := b.Sub(b.ShlI(mx, f.mant+2), b.Mul(n, my))
	d := b.Bin(kernel.SDiv, r, my)
	r = b.Sub(r, b.Mul(d, my))
	under := b.Cmp(kernel.SLt, r, f.ci(0))
	n = b.Add(b.Add(n, d), f.sel(under, f.ci(-1), f.ci(0)))
	sticky := f.sel(b.Cmp(kernel.IEq, r, f.ci(0)), f.ci(0), f.ci(1))
	v := f.pack(b.Or(b.ShlI(n, 1), sticky), b.AddI(b.Sub(ex, ey), -f.mant-3), f.mant+2)
	// ∞/y and x/0 are infinite, 0/y and x/∞ zero, but for ∞/∞ and 0/0; NaN stays.
	big := f.sel(b.Or(f.eq(ax, inf), f.eq(ay, f.c(0))), inf, f.c(0))
	bad := b.Or(b.Or(f.isNaN(x), f.isNaN(y)), b.Or(b.And(f.eq(ax, inf), f.eq(ay, inf)), f.eq(f.add(ax, ay), f.c(0))))
	v = f.sel(usual, v, big)
	sign := b.And(b.Xor(f.bits(x), f.bits(y)), f.signMask())
	return f.sel(bad, f.nan(), f.float(b.Or(f.bits(v), sign)))
}

// sqrtInt is the same for the square root.
func (f *fp) sqrtInt(x val) val {
	b := f.b
	usual := b.And(f.lt(f.c(0), x), f.lt(x, f.inf(1)))
	m, e := f.normalMantissa(f.sel(usual, x, f.c(1)))
	// x = m·2^e with an even e, m below 2^(mant+2); m·2^s has a root of mant+2 bits or one more.
	odd := b.And(e, f.ci(1))
	m, e = b.Bin(kernel.Shl, m, odd), b.Sub(e, odd)
	s, up := (f.mant+4)&^1, (f.mant+1)&^1
	root := b.Un(kernel.FSqrt, f.mul(b.Conv(kernel.SToF, f.t, m), f.pow2(f.ci(int64(-up)))))
	n := b.Conv(kernel.FToS, f.i, f.mul(root, f.pow2(f.ci(int64((s+up)/2)))))
	n = b.Add(n, b.Bin(kernel.SDiv, b.Sub(b.ShlI(m, s), b.Mul(n, n)), b.ShlI(n, 1)))
	r := b.Sub(b.ShlI(m, s), b.Mul(n, n))
	under := b.Cmp(kernel.SLt, r, f.ci(0))
	n = b.Add(n, f.sel(under, f.ci(-1), f.ci(0)))
	r = b.Sub(b.ShlI(m, s), b.Mul(n, n))
	over := b.Cmp(kernel.SLt, b.ShlI(n, 1), r)
	n = b.Add(n, f.sel(over, f.ci(1), f.ci(0)))
	r = b.Sub(b.ShlI(m, s), b.Mul(n, n))
	sticky := f.sel(b.Cmp(kernel.IEq, r, f.ci(0)), f.ci(0), f.ci(1))
	v := f.pack(b.Or(b.ShlI(n, 1), sticky), b.AddI(b.ShrSI(b.AddI(e, -s), 1), -1), (s+f.mant)/2+1)
	edge := f.sel(b.Or(f.eq(x, f.c(0)), f.eq(x, f.inf(1))), x, f.nan())
	return f.sel(usual, v, edge)
}

// normalMantissa is x = m·2^e with 2^mant ≤ m < 2^(mant+1), for a positive finite x.
func (f *fp) normalMantissa(x val) (m, e val) {
	b := f.b
	sub := b.Cmp(kernel.SLt, f.bits(x), f.bits(f.c(pick(f, 0x1p-1022, 0x1p-126))))
	bits := f.bits(f.normal(x, sub))
	m = b.Or(b.And(bits, f.ci(1<<f.mant-1)), f.ci(1<<f.mant))
	e = b.AddI(b.ShrUI(bits, f.mant), -f.bias-f.mant)
	return m, f.sel(sub, b.AddI(e, -f.mant-1), e)
}

// unit is m·2^-mant, in [1, 2).
func (f *fp) unit(m val) val {
	return f.float(f.b.Or(f.b.And(m, f.ci(1<<f.mant-1)), f.ci(int64(f.bias)<<f.mant)))
}

// pack rounds q·2^e to nearest even, q's highest bit being bit top or top+1, and its lowest sticky.
func (f *fp) pack(q, e val, top int) val {
	b := f.b
	above := b.Cmp(kernel.SLe, f.ci(1<<(top+1)), q)
	drop := f.sel(above, f.ci(int64(top+1-f.mant)), f.ci(int64(top-f.mant)))
	least := int64(1 - f.bias - f.mant) // exponent of the least subnormal
	short := b.Sub(f.ci(least), e)
	drop = f.sel(b.Cmp(kernel.SLt, drop, short), short, drop)
	drop = f.sel(b.Cmp(kernel.SLt, f.ci(int64(f.width()-3)), drop), f.ci(int64(f.width()-3)), drop)
	r := b.Bin(kernel.ShrU, q, drop)
	rest := b.Sub(q, b.Bin(kernel.Shl, r, drop))
	half := b.Bin(kernel.Shl, f.ci(1), b.AddI(drop, -1))
	odd := b.And(r, f.ci(1))
	up := b.Cmp(kernel.SLt, half, b.Add(rest, odd))
	r = b.Add(r, f.sel(up, f.ci(1), f.ci(0)))
	field := f.maxInt(b.Sub(b.Add(e, drop), f.ci(least)), 0) // below 0, nothing of q is left
	v := b.Add(r, b.ShlI(field, f.mant))
	return f.sel(b.Cmp(kernel.SLt, field, f.ci(int64(2*f.bias))), f.float(v), f.inf(1))
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
