package shaders

import (
	"nxvk/graph"
	"nxvk/kernel"
)

// boolean turns a Bool into 1 or 0 of type out.
func (e *eval) boolean(c kernel.Value, out graph.Type) kernel.Value {
	if out.Float() {
		return e.Select(c, e.ConstFloat(RegOf(out), 1), e.Zero(RegOf(out)))
	}
	return e.Select(c, e.ConstInt(RegOf(out), 1), e.Zero(RegOf(out)))
}

// truth is whether v is not zero; a NaN is true.
func (e *eval) truth(v *value) kernel.Value {
	x := e.reg(v)
	if v.t.Float() {
		x = e.magnitude(x) // as bits, so that subnormals count on devices that flush them
	}
	return e.Cmp(kernel.INe, x, e.Zero(e.TypeOf(x)))
}

func (e *eval) logical(op graph.Op, in []*value, out graph.Type) kernel.Value {
	x, y := e.truth(in[0]), e.truth(in[1])
	switch op {
	case "logical_and":
		return e.boolean(e.And(x, y), out)
	case "logical_or":
		return e.boolean(e.Or(x, y), out)
	}
	return e.boolean(e.Or(e.And(x, e.Not(y)), e.And(y, e.Not(x))), out)
}

// order is how two values compare, exactly, whatever their types: as numbers, not after a conversion.
type order struct{ less, equal, greater kernel.Value } // all false when one is NaN

func (e *eval) order(x, y *value) order {
	switch {
	case x.t.Int() && y.t.Int():
		return e.orderInts(x, y)
	case exactIn(x.t, kernel.F32) && exactIn(y.t, kernel.F32):
		return e.orderFloats(e.float(x, kernel.F32), e.float(y, kernel.F32))
	case e.T.F64 && exactIn(x.t, kernel.F64) && exactIn(y.t, kernel.F64):
		return e.orderFloats(e.float(x, kernel.F64), e.float(y, kernel.F64))
	case y.t.Int():
		o := e.orderMixed(y, x)
		return order{o.greater, o.equal, o.less}
	}
	return e.orderMixed(x, y)
}

func (e *eval) orderFloats(x, y kernel.Value) order {
	return order{e.Cmp(kernel.FLt, x, y), e.Cmp(kernel.FEq, x, y), e.Cmp(kernel.FLt, y, x)}
}

func (e *eval) orderInts(x, y *value) order {
	r := kernel.I32
	if RegOf(x.t) == kernel.I64 || RegOf(y.t) == kernel.I64 {
		r = kernel.I64
	}
	a, b := ResizeInt(e.Builder, e.reg(x), x.t, r), ResizeInt(e.Builder, e.reg(y), y.t, r)
	full := func(t graph.Type) bool { return !t.Signed() && t.Bits() == r.Bits() }
	if x.t.Signed() == y.t.Signed() && !x.t.Signed() {
		return order{e.Cmp(kernel.ULt, a, b), e.Cmp(kernel.IEq, a, b), e.Cmp(kernel.ULt, b, a)}
	}
	less, equal, greater := e.Cmp(kernel.SLt, a, b), e.Cmp(kernel.IEq, a, b), e.Cmp(kernel.SLt, b, a)
	// An unsigned number of the register's whole width that looks negative is above every signed one.
	var high kernel.Value
	switch zero := e.Zero(r); {
	case full(x.t):
		high = e.Cmp(kernel.SLt, a, zero)
		return order{e.And(less, e.Not(high)), e.And(equal, e.Not(high)), e.Or(greater, high)}
	case full(y.t):
		high = e.Cmp(kernel.SLt, b, zero)
		return order{e.Or(less, high), e.And(equal, e.Not(high)), e.And(greater, e.Not(high))}
	}
	return order{less, equal, greater}
}

// orderMixed compares integer i with float f where no float register holds both: f's integer part is
// taken where i's type can hold it, and its fraction breaks a tie.
func (e *eval) orderMixed(i, f *value) order {
	iv, fv := e.reg(i), e.reg(f)
	ft := e.TypeOf(fv)
	bits := i.t.Bits()
	low, high := 0.0, float64(uint64(1)<<(bits-1))*2
	if i.t.Signed() {
		low, high = -high/2, high/2
	}
	inside := e.And(e.Cmp(kernel.FLe, e.ConstFloat(ft, low), fv), e.Cmp(kernel.FLt, fv, e.ConstFloat(ft, high)))
	above := e.Cmp(kernel.FLe, e.ConstFloat(ft, high), fv)
	below := e.Cmp(kernel.FLt, fv, e.ConstFloat(ft, low))
	safe := e.Select(inside, fv, e.Zero(ft))
	n := floatToInt(e.Builder, safe, realType(ft), i.t)
	cut := e.whole(kernel.Trunc, safe)
	more, fewer := e.Cmp(kernel.FLt, cut, safe), e.Cmp(kernel.FLt, safe, cut)
	lt := kernel.ULt
	if i.t.Signed() {
		lt = kernel.SLt
	}
	same := e.Cmp(kernel.IEq, iv, n)
	less := e.Or(e.Cmp(lt, iv, n), e.And(same, more))
	greater := e.Or(e.Cmp(lt, n, iv), e.And(same, fewer))
	equal := e.And(same, e.Not(e.Or(more, fewer)))
	return order{e.Or(above, e.And(inside, less)), e.And(inside, equal), e.Or(below, e.And(inside, greater))}
}

func (e *eval) compare(op graph.Op, in []*value, out graph.Type) kernel.Value {
	o := e.order(in[0], in[1])
	var c kernel.Value
	switch op {
	case "equal":
		c = o.equal
	case "not_equal":
		c = e.Not(o.equal)
	case "greater":
		c = o.greater
	case "less":
		c = o.less
	case "greater_equal":
		c = e.Or(o.greater, o.equal)
	default:
		c = e.Or(o.less, o.equal)
	}
	return e.boolean(c, out)
}

// as is the open form of v converted to out.
func (e *eval) as(v *value, out graph.Type) kernel.Value {
	w := e.asType(v, out)
	return e.openOf(&w)
}

// minMax yields NaN when either is NaN, and the first of two equal ones.
func (e *eval) minMax(op graph.Op, in []*value, out graph.Type) kernel.Value {
	o := e.order(in[0], in[1])
	second := o.less
	if op == "min" {
		second = o.greater
	}
	v := e.Select(second, e.as(in[1], out), e.as(in[0], out))
	if !out.Float() {
		return v
	}
	nan := e.ConstBits(RegOf(out), 0x7fc00000)
	if RegOf(out) == kernel.F64 {
		nan = e.ConstBits(kernel.F64, 0x7ff8000000000000)
	}
	for _, x := range in {
		if x.t.Float() {
			v = e.Select(e.isNaN(e.reg(x)), nan, v)
		}
	}
	return v
}

// clip is Nx's: x where it is greater than min, else min; of that what is less than max, else max. So a
// NaN becomes min, and a NaN bound gives max.
func (e *eval) clip(_ graph.Op, in []*value, out graph.Type) kernel.Value {
	x, lo, hi := in[0], in[1], in[2]
	above := e.order(x, lo).greater
	v := e.Select(above, e.as(x, out), e.as(lo, out))
	below := e.Or(e.And(above, e.order(x, hi).less), e.And(e.Not(above), e.order(lo, hi).less))
	return e.Select(below, v, e.as(hi, out))
}
