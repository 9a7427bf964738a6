package shaders

import "nxvk/kernel"

// pair is an unevaluated sum h+l, |l| at most about half an ulp of h.
type pair struct{ h, l val }

// one value as a pair.
func (f *fp) single(x val) pair { return pair{x, f.c(0)} }

// twoSum is x+y exactly (Knuth).
func (f *fp) twoSum(x, y val) pair {
	s := f.add(x, y)
	t := f.sub(s, x)
	return pair{s, f.add(f.sub(x, f.sub(s, t)), f.sub(y, t))}
}

// fastTwoSum is x+y exactly for |x| ≥ |y| or x = 0 (Dekker).
func (f *fp) fastTwoSum(x, y val) pair {
	s := f.add(x, y)
	return pair{s, f.sub(y, f.sub(s, x))}
}

// twoMul is x·y exactly, short of underflow and overflow.
func (f *fp) twoMul(x, y val) pair {
	p := f.mul(x, y)
	return pair{p, f.b.FmaExact(x, y, f.neg(p))}
}

// sum is x rounded to one value.
func (f *fp) sum(x pair) val { return f.add(x.h, x.l) }

func (f *fp) addPair(x, y pair) pair {
	s := f.twoSum(x.h, y.h)
	return f.fastTwoSum(s.h, f.add(s.l, f.add(x.l, y.l)))
}

func (f *fp) addSingle(x pair, y val) pair {
	s := f.twoSum(x.h, y)
	return f.fastTwoSum(s.h, f.add(s.l, x.l))
}

func (f *fp) negPair(x pair) pair { return pair{f.neg(x.h), f.neg(x.l)} }

func (f *fp) mulPair(x, y pair) pair {
	p := f.twoMul(x.h, y.h)
	return f.fastTwoSum(p.h, f.add(p.l, f.add(f.mul(x.h, y.l), f.mul(x.l, y.h))))
}

func (f *fp) mulSingle(x pair, y val) pair {
	p := f.twoMul(x.h, y)
	return f.fastTwoSum(p.h, f.mad(x.l, y, p.l))
}

// mulExact multiplies by a power of two.
func (f *fp) mulExact(x pair, y val) pair { return pair{f.mul(x.h, y), f.mul(x.l, y)} }

// divPair is x/y. The first quotient may be a few ulp off (a device's division may be): its
// remainder is exact whatever it is.
func (f *fp) divPair(x, y pair) pair {
	q := f.b.Bin(kernel.FDiv, x.h, y.h)
	p := f.twoMul(q, y.h)
	r := f.sub(f.sub(x.h, p.h), p.l)
	r = f.sub(f.add(r, x.l), f.mul(q, y.l))
	return f.fastTwoSum(q, f.b.Bin(kernel.FDiv, r, y.h))
}

// sqrtPair is √x for a positive normal x.
func (f *fp) sqrtPair(x pair) pair {
	s := f.b.Un(kernel.FSqrt, x.h)
	p := f.twoMul(s, s)
	r := f.add(f.sub(f.sub(x.h, p.h), p.l), x.l)
	return f.fastTwoSum(s, f.b.Bin(kernel.FDiv, f.mul(r, f.c(0.5)), s))
}

// selPair is c ? x : y.
func (f *fp) selPair(c val, x, y pair) pair { return pair{f.sel(c, x.h, y.h), f.sel(c, x.l, y.l)} }

// roundScaled is (x.h+x.l)·2^k rounded once, subnormal results included. Where the scaling will drop
// two bits or more, the sum is first rounded to odd; where it drops one, a tie to be is moved off it
// the way the rest points: so the two roundings do not add up. x.h is normal.
func (f *fp) roundScaled(x pair, k val) val {
	s := f.fastTwoSum(x.h, x.l)
	sb, lb := f.bits(s.h), f.bits(s.l)
	one := f.ci(1)
	away := f.sel(f.b.Cmp(kernel.SLt, f.b.Xor(sb, lb), f.ci(0)), f.ci(-1), one)
	field := f.b.Add(f.b.And(f.b.ShrUI(sb, f.mant), f.ci(int64(2*f.bias+1))), k)
	parity := f.sel(f.b.Cmp(kernel.IEq, field, f.ci(0)), one, f.ci(0))
	adjust := f.b.And(f.b.Cmp(kernel.IEq, f.b.And(sb, one), parity), f.b.Cmp(kernel.FNe, s.l, f.c(0)))
	adjust = f.b.And(adjust, f.b.Cmp(kernel.SLe, field, f.ci(0)))
	odd := f.float(f.b.Add(sb, f.sel(adjust, away, f.ci(0))))
	return f.scale(odd, k)
}
