package shaders

import (
	"math"

	"nxvk/graph"
	"nxvk/kernel"
)

// complexFuncs are the functions of complex numbers with complex results. Each is the formula of the Complex
// library, step by step, with its special cases where IEEE arithmetic gives something else.
func complexFuncs() map[graph.Op]func(c *complexEval, x []cplx) cplx {
	one := func(f func(c *complexEval, z cplx) cplx) func(c *complexEval, x []cplx) cplx {
		return func(c *complexEval, x []cplx) cplx { return f(c, x[0]) }
	}
	two := func(f func(c *complexEval, x, y cplx) cplx) func(c *complexEval, x []cplx) cplx {
		return func(c *complexEval, x []cplx) cplx { return f(c, x[0], x[1]) }
	}
	return map[graph.Op]func(c *complexEval, x []cplx) cplx{
		"add": two((*complexEval).add), "subtract": two((*complexEval).sub), "multiply": two((*complexEval).mul),
		"divide": two((*complexEval).div), "pow": two((*complexEval).pow),
		"exp": one((*complexEval).exp), "expm1": one((*complexEval).expm1), "log": one((*complexEval).log), "log1p": one((*complexEval).log1p),
		"sigmoid": one((*complexEval).sigmoid), "sqrt": one((*complexEval).sqrt), "rsqrt": one((*complexEval).rsqrt), "cbrt": one((*complexEval).cbrt),
		"sin": one((*complexEval).sin), "cos": one((*complexEval).cos), "tan": one((*complexEval).tan),
		"sinh": one((*complexEval).sinh), "cosh": one((*complexEval).cosh), "tanh": one((*complexEval).tanh),
		"asin": one((*complexEval).asin), "acos": one((*complexEval).acos), "atan": one((*complexEval).atan),
		"asinh": one((*complexEval).asinh), "acosh": one((*complexEval).acosh), "atanh": one((*complexEval).atanh),
	}
}

func (c *complexEval) num(re, im float64) cplx { return cplx{c.f.c(re), c.f.c(im)} }

func (c *complexEval) neg(x cplx) cplx { return cplx{c.f.neg(x.re), c.f.neg(x.im)} }

func (c *complexEval) add(x, y cplx) cplx { return cplx{c.f.add(x.re, y.re), c.f.add(x.im, y.im)} }

func (c *complexEval) sub(x, y cplx) cplx { return cplx{c.f.sub(x.re, y.re), c.f.sub(x.im, y.im)} }

func (c *complexEval) mul(x, y cplx) cplx {
	return cplx{c.products(x.re, y.re, x.im, y.im, true), c.products(x.im, y.re, x.re, y.im, false)}
}

// products is ab ± cd. In binary32 the errors of the products and of their sum are made good, as far as nothing overflows:
// that is as good as f64 but where the parts cancel to the last bits.
func (c *complexEval) products(a, b, p, q kernel.Value, minus bool) kernel.Value {
	f := c.f
	x, y := f.mul(a, b), f.mul(p, q)
	sum := f.add(x, y)
	if minus {
		sum = f.sub(x, y)
	}
	if f.is64() {
		return sum
	}
	low := f.sub(c.FmaExact(a, b, f.neg(x)), c.FmaExact(p, q, f.neg(y)))
	if !minus {
		low = f.add(c.FmaExact(a, b, f.neg(x)), c.FmaExact(p, q, f.neg(y)))
	}
	s := f.twoSum(x, y)
	if minus {
		s = f.twoSum(x, f.neg(y))
	}
	better := f.add(s.h, f.add(s.l, low))
	return f.sel(c.finite(better), better, sum)
}

// quotient is a real division as Complex does it: see eval.divide.
func (c *complexEval) quotient(x, y kernel.Value) kernel.Value { return c.eval.divide(x, y) }

// div is x·conj(y)/|y|². A finite number over a real infinity is 0.
func (c *complexEval) div(x, y cplx) cplx {
	f := c.f
	re := c.products(x.re, y.re, x.im, y.im, false)
	im := c.products(x.im, y.re, x.re, y.im, true)
	den := f.add(f.mul(y.re, y.re), f.mul(y.im, y.im))
	q := cplx{c.quotient(re, den), c.quotient(im, den)}
	finite := c.And(c.finite(x.re), c.finite(x.im))
	gone := c.And(finite, c.And(f.eq(f.abs(y.re), f.inf(1)), f.eq(y.im, f.c(0))))
	return c.sel(gone, c.num(0, 0), q)
}

func (c *complexEval) sel(cond kernel.Value, x, y cplx) cplx {
	return cplx{c.f.sel(cond, x.re, y.re), c.f.sel(cond, x.im, y.im)}
}

// magnitudeOf is |z|: infinite if a part is not finite, unless both are NaN.
func (c *complexEval) magnitudeOf(z cplx) kernel.Value {
	f := c.f
	x, y := f.abs(z.re), f.abs(z.im)
	over := f.lt(y, x)
	hi, lo := f.sel(over, x, y), f.sel(over, y, x)
	q := Div(c.Builder, lo, hi)
	r := f.mul(hi, Sqrt(c.Builder, f.add(f.c(1), f.mul(q, q))))
	r = f.sel(f.eq(lo, f.c(0)), hi, r)
	nan := c.And(c.isNaN(z.re), c.isNaN(z.im))
	return f.sel(c.And(c.finite(z.re), c.finite(z.im)), r, f.sel(nan, f.nan(), f.inf(1)))
}

// angle is the phase of a finite z. Zeros are as C99 has them.
func (c *complexEval) angle(z cplx) kernel.Value { return Atan2(c.Builder, z.im, z.re) }

// atan2 is the angle for log: an infinite real part gives 0 or π whatever the sign of a finite imaginary one.
func (c *complexEval) atan2(z cplx) kernel.Value {
	f := c.f
	side := c.And(f.eq(f.abs(z.re), f.inf(1)), c.finite(z.im))
	flat := f.sel(f.lt(z.re, f.c(0)), f.c(math.Pi), f.c(0))
	return f.sel(side, flat, c.angle(z))
}

// phase is the angle for cbrt and pow.
func (c *complexEval) phase(z cplx) kernel.Value {
	f := c.f
	reInf, imInf := f.eq(f.abs(z.re), f.inf(1)), f.eq(f.abs(z.im), f.inf(1))
	v := c.atan2(z)
	quarter := f.withSign(f.c(math.Pi/2), z.im)
	v = f.sel(c.And(imInf, c.Not(reInf)), quarter, v)
	corner := c.And(c.And(imInf, reInf), c.And(f.lt(z.re, f.c(0)), f.lt(z.im, f.c(0))))
	return f.sel(corner, f.c(5*math.Pi/4), v)
}

func (c *complexEval) fn(op graph.Op, x kernel.Value) kernel.Value { return Func(c.Builder, op, x) }

func (c *complexEval) exp(z cplx) cplx {
	f := c.f
	rho := c.fn("exp", z.re)
	w := cplx{f.mul(rho, c.fn("cos", z.im)), f.mul(rho, c.fn("sin", z.im))}
	w.re = f.sel(c.And(f.eq(z.re, f.inf(1)), c.isNaN(z.im)), f.inf(1), w.re)
	return c.sel(f.eq(z.re, f.inf(-1)), c.num(0, 0), w)
}

func (c *complexEval) expm1(z cplx) cplx { return c.sub(c.exp(z), c.num(1, 0)) }

func (c *complexEval) log(z cplx) cplx {
	return cplx{c.fn("log", c.magnitudeOf(z)), c.atan2(z)}
}

func (c *complexEval) log1p(z cplx) cplx { return c.log(c.add(z, c.num(1, 0))) }

func (c *complexEval) sigmoid(z cplx) cplx {
	return c.div(c.num(1, 0), c.add(c.exp(c.neg(z)), c.num(1, 0)))
}

func (c *complexEval) sqrt(z cplx) cplx {
	f, b := c.f, c.Builder
	x, y := f.abs(z.re), f.abs(z.im)
	wide := f.le(y, x)
	hi, lo := f.sel(wide, x, y), f.sel(wide, y, x)
	zero := f.eq(hi, f.c(0))
	hi = f.sel(zero, f.c(1), hi)
	q := Div(b, lo, hi)
	root := Sqrt(b, f.add(f.c(1), f.mul(q, q)))
	w := f.mul(Sqrt(b, hi), Sqrt(b, f.mul(f.c(0.5), f.add(f.sel(wide, f.c(1), q), root))))
	signed := f.sel(f.le(f.c(0), z.im), w, f.neg(w))
	right := cplx{w, Div(b, z.im, f.mul(f.c(2), w))}
	left := cplx{Div(b, z.im, f.mul(f.c(2), signed)), signed}
	r := c.sel(f.le(f.c(0), z.re), right, left)
	r = c.sel(zero, z, r)
	inf := f.inf(1)
	r = c.sel(f.eq(z.re, inf), cplx{inf, f.c(0)}, r)
	r = c.sel(f.eq(z.re, f.inf(-1)), cplx{f.c(0), inf}, r)
	r = c.sel(f.eq(y, inf), cplx{inf, z.im}, r)
	return c.sel(c.Or(c.isNaN(z.re), c.isNaN(z.im)), cplx{f.nan(), f.nan()}, r)
}

func (c *complexEval) rsqrt(z cplx) cplx { return c.div(c.num(1, 0), c.sqrt(z)) }

func (c *complexEval) cbrt(z cplx) cplx {
	f := c.f
	r := Pow(c.Builder, c.magnitudeOf(z), f.c(1.0/3))
	theta := c.phase(z)
	phi := Div(c.Builder, theta, f.c(3))
	w := c.mul(cplx{r, f.c(0)}, cplx{c.fn("cos", phi), c.fn("sin", phi)})
	return c.sel(f.eq(phi, f.c(0)), cplx{r, f.c(0)}, w)
}

// imInfinite is whether only the imaginary part is infinite: sin and cos have values of their own there.
func (c *complexEval) imInfinite(z cplx) kernel.Value {
	return c.And(c.finite(z.re), c.f.eq(c.f.abs(z.im), c.f.inf(1)))
}

func (c *complexEval) sin(z cplx) cplx {
	f := c.f
	w := cplx{f.mul(c.fn("sin", z.re), c.fn("cosh", z.im)), f.mul(c.fn("cos", z.re), c.fn("sinh", z.im))}
	return c.sel(c.imInfinite(z), cplx{f.mul(z.re, z.im), z.im}, w)
}

func (c *complexEval) cos(z cplx) cplx {
	f := c.f
	w := cplx{f.mul(c.fn("cos", z.re), c.fn("cosh", z.im)), f.mul(f.neg(c.fn("sin", z.re)), c.fn("sinh", z.im))}
	return c.sel(c.imInfinite(z), cplx{f.inf(1), f.mul(f.neg(z.im), z.re)}, w)
}

func (c *complexEval) tan(z cplx) cplx { return c.div(c.sin(z), c.cos(z)) }

// half is z/2, part by part.
func (c *complexEval) half(z cplx) cplx {
	return cplx{c.f.mul(z.re, c.f.c(0.5)), c.f.mul(z.im, c.f.c(0.5))}
}

func (c *complexEval) sinh(z cplx) cplx { return c.half(c.sub(c.exp(z), c.exp(c.neg(z)))) }

func (c *complexEval) cosh(z cplx) cplx { return c.half(c.add(c.exp(z), c.exp(c.neg(z)))) }

func (c *complexEval) tanh(z cplx) cplx {
	up, down := c.exp(z), c.exp(c.neg(z))
	return c.div(c.half(c.sub(up, down)), c.half(c.add(up, down)))
}

// undefined gives NaN where a part of z is not finite.
func (c *complexEval) undefined(z, w cplx) cplx {
	f := c.f
	return c.sel(c.And(c.finite(z.re), c.finite(z.im)), w, cplx{f.nan(), f.nan()})
}

// asin is -i·log(iz + √(1-z²)).
func (c *complexEval) asin(z cplx) cplx {
	root := c.sqrt(c.sub(c.num(1, 0), c.mul(z, z)))
	w := c.mul(c.num(math.Copysign(0, -1), -1), c.log(c.add(c.mul(c.num(0, 1), z), root)))
	return c.undefined(z, w)
}

// acos is -i·log(z + √(z²-1)).
func (c *complexEval) acos(z cplx) cplx {
	root := c.sqrt(c.sub(c.mul(z, z), c.num(1, 0)))
	w := c.mul(c.num(math.Copysign(0, -1), -1), c.log(c.add(z, root)))
	return c.undefined(z, w)
}

// atan is i/2·(log(1-iz) - log(1+iz)).
func (c *complexEval) atan(z cplx) cplx {
	iz := c.mul(c.num(0, 1), z)
	return c.mul(c.num(0, 0.5), c.sub(c.log(c.sub(c.num(1, 0), iz)), c.log(c.add(c.num(1, 0), iz))))
}

// asinh is log(z + √(z²+1)).
func (c *complexEval) asinh(z cplx) cplx {
	return c.log(c.add(z, c.sqrt(c.add(c.mul(z, z), c.num(1, 0)))))
}

// acosh is log(z + √(z²-1)).
func (c *complexEval) acosh(z cplx) cplx {
	return c.log(c.add(z, c.sqrt(c.sub(c.mul(z, z), c.num(1, 0)))))
}

// atanh is log((1+z)/(1-z))/2.
func (c *complexEval) atanh(z cplx) cplx {
	return c.mul(c.num(0.5, 0), c.log(c.div(c.add(c.num(1, 0), z), c.sub(c.num(1, 0), z))))
}

// pow is |x|^re(y)·e^(-im(y)·θ) at the angle re(y)·θ + im(y)·log|x|, θ the phase of x. The exponents 1 and -1
// are exact, 0 to any power but 0 is 0, and what is not finite gives NaN.
func (c *complexEval) pow(x, y cplx) cplx {
	f := c.f
	rho, theta := c.magnitudeOf(x), c.phase(x)
	zero := f.eq(rho, f.c(0))
	rho = f.sel(zero, f.c(1), rho)
	s := f.mul(Pow(c.Builder, rho, y.re), c.fn("exp", f.mul(f.neg(y.im), theta)))
	r := f.add(f.mul(y.re, theta), f.mul(y.im, c.fn("log", rho)))
	w := cplx{f.mul(s, c.fn("cos", r)), f.mul(s, c.fn("sin", r))}

	plain := f.eq(y.im, f.c(0))
	w = c.sel(c.And(plain, f.eq(y.re, f.c(-1))), c.div(c.num(1, 0), x), w)
	w = c.sel(c.And(plain, f.eq(y.re, f.c(1))), x, w)
	none := c.And(plain, f.eq(y.re, f.c(0)))
	w = c.sel(zero, cplx{f.sel(none, f.c(1), f.c(0)), f.c(0)}, w)

	bad := c.ConstBool(false)
	for _, v := range []kernel.Value{x.re, x.im, y.re, y.im} {
		bad = c.Or(bad, c.Not(c.finite(v)))
	}
	w = c.sel(bad, cplx{f.nan(), f.nan()}, w)
	return c.sel(c.And(zero, c.And(plain, f.eq(y.re, f.inf(1)))), c.num(0, 0), w)
}
