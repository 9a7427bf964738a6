package shaders

import "nxvk/kernel"

// erf and erfc have their true values (erfc of binary64 from 1.25 on in fdlibm's steps: see sinh). erf_inv follows the definition that Nx.BinaryBackend
// computes, M. Giles's approximation of single precision ("Approximating the erfinv function",
// 2010), step by step, since the digits that it prints are that approximation's.

// erfSmall is erf a for 0 ≤ a ≤ 1: a·2/√π·(1 - z/3 + z²P(z)), z = a².
func (f *fp) erfSmall(a val) pair {
	z := f.twoMul(a, a)
	const third = 1.0 / 3
	t := f.mulPair(z, pair{f.c(-third), f.c(pick(f, -0x1.5555555555555p-56, float64(float32(third))-third))})
	s := f.fastTwoSum(f.c(1), t.h)
	tail := f.mul(f.mul(z.h, z.h), f.poly(z.h, pick(f, erf2F64, erf2F32)))
	s = f.fastTwoSum(s.h, f.add(f.add(s.l, t.l), tail))
	lead := pick(f, erfLeadF64, erfLeadF32)
	return f.mulPair(f.mulSingle(s, a), pair{f.c(lead[0]), f.c(lead[1])})
}

// erfcLarge is erfc a for a ≥ ½ as m·2^k: e^(-a²)·g(1/a²)/a. Beyond 30 (12) nothing is left of it.
func (f *fp) erfcLarge(a val) (m pair, k val) {
	a = f.min(a, pick(f, 30.0, 12.0))
	sq := f.twoMul(a, a)
	e := f.expCore(pair{f.max(f.neg(sq.h), pick(f, -1000.0, -160.0)), f.neg(sq.l)})
	s := f.b.Bin(kernel.FDiv, f.c(1), sq.h)
	p := pick(f,
		[][]float64{erfc0F64, erfc1F64, erfc2F64, erfc3F64, erfc4F64, erfc5F64, erfc6F64},
		[][]float64{erfc0F32, erfc1F32, erfc2F32, erfc3F32, erfc4F32, erfc5F32, erfc6F32})
	g := pick(f,
		[][]float64{erfcMid0F64, erfcMid1F64, erfcMid2F64, erfcMid3F64, erfcMid4F64, erfcMid5F64, erfcMid6F64},
		[][]float64{erfcMid0F32, erfcMid1F32, erfcMid2F32, erfcMid3F32, erfcMid4F32, erfcMid5F32, erfcMid6F32})
	// choose picks by the interval that s lies in.
	var above [6]val
	for i := range above {
		above[i] = f.le(f.c(erfcEdges[i+1]), s)
	}
	choose := func(of func(i int) float64) val {
		v := f.c(of(0))
		for i := range above {
			v = f.sel(above[i], f.c(of(i+1)), v)
		}
		return v
	}
	n := 0
	for _, c := range p {
		n = max(n, len(c))
	}
	u := f.sub(s, choose(func(i int) float64 { return (erfcEdges[i] + erfcEdges[i+1]) / 2 }))
	var v val
	for j := n - 1; j >= 0; j-- {
		c := choose(func(i int) float64 {
			if j < len(p[i]) {
				return p[i][j]
			}
			return 0
		})
		if v == 0 {
			v = c
		} else {
			v = f.mad(v, u, c)
		}
	}
	t := f.fastTwoSum(choose(func(i int) float64 { return g[i][0] }), f.mul(u, v))
	t.l = f.add(t.l, choose(func(i int) float64 { return g[i][1] }))
	return f.divPair(f.mulPair(f.mantissa(e), t), f.single(a)), e.k
}

func (f *fp) erf(x val) val {
	a := f.abs(x)
	out := f.branch(f.lt(a, f.c(pick(f, 0.5, 1.0))), []kernel.Type{f.t}, func() []val {
		return []val{f.sum(f.erfSmall(a))}
	}, func() []val {
		m, k := f.erfcLarge(f.min(a, 7))
		e := f.mulExact(m, f.pow2(k))
		s := f.fastTwoSum(f.c(1), f.neg(e.h))
		return []val{f.add(s.h, f.sub(s.l, e.l))}
	})
	// Below 2^-55 the product with 2/√π is all there is. It is taken scaled up, since exact products underflow.
	small := f.lt(a, f.c(pick(f, 0x1p-60, 0x1p-30)))
	lead := pick(f, erfLeadF64, erfLeadF32)
	up := pick(f, 500, 60)
	v := f.mul(f.sel(small, a, f.c(0)), f.pow2(f.ci(int64(up))))
	tiny := f.roundScaled(f.mulSingle(pair{f.c(lead[0]), f.c(lead[1])}, v), f.ci(int64(-up)))
	return f.withSign(f.sel(small, tiny, out[0]), x)
}

func (f *fp) erfc(x val) val {
	a := f.abs(x)
	negative := f.lt(x, f.c(0))
	out := f.branch(f.lt(a, f.c(0.5)), []kernel.Type{f.t}, func() []val {
		e := f.erfSmall(a)
		e = f.selPair(negative, e, f.negPair(e))
		s := f.fastTwoSum(f.c(1), e.h)
		return []val{f.add(s.h, f.add(s.l, e.l))}
	}, func() []val {
		m, k := f.erfcLarge(a)
		e := f.mulExact(m, f.pow2(f.maxInt(k, 2-f.bias)))
		s := f.fastTwoSum(f.c(2), f.neg(e.h))
		y := f.roundScaled(m, k)
		if f.is64() {
			y = f.sel(f.le(f.c(1.25), a), f.erfcRounded(a), y)
		}
		return []val{f.sel(negative, f.add(s.h, f.sub(s.l, e.l)), y)}
	})
	return f.sel(f.isNaN(x), x, out[0])
}

// The rational approximations of fdlibm's s_erf.c (Sun Microsystems, 1993) to ln(x·e^(x²)·erfc x) + 0.5625
// in 1/x², for 1.25 ≤ x < 1/0.35 and beyond.
var (
	erfcRA = []float64{-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e+01, -6.23753324503260060396e+01, -1.62396669462573470355e+02, -1.84605092906711035994e+02, -8.12874355063065934246e+01, -9.81432934416914548592e+00, 0}
	erfcSA = []float64{1, 1.96512716674392571292e+01, 1.37657754143519042600e+02, 4.34565877475229228821e+02, 6.45387271733267880336e+02, 4.29008140027567833386e+02, 1.08635005541779435134e+02, 6.57024977031928170135e+00, -6.04244152148580987438e-02}
	erfcRB = []float64{-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e+01, -1.60636384855821916062e+02, -6.37566443368389627722e+02, -1.02509513161107724954e+03, -4.83519191608651397019e+02, 0, 0}
	erfcSB = []float64{1, 3.03380607434824582924e+01, 3.25792512996573918826e+02, 1.53672958608443695994e+03, 3.19985821950859553908e+03, 2.55305040643316442583e+03, 4.74528541206955367215e+02, -2.24409524465858183362e+01, 0}
)

// erfcRounded is erfc a for a ≥ 1.25 in fdlibm's steps, each rounded (see sinh): e^(-z²-0.5625)·e^((z-a)(z+a)+R/S)/a
// with z the high half of a.
func (f *fp) erfcRounded(a val) val {
	a = f.min(a, 28)
	s := f.b.Bin(kernel.FDiv, f.c(1), f.mul(a, a))
	near := f.lt(a, f.c(1/0.35))
	rational := func(x, y []float64) val {
		v := f.c(0)
		for i := len(x) - 1; i >= 0; i-- {
			c := f.sel(near, f.c(x[i]), f.c(y[i]))
			if x[i] == y[i] {
				c = f.c(x[i])
			}
			v = f.mad(s, v, c)
		}
		return v
	}
	q := f.b.Bin(kernel.FDiv, rational(erfcRA, erfcRB), rational(erfcSA, erfcSB))
	z := f.float(f.b.And(f.bits(a), f.ci(-1<<32)))
	r := f.mul(f.exp(f.sub(f.mul(f.neg(z), z), f.c(0.5625))), f.exp(f.mad(f.sub(z, a), f.add(z, a), q)))
	return f.b.Bin(kernel.FDiv, r, a)
}

func (f *fp) maxInt(k val, lo int) val {
	return f.sel(f.b.Cmp(kernel.SLt, k, f.ci(int64(lo))), f.ci(int64(lo)), k)
}

// Giles's two polynomials in w - 5/2 and √w - 3, w = -ln((1-x)(1+x)), highest order first.
var (
	erfInvCentral = []float64{2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941}
	erfInvTail    = []float64{-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682}
)

func (f *fp) erfInv(x val) val {
	if !f.is64() {
		return f.gilesPair(x)
	}
	return f.giles(x, f.log)
}

func (f *fp) erfInvWide(x val) val { return f.giles(x, f.logWide) }

// gilesPair is giles for binary32 without binary64, in pairs: (1-x)(1+x) is 1-x², which a pair holds.
func (f *fp) gilesPair(x val) val {
	a := f.abs(x)
	in := f.lt(a, f.c(1))
	t := f.sel(in, x, f.c(0))
	sq := f.twoMul(t, t)
	v := f.addSingle(pair{f.neg(sq.h), f.neg(sq.l)}, f.c(1))
	m, k := f.split(v.h)
	g := f.fastTwoSum(f.sub(m, f.c(1)), f.mul(v.l, f.pow2(f.b.Sub(f.ci(0), k))))
	w := f.logCore(g, k, false)
	w = pair{f.neg(w.h), f.neg(w.l)}
	central := f.lt(w.h, f.c(5))
	root := f.sqrtPair(f.selPair(central, f.single(f.c(9)), w))
	u := f.selPair(central, f.addSingle(w, f.c(-2.5)), f.addSingle(root, f.c(-3)))
	constant := func(i int) pair {
		c, d := erfInvCentral[i], erfInvTail[i]
		low := func(c float64) val { return f.c(c - float64(float32(c))) }
		return pair{f.sel(central, f.c(c), f.c(d)), f.sel(central, low(c), low(d))}
	}
	const plain = 3 // coefficients whose share is too small for pairs
	p := constant(0)
	for i := 1; i < len(erfInvCentral); i++ {
		c := constant(i)
		if i < plain {
			p = f.single(f.mad(p.h, u.h, c.h))
		} else {
			p = f.addPair(f.mulPair(p, u), c)
		}
	}
	y := f.sel(f.lt(a, f.c(0x1p-60)), f.mul(p.h, x), f.sum(f.mulSingle(p, t)))
	y = f.sel(f.eq(a, f.c(1)), f.withSign(f.inf(1), x), f.sel(in, y, f.nan()))
	return f.sel(f.eq(x, f.c(0)), f.c(0), y)
}

func (f *fp) giles(x val, log func(val) val) val {
	w := f.neg(log(f.mul(f.sub(f.c(1), x), f.add(f.c(1), x))))
	central := f.lt(w, f.c(5))
	u := f.sel(central, f.sub(w, f.c(2.5)), f.sub(Sqrt(f.b, f.sel(central, f.c(5), w)), f.c(3)))
	var p val
	for i := range erfInvCentral {
		c := f.sel(central, f.c(erfInvCentral[i]), f.c(erfInvTail[i]))
		if i == 0 {
			p = c
		} else {
			p = f.mad(p, u, c)
		}
	}
	y := f.mul(p, x)
	y = f.sel(f.eq(f.abs(x), f.c(1)), f.withSign(f.inf(1), x), y)
	return f.sel(f.eq(x, f.c(0)), f.c(0), y)
}
