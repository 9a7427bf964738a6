// Package lower turns a verified graph into a Program: which kernels run, over which grids, on which
// buffers. A Program is plain data; it must not know Vulkan handles.
//
// Start reading at program.go (the result), then lower.go (the walk over the nodes).
package lower

import (
	"nxvk/graph"
	"nxvk/kernel"
)

// BufKind says where a buffer of a Program comes from.
type BufKind uint8

const (
	BufParam BufKind = iota // bound by the caller: parameter Index of the graph
	BufOut                  // allocated for the run, handed to the caller
	BufTemp                 // allocated for the run, free after it
	BufConst                // Data, uploaded once per program
	BufFlag                 // an I32 that is 0 when the run begins; what a Bound's kernels add to it, they found
)

// Buffer is a range of device memory that a Program works on.
type Buffer struct {
	Kind  BufKind
	Index int    // BufParam: which parameter
	Bytes uint64 // BufParam: the least that its layout reaches
	Data  []byte // BufConst
}

// ArgKind says what fills an entry of an argument table.
type ArgKind uint8

const (
	ArgAddr  ArgKind = iota // address of Buf plus Offset bytes
	ArgImm                  // Imm
	ArgValue                // the value of by-value parameter Param, converted on the host as Conv says
)

// Arg fills one entry of the argument table of a dispatch.
type Arg struct {
	Kind   ArgKind
	Buf    int
	Offset uint64 // bytes
	Imm    uint64
	Param  int
	Conv   ValueConv // ArgValue
}

// ValueConv says how a by-value parameter becomes the bits in the argument table: read as a number of
// type From, of which the real part (Part 0) or the imaginary part (Part 1) is converted to type To as Nx
// converts (graph.ConvertBits), then widened to the kernel's register type: integers sign- or
// zero-extended, floats below 32 bits to f32. To is never complex.
type ValueConv struct {
	From, To graph.Type
	Part     int
	Clamp    bool // what is beyond the integers of To becomes the nearest: graph.SaturateBits
}

// Bits is the entry of the argument table for the number v.
func (c ValueConv) Bits(v graph.Value) uint64 {
	re, im := v.Parts(c.From)
	if c.Part == 1 {
		re = im
	}
	if c.Clamp {
		return Widened(graph.SaturateBits(re, c.From.Part(), c.To), c.To)
	}
	return Widened(graph.ConvertBits(re, c.From.Part(), c.To), c.To)
}

// Access is a byte range of a buffer that a dispatch touches, for hazards and for the range checker.
type Access struct {
	Buf    int
	Lo, Hi uint64 // [Lo, Hi) from the buffer's start
	Write  bool
}

// Step is one dispatch, or what the host computes.
type Step struct {
	Host    *HostStep // a step of the host: no kernel, grid or arguments
	Kernel  int       // index into Program.Kernels
	Grid    [3]uint32
	Args    []Arg
	Access  []Access
	Barrier bool // a memory barrier before it: some earlier step since the last barrier conflicts with it
}

// Out is one result.
type Out struct {
	Buf    int // BufOut, or BufParam where the result is a view of a parameter
	Layout graph.Layout
	Spec   graph.Spec
}

// Bound is a check of indices that kernels of the program make as they run: if buffer Flag is not 0 in the end,
// some index was out of range, and Failed finds it. With a Message it is a check of another kind, of all of Index.
type Bound struct {
	Op    graph.Op
	Flag  int // BufFlag
	Index int // the buffer of the indices, which nothing writes once they are made
	graph.Spec
	graph.Layout
	Axes []int       // the axis that an index names, by its place along the last axis of the indices; one axis: of all
	Into graph.Shape // of the tensor that the indices lead into

	Reason, Message string // of the failure, where no index is to blame
}

// Program is what a graph was lowered to.
type Program struct {
	Kernels []*kernel.Kernel
	Bufs    []Buffer
	Steps   []Step
	Outs    []Out
	Bounds  []Bound
	Params  []graph.Param
}

// name says what a step runs.
func (p *Program) name(s *Step) string {
	if s.Host != nil {
		return "host " + string(s.Host.Node.Op)
	}
	return p.Kernels[s.Kernel].Name
}

// Widened is how an element of type t lies in the argument table: in its kernel's register type.
func Widened(bits uint64, t graph.Type) uint64 {
	switch {
	case t.Float() && t.Size() < 4:
		return graph.ConvertBits(bits, t, graph.F32)
	case t.Signed() && t.Size() < 4:
		return graph.ConvertBits(bits, t, graph.S32)
	}
	return bits
}
