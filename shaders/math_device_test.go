package shaders_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
	"nxvk/shaders"
	"nxvk/test/devtest"
)

// mathOps are the unary functions of shaders.Func.
var mathOps = []graph.Op{
	"exp", "expm1", "log", "log1p", "sigmoid", "cos", "sin", "tan", "cosh", "sinh", "tanh",
	"acos", "asin", "atan", "acosh", "asinh", "atanh", "sqrt", "rsqrt", "cbrt", "erf", "erfc", "erf_inv",
}

// mapKernel stores f of element i of its operands, for one element an invocation.
func mapKernel(name string, t kernel.Target, typ kernel.Type, n int, f func(b *kernel.Builder, x []kernel.Value) kernel.Value) *kernel.Kernel {
	b := kernel.NewBuilder(name, t, [3]uint32{64, 1, 1})
	m := kernel.MF32
	if typ == kernel.F64 {
		m = kernel.MF64
	}
	out := b.Pointer("out", m, true, 0)
	i := b.Add(b.MulI(b.BuiltinValue(kernel.GroupX), 64), b.BuiltinValue(kernel.LocalX))
	var xs []kernel.Value
	for k := range n {
		xs = append(xs, b.Load(b.Pointer(fmt.Sprint("x", k), m, false, 0), i))
	}
	b.Store(out, i, f(b, xs))
	return b.Build()
}

// bytesOf are count values of type typ: all exponents, moderate ones, special ones.
func bytesOf(r *rand.Rand, typ kernel.Type, count int, normal bool) []byte {
	var out []byte
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1, -1, 2, 0.5, 88, -88, 710, -745}
	for i := range count {
		if typ == kernel.F32 {
			v := r.Uint32()
			switch {
			case i%4 > 1:
				v = v&0x807fffff | uint32(118+r.IntN(16))<<23
			case i < len(special):
				v = math.Float32bits(float32(special[i]))
			case normal && v&0x7f800000 == 0:
				v |= 1 << 23
			}
			out = binary.LittleEndian.AppendUint32(out, v)
			continue
		}
		v := r.Uint64()
		switch {
		case i%4 > 1:
			v = v&0x800fffffffffffff | uint64(1014+r.IntN(16))<<52
		case i < len(special):
			v = math.Float64bits(special[i])
		case normal && v&(0x7ff<<52) == 0:
			v |= 1 << 52
		}
		out = binary.LittleEndian.AppendUint64(out, v)
	}
	return out
}

// The device computes what the interpreter computes, bit for bit, in each of the three arithmetics.
func TestMathOnDevice(t *testing.T) {
	d := devtest.Open(t)
	slow := d.Target
	slow.SlowF64 = true
	rough := slow
	rough.Num.DivF32, rough.Num.SqrtF32 = false, false
	kinds := []struct {
		name   string
		typ    kernel.Type
		target kernel.Target
	}{{"f32", kernel.F32, d.Target}, {"f32 in pairs", kernel.F32, slow}, {"f64", kernel.F64, d.Target}}
	const groups = 64
	count := groups * 64
	for _, k := range kinds {
		if (k.typ == kernel.F64 || !k.target.SlowF64) && !d.Target.F64 {
			continue
		}
		if k.target.SlowF64 && !d.Target.Num.DivF32 {
			fmt.Println("SKIPPED: pairs of binary32 bit for bit: this device's own quotients, which they start from, are not rounded correctly")
			continue
		}
		size := k.typ.Bits() / 8
		r := rand.New(rand.NewPCG(4, uint64(size)))
		x, y := bytesOf(r, k.typ, count, d.Target.Num.FlushF32), bytesOf(r, k.typ, count, d.Target.Num.FlushF32)
		run := func(name string, n int, f func(b *kernel.Builder, x []kernel.Value) kernel.Value) {
			t.Run(k.name+"/"+name, func(t *testing.T) {
				args := []kernel.Bind{{Buf: make([]byte, count*size)}, {Buf: x}, {Buf: y}}
				devtest.Both(t, mapKernel(name, k.target, k.typ, n, f), [3]uint32{groups, 1, 1}, args[:n+1]...)
			})
		}
		for _, op := range mathOps {
			run(string(op), 1, func(b *kernel.Builder, x []kernel.Value) kernel.Value { return shaders.Func(b, op, x[0]) })
		}
		run("pow", 2, func(b *kernel.Builder, x []kernel.Value) kernel.Value { return shaders.Pow(b, x[0], x[1]) })
		run("atan2", 2, func(b *kernel.Builder, x []kernel.Value) kernel.Value { return shaders.Atan2(b, x[0], x[1]) })
		run("remainder", 2, func(b *kernel.Builder, x []kernel.Value) kernel.Value { return shaders.Fmod(b, x[0], x[1]) })
		run("divide", 2, func(b *kernel.Builder, x []kernel.Value) kernel.Value { return shaders.Div(b, x[0], x[1]) })
		run("chain", 1, func(b *kernel.Builder, x []kernel.Value) kernel.Value {
			return shaders.Func(b, "log", shaders.Func(b, "exp", shaders.Func(b, "sin", x[0])))
		})
		if k.typ == kernel.F32 {
			k.target = rough
			run("divide by hand", 2, func(b *kernel.Builder, x []kernel.Value) kernel.Value { return shaders.Div(b, x[0], x[1]) })
			run("sqrt by hand", 1, func(b *kernel.Builder, x []kernel.Value) kernel.Value { return shaders.Sqrt(b, x[0]) })
		}
	}
}

// Over evenly spread binary32 arguments of every exponent, the short binary64 arithmetic lies within
// 0.501 ulp of the binary64 function, on the device.
func TestWideOverAllExponents(t *testing.T) {
	d := devtest.Open(t)
	if !d.Target.F64 || d.Target.SlowF64 {
		fmt.Println("SKIPPED: binary32 functions by binary64: this device's binary64 is slow or missing")
		t.Skip()
	}
	const groups, each = 1024, 16
	const stride = 1<<32/(groups*64*each) | 1
	for _, op := range mathOps {
		if op == "sqrt" {
			continue
		}
		b := kernel.NewBuilder("all "+string(op), d.Target, [3]uint32{64, 1, 1})
		out := b.Pointer("bad", kernel.M32, true, 0)
		id := b.Add(b.MulI(b.BuiltinValue(kernel.GroupX), 64), b.BuiltinValue(kernel.LocalX))
		b.For(b.I32(0), b.I32(each), b.I32(1), func(i kernel.Value) {
			bits := b.MulI(b.Add(b.MulI(id, each), i), stride)
			x := b.BitsTo(kernel.F32, bits)
			got := b.Conv(kernel.FConv, kernel.F64, b.Opaque(shaders.Func(b, op, x)))
			want := shaders.Func(b, op, b.Conv(kernel.FConv, kernel.F64, x))
			field := b.And(b.ShrUI(b.BitsTo(kernel.I64, want), 52), b.ConstInt(kernel.I64, 0x7ff))
			least := b.ConstInt(kernel.I64, 1023-126)
			field = b.Select(b.Cmp(kernel.SLt, field, least), least, field)
			ulp := b.BitsTo(kernel.F64, b.ShlI(b.AddI(field, -23), 52))
			far := b.Not(b.Cmp(kernel.FLe, b.Un(kernel.FAbs, b.Sub(got, want)), b.Mul(ulp, b.ConstFloat(kernel.F64, 0.501))))
			// Equal infinities, two NaNs and an overflow are right.
			rounded := b.Conv(kernel.FConv, kernel.F64, b.Opaque(b.Conv(kernel.FConv, kernel.F32, want)))
			nan := b.And(b.Cmp(kernel.FNe, got, got), b.Cmp(kernel.FNe, want, want))
			bad := b.And(far, b.Not(b.Or(nan, b.Cmp(kernel.FEq, got, rounded))))
			b.If(bad, func() {
				b.AtomicAdd(out, b.I32(0), b.I32(1))
				b.Store(out, b.I32(1), bits)
			}, nil)
		})
		buf := make([]byte, 8)
		devtest.Run(t, b.Build(), [3]uint32{groups, 1, 1}, kernel.Bind{Buf: buf})
		if n := binary.LittleEndian.Uint32(buf); n != 0 {
			t.Errorf("%s: %d of %d results too far off, one of them at %v", op, n, groups*64*each, math.Float32frombits(binary.LittleEndian.Uint32(buf[4:])))
		}
	}
}

func appendFloat(out []byte, typ kernel.Type, v float64) []byte {
	if typ == kernel.F32 {
		return binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)))
	}
	return binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
}
