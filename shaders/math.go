package shaders

import (
	"fmt"

	"nxvk/graph"
	"nxvk/kernel"
)

// The transcendentals, as kernel IR from exact operations only, so that every device gives the
// same bits. Three kinds of arithmetic share the algorithms:
//
//   - binary64 results: double-double ("two-float") cores with relative errors near 2^-58, rounded
//     once; what Nx.BinaryBackend computes by a formula of several rounded steps (sigmoid, rsqrt,
//     erf_inv) is computed by the same steps. Needs I64 beside F64.
//   - binary32 results where binary64 is there and not slow: short binary64 polynomials with errors
//     near 2^-40, rounded once.
//   - binary32 results elsewhere: the cores of the first kind over pairs of binary32.
//
// Multiply-adds are written as two rounded operations, never Mad: whether a device fuses must not
// show in a result. docs/NUMERICS.md has the measured errors.

// Func emits a unary function of x, which is F32 or F64; the result has the same type. op is one of
// exp expm1 log log1p sigmoid cos sin tan cosh sinh tanh acos asin atan acosh asinh atanh sqrt rsqrt
// cbrt erf erfc erf_inv. NaN gives NaN, a value outside the domain NaN, a pole or an overflow the
// signed infinity, and odd functions keep the sign of zero. It panics on another op.
func Func(b *kernel.Builder, op graph.Op, x kernel.Value) kernel.Value {
	f, ok := unaryFuncs[op]
	if !ok {
		panic(fmt.Sprintf("shaders: %s is not a transcendental function", op))
	}
	if b.TypeOf(x) == kernel.F32 && wide(b) && f.wide != nil {
		return narrow(b, f.wide(newFP(b, kernel.F64), b.Conv(kernel.FConv, kernel.F64, x)))
	}
	return f.native(newFP(b, b.TypeOf(x)), x)
}

// function is how one unary function is computed: native in the type of its argument, and wide in
// binary64 of a binary32 argument, to binary32's accuracy only.
type function struct {
	native func(f *fp, x kernel.Value) kernel.Value
	wide   func(f *fp, x kernel.Value) kernel.Value
}

var unaryFuncs map[graph.Op]function

// init, since the table and Func refer to each other through the functions that use others.
func init() {
	unaryFuncs = map[graph.Op]function{
		"exp":     {(*fp).exp, (*fp).expWide},
		"expm1":   {(*fp).expm1, (*fp).expm1Wide},
		"sigmoid": {(*fp).sigmoid, (*fp).sigmoidWide},
		"tanh":    {(*fp).tanh, (*fp).tanhWide},
		"sinh":    {(*fp).sinh, (*fp).sinhWide},
		"cosh":    {(*fp).cosh, (*fp).coshWide},
		"log":     {(*fp).log, (*fp).logWide},
		"log1p":   {(*fp).log1p, (*fp).log1pWide},
		"asinh":   {(*fp).asinh, (*fp).asinhWide},
		"acosh":   {(*fp).acosh, (*fp).acoshWide},
		"atanh":   {(*fp).atanh, (*fp).atanhWide},
		"sin":     {(*fp).sin, (*fp).sinWide},
		"cos":     {(*fp).cos, (*fp).cosWide},
		"tan":     {(*fp).tan, (*fp).tanWide},
		"asin":    {(*fp).asin, (*fp).asinWide},
		"acos":    {(*fp).acos, (*fp).acosWide},
		"atan":    {(*fp).atan, (*fp).atanWide},
		"cbrt":    {(*fp).cbrt, (*fp).cbrtWide},
		"erf":     {(*fp).erf, (*fp).erfWide},
		"erfc":    {(*fp).erfc, (*fp).erfcWide},
		"erf_inv": {(*fp).erfInv, (*fp).erfInvWide},
		"sqrt":    {(*fp).sqrt, nil},
		"rsqrt":   {(*fp).rsqrt, (*fp).rsqrt},
	}
}

// wide reports whether binary32 functions are computed in binary64.
func wide(b *kernel.Builder) bool { return b.T.F64 && !b.T.SlowF64 }

// narrow rounds a binary64 result to binary32. It is opaque, because drivers fold a narrowing with
// the widening that the next function of a fused kernel begins with.
func narrow(b *kernel.Builder, x kernel.Value) kernel.Value {
	return b.Opaque(b.Conv(kernel.FConv, kernel.F32, x))
}

// fp emits arithmetic of one floating type.
type fp struct {
	b    *kernel.Builder
	t, i kernel.Type // the type, and the integer type of its width
	mant int         // fraction bits
	bias int
}

func newFP(b *kernel.Builder, t kernel.Type) *fp {
	if t == kernel.F32 {
		return &fp{b, t, kernel.I32, 23, 127}
	}
	return &fp{b, t, kernel.I64, 52, 1023}
}

type val = kernel.Value

func (f *fp) is64() bool { return f.t == kernel.F64 }

// pick is the constant or table for the type.
func pick[T any](f *fp, f64, f32 T) T {
	if f.is64() {
		return f64
	}
	return f32
}

func (f *fp) c(v float64) val      { return f.b.ConstFloat(f.t, v) }
func (f *fp) ci(n int64) val       { return f.b.ConstInt(f.i, n) }
func (f *fp) add(x, y val) val     { return f.b.Add(x, y) }
func (f *fp) sub(x, y val) val     { return f.b.Sub(x, y) }
func (f *fp) mul(x, y val) val     { return f.b.Mul(x, y) }
func (f *fp) neg(x val) val        { return f.b.Un(kernel.FNeg, x) }
func (f *fp) abs(x val) val        { return f.b.Un(kernel.FAbs, x) }
func (f *fp) mad(x, y, z val) val  { return f.b.Add(f.b.Mul(x, y), z) }
func (f *fp) sel(c, x, y val) val  { return f.b.Select(c, x, y) }
func (f *fp) lt(x, y val) val      { return f.b.Cmp(kernel.FLt, x, y) }
func (f *fp) le(x, y val) val      { return f.b.Cmp(kernel.FLe, x, y) }
func (f *fp) eq(x, y val) val      { return f.b.Cmp(kernel.FEq, x, y) }
func (f *fp) isNaN(x val) val      { return f.b.Cmp(kernel.FNe, x, x) }
func (f *fp) bits(x val) val       { return f.b.BitsTo(f.i, x) }
func (f *fp) float(x val) val      { return f.b.BitsTo(f.t, x) }
func (f *fp) signMask() val        { return f.ci(-1 << (f.width() - 1)) }
func (f *fp) width() int           { return f.t.Bits() }
func (f *fp) inf(sign float64) val { return f.b.ConstBits(f.t, f.infBits(sign)) }
func (f *fp) nan() val {
	return f.b.ConstBits(f.t, pick[uint64](f, 0x7ff8000000000000, 0x7fc00000))
}

func (f *fp) infBits(sign float64) uint64 {
	if sign < 0 {
		return pick[uint64](f, 0xfff0000000000000, 0xff800000)
	}
	return pick[uint64](f, 0x7ff0000000000000, 0x7f800000)
}

// withSign is |x| with the sign of s, for an x that is not negative.
func (f *fp) withSign(x, s val) val {
	return f.float(f.b.Or(f.bits(x), f.b.And(f.bits(s), f.signMask())))
}

// min clamps x from above by a constant; NaN passes through.
func (f *fp) min(x val, hi float64) val { return f.sel(f.lt(f.c(hi), x), f.c(hi), x) }

// max clamps x from below by a constant; NaN passes through.
func (f *fp) max(x val, lo float64) val { return f.sel(f.lt(x, f.c(lo)), f.c(lo), x) }

// poly is Σ cs[k]·x^k by Horner's rule.
func (f *fp) poly(x val, cs []float64) val {
	v := f.c(cs[len(cs)-1])
	for k := len(cs) - 2; k >= 0; k-- {
		v = f.mad(v, x, f.c(cs[k]))
	}
	return v
}

// round is the nearest integer to x, |x| < 2^(mant-1), as a float and as an integer: adding
// 1.5·2^mant leaves the integer in the low bits of the sum.
func (f *fp) round(x val) (float, integer val) {
	magic := f.c(pick(f, 0x1.8p52, 0x1.8p23))
	y := f.add(x, magic)
	return f.sub(y, magic), f.b.Sub(f.bits(y), f.bits(magic))
}

// pow2 is 2^k for an integer k within the normal exponents.
func (f *fp) pow2(k val) val {
	return f.float(f.b.ShlI(f.b.AddI(k, f.bias), f.mant))
}

// scale is x·2^k for |k| up to three times the exponent range, rounded once where x is normal.
func (f *fp) scale(x, k val) val {
	k1 := f.b.ShrSI(k, 1)
	return f.mul(f.mul(x, f.pow2(k1)), f.pow2(f.b.Sub(k, k1)))
}

// branch emits then under c and els otherwise, each yielding values of the given types.
func (f *fp) branch(c val, types []kernel.Type, then, els func() []val) []val {
	vars := make([]kernel.Var, len(types))
	for i, t := range types {
		vars[i] = f.b.NewVar(f.b.Zero(t))
	}
	set := func(body func() []val) func() {
		return func() {
			for i, v := range body() {
				f.b.Set(vars[i], v)
			}
		}
	}
	f.b.If(c, set(then), set(els))
	out := make([]val, len(vars))
	for i, v := range vars {
		out[i] = f.b.Get(v)
	}
	return out
}
