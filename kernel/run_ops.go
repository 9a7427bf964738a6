package kernel

import (
	"math"
	"math/bits"
)

// operation is how a pure operation computes: for one lane, and for all of them. a and b are the
// types of the first two operands. Integers of 32 bits live zero-extended in 64, f32 as its bits.
func operation(op Op, a, b, out Type, num Numerics) (one func(a, b, c uint64) uint64, many func(d, a, b, c []uint64)) {
	t := a
	if op == Select {
		t = b
	}
	one = scalarOp(op, t, out, num)
	if num.FlushF32 && (t == F32 || out == F32) && flushes(op, out) {
		one = flushed(one, t, out)
	} else if many = laneOp(op, t, out); many != nil {
		return one, many
	}
	return one, func(d, a, b, c []uint64) {
		for i := range d {
			d[i] = one(a[i], b[i], c[i])
		}
	}
}

// flushes reports whether op flushes subnormals where the device does, as NVIDIA's do: arithmetic,
// comparisons, and the operand of a conversion to f64. Not so its result from f64, nor roundings to an
// integer, signs, selections and moves.
func flushes(op Op, out Type) bool {
	switch op {
	case FAdd, FSub, FMul, FDiv, FSqrt, Mad, FmaExact, FEq, FNe, FLt, FLe:
		return true
	}
	return op == FConv && out == F64
}

func flush32(x uint64) uint64 {
	if x&0x7f800000 == 0 {
		return x & 0x80000000
	}
	return x
}

func flushed(f func(a, b, c uint64) uint64, t, out Type) func(a, b, c uint64) uint64 {
	in := func(x uint64) uint64 { return x }
	if t == F32 {
		in = flush32
	}
	if out != F32 {
		return func(a, b, c uint64) uint64 { return f(in(a), in(b), in(c)) }
	}
	return func(a, b, c uint64) uint64 { return flush32(f(in(a), in(b), in(c))) }
}

func f32(x uint64) float32  { return math.Float32frombits(uint32(x)) }
func f64(x uint64) float64  { return math.Float64frombits(x) }
func of32(x float32) uint64 { return uint64(math.Float32bits(x)) }
func of64(x float64) uint64 { return math.Float64bits(x) }
func s32(x uint64) int32    { return int32(uint32(x)) }
func truth(c bool) (n uint64) { // compiles to a set instruction
	if c {
		n = 1
	}
	return n
}

// fma32 is a*b+c rounded once to f32. The product is exact in f64; the sum is rounded to odd there,
// so that the second rounding is that of the exact sum.
func fma32(a, b, c float32) float32 {
	p, z := float64(a)*float64(b), float64(c)
	s := p + z
	v := s - p
	lost := (p - (s - v)) + (z - v)
	if n := math.Float64bits(s); lost != 0 && n&1 == 0 && !math.IsNaN(lost) && !math.IsInf(s, 0) {
		if (lost > 0) == (s > 0) {
			n++
		} else {
			n--
		}
		s = math.Float64frombits(n)
	}
	return float32(s)
}

// scalarOp computes one lane. t is the type of the operands (of Select: of what is selected).
func scalarOp(op Op, t, out Type, num Numerics) func(a, b, c uint64) uint64 {
	switch op {
	case Select:
		return func(a, b, c uint64) uint64 {
			if a != 0 {
				return b
			}
			return c
		}
	case LAnd:
		return func(a, b, _ uint64) uint64 { return a & b }
	case LOr:
		return func(a, b, _ uint64) uint64 { return a | b }
	case LNot:
		return func(a, _, _ uint64) uint64 { return a ^ 1 }
	case ZExt, Bits, Opaque:
		return func(a, _, _ uint64) uint64 { return a }
	case Wrap:
		return func(a, _, _ uint64) uint64 { return uint64(uint32(a)) }
	case SExt:
		return func(a, _, _ uint64) uint64 { return uint64(int64(s32(a))) }
	case SToF, UToF:
		return intToFloat(op, t, out)
	case FToS, FToU:
		return floatToInt(op, t, out)
	}
	switch t {
	case I32:
		return scalar32(op)
	case I64:
		return scalar64(op)
	case F32:
		return scalarF32(op, num)
	}
	return scalarF64(op, num)
}

func scalar32(op Op) func(a, b, c uint64) uint64 {
	const low = math.MaxUint32
	switch op {
	case IAdd:
		return func(a, b, _ uint64) uint64 { return (a + b) & low }
	case ISub:
		return func(a, b, _ uint64) uint64 { return (a - b) & low }
	case IMul:
		return func(a, b, _ uint64) uint64 { return (a * b) & low }
	case UMulHi:
		return func(a, b, _ uint64) uint64 { return a * b >> 32 }
	case Not:
		return func(a, _, _ uint64) uint64 { return a ^ low }
	case Shl:
		return func(a, b, _ uint64) uint64 {
			if b >= 32 {
				return poison & low
			}
			return a << b & low
		}
	case ShrU:
		return func(a, b, _ uint64) uint64 {
			if b >= 32 {
				return poison & low
			}
			return a >> b
		}
	case ShrS:
		return func(a, b, _ uint64) uint64 {
			if b >= 32 {
				return poison & low
			}
			return uint64(uint32(s32(a) >> b))
		}
	case SDiv:
		return func(a, b, _ uint64) uint64 {
			if b == 0 || a == 1<<31 && b == low {
				return poison & low
			}
			return uint64(uint32(s32(a) / s32(b)))
		}
	case SRem:
		return func(a, b, _ uint64) uint64 {
			if b == 0 || a == 1<<31 && b == low {
				return poison & low
			}
			return uint64(uint32(s32(a) % s32(b)))
		}
	case UDiv:
		return func(a, b, _ uint64) uint64 {
			if b == 0 {
				return poison & low
			}
			return a / b
		}
	case URem:
		return func(a, b, _ uint64) uint64 {
			if b == 0 {
				return poison & low
			}
			return a % b
		}
	case Clz:
		return func(a, _, _ uint64) uint64 { return uint64(bits.LeadingZeros32(uint32(a))) }
	case PopCnt:
		return func(a, _, _ uint64) uint64 { return uint64(bits.OnesCount32(uint32(a))) }
	case SLt:
		return func(a, b, _ uint64) uint64 { return truth(s32(a) < s32(b)) }
	case SLe:
		return func(a, b, _ uint64) uint64 { return truth(s32(a) <= s32(b)) }
	}
	return scalarInt(op)
}

// scalarInt holds the operations that do not care for the width.
func scalarInt(op Op) func(a, b, c uint64) uint64 {
	switch op {
	case And:
		return func(a, b, _ uint64) uint64 { return a & b }
	case Or:
		return func(a, b, _ uint64) uint64 { return a | b }
	case Xor:
		return func(a, b, _ uint64) uint64 { return a ^ b }
	case IEq:
		return func(a, b, _ uint64) uint64 { return truth(a == b) }
	case INe:
		return func(a, b, _ uint64) uint64 { return truth(a != b) }
	case ULt:
		return func(a, b, _ uint64) uint64 { return truth(a < b) }
	case ULe:
		return func(a, b, _ uint64) uint64 { return truth(a <= b) }
	}
	panic("kernel: " + opName(op) + " is not interpreted")
}

func scalar64(op Op) func(a, b, c uint64) uint64 {
	switch op {
	case IAdd:
		return func(a, b, _ uint64) uint64 { return a + b }
	case ISub:
		return func(a, b, _ uint64) uint64 { return a - b }
	case IMul:
		return func(a, b, _ uint64) uint64 { return a * b }
	case Not:
		return func(a, _, _ uint64) uint64 { return ^a }
	case Shl:
		return func(a, b, _ uint64) uint64 {
			if b >= 64 {
				return poison
			}
			return a << b
		}
	case ShrU:
		return func(a, b, _ uint64) uint64 {
			if b >= 64 {
				return poison
			}
			return a >> b
		}
	case ShrS:
		return func(a, b, _ uint64) uint64 {
			if b >= 64 {
				return poison
			}
			return uint64(int64(a) >> b)
		}
	case SDiv:
		return func(a, b, _ uint64) uint64 {
			if b == 0 || a == 1<<63 && b == math.MaxUint64 {
				return poison
			}
			return uint64(int64(a) / int64(b))
		}
	case SRem:
		return func(a, b, _ uint64) uint64 {
			if b == 0 || a == 1<<63 && b == math.MaxUint64 {
				return poison
			}
			return uint64(int64(a) % int64(b))
		}
	case UDiv:
		return func(a, b, _ uint64) uint64 {
			if b == 0 {
				return poison
			}
			return a / b
		}
	case URem:
		return func(a, b, _ uint64) uint64 {
			if b == 0 {
				return poison
			}
			return a % b
		}
	case SLt:
		return func(a, b, _ uint64) uint64 { return truth(int64(a) < int64(b)) }
	case SLe:
		return func(a, b, _ uint64) uint64 { return truth(int64(a) <= int64(b)) }
	}
	return scalarInt(op)
}

func scalarF32(op Op, num Numerics) func(a, b, c uint64) uint64 {
	wide := func(f func(float64) float64) func(a, b, c uint64) uint64 {
		return func(a, _, _ uint64) uint64 { return of32(float32(f(float64(f32(a))))) }
	}
	switch op {
	case FAdd:
		return func(a, b, _ uint64) uint64 { return of32(f32(a) + f32(b)) }
	case FSub:
		return func(a, b, _ uint64) uint64 { return of32(f32(a) - f32(b)) }
	case FMul:
		return func(a, b, _ uint64) uint64 { return of32(f32(a) * f32(b)) }
	case FDiv:
		return func(a, b, _ uint64) uint64 { return of32(f32(a) / f32(b)) }
	case FSqrt: // 53 bits are enough for the second rounding to be innocuous
		return wide(math.Sqrt)
	case FNeg:
		return func(a, _, _ uint64) uint64 { return a ^ 1<<31 }
	case FAbs:
		return func(a, _, _ uint64) uint64 { return a &^ (1 << 31) }
	case Floor:
		return wide(math.Floor)
	case Ceil:
		return wide(math.Ceil)
	case Trunc:
		return wide(math.Trunc)
	case RoundEven:
		return wide(math.RoundToEven)
	case Mad:
		if !num.FuseF32 {
			return func(a, b, c uint64) uint64 { p := float32(f32(a) * f32(b)); return of32(p + f32(c)) }
		}
		return func(a, b, c uint64) uint64 { return of32(fma32(f32(a), f32(b), f32(c))) }
	case FmaExact:
		return func(a, b, c uint64) uint64 { return of32(fma32(f32(a), f32(b), f32(c))) }
	case FEq:
		return func(a, b, _ uint64) uint64 { return truth(f32(a) == f32(b)) }
	case FNe:
		return func(a, b, _ uint64) uint64 { return truth(f32(a) != f32(b)) }
	case FLt:
		return func(a, b, _ uint64) uint64 { return truth(f32(a) < f32(b)) }
	case FLe:
		return func(a, b, _ uint64) uint64 { return truth(f32(a) <= f32(b)) }
	case FConv:
		return func(a, _, _ uint64) uint64 { return of64(float64(f32(a))) }
	}
	panic("kernel: " + opName(op) + " of f32 is not interpreted")
}

func scalarF64(op Op, num Numerics) func(a, b, c uint64) uint64 {
	un := func(f func(float64) float64) func(a, b, c uint64) uint64 {
		return func(a, _, _ uint64) uint64 { return of64(f(f64(a))) }
	}
	switch op {
	case FAdd:
		return func(a, b, _ uint64) uint64 { return of64(f64(a) + f64(b)) }
	case FSub:
		return func(a, b, _ uint64) uint64 { return of64(f64(a) - f64(b)) }
	case FMul:
		return func(a, b, _ uint64) uint64 { return of64(f64(a) * f64(b)) }
	case FDiv:
		return func(a, b, _ uint64) uint64 { return of64(f64(a) / f64(b)) }
	case FSqrt:
		return un(math.Sqrt)
	case FNeg:
		return func(a, _, _ uint64) uint64 { return a ^ 1<<63 }
	case FAbs:
		return func(a, _, _ uint64) uint64 { return a &^ (1 << 63) }
	case Floor:
		return un(math.Floor)
	case Ceil:
		return un(math.Ceil)
	case Trunc:
		return un(math.Trunc)
	case RoundEven:
		return un(math.RoundToEven)
	case Mad:
		if !num.FuseF64 {
			return func(a, b, c uint64) uint64 { p := float64(f64(a) * f64(b)); return of64(p + f64(c)) }
		}
		return func(a, b, c uint64) uint64 { return of64(math.FMA(f64(a), f64(b), f64(c))) }
	case FmaExact:
		return func(a, b, c uint64) uint64 { return of64(math.FMA(f64(a), f64(b), f64(c))) }
	case FEq:
		return func(a, b, _ uint64) uint64 { return truth(f64(a) == f64(b)) }
	case FNe:
		return func(a, b, _ uint64) uint64 { return truth(f64(a) != f64(b)) }
	case FLt:
		return func(a, b, _ uint64) uint64 { return truth(f64(a) < f64(b)) }
	case FLe:
		return func(a, b, _ uint64) uint64 { return truth(f64(a) <= f64(b)) }
	case FConv:
		return func(a, _, _ uint64) uint64 { return of32(float32(f64(a))) }
	}
	panic("kernel: " + opName(op) + " of f64 is not interpreted")
}

func intToFloat(op Op, t, out Type) func(a, b, c uint64) uint64 {
	signed, narrow := op == SToF, t == I32
	switch {
	case out == F32 && signed && narrow:
		return func(a, _, _ uint64) uint64 { return of32(float32(s32(a))) }
	case out == F32 && signed:
		return func(a, _, _ uint64) uint64 { return of32(float32(int64(a))) }
	case out == F32:
		return func(a, _, _ uint64) uint64 { return of32(float32(a)) }
	case signed && narrow:
		return func(a, _, _ uint64) uint64 { return of64(float64(s32(a))) }
	case signed:
		return func(a, _, _ uint64) uint64 { return of64(float64(int64(a))) }
	}
	return func(a, _, _ uint64) uint64 { return of64(float64(a)) }
}

func floatToInt(op Op, t, out Type) func(a, b, c uint64) uint64 {
	// Bounds of the integer, exclusive, after truncation.
	low, high := -1.0, math.Ldexp(1, out.Bits())
	if op == FToS {
		high = math.Ldexp(1, out.Bits()-1)
		low = -high - 1
		if out == I64 { // -2^63-1 is no f64
			low = math.Nextafter(-high, math.Inf(-1))
		}
	}
	mask := uint64(math.MaxUint64)
	if out == I32 {
		mask = math.MaxUint32
	}
	return func(a, _, _ uint64) uint64 {
		x := f64(a)
		if t == F32 {
			x = float64(f32(a))
		}
		switch x = math.Trunc(x); {
		case !(x > low && x < high):
			return poison & mask
		case x < 0:
			return uint64(int64(x)) & mask
		}
		return uint64(x) & mask
	}
}
