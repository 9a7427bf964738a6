// Package shaders holds the kernel generators, one file a family: each takes the types, shapes and
// layouts of one operation and the device's kernel.Target, and yields a Plan. Kernels are generic in
// extents, strides and scalars: those travel in the argument table, so equal op graphs over other
// shapes share a pipeline. It must not know the wire, Vulkan, or where in a graph the operation stands.
//
// Start reading at plan.go (the result), index.go (how operands of any layout are read) and
// convert.go (how Nx types become register types).
package shaders

import (
	"nxvk/graph"
	"nxvk/kernel"
)

// Operand is an input of an operation: a tensor in some layout, or a by-value scalar.
type Operand struct {
	graph.Spec
	Layout  graph.Layout
	ByValue bool // a rank-0 number that goes into the argument table
}

// ArgKind says what fills an entry of an argument table.
type ArgKind uint8

const (
	Addr  ArgKind = iota // address of slot Slot plus Offset bytes
	Imm                  // Imm
	Value                // by-value operand Slot, read as From, its part Part converted as Nx does to To, widened to the register type
)

// Arg fills one entry of the argument table. Slots number the operands first, then the results,
// then the Plan's temporaries, then its tables.
type Arg struct {
	Kind   ArgKind
	Slot   int
	Offset uint64 // Addr
	Imm    uint64
	From   graph.Type // Value
	To     graph.Type // Value: not complex
	Part   int        // Value: 0 the number or its real part, 1 its imaginary part
	Clamp  bool       // Value: what is beyond the integers of To becomes the nearest (graph.SaturateBits)
}

// Number is the element of To that a Value makes of a number with the given bits.
func (a *Arg) Number(bits uint64) uint64 {
	if a.Clamp {
		return graph.SaturateBits(bits, a.From.Part(), a.To)
	}
	return graph.ConvertBits(bits, a.From.Part(), a.To)
}

// Access is a byte range of a slot that a launch touches. Hi is exclusive.
type Access struct {
	Slot   int
	Lo, Hi uint64
	Write  bool
}

// Launch is one dispatch of a kernel.
type Launch struct {
	Kernel *kernel.Kernel
	Grid   [3]uint32
	Args   []Arg // one for each kernel.Arg, in order
	Access []Access
}

// Plan is how an operation runs: launches in order (a later one may read what an earlier one wrote;
// lower/ puts the barriers), with temporaries in between.
type Plan struct {
	Launches []Launch
	Temps    []uint64 // bytes of each temporary
	Consts   [][]byte // tables; their slots follow the temporaries
	Bounds   []Bounds // what kernels find wrong with indices
}

// Bounds is a check that kernels make of an operand's values as they use them: each is an index along an axis, or, with
// a Message, whatever else it says. The kernels themselves stay inside their buffers whatever the values are; a flag
// tells that one was not right.
type Bounds struct {
	Flag  int         // a temporary's slot: an I32 that is 0 before the plan runs; kernels add to it for what they find
	Index int         // the operand's slot
	Axes  []int       // the axis that an index names, by its place along the operand's last axis; one axis: of all
	Shape graph.Shape // of the tensor that the indices lead into

	Reason, Message string // of the failure, where no index is to blame
}

// Singular is the reason of a system that has no solution.
const Singular = "singular"
