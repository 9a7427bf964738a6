package shaders

import "nxvk/kernel"

// sin and cos are functions of |x| = q·π/2 + r, |r| ≤ π/4 and a little; q's low two bits count.

// reduce yields r and q of a ≥ 0: Cody and Waite's subtraction of π/2 in three parts, each product
// exact, where q is small; else Payne and Hanek's product with the bits of 2/π. An infinity gives NaN.
func (f *fp) reduce(a val) (r pair, q val) {
	near := f.lt(a, f.c(pick(f, 1e6, 1e4)))
	out := f.branch(near, []kernel.Type{f.t, f.t, f.i}, func() []val {
		kf, k := f.round(f.mul(a, f.c(twoOverPi[0])))
		p := pick(f, pio2F64, pio2F32)
		p1, p2 := f.twoMul(kf, f.c(p[0])), f.twoMul(kf, f.c(p[1]))
		s := f.twoSum(f.sub(a, p1.h), f.neg(p1.l))
		u := f.twoSum(s.h, f.neg(p2.h))
		l := f.sub(f.sub(f.add(s.l, u.l), p2.l), f.mul(kf, f.c(p[2])))
		r := f.fastTwoSum(u.h, l)
		return []val{r.h, r.l, k}
	}, func() []val {
		var r pair
		var q val
		if f.is64() {
			r, q = f.payneHanek64(a)
		} else {
			r, q = f.payneHanek32(a)
		}
		inf := f.b.Not(f.lt(a, f.inf(1)))
		return []val{f.sel(inf, f.nan(), r.h), r.l, q}
	})
	return pair{out[0], out[1]}, out[2]
}

// window yields need words of the bits of 2/π as a number of words of width w, beginning pos bits
// after the point 64 bits before the binary point, most significant first; span is the greatest pos/w.
func window(b *kernel.Builder, t kernel.Type, pos val, need, span int) []val {
	w := t.Bits()
	log := 5
	if w == 64 {
		log = 6
	}
	all := make([]val, 0, span+need+1)
	for i := 0; i <= span+need; i++ {
		all = append(all, b.ConstBits(t, twoOverPiWord(i-64/w, w)))
	}
	// A barrel shifter: each bit of the word index moves the words by that much or not at all.
	word := b.ShrUI(pos, log)
	bit := 1
	for bit*2 <= span {
		bit *= 2
	}
	for ; bit > 0; bit /= 2 {
		on := b.Cmp(kernel.INe, b.And(word, b.ConstInt(t, int64(bit))), b.Zero(t))
		n := need + bit
		next := make([]val, n)
		for i := range next {
			moved := b.Zero(t)
			if i+bit < len(all) {
				moved = all[i+bit]
			}
			next[i] = b.Select(on, moved, all[i])
		}
		all = next
	}
	sh := b.And(pos, b.ConstInt(t, int64(w-1)))
	rest := b.Sub(b.ConstInt(t, int64(w-1)), sh)
	out := make([]val, need)
	for i := range out {
		low := b.Bin(kernel.ShrU, b.ShrUI(all[i+1], 1), rest)
		out[i] = b.Or(b.Bin(kernel.Shl, all[i], sh), low)
	}
	return out
}

// twoOverPiWord is word i of w bits of 2/π; words before the binary point are zero.
func twoOverPiWord(i, w int) uint64 {
	at := func(i int) uint64 {
		if i < 0 {
			return 0
		}
		return uint64(twoOverPiBits[i])
	}
	if w == 32 {
		return at(i)
	}
	return at(2*i)<<32 | at(2*i+1)
}

// payneHanekLimbs32 is |x|·2/π modulo 4 for a binary32 a ≥ 2^-7 or so, as 32-bit limbs, most
// significant first: 2 integer bits and 94 of fraction.
func payneHanekLimbs32(b *kernel.Builder, a val) [3]val {
	bits := b.BitsTo(kernel.I32, a)
	m := b.Or(b.And(bits, b.I32(0x7fffff)), b.I32(0x800000))
	// a = m·2^e; the window begins at the bit of weight 2^(1-e): 64+(e-2) bits from the start.
	e := b.AddI(b.ShrUI(bits, 23), -127-23)
	w := window(b, kernel.I32, b.AddI(e, 64-2), 3, 5)
	lo := b.Mul(m, w[2])
	t1 := b.Mul(m, w[1])
	mid := b.Add(t1, b.Bin(kernel.UMulHi, m, w[2]))
	carry := b.Select(b.Cmp(kernel.ULt, mid, t1), b.I32(1), b.I32(0))
	hi := b.Add(b.Add(b.Mul(m, w[0]), b.Bin(kernel.UMulHi, m, w[1])), carry)
	return [3]val{hi, mid, lo}
}

func (f *fp) payneHanek32(a val) (pair, val) {
	b := f.b
	l := payneHanekLimbs32(b, a)
	q := b.And(b.ShrUI(b.AddI(l[0], 1<<29), 30), b.I32(3))
	top := b.Sub(l[0], b.ShlI(q, 30))
	// 16 bits at a time are exact in binary32; the top ones are signed.
	r := f.single(f.mul(b.Conv(kernel.SToF, f.t, b.ShrSI(top, 16)), f.c(0x1p-14)))
	add := func(half val, weight float64) {
		s := f.twoSum(r.h, f.mul(b.Conv(kernel.SToF, f.t, half), f.c(weight)))
		r = pair{s.h, f.add(r.l, s.l)}
	}
	half := b.I32(0xffff)
	add(b.And(top, half), 0x1p-30)
	add(b.ShrUI(l[1], 16), 0x1p-46)
	add(b.And(l[1], half), 0x1p-62)
	add(b.ShrUI(l[2], 16), 0x1p-78)
	r = f.fastTwoSum(r.h, r.l)
	return f.mulPair(r, pair{f.c(pio2F32[0]), f.c(pio2F32[1])}), q
}

func (f *fp) payneHanek64(a val) (pair, val) {
	b := f.b
	mask := f.ci(0xffffffff)
	bits := f.bits(a)
	m := b.Or(b.And(bits, f.ci(1<<52-1)), f.ci(1<<52))
	e := b.AddI(b.ShrUI(bits, 52), -1023-52)
	w := window(b, kernel.I64, b.AddI(e, 64-2), 3, 16)
	// The product modulo 2^192, in columns of 32 bits, lowest first.
	var limb, col [6]val
	for i := range limb {
		limb[i] = b.And(w[2-i/2], mask)
		if i%2 == 1 {
			limb[i] = b.ShrUI(w[2-i/2], 32)
		}
		col[i] = f.ci(0)
	}
	for j, mj := range []val{b.And(m, mask), b.ShrUI(m, 32)} {
		for i := 0; i+j < 6; i++ {
			p := b.Mul(mj, limb[i])
			col[i+j] = b.Add(col[i+j], b.And(p, mask))
			if i+j+1 < 6 {
				col[i+j+1] = b.Add(col[i+j+1], b.ShrUI(p, 32))
			}
		}
	}
	for i := 0; i < 5; i++ {
		col[i+1] = b.Add(col[i+1], b.ShrUI(col[i], 32))
		col[i] = b.And(col[i], mask)
	}
	top := b.And(col[5], mask)
	q := b.ShrUI(b.AddI(top, 1<<29), 30)
	top = b.Sub(top, b.ShlI(q, 30))
	r := f.single(f.mul(b.Conv(kernel.SToF, f.t, top), f.c(0x1p-30)))
	weight := 0x1p-62
	for i := 4; i > 0; i-- {
		s := f.twoSum(r.h, f.mul(b.Conv(kernel.SToF, f.t, col[i]), f.c(weight)))
		r = pair{s.h, f.add(r.l, s.l)}
		weight *= 0x1p-32
	}
	r = f.fastTwoSum(r.h, r.l)
	return f.mulPair(r, pair{f.c(pio2F64[0]), f.c(pio2F64[1])}), q
}

// sinCore is sin r = r - r³/6 + …, the written terms as pairs.
func (f *fp) sinCore(r, z pair) pair {
	const sixth = 1.0 / 6
	t := f.mulPair(f.mulPair(r, z), pair{f.c(-sixth), f.c(pick(f, -0x1.5555555555555p-57, float64(float32(sixth))-sixth))})
	tail := f.mul(f.mul(f.mul(r.h, z.h), z.h), f.poly(z.h, pick(f, sin2F64, sin2F32)))
	s := f.fastTwoSum(r.h, t.h)
	return f.fastTwoSum(s.h, f.add(f.add(s.l, r.l), f.add(t.l, tail)))
}

// cosCore is cos r = 1 - r²/2 + r⁴/24 …, the written terms as pairs.
func (f *fp) cosCore(z pair) pair {
	half := f.mulExact(z, f.c(-0.5))
	s := f.fastTwoSum(f.c(1), half.h)
	const c = 1.0 / 24
	t := f.mulPair(f.mulPair(z, z), pair{f.c(c), f.c(pick(f, 0x1.5555555555555p-59, c-float64(float32(c))))})
	u := f.fastTwoSum(s.h, t.h)
	tail := f.mul(f.mul(f.mul(z.h, z.h), z.h), f.poly(z.h, pick(f, cos3F64, cos3F32)))
	return f.fastTwoSum(u.h, f.add(f.add(u.l, s.l), f.add(half.l, f.add(t.l, tail))))
}

// odd and negative read bits of the quadrant.
func (f *fp) odd(q val) val {
	return f.b.Cmp(kernel.INe, f.b.And(q, f.ci(1)), f.ci(0))
}

// signBit is bit n of q moved to the sign's place.
func (f *fp) signBit(q val, n int) val {
	return f.b.ShlI(f.b.ShrUI(q, n), f.width()-1)
}

func (f *fp) flip(x, sign val) val { return f.float(f.b.Xor(f.bits(x), sign)) }

func (f *fp) sin(x val) val {
	r, q := f.reduce(f.abs(x))
	z := f.mulPair(r, r)
	y := f.sum(f.selPair(f.odd(q), f.cosCore(z), f.sinCore(r, z)))
	y = f.flip(y, f.b.Xor(f.signBit(q, 1), f.b.And(f.bits(x), f.signMask())))
	return f.tinyOr(x, y)
}

func (f *fp) cos(x val) val {
	r, q := f.reduce(f.abs(x))
	z := f.mulPair(r, r)
	y := f.sum(f.selPair(f.odd(q), f.sinCore(r, z), f.cosCore(z)))
	return f.flip(y, f.signBit(f.b.AddI(q, 1), 1))
}

func (f *fp) tan(x val) val {
	r, q := f.reduce(f.abs(x))
	z := f.mulPair(r, r)
	s, c, odd := f.sinCore(r, z), f.cosCore(z), f.odd(q)
	y := f.sum(f.divPair(f.selPair(odd, c, s), f.selPair(odd, f.negPair(s), c)))
	return f.tinyOr(x, f.flip(y, f.b.And(f.bits(x), f.signMask())))
}
