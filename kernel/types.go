// Package kernel is the kernel IR: what one GPU compute kernel does, as plain, printable,
// hashable data. Generators in shaders/ build it, spirv/ emits it, and the interpreter in this
// package runs it on the CPU as the oracle for tests. It must not know tensors, SPIR-V or Vulkan.
//
// Start reading at ir.go (the instructions), then builder.go (how generators make them), check.go (what
// a kernel must fulfil), text.go (its text form and identity) and run.go (the interpreter).
package kernel

import "fmt"

// Type is the type of a value in a register. Integers are signless, as in WebAssembly: the
// operation says signed or unsigned. Narrow integers, f16 and bf16 exist in memory only (see Mem);
// registers hold them widened to I32 or F32.
type Type uint8

const (
	Void Type = iota
	Bool
	I32
	I64
	F32
	F64
)

var typeNames = [...]string{"void", "bool", "i32", "i64", "f32", "f64"}

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// Float reports whether t is F32 or F64.
func (t Type) Float() bool { return t == F32 || t == F64 }

// Int reports whether t is I32 or I64.
func (t Type) Int() bool { return t == I32 || t == I64 }

// Bits is the width of t in bits; 1 for Bool, 0 for Void.
func (t Type) Bits() int { return [...]int{0, 1, 32, 64, 32, 64}[t] }

// Mem is the type of an element in memory (buffers and shared arrays).
type Mem uint8

const (
	M8  Mem = iota // loads zero-extend to I32, stores truncate an I32
	M16            // likewise; f16 and bf16 are M16, converted by integer arithmetic in the kernel
	M32            // I32
	M64            // I64
	MF32
	MF64
)

var memNames = [...]string{"m8", "m16", "m32", "m64", "mf32", "mf64"}

func (m Mem) String() string { return memNames[m] }

// Size is the size of one element in bytes.
func (m Mem) Size() int { return [...]int{1, 2, 4, 8, 4, 8}[m] }

// Reg is the register type that a load of m yields and a store to m takes.
func (m Mem) Reg() Type { return [...]Type{I32, I32, I32, I64, F32, F64}[m] }
