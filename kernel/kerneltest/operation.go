package kerneltest

import (
	"math"

	"nxvk/kernel"
)

// operation emits a random pure operation whose result is defined.
func (g *generator) operation() kernel.Value {
	b := g.b
	switch g.IntN(8) {
	case 0, 1:
		return g.integerOp()
	case 2, 3:
		return g.floatOp()
	case 4:
		t := g.intType()
		op := kernel.IEq + kernel.Op(g.IntN(6))
		if g.IntN(2) == 0 {
			t, op = g.floatType(), kernel.FEq+kernel.Op(g.IntN(4))
		}
		return b.Cmp(op, g.pick(t), g.pick(t))
	case 5:
		x, y := g.pick(kernel.Bool), g.pick(kernel.Bool)
		return [...]func() kernel.Value{
			func() kernel.Value { return b.And(x, y) },
			func() kernel.Value { return b.Or(x, y) },
			func() kernel.Value { return b.Not(x) },
		}[g.IntN(3)]()
	case 6:
		t := g.anyType()
		return b.Select(g.pick(kernel.Bool), g.pick(t), g.pick(t))
	}
	return g.conversion()
}

func (g *generator) integerOp() kernel.Value {
	b, t := g.b, g.intType()
	x, y := g.pick(t), g.pick(t)
	op := kernel.IAdd + kernel.Op(g.IntN(int(kernel.PopCnt-kernel.IAdd)+1))
	switch op {
	case kernel.UDiv, kernel.URem:
		return b.Bin(op, x, b.Or(y, b.ConstInt(t, 1)))
	case kernel.SDiv, kernel.SRem:
		// 1 … 2^(w-1)-1, or the negative of an even one below -1.
		y = b.Or(b.ShrUI(y, 1), b.ConstInt(t, 1))
		if g.IntN(2) == 0 {
			y = b.Sub(b.ConstInt(t, -1), y)
		}
		return b.Bin(op, x, y)
	case kernel.Shl, kernel.ShrU, kernel.ShrS:
		return b.Bin(op, x, b.And(y, b.ConstInt(t, int64(t.Bits()-1))))
	case kernel.Not:
		return b.Not(x)
	case kernel.UMulHi:
		return b.Bin(op, g.pick(kernel.I32), g.pick(kernel.I32))
	case kernel.Clz, kernel.PopCnt:
		return b.Un(op, g.pick(kernel.I32))
	}
	return b.Bin(op, x, y)
}

func (g *generator) floatOp() kernel.Value {
	b, t := g.b, g.floatType()
	x, y := g.pick(t), g.pick(t)
	div, sqrt := g.t.Num.DivF32, g.t.Num.SqrtF32
	if t == kernel.F64 {
		div, sqrt = g.t.Num.DivF64, g.t.Num.SqrtF64
	}
	op := kernel.FAdd + kernel.Op(g.IntN(int(kernel.FmaExact-kernel.FAdd)+1))
	switch {
	case op == kernel.FDiv && !div, op == kernel.FSqrt && !sqrt:
		return b.Mul(x, y)
	case op == kernel.Mad:
		return b.Mad(x, y, g.pick(t))
	case op == kernel.FmaExact:
		// The error of a product of moderate numbers.
		x, y = b.Conv(kernel.SToF, t, g.pick(kernel.I32)), b.Conv(kernel.UToF, t, g.pick(kernel.I32))
		x, y = b.Mul(b.Opaque(x), b.ConstFloat(t, 1.0/3)), b.Mul(b.Opaque(y), b.ConstFloat(t, 0.7))
		return b.FmaExact(x, y, b.Un(kernel.FNeg, b.Mul(x, y)))
	case op <= kernel.FDiv:
		return b.Bin(op, x, y)
	}
	return b.Un(op, x)
}

func (g *generator) conversion() kernel.Value {
	b := g.b
	switch g.IntN(6) {
	case 0:
		if !g.t.I64 {
			return g.pick(kernel.I32)
		}
		return b.Conv(kernel.Wrap, kernel.I32, g.pick(kernel.I64))
	case 1:
		if !g.t.I64 {
			return g.pick(kernel.I32)
		}
		op := kernel.ZExt + kernel.Op(g.IntN(2))
		return b.Conv(op, kernel.I64, g.pick(kernel.I32))
	case 2:
		op := kernel.SToF + kernel.Op(g.IntN(2))
		return b.Opaque(b.Conv(op, g.floatType(), g.pick(g.intType())))
	case 3:
		return g.toInteger()
	case 4:
		if !g.t.F64 {
			return g.pick(kernel.F32)
		}
		if g.IntN(2) == 0 {
			return b.Conv(kernel.FConv, kernel.F64, g.pick(kernel.F32))
		}
		return g.flush(b.Opaque(b.Conv(kernel.FConv, kernel.F32, g.pick(kernel.F64))))
	}
	return g.pattern()
}

// toInteger converts a float, where it is in range.
func (g *generator) toInteger() kernel.Value {
	b, t, to := g.b, g.floatType(), g.intType()
	op := kernel.FToS + kernel.Op(g.IntN(2))
	x := g.pick(t)
	low, high := 0.0, math.Ldexp(1, to.Bits())
	if op == kernel.FToS {
		high /= 2
		low = -high
	}
	inside := b.And(b.Cmp(kernel.FLe, b.ConstFloat(t, low), x), b.Cmp(kernel.FLt, x, b.ConstFloat(t, high)))
	return b.Opaque(b.Select(inside, b.Conv(op, to, b.Select(inside, x, b.Zero(t))), b.ConstInt(to, 5)))
}

// pattern reinterprets bits, but never those of a NaN: their payload is the device's own.
func (g *generator) pattern() kernel.Value {
	b, t := g.b, g.floatType()
	i := kernel.I32
	if t == kernel.F64 {
		if !g.t.I64 {
			return g.pick(kernel.I32)
		}
		i = kernel.I64
	}
	if g.IntN(2) == 0 {
		return g.flush(b.BitsTo(t, g.pick(i)))
	}
	x := g.pick(t)
	return b.Select(b.Cmp(kernel.FEq, x, x), b.BitsTo(i, x), b.ConstInt(i, 9))
}
