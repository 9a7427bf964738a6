package graph

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// Every half and every bfloat reads and rounds back to itself, and halfway points go to even.
func TestRoundFloat16(t *testing.T) {
	for _, typ := range []Type{F16, BF16} {
		for h := uint64(0); h < 1<<16; h++ {
			x := ToFloat(h, typ)
			if math.IsNaN(x) {
				if !math.IsNaN(ToFloat(FromFloat(x, typ), typ)) {
					t.Fatalf("%v %#x: NaN is lost", typ, h)
				}
				continue
			}
			if got := FromFloat(x, typ); got != h {
				t.Fatalf("%v %#x: reads as %g, rounds to %#x", typ, h, x, got)
			}
			up := ToFloat(h+1, typ)
			if h&0x7fff == 0x7fff || math.IsInf(x, 0) || math.IsNaN(up) || math.IsInf(up, 0) {
				continue
			}
			mid, even := (x+up)/2, h+h&1
			if got := FromFloat(mid, typ); got != even {
				t.Fatalf("%v: %g lies between %#x and %#x, rounds to %#x", typ, mid, h, h+1, got)
			}
			if got := FromFloat(math.Nextafter(mid, x), typ); got != h {
				t.Fatalf("%v: just before halfway from %#x rounds to %#x", typ, h, got)
			}
		}
		if got := FromFloat(math.MaxFloat64, typ); !math.IsInf(ToFloat(got, typ), 1) {
			t.Errorf("%v: overflow gives %#x", typ, got)
		}
	}
}

// Float to integer is truncation modulo 2^n, by exact arithmetic.
func TestTruncate(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	ints := []Type{U8, U16, U32, U64, S8, S16, S32, S64}
	for range 200000 {
		x := math.Float64frombits(r.Uint64())
		if r.IntN(2) == 0 {
			x = math.Ldexp(r.Float64()-0.5, r.IntN(80))
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		n, _ := big.NewFloat(x).Int(nil)
		for _, typ := range ints {
			m := new(big.Int).Lsh(big.NewInt(1), uint(8*typ.Size()))
			want := new(big.Int).Mod(n, m).Uint64()
			if got := ConvertBits(math.Float64bits(x), F64, typ); got != want {
				t.Fatalf("%g as %v: got %#x, want %#x", x, typ, got, want)
			}
		}
	}
}

func TestConvertBits(t *testing.T) {
	f32 := func(x float32) uint64 { return uint64(math.Float32bits(x)) }
	inf := float32(math.Inf(1))
	cases := []struct {
		bits     uint64
		from, to Type
		want     uint64
	}{
		{f32(300.7), F32, U8, 44}, // as measured of Nx.BinaryBackend
		{f32(-1.5), F32, U8, 255},
		{f32(inf), F32, S8, 127},
		{f32(-inf), F32, S8, 0x80},
		{f32(inf), F32, U64, math.MaxUint64},
		{f32(-inf), F32, U16, 0},
		{f32(float32(math.NaN())), F32, S32, 0},
		{0xff, S8, S64, math.MaxUint64},
		{0xff, U8, S64, 255},
		{0xff, S8, U16, 0xffff},
		{0xff, S8, F32, f32(-1)},
		{math.MaxUint64, U64, F64, math.Float64bits(1 << 64)},
		{1<<24 + 1, S32, F32, f32(1 << 24)},
		{0x3c00, F16, F64, math.Float64bits(1)},
		{f32(65520), F32, F16, 0x7c00},
		{f32(0x1p-24), F32, F16, 1},
		{f32(0x1p-25), F32, F16, 0},
	}
	for _, c := range cases {
		if got := ConvertBits(c.bits, c.from, c.to); got != c.want {
			t.Errorf("%#x from %v to %v: got %#x, want %#x", c.bits, c.from, c.to, got, c.want)
		}
	}
}
