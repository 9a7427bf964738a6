package lower

import (
	"nxvk/graph"
	"nxvk/kernel"
)

func init() { expanders[graph.OpCholesky] = expandCholesky }

// choleskyBlock is the number of columns that are factored at once: their square fits what a workgroup shares.
func choleskyBlock(t graph.Type) int {
	if t == graph.F64 {
		return 48
	}
	return 64
}

// blockedCholesky reports whether matrices are factored block by block: those too large for a kernel, where a device
// multiplies faster than the processor factors. On lavapipe 1024 columns take 161 ms by blocks, 174 to 259 ms on the processor;
// where GPUs begin to gain was not measured.
func blockedCholesky(n *graph.Node, a graph.Spec, t kernel.Target) bool {
	size := a.Shape[len(a.Shape)-1]
	if a.Type.Complex() || n.Type.Complex() || !t.F64 {
		return false
	}
	if t.Class == kernel.CPU {
		return size >= 768
	}
	return size > choleskyBlock(a.Type)
}

// choleskyEps is what Nx adds to each pivot, and takes for zero.
const choleskyEps = 1e-10

// expandCholesky factors a block of columns, solves for the rows below it, and subtracts their products from what
// remains.
func expandCholesky(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error) {
	a := x.g.SpecOf(in[0])
	if !blockedCholesky(n, a, x.t) {
		return nil, nil
	}
	t := graph.F32
	if a.Type == graph.F64 {
		t = graph.F64
	}
	c := matrixChain{chain: chain{expansion: x}, t: t, batch: a.Shape[:len(a.Shape)-2]}
	size, block := a.Shape[len(a.Shape)-1], choleskyBlock(t)
	rest := c.node(graph.OpAsType, graph.Spec{Type: t, Shape: a.Shape}, graph.Attrs{}, in[0])
	eps := c.node(graph.OpConstant, graph.Spec{Type: t, Shape: graph.Shape{}}, graph.Attrs{Value: graph.FromFloat(choleskyEps, t)})
	var columns []graph.Ref
	for from := 0; from < size; from += block {
		m := size - from
		b := min(block, m)
		top := c.node(graph.OpCholesky, c.spec(b, b), graph.Attrs{}, c.slice(rest, 0, 0, b, b))
		column := []graph.Ref{top}
		if from > 0 {
			column = []graph.Ref{c.zeros(from, b), top}
		}
		if b < m {
			eye := c.node(graph.OpEye, graph.Spec{Type: t, Shape: graph.Shape{b, b}}, graph.Attrs{})
			eye = c.node("multiply", graph.Spec{Type: t, Shape: graph.Shape{b, b}}, graph.Attrs{}, eye, eps)
			pivots := c.node("add", c.spec(b, b), graph.Attrs{}, top, eye)
			solve := graph.Attrs{Solve: graph.Solve{Right: true, Transform: graph.Transpose}}
			below := c.node(graph.OpTriangularSolve, c.spec(m-b, b), solve, pivots, c.slice(rest, b, 0, m-b, b))
			column = append(column, below)
			product := c.timesTransposed(below, below, m-b, m-b)
			rest = c.node("subtract", c.spec(m-b, m-b), graph.Attrs{}, c.slice(rest, b, b, m-b, m-b), product)
		}
		columns = append(columns, c.join(len(c.batch), size, b, column))
	}
	l := c.join(len(c.batch)+1, size, size, columns)
	small := c.node("less_equal", graph.Spec{Type: graph.U8, Shape: a.Shape}, graph.Attrs{}, c.node("abs", c.spec(size, size), graph.Attrs{}, l), eps)
	none := c.node(graph.OpConstant, graph.Spec{Type: t, Shape: graph.Shape{}}, graph.Attrs{})
	l = c.node(graph.OpSelect, c.spec(size, size), graph.Attrs{}, small, none, l)
	l = c.node(graph.OpAsType, n.Spec, graph.Attrs{}, l)
	return []graph.Ref{l}, c.err
}

// matrixChain is a chain over batches of matrices of one type.
type matrixChain struct {
	chain
	t     graph.Type
	batch graph.Shape
}

func (c *matrixChain) spec(m, n int) graph.Spec {
	return graph.Spec{Type: c.t, Shape: append(append(graph.Shape{}, c.batch...), m, n)}
}

// slice is {m, n} of each matrix of x from (row, col) on.
func (c *matrixChain) slice(x graph.Ref, row, col, m, n int) graph.Ref {
	in := []graph.Ref{x}
	s := c.spec(m, n)
	at := graph.Attrs{Lengths: s.Shape}
	for a := range s.Shape {
		start := 0
		switch a {
		case len(c.batch):
			start = row
		case len(c.batch) + 1:
			start = col
		}
		at.Strides = append(at.Strides, 1)
		in = append(in, c.node(graph.OpConstant, graph.Spec{Type: graph.S64, Shape: graph.Shape{}}, graph.Attrs{Value: uint64(start)}))
	}
	return c.node(graph.OpSlice, s, at, in...)
}

func (c *matrixChain) zeros(m, n int) graph.Ref {
	return c.node(graph.OpConstant, c.spec(m, n), graph.Attrs{})
}

// join puts matrices side by side along an axis, to {m, n}.
func (c *matrixChain) join(axis, m, n int, xs []graph.Ref) graph.Ref {
	if len(xs) == 1 {
		return xs[0]
	}
	return c.node(graph.OpConcat, c.spec(m, n), graph.Attrs{Axis: axis}, xs...)
}

// timesTransposed is x·yᵀ, {m, n}.
func (c *matrixChain) timesTransposed(x, y graph.Ref, m, n int) graph.Ref {
	at := graph.Attrs{ContractA: []int{len(c.batch) + 1}, ContractB: []int{len(c.batch) + 1}}
	for a := range c.batch {
		at.BatchA, at.BatchB = append(at.BatchA, a), append(at.BatchB, a)
	}
	return c.node(graph.OpDot, c.spec(m, n), at, x, y)
}
