package graph

// Ref names a value of a graph: parameters come first (0 … len(Params)-1), then nodes.
type Ref int32

// Param is an input of a graph.
type Param struct {
	Spec
	// ByValue parameters are rank-0 numbers that travel with the call and land in the kernel's
	// argument table: a host scalar. Their value is no part of the program.
	ByValue bool
	// Layout of the tensor that the caller will bind. The zero Layout with rank > 0 means contiguous
	// at offset 0. It is part of the program (not of its kernels: those take strides as arguments).
	Layout Layout
}

// Node is one operation. Its operands are earlier values.
type Node struct {
	Op    Op
	In    []Ref
	Spec        // of the result
	Attrs Attrs // only the fields that the op's entry in ops.go names are set
}

// Graph is a tensor program: straight-line, every value of one type and shape.
type Graph struct {
	Params []Param
	Nodes  []Node
	Outs   []Ref
}

// SpecOf is the type and shape of a value.
func (g *Graph) SpecOf(r Ref) Spec {
	if int(r) < len(g.Params) {
		return g.Params[r].Spec
	}
	return g.Nodes[int(r)-len(g.Params)].Spec
}

// PadDim pads one axis: Interior between elements first, then Lo and Hi at the ends; negative Lo or
// Hi crops.
type PadDim struct{ Lo, Hi, Interior int }

// Attrs are the static attributes of a node. One flat record, since it prints, hashes and compares
// without a type switch.
type Attrs struct {
	Axes      []int    // reductions, squeeze, reverse, transpose (the permutation), broadcast (operand axis -> result axis)
	Axis      int      // iota (-1: the flat index), argmax, argmin (-1: flattened), concatenate, stack
	Keep      bool     // reductions: reduced axes stay with extent 1
	High      bool     // argmax, argmin: ties go to the highest index
	Lengths   []int    // slice
	Strides   []int    // slice
	Pad       []PadDim // pad
	ContractA []int    // dot: pairs with ContractB
	ContractB []int
	BatchA    []int // dot: leading axes, pairs with BatchB
	BatchB    []int
	Acc       Acc    // dot, sum of f32: how to accumulate
	Value     uint64 // constant: the bits of one element in the result's type
}

// Acc says how dot (and sums) of f32 accumulate.
type Acc uint8

const (
	AccCompensated Acc = iota // |error| <= 2^-24 Σ|ai·bi|, f64 where that is fast, else two-sum across tiles
	AccF32                    // plain f32
	AccF64                    // f64
)
