package host

import "math"

func exp(x float64) float64      { return math.Exp(x) }
func log(x float64) float64      { return math.Log(x) }
func sin(x float64) float64      { return math.Sin(x) }
func cos(x float64) float64      { return math.Cos(x) }
func sinh(x float64) float64     { return math.Sinh(x) }
func cosh(x float64) float64     { return math.Cosh(x) }
func cbrt(x float64) float64     { return math.Cbrt(x) }
func erf(x float64) float64      { return math.Erf(x) }
func erfc(x float64) float64     { return math.Erfc(x) }
func atan2(y, x float64) float64 { return math.Atan2(y, x) }

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
	}
	return math.Pow(x, y)
}

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
