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

// What Nx's own functions give for the 8-bit floats (Nx.Floating.dump_f8, dump_f8_e4m3fn).
func TestFloat8(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		x        float64
		f8, e4m3 uint64
	}{
		{0, 0, 0}, {1, 0x3c, 0x38}, {-2, 0xc0, 0xc0}, {1.2, 0x3c, 0x3a}, {1.24, 0x3c, 0x3a}, {1.25, 0x3d, 0x3a}, {1.3, 0x3d, 0x3a},
		{61440, 0x7b, 0x7e}, {57344, 0x7b, 0x7e}, {65000, 0x7b, 0x7e}, {65519, 0x7b, 0x7e}, {65520, 0x7c, 0x7e}, {1e300, 0x7c, 0x7e},
		{1e-5, 0, 0}, {2e-5, 1, 0}, {6e-5, 3, 0}, {3e-8, 0, 0}, {448, 0x5f, 0x7e}, {-460, 0xdf, 0xfe}, {440, 0x5e, 0x7e},
		{1.95, 0x3f, 0x3f}, {1.9999, 0x40, 0x3f}, {0.0155, 0x23, 7}, {0x1p-6, 0x24, 8}, {0x1p-10, 0x14, 1}, {0x1.ffp-11, 0x13, 0},
		{inf, 0x7c, 0x7e}, {-inf, 0xfc, 0xfe}, {nan, 0x7e, 0x7f}, {math.Copysign(0, -1), 0x80, 0x80},
	} {
		if got := FromFloat(c.x, F8); got != c.f8 {
			t.Errorf("%g as f8: got %#x, want %#x", c.x, got, c.f8)
		}
		if got := FromFloat(c.x, F8E4M3FN); got != c.e4m3 {
			t.Errorf("%g as f8_e4m3fn: got %#x, want %#x", c.x, got, c.e4m3)
		}
	}
	for _, typ := range []Type{F8, F8E4M3FN} {
		for b := uint64(0); b < 256; b++ {
			x := ToFloat(b, typ)
			if got := FromFloat(x, typ); got != b && !math.IsNaN(x) {
				t.Errorf("%v %#x: reads as %g, written as %#x", typ, b, x, got)
			}
		}
	}
	for b, want := range map[uint64]float64{1: 0x1p-16, 4: 0x1p-14, 0x7b: 57344} {
		if got := ToFloat(b, F8); got != want {
			t.Errorf("f8 %#x reads as %g, want %g", b, got, want)
		}
	}
	for b, want := range map[uint64]float64{1: 0x1p-9, 8: 0x1p-6, 0x78: 256, 0x7e: 448, 0xfe: -448} {
		if got := ToFloat(b, F8E4M3FN); got != want {
			t.Errorf("f8_e4m3fn %#x reads as %g, want %g", b, got, want)
		}
	}
}

// Integers below 8 bits wrap, and are extended by their sign within their byte.
func TestSmallInts(t *testing.T) {
	inf := math.Float64bits(math.Inf(1))
	for _, c := range []struct {
		bits     uint64
		from, to Type
		want     uint64
	}{
		{10, S32, S4, 0xfa}, {7, S32, S4, 7}, {8, U8, S4, 0xf8}, {0xfa, S4, U4, 10}, {0xfa, S4, S64, ^uint64(5)}, {10, U4, S4, 0xfa},
		{3, S8, S2, 0xff}, {2, S8, S2, 0xfe}, {0xfe, S2, U2, 2}, {0xff, S2, F32, uint64(math.Float32bits(-1))}, {3, U2, F32, uint64(math.Float32bits(3))},
		{inf, F64, S4, 7}, {inf | 1<<63, F64, S4, 0xf8}, {inf, F64, U2, 3}, {inf | 1<<63, F64, U2, 0}, {math.Float64bits(-17.5), F64, S4, 0xff},
	} {
		if got := ConvertBits(c.bits, c.from, c.to); got != c.want {
			t.Errorf("%#x from %v to %v: got %#x, want %#x", c.bits, c.from, c.to, got, c.want)
		}
	}
}

// As Nx lays out u4 [1, 2, 3] (<<18, 3::4>>) and s2 [-2, -1, 0, 1] (<<177>>); and back, for any count.
func TestPack(t *testing.T) {
	for _, c := range []struct {
		t    Type
		elem []byte
		want []byte
	}{
		{U4, []byte{1, 2, 3}, []byte{18, 0x30}},
		{S2, []byte{0xfe, 0xff, 0, 1}, []byte{177}},
		{S4, []byte{0xf8, 7, 3}, []byte{135, 0x30}},
		{U2, []byte{3, 2, 1, 0, 2}, []byte{0xe4, 0x80}},
		{U2, []byte{1}, []byte{0x40}},
	} {
		got := make([]byte, c.t.PackedSize(len(c.elem)))
		Pack(c.t, got, c.elem)
		if string(got) != string(c.want) {
			t.Errorf("%v %v: got %v, want %v", c.t, c.elem, got, c.want)
		}
		back := make([]byte, len(c.elem))
		Unpack(c.t, back, got)
		if string(back) != string(c.elem) {
			t.Errorf("%v %v: back as %v", c.t, c.elem, back)
		}
	}
}

func TestSaturateBits(t *testing.T) {
	for _, c := range []struct {
		bits     uint64
		from, to Type
		want     uint64
	}{
		{1 << 40, S64, S32, math.MaxInt32}, {^uint64(1 << 40), S64, S32, 1 << 31}, {^uint64(0), S64, S32, math.MaxUint32}, {^uint64(0), U64, S32, math.MaxInt32},
		{5, S64, S32, 5}, {^uint64(4), S64, U8, 0}, {300, S32, U8, 255}, {^uint64(0), U64, U64, ^uint64(0)}, {9, U8, S4, 7}, {0xf0, S8, S4, 0xf8},
	} {
		if got := SaturateBits(c.bits, c.from, c.to); got != c.want {
			t.Errorf("%#x from %v to %v: got %#x, want %#x", c.bits, c.from, c.to, got, c.want)
		}
	}
}
