package shaders

import "nxvk/kernel"

// exponential is e^x or e^x-1 as (m.h+m.l)·2^k with m near [0.7, 1.42].
type exponential struct {
	tail pair // e^r-1
	k    val  // integer
	kf   val  // the same, as a float
}

// expRange are the arguments beyond which e^x over- and underflows for certain.
func (f *fp) expRange() (lo, hi float64) {
	return pick(f, -746.0, -104.0), pick(f, 710.0, 89.0)
}

// expCore reduces x = k·ln2 + r, |r| ≤ ln2/2, and evaluates e^r-1 = r + r²/2 (+ r³/6) + tail with the
// leading terms in pairs: relative error about 2^-59 (binary64), 2^-31 (binary32). x lies within expRange.
func (f *fp) expCore(x pair) exponential {
	kf, k := f.round(f.mul(x.h, f.c(log2e[0])))
	parts := pick(f, ln2F64[:2], ln2F32)
	r := f.single(f.sub(x.h, f.mul(kf, f.c(parts[0]))))
	for _, p := range parts[1:] {
		s := f.twoSum(r.h, f.neg(f.mul(kf, f.c(p))))
		r = pair{s.h, f.add(r.l, s.l)}
	}
	r = f.fastTwoSum(r.h, f.add(r.l, x.l))
	sq := f.twoMul(r.h, r.h)
	half := f.mulExact(sq, f.c(0.5))
	low := f.add(half.l, f.mad(r.h, r.l, r.l))
	var t pair
	if f.is64() {
		t = f.fastTwoSum(r.h, half.h)
		low = f.add(low, f.mul(f.mul(sq.h, r.h), f.poly(r.h, exp3F64)))
	} else {
		cube := f.mulSingle(sq, r.h)
		third := f.mulPair(cube, pair{f.c(1.0 / 6), f.c(1.0/6 - float64(float32(1.0/6)))})
		t = f.addPair(pair{half.h, f.c(0)}, third)
		low = f.add(low, f.add(t.l, f.mul(f.mul(cube.h, r.h), f.poly(r.h, exp4F32))))
		t = f.fastTwoSum(r.h, t.h)
	}
	return exponential{f.fastTwoSum(t.h, f.add(t.l, low)), k, kf}
}

// mantissa is e^r.
func (f *fp) mantissa(e exponential) pair {
	s := f.fastTwoSum(f.c(1), e.tail.h)
	return f.fastTwoSum(s.h, f.add(s.l, e.tail.l))
}

// minusOne is (e^x-1)·2^-k.
func (f *fp) minusOne(e exponential) pair {
	// 1-2^-k, exactly or as a pair; beyond 2^-100 it does not matter.
	k := f.sel(f.b.Cmp(kernel.SLt, f.ci(100), e.k), f.ci(100), e.k)
	u := f.twoSum(f.c(1), f.neg(f.pow2(f.b.Sub(f.ci(0), k))))
	return f.addPair(u, e.tail)
}

func (f *fp) clampExp(x val) val {
	lo, hi := f.expRange()
	return f.max(f.min(x, hi), lo)
}

func (f *fp) exp(x val) val {
	e := f.expCore(f.single(f.clampExp(x)))
	return f.roundScaled(f.mantissa(e), e.k)
}

// expPair is e^(x.h+x.l).
func (f *fp) expPair(x pair) val {
	h := f.clampExp(x.h)
	e := f.expCore(pair{h, f.sel(f.eq(h, x.h), x.l, f.c(0))})
	return f.roundScaled(f.mantissa(e), e.k)
}

// tinyOr is x where |x| is so small that the function is x to rounding, else y: it keeps the sign of
// zero and keeps exact products away from underflow.
func (f *fp) tinyOr(x, y val) val {
	return f.sel(f.lt(f.abs(x), f.c(pick(f, 0x1p-55, 0x1p-26))), x, y)
}

// expm1 is, for binary64 and x ≥ ln 2, the rounded e^x less 1, as Nx.BinaryBackend computes it: up to
// 1.02 ulp off. Below, where that formula loses all digits, it is the true value.
func (f *fp) expm1(x val) val {
	_, hi := f.expRange()
	c := f.max(f.min(x, hi), pick(f, -40.0, -20.0))
	e := f.expCore(f.single(c))
	y := f.scale(f.sum(f.minusOne(e)), e.k)
	if f.is64() {
		rounded := f.sub(f.roundScaled(f.mantissa(e), e.k), f.c(1))
		y = f.sel(f.le(f.c(0.6931471805599453), x), rounded, y)
	}
	return f.tinyOr(x, y)
}

// sigmoid is 1/(1+e^-x), for binary64 in three rounded steps, as Nx.BinaryBackend computes it; for
// binary32 1/(1+E) or E/(1+E) with E = e^-|x|, rounded once.
func (f *fp) sigmoid(x val) val {
	if f.is64() {
		return Div(f.b, f.c(1), f.add(f.c(1), f.exp(f.neg(x))))
	}
	e := f.expCore(f.single(f.neg(f.min(f.abs(x), -lowest(f.expRange())))))
	m := f.mantissa(e)
	negative := f.lt(x, f.c(0))
	d := f.addSingle(f.mulExact(m, f.pow2(f.maxInt(e.k, 2-f.bias))), f.c(1))
	q := f.divPair(f.selPair(negative, m, f.single(f.c(1))), d)
	return f.roundScaled(q, f.sel(negative, e.k, f.ci(0)))
}

func lowest(lo, _ float64) float64 { return lo }

// tanh is t/(t+2) with t = e^2|x|-1.
func (f *fp) tanh(x val) val {
	a := f.min(f.abs(x), pick(f, 22.0, 10.0))
	e := f.expCore(f.single(f.add(a, a)))
	t := f.minusOne(e)
	q := f.divPair(t, f.addSingle(t, f.pow2(f.b.Sub(f.ci(1), e.k))))
	return f.tinyOr(x, f.withSign(f.sum(q), x))
}

// opposite is n·e^-r·2^-k.
func (f *fp) opposite(e exponential, n pair) pair {
	return f.mulExact(f.divPair(n, f.mantissa(e)), f.down(e.k))
}

// down is 2^-k, for k ≥ 0; beyond what can matter in a sum with 1 it stays there.
func (f *fp) down(k val) val {
	top := f.ci(pick[int64](f, 200, 60))
	return f.pow2(f.b.Sub(f.ci(0), f.sel(f.b.Cmp(kernel.SLt, top, k), top, k)))
}

// sinh is (t + t/(t+1))/2 with t = e^|x|-1; for binary64 and 1 ≤ |x| < 22 with each step rounded, as
// fdlibm and its descendants do, since Nx prints all the digits of theirs.
func (f *fp) sinh(x val) val {
	_, hi := f.expRange()
	a := f.min(f.abs(x), hi+1)
	e := f.expCore(f.single(a))
	t := f.minusOne(e)
	s := f.addPair(t, f.opposite(e, t))
	y := f.scale(f.sum(s), f.b.AddI(e.k, -1))
	if f.is64() {
		m := f.scale(f.sum(t), e.k)
		rounded := f.mul(f.c(0.5), f.add(m, f.b.Bin(kernel.FDiv, m, f.add(m, f.c(1)))))
		y = f.sel(f.b.And(f.le(f.c(1), a), f.lt(a, f.c(22))), rounded, y)
	}
	return f.tinyOr(x, f.withSign(y, x))
}

// cosh is (e^|x| + e^-|x|)/2.
func (f *fp) cosh(x val) val {
	_, hi := f.expRange()
	a := f.min(f.abs(x), hi+1)
	e := f.expCore(f.single(a))
	m := f.mantissa(e)
	s := f.addPair(m, f.opposite(e, f.single(f.down(e.k))))
	return f.scale(f.sum(s), f.b.AddI(e.k, -1))
}
