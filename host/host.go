// Package host runs operations of the tensor IR on the processor, over tensors of plain bytes: what a device
// cannot do, and what tests hold the device to. It follows Nx.BinaryBackend: integers wrap, conversions
// are graph.ConvertBits's, floats are computed in f64 and rounded once into their type (to nearest, ties
// to even), sums and dots accumulate in f64 in the order of the elements; where BinaryBackend raises for
// lack of a number (1/0, the logarithm of 0) the result is IEEE's. It must not know Vulkan or kernels.
//
// Start reading here (Run, Eval, the table of operations), then walk.go (how elements of any layout are
// visited) and load.go (how an element's bytes become a number).
package host

import (
	"fmt"

	"nxvk/graph"
)

// Tensor is a tensor in memory. Data holds elements as Nx lays them out, little-endian; Layout says where
// each lies, in elements. Without strides the tensor is row-major from Layout.Offset on.
type Tensor struct {
	graph.Spec
	Layout graph.Layout
	Data   []byte
}

// New is a row-major tensor of zeros.
func New(s graph.Spec) Tensor {
	return Tensor{Spec: s, Layout: graph.Contiguous(s.Shape), Data: make([]byte, s.Shape.Size()*s.Type.Size())}
}

// Func computes the results of a node that Verify accepts, over operands whose layouts have strides. Results
// are row-major at offset 0.
type Func func(n *graph.Node, in []Tensor) ([]Tensor, error)

// ops is the table of operations. Families add theirs with register.
var ops = map[graph.Op]Func{}

func register(f Func, names ...graph.Op) {
	for _, op := range names {
		if ops[op] != nil {
			panic("host: " + op + " is registered twice")
		}
		ops[op] = f
	}
}

// one makes a Func of a function of one result that cannot fail.
func one(f func(n *graph.Node, in []Tensor) Tensor) Func {
	return func(n *graph.Node, in []Tensor) ([]Tensor, error) { return []Tensor{f(n, in)}, nil }
}

// Has reports whether op can be run.
func Has(op graph.Op) bool { return ops[op] != nil }

// ValueError is the failure of an operation for the values of its operands: an index out of bounds, a
// singular matrix. Reason is a word for machines.
type ValueError struct {
	Op      graph.Op
	Reason  string
	Message string
}

func (e *ValueError) Error() string { return string(e.Op) + ": " + e.Message }

// The reasons of a ValueError.
const (
	OutOfRange = "out_of_range" // an index
	Singular   = "singular"     // the matrix of a system
)

func valueError(op graph.Op, reason, format string, args ...any) error {
	return &ValueError{op, reason, fmt.Sprintf(format, args...)}
}

// Run computes a node. Its operands are in, whatever n.In names; an elem node takes all results of the node that it
// names. The results are row-major and share no memory with the operands.
func Run(n *graph.Node, in []Tensor) ([]Tensor, error) {
	f := ops[n.Op]
	if f == nil {
		return nil, &graph.Error{Op: n.Op, Reason: "the host has no such operation"}
	}
	specs := make([]graph.Spec, len(in))
	xs := make([]Tensor, len(in))
	for i := range in {
		specs[i], xs[i] = in[i].Spec, in[i]
		if err := xs[i].settle(); err != nil {
			return nil, &graph.Error{Op: n.Op, Reason: fmt.Sprintf("operand %d: %v", i, err)}
		}
	}
	if err := graph.VerifyNode(n, specs); err != nil {
		return nil, err
	}
	return f(n, xs)
}

// settle gives x strides, and wants every element to lie in its bytes.
func (x *Tensor) settle() error {
	if err := graph.CheckSpec(x.Spec); err != nil {
		return err
	}
	if x.Layout.Strides == nil {
		x.Layout.Strides = x.Shape.Strides()
	}
	return graph.CheckLayout(x.Shape, x.Layout, len(x.Data)/x.Type.Size())
}

// Eval computes the results of a graph, whose parameters are in. By-value parameters are tensors of rank 0.
func Eval(g *graph.Graph, in []Tensor) ([]Tensor, error) {
	if len(in) != len(g.Params) {
		return nil, &graph.Error{Reason: fmt.Sprintf("takes %d values, got %d", len(g.Params), len(in))}
	}
	for i, p := range g.Params {
		if in[i].Type != p.Type || !in[i].Shape.Equal(p.Shape) {
			return nil, &graph.Error{Reason: fmt.Sprintf("parameter %d is %v, got %v", i, p.Spec, in[i].Spec)}
		}
	}
	if err := graph.Verify(g); err != nil {
		return nil, err
	}
	return eval(g, in)
}

// eval is Eval of a graph that was verified. Values are let go of behind their last use.
func eval(g *graph.Graph, in []Tensor) ([]Tensor, error) {
	params := len(g.Params)
	last := make([]int, params+len(g.Nodes))
	for i := range last {
		last[i] = -1
	}
	for i := range g.Nodes {
		for _, r := range g.Nodes[i].In {
			last[r] = i
		}
	}
	for _, r := range g.Outs {
		last[r] = len(g.Nodes)
	}
	at := make([][]Tensor, len(last))
	for i := range in {
		at[i] = in[i : i+1]
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if last[params+i] < 0 {
			continue
		}
		if n.Op == graph.OpElem {
			at[params+i] = at[n.In[0]][n.Attrs.Index:][:1]
			continue
		}
		xs := make([]Tensor, len(n.In))
		for k, r := range n.In {
			xs[k] = at[r][0]
		}
		out, err := Run(n, xs)
		if err != nil {
			return nil, err
		}
		at[params+i] = out
		for _, r := range n.In {
			if last[r] == i {
				at[r] = nil
			}
		}
	}
	outs := make([]Tensor, len(g.Outs))
	for i, r := range g.Outs {
		outs[i] = at[r][0]
	}
	return outs, nil
}
