package host

import (
	"math"
	"math/big"
	"sync"
)

// reduced is x - n·π/2 for the n that makes it least, and n modulo 4.
func reduced(x float64) (r pair, n int) {
	if math.Abs(x) <= math.Pi/4 {
		return pair{x, 0}, 0
	}
	if math.Abs(x) > 1<<20 {
		return reducedFar(x)
	}
	c := consts()
	q := math.RoundToEven(x * (2 / math.Pi))
	p := twoMul(-q, c.pio2[0])
	r = twoSum(x, p.hi).plus(p.lo)
	r = r.add(twoMul(-q, c.pio2[1]))
	r = r.add(twoMul(-q, c.pio2[2]))
	return r, int(q) & 3
}

// farPi is π/2 to as many bits as the remainder of the largest f64 takes.
var farPi = sync.OnceValue(func() *big.Float {
	p := bigPi(1300)
	return p.SetMantExp(p, -1)
})

// reducedFar is reduced for large x, in 1,300 bits.
func reducedFar(x float64) (r pair, n int) {
	b := new(big.Float).SetPrec(1300).SetFloat64(x)
	q := new(big.Float).SetPrec(1300).Quo(b, farPi())
	half := 0.5
	if x < 0 {
		half = -0.5
	}
	k, _ := q.Add(q, big.NewFloat(half)).Int(nil)
	b.Sub(b, new(big.Float).SetPrec(1300).Mul(new(big.Float).SetInt(k), farPi()))
	low := new(big.Int).And(k, big.NewInt(3))
	return pairOf(b), int(low.Int64())
}

// sinCosPair are the sine and the cosine of r, |r| ≤ π/4 and a little, by those of the nearest 64th.
func sinCosPair(r pair) (s, c pair) {
	k := consts()
	neg := r.hi < 0
	if neg {
		r = r.neg()
	}
	j := int(math.RoundToEven(r.hi * 64))
	t := r.plus(-float64(j) / 64)
	sq := float64(t.hi * t.hi)
	// sin t = t + t³·a, cos t = 1 + b
	a := -1.0/6 + float64(sq*(1.0/120+float64(sq*(-1.0/5040))))
	sin := fastSum(t.hi, t.lo+float64(float64(t.hi*sq)*a))
	half := twoMul(t.hi, t.hi).half()
	cos := fastSum(-half.hi, -half.lo-float64(t.hi*t.lo)+float64(float64(sq*sq)*(1.0/24+float64(sq*(-1.0/720+float64(sq*(1.0/40320)))))))
	S, C := k.sines[j], k.cosi[j]
	s = S.add(C.mul(sin).add(S.mul(cos)))
	c = C.add(C.mul(cos).add(S.mul(sin).neg()))
	if neg {
		s = s.neg()
	}
	return s, c
}

// sinCos are the sine and the cosine of a finite x, as pairs.
func sinCos(x float64) (s, c pair) {
	r, n := reduced(x)
	s, c = sinCosPair(r)
	switch n {
	case 1:
		s, c = c, s.neg()
	case 2:
		s, c = s.neg(), c.neg()
	case 3:
		s, c = c.neg(), s
	}
	return s, c
}

func sin(x float64) float64 {
	switch {
	case x != x || math.Abs(x) < 0x1p-28:
		return x
	case math.IsInf(x, 0):
		return math.NaN()
	}
	s, _ := sinCos(x)
	return s.sum()
}

func cos(x float64) float64 {
	if x != x || math.IsInf(x, 0) {
		return math.NaN()
	}
	_, c := sinCos(x)
	return c.sum()
}

func tan(x float64) float64 {
	switch {
	case x != x || math.Abs(x) < 0x1p-28:
		return x
	case math.IsInf(x, 0):
		return math.NaN()
	}
	s, c := sinCos(x)
	return s.div(c).sum()
}

// atan2Pair is the angle of (x, y), neither of them far from the other's or 1's size: the math package's angle, turned by what its
// sine and cosine leave over.
func atan2Pair(y, x pair) pair {
	a := math.Atan2(y.hi, x.hi)
	s, c := sinCos(a)
	d := y.mul(c).add(x.mul(s).neg()).div(x.mul(c).add(y.mul(s)))
	return pair{a, 0}.add(d)
}

func atan(x float64) float64 {
	switch a := math.Abs(x); {
	case x != x || a < 0x1p-28:
		return x
	case a > 0x1p100:
		return math.Copysign(math.Pi/2, x)
	}
	return atan2Pair(pair{x, 0}, pair{1, 0}).sum()
}

func atan2(y, x float64) float64 {
	if math.Signbit(y) { // Go's own loses the sign where y/x vanishes
		return -atan2Upper(-y, x)
	}
	return atan2Upper(y, x)
}

// atan2Upper is atan2 for y that are not negative.
func atan2Upper(y, x float64) float64 {
	a := math.Atan2(y, x)
	if x == 0 || y == 0 || a != a || math.IsInf(x, 0) || math.IsInf(y, 0) {
		return a
	}
	_, ey := math.Frexp(y)
	_, ex := math.Frexp(x)
	switch d := ey - ex; {
	case d > 100:
		return a
	case d < -60 && x > 0:
		return y / x // rounded once: the tangent differs from the angle far below a unit
	case d < -100:
		return a
	}
	return atan2Pair(pair{math.Ldexp(y, -ex), 0}, pair{math.Ldexp(x, -ex), 0}).sum()
}

// leg is √(1-x²).
func leg(x float64) pair { return twoSum(1, -x).mul(twoSum(1, x)).sqrt() }

func asin(x float64) float64 {
	switch a := math.Abs(x); {
	case a < 0x1p-28 || x != x:
		return x
	case a > 1:
		return math.NaN()
	case a == 1:
		return math.Copysign(math.Pi/2, x)
	}
	return atan2Pair(pair{x, 0}, leg(x)).sum()
}

func acos(x float64) float64 {
	switch {
	case x > 1 || x < -1 || x != x:
		return math.NaN()
	case x == 1:
		return 0
	case x == -1:
		return math.Pi
	}
	return atan2Pair(leg(x), pair{x, 0}).sum()
}
