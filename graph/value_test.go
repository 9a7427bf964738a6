package graph

import (
	"math"
	"testing"
)

func TestValues(t *testing.T) {
	f32 := func(x float32) uint64 { return uint64(math.Float32bits(x)) }
	f64 := math.Float64bits
	c64 := Join(C64, f32(1.5), f32(-2))
	c128 := Join(C128, f64(1.5), f64(-2))
	for _, c := range []struct {
		v, want  Value
		from, to Type
	}{
		{c64, c128, C64, C128},
		{c128, c64, C128, C64},
		{c64, c64, C64, C64},
		{c64, Real(f64(1.5)), C64, F64},
		{c128, Real(1), C128, S32},
		{Real(0xff), Join(C64, f32(-1), 0), S8, C64},
		{Real(0xff), Join(C128, f64(255), 0), U8, C128},
		{Join(C128, f64(math.Inf(-1)), f64(1)), Real(0x80), C128, S8},
		{Join(C64, f32(float32(math.NaN())), f32(1)), Real(0), C64, U8},
	} {
		if got := ConvertValue(c.v, c.from, c.to); got != c.want {
			t.Errorf("%#x of %v as %v: got %#x, want %#x", c.v, c.from, c.to, got, c.want)
		}
	}
	for ty, v := range map[Type]Value{C64: c64, C128: c128, S16: Real(0x1234)} {
		data := v.AppendBytes(nil, ty)
		if len(data) != ty.Size() || ReadValue(data) != v {
			t.Errorf("%v: %#x became %x and %#x", ty, v, data, ReadValue(data))
		}
	}
	if re, im := Real(7).Parts(S32); re != 7 || im != 0 {
		t.Errorf("parts of a real number: %d, %d", re, im)
	}
}

func TestKeyHoldsBothParts(t *testing.T) {
	n := Node{Op: OpConstant, Spec: Spec{Type: C128, Shape: Shape{}}}
	m := n
	m.Attrs.Upper = 1
	if string(AppendNodeKey(nil, &n)) == string(AppendNodeKey(nil, &m)) {
		t.Error("constants that differ in the imaginary part have one key")
	}
}
