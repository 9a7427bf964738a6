package shaders

import (
	"nxvk/graph"
	"nxvk/kernel"
)

// bitwise is and, or, xor and not, on operands extended by their own signs.
func (e *eval) bitwise(op graph.Op, in []*value, out graph.Type) kernel.Value {
	x := ResizeInt(e.Builder, e.reg(in[0]), in[0].t, RegOf(out))
	if op == "bitwise_not" {
		return e.Not(x)
	}
	y := ResizeInt(e.Builder, e.reg(in[1]), in[1].t, RegOf(out))
	switch op {
	case "bitwise_and":
		return e.And(x, y)
	case "bitwise_or":
		return e.Or(x, y)
	}
	return e.Xor(x, y)
}

// shift shifts by any count: beyond the width everything is gone, or only the sign is left. A negative
// count, which Nx refuses, counts as a large one.
func (e *eval) shift(op graph.Op, in []*value, out graph.Type) kernel.Value {
	r := RegOf(out)
	if op == "right_shift" && RegOf(in[0].t) == kernel.I64 {
		r = kernel.I64 // the bits shifted in come from the whole value
	}
	x := ResizeInt(e.Builder, e.reg(in[0]), in[0].t, r)
	n := e.reg(in[1])
	nt := e.TypeOf(n)
	gone := e.Cmp(kernel.ULe, e.ConstInt(nt, int64(r.Bits())), n)
	count := ResizeInt(e.Builder, e.And(n, e.ConstInt(nt, int64(r.Bits()-1))), in[1].t, r)
	zero := e.Zero(r)
	var v kernel.Value
	switch {
	case op == "left_shift":
		v = e.Select(gone, zero, e.Bin(kernel.Shl, x, count))
	case in[0].t.Signed():
		v = e.Select(gone, e.ShrSI(x, r.Bits()-1), e.Bin(kernel.ShrS, x, count))
	default:
		v = e.Select(gone, zero, e.Bin(kernel.ShrU, x, count))
	}
	return ResizeInt(e.Builder, v, graph.U64, RegOf(out))
}

// intDivision is quotient and remainder of integers of any types, by sign and magnitude: exact, and
// without the cases that hardware leaves open. Division by zero, which Nx refuses, yields 0.
func (e *eval) intDivision(op graph.Op, in []*value, out graph.Type) kernel.Value {
	if out.Float() { // remainder of integers with a float result
		inner := graph.S64
		if !in[0].t.Signed() {
			inner = graph.U64
		}
		v := e.intDivision(op, in, inner)
		return Convert(e.Builder, v, inner, out)
	}
	r := RegOf(out)
	for _, x := range in {
		if RegOf(x.t) == kernel.I64 {
			r = kernel.I64
		}
	}
	zero := e.Zero(r)
	never := e.ConstBool(false)
	magnitude := func(v *value) (mag, neg kernel.Value) {
		x := ResizeInt(e.Builder, e.reg(v), v.t, r)
		if !v.t.Signed() {
			return x, never
		}
		neg = e.Cmp(kernel.SLt, x, zero)
		return e.Select(neg, e.Sub(zero, x), x), neg
	}
	a, an := magnitude(in[0])
	b, bn := magnitude(in[1])
	none := e.Cmp(kernel.IEq, b, zero)
	b = e.Select(none, e.ConstInt(r, 1), b)
	var v, neg kernel.Value
	if op == "quotient" {
		v = e.Bin(kernel.UDiv, a, b)
		neg = e.Or(e.And(an, e.Not(bn)), e.And(bn, e.Not(an)))
	} else {
		v, neg = e.Bin(kernel.URem, a, b), an
	}
	v = e.Select(neg, e.Sub(zero, v), v)
	return ResizeInt(e.Builder, e.Select(none, zero, v), graph.U64, RegOf(out))
}

// intPow is the power by squaring, wrapping. A negative exponent, which Nx refuses, gives the integer part
// of the exact power (and 0 for base 0).
func (e *eval) intPow(x, y *value, out graph.Type) kernel.Value {
	r := RegOf(out)
	one, zero := e.ConstInt(r, 1), e.Zero(r)
	base := ResizeInt(e.Builder, e.reg(x), x.t, r)
	n := e.reg(y)
	nt := e.TypeOf(n)
	none := e.ConstBool(false)
	if y.t.Signed() {
		neg := e.Cmp(kernel.SLt, n, e.Zero(nt))
		unit := e.Cmp(kernel.IEq, base, one)
		if x.t.Signed() {
			unit = e.Or(unit, e.Cmp(kernel.IEq, base, e.ConstInt(r, -1)))
		}
		none = e.And(neg, e.Not(unit))
		n = e.Select(neg, e.Sub(e.Zero(nt), n), n)
	}
	acc, sq, rest := e.NewVar(one), e.NewVar(base), e.NewVar(n)
	e.Loop(func() {
		k := e.Get(rest)
		e.BreakIf(e.Cmp(kernel.IEq, k, e.Zero(nt)))
		s := e.Get(sq)
		odd := e.Cmp(kernel.INe, e.And(k, e.ConstInt(nt, 1)), e.Zero(nt))
		a := e.Get(acc)
		e.Set(acc, e.Select(odd, e.Mul(a, s), a))
		e.Set(sq, e.Mul(s, s))
		e.Set(rest, e.ShrUI(k, 1))
	})
	return e.Select(none, zero, e.Get(acc))
}

// countBits is count_leading_zeros and population_count, over the operand's own width.
func (e *eval) countBits(op graph.Op, in []*value, out graph.Type) kernel.Value {
	x := in[0]
	v := e.reg(x)
	bits := x.t.Bits()
	if bits < 32 {
		v = e.And(v, e.I32(1<<bits-1))
	}
	n := kernel.Value(0)
	switch {
	case op == "count_leading_zeros":
		n = leading(e.Builder, v)
		if bits < 32 {
			n = e.Sub(n, e.I32(32-bits))
		}
	case bits < 64:
		n = e.Un(kernel.PopCnt, v)
	default:
		hi, lo := e.Conv(kernel.Wrap, kernel.I32, e.ShrUI(v, 32)), e.Conv(kernel.Wrap, kernel.I32, v)
		n = e.Add(e.Un(kernel.PopCnt, hi), e.Un(kernel.PopCnt, lo))
	}
	return Convert(e.Builder, ResizeInt(e.Builder, n, graph.U64, kernel.I32), graph.U8, out)
}

// leading counts the leading zeros of an integer of either width, in its own type.
func leading(b *kernel.Builder, v kernel.Value) kernel.Value {
	narrow := func(w kernel.Value) kernel.Value {
		return b.Select(b.Cmp(kernel.IEq, w, b.I32(0)), b.I32(32), b.Un(kernel.Clz, w))
	}
	if b.TypeOf(v) == kernel.I32 {
		return narrow(v)
	}
	hi, lo := b.Conv(kernel.Wrap, kernel.I32, b.ShrUI(v, 32)), b.Conv(kernel.Wrap, kernel.I32, v)
	n := b.Select(b.Cmp(kernel.IEq, hi, b.I32(0)), b.Add(narrow(lo), b.I32(32)), narrow(hi))
	return b.Conv(kernel.ZExt, kernel.I64, n)
}
