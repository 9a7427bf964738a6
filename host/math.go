package host

import "math"

// The functions of f64: computed as pairs, to some 2^-62, and rounded once, so that they are within 0.51 units in the last
// place, with the exceptions of docs/NUMERICS.md, where Nx.BinaryBackend's own steps are taken. What is rounded to
// f32 or less takes the faster functions of the math package: see floatUnary.

// expPair is e^(x+lo) as a pair times 2^k, for |x| < 800.
func expPair(x, lo float64) (m pair, k int) {
	c := consts()
	n := math.RoundToEven(x * (128 / math.Ln2))
	j := int(n)
	// n has 17 bits and the first piece of ln 2 has 32: the first product and difference are exact.
	r := pair{x - float64(n*(c.ln2[0]/128)), 0}
	r = r.add(twoMul(-n, c.ln2[1]/128)).plus(lo)
	h := r.hi
	q := float64(float64(h*h) * (0.5 + float64(h*(1.0/6+float64(h*(1.0/24+float64(h*(1.0/120+float64(h*(1.0/720))))))))))
	p := fastSum(r.hi, r.lo+q)
	t := c.exps[j&127]
	return t.add(t.mul(p)), j >> 7
}

// scaled is m·2^k, rounded once, subnormals too.
func scaled(m pair, k int) float64 {
	switch {
	case k > 1100:
		return math.Copysign(math.Inf(1), m.hi)
	case k > -1022 || k == -1022 && math.Abs(m.hi) >= 1:
		return math.Ldexp(m.hi+m.lo, k)
	case k < -1200:
		return math.Copysign(0, m.hi)
	}
	unit := math.Ldexp(1, -1074-k) // of the result, in m's scale
	big := math.Copysign(math.Ldexp(unit, 52), m.hi)
	s := m.hi + big
	d := (m.hi - (s - big)) + m.lo
	switch {
	case d > unit/2:
		s += unit
	case d < -unit/2:
		s -= unit
	}
	return math.Ldexp(s-big, k)
}

// expLimit is beyond what e^x and e^-x are numbers.
const expLimit = 760

func exp(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > expLimit:
		return math.Inf(1)
	case x < -expLimit:
		return 0
	}
	return scaled(expPair(x, 0))
}

// expm1Pair is e^x - 1 for |x| < 50.
func expm1Pair(x float64) pair {
	if math.Abs(x) < 0.25 {
		q := 0.0
		for n := 16; n >= 3; n-- {
			q = float64((q + 1) * (x / float64(n)))
		}
		// q is x/3 + x²/12 + …: the rest of the series over x²/2
		sq := twoMul(x, x).half()
		return pair{x, 0}.add(sq.add(pair{float64(sq.hi * q), 0}))
	}
	m, k := expPair(x, 0)
	f := math.Ldexp(1, k)
	return pair{m.hi * f, m.lo * f}.plus(-1)
}

// expm1 from ln 2 on is the rounded e^x less 1.
func expm1(x float64) float64 {
	switch {
	case x >= math.Ln2 || x != x:
		return exp(x) - 1
	case x < -50:
		return -1
	case math.Abs(x) < 0x1p-60:
		return x
	}
	return expm1Pair(x).sum()
}

// logPair is ln(x) for positive finite x.
func logPair(x float64) pair {
	c := consts()
	m, k := math.Frexp(x)
	if m < 0.75 {
		m *= 2
		k--
	}
	j := int((m - 0.75) * (256 / 0.75))
	r := math.FMA(m, c.inv[j], -1) // exact: m has 53 bits, inv 9, and 1 cancels their first 8
	sq := twoMul(r, r).half()
	q := 0.0
	for n := 10; n >= 3; n-- {
		q = float64((1/float64(n))*signOf(n)) + float64(q*r)
	}
	s := fastSum(r, -sq.hi)
	s = fastSum(s.hi, s.lo-sq.lo+float64(float64(r*r)*float64(r*q)))
	if kf := float64(k); k != 0 {
		s = twoSum(float64(kf*c.ln2[0]), 0).add(c.logs[j].add(s.add(twoMul(kf, c.ln2[1]))))
		return s
	}
	return c.logs[j].add(s)
}

// signOf is the sign of the n-th term of ln(1+r).
func signOf(n int) float64 { return float64(n%2*2 - 1) }

// log1pPair is ln(1+v) for 1+v > 0.
func log1pPair(v pair) pair {
	w := twoSum(1, v.hi)
	return logPair(w.hi).plus((w.lo + v.lo) / w.hi)
}

func log(x float64) float64 {
	switch {
	case x != x || math.IsInf(x, 1):
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	return logPair(x).sum()
}

func log1p(x float64) float64 {
	switch {
	case x != x || math.IsInf(x, 1) || math.Abs(x) < 0x1p-60:
		return x
	case x < -1:
		return math.NaN()
	case x == -1:
		return math.Inf(-1)
	}
	return log1pPair(pair{x, 0}).sum()
}

func sigmoid(x float64) float64 { return 1 / (1 + exp(-x)) }

// sinh between 1 and 22 takes fdlibm's steps.
func sinh(x float64) float64 {
	a := math.Abs(x)
	var y float64
	switch {
	case x != x || a < 0x1p-28:
		return x
	case a > expLimit:
		return math.Copysign(math.Inf(1), x)
	case a >= 1 && a < 22:
		t := expm1Pair(a).sum()
		y = 0.5 * (t + t/(t+1))
	case a < 1:
		t := expm1Pair(a)
		y = t.add(t.div(t.plus(1))).half().sum()
	default:
		m, k := expPair(a, 0)
		y = scaled(m, k-1)
	}
	return math.Copysign(y, x)
}

func cosh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case x != x:
		return x
	case a > expLimit:
		return math.Inf(1)
	}
	m, k := expPair(a, 0)
	if k < 60 {
		f := math.Ldexp(1, -2*k)
		r := pair{1, 0}.div(m)
		m = m.add(pair{r.hi * f, r.lo * f})
	}
	return scaled(m, k-1)
}

func tanh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case x != x || a < 0x1p-28:
		return x
	case a > 22:
		return math.Copysign(1, x)
	}
	t := expm1Pair(2 * a)
	return math.Copysign(t.div(t.plus(2)).sum(), x)
}

func asinh(x float64) float64 {
	a := math.Abs(x)
	var y pair
	switch {
	case x != x || math.IsInf(x, 0) || a < 0x1p-28:
		return x
	case a > 0x1p60:
		y = logPair(a).add(ln2Pair())
	default:
		sq := twoMul(a, a)
		root := sq.plus(1).sqrt()
		y = log1pPair(sq.div(root.plus(1)).plus(a))
	}
	return math.Copysign(y.sum(), x)
}

func ln2Pair() pair {
	c := consts()
	return fastSum(c.ln2[0], c.ln2[1])
}

// acosh from 2 on rounds what it takes the logarithm of, as fdlibm does.
func acosh(x float64) float64 {
	switch {
	case x < 1:
		return math.NaN()
	case x != x || math.IsInf(x, 1):
		return x
	case x > 0x1p60:
		return logPair(x).add(ln2Pair()).sum()
	}
	t := x - 1
	if t >= 1 {
		return log1pPair(pair{t + math.Sqrt(float64(2*t)+float64(t*t)), 0}).sum()
	}
	return log1pPair(twoSum(t, 2).times(t).sqrt().plus(t)).sum()
}

// atanh from ½ on takes fdlibm's steps, of which the math package has the logarithm.
func atanh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case x != x || a < 0x1p-28:
		return x
	case a > 1:
		return math.NaN()
	case a == 1:
		return math.Copysign(math.Inf(1), x)
	}
	v := pair{a + a, 0}.div(twoSum(1, -a))
	if a >= 0.5 {
		return math.Copysign(0.5*math.Log1p(v.sum()), x)
	}
	return math.Copysign(0.5*log1pPair(v).sum(), x)
}

// cbrt corrects the math package's, which is within an ulp, by one step of Newton's.
func cbrt(x float64) float64 {
	y := math.Cbrt(x)
	if y == 0 || math.IsInf(y, 0) || y != y {
		return y
	}
	_, e := math.Frexp(x)
	e -= e % 3
	x, y = math.Ldexp(x, -e), math.Ldexp(y, -e/3)
	r := twoMul(y, y).times(y).neg().plus(x)
	return math.Ldexp(y+r.hi/(3*y*y), e/3)
}

// pow is the power, but for NaN in either operand, which is NaN, and infinite exponents, which yield +∞ or 0 by
// their sign alone (0 and +∞ for a base of ±0).
func pow(x, y float64) float64 {
	switch {
	case x != x || y != y:
		return math.NaN()
	case math.IsInf(y, 1):
		if x == 0 {
			return 0
		}
		return y
	case math.IsInf(y, -1):
		if x == 0 {
			return math.Inf(1)
		}
		return 0
	case x == 0 || math.IsInf(x, 0) || y == 0 || x == 1 || x < 0 && y != math.Trunc(y):
		return math.Pow(x, y)
	}
	sign := 1.0
	if x < 0 && math.Mod(y, 2) != 0 {
		sign = -1
	}
	l := logPair(math.Abs(x))
	switch est := l.hi * y; {
	case est > expLimit:
		return math.Copysign(math.Inf(1), sign)
	case est < -expLimit:
		return math.Copysign(0, sign)
	}
	p := l.times(y)
	m, k := expPair(p.hi, p.lo)
	return sign * scaled(m, k)
}

func erf(x float64) float64  { return math.Erf(x) }
func erfc(x float64) float64 { return math.Erfc(x) }

// erfInv is the approximation by M. Giles (2010, single precision) that Nx defines the inverse of erf by.
func erfInv(x float64) float64 {
	switch {
	case x == 1:
		return math.Inf(1)
	case x == -1:
		return math.Inf(-1)
	case x == 0:
		return 0
	}
	w := -log(float64((1 - x) * (1 + x)))
	c := gilesCentral[:]
	if w < 5 {
		w -= 2.5
	} else {
		w, c = math.Sqrt(w)-3, gilesTail[:]
	}
	p := c[0]
	for _, k := range c[1:] {
		p = float64(p*w) + k
	}
	return p * x
}

var (
	gilesCentral = [...]float64{2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941}
	gilesTail    = [...]float64{-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682}
)
