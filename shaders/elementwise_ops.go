package shaders

import (
	"nxvk/graph"
	"nxvk/kernel"
)

// value is one element while a kernel computes: its form in memory, its canonical register form, or an
// open one (the result of an operation, not yet rounded or wrapped to its type). Forms are made from
// one another when asked for.
type value struct {
	t              graph.Type
	raw, reg, open kernel.Value
	narrowed       bool      // open came out of a narrowing conversion, which drivers fold with a widening
	parts          *[2]value // of a complex number, which has none of these forms itself
}

// eval emits operations on values.
type eval struct{ *kernel.Builder }

// reg is the canonical register form of v.
func (e *eval) reg(v *value) kernel.Value {
	if v.reg == 0 {
		switch {
		case v.raw != 0 && v.narrowed && v.t == graph.F32:
			v.reg = e.Opaque(v.raw)
		case v.raw != 0:
			v.reg = Widen(e.Builder, v.t, v.raw)
		case v.narrowed || RegOf(v.t) == kernel.I32 || smallFloat(v.t):
			v.reg = Round(e.Builder, v.t, v.open)
		default:
			v.reg = v.open
		}
	}
	return v.reg
}

// raw is the memory form of v.
func (e *eval) raw(v *value) kernel.Value {
	if v.raw == 0 {
		if v.open != 0 {
			v.raw = Narrow(e.Builder, v.t, v.open)
		} else {
			v.raw = Narrow(e.Builder, v.t, v.reg)
		}
	}
	return v.raw
}

// opTable says how each elementwise op is computed. An entry yields the open result in the register
// type of out.
type opFunc func(e *eval, op graph.Op, in []*value, out graph.Type) kernel.Value

var opTable = map[graph.Op]opFunc{
	graph.OpSelect: nil, graph.OpAsType: nil, graph.OpBitcast: nil, "real": nil, "conjugate": nil, // see apply
	graph.OpClip: (*eval).clip, graph.OpComplex: nil, // see complexTable

	"add": (*eval).arithmetic, "subtract": (*eval).arithmetic, "multiply": (*eval).arithmetic, "divide": (*eval).arithmetic,
	"pow": (*eval).pow, "atan2": (*eval).atan2, "quotient": (*eval).intDivision, "remainder": (*eval).remainder,
	"min": (*eval).minMax, "max": (*eval).minMax,
	"bitwise_and": (*eval).bitwise, "bitwise_or": (*eval).bitwise, "bitwise_xor": (*eval).bitwise, "bitwise_not": (*eval).bitwise,
	"left_shift": (*eval).shift, "right_shift": (*eval).shift,
	"equal": (*eval).compare, "not_equal": (*eval).compare, "greater": (*eval).compare, "less": (*eval).compare,
	"greater_equal": (*eval).compare, "less_equal": (*eval).compare,
	"logical_and": (*eval).logical, "logical_or": (*eval).logical, "logical_xor": (*eval).logical,

	"abs": (*eval).abs, "negate": (*eval).negate, "sign": (*eval).sign,
	"ceil": (*eval).toWhole, "floor": (*eval).toWhole, "round": (*eval).toWhole,
	"imag":                func(e *eval, _ graph.Op, _ []*value, out graph.Type) kernel.Value { return e.Zero(RegOf(out)) },
	"count_leading_zeros": (*eval).countBits, "population_count": (*eval).countBits,
	"is_nan": (*eval).isSpecial, "is_infinity": (*eval).isSpecial,

	"exp": (*eval).function, "expm1": (*eval).function, "log": (*eval).function, "log1p": (*eval).function,
	"sigmoid": (*eval).function, "cos": (*eval).function, "sin": (*eval).function, "tan": (*eval).function,
	"cosh": (*eval).function, "sinh": (*eval).function, "tanh": (*eval).function, "acos": (*eval).function,
	"asin": (*eval).function, "atan": (*eval).function, "acosh": (*eval).function, "asinh": (*eval).function,
	"atanh": (*eval).function, "sqrt": (*eval).function, "rsqrt": (*eval).function, "cbrt": (*eval).function,
	"erf": (*eval).function, "erfc": (*eval).function, "erf_inv": (*eval).function,
}

// ElementwiseOp reports whether a Region can hold op.
func ElementwiseOp(op graph.Op) bool {
	_, ok := opTable[op]
	return ok
}

// apply computes one node.
func (e *eval) apply(op graph.Op, in []*value, out graph.Type) value {
	if ofComplex(in, out) {
		return e.complex(op, in, out)
	}
	switch op {
	case graph.OpSelect:
		return e.selects(in, out)
	case graph.OpBitcast:
		return e.bitcast(in[0], out)
	case graph.OpAsType, "real", "conjugate":
		return e.asType(in[0], out)
	}
	v := opTable[op](e, op, in, out)
	if out.Float() {
		v = CanonNaN(e.Builder, out, v)
	}
	mixed := false
	for _, x := range in {
		mixed = mixed || RegOf(x.t) != RegOf(out)
	}
	return value{t: out, open: v, narrowed: mixed}
}

// asType moves values of the same type as they are: even a NaN's payload stays.
func (e *eval) asType(x *value, out graph.Type) value {
	if x.t == out {
		return *x
	}
	v := Convert(e.Builder, e.reg(x), x.t, out)
	return value{t: out, open: CanonNaN(e.Builder, out, v), narrowed: true}
}

func (e *eval) bitcast(x *value, out graph.Type) value {
	raw := e.BitsTo(MemOf(out).Reg(), e.raw(x))
	if out.Bits() < 8 { // the byte is extended by another sign
		raw = Narrow(e.Builder, out, raw)
	}
	return value{t: out, raw: raw}
}

func (e *eval) selects(in []*value, out graph.Type) value {
	c := e.truth(in[0])
	if in[1].t == out && in[2].t == out {
		return value{t: out, raw: e.Select(c, e.raw(in[1]), e.raw(in[2])), narrowed: in[1].narrowed || in[2].narrowed}
	}
	x, y := e.asType(in[1], out), e.asType(in[2], out)
	return value{t: out, open: e.Select(c, e.openOf(&x), e.openOf(&y)), narrowed: true}
}

// openOf is any register form of v.
func (e *eval) openOf(v *value) kernel.Value {
	if v.open != 0 {
		return v.open
	}
	return e.reg(v)
}

// significand is how many significant bits a value of t may have.
func significand(t graph.Type) int {
	switch t {
	case graph.F8:
		return 3
	case graph.F8E4M3FN:
		return 4
	case graph.BF16:
		return 8
	case graph.F16:
		return 11
	case graph.F32:
		return 24
	case graph.F64:
		return 53
	}
	return t.Bits()
}

// exactIn reports whether float register r holds every value of t.
func exactIn(t graph.Type, r kernel.Type) bool {
	if r == kernel.F32 {
		return significand(t) <= 24
	}
	return significand(t) <= 53
}

// float brings v to float register r, rounding where r cannot hold it.
func (e *eval) float(v *value, r kernel.Type) kernel.Value {
	x := e.reg(v)
	if v.t.Int() {
		return IntToF(e.Builder, x, v.t, r)
	}
	return e.Conv(kernel.FConv, r, x)
}

// realType is the float type of register r.
func realType(r kernel.Type) graph.Type {
	if r == kernel.F64 {
		return graph.F64
	}
	return graph.F32
}

// fromFloat turns a float register into the open form of out.
func (e *eval) fromFloat(v kernel.Value, out graph.Type) kernel.Value {
	return Convert(e.Builder, v, realType(e.TypeOf(v)), out)
}

// wide is F64 where the device has it, else F32: then the last bit may differ from Nx's.
func (e *eval) wide() kernel.Type {
	if e.T.F64 {
		return kernel.F64
	}
	return kernel.F32
}

// holding is a float register that holds the operands exactly, F64 for an F64 result.
func (e *eval) holding(in []*value, out graph.Type) kernel.Type {
	if out == graph.F64 {
		return kernel.F64
	}
	for _, x := range in {
		if !exactIn(x.t, kernel.F32) {
			return e.wide()
		}
	}
	return kernel.F32
}

// rounding is a float register in which +, -, *, / and then rounding to out give what f64 and then
// rounding give, which is what Nx computes. F32 does when the operands have no more significant
// bits than out, and out is f32 (one rounding) or has at most 11 (24 >= 2*11+2: the double rounding is
// innocuous; Figueroa, "When is double rounding innocuous?").
func (e *eval) rounding(in []*value, out graph.Type) kernel.Type {
	if out == graph.F64 {
		return kernel.F64
	}
	for _, x := range in {
		if significand(x.t) > significand(out) {
			return e.wide()
		}
	}
	return kernel.F32
}

func allInts(in []*value) bool {
	for _, x := range in {
		if !x.t.Int() {
			return false
		}
	}
	return true
}

// arithmetic is add, subtract, multiply and divide.
func (e *eval) arithmetic(op graph.Op, in []*value, out graph.Type) kernel.Value {
	if out.Int() && allInts(in) && op != "divide" {
		r := RegOf(out)
		x := ResizeInt(e.Builder, e.reg(in[0]), in[0].t, r)
		y := ResizeInt(e.Builder, e.reg(in[1]), in[1].t, r)
		return e.Bin(map[graph.Op]kernel.Op{"add": kernel.IAdd, "subtract": kernel.ISub, "multiply": kernel.IMul}[op], x, y)
	}
	r := e.rounding(in, out)
	x, y := e.float(in[0], r), e.float(in[1], r)
	var v kernel.Value
	switch op {
	case "add":
		v = e.Bin(kernel.FAdd, x, y)
	case "subtract":
		v = e.Bin(kernel.FSub, x, y)
	case "multiply":
		v = e.Bin(kernel.FMul, x, y)
	default:
		v = e.divide(x, y)
	}
	return e.fromFloat(v, out)
}

// divide is IEEE division but for two cases in which Nx differs: a finite number over an infinity is +0
// whatever the signs, and an infinity over -0 keeps its sign.
func (e *eval) divide(x, y kernel.Value) kernel.Value {
	r := e.TypeOf(x)
	q := Div(e.Builder, x, y)
	mx, my, inf := e.magnitude(x), e.magnitude(y), e.infinityBits(r)
	zero := e.Zero(e.TypeOf(mx))
	q = e.Select(e.And(e.Cmp(kernel.IEq, my, inf), e.Cmp(kernel.ULt, mx, inf)), e.Zero(r), q)
	return e.Select(e.And(e.Cmp(kernel.IEq, mx, inf), e.Cmp(kernel.IEq, my, zero)), x, q)
}

// magnitude is the bit pattern of a float without its sign.
func (e *eval) magnitude(x kernel.Value) kernel.Value { return magnitude(e.Builder, x) }

func (e *eval) infinityBits(r kernel.Type) kernel.Value { return infinityBits(e.Builder, r) }

func (e *eval) isNaN(x kernel.Value) kernel.Value { return isNaN(e.Builder, x) }

// function is a function of one real variable.
func (e *eval) function(op graph.Op, in []*value, out graph.Type) kernel.Value {
	r := e.holding(in, out)
	x := e.float(in[0], r)
	if op == "sqrt" {
		return e.fromFloat(Sqrt(e.Builder, x), out)
	}
	return e.fromFloat(Func(e.Builder, op, x), out)
}

func (e *eval) remainder(op graph.Op, in []*value, out graph.Type) kernel.Value {
	if allInts(in) {
		return e.intDivision(op, in, out)
	}
	r := e.holding(in, out)
	return e.fromFloat(Fmod(e.Builder, e.float(in[0], r), e.float(in[1], r)), out)
}

func (e *eval) abs(_ graph.Op, in []*value, out graph.Type) kernel.Value {
	x := in[0]
	if x.t.Float() {
		return Convert(e.Builder, e.Un(kernel.FAbs, e.reg(x)), x.t, out)
	}
	if out.Float() {
		w := e.asType(x, out)
		return e.Un(kernel.FAbs, e.openOf(&w))
	}
	v := ResizeInt(e.Builder, e.reg(x), x.t, RegOf(out))
	if !x.t.Signed() {
		return v
	}
	zero := e.Zero(e.TypeOf(v))
	return e.Select(e.Cmp(kernel.SLt, v, zero), e.Sub(zero, v), v)
}

func (e *eval) negate(_ graph.Op, in []*value, out graph.Type) kernel.Value {
	x := in[0]
	if x.t.Float() {
		return Convert(e.Builder, e.Un(kernel.FNeg, e.reg(x)), x.t, out)
	}
	if out.Float() { // the integer 0 negates to 0
		w := e.asType(x, out)
		v := e.openOf(&w)
		return e.Select(e.truth(x), e.Un(kernel.FNeg, v), v)
	}
	v := ResizeInt(e.Builder, e.reg(x), x.t, RegOf(out))
	return e.Sub(e.Zero(e.TypeOf(v)), v)
}

// sign keeps zeros (and NaN) as they are.
func (e *eval) sign(_ graph.Op, in []*value, out graph.Type) kernel.Value {
	x, v := in[0], e.reg(in[0])
	if x.t.Float() {
		r := e.TypeOf(v)
		m := e.magnitude(v)
		neg := e.Cmp(kernel.SLt, e.BitsTo(e.TypeOf(m), v), e.Zero(e.TypeOf(m)))
		one := e.Select(neg, e.ConstFloat(r, -1), e.ConstFloat(r, 1))
		s := e.Select(e.Or(e.Cmp(kernel.IEq, m, e.Zero(e.TypeOf(m))), e.isNaN(v)), v, one)
		return Convert(e.Builder, s, x.t, out)
	}
	t := e.TypeOf(v)
	s := e.Select(e.truth(x), e.ConstInt(t, 1), e.Zero(t))
	if x.t.Signed() {
		s = e.Select(e.Cmp(kernel.SLt, v, e.Zero(t)), e.ConstInt(t, -1), s)
	}
	return Convert(e.Builder, s, x.t, out)
}

// toWhole is ceil, floor and round. round goes away from zero at halves, and its zeros are +0.
func (e *eval) toWhole(op graph.Op, in []*value, out graph.Type) kernel.Value {
	x, v := in[0], e.reg(in[0])
	if x.t.Int() {
		return Convert(e.Builder, v, x.t, out)
	}
	switch op {
	case "ceil":
		v = e.whole(kernel.Ceil, v)
	case "floor":
		v = e.whole(kernel.Floor, v)
	default:
		r := e.TypeOf(v)
		cut := e.whole(kernel.Trunc, v)
		half := e.Cmp(kernel.FLe, e.ConstFloat(r, 0.5), e.Un(kernel.FAbs, e.Sub(v, cut)))
		one := e.Select(e.Cmp(kernel.FLt, v, e.Zero(r)), e.ConstFloat(r, -1), e.ConstFloat(r, 1))
		v = e.Select(half, e.Add(cut, one), cut)
		v = e.Select(e.Cmp(kernel.FEq, v, e.Zero(r)), e.Zero(r), v)
	}
	return Convert(e.Builder, v, x.t, out)
}

// whole rounds to a whole number; zeros, whole numbers and what is not finite keep their sign and bits.
func (e *eval) whole(op kernel.Op, v kernel.Value) kernel.Value {
	w := e.Un(op, v)
	m := e.magnitude(w)
	sign := e.Xor(e.BitsTo(e.TypeOf(m), v), e.magnitude(v))
	return e.BitsTo(e.TypeOf(v), e.Or(m, sign))
}

func (e *eval) isSpecial(op graph.Op, in []*value, out graph.Type) kernel.Value {
	c := e.ConstBool(false)
	if in[0].t.Float() {
		v := e.reg(in[0])
		c = e.isNaN(v)
		if op == "is_infinity" {
			c = e.Cmp(kernel.IEq, e.magnitude(v), e.infinityBits(e.TypeOf(v)))
		}
	}
	return e.boolean(c, out)
}

func (e *eval) atan2(_ graph.Op, in []*value, out graph.Type) kernel.Value {
	r := e.holding(in, out)
	return e.fromFloat(Atan2(e.Builder, e.float(in[0], r), e.float(in[1], r)), out)
}

func (e *eval) pow(_ graph.Op, in []*value, out graph.Type) kernel.Value {
	if out.Int() && allInts(in) {
		return e.intPow(in[0], in[1], out)
	}
	r := e.holding(in, out)
	return e.fromFloat(Pow(e.Builder, e.float(in[0], r), e.float(in[1], r)), out)
}
