package host

import (
	"math"
	"math/bits"

	"nxvk/graph"
)

// unaryOp is an elementwise operation of one operand.
func unaryOp(n *graph.Node, in []Tensor) Tensor {
	x := in[0]
	c := classOf(x.Type)
	switch n.Op {
	case "count_leading_zeros":
		w := x.Type.Bits()
		return map1(n.Spec, x, false, func(v int64) int64 { return int64(min(w, bits.LeadingZeros64(uint64(v)<<(64-w)))) })
	case "population_count":
		w := x.Type.Bits()
		return map1(n.Spec, x, false, func(v int64) int64 { return int64(bits.OnesCount64(uint64(v) << (64 - w))) })
	case "is_nan", "is_infinity":
		return special(n, x)
	case "imag":
		return map1(n.Spec, x, false, func(z complex128) float64 { return imag(z) })
	case "real":
		if c == complex_ {
			return map1(n.Spec, x, false, func(z complex128) float64 { return real(z) })
		}
		return as(n.Spec, x)
	case "conjugate":
		if n.Type.Complex() {
			return map1(n.Spec, x, false, func(z complex128) complex128 { return complex(real(z), -imag(z)) })
		}
		return as(n.Spec, x)
	case "abs":
		if c == complex_ {
			return map1(n.Spec, x, false, absComplex)
		}
	}
	if c == integer {
		if f := intUnary[n.Op]; f != nil && n.Type.Int() {
			u := x.Type == graph.U64
			return map1(n.Spec, x, u, func(v int64) int64 { return f(v, u) })
		}
	}
	if c == complex_ || n.Type.Complex() {
		if f := complexUnary[n.Op]; f != nil {
			return map1(n.Spec, x, false, f)
		}
	}
	if f := wideUnary[n.Op]; f != nil && n.Type.Size() > 4 {
		return map1(n.Spec, x, false, f)
	}
	return map1(n.Spec, x, false, floatUnary[n.Op])
}

func special(n *graph.Node, x Tensor) Tensor {
	nan := n.Op == "is_nan"
	of := func(v float64) bool { return v != v }
	if !nan {
		of = func(v float64) bool { return math.IsInf(v, 0) }
	}
	switch classOf(x.Type) {
	case integer:
		return New(n.Spec)
	case float:
		return map1(n.Spec, x, false, func(v float64) int64 { return boolean(of(v)) })
	}
	return map1(n.Spec, x, false, func(z complex128) int64 { return boolean(of(real(z)) || of(imag(z))) })
}

var intUnary = map[graph.Op]func(x int64, unsigned bool) int64{
	"abs": func(x int64, u bool) int64 {
		if x < 0 && !u {
			return -x
		}
		return x
	},
	"negate":      func(x int64, _ bool) int64 { return -x },
	"bitwise_not": func(x int64, _ bool) int64 { return ^x },
	"ceil":        func(x int64, _ bool) int64 { return x },
	"floor":       func(x int64, _ bool) int64 { return x },
	"round":       func(x int64, _ bool) int64 { return x },
	"sign": func(x int64, u bool) int64 {
		switch {
		case x == 0:
			return 0
		case x < 0 && !u:
			return -1
		}
		return 1
	},
}

// floatUnary are functions of floats whose errors, some units of f64, vanish when the result is rounded to f32 or less.
var floatUnary = map[graph.Op]func(float64) float64{
	"abs":    math.Abs,
	"negate": func(x float64) float64 { return -x },
	"ceil":   math.Ceil,
	"floor":  math.Floor,
	"round":  func(x float64) float64 { return math.Round(x) + 0 },
	"sign": func(x float64) float64 {
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return x
	},
	"sqrt": math.Sqrt, "rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) }, "cbrt": math.Cbrt,
	"exp": math.Exp, "expm1": math.Expm1, "log": math.Log, "log1p": math.Log1p,
	"sigmoid": func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	"sin":     math.Sin, "cos": math.Cos, "tan": math.Tan, "asin": math.Asin, "acos": math.Acos, "atan": math.Atan,
	"sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh, "asinh": math.Asinh, "acosh": math.Acosh, "atanh": math.Atanh,
	"erf": math.Erf, "erfc": math.Erfc, "erf_inv": erfInv,
}

// wideUnary are those whose result may be an f64.
var wideUnary = map[graph.Op]func(float64) float64{
	"cbrt": cbrt, "exp": exp, "expm1": expm1, "log": log, "log1p": log1p, "sigmoid": sigmoid, "sin": sin, "cos": cos, "tan": tan,
	"asin": asin, "acos": acos, "atan": atan, "sinh": sinh, "cosh": cosh, "tanh": tanh, "asinh": asinh, "acosh": acosh, "atanh": atanh,
}
