package shaders

import (
	"math"
	"math/rand/v2"
	"testing"

	"nxvk/kernel"
)

// randomFloats are values of all exponents, subnormals and special values among them.
func randomFloats(r *rand.Rand, t kernel.Type) float64 {
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1, -1, 2, 3, 0.5}
	if r.IntN(12) == 0 {
		return special[r.IntN(len(special))]
	}
	if t == kernel.F32 {
		v := math.Float32frombits(r.Uint32())
		if r.IntN(2) == 0 { // moderate
			v = math.Float32frombits(r.Uint32()&0x807fffff | uint32(120+r.IntN(16))<<23)
		}
		return float64(v)
	}
	if r.IntN(2) == 0 {
		return math.Float64frombits(r.Uint64()&0x800fffffffffffff | uint64(1015+r.IntN(16))<<52)
	}
	return math.Float64frombits(r.Uint64())
}

func same(t kernel.Type, got, want float64) bool {
	if t == kernel.F32 {
		want = float64(float32(want))
	}
	return got != got && want != want || math.Float64bits(got) == math.Float64bits(want)
}

// Quotients and roots are correctly rounded whatever the device's own are like, and remainders exact.
func TestDivSqrtFmod(t *testing.T) {
	exact := kernel.Exact
	rough := kernel.Numerics{FuseF32: true, FuseF64: true}
	rough32 := kernel.Numerics{FuseF32: true, FuseF64: true, DivF64: true, SqrtF64: true}
	type fn struct {
		name string
		emit func(b *kernel.Builder, x []kernel.Value) kernel.Value
		want func(x, y float64) float64
	}
	fns := []fn{
		{"divide", func(b *kernel.Builder, x []kernel.Value) kernel.Value { return Div(b, x[0], x[1]) }, func(x, y float64) float64 { return x / y }},
		{"sqrt", func(b *kernel.Builder, x []kernel.Value) kernel.Value { return Sqrt(b, x[0]) }, func(x, _ float64) float64 { return math.Sqrt(x) }},
		{"fmod", func(b *kernel.Builder, x []kernel.Value) kernel.Value { return Fmod(b, x[0], x[1]) }, math.Mod},
	}
	for _, c := range []struct {
		name   string
		typ    kernel.Type
		target kernel.Target
		off    bool
	}{
		{"f64", kernel.F64, kernel.Target{F64: true, I64: true, Num: exact}, false},
		{"f64 on a rough device", kernel.F64, kernel.Target{F64: true, I64: true, Num: rough}, true},
		{"f32", kernel.F32, kernel.Target{F64: true, I64: true, Num: exact}, false},
		{"f32 by f64", kernel.F32, kernel.Target{F64: true, I64: true, Num: rough32}, false},
		{"f32 on a rough device", kernel.F32, kernel.Target{Num: rough}, true},
	} {
		for i, f := range fns {
			k := compile(c.typ, c.target, 2, f.emit)
			r := rand.New(rand.NewPCG(2, uint64(i)))
			if c.off {
				k.off = func() int64 { return r.Int64N(7) - 3 }
			}
			for range 60000 {
				x, y := randomFloats(r, c.typ), randomFloats(r, c.typ)
				want := f.want(x, y)
				if f.name == "sqrt" && c.typ == kernel.F64 && r.IntN(2) == 0 {
					x = math.Abs(x)
					want = f.want(x, y)
				}
				if got := k.f64(x, y); !same(c.typ, got, want) {
					t.Fatalf("%s: %s(%v, %v) = %v, want %v", c.name, f.name, x, y, got, want)
				}
			}
			t.Logf("%s %s: %d instructions", c.name, f.name, k.count())
		}
	}
}
