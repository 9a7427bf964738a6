package host

import (
	"math"
	"math/big"

	"nxvk/graph"
)

// binaryOp is an elementwise operation of two operands, which are read in their own types.
func binaryOp(n *graph.Node, in []Tensor) Tensor {
	a, b := in[0], in[1]
	c := classOf(a.Type, b.Type)
	switch n.Op {
	case "equal", "not_equal", "greater", "less", "greater_equal", "less_equal":
		return comparison(n, a, b)
	case "logical_and":
		return map2(n.Spec, truth(a), truth(b), false, func(a, b int64) int64 { return a & b })
	case "logical_or":
		return map2(n.Spec, truth(a), truth(b), false, func(a, b int64) int64 { return a | b })
	case "logical_xor":
		return map2(n.Spec, truth(a), truth(b), false, func(a, b int64) int64 { return a ^ b })
	}
	if c == complex_ || n.Type.Complex() {
		if f := complexBinary[n.Op]; f != nil {
			return map2(n.Spec, a, b, false, f)
		}
		c = float // of the real parts: the others order their operands
	}
	if c == integer && n.Type.Int() {
		ua, ub := a.Type == graph.U64, b.Type == graph.U64
		return map2(n.Spec, a, b, false, intBinary(n.Op, ua, ub))
	}
	if c == integer {
		if f := bigBinary[n.Op]; f != nil {
			ua, ub := a.Type == graph.U64, b.Type == graph.U64
			return map2(n.Spec, a, b, false, func(a, b int64) float64 {
				r, _ := new(big.Float).SetInt(f(new(big.Int), bigOf(a, ua), bigOf(b, ub))).Float64()
				return r
			})
		}
	}
	return map2(n.Spec, a, b, false, floatBinary[n.Op])
}

var floatBinary = map[graph.Op]func(a, b float64) float64{
	"add":       func(a, b float64) float64 { return a + b },
	"subtract":  func(a, b float64) float64 { return a - b },
	"multiply":  func(a, b float64) float64 { return a * b },
	"divide":    divide,
	"pow":       pow,
	"remainder": math.Mod,
	"quotient":  func(a, b float64) float64 { return math.Trunc(a / b) },
	"atan2":     atan2,
	"max":       maxFloat,
	"min":       minFloat,
}

// divide is IEEE's quotient but for those of finite numbers and infinities, which are 0 and never -0, and of
// infinities by 0, which keep the dividend's sign.
func divide(a, b float64) float64 {
	switch {
	case math.IsInf(b, 0) && !math.IsInf(a, 0) && a == a:
		return 0
	case math.IsInf(a, 0) && b == 0:
		return a
	}
	return a / b
}

// maxFloat and minFloat yield NaN for NaN, and the first of equal operands.
func maxFloat(a, b float64) float64 {
	if a >= b || a != a {
		return a
	}
	return b
}

func minFloat(a, b float64) float64 {
	if a <= b || a != a {
		return a
	}
	return b
}

// bigBinary are operations on integers whose results do not fit 64 bits, where they become floats.
var bigBinary = map[graph.Op]func(z, a, b *big.Int) *big.Int{
	"add": (*big.Int).Add, "subtract": (*big.Int).Sub, "multiply": (*big.Int).Mul,
}

func bigOf(x int64, unsigned bool) *big.Int {
	if unsigned {
		return new(big.Int).SetUint64(uint64(x))
	}
	return big.NewInt(x)
}

// compareInts compares integers, of which some are 64 unsigned bits.
func compareInts(a int64, ua bool, b int64, ub bool) int {
	switch {
	case ua && !ub && b < 0, ua == ub && !ua && a > b:
		return 1
	case ub && !ua && a < 0, ua == ub && !ua && a < b:
		return -1
	case !ua && !ub:
		return 0
	}
	switch x, y := uint64(a), uint64(b); {
	case x > y:
		return 1
	case x < y:
		return -1
	}
	return 0
}

// magnitude is the absolute value of an integer, and whether it is negative.
func magnitude(x int64, unsigned bool) (uint64, bool) {
	if !unsigned && x < 0 {
		return -uint64(x), true
	}
	return uint64(x), false
}

func signed(m uint64, negative bool) int64 {
	if negative {
		return -int64(m)
	}
	return int64(m)
}

// intBinary is an operation on integers modulo 2^64. Quotients and remainders by 0 are 0; a shift by a negative amount
// is one by more than the width.
func intBinary(op graph.Op, ua, ub bool) func(a, b int64) int64 {
	switch op {
	case "add":
		return func(a, b int64) int64 { return a + b }
	case "subtract":
		return func(a, b int64) int64 { return a - b }
	case "multiply":
		return func(a, b int64) int64 { return a * b }
	case "divide":
		return func(a, b int64) int64 { return int64(divide(toFloat(a, ua), toFloat(b, ub))) }
	case "quotient":
		return func(a, b int64) int64 {
			x, nx := magnitude(a, ua)
			y, ny := magnitude(b, ub)
			if y == 0 {
				return 0
			}
			return signed(x/y, nx != ny)
		}
	case "remainder":
		return func(a, b int64) int64 {
			x, nx := magnitude(a, ua)
			y, _ := magnitude(b, ub)
			if y == 0 {
				return 0
			}
			return signed(x%y, nx)
		}
	case "pow":
		return func(a, b int64) int64 { return intPow(a, b, ub) }
	case "max":
		return func(a, b int64) int64 {
			if compareInts(a, ua, b, ub) >= 0 {
				return a
			}
			return b
		}
	case "min":
		return func(a, b int64) int64 {
			if compareInts(a, ua, b, ub) <= 0 {
				return a
			}
			return b
		}
	case "bitwise_and":
		return func(a, b int64) int64 { return a & b }
	case "bitwise_or":
		return func(a, b int64) int64 { return a | b }
	case "bitwise_xor":
		return func(a, b int64) int64 { return a ^ b }
	case "left_shift":
		return func(a, b int64) int64 {
			if uint64(b) > 63 {
				return 0
			}
			return a << uint64(b)
		}
	case "right_shift":
		return func(a, b int64) int64 {
			far := uint64(b) > 63
			switch {
			case ua && far:
				return 0
			case ua:
				return int64(uint64(a) >> uint64(b))
			case far:
				return a >> 63
			}
			return a >> uint64(b)
		}
	}
	panic("host: " + op + " of integers")
}

func toFloat(x int64, unsigned bool) float64 {
	if unsigned {
		return float64(uint64(x))
	}
	return float64(x)
}

// intPow is a power modulo 2^64. One with a negative exponent is the reciprocal's integer part.
func intPow(a, b int64, unsigned bool) int64 {
	if !unsigned && b < 0 {
		switch {
		case a == 1 || a == -1 && b&1 == 0:
			return 1
		case a == -1:
			return -1
		}
		return 0
	}
	r := int64(1)
	for e := uint64(b); e > 0; e >>= 1 {
		if e&1 == 1 {
			r *= a
		}
		a *= a
	}
	return r
}

// relations say for each comparison whether it holds of less, equal, greater, and of what is not ordered.
var relations = map[graph.Op][4]bool{
	"equal": {false, true, false, false}, "not_equal": {true, false, true, true},
	"less": {true, false, false, false}, "less_equal": {true, true, false, false},
	"greater": {false, false, true, false}, "greater_equal": {false, true, true, false},
}

// equalComplex compares as Nx compares the terms that it holds complex numbers in: two NaN parts are equal, and an
// infinite real number equals no complex one.
func equalComplex(n *graph.Node, a, b Tensor, both bool) Tensor {
	equal := func(x, y float64) bool { return x == y || both && x != x && y != y }
	return map2(n.Spec, a, b, false, func(a, b complex128) int64 {
		same := equal(real(a), real(b)) && equal(imag(a), imag(b)) && (both || finite(a))
		return boolean(same == (n.Op == "equal"))
	})
}

// comparison compares by value, whatever the types.
func comparison(n *graph.Node, a, b Tensor) Tensor {
	holds := relations[n.Op]
	yields := func(c int) int64 { return boolean(holds[c+1]) }
	ua, ub := a.Type == graph.U64, b.Type == graph.U64
	ca, cb := classOf(a.Type), classOf(b.Type)
	switch {
	case n.Op == "equal" || n.Op == "not_equal":
		if ca == complex_ || cb == complex_ {
			return equalComplex(n, a, b, ca == cb)
		}
	}
	switch {
	case ca == complex_ || cb == complex_:
		return map2(n.Spec, a, b, false, func(a, b complex128) int64 {
			switch {
			case a == b:
				return yields(0)
			case real(a) != real(a) || real(b) != real(b) || imag(a) != imag(a) || imag(b) != imag(b):
				return yields(2)
			case real(a) < real(b) || real(a) == real(b) && imag(a) < imag(b):
				return yields(-1)
			}
			return yields(1)
		})
	case ca == integer && cb == integer:
		return map2(n.Spec, a, b, false, func(a, b int64) int64 { return yields(compareInts(a, ua, b, ub)) })
	case ca == integer && a.Type.Size() == 8:
		return map2(n.Spec, a, b, false, func(a int64, b float64) int64 { return yields(compareMixed(a, ua, b)) })
	case cb == integer && b.Type.Size() == 8:
		return map2(n.Spec, a, b, false, func(a float64, b int64) int64 {
			c := compareMixed(b, ub, a)
			if c != 2 {
				c = -c
			}
			return yields(c)
		})
	}
	return map2(n.Spec, a, b, false, func(a, b float64) int64 { return yields(compareFloats(a, b)) })
}

// compareFloats yields 2 where an operand is NaN.
func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	return 2
}

// compareMixed compares a 64-bit integer with a float, exactly.
func compareMixed(a int64, ua bool, b float64) int {
	f := toFloat(a, ua)
	if f != b {
		return compareFloats(f, b) // rounding keeps the order
	}
	// a rounds to b: their difference is an integer that is exact in 64 bits, but at the very top.
	switch {
	case ua && b == 1<<64, !ua && b == 1<<63:
		return -1
	case ua:
		return compareInts(a, true, int64(uint64(b)), true)
	}
	return compareInts(a, false, int64(b), false)
}
