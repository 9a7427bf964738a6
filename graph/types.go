// Package graph is the IR of tensor programs: types, shapes, nodes, the verifier, the text form and
// the passes. An eager op is a graph of one node. It must not know kernels or Vulkan.
//
// Start reading at graph.go (what a graph is), then ops.go (each op's operands, attributes and rule).
package graph

import (
	"fmt"
	"strings"
)

// Type is an Nx tensor type.
type Type uint8

const (
	Invalid Type = iota
	U8
	U16
	U32
	U64
	S8
	S16
	S32
	S64
	F16
	BF16
	F32
	F64
	F8       // E5M2
	F8E4M3FN // no infinities
	S2       // types below 8 bits take a byte each
	S4
	U2
	U4
	C64 // real part first
	C128
)

type typeInfo struct {
	name string // as Nx prints it
	kind Kind
	size int // bytes
	bits int // of the number, where it leaves some of its byte unused
}

// Kind is the family of a Type.
type Kind uint8

const (
	KindInvalid Kind = iota
	KindUnsigned
	KindSigned
	KindFloat
	KindComplex
)

var typeTable = [...]typeInfo{
	Invalid: {"invalid", KindInvalid, 0, 0},
	U8:      {"u8", KindUnsigned, 1, 8},
	U16:     {"u16", KindUnsigned, 2, 16},
	U32:     {"u32", KindUnsigned, 4, 32},
	U64:     {"u64", KindUnsigned, 8, 64},
	S8:      {"s8", KindSigned, 1, 8},
	S16:     {"s16", KindSigned, 2, 16},
	S32:     {"s32", KindSigned, 4, 32},
	S64:     {"s64", KindSigned, 8, 64},
	F16:     {"f16", KindFloat, 2, 16},
	BF16:    {"bf16", KindFloat, 2, 16},
	F32:     {"f32", KindFloat, 4, 32},
	F64:     {"f64", KindFloat, 8, 64},

	F8:       {"f8", KindFloat, 1, 8},
	F8E4M3FN: {"f8_e4m3fn", KindFloat, 1, 8},
	S2:       {"s2", KindSigned, 1, 2},
	S4:       {"s4", KindSigned, 1, 4},
	U2:       {"u2", KindUnsigned, 1, 2},
	U4:       {"u4", KindUnsigned, 1, 4},
	C64:      {"c64", KindComplex, 8, 64},
	C128:     {"c128", KindComplex, 16, 128},
}

// Types lists every type that tensors may have, in a fixed order.
var Types = []Type{U8, U16, U32, U64, S8, S16, S32, S64, F16, BF16, F32, F64, F8, F8E4M3FN, S2, S4, U2, U4, C64, C128}

// RealTypes are the Types that are not complex.
var RealTypes = func() []Type {
	var real []Type
	for _, t := range Types {
		if !t.Complex() {
			real = append(real, t)
		}
	}
	return real
}()

func (t Type) String() string {
	if int(t) < len(typeTable) {
		return typeTable[t].name
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// Kind is the family of t.
func (t Type) Kind() Kind { return typeTable[t].kind }

// Size is the size of an element in bytes.
func (t Type) Size() int { return typeTable[t].size }

// Bits is the width of an element in bits. It is 8*Size but for the types below 8 bits, whose byte holds the number
// extended by its sign.
func (t Type) Bits() int { return typeTable[t].bits }

// PackedSize is the size in bytes of n elements as Nx lays them out, where types below 8 bits lie close together,
// the first in the highest bits of a byte.
func (t Type) PackedSize(n int) int { return (n*t.Bits() + 7) / 8 }

// Float, Signed and Int report the family of t.
func (t Type) Float() bool  { return t.Kind() == KindFloat }
func (t Type) Signed() bool { return t.Kind() == KindSigned }

// Complex reports whether an element of t is a pair of floats, of type t.Part().
func (t Type) Complex() bool { return t.Kind() == KindComplex }

// Part is the type of the real and the imaginary part of a complex type, and t itself for others.
func (t Type) Part() Type {
	switch t {
	case C64:
		return F32
	case C128:
		return F64
	}
	return t
}

// Int reports whether t is a signed or unsigned integer.
func (t Type) Int() bool { return t.Kind() == KindSigned || t.Kind() == KindUnsigned }

// ParseType reads a type as Nx prints it ("f32"). ok is false for an unknown name.
func ParseType(name string) (t Type, ok bool) {
	for _, t := range Types {
		if typeTable[t].name == name {
			return t, true
		}
	}
	return Invalid, false
}

// Shape is the extent of each axis, outermost first; rank 0 is a scalar.
type Shape []int

// Size is the number of elements. The verifier has bounded it (MaxElements), so it does not overflow.
func (s Shape) Size() int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// Equal reports whether two shapes are the same.
func (s Shape) Equal(o Shape) bool {
	if len(s) != len(o) {
		return false
	}
	for i := range s {
		if s[i] != o[i] {
			return false
		}
	}
	return true
}

// String prints a shape as Nx does: {2, 3}.
func (s Shape) String() string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = fmt.Sprint(d)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// Strides are the row-major strides of s, in elements.
func (s Shape) Strides() []int {
	st := make([]int, len(s))
	n := 1
	for i := len(s) - 1; i >= 0; i-- {
		st[i] = n
		n *= s[i]
	}
	return st
}

// Limits of a verified graph. They bound the port's time and memory on hostile input.
const (
	MaxRank     = 32
	MaxElements = 1 << 40
	MaxNodes    = 1 << 20
)

// Spec is what a value is: its type and shape.
type Spec struct {
	Type  Type
	Shape Shape
}

func (s Spec) String() string { return s.Type.String() + s.Shape.String() }

// Layout says where the elements of a tensor lie in its buffer: element (i0, i1, …) at
// Offset + Σ ik*Strides[k], in elements. Strides may be 0 (broadcast) or negative (reverse).
type Layout struct {
	Offset  int
	Strides []int
}

// Contiguous is the row-major layout of s.
func Contiguous(s Shape) Layout { return Layout{0, s.Strides()} }

// IsContiguous reports whether l is row-major for s at any offset; strides of extent-1 axes do not matter.
func (l Layout) IsContiguous(s Shape) bool {
	n := 1
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] != 1 && l.Strides[i] != n {
			return false
		}
		n *= s[i]
	}
	return true
}
