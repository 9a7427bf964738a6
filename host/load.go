package host

import (
	"encoding/binary"
	"math"
	"sync"

	"nxvk/graph"
)

var le = binary.LittleEndian

// number is what elements are computed as. An int64 holds the 64 bits of an integer of any type, those of u64
// unsigned: whoever compares or converts must know which.
type number interface{ int64 | float64 | complex128 }

// class is which of the numbers a computation takes.
type class uint8

const (
	integer class = iota
	float
	complex_
)

// classOf is the class that holds elements of all of ts.
func classOf(ts ...graph.Type) class {
	c := integer
	for _, t := range ts {
		switch {
		case t.Complex():
			return complex_
		case t.Float():
			c = float
		}
	}
	return c
}

// scratch is how many elements are worked on at a time.
const scratch = 512

// narrow holds the 256 elements of the one-byte types that are no plain integers, as graph converts them.
type narrow struct {
	ints   [256]int64
	floats [256]float64
}

var narrows = sync.OnceValue(func() map[graph.Type]*narrow {
	m := map[graph.Type]*narrow{}
	for _, t := range []graph.Type{graph.F8, graph.F8E4M3FN, graph.S2, graph.S4, graph.U2, graph.U4} {
		n := &narrow{}
		for i := range n.ints {
			if t.Float() {
				n.floats[i] = graph.ToFloat(uint64(i), t)
			} else {
				n.ints[i] = int64(graph.ConvertBits(uint64(i), t, graph.S64))
				n.floats[i] = float64(n.ints[i])
			}
		}
		m[t] = n
	}
	return m
})

var halves = sync.OnceValue(func() *[1 << 16]float32 {
	h := new([1 << 16]float32)
	for i := range h {
		h[i] = float32(graph.ToFloat(uint64(i), graph.F16))
	}
	return h
})

// loadInts reads integers of type t that lie step apart from off on.
func loadInts(dst []int64, t graph.Type, b []byte, off, step int) {
	size := t.Size()
	o, d := off*size, step*size
	switch t {
	case graph.U8:
		for i := range dst {
			dst[i] = int64(b[o])
			o += d
		}
	case graph.S8:
		for i := range dst {
			dst[i] = int64(int8(b[o]))
			o += d
		}
	case graph.U16:
		for i := range dst {
			dst[i] = int64(le.Uint16(b[o:]))
			o += d
		}
	case graph.S16:
		for i := range dst {
			dst[i] = int64(int16(le.Uint16(b[o:])))
			o += d
		}
	case graph.U32:
		for i := range dst {
			dst[i] = int64(le.Uint32(b[o:]))
			o += d
		}
	case graph.S32:
		for i := range dst {
			dst[i] = int64(int32(le.Uint32(b[o:])))
			o += d
		}
	case graph.U64, graph.S64:
		for i := range dst {
			dst[i] = int64(le.Uint64(b[o:]))
			o += d
		}
	default:
		table := &narrows()[t].ints
		for i := range dst {
			dst[i] = table[b[o]]
			o += d
		}
	}
}

// loadFloats reads real numbers of type t: integers as Erlang converts them, to the nearest f64.
func loadFloats(dst []float64, t graph.Type, b []byte, off, step int) {
	size := t.Size()
	o, d := off*size, step*size
	switch t {
	case graph.F64:
		for i := range dst {
			dst[i] = math.Float64frombits(le.Uint64(b[o:]))
			o += d
		}
	case graph.F32:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(le.Uint32(b[o:])))
			o += d
		}
	case graph.BF16:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(uint32(le.Uint16(b[o:])) << 16))
			o += d
		}
	case graph.F16:
		table := halves()
		for i := range dst {
			dst[i] = float64(table[le.Uint16(b[o:])])
			o += d
		}
	case graph.F8, graph.F8E4M3FN, graph.S2, graph.S4, graph.U2, graph.U4:
		table := &narrows()[t].floats
		for i := range dst {
			dst[i] = table[b[o]]
			o += d
		}
	case graph.U64:
		for i := range dst {
			dst[i] = float64(le.Uint64(b[o:]))
			o += d
		}
	default:
		var x [64]int64
		for i := 0; i < len(dst); i += len(x) {
			part := dst[i:min(i+len(x), len(dst))]
			loadInts(x[:len(part)], t, b, off+i*step, step)
			for k := range part {
				part[k] = float64(x[k])
			}
		}
	}
}

// loadComplex reads numbers of type t, real ones with an imaginary part of 0.
func loadComplex(dst []complex128, t graph.Type, b []byte, off, step int) {
	size := t.Size()
	o, d := off*size, step*size
	switch t {
	case graph.C64:
		for i := range dst {
			dst[i] = complex(float64(math.Float32frombits(le.Uint32(b[o:]))), float64(math.Float32frombits(le.Uint32(b[o+4:]))))
			o += d
		}
	case graph.C128:
		for i := range dst {
			dst[i] = complex(math.Float64frombits(le.Uint64(b[o:])), math.Float64frombits(le.Uint64(b[o+8:])))
			o += d
		}
	default:
		var x [64]float64
		for i := 0; i < len(dst); i += len(x) {
			part := dst[i:min(i+len(x), len(dst))]
			loadFloats(x[:len(part)], t, b, off+i*step, step)
			for k := range part {
				part[k] = complex(x[k], 0)
			}
		}
	}
}

// load is loadInts, loadFloats or loadComplex. A complex number read as a float is its real part.
func load[T number](dst []T, t graph.Type, b []byte, off, step int) {
	switch dst := any(dst).(type) {
	case []int64:
		loadInts(dst, t, b, off, step)
	case []float64:
		if t.Complex() {
			loadFloats(dst, t.Part(), b, 2*off, 2*step)
			return
		}
		loadFloats(dst, t, b, off, step)
	case []complex128:
		loadComplex(dst, t, b, off, step)
	}
}

// source reads a tensor's elements in row-major order, stretched to a shape.
type source struct {
	v strided
	t graph.Type
	b []byte
}

// stretch is x broadcast to shape s, as elementwise operations do.
func stretch(x Tensor, s graph.Shape) source {
	strides := make([]int, len(s))
	lead := len(s) - len(x.Shape)
	for i, d := range x.Shape {
		if d != 1 {
			strides[lead+i] = x.Layout.Strides[i]
		}
	}
	return source{stridedOf(s, graph.Layout{Offset: x.Layout.Offset, Strides: strides}), x.Type, x.Data}
}

func sourceOf(x Tensor) source { return source{stridedOf(x.Shape, x.Layout), x.Type, x.Data} }

// read reads elements lo and following.
func read[T number](dst []T, s *source, lo int) {
	step := s.v.step()
	s.v.runs(lo, lo+len(dst), func(k, off, n int) { load(dst[k:k+n], s.t, s.b, off, step) })
}

// values are all elements of x in row-major order.
func values[T number](x Tensor) []T {
	dst := make([]T, x.Shape.Size())
	s := sourceOf(x)
	parallel(len(dst), 2, func(lo, hi int) { read(dst[lo:hi], &s, lo) })
	return dst
}

// ints, floats and complexes are the elements of x in row-major order. Those of a u64 are its bits.
func ints(x Tensor) []int64           { return values[int64](x) }
func floats(x Tensor) []float64       { return values[float64](x) }
func complexes(x Tensor) []complex128 { return values[complex128](x) }
