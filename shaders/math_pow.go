package shaders

import "nxvk/kernel"

// Pow emits x^y; x and y are both F32 or both F64. The special cases are those of
// Nx.BinaryBackend, which are not quite C99's: NaN in either operand gives NaN, and an infinite y
// gives +∞ or 0 by y's sign alone (the other way round for x = ±0).
func Pow(b *kernel.Builder, x, y kernel.Value) kernel.Value {
	if b.TypeOf(x) == kernel.F32 && wide(b) {
		w := func(v val) val { return b.Conv(kernel.FConv, kernel.F64, v) }
		return narrow(b, newFP(b, kernel.F64).pow(w(x), w(y), true))
	}
	return newFP(b, b.TypeOf(x)).pow(x, y, false)
}

func (f *fp) pow(x, y val, wide bool) val {
	b := f.b
	inf := f.inf(1)
	a := f.abs(x)
	odd, whole := f.parity(y)
	finite := b.And(f.lt(f.c(0), a), f.lt(a, inf))
	power := f.powCore
	if wide {
		power = f.powWide
	}
	r := power(f.sel(finite, a, f.c(1)), y)

	// Zero or infinite x: by the sign of y.
	up := b.Xor(f.bits(f.sel(f.eq(a, inf), f.c(1), f.c(-1))), f.bits(y))
	grows := b.Cmp(kernel.SLe, f.ci(0), up)
	r = f.sel(finite, r, f.sel(grows, inf, f.c(0)))

	negative := b.Cmp(kernel.SLt, f.bits(x), f.ci(0))
	r = f.float(b.Or(f.bits(r), f.sel(b.And(negative, odd), f.signMask(), f.ci(0))))
	r = f.sel(b.And(b.And(negative, finite), b.Not(whole)), f.nan(), r)

	yInf := f.eq(f.abs(y), inf)
	towards := f.sel(f.eq(a, f.c(0)), f.neg(y), y)
	r = f.sel(yInf, f.sel(f.lt(f.c(0), towards), inf, f.c(0)), r)
	r = f.sel(f.eq(y, f.c(0)), f.c(1), r)
	return f.sel(b.Or(f.isNaN(x), f.isNaN(y)), f.nan(), r)
}

// parity says whether y is an odd integer, and whether it is an integer.
func (f *fp) parity(y val) (odd, whole val) {
	a := f.abs(y)
	whole = f.eq(f.b.Un(kernel.Trunc, a), a)
	half := f.mul(a, f.c(0.5))
	odd = f.b.And(whole, f.b.Cmp(kernel.FNe, f.b.Un(kernel.Trunc, half), half))
	return odd, whole
}

// powCore is a^y for a finite a > 0.
func (f *fp) powCore(a, y val) val {
	l := f.logOf(a, true)
	// Beyond this y the result is 1, 0 or infinite for certain.
	big := pick(f, 0x1p70, 0x1p40)
	y = f.max(f.min(y, big), -big)
	p := f.twoMul(l.h, y)
	return f.expPair(pair{p.h, f.mad(l.l, y, p.l)})
}

func (f *fp) cbrt(x val) val { return f.cubeRoot(x, true) }

func (f *fp) cbrtWide(x val) val { return f.cubeRoot(x, false) }

// cubeRoot is ∛x: x = m·2^3q with 1 ≤ m < 8, a guess by a polynomial, two steps of Halley's iteration
// (3 times the digits each), and, to round well in f's own type, one of Newton's on a pair.
func (f *fp) cubeRoot(x val, refine bool) val {
	b := f.b
	a := f.abs(x)
	finite := f.lt(a, f.inf(1))
	a = f.sel(finite, a, f.c(1))
	sub := b.Cmp(kernel.SLt, f.bits(a), f.bits(f.c(pick(f, 0x1p-1022, 0x1p-126))))
	a = f.normal(a, sub)
	// The exponent, made positive by a multiple of 3, divided by 3.
	bias := int64(f.bias)
	e := b.Sub(b.ShrUI(f.bits(a), f.mant), f.ci(bias-1200))
	e = b.Sub(e, f.sel(sub, f.ci(int64(f.mant+1)), f.ci(0)))
	q := b.ShrUI(b.Mul(e, f.ci(0xaaab)), 17)
	rem := b.Sub(e, b.MulI(q, 3))
	frac := b.And(f.bits(a), f.ci(1<<f.mant-1))
	m := f.float(b.Or(frac, b.ShlI(b.AddI(rem, f.bias), f.mant)))
	y := f.poly(m, cbrt0)
	for range 2 {
		c := f.mul(f.mul(y, y), y)
		y = f.mul(y, b.Bin(kernel.FDiv, f.add(c, f.add(m, m)), f.add(f.add(c, c), m)))
	}
	if refine {
		sq := f.twoMul(y, y)
		c := f.mulSingle(sq, y)
		r := f.sub(f.sub(m, c.h), c.l)
		y = f.add(y, b.Bin(kernel.FDiv, r, f.mul(sq.h, f.c(3))))
	}
	y = f.mul(y, f.pow2(b.AddI(q, -400)))
	y = f.sel(finite, f.withSign(y, x), x)
	return f.sel(f.eq(x, f.c(0)), x, y)
}
