package lower

import (
	"math"
	"math/big"
	"math/bits"

	"nxvk/graph"
)

// number is an element as Elixir holds it: an exact integer or a float.
type number struct {
	i *big.Int // nil for floats
	f float64
}

func numberOf(b uint64, t graph.Type) number {
	switch {
	case t.Signed():
		return number{i: big.NewInt(int64(graph.ConvertBits(b, t, graph.S64)))}
	case t.Int():
		return number{i: new(big.Int).SetUint64(b)}
	}
	return number{f: graph.ToFloat(b, t)}
}

// float converts as Erlang does: to the nearest f64.
func (n number) float() float64 {
	if n.i == nil {
		return n.f
	}
	f, _ := new(big.Float).SetInt(n.i).Float64()
	return f
}

func (n number) nan() bool { return n.i == nil && math.IsNaN(n.f) }

// exact compares as Erlang does: by value, whatever the types. Neither is NaN.
func (n number) cmp(m number) int {
	a, b := new(big.Float), new(big.Float)
	for _, x := range []struct {
		n number
		f *big.Float
	}{{n, a}, {m, b}} {
		if x.n.i != nil {
			x.f.SetPrec(64).SetInt(x.n.i)
		} else {
			x.f.SetFloat64(x.n.f)
		}
	}
	return a.Cmp(b)
}

// write stores n as an element of t; NaN is Nx's.
func (n number) write(t graph.Type) uint64 {
	if n.i != nil && t.Int() {
		low := new(big.Int).And(n.i, new(big.Int).SetUint64(math.MaxUint64)) // two's complement, infinitely extended
		return canonical(low.Uint64(), t)
	}
	f := n.float()
	if t.Int() {
		return graph.ConvertBits(math.Float64bits(f), graph.F64, t)
	}
	if math.IsNaN(f) {
		return quietNaN[t]
	}
	return graph.FromFloat(f, t)
}

// canonical makes an element of the low bits of n.
func canonical(n uint64, t graph.Type) uint64 {
	bits := n & (^uint64(0) >> (64 - t.Bits()))
	if t.Signed() && bits>>(t.Bits()-1) == 1 {
		bits |= ^uint64(0) << t.Bits()
	}
	return bits & (^uint64(0) >> (64 - 8*t.Size()))
}

// quietNaN is the NaN that Nx writes.
var quietNaN = map[graph.Type]uint64{graph.F8: 0x7e, graph.F8E4M3FN: 0x7f, graph.F16: 0x7e00, graph.BF16: 0x7fc0, graph.F32: 0x7fc00000, graph.F64: 0x7ff8 << 48}

func whole(n int64) number    { return number{i: big.NewInt(n)} }
func floaty(f float64) number { return number{f: f} }

func truthy(n number) bool {
	if n.i != nil {
		return n.i.Sign() != 0
	}
	return n.f != 0
}

func boolean(b bool) number {
	if b {
		return whole(1)
	}
	return whole(0)
}

// refBinary computes one element as Nx.BinaryBackend does, and as documented where that raises. ok is
// false where the promise is a tolerance.
func refBinary(op graph.Op, x, y number, out graph.Type) (n number, ok bool) {
	ints := x.i != nil && y.i != nil
	z := new(big.Int)
	switch op {
	case "add", "subtract", "multiply":
		if ints {
			f := map[graph.Op]func(a, b *big.Int) *big.Int{"add": z.Add, "subtract": z.Sub, "multiply": z.Mul}[op]
			n = number{i: f(x.i, y.i)}
			break
		}
		a, b := x.float(), y.float()
		n = floaty(map[graph.Op]float64{"add": a + b, "subtract": a - b, "multiply": a * b}[op])
	case "divide":
		a, b := x.float(), y.float()
		switch {
		case !math.IsInf(a, 0) && !math.IsNaN(a) && math.IsInf(b, 0):
			n = floaty(0)
		case math.IsInf(a, 0) && b == 0:
			n = floaty(a)
		default:
			n = floaty(a / b)
		}
	case "quotient", "remainder":
		if !ints {
			n = floaty(math.Mod(x.float(), y.float()))
			break
		}
		switch {
		case y.i.Sign() == 0:
			n = whole(0)
		case op == "quotient":
			n = number{i: z.Quo(x.i, y.i)}
		default:
			n = number{i: z.Rem(x.i, y.i)}
		}
	case "min", "max":
		switch {
		case x.nan() || y.nan():
			n = floaty(math.NaN())
		case op == "max" && x.cmp(y) >= 0, op == "min" && x.cmp(y) <= 0:
			n = x
		default:
			n = y
		}
	case "pow":
		if !ints || out.Float() {
			return floaty(math.Pow(x.float(), y.float())), false
		}
		one := big.NewInt(1)
		mod := new(big.Int).Lsh(one, 64)
		switch {
		case y.i.Sign() >= 0:
			n = number{i: z.Exp(new(big.Int).Mod(x.i, mod), y.i, mod)}
		case x.i.Cmp(one) == 0:
			n = whole(1)
		case x.i.Cmp(big.NewInt(-1)) == 0:
			n = whole(1 - 2*int64(y.i.Bit(0)))
		default:
			n = whole(0)
		}
	case "atan2":
		return floaty(math.Atan2(x.float(), y.float())), false
	case "bitwise_and":
		n = number{i: z.And(x.i, y.i)}
	case "bitwise_or":
		n = number{i: z.Or(x.i, y.i)}
	case "bitwise_xor":
		n = number{i: z.Xor(x.i, y.i)}
	case "left_shift", "right_shift":
		far := y.i.Sign() < 0 || y.i.Cmp(big.NewInt(64)) >= 0
		switch {
		case op == "left_shift" && far:
			n = whole(0)
		case op == "left_shift":
			n = number{i: z.Lsh(x.i, uint(y.i.Int64()))}
		case far:
			n = number{i: z.Rsh(x.i, 64)}
		default:
			n = number{i: z.Rsh(x.i, uint(y.i.Int64()))}
		}
	case "equal", "not_equal", "greater", "less", "greater_equal", "less_equal":
		if x.nan() || y.nan() {
			n = boolean(op == "not_equal")
			break
		}
		c := x.cmp(y)
		n = boolean(map[graph.Op]bool{"equal": c == 0, "not_equal": c != 0, "greater": c > 0, "less": c < 0, "greater_equal": c >= 0, "less_equal": c <= 0}[op])
	case "logical_and":
		n = boolean(truthy(x) && truthy(y))
	case "logical_or":
		n = boolean(truthy(x) || truthy(y))
	case "logical_xor":
		n = boolean(truthy(x) != truthy(y))
	default:
		panic(op)
	}
	return n, true
}

// refUnary is refBinary for one operand of type t with the given bits.
func refUnary(op graph.Op, x number, elem uint64, t graph.Type) (n number, ok bool) {
	f := x.float()
	switch op {
	case "abs":
		if x.i != nil {
			return number{i: new(big.Int).Abs(x.i)}, true
		}
		return floaty(math.Abs(f)), true
	case "negate":
		if x.i != nil {
			return number{i: new(big.Int).Neg(x.i)}, true
		}
		return floaty(-f), true
	case "sign":
		switch {
		case x.i != nil:
			return whole(int64(x.i.Sign())), true
		case f > 0:
			return floaty(1), true
		case f < 0:
			return floaty(-1), true
		}
		return x, true
	case "bitwise_not":
		return number{i: new(big.Int).Not(x.i)}, true
	case "ceil", "floor", "round":
		if x.i != nil {
			return x, true
		}
		return floaty(map[graph.Op]float64{"ceil": math.Ceil(f), "floor": math.Floor(f), "round": math.Round(f) + 0}[op]), true
	case "count_leading_zeros":
		return whole(int64(bits.LeadingZeros64(elem&(^uint64(0)>>(64-t.Bits()))) - 64 + t.Bits())), true
	case "population_count":
		return whole(int64(bits.OnesCount64(elem & (^uint64(0) >> (64 - t.Bits()))))), true
	case "real", "conjugate":
		return x, true
	case "imag":
		return whole(0), true
	case "is_nan":
		return boolean(x.nan()), true
	case "is_infinity":
		return boolean(x.i == nil && math.IsInf(f, 0)), true
	case "sqrt":
		return floaty(math.Sqrt(f)), true
	}
	fn := map[graph.Op]func(float64) float64{
		"exp": math.Exp, "expm1": math.Expm1, "log": math.Log, "log1p": math.Log1p, "cos": math.Cos, "sin": math.Sin, "tan": math.Tan,
		"cosh": math.Cosh, "sinh": math.Sinh, "tanh": math.Tanh, "acos": math.Acos, "asin": math.Asin, "atan": math.Atan, "acosh": math.Acosh,
		"asinh": math.Asinh, "atanh": math.Atanh, "cbrt": math.Cbrt, "erf": math.Erf, "erfc": math.Erfc, "erf_inv": math.Erfinv,
		"sigmoid": func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, "rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
	}[op]
	return floaty(fn(f)), false
}

// refClip is Nx's clip.
func refClip(x, lo, hi number) number {
	if !x.nan() && !lo.nan() && x.cmp(lo) > 0 {
		// keep
	} else {
		x = lo
	}
	if !x.nan() && !hi.nan() && x.cmp(hi) < 0 {
		return x
	}
	return hi
}

// mergeTypes is Nx.Type.merge for real types.
func mergeTypes(a, b graph.Type) graph.Type {
	switch {
	case a == b:
		return a
	case a.Float() && b.Float():
		switch {
		case a.Size() == 1 && b.Size() == 1: // the two 8-bit floats
			return graph.F8
		case a.Size() == b.Size(): // f16 and bf16
			return graph.F32
		case a.Size() > b.Size():
			return a
		}
		return b
	case a.Float():
		return a
	case b.Float():
		return b
	case a.Signed() == b.Signed():
		if a.Bits() > b.Bits() {
			return a
		}
		return b
	}
	s, u := a, b
	if !s.Signed() {
		s, u = u, s
	}
	bits := max(s.Bits(), min(64, 2*u.Bits()))
	return map[int]graph.Type{4: graph.S4, 8: graph.S8, 16: graph.S16, 32: graph.S32, 64: graph.S64}[bits]
}
