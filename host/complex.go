package host

import (
	"math"
	"math/cmplx"

	"nxvk/graph"
)

// The functions of complex numbers, by the formulas of the Complex package that Nx.BinaryBackend computes with, in
// f64 and IEEE arithmetic.

var complexBinary = map[graph.Op]func(a, b complex128) complex128{
	"add":      func(a, b complex128) complex128 { return a + b },
	"subtract": func(a, b complex128) complex128 { return a - b },
	"multiply": mulComplex,
	"divide":   divComplex,
	"pow":      powComplex,
}

var complexUnary = map[graph.Op]func(complex128) complex128{
	"negate": func(z complex128) complex128 { return complex(-real(z), -imag(z)) },
	"exp":    expComplex,
	"expm1":  func(z complex128) complex128 { return expComplex(z) - 1 },
	"log":    logComplex,
	"log1p":  func(z complex128) complex128 { return logComplex(z + 1) },
	"sigmoid": func(z complex128) complex128 {
		return divComplex(1, expComplex(complex(-real(z), -imag(z)))+1)
	},
	"sqrt":  sqrtComplex,
	"rsqrt": func(z complex128) complex128 { return divComplex(1, sqrtComplex(z)) },
	"cbrt": func(z complex128) complex128 {
		r, a := cbrt(absComplex(z)), phaseComplex(z)/3
		if a == 0 {
			return complex(r, 0)
		}
		return mulComplex(complex(r, 0), complex(cos(a), sin(a)))
	},
	"sin": sinComplex,
	"cos": cosComplex,
	"tan": func(z complex128) complex128 { return divComplex(sinComplex(z), cosComplex(z)) },
	"asin": func(z complex128) complex128 {
		if !finite(z) {
			return complex(math.NaN(), math.NaN())
		}
		return mulComplex(complex(0, -1), logComplex(mulComplex(1i, z)+sqrtComplex(1-mulComplex(z, z))))
	},
	"acos": func(z complex128) complex128 {
		if !finite(z) {
			return complex(math.NaN(), math.NaN())
		}
		return mulComplex(complex(0, -1), logComplex(z+sqrtComplex(mulComplex(z, z)-1)))
	},
	"atan": func(z complex128) complex128 {
		iz := mulComplex(1i, z)
		return mulComplex(0.5i, logComplex(1-iz)-logComplex(1+iz))
	},
	"sinh":  sinhComplex,
	"cosh":  coshComplex,
	"tanh":  func(z complex128) complex128 { return divComplex(sinhComplex(z), coshComplex(z)) },
	"asinh": func(z complex128) complex128 { return logComplex(z + sqrtComplex(mulComplex(z, z)+1)) },
	"acosh": func(z complex128) complex128 { return logComplex(z + sqrtComplex(mulComplex(z, z)-1)) },
	"atanh": func(z complex128) complex128 {
		return mulComplex(0.5, logComplex(divComplex(1+z, 1-z)))
	},
	"erf":     realOnly(erf),
	"erfc":    realOnly(erfc),
	"erf_inv": realOnly(erfInv),
	"ceil":    parts(math.Ceil),
	"floor":   parts(math.Floor),
	"round":   parts(func(x float64) float64 { return math.Round(x) + 0 }),
	"sign":    func(complex128) complex128 { return 1 }, // Nx orders complex numbers above 0, all of them
}

// realOnly is a function that is defined on real numbers alone.
func realOnly(f func(float64) float64) func(complex128) complex128 {
	return func(z complex128) complex128 {
		if imag(z) != 0 {
			return complex(math.NaN(), math.NaN())
		}
		return complex(f(real(z)), 0)
	}
}

func parts(f func(float64) float64) func(complex128) complex128 {
	return func(z complex128) complex128 { return complex(f(real(z)), f(imag(z))) }
}

// mulComplex rounds each product before it adds: no multiplication is fused into a sum on any processor.
func mulComplex(a, b complex128) complex128 {
	ar, ai, br, bi := real(a), imag(a), real(b), imag(b)
	return complex(float64(ar*br)-float64(ai*bi), float64(ai*br)+float64(ar*bi))
}

func divComplex(a, b complex128) complex128 {
	ar, ai, br, bi := real(a), imag(a), real(b), imag(b)
	if math.IsInf(br, 0) && bi == 0 && !math.IsInf(ar, 0) && !math.IsInf(ai, 0) && !cmplx.IsNaN(a) {
		return 0
	}
	den := float64(br*br) + float64(bi*bi)
	return complex(divide(float64(ar*br)+float64(ai*bi), den), divide(float64(ai*br)-float64(ar*bi), den))
}

// absComplex scales by the larger part, so that squares neither overflow nor vanish.
func absComplex(z complex128) float64 {
	x, y := math.Abs(real(z)), math.Abs(imag(z))
	switch {
	case x != x && y != y:
		return x
	case !finite(z): // one NaN too
		return math.Inf(1)
	case x == 0:
		return y
	case y == 0:
		return x
	case x > y:
		q := y / x
		return x * math.Sqrt(1+float64(q*q))
	}
	q := x / y
	return y * math.Sqrt(1+float64(q*q))
}

func sqrtComplex(z complex128) complex128 {
	r, i := real(z), imag(z)
	switch {
	case r != r || i != i:
		return complex(math.NaN(), math.NaN())
	case math.IsInf(i, 0):
		return complex(math.Inf(1), i)
	case math.IsInf(r, 1):
		return complex(r, 0)
	case math.IsInf(r, -1):
		return complex(0, math.Inf(1))
	case z == 0:
		return z
	}
	x, y := math.Abs(r), math.Abs(i)
	var w float64
	if x >= y {
		q := y / x
		w = math.Sqrt(x) * math.Sqrt(0.5*(1+math.Sqrt(1+float64(q*q))))
	} else {
		q := x / y
		w = math.Sqrt(y) * math.Sqrt(0.5*(q+math.Sqrt(1+float64(q*q))))
	}
	if r >= 0 {
		return complex(w, i/(2*w))
	}
	if i < 0 {
		w = -w
	}
	return complex(i/(2*w), w)
}

func expComplex(z complex128) complex128 {
	r, i := real(z), imag(z)
	switch {
	case math.IsInf(r, -1):
		return 0
	case math.IsInf(r, 1) && i != i:
		return complex(r, i)
	case math.IsInf(i, 0) || r != r || i != i:
		return complex(math.NaN(), math.NaN())
	}
	m := exp(r)
	return complex(m*cos(i), m*sin(i))
}

func logComplex(z complex128) complex128 { return complex(log(absComplex(z)), angleComplex(z)) }

// angleComplex is the angle of z. An infinite real part gives 0 or π whatever the sign of a finite imaginary part.
func angleComplex(z complex128) float64 {
	if r, i := real(z), imag(z); math.IsInf(r, 0) && i == i && !math.IsInf(i, 0) {
		if r < 0 {
			return math.Pi
		}
		return 0
	}
	return atan2(imag(z), real(z))
}

// phaseComplex is the angle as cbrt takes it: an infinite imaginary part alone decides, and both parts -∞ give 5π/4.
func phaseComplex(z complex128) float64 {
	switch r, i := real(z), imag(z); {
	case math.IsInf(r, -1) && math.IsInf(i, -1):
		return 5 * math.Pi / 4
	case math.IsInf(i, 0) && !math.IsInf(r, 0):
		return math.Copysign(math.Pi/2, i)
	}
	return angleComplex(z)
}

func finite(z complex128) bool {
	return !math.IsInf(real(z), 0) && !math.IsInf(imag(z), 0) && !cmplx.IsNaN(z)
}

func sinComplex(z complex128) complex128 {
	r, i := real(z), imag(z)
	switch {
	case finite(z):
		return complex(sin(r)*cosh(i), cos(r)*sinh(i))
	case math.IsInf(i, 0) && r == r && !math.IsInf(r, 0):
		return complex(r*i, i)
	}
	return complex(math.NaN(), math.NaN())
}

func cosComplex(z complex128) complex128 {
	r, i := real(z), imag(z)
	switch {
	case finite(z):
		return complex(cos(r)*cosh(i), -sin(r)*sinh(i))
	case math.IsInf(i, 0) && r == r && !math.IsInf(r, 0):
		return complex(math.Inf(1), -i*r)
	}
	return complex(math.NaN(), math.NaN())
}

func sinhComplex(z complex128) complex128 {
	d := expComplex(z) - expComplex(complex(-real(z), -imag(z)))
	return complex(real(d)/2, imag(d)/2)
}

func coshComplex(z complex128) complex128 {
	d := expComplex(z) + expComplex(complex(-real(z), -imag(z)))
	return complex(real(d)/2, imag(d)/2)
}

func powComplex(a, b complex128) complex128 {
	switch {
	case a == 0 && math.IsInf(real(b), 1) && imag(b) == 0:
		return 0
	case !finite(a) || !finite(b):
		return complex(math.NaN(), math.NaN())
	case a == 0 && b == 0:
		return 1
	case a == 0:
		return 0
	case b == 1:
		return a
	case b == -1:
		return divComplex(1, a)
	}
	rho, theta := absComplex(a), atan2(imag(a), real(a))
	s := pow(rho, real(b)) * exp(float64(-imag(b)*theta))
	r := float64(real(b)*theta) + float64(imag(b)*log(rho))
	return complex(s*cos(r), s*sin(r))
}
