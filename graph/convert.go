package graph

import "math"

// ConvertBits converts one number from type to type as Nx's as_type does in its BinaryBackend: bits
// are the element's bytes read little-endian. Integers wrap; an integer becomes a float by way of f64,
// as Erlang writes it; a float becomes an integer by truncation and wrapping, with NaN as 0 and the
// infinities as the extremes of the type; floats round as FromFloat says.
func ConvertBits(bits uint64, from, to Type) uint64 {
	if from == to {
		return bits & mask(to)
	}
	if from.Int() {
		n := signExtend(bits, from)
		switch {
		case to.Int():
			return wrap(uint64(n), to)
		case from.Signed():
			return FromFloat(float64(n), to)
		}
		return FromFloat(float64(uint64(n)), to)
	}
	x := ToFloat(bits, from)
	if to.Float() {
		return FromFloat(x, to)
	}
	return truncate(x, to)
}

// SaturateBits is ConvertBits between integers, but what is beyond the range of to becomes its nearest end.
func SaturateBits(bits uint64, from, to Type) uint64 {
	n := signExtend(bits, from)
	top := int64(numberMask(to))
	low := int64(0)
	if to.Signed() {
		top >>= 1
		low = -top - 1
	}
	switch {
	case !from.Signed() && n < 0 && to.Bits() < 64: // a u64 beyond s64
		n = top
	case to.Bits() < 64:
		n = min(max(n, low), top)
	}
	return wrap(uint64(n), to)
}

// mask covers the bytes of an element.
func mask(t Type) uint64 { return ^uint64(0) >> (64 - 8*t.Size()) }

// numberMask covers the bits of an element's number.
func numberMask(t Type) uint64 { return ^uint64(0) >> (64 - t.Bits()) }

// signExtend reads an integer of type t as a 64-bit pattern: signed types extend their sign.
func signExtend(bits uint64, t Type) int64 {
	if !t.Signed() {
		return int64(bits & numberMask(t))
	}
	sh := 64 - t.Bits()
	return int64(bits<<sh) >> sh
}

// wrap makes an element of integer type t of the low bits of n.
func wrap(n uint64, t Type) uint64 { return uint64(signExtend(n, t)) & mask(t) }

// ToFloat reads an element of a float type; f64 holds each exactly.
func ToFloat(bits uint64, t Type) float64 {
	switch t {
	case F64:
		return math.Float64frombits(bits)
	case F32:
		return float64(math.Float32frombits(uint32(bits)))
	case BF16:
		return float64(math.Float32frombits(uint32(bits) << 16))
	case F8:
		return halfToFloat(uint16(bits) << 8)
	case F8E4M3FN:
		return e4m3ToFloat(uint8(bits))
	default:
		return halfToFloat(uint16(bits))
	}
}

// FromFloat rounds x to an element of float type t: the nearest one, ties to even. The 8-bit floats are rounded as
// Nx writes them: F8 is the upper byte of an F16, so that what lies below it is cut off, and F8E4M3FN is
// rounded by a rule of its own (floatToE4M3).
func FromFloat(x float64, t Type) uint64 {
	switch t {
	case F64:
		return math.Float64bits(x)
	case F32:
		return uint64(math.Float32bits(float32(x)))
	case BF16:
		return uint64(roundFloat(x, 8, 127))
	case F8:
		return uint64(roundFloat(x, 11, 15) >> 8)
	case F8E4M3FN:
		return uint64(floatToE4M3(x))
	default:
		return uint64(roundFloat(x, 11, 15))
	}
}

// Subnormals of F8 are read as the format has them, and as Nx prints them; Nx.BinaryBackend computes with numbers up to 2.5 times as large.

// e4m3ToFloat reads 4 bits of exponent, 3 of fraction, and no infinities: all bits set but the sign is NaN.
func e4m3ToFloat(b uint8) float64 {
	sign := 1.0
	if b>>7 == 1 {
		sign = -1
	}
	e, m := int(b>>3&15), float64(b&7)
	switch {
	case b&0x7f == 0x7f:
		return math.NaN()
	case e == 0:
		return math.Copysign(math.Ldexp(m, -9), sign)
	}
	return math.Copysign(math.Ldexp(8+m, e-10), sign)
}

// floatToE4M3 rounds the fraction to the nearest, halves away from zero, but never carries into the exponent: what
// would be the next power of two becomes the largest number below it. What is beyond 448 becomes 448.
func floatToE4M3(x float64) uint8 {
	var sign uint8
	if math.Signbit(x) {
		sign = 1 << 7
	}
	a := math.Abs(x)
	switch {
	case math.IsNaN(x):
		return 0x7f
	case a >= 448:
		return sign | 0x7e
	case a < 0x1p-6:
		return sign | uint8(min(7, math.Round(a*0x1p9)))
	}
	f, e := math.Frexp(a) // a = 2f * 2^(e-1)
	m := min(7, math.Round((2*f-1)*8))
	return sign | uint8(e-1+7)<<3 | uint8(m)
}

func halfToFloat(h uint16) float64 {
	sign := 1.0
	if h>>15 == 1 {
		sign = -1
	}
	e, m := int(h>>10&31), float64(h&1023)
	switch e {
	case 0:
		return math.Copysign(math.Ldexp(m, -24), sign)
	case 31:
		if m != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return math.Copysign(math.Ldexp(1024+m, e-25), sign)
}

// roundFloat rounds x to a 16-bit float with p significant bits and exponent bias, in one step.
func roundFloat(x float64, p, bias int) uint16 {
	var sign uint16
	if math.Signbit(x) {
		sign = 1 << 15
	}
	frac := p - 1
	inf := uint16(2*bias+1) << frac
	switch a := math.Abs(x); {
	case math.IsNaN(x):
		return sign | inf | 1<<(frac-1)
	case a == 0:
		return sign
	case math.IsInf(a, 0):
		return sign | inf
	default:
		_, e := math.Frexp(a) // a = m * 2^e, 1/2 <= m < 1
		// The last place of the result at this exponent; subnormals share the smallest normal's.
		ulp := max(e-p, 1-bias-frac)
		n := uint64(math.RoundToEven(math.Ldexp(a, -ulp)))
		// n counts last places: with the implicit bit it runs on into the exponent field by itself.
		r := uint64(ulp-(1-bias-frac))<<frac + n
		if r >= uint64(inf) {
			return sign | inf
		}
		return sign | uint16(r)
	}
}

// truncate converts a float to an integer of type t, wrapping.
func truncate(x float64, t Type) uint64 {
	m := numberMask(t)
	switch {
	case math.IsNaN(x):
		return 0
	case math.IsInf(x, 1):
		if t.Signed() {
			return m >> 1
		}
		return m
	case math.IsInf(x, -1):
		if t.Signed() {
			return wrap(m>>1+1, t)
		}
		return 0
	}
	f, e := math.Frexp(math.Trunc(math.Abs(x)))
	n := uint64(math.Ldexp(f, 53)) // 53 significant bits, times 2^(e-53)
	switch sh := e - 53; {
	case sh >= 64:
		n = 0
	case sh >= 0:
		n <<= sh
	case sh > -64:
		n >>= -sh
	default:
		n = 0
	}
	if x < 0 {
		n = -n
	}
	return wrap(n, t)
}
