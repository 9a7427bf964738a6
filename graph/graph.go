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
	Spec         // of the result
	More  []Spec // of further results, which elem nodes name (top_k, lu, qr, svd, eigh)
	Attrs Attrs  // only the fields that the op's entry in ops.go names are set
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

// One is node n, whose operands are params parameters, as the nodes and results of a graph: all results of n, in
// order.
func One(n Node, params int) ([]Node, []Ref) {
	at := Ref(params)
	nodes, outs := []Node{n}, []Ref{at}
	for i, s := range n.More {
		nodes = append(nodes, Node{Op: OpElem, In: []Ref{at}, Spec: s, Attrs: Attrs{Index: i + 1}})
		outs = append(outs, at+Ref(i)+1)
	}
	return nodes, outs
}

// Attrs are the static attributes of a node. One flat record, since it prints, hashes and compares
// without a type switch.
type Attrs struct {
	Axes      []int    // reductions, squeeze, reverse, transpose (the permutation), broadcast (operand axis -> result axis)
	Axis      int      // iota (-1: the flat index), argmax, argmin (-1: flattened), concatenate, stack
	Keep      bool     // reductions: reduced axes stay with extent 1
	High      bool     // argmax, argmin: ties go to the highest index
	Lengths   []int    // slice
	Strides   []int    // slice, windows, conv
	Pad       []PadDim // pad; windows, conv: of the spatial axes, Interior 0
	ContractA []int    // dot: pairs with ContractB
	ContractB []int
	BatchA    []int // dot: leading axes, pairs with BatchB
	BatchB    []int
	Acc       Acc    // dot, sum of f32: how to accumulate
	Value     uint64 // constant: the bits of one element in the result's type, and where it has more than 64,
	Upper     uint64 // the rest of them (see Number)

	Index    int     // elem: which result, 0 is the first
	Desc     bool    // sort, argsort: descending
	Reverse  bool    // cumulative ops: from the last element to the first
	Window   []int   // windows: the extent of each axis
	Dilation []int   // windows: the step between the elements of a window, for each axis
	Conv     *Conv   // conv
	Length   int     // fft and its kin: the length of the transformed axis
	Eps      float64 // fft and its kin, linear algebra: what is taken for zero
	RTol     float64 // all_close
	ATol     float64 // all_close
	EqualNaN bool    // all_close
	Solve    Solve   // triangular_solve
	Full     bool    // qr: mode complete; svd: full matrices
	MaxIter  int     // eigh, svd
	Fun      *Graph  // reduce, window_reduce: (element, accumulator) -> accumulator, all of rank 0
}

// Conv is how a convolution lays out its operands and its result, and how it moves. The permutations say which axis
// of the tensor is its batch (of the kernel: its output channel), its channel (its input channel) and each spatial axis.
type Conv struct {
	InputDilation, KernelDilation     []int // of the spatial axes
	FeatureGroups, BatchGroups        int
	InputPerm, KernelPerm, OutputPerm []int
}

// Solve says which triangular system is solved.
type Solve struct {
	Upper     bool // the upper triangle of A is read, else the lower one
	Right     bool // X·op(A) = B, else op(A)·X = B
	Transform Transform
}

// Transform is what is done to a matrix before it is used.
type Transform uint8

const (
	NoTransform Transform = iota
	Transpose
	Conjugate // the conjugate, not transposed
)

// Acc says how dot (and sums) of f32 accumulate.
type Acc uint8

const (
	AccCompensated Acc = iota // |error| <= 2^-24 Σ|ai·bi|, f64 where that is fast, else two-sum across tiles
	AccF32                    // plain f32
	AccF64                    // f64
)
