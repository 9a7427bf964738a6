package shaders

import (
	"nxvk/graph"
	"nxvk/kernel"
)

// Linalg yields the plan of a linear algebra operation over dense row-major operands of type t (F32 or F64); its
// results are dense, of type t too. Only small problems have kernels: for the others, and where the
// processor is faster, the error is an Unsupported.
func Linalg(d kernel.Target, n *graph.Node, t graph.Type, in []graph.Shape) (*Plan, error) {
	g := linalg{d: d, n: n, t: t, in: in}
	a := in[0]
	lead := len(a) - 2
	g.batch, g.rows, g.cols = a[:lead].Size(), a[lead], a[lead+1]
	for _, s := range append(in, n.Shape) {
		if s.Size() >= wideFrom {
			return nil, &Unsupported{n.Op, t, "a tensor is too large for its kernel"}
		}
	}
	switch n.Op {
	case graph.OpCholesky:
		return g.cholesky()
	case graph.OpLU:
		return g.lu()
	case graph.OpDeterminant:
		return g.determinant()
	case graph.OpTriangularSolve:
		return g.triangular()
	case graph.OpSolve:
		return g.solve()
	case graph.OpQR:
		return g.qr()
	case graph.OpEigh:
		return g.eigh()
	case graph.OpSVD:
		return g.svd()
	}
	return nil, &Unsupported{n.Op, t, "there is no kernel for it"}
}

// LinalgOps are the operations of Linalg.
var LinalgOps = []graph.Op{
	graph.OpCholesky, graph.OpLU, graph.OpDeterminant, graph.OpTriangularSolve, graph.OpSolve, graph.OpQR, graph.OpEigh, graph.OpSVD,
}

// linalg is an operation while it is planned.
type linalg struct {
	d          kernel.Target
	n          *graph.Node
	t          graph.Type
	in         []graph.Shape
	batch      int
	rows, cols int
}

// start begins a kernel over problems of about size elements each.
func (g *linalg) start(problems, size, wide int) (*matrixKernel, error) {
	return newMatrixKernel(string(g.n.Op), g.d, g.n.Op, g.t, problems, size, wide, len(g.in)+1+len(g.n.More))
}

// singular is what a system without a solution says.
const singular = "can't solve for singular matrix"

// paysUpTo is the extent up to which a processor's vectors, filled with a batch, are faster than host/ (measured on
// lavapipe, see TestLinalgPlaces: from 256 matrices on, 1.2 to 30 times).
var paysUpTo = map[graph.Op]int{
	graph.OpCholesky: 16, graph.OpLU: 16, graph.OpSolve: 16, graph.OpDeterminant: 8, graph.OpTriangularSolve: 8, graph.OpQR: 8,
	graph.OpEigh: 4, graph.OpSVD: 4,
}

// LinalgPays reports whether device d is the better place for n over matrices of shape a. GPUs take what fits their
// kernels; but the many small steps of a full svd pay from a batch of 64 on (measured on an H200).
func LinalgPays(d kernel.Target, n *graph.Node, a graph.Shape) bool {
	lead := len(a) - 2
	batch := a[:lead].Size()
	if d.Class != kernel.CPU {
		return n.Op != graph.OpSVD || !n.Attrs.Full || batch >= 64
	}
	return batch >= 256 && max(a[lead], a[lead+1]) <= paysUpTo[n.Op]
}
