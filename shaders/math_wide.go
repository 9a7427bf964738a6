package shaders

import "nxvk/kernel"

// Binary32 functions in binary64: the argument is a binary32 value widened, so nothing over- or
// underflows on the way, one value does where the native functions need a pair, and errors near
// 2^-40 leave the one rounding to binary32 at 0.5003 ulp or better.

// expParts is x = k·ln2 + r, |r| ≤ ln2/2, for |x| ≤ 700.
func (f *fp) expParts(x val) (r, k val) {
	kf, k := f.round(f.mul(x, f.c(log2e[0])))
	return f.sub(x, f.mul(kf, f.c(ln2F64[0]+ln2F64[1]))), k
}

func (f *fp) expWide(x val) val {
	r, k := f.expParts(f.max(f.min(x, 700), -700))
	return f.mul(f.poly(r, expW), f.pow2(k))
}

// expm1Parts is 2^k·p + (2^k - 1) with p = e^r-1.
func (f *fp) expm1Parts(x val) val {
	r, k := f.expParts(x)
	e := f.pow2(k)
	p := f.mad(f.mul(r, r), f.poly(r, expm1W), r)
	return f.mad(e, p, f.sub(e, f.c(1)))
}

func (f *fp) expm1Wide(x val) val {
	return f.withSign(f.expm1Parts(f.max(f.min(x, 700), -60)), x)
}

func (f *fp) sigmoidWide(x val) val {
	return f.div(f.c(1), f.add(f.c(1), f.expWide(f.neg(x))))
}

// div is the device's binary64 division: an ulp does not matter here.
func (f *fp) div(x, y val) val { return f.b.Bin(kernel.FDiv, x, y) }

func (f *fp) tanhWide(x val) val {
	a := f.min(f.abs(x), 20)
	t := f.expm1Parts(f.add(a, a))
	return f.withSign(f.div(t, f.add(t, f.c(2))), x)
}

func (f *fp) sinhWide(x val) val {
	t := f.expm1Parts(f.min(f.abs(x), 700))
	return f.withSign(f.mul(f.c(0.5), f.add(t, f.div(t, f.add(t, f.c(1))))), x)
}

func (f *fp) coshWide(x val) val {
	e := f.expWide(f.abs(x))
	return f.mul(f.c(0.5), f.add(e, f.div(f.c(1), e)))
}

// logParts is ln((1+g)·2^k) for g in [√½-1, √2-1].
func (f *fp) logParts(g, k val) val {
	s := f.div(g, f.add(f.c(2), g))
	z := f.mul(s, s)
	l := f.mad(f.mul(s, z), f.poly(z, logW), f.add(s, s))
	return f.mad(f.b.Conv(kernel.SToF, f.t, k), f.c(ln2F64[0]+ln2F64[1]), l)
}

func (f *fp) logWide(x val) val {
	m, k := f.split(x)
	return f.logEdges(x, f.logParts(f.sub(m, f.c(1)), k), 0)
}

// log1pParts is ln(1+v), v > -1.
func (f *fp) log1pParts(v val) val {
	m, k := f.split(f.add(f.c(1), v))
	near := f.b.Cmp(kernel.IEq, k, f.ci(0))
	return f.logParts(f.sel(near, v, f.sub(m, f.c(1))), k)
}

func (f *fp) log1pWide(x val) val {
	y := f.logEdges(x, f.log1pParts(x), -1)
	return f.sel(f.eq(x, f.c(0)), x, y)
}

func (f *fp) asinhWide(x val) val {
	a := f.abs(x)
	sq := f.mul(a, a)
	root := f.b.Un(kernel.FSqrt, f.add(sq, f.c(1)))
	y := f.log1pParts(f.add(a, f.div(sq, f.add(root, f.c(1)))))
	return f.withSign(f.sel(f.lt(a, f.inf(1)), y, a), x)
}

func (f *fp) acoshWide(x val) val {
	t := f.sub(x, f.c(1))
	y := f.log1pParts(f.add(t, f.b.Un(kernel.FSqrt, f.mul(t, f.add(t, f.c(2))))))
	y = f.sel(f.le(f.c(1), x), y, f.nan())
	return f.sel(f.eq(x, f.inf(1)), x, y)
}

func (f *fp) atanhWide(x val) val {
	a := f.abs(x)
	y := f.mul(f.c(0.5), f.log1pParts(f.div(f.add(a, a), f.sub(f.c(1), a))))
	y = f.sel(f.lt(a, f.c(1)), y, f.sel(f.eq(a, f.c(1)), f.inf(1), f.nan()))
	return f.withSign(y, x)
}

// reduceWide is a = k·step + r with step = π/2^n (n = 0: π; 1: π/2) and |r| ≤ step/2, for a ≥ 0; with
// shifted, a = (k+½)·π + r instead. Only the low bits of k count. An infinity gives NaN.
func (f *fp) reduceWide(a val, n int, shifted bool) (r, k val) {
	b := f.b
	scale := float64(int(2) >> n) // step in units of π/2
	half := 0.0
	if shifted {
		half = 0.5
	}
	out := f.branch(f.lt(a, f.c(1e5)), []kernel.Type{f.t, f.i}, func() []val {
		q := f.mul(a, f.c(twoOverPi[0]/scale))
		if shifted {
			q = f.sub(q, f.c(half))
		}
		kf, k := f.round(q)
		if shifted {
			kf = f.add(kf, f.c(half))
		}
		r := f.sub(f.sub(a, f.mul(kf, f.c(pio2W[0]*scale))), f.mul(kf, f.c(pio2W[1]*scale)))
		return []val{r, k}
	}, func() []val {
		l := payneHanekLimbs32(b, b.Conv(kernel.FConv, kernel.F32, a))
		top := l[0]
		if shifted {
			top = b.AddI(top, -1<<30)
		}
		// In units of π/2 the top limb has two bits before its point.
		bits := 31 - n
		k := b.ShrUI(b.AddI(top, 1<<(bits-1)), bits)
		top = b.Sub(top, b.ShlI(k, bits))
		r := f.add(f.mul(b.Conv(kernel.SToF, f.t, top), f.c(0x1p-30)), f.mul(b.Conv(kernel.UToF, f.t, l[1]), f.c(0x1p-62)))
		r = f.add(r, f.mul(b.Conv(kernel.UToF, f.t, l[2]), f.c(0x1p-94)))
		r = f.mul(r, f.c(pio2F64[0]))
		return []val{f.sel(f.lt(a, f.inf(1)), r, f.nan()), b.Conv(kernel.ZExt, kernel.I64, k)}
	})
	return out[0], out[1]
}

func (f *fp) sinPoly(r val, cs []float64) val {
	z := f.mul(r, r)
	return f.mad(f.mul(r, z), f.poly(z, cs), r)
}

// sinWide is (-1)^k·sin r.
func (f *fp) sinWide(x val) val {
	r, k := f.reduceWide(f.abs(x), 0, false)
	return f.flip(f.sinPoly(r, sinPiW), f.b.Xor(f.signBit(k, 0), f.b.And(f.bits(x), f.signMask())))
}

// cosWide is -(-1)^k·sin r, with a = (k+½)π + r.
func (f *fp) cosWide(x val) val {
	r, k := f.reduceWide(f.abs(x), 0, true)
	return f.flip(f.sinPoly(r, sinPiW), f.signBit(f.b.AddI(k, 1), 0))
}

func (f *fp) tanWide(x val) val {
	r, k := f.reduceWide(f.abs(x), 1, false)
	z := f.mul(r, r)
	s, c, odd := f.sinPoly(r, sinW), f.mad(z, f.poly(z, cosW), f.c(1)), f.odd(k)
	y := f.div(f.sel(odd, c, s), f.sel(odd, f.neg(s), c))
	return f.flip(y, f.b.And(f.bits(x), f.signMask()))
}

// atanParts is the angle of (x, y), both ≥ 0, as in atanCore.
func (f *fp) atanParts(y, x val) val {
	swap := f.lt(x, y)
	lo, hi := f.sel(swap, x, y), f.sel(swap, y, x)
	zero := f.lt(lo, f.mul(hi, f.c(0.27)))
	one := f.le(f.mul(hi, f.c(0.782)), lo)
	c := f.sel(zero, f.c(0), f.sel(one, f.c(1), f.c(0.5)))
	t := f.div(f.sub(lo, f.mul(hi, c)), f.add(hi, f.mul(lo, c)))
	z := f.mul(t, t)
	a := f.mad(f.mul(t, z), f.poly(z, atanW), t)
	a = f.add(a, f.sel(zero, f.c(0), f.sel(one, f.c(pio2F64[0]/2), f.c(atanHalfF64[0]))))
	return f.sel(swap, f.sub(f.c(pio2F64[0]), a), a)
}

func (f *fp) atanWide(x val) val {
	return f.withSign(f.atanParts(f.min(f.abs(x), 0x1p200), f.c(1)), x)
}

func (f *fp) cofactorWide(a val) val {
	return f.b.Un(kernel.FSqrt, f.mul(f.sub(f.c(1), a), f.add(f.c(1), a)))
}

func (f *fp) asinWide(x val) val {
	a := f.abs(x)
	return f.withSign(f.atanParts(a, f.cofactorWide(a)), x)
}

func (f *fp) acosWide(x val) val {
	a := f.abs(x)
	r := f.atanParts(f.cofactorWide(a), a)
	return f.sel(f.lt(x, f.c(0)), f.sub(f.c(2*pio2F64[0]), r), r)
}

// atan2Wide: see atan2. Ratios of binary32 values do not underflow in binary64.
func (f *fp) atan2Wide(y, x val) val {
	b := f.b
	v, u := f.finiteSides(f.abs(y), f.abs(x))
	u = f.sel(f.eq(f.add(u, v), f.c(0)), f.c(1), u)
	r := f.atanParts(v, u)
	left := b.Cmp(kernel.SLt, f.bits(x), f.ci(0))
	r = f.sel(left, f.sub(f.c(2*pio2F64[0]), r), r)
	return f.sel(b.Or(f.isNaN(x), f.isNaN(y)), f.nan(), f.withSign(r, y))
}

// powWide is a^y for a finite a > 0.
func (f *fp) powWide(a, y val) val {
	m, k := f.split(a)
	y = f.max(f.min(y, 0x1p70), -0x1p70)
	return f.expWide(f.mul(f.logParts(f.sub(m, f.c(1)), k), y))
}

// erfWide is erf x in binary64 to about 2^-40: a polynomial below 1, else 1-erfc.
func (f *fp) erfWide(x val) val {
	a := f.min(f.abs(x), 5)
	y := f.sel(f.lt(a, f.c(1)), f.erfSmallWide(a), f.sub(f.c(1), f.erfcPositiveWide(a)))
	return f.withSign(y, x)
}

func (f *fp) erfcWide(x val) val {
	a := f.min(f.abs(x), 10.2)
	y := f.sel(f.lt(a, f.c(0.5)), f.sub(f.c(1), f.erfSmallWide(a)), f.erfcPositiveWide(a))
	return f.sel(f.lt(x, f.c(0)), f.sub(f.c(2), y), y)
}

func (f *fp) erfSmallWide(a val) val {
	return f.mul(f.mul(a, f.c(erfLeadF64[0])), f.poly(f.mul(a, a), erfW))
}

func (f *fp) erfcPositiveWide(a val) val {
	t := f.b.Bin(kernel.FDiv, f.sub(a, f.c(2)), f.add(a, f.c(2)))
	return f.mul(f.expWide(f.neg(f.mul(a, a))), f.poly(t, erfcW))
}
