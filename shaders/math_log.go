package shaders

import "nxvk/kernel"

// split is x = m·2^k with √½ ≤ m < √2, for a positive normal x.
func (f *fp) split(x val) (m, k val) {
	b := f.bits(x)
	k = f.b.ShrSI(f.b.Sub(b, f.bits(f.c(0.70710678118654752))), f.mant)
	return f.float(f.b.Sub(b, f.b.ShlI(k, f.mant))), k
}

// logCore is ln((1+g)·2^k) for g in [√½-1, √2-1] as a pair: with s = g/(2+g), ln(1+g) = 2s + s³R(s²).
// Relative error about 2^-59, or 2^-69 when precise (binary64); 2^-40 (binary32).
func (f *fp) logCore(g pair, k val, precise bool) pair {
	kf := f.b.Conv(kernel.SToF, f.t, k)
	d := f.fastTwoSum(f.c(2), g.h)
	s := f.divPair(g, pair{d.h, f.add(d.l, g.l)})
	z := f.twoMul(s.h, s.h)
	lead := f.mulExact(s, f.c(2))
	low := lead.l
	if precise || !f.is64() {
		// 2s³/3 and 2s⁵/5 as pairs too; s² needs its cross term.
		z.l = f.mad(f.mul(s.h, f.c(2)), s.l, z.l)
		cube := f.mulPair(s, z)
		const third, fifth = 2.0 / 3, 2.0 / 5
		t := f.mulPair(cube, pair{f.c(third), f.c(pick(f, 0x1.5555555555555p-55, third-float64(float32(third))))})
		five := f.mulPair(cube, z)
		tail := f.mul(f.mul(five.h, z.h), f.poly(z.h, pick(f, log3F64, log3F32)))
		five = f.mulPair(five, pair{f.c(fifth), f.c(pick(f, -0x1.999999999999ap-56, fifth-float64(float32(fifth))))})
		t = f.addPair(t, pair{five.h, f.add(five.l, tail)})
		u := f.fastTwoSum(lead.h, t.h)
		lead.h, low = u.h, f.add(f.add(low, u.l), t.l)
	} else {
		low = f.mad(f.mul(s.h, z.h), f.poly(z.h, log1F64), low)
	}
	parts := pick(f, ln2F64[:2], ln2F32)
	sum := f.twoSum(f.mul(kf, f.c(parts[0])), lead.h)
	low = f.add(sum.l, low)
	for _, p := range parts[1:] {
		t := f.twoSum(sum.h, f.mul(kf, f.c(p)))
		sum.h, low = t.h, f.add(low, t.l)
	}
	return f.fastTwoSum(sum.h, low)
}

// logOf is ln x for any positive x, subnormal included.
func (f *fp) logOf(x val, precise bool) pair {
	sub := f.b.Cmp(kernel.SLt, f.bits(x), f.bits(f.c(pick(f, 0x1p-1022, 0x1p-126))))
	m, k := f.split(f.normal(x, sub))
	k = f.sel(sub, f.b.AddI(k, -f.mant-1), k)
	return f.logCore(f.single(f.sub(m, f.c(1))), k, precise)
}

// normal scales a subnormal x up by 2^(mant+1).
func (f *fp) normal(x, sub val) val {
	return f.sel(sub, f.mul(x, f.c(pick(f, 0x1p53, 0x1p24))), x)
}

// logEdges puts the values at and beyond the ends of log's domain, shifted by at: ln is NaN below
// at, -∞ at it, and +∞ at +∞.
func (f *fp) logEdges(x, y val, at float64) val {
	y = f.sel(f.lt(f.c(at), x), y, f.nan())
	y = f.sel(f.eq(x, f.c(at)), f.inf(-1), y)
	return f.sel(f.eq(x, f.inf(1)), x, y)
}

func (f *fp) log(x val) val {
	return f.logEdges(x, f.sum(f.logOf(x, false)), 0)
}

// log1pOf is ln(1+v) for v > -1, 1+v not overflowing.
func (f *fp) log1pOf(v pair) pair {
	u := f.twoSum(f.c(1), v.h)
	c := f.add(u.l, v.l)
	m, k := f.split(u.h)
	zero := f.b.Cmp(kernel.IEq, k, f.ci(0))
	down := f.pow2(f.b.Sub(f.ci(0), k))
	g := f.fastTwoSum(f.sub(m, f.c(1)), f.mul(c, down))
	return f.logCore(f.selPair(zero, v, g), k, false)
}

func (f *fp) log1p(x val) val {
	// Beyond 2^60 the 1 is lost anyway, and 1+x = x exactly keeps 2^-k normal.
	v := f.sel(f.lt(f.c(-1), x), x, f.c(0))
	big := f.b.Cmp(kernel.FLt, f.c(pick(f, 0x1p1000, 0x1p120)), x)
	v = f.sel(big, f.mul(v, f.c(pick(f, 0x1p-100, 0x1p-50))), v)
	r := f.log1pOf(f.single(v))
	r = f.selPair(big, f.addPair(r, f.ln2Times(pick(f, 100, 50))), r)
	return f.tinyOr(x, f.logEdges(x, f.sum(r), -1))
}

// ln2Times is n·ln 2.
func (f *fp) ln2Times(n int) pair {
	p := pick(f, ln2F64, ln2F32)
	return f.addPair(f.fastTwoSum(f.c(p[0]*float64(n)), f.c(p[1]*float64(n))), f.single(f.c(p[2]*float64(n))))
}

// asinh is ln(1 + |x| + x²/(1+√(1+x²))).
func (f *fp) asinh(x val) val {
	a := f.abs(x)
	big := f.lt(f.c(pick(f, 0x1p60, 0x1p28)), a)
	t := f.sel(big, f.c(1), a)
	sq := f.twoMul(t, t)
	root := f.sqrtPair(f.addSingle(sq, f.c(1)))
	v := f.addSingle(f.divPair(sq, f.addSingle(root, f.c(1))), t)
	r := f.selPair(big, f.addPair(f.logOf(f.sel(big, a, f.c(1)), false), f.ln2Times(1)), f.log1pOf(v))
	y := f.sel(f.eq(a, f.inf(1)), a, f.sum(r))
	return f.tinyOr(x, f.withSign(y, x))
}

// acosh is ln(1 + t + √(t(2+t))) with t = x-1; for binary64 and x ≥ 2 the logarithm's argument is
// rounded, as in fdlibm (see sinh).
func (f *fp) acosh(x val) val {
	big := f.lt(f.c(pick(f, 0x1p60, 0x1p28)), x)
	t := f.sel(f.b.And(f.lt(f.c(1), x), f.b.Not(big)), f.sub(x, f.c(1)), f.c(1))
	root := f.sqrtPair(f.mulSingle(f.twoSum(t, f.c(2)), t))
	v := f.addSingle(root, t)
	if f.is64() {
		rounded := f.add(t, f.b.Un(kernel.FSqrt, f.add(f.mul(f.c(2), t), f.mul(t, t))))
		v = f.selPair(f.le(f.c(1), t), f.single(rounded), v)
	}
	r := f.selPair(big, f.addPair(f.logOf(f.sel(big, x, f.c(1)), false), f.ln2Times(1)), f.log1pOf(v))
	y := f.sel(f.lt(f.c(1), x), f.sum(r), f.nan())
	y = f.sel(f.eq(x, f.c(1)), f.c(0), y)
	return f.sel(f.eq(x, f.inf(1)), x, y)
}

// log1pRounded is ln(1+v) for v ≥ 2, in the order of operations of fdlibm's s_log1p.c: below 1 ulp.
func (f *fp) log1pRounded(v val) val {
	u := f.add(f.c(1), v)
	c := f.b.Bin(kernel.FDiv, f.sub(f.c(1), f.sub(u, v)), u)
	m, k := f.split(u)
	kf := f.b.Conv(kernel.SToF, f.t, k)
	g := f.sub(m, f.c(1))
	h := f.mul(f.mul(f.c(0.5), g), g)
	s := f.b.Bin(kernel.FDiv, g, f.add(f.c(2), g))
	z := f.mul(s, s)
	r := f.mul(z, f.poly(z, log1F64))
	low := f.add(f.mul(s, f.add(h, r)), f.mad(kf, f.c(ln2F64[1]), c))
	return f.sub(f.mul(kf, f.c(ln2F64[0])), f.sub(f.sub(h, low), g))
}

// atanh is ½·ln(1 + 2a/(1-a)) with a = |x|; for binary64 and a ≥ ½ step by step as in fdlibm (see sinh).
func (f *fp) atanh(x val) val {
	a := f.abs(x)
	in := f.lt(a, f.c(1))
	t := f.sel(in, a, f.c(0))
	v := f.divPair(f.single(f.add(t, t)), f.twoSum(f.c(1), f.neg(t)))
	y := f.mul(f.sum(f.log1pOf(v)), f.c(0.5))
	if f.is64() {
		y = f.sel(f.le(f.c(0.5), a), f.mul(f.c(0.5), f.log1pRounded(f.sum(v))), y)
	}
	y = f.sel(in, y, f.nan())
	y = f.sel(f.eq(a, f.c(1)), f.inf(1), y)
	return f.tinyOr(x, f.withSign(y, x))
}
