package graph

import "encoding/binary"

// Value is one element of any type: its bytes read little-endian, the first eight in Lo, the rest in Hi.
// Only c128 has a rest. A c64 holds its real part in the low half of Lo.
type Value struct{ Lo, Hi uint64 }

// Real is the value whose bits are those of an element of at most eight bytes.
func Real(bits uint64) Value { return Value{Lo: bits} }

// Join is the element of complex type t with the given parts, each the bits of a t.Part().
func Join(t Type, re, im uint64) Value {
	if t == C64 {
		return Value{Lo: re&mask(F32) | im<<32}
	}
	return Value{re, im}
}

// Parts are the real and the imaginary part of v, an element of t, as bits of t.Part(). What is not complex
// has the imaginary part 0.
func (v Value) Parts(t Type) (re, im uint64) {
	switch t {
	case C64:
		return v.Lo & mask(F32), v.Lo >> 32
	case C128:
		return v.Lo, v.Hi
	}
	return v.Lo, 0
}

// ConvertValue is ConvertBits for elements of any type: a real number becomes a complex one with the
// imaginary part 0, and of a complex number a real type takes the real part.
func ConvertValue(v Value, from, to Type) Value {
	if from == to {
		return v
	}
	re, im := v.Parts(from)
	re = ConvertBits(re, from.Part(), to.Part())
	if !to.Complex() {
		return Value{Lo: re}
	}
	if from.Complex() {
		im = ConvertBits(im, from.Part(), to.Part())
	}
	return Join(to, re, im)
}

// ReadValue reads the bytes of one element, at most 16.
func ReadValue(data []byte) Value {
	var b [16]byte
	copy(b[:], data)
	return Value{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
}

// AppendBytes appends the bytes of v, an element of t.
func (v Value) AppendBytes(dst []byte, t Type) []byte {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], v.Lo)
	binary.LittleEndian.PutUint64(b[8:], v.Hi)
	return append(dst, b[:t.Size()]...)
}

// Number is the element that a constant repeats.
func (a *Attrs) Number() Value { return Value{a.Value, a.Upper} }
