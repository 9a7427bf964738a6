package shaders

import (
	"math"

	"nxvk/graph"
	"nxvk/kernel"
)

// Registers and memory
//
// A value of an Nx type lives in memory as kernel.Mem says and in registers as kernel.Type says. Between
// the two stand Widen (after a load) and Narrow (before a store). A register may hold more than its
// Nx type does: an unrounded f32 that will become an f16, or an i32 that will wrap to a u8. Narrow
// accepts that; everything else wants a canonical value: what Widen yields, or Round made.

// MemOf is the memory type of an element of t, or of the parts of a complex one.
func MemOf(t graph.Type) kernel.Mem {
	switch t {
	case graph.C64: // its parts
		return kernel.MF32
	case graph.U8, graph.S8, graph.F8, graph.F8E4M3FN, graph.S2, graph.S4, graph.U2, graph.U4:
		return kernel.M8
	case graph.U16, graph.S16, graph.F16, graph.BF16:
		return kernel.M16
	case graph.U32, graph.S32:
		return kernel.M32
	case graph.U64, graph.S64:
		return kernel.M64
	case graph.F32:
		return kernel.MF32
	}
	return kernel.MF64
}

// RawMemOf is the memory type that moves an element of t without looking at it.
func RawMemOf(t graph.Type) kernel.Mem {
	switch t.Size() {
	case 1:
		return kernel.M8
	case 2:
		return kernel.M16
	case 4:
		return kernel.M32
	}
	return kernel.M64
}

// RegOf is the register type that computes with t, or with the parts of a complex t.
func RegOf(t graph.Type) kernel.Type {
	switch t {
	case graph.U64, graph.S64:
		return kernel.I64
	case graph.F8, graph.F8E4M3FN, graph.F16, graph.BF16, graph.F32, graph.C64:
		return kernel.F32
	case graph.F64, graph.C128:
		return kernel.F64
	}
	return kernel.I32
}

// Has reports whether a device can load, compute with and store t.
func Has(d kernel.Target, t graph.Type) bool {
	t = t.Part()
	if t.Size() == 8 {
		return d.I64 && (t != graph.F64 || d.F64)
	}
	return t != graph.Invalid
}

// smallFloat reports whether t is a float that is computed with in f32, and narrowed when it is stored.
func smallFloat(t graph.Type) bool { return t.Float() && t.Size() < 4 }

// Widen turns what a load of t yielded into its register value, exactly.
func Widen(b *kernel.Builder, t graph.Type, raw kernel.Value) kernel.Value {
	switch t {
	case graph.S8:
		return b.ShrSI(b.ShlI(raw, 24), 24)
	case graph.S16:
		return b.ShrSI(b.ShlI(raw, 16), 16)
	case graph.S2, graph.S4:
		return Narrow(b, t, raw)
	case graph.F8:
		return widenF16(b, b.ShlI(raw, 8))
	case graph.F8E4M3FN:
		return widenE4M3(b, raw)
	case graph.BF16:
		return b.BitsTo(kernel.F32, b.ShlI(raw, 16))
	case graph.F16:
		return widenF16(b, raw)
	}
	return raw
}

// widenF16 rebiases the exponent; subnormals are an integer times 2^-24, which is normal in f32, so
// that nothing here depends on whether the device flushes.
func widenF16(b *kernel.Builder, raw kernel.Value) kernel.Value {
	em := b.And(raw, b.I32(0x7fff))
	sign := b.ShlI(b.And(raw, b.I32(0x8000)), 16)
	normal := b.Add(b.ShlI(em, 13), b.I32(112<<23))
	special := b.Add(normal, b.I32(112<<23))
	small := b.BitsTo(kernel.I32, b.Mul(b.Conv(kernel.UToF, kernel.F32, em), b.ConstFloat(kernel.F32, 0x1p-24)))
	mag := b.Select(b.Cmp(kernel.ULt, em, b.I32(0x400)), small,
		b.Select(b.Cmp(kernel.ULt, em, b.I32(0x7c00)), normal, special))
	return b.BitsTo(kernel.F32, b.Or(mag, sign))
}

// widenE4M3 is widenF16 for 4 bits of exponent, and no infinities.
func widenE4M3(b *kernel.Builder, raw kernel.Value) kernel.Value {
	em := b.And(raw, b.I32(0x7f))
	sign := b.ShlI(b.And(raw, b.I32(0x80)), 24)
	normal := b.Add(b.ShlI(em, 20), b.I32(120<<23))
	small := b.BitsTo(kernel.I32, b.Mul(b.Conv(kernel.UToF, kernel.F32, em), b.ConstFloat(kernel.F32, 0x1p-9)))
	mag := b.Select(b.Cmp(kernel.ULt, em, b.I32(8)), small,
		b.Select(b.Cmp(kernel.IEq, em, b.I32(0x7f)), b.I32(0x7fc00000), normal))
	return b.BitsTo(kernel.F32, b.Or(mag, sign))
}

// Narrow turns a register value into what a store of t takes: integers wrap (those below 8 bits keep the sign that
// their byte is extended by), f16 and bf16 are rounded to nearest even, the 8-bit floats as graph.FromFloat says (by
// integer arithmetic, subnormals included; a NaN becomes Nx's own).
func Narrow(b *kernel.Builder, t graph.Type, v kernel.Value) kernel.Value {
	switch t {
	case graph.S2, graph.S4:
		return b.ShrSI(b.ShlI(v, 32-t.Bits()), 32-t.Bits())
	case graph.U2, graph.U4:
		return b.And(v, b.I32(1<<t.Bits()-1))
	case graph.F8:
		return b.ShrUI(narrowF16(b, v), 8)
	case graph.F8E4M3FN:
		return narrowE4M3(b, v)
	case graph.F16:
		return narrowF16(b, v)
	case graph.BF16:
		u := b.BitsTo(kernel.I32, v)
		odd := b.And(b.ShrUI(u, 16), b.I32(1))
		r := b.ShrUI(b.Add(b.Add(u, b.I32(0x7fff)), odd), 16)
		mag := b.And(u, b.I32(0x7fffffff))
		return b.Select(b.Cmp(kernel.ULt, b.I32(0x7f800000), mag), b.I32(0x7fc0), r)
	}
	return v
}

func narrowF16(b *kernel.Builder, v kernel.Value) kernel.Value {
	u := b.BitsTo(kernel.I32, v)
	mag := b.And(u, b.I32(0x7fffffff))
	sign := b.And(b.ShrUI(u, 16), b.I32(0x8000))
	r := b.Sub(mag, b.I32(112<<23))
	odd := b.And(b.ShrUI(r, 13), b.I32(1))
	normal := b.ShrUI(b.Add(b.Add(r, b.I32(0xfff)), odd), 13)
	// The unit in the last place of [1/2, 1) is 2^-24, f16's smallest step: the addition rounds.
	half := b.ConstFloat(kernel.F32, 0.5)
	small := b.Sub(b.BitsTo(kernel.I32, b.Add(b.BitsTo(kernel.F32, mag), half)), b.I32(0x3f000000))
	h := b.Select(b.Cmp(kernel.ULt, mag, b.I32(0x38800000)), small,
		b.Select(b.Cmp(kernel.ULt, mag, b.I32(0x47800000)), normal, b.I32(0x7c00)))
	return b.Select(b.Cmp(kernel.ULt, b.I32(0x7f800000), mag), b.I32(0x7e00), b.Or(h, sign))
}

// narrowE4M3 rounds the fraction to 3 bits, halves away from zero, without a carry into the exponent; what is beyond
// 448 becomes 448.
func narrowE4M3(b *kernel.Builder, v kernel.Value) kernel.Value {
	u := b.BitsTo(kernel.I32, v)
	mag := b.And(u, b.I32(0x7fffffff))
	sign := b.And(b.ShrUI(u, 24), b.I32(0x80))
	upTo7 := func(n kernel.Value) kernel.Value { return b.Select(b.Cmp(kernel.ULt, b.I32(7), n), b.I32(7), n) }
	exp := b.ShrUI(mag, 23)
	frac := b.And(mag, b.I32(0x7fffff))
	normal := b.Or(b.ShlI(b.Sub(exp, b.I32(120)), 3), upTo7(b.ShrUI(b.AddI(frac, 1<<19), 20)))
	// Below 2^-6 the last place is 2^-9: the significand, with its leading bit, counts 2^(exp-150).
	places := b.Sub(b.I32(141), exp)
	places = b.Select(b.Cmp(kernel.ULt, b.I32(31), places), b.I32(31), places)
	half := b.Bin(kernel.Shl, b.I32(1), b.AddI(places, -1))
	small := upTo7(b.Bin(kernel.ShrU, b.Add(b.Or(frac, b.I32(0x800000)), half), places))
	n := b.Select(b.Cmp(kernel.ULt, mag, b.I32(0x3c800000)), small,
		b.Select(b.Cmp(kernel.ULt, mag, b.I32(0x43e00000)), normal, b.I32(0x7e)))
	return b.Select(b.Cmp(kernel.ULt, b.I32(0x7f800000), mag), b.I32(0x7f), b.Or(n, sign))
}

// Round makes a register value canonical for t: what storing and loading it again would yield.
func Round(b *kernel.Builder, t graph.Type, v kernel.Value) kernel.Value {
	switch t {
	case graph.U8:
		return b.And(v, b.I32(0xff))
	case graph.U16:
		return b.And(v, b.I32(0xffff))
	case graph.F32, graph.F64:
		return b.Opaque(v) // drivers fold f64 -> f32 -> f64 away
	}
	return Widen(b, t, Narrow(b, t, v))
}

// CanonNaN replaces any NaN by the one that Nx writes.
func CanonNaN(b *kernel.Builder, t graph.Type, v kernel.Value) kernel.Value {
	switch t {
	case graph.F32:
		return b.Select(isNaN(b, v), b.ConstBits(kernel.F32, 0x7fc00000), v)
	case graph.F64:
		return b.Select(isNaN(b, v), b.ConstBits(kernel.F64, 0x7ff8000000000000), v)
	}
	return v // Narrow does it for the small floats, integers have none
}

// magnitude is the bit pattern of a float register without its sign.
func magnitude(b *kernel.Builder, x kernel.Value) kernel.Value {
	if b.TypeOf(x) == kernel.F32 {
		return b.And(b.BitsTo(kernel.I32, x), b.I32(0x7fffffff))
	}
	return b.And(b.BitsTo(kernel.I64, x), b.ConstInt(kernel.I64, math.MaxInt64))
}

// infinityBits is the magnitude of infinity in float register r.
func infinityBits(b *kernel.Builder, r kernel.Type) kernel.Value {
	if r == kernel.F32 {
		return b.I32(0x7f800000)
	}
	return b.ConstInt(kernel.I64, 0x7ff0000000000000)
}

// isNaN looks at the bits: drivers may take it that floats are never NaN.
func isNaN(b *kernel.Builder, x kernel.Value) kernel.Value {
	return b.Cmp(kernel.ULt, infinityBits(b, b.TypeOf(x)), magnitude(b, x))
}

// Convert is Nx's as_type between register values. v is canonical for from; the result is one that
// Narrow(to) takes.
//
// Floats become integers by truncation and wrapping; infinities become the largest and smallest
// integer of to, NaN becomes 0. 64-bit integers reach f32 through f64, as Nx does, where the device
// has f64. f64 reaches the small floats with one rounding: through f32 rounded to odd.
func Convert(b *kernel.Builder, v kernel.Value, from, to graph.Type) kernel.Value {
	if from == to {
		return v
	}
	switch {
	case from.Int() && to.Int():
		return ResizeInt(b, v, from, RegOf(to))
	case from.Int():
		return intToFloat(b, v, from, to)
	case to.Int():
		return floatToInt(b, v, from, to)
	}
	if RegOf(from) == kernel.F64 && smallFloat(to) {
		return OddF32(b, v)
	}
	return b.Conv(kernel.FConv, RegOf(to), v)
}

// ResizeInt brings a canonical integer of type from to register type r, wrapping or extending.
func ResizeInt(b *kernel.Builder, v kernel.Value, from graph.Type, r kernel.Type) kernel.Value {
	switch have := b.TypeOf(v); {
	case have == r:
		return v
	case r == kernel.I32:
		return b.Conv(kernel.Wrap, kernel.I32, v)
	case from.Signed():
		return b.Conv(kernel.SExt, kernel.I64, v)
	}
	return b.Conv(kernel.ZExt, kernel.I64, v)
}

// IntToF converts a canonical integer of type from to a float register, rounding once to nearest even.
func IntToF(b *kernel.Builder, v kernel.Value, from graph.Type, r kernel.Type) kernel.Value {
	if from.Signed() {
		return b.Conv(kernel.SToF, r, v)
	}
	return b.Conv(kernel.UToF, r, v)
}

func intToFloat(b *kernel.Builder, v kernel.Value, from, to graph.Type) kernel.Value {
	switch {
	case to == graph.F64:
		return IntToF(b, v, from, kernel.F64)
	case from.Size() < 4, from.Size() == 4 && to != graph.BF16:
		return IntToF(b, v, from, kernel.F32) // 32-bit integers beyond f32 are beyond f16 and f8 too
	case b.T.F64:
		return Convert(b, b.Opaque(IntToF(b, v, from, kernel.F64)), graph.F64, to)
	}
	// First to the 53 bits of f64, which is how Nx gets there. Then the magnitude's top 32 bits, the lowest of them sticky, then one rounding for f32 and, with 24 bits
	// kept by truncation and a sticky bit, one for bf16.
	t := b.TypeOf(v)
	neg := b.ConstBool(false)
	mag := v
	if from.Signed() {
		neg = b.Cmp(kernel.SLt, v, b.Zero(t))
		mag = b.Select(neg, b.Sub(b.Zero(t), v), v)
	}
	if t == kernel.I64 {
		mag = roundTo53(b, mag)
	}
	top, scale := mag, b.ConstFloat(kernel.F32, 1)
	if t == kernel.I64 {
		hi := b.Conv(kernel.Wrap, kernel.I32, b.ShrUI(mag, 32))
		lo := b.Conv(kernel.Wrap, kernel.I32, mag)
		none := b.Cmp(kernel.IEq, hi, b.I32(0))
		sh := b.Select(none, b.I32(0), b.Sub(b.I32(32), b.Un(kernel.Clz, hi)))
		sh64 := b.Conv(kernel.ZExt, kernel.I64, sh)
		kept := b.Bin(kernel.ShrU, mag, sh64)
		lost := b.Cmp(kernel.INe, b.Bin(kernel.Shl, kept, sh64), mag)
		top = b.Select(none, lo, b.Or(b.Conv(kernel.Wrap, kernel.I32, kept), b.Select(lost, b.I32(1), b.I32(0))))
		scale = b.BitsTo(kernel.F32, b.ShlI(b.Add(sh, b.I32(127)), 23))
	}
	if to == graph.BF16 {
		big := b.Cmp(kernel.ULt, b.I32(0xffffff), top)
		cut := b.ShlI(b.ShrUI(top, 8), 8)
		sticky := b.Select(b.Cmp(kernel.INe, cut, top), b.I32(0x100), b.I32(0))
		top = b.Select(big, b.Or(cut, sticky), top)
	}
	f := b.Mul(b.Conv(kernel.UToF, kernel.F32, top), scale)
	return b.Select(neg, b.Un(kernel.FNeg, f), f)
}

// roundTo53 rounds an I64, taken as unsigned, to 53 significant bits, ties to even. What would be 2^64 becomes the
// largest number below, which later roundings to f32 or less take there.
func roundTo53(b *kernel.Builder, mag kernel.Value) kernel.Value {
	hi := b.Conv(kernel.Wrap, kernel.I32, b.ShrUI(mag, 53)) // the bits beyond
	sh := b.Conv(kernel.ZExt, kernel.I64, b.Sub(b.I32(32), b.Select(b.Cmp(kernel.IEq, hi, b.I32(0)), b.I32(32), b.Un(kernel.Clz, hi))))
	one := b.ConstInt(kernel.I64, 1)
	last := b.And(b.Bin(kernel.ShrU, mag, sh), one)
	below := b.Sub(b.Bin(kernel.Shl, one, sh), one)
	sum := b.Add(mag, b.Add(b.ShrUI(below, 1), b.And(last, below)))
	rounded := b.And(sum, b.Not(below))
	return b.Select(b.Cmp(kernel.ULt, sum, mag), b.ConstInt(kernel.I64, -1), rounded)
}

// OddF32 rounds an F64 to F32 to odd: a later rounding to 22 bits or fewer is as if it were the only one.
func OddF32(b *kernel.Builder, v kernel.Value) kernel.Value {
	r := b.Opaque(b.Conv(kernel.FConv, kernel.F32, v))
	back := b.Conv(kernel.FConv, kernel.F64, r)
	u := b.BitsTo(kernel.I32, r)
	over := b.Cmp(kernel.FLt, b.Un(kernel.FAbs, v), b.Un(kernel.FAbs, back))
	down := b.Select(over, b.Sub(u, b.I32(1)), u)
	odd := b.BitsTo(kernel.F32, b.Or(down, b.I32(1)))
	// A NaN is unequal to itself: it stays as it is, since FLt and FEq are both false for it.
	inexact := b.Or(b.Cmp(kernel.FLt, v, back), b.Cmp(kernel.FLt, back, v))
	return b.Select(inexact, odd, r)
}

// floatToInt truncates and wraps by bit arithmetic: what hardware does out of range differs.
func floatToInt(b *kernel.Builder, v kernel.Value, from, to graph.Type) kernel.Value {
	r := RegOf(to)
	lo, hi := IntRange(to)
	var n, mag, inf kernel.Value
	var neg kernel.Value
	if RegOf(from) == kernel.F32 {
		u := b.BitsTo(kernel.I32, v)
		neg = b.Cmp(kernel.SLt, u, b.I32(0))
		mag, inf = b.And(u, b.I32(0x7fffffff)), b.I32(0x7f800000)
		m := b.Or(b.And(u, b.I32(0x7fffff)), b.I32(0x800000))
		if r == kernel.I64 {
			m = b.Conv(kernel.ZExt, kernel.I64, m)
		}
		n = shiftBoth(b, m, b.Sub(b.ShrUI(mag, 23), b.I32(150)))
	} else {
		u := b.BitsTo(kernel.I64, v)
		neg = b.Cmp(kernel.SLt, u, b.Zero(kernel.I64))
		mag = b.And(u, b.ConstInt(kernel.I64, math.MaxInt64))
		inf = b.ConstInt(kernel.I64, 0x7ff0000000000000)
		m := b.Or(b.And(u, b.ConstInt(kernel.I64, 1<<52-1)), b.ConstInt(kernel.I64, 1<<52))
		n = shiftBoth(b, m, b.Sub(b.Conv(kernel.Wrap, kernel.I32, b.ShrUI(mag, 52)), b.I32(1075)))
		if r == kernel.I32 {
			n = b.Conv(kernel.Wrap, kernel.I32, n)
		}
	}
	n = b.Select(neg, b.Sub(b.Zero(r), n), n)
	limit := b.Select(neg, b.ConstInt(r, int64(lo)), b.ConstInt(r, int64(hi)))
	n = b.Select(b.Cmp(kernel.ULt, mag, inf), n, limit)
	return b.Select(b.Cmp(kernel.ULt, inf, mag), b.Zero(r), n)
}

// shiftBoth shifts m left by the I32 s, or right by -s; bits shifted out are lost and counts beyond the width
// give zero.
func shiftBoth(b *kernel.Builder, m, s kernel.Value) kernel.Value {
	t := b.TypeOf(m)
	width := b.I32(t.Bits())
	left := b.Cmp(kernel.SLe, b.I32(0), s)
	dist := b.Select(left, s, b.Sub(b.I32(0), s))
	out := b.Cmp(kernel.ULe, width, dist)
	d := b.And(dist, b.I32(t.Bits()-1))
	if t == kernel.I64 {
		d = b.Conv(kernel.ZExt, kernel.I64, d)
	}
	r := b.Select(left, b.Bin(kernel.Shl, m, d), b.Bin(kernel.ShrU, m, d))
	return b.Select(out, b.Zero(t), r)
}

// IntRange is the smallest and the largest integer of t, as the bits of a 64-bit register.
func IntRange(t graph.Type) (lo, hi uint64) {
	bits := t.Bits()
	if t.Signed() {
		return ^uint64(0) << (bits - 1), 1<<(bits-1) - 1
	}
	return 0, ^uint64(0) >> (64 - bits)
}
