package spirv

import (
	"math"

	"nxvk/kernel"
)

// sign flips or clears the sign bit by integer arithmetic: devices flush subnormals in a float
// negation too, and may drop the sign of a NaN.
func (e *emitter) sign(op kernel.Op, t kernel.Type, x uint32) uint32 {
	u, top := e.bits(t), uint64(1)<<(t.Bits()-1)
	x = e.value(opBitcast, u, x)
	if op == kernel.FNeg {
		x = e.value(opBitwiseXor, u, x, e.constant(u, top, t.Bits()))
	} else {
		x = e.value(opBitwiseAnd, u, x, e.constant(u, top-1, t.Bits()))
	}
	return e.value(opBitcast, e.typ(t), x)
}

// hide is x XOR a zero that only memory knows, so that no driver folds a narrowing that is widened
// again (f64 to f32 to f64, i32 to f32 to i32) into nothing.
func (e *emitter) hide(t kernel.Type, x uint32) uint32 {
	switch t {
	case kernel.Bool:
		set := e.value(opINotEqual, e.bool(), e.opaque32, e.const32(0))
		return e.value(opLogicalNotEqual, e.bool(), x, set)
	case kernel.I32:
		return e.value(opBitwiseXor, e.u32(), x, e.opaque32)
	case kernel.I64:
		return e.value(opBitwiseXor, e.u64(), x, e.opaque64)
	}
	zero := e.opaque32
	if t == kernel.F64 {
		zero = e.opaque64
	}
	x = e.value(opBitcast, e.bits(t), x)
	x = e.value(opBitwiseXor, e.bits(t), x, zero)
	return e.value(opBitcast, e.typ(t), x)
}

// Drivers fold x + 0 to x, which is wrong at -0; 0 - x to -x, which is wrong at 0; x * 0 and x - x to
// 0, which is wrong at infinities; and x / 0 to anything. They do so whatever the execution mode says,
// for every zero that they can derive. So such zeros come from memory: constants, what is computed of
// constants alone, and constants that reach arithmetic by way of a variable.

// addend is the id of an operand of float arithmetic.
func (e *emitter) addend(v kernel.Value) uint32 {
	id := e.use(v)
	if id == 0 || !e.need.zeros[v] {
		return id
	}
	in := e.def[v]
	if in.Op != kernel.Const {
		return e.hide(in.Type, id)
	}
	zero := &e.zeros[in.Type-kernel.F32][in.Imm>>(in.Type.Bits()-1)]
	if *zero == 0 {
		e.fail("v%d: a zero that was not foreseen", v)
	}
	return *zero
}

// pair is the operands of float arithmetic. A difference of a value and itself is hidden too.
func (e *emitter) pair(in *kernel.Instr) (a, b uint32) {
	a, b = e.addend(in.A), e.addend(in.B)
	if in.Op == kernel.FSub && in.A == in.B {
		b = e.hide(in.Type, b)
	}
	return a, b
}

// hidden makes the zeros that addend takes, at the top of the function, where all can see them.
func (e *emitter) hidden() {
	for i, signs := range e.need.literal {
		t := kernel.F32 + kernel.Type(i)
		for sign, used := range signs {
			if used {
				e.zeros[i][sign] = e.hide(t, e.literal(t, uint64(sign)<<(t.Bits()-1)))
			}
		}
	}
}

// zeroFloat reports whether in is a constant zero of either sign.
func zeroFloat(in *kernel.Instr) bool {
	return in.Op == kernel.Const && in.Type.Float() && in.Imm&(1<<(in.Type.Bits()-1)-1) == 0
}

func (e *emitter) fuses(t kernel.Type) bool {
	return t == kernel.F32 && e.t.Num.FuseF32 || t == kernel.F64 && e.t.Num.FuseF64
}

// mad is a*b+c: one instruction where the device fuses it, else two.
func (e *emitter) mad(in *kernel.Instr) uint32 {
	t := e.typ(in.Type)
	a, b, c := e.addend(in.A), e.addend(in.B), e.addend(in.C)
	if e.fuses(in.Type) {
		return e.ext(glslFma, t, a, b, c)
	}
	return e.exact(opFAdd, t, e.exact(opFMul, t, a, b), c)
}

// fmaExact is a*b+c where that is representable.
//
// Where the device does not fuse, f32 goes through f64 (the product of two f32 is exact there, and so
// is a sum that fits f32), which has no other limits. f64, and f32 on a device whose f64 is missing or
// slow, goes through Dekker's product: exact while |a|, |b| < 2^996 (f32: 2^115), while a*b does not
// overflow and |a*b| > 2^-969 (f32: 2^-102), so that the error of the product is a normal number.
func (e *emitter) fmaExact(in *kernel.Instr) uint32 {
	t := e.typ(in.Type)
	a, b, c := e.addend(in.A), e.addend(in.B), e.addend(in.C)
	if e.fuses(in.Type) {
		return e.ext(glslFma, t, a, b, c)
	}
	if in.Type == kernel.F32 && e.t.F64 && !e.t.SlowF64 {
		d := e.typ(kernel.F64)
		wide := func(x uint32) uint32 { return e.value(opFConvert, d, x) }
		p := e.exact(opFMul, d, wide(a), wide(b))
		return e.value(opFConvert, t, e.exact(opFAdd, d, p, wide(c)))
	}
	add := func(x, y uint32) uint32 { return e.exact(opFAdd, t, x, y) }
	sub := func(x, y uint32) uint32 { return e.exact(opFSub, t, x, y) }
	mul := func(x, y uint32) uint32 { return e.exact(opFMul, t, x, y) }
	// Veltkamp: the high half of the significand, and the rest.
	split := func(x uint32) (hi, lo uint32) {
		s := mul(x, e.splitter(in.Type))
		hi = sub(s, sub(s, x))
		return hi, sub(x, hi)
	}
	p := mul(a, b)
	ah, al := split(a)
	bh, bl := ah, al
	if a != b {
		bh, bl = split(b)
	}
	err := add(add(add(sub(mul(ah, bh), p), mul(ah, bl)), mul(al, bh)), mul(al, bl))
	if e.negatedProduct(in) {
		return err
	}
	// Two-sum of p and c, then all that was lost.
	s := add(p, c)
	v := sub(s, p)
	lost := add(sub(p, sub(s, v)), sub(c, v))
	return add(s, add(lost, err))
}

// negatedProduct reports whether c is -(a*b), rounded: then the result is the error of the product.
func (e *emitter) negatedProduct(in *kernel.Instr) bool {
	neg := e.def[in.C]
	if neg.Op != kernel.FNeg {
		return false
	}
	mul := e.def[neg.A]
	return mul.Op == kernel.FMul && (mul.A == in.A && mul.B == in.B || mul.A == in.B && mul.B == in.A)
}

// splitter is 2^ceil(p/2)+1 for a significand of p bits.
func (e *emitter) splitter(t kernel.Type) uint32 {
	if t == kernel.F32 {
		return e.literal(t, uint64(math.Float32bits(1<<12+1)))
	}
	return e.literal(t, math.Float64bits(1<<27+1))
}
