package shaders

import (
	"math"
	"math/big"
)

// The oracle: each function with hundreds of bits, by series and identities that share nothing with
// the kernels. Arguments are finite and inside the function's domain.

type bigf struct{ p uint }

func (o bigf) n() *big.Float                  { return new(big.Float).SetPrec(o.p) }
func (o bigf) f(x float64) *big.Float         { return o.n().SetFloat64(x) }
func (o bigf) add(x, y *big.Float) *big.Float { return o.n().Add(x, y) }
func (o bigf) sub(x, y *big.Float) *big.Float { return o.n().Sub(x, y) }
func (o bigf) mul(x, y *big.Float) *big.Float { return o.n().Mul(x, y) }
func (o bigf) quo(x, y *big.Float) *big.Float { return o.n().Quo(x, y) }
func (o bigf) sqrt(x *big.Float) *big.Float   { return o.n().Sqrt(x) }
func (o bigf) half(x *big.Float) *big.Float   { return o.n().SetMantExp(x, -1) }

// taylor sums first + first·ratio(1) + first·ratio(1)·ratio(2) + …
func (o bigf) taylor(first *big.Float, ratio func(n int) *big.Float) *big.Float {
	sum, t := o.n().Set(first), o.n().Set(first)
	for n := 1; n < 100000; n++ {
		t = o.mul(t, ratio(n))
		if t.Sign() == 0 || t.MantExp(nil) < sum.MantExp(nil)-int(o.p)-4 {
			break
		}
		sum.Add(sum, t)
	}
	return sum
}

var constCache = map[string]*big.Float{}

func (o bigf) cached(name string, f func() *big.Float) *big.Float {
	if v, ok := constCache[name]; ok && v.Prec() >= o.p {
		return v
	}
	v := f()
	constCache[name] = v
	return v
}

// atanInv is atan(1/q) or, hyperbolic, atanh(1/q).
func (o bigf) atanInv(q int64, sign float64) *big.Float {
	sum, t := o.n(), o.quo(o.f(1), o.n().SetInt64(q))
	for k := int64(0); t.Sign() != 0 && t.MantExp(nil) > -int(o.p)-8; k++ {
		u := o.quo(t, o.n().SetInt64(2*k+1))
		if k%2 == 1 && sign < 0 {
			u.Neg(u)
		}
		sum.Add(sum, u)
		t = o.quo(t, o.n().SetInt64(q*q))
	}
	return sum
}

func (o bigf) pi() *big.Float {
	return o.cached("pi", func() *big.Float {
		return o.sub(o.mul(o.f(16), o.atanInv(5, -1)), o.mul(o.f(4), o.atanInv(239, -1)))
	})
}

func (o bigf) ln2() *big.Float {
	return o.cached("ln2", func() *big.Float { return o.mul(o.f(2), o.atanInv(3, 1)) })
}

func (o bigf) exp(x *big.Float) *big.Float {
	q, _ := o.quo(x, o.ln2()).Float64()
	k := math.Round(q)
	r := o.n().SetMantExp(o.sub(x, o.mul(o.f(k), o.ln2())), -8)
	e := o.taylor(o.f(1), func(n int) *big.Float { return o.quo(r, o.f(float64(n))) })
	for range 8 {
		e = o.mul(e, e)
	}
	return o.n().SetMantExp(e, int(k))
}

func (o bigf) log(x *big.Float) *big.Float {
	m := new(big.Float)
	e := x.MantExp(m)
	v, _ := m.Float64()
	if v < math.Sqrt2/2 {
		v, e = v*2, e-1
	}
	y := o.f(math.Log(v))
	target := o.n().SetMantExp(x, -e)
	for range 4 { // Halley
		t := o.exp(y)
		y = o.add(y, o.mul(o.f(2), o.quo(o.sub(target, t), o.add(target, t))))
	}
	return o.add(y, o.mul(o.f(float64(e)), o.ln2()))
}

// sincos reduces by π/2.
func (o bigf) sincos(x *big.Float) (sin, cos *big.Float) {
	h := o.half(o.pi())
	k, _ := o.add(o.quo(x, h), o.f(math.Copysign(0.5, float64(x.Sign())))).Int(nil)
	r := o.sub(x, o.mul(o.n().SetInt(k), h))
	z := o.mul(r, r)
	z.Neg(z)
	s := o.taylor(r, func(n int) *big.Float { return o.quo(z, o.f(float64(2*n*(2*n+1)))) })
	c := o.taylor(o.f(1), func(n int) *big.Float { return o.quo(z, o.f(float64(2*n*(2*n-1)))) })
	switch new(big.Int).And(k, big.NewInt(3)).Int64() {
	case 1:
		return c, s.Neg(s)
	case 2:
		return s.Neg(s), c.Neg(c)
	case 3:
		return c.Neg(c), s
	}
	return s, c
}

func (o bigf) atan(x *big.Float) *big.Float {
	const halvings = 8
	for range halvings {
		x = o.quo(x, o.add(o.f(1), o.sqrt(o.add(o.f(1), o.mul(x, x)))))
	}
	z := o.mul(x, x)
	sum, t := o.n().Set(x), o.n().Set(x)
	for n := 1; t.Sign() != 0 && t.MantExp(nil) > sum.MantExp(nil)-int(o.p)-4; n++ {
		t = o.mul(t, z)
		u := o.quo(t, o.f(float64(2*n+1)))
		if n%2 == 1 {
			u.Neg(u)
		}
		sum.Add(sum, u)
	}
	return o.n().SetMantExp(sum, halvings)
}

// atan2 for x ≠ 0 or y > 0.
func (o bigf) atan2(y, x *big.Float) *big.Float {
	if x.Sign() == 0 {
		h := o.half(o.pi())
		if y.Sign() < 0 {
			h.Neg(h)
		}
		return h
	}
	a := o.atan(o.quo(y, x))
	if x.Sign() < 0 {
		if y.Sign() < 0 {
			return o.sub(a, o.pi())
		}
		return o.add(a, o.pi())
	}
	return a
}

func (o bigf) erf(x *big.Float) *big.Float {
	z := o.mul(x, x)
	// e^-z·Σ 2^n·x^(2n+1)/(2n+1)!!, all terms positive.
	s := o.taylor(x, func(n int) *big.Float { return o.quo(o.mul(o.f(2), z), o.f(float64(2*n+1))) })
	return o.mul(o.quo(o.f(2), o.sqrt(o.pi())), o.mul(o.exp(o.n().Neg(z)), s))
}

func (o bigf) erfc(x *big.Float) *big.Float {
	if v, _ := x.Float64(); v < 3 {
		return o.sub(o.f(1), o.erf(x))
	}
	f := o.n().Set(x)
	for k := 800; k > 0; k-- {
		f = o.add(x, o.quo(o.half(o.f(float64(k))), f))
	}
	z := o.mul(x, x)
	return o.quo(o.exp(z.Neg(z)), o.mul(f, o.sqrt(o.pi())))
}

// truth is a unary function at x, with at least 200 good bits.
func truth(op string, x float64) *big.Float {
	p := uint(320)
	if x != 0 {
		e := math.Ilogb(x)
		if e < 0 {
			p += uint(-3 * e)
		} else if op == "sin" || op == "cos" || op == "tan" {
			p += uint(e)
		}
	}
	o := bigf{p}
	v := o.f(x)
	one := o.f(1)
	switch op {
	case "exp":
		return o.exp(v)
	case "expm1":
		return o.sub(o.exp(v), one)
	case "log":
		return o.log(v)
	case "log1p":
		return o.log(o.add(one, v))
	case "sigmoid":
		return o.quo(one, o.add(one, o.exp(o.n().Neg(v))))
	case "sin", "cos", "tan":
		s, c := o.sincos(v)
		switch op {
		case "sin":
			return s
		case "cos":
			return c
		}
		return o.quo(s, c)
	case "sinh", "cosh", "tanh":
		e := o.exp(v)
		i := o.quo(one, e)
		s, c := o.half(o.sub(e, i)), o.half(o.add(e, i))
		switch op {
		case "sinh":
			return s
		case "cosh":
			return c
		}
		return o.quo(s, c)
	case "asin":
		return o.atan2(v, o.sqrt(o.mul(o.sub(one, v), o.add(one, v))))
	case "acos":
		return o.atan2(o.sqrt(o.mul(o.sub(one, v), o.add(one, v))), v)
	case "atan":
		return o.atan(v)
	case "asinh":
		a := o.n().Abs(v)
		r := o.log(o.add(a, o.sqrt(o.add(one, o.mul(v, v)))))
		if v.Sign() < 0 {
			r.Neg(r)
		}
		return r
	case "acosh":
		return o.log(o.add(v, o.sqrt(o.mul(o.sub(v, one), o.add(v, one)))))
	case "atanh":
		return o.half(o.log(o.quo(o.add(one, v), o.sub(one, v))))
	case "sqrt":
		return o.sqrt(v)
	case "rsqrt":
		return o.quo(one, o.sqrt(v))
	case "cbrt":
		y := o.f(math.Cbrt(x))
		for range 4 {
			y = o.quo(o.add(o.add(y, y), o.quo(v, o.mul(y, y))), o.f(3))
		}
		return y
	case "erf":
		return o.erf(v)
	case "erfc":
		return o.erfc(v)
	}
	panic("no oracle for " + op)
}
