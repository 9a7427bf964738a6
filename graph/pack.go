package graph

// Pack lays elements of a type below 8 bits, one byte each, close together as Nx does: the first in the highest bits
// of the first byte. What is left of the last byte is zero. dst has t.PackedSize(len(src)) bytes.
func Pack(t Type, dst, src []byte) {
	bits := t.Bits()
	per := 8 / bits
	m := byte(numberMask(t))
	whole := len(src) / per
	for i := range whole {
		var b byte
		for _, v := range src[i*per : (i+1)*per] {
			b = b<<bits | v&m
		}
		dst[i] = b
	}
	if rest := src[whole*per:]; len(rest) > 0 {
		var b byte
		for i, v := range rest {
			b |= v & m << (8 - bits*(i+1))
		}
		dst[whole] = b
	}
}

// Unpack is the inverse of Pack: each of the len(dst) elements becomes a byte, extended by its sign.
func Unpack(t Type, dst, src []byte) {
	bits := t.Bits()
	per := 8 / bits
	table := unpackTables[t]
	for i, b := range src {
		at := i * per
		copy(dst[min(at, len(dst)):], table[b][:per])
	}
}

// unpackTables holds, for each type below 8 bits, what each packed byte stands for.
var unpackTables = func() map[Type]*[256][4]byte {
	m := map[Type]*[256][4]byte{}
	for _, t := range []Type{S2, S4, U2, U4} {
		table := new([256][4]byte)
		bits := t.Bits()
		for b := range table {
			for i := range 8 / bits {
				table[b][i] = byte(wrap(uint64(b)>>(8-bits*(i+1)), t))
			}
		}
		m[t] = table
	}
	return m
}()
