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
			// The pairs' quotients depend on the device's by less than a rounding; only the bound holds.
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
