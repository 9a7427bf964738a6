package host

import (
	"math"

	"nxvk/graph"
)

// storeInts writes integers as elements at, at+1 … of type t. unsigned says how 64 bits that become a float are read.
func storeInts(b []byte, t graph.Type, at int, src []int64, unsigned bool) {
	b = b[at*t.Size():]
	switch t {
	case graph.U8, graph.S8:
		for i, x := range src {
			b[i] = byte(x)
		}
	case graph.U16, graph.S16:
		for i, x := range src {
			le.PutUint16(b[2*i:], uint16(x))
		}
	case graph.U32, graph.S32:
		for i, x := range src {
			le.PutUint32(b[4*i:], uint32(x))
		}
	case graph.U64, graph.S64:
		for i, x := range src {
			le.PutUint64(b[8*i:], uint64(x))
		}
	case graph.S2, graph.S4, graph.U2, graph.U4:
		for i, x := range src {
			b[i] = byte(graph.ConvertBits(uint64(x), graph.S64, t))
		}
	default:
		var f [64]float64
		for i := 0; i < len(src); i += len(f) {
			part := src[i:min(i+len(f), len(src))]
			for k, x := range part {
				if unsigned {
					f[k] = float64(uint64(x))
				} else {
					f[k] = float64(x)
				}
			}
			storeFloats(b, t, i, f[:len(part)])
		}
	}
}

// storeFloats writes real numbers: rounded to the nearest float, or truncated to an integer that wraps. Any NaN
// is the type's quiet one.
func storeFloats(b []byte, t graph.Type, at int, src []float64) {
	b = b[at*t.Size():]
	switch t {
	case graph.F64:
		for i, x := range src {
			bits := math.Float64bits(x)
			if x != x {
				bits = 0x7ff8 << 48
			}
			le.PutUint64(b[8*i:], bits)
		}
	case graph.F32:
		for i, x := range src {
			bits := math.Float32bits(float32(x))
			if x != x {
				bits = 0x7fc00000
			}
			le.PutUint32(b[4*i:], bits)
		}
	case graph.BF16:
		for i, x := range src {
			le.PutUint16(b[2*i:], round16(x, 7, -126))
		}
	case graph.F16:
		for i, x := range src {
			le.PutUint16(b[2*i:], round16(x, 10, -14))
		}
	case graph.F8, graph.F8E4M3FN:
		for i, x := range src {
			if x != x {
				x = math.NaN()
			}
			b[i] = byte(graph.FromFloat(x, t))
		}
	case graph.C64, graph.C128:
		var z [64]complex128
		for i := 0; i < len(src); i += len(z) {
			part := src[i:min(i+len(z), len(src))]
			for k, x := range part {
				z[k] = complex(x, 0)
			}
			storeComplex(b, t, i, z[:len(part)])
		}
	default:
		var n [64]int64
		for i := 0; i < len(src); i += len(n) {
			part := src[i:min(i+len(n), len(src))]
			for k, x := range part {
				if math.Abs(x) < 1<<63 {
					n[k] = int64(x)
				} else {
					n[k] = int64(graph.ConvertBits(math.Float64bits(x), graph.F64, t))
				}
			}
			storeInts(b, t, i, n[:len(part)], false)
		}
	}
}

// round16 rounds x to a 16-bit float with frac bits of fraction whose least normal exponent is emin.
func round16(x float64, frac, emin int) uint16 {
	bits := math.Float64bits(x)
	sign := uint16(bits >> 48 & 0x8000)
	exp := int(bits>>52&0x7ff) - 1023
	inf := uint64(2*(1-emin)+1) << frac
	switch {
	case exp == 1024 && bits<<12 != 0:
		return uint16(inf) | 1<<(frac-1)
	case exp > 1-emin:
		return sign | uint16(inf)
	case exp < emin-frac-1:
		return sign
	}
	m := bits&(1<<52-1) | 1<<52
	shift, base := 52-frac, uint64(exp-emin)
	if exp < emin {
		shift, base = shift+emin-exp, 0
	}
	q, rest, half := m>>shift, m&(1<<shift-1), uint64(1)<<(shift-1)
	if rest > half || rest == half && q&1 == 1 {
		q++
	}
	// With its implicit bit q runs on into the exponent field, and from there to infinity, by itself.
	return sign | uint16(base<<frac+q)
}

// storeComplex writes complex numbers. A real type takes the real part.
func storeComplex(b []byte, t graph.Type, at int, src []complex128) {
	b = b[at*t.Size():]
	switch t {
	case graph.C64:
		for i, z := range src {
			storeFloats(b, graph.F32, 2*i, []float64{real(z), imag(z)})
		}
	case graph.C128:
		for i, z := range src {
			storeFloats(b, graph.F64, 2*i, []float64{real(z), imag(z)})
		}
	default:
		var f [64]float64
		for i := 0; i < len(src); i += len(f) {
			part := src[i:min(i+len(f), len(src))]
			for k, z := range part {
				f[k] = real(z)
			}
			storeFloats(b, t, i, f[:len(part)])
		}
	}
}

// store is storeInts, storeFloats or storeComplex.
func store[T number](b []byte, t graph.Type, at int, src []T, unsigned bool) {
	switch src := any(src).(type) {
	case []int64:
		storeInts(b, t, at, src, unsigned)
	case []float64:
		storeFloats(b, t, at, src)
	case []complex128:
		storeComplex(b, t, at, src)
	}
}

// tensor is a row-major tensor of the numbers v.
func tensor[T number](s graph.Spec, v []T, unsigned bool) Tensor {
	out := New(s)
	parallel(len(v), 2, func(lo, hi int) { store(out.Data, s.Type, lo, v[lo:hi], unsigned) })
	return out
}
