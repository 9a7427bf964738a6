package shaders

import "nxvk/kernel"

// The inverse trigonometric functions are all the angle of a point in the first quadrant.

// atanCore is the angle of (x, y), both ≥ 0 and one of them of moderate size, as a pair. With the
// smaller over the greater near c ∈ {0, ½, 1}, the angle is atan c + atan t, t = (min - c·max)/(max + c·min),
// |t| ≤ 0.275.
func (f *fp) atanCore(y, x pair) pair {
	swap := f.lt(x.h, y.h)
	lo, hi := f.selPair(swap, x, y), f.selPair(swap, y, x)
	zero := f.lt(lo.h, f.mul(hi.h, f.c(0.27)))
	one := f.le(f.mul(hi.h, f.c(0.782)), lo.h)
	c := f.sel(zero, f.c(0), f.sel(one, f.c(1), f.c(0.5)))
	t := f.divPair(f.addPair(lo, f.negPair(f.mulExact(hi, c))), f.addPair(hi, f.mulExact(lo, c)))
	base := func(i int) val {
		p, h := pick(f, pio2F64, pio2F32), pick(f, atanHalfF64, atanHalfF32)
		return f.sel(zero, f.c(0), f.sel(one, f.c(p[i]/2), f.c(h[i])))
	}
	z := f.twoMul(t.h, t.h)
	low := t.l
	lead := t.h
	if f.is64() {
		low = f.mad(f.mul(t.h, z.h), f.poly(z.h, atan1F64), low)
	} else {
		const third = 1.0 / 3
		u := f.mulPair(f.mulPair(t, z), pair{f.c(-third), f.c(float64(float32(third)) - third)})
		tail := f.mul(f.mul(f.mul(t.h, z.h), z.h), f.poly(z.h, atan2F32))
		s := f.fastTwoSum(t.h, u.h)
		lead, low = s.h, f.add(f.add(low, s.l), f.add(u.l, tail))
	}
	s := f.fastTwoSum(base(0), lead)
	a := f.fastTwoSum(s.h, f.add(f.add(s.l, base(1)), low))
	return f.selPair(swap, f.fromRight(a), a)
}

// fromRight is π/2 - a, for a ≤ π/2.
func (f *fp) fromRight(a pair) pair {
	p := pick(f, pio2F64, pio2F32)
	s := f.fastTwoSum(f.c(p[0]), f.neg(a.h))
	return f.fastTwoSum(s.h, f.add(s.l, f.sub(f.c(p[1]), a.l)))
}

// fromLeft is π - a, for a ≤ π/2.
func (f *fp) fromLeft(a pair) pair {
	p := pick(f, pio2F64, pio2F32)
	s := f.fastTwoSum(f.c(2*p[0]), f.neg(a.h))
	return f.fastTwoSum(s.h, f.add(s.l, f.sub(f.c(2*p[1]), a.l)))
}

func (f *fp) atan(x val) val {
	a := f.min(f.abs(x), pick(f, 0x1p100, 0x1p40))
	return f.tinyOr(x, f.withSign(f.sum(f.atanCore(f.single(a), f.single(f.c(1)))), x))
}

// cofactor is √(1-a²) for 0 ≤ a < 1.
func (f *fp) cofactor(a val) pair {
	return f.sqrtPair(f.mulPair(f.twoSum(f.c(1), f.neg(a)), f.fastTwoSum(f.c(1), a)))
}

func (f *fp) asin(x val) val {
	a := f.abs(x)
	in := f.lt(a, f.c(1))
	t := f.sel(in, a, f.c(0.5))
	y := f.sum(f.atanCore(f.single(t), f.cofactor(t)))
	y = f.sel(in, y, f.sel(f.eq(a, f.c(1)), f.c(pick(f, pio2F64, pio2F32)[0]), f.nan()))
	return f.tinyOr(x, f.withSign(y, x))
}

func (f *fp) acos(x val) val {
	a := f.abs(x)
	in := f.lt(a, f.c(1))
	t := f.sel(in, a, f.c(0.5))
	r := f.atanCore(f.cofactor(t), f.single(t))
	negative := f.lt(x, f.c(0))
	y := f.sum(f.selPair(negative, f.fromLeft(r), r))
	end := f.sel(negative, f.c(2*pick(f, pio2F64, pio2F32)[0]), f.c(0))
	return f.sel(in, y, f.sel(f.eq(a, f.c(1)), end, f.nan()))
}

// atan2 is the angle of (x, y) with C99's special cases.
func (f *fp) atan2(y, x val) val {
	b := f.b
	p := pick(f, pio2F64, pio2F32)
	v, u := f.finiteSides(f.abs(y), f.abs(x))
	top := f.sel(f.lt(u, v), v, u)
	none := f.eq(top, f.c(0))
	// Scaled so that the greater is near 1; a smaller one that vanishes beside it is done apart.
	k := b.AddI(b.ShrUI(f.bits(top), f.mant), -f.bias)
	k = b.Sub(f.ci(0), k)
	vs, us := f.scale(v, k), f.sel(none, f.c(1), f.scale(u, k))
	r := f.atanCore(f.single(vs), f.single(us))
	left := b.Cmp(kernel.SLt, f.bits(x), f.ci(0))
	w := f.sum(f.selPair(left, f.fromLeft(r), r))
	small := f.le(vs, f.mul(us, f.c(pick(f, 0x1p-60, 0x1p-30))))
	quotient := Div(b, v, f.sel(none, f.c(1), u))
	w = f.sel(small, f.sel(left, f.c(2*p[0]), quotient), w)
	nan := b.Or(f.isNaN(x), f.isNaN(y))
	return f.sel(nan, f.nan(), f.withSign(w, y))
}

// finiteSides are finite sides of the same angle: two infinities are as two ones, one infinity is as
// one beside nothing.
func (f *fp) finiteSides(y, x val) (val, val) {
	iy, ix := f.eq(y, f.inf(1)), f.eq(x, f.inf(1))
	any := f.b.Or(iy, ix)
	side := func(v, inf val) val { return f.sel(any, f.sel(inf, f.c(1), f.c(0)), v) }
	return side(y, iy), side(x, ix)
}

// Atan2 emits the angle of the point (x, y); x and y are both F32 or both F64. Zeros and infinities
// give what C99 says, NaN gives NaN.
func Atan2(b *kernel.Builder, y, x kernel.Value) kernel.Value {
	if b.TypeOf(x) == kernel.F32 && wide(b) {
		w := func(v val) val { return b.Conv(kernel.FConv, kernel.F64, v) }
		return narrow(b, newFP(b, kernel.F64).atan2Wide(w(y), w(x)))
	}
	return newFP(b, b.TypeOf(x)).atan2(y, x)
}
