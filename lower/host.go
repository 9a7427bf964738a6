package lower

import (
	"nxvk/graph"
	"nxvk/host"
	"nxvk/kernel"
	"nxvk/shaders"
)

// HostStep is a step that the processor runs: an operation for which the device has no kernel, or lacks a type.
// It begins when all steps before it have run.
type HostStep struct {
	Node graph.Node // In says nothing
	In   []HostIn
	Out  []int // the buffer of each result, row-major from its start
}

// HostIn is an operand of a HostStep: a tensor in a buffer, or a number that stands for every element.
type HostIn struct {
	graph.Spec
	Buf    int // -1: a number
	Layout graph.Layout
	Param  int    // a number: the by-value parameter that it is, or -1
	Data   []byte // or its bytes
}

// preferences say of operations that the device can run whether the processor is the better place: the operation
// with its operands, and the device.
var preferences = map[graph.Op]func(n *graph.Node, in []graph.Spec, t kernel.Target) bool{}

// preferHost reports whether n runs on the host though the device may have a kernel for it.
func preferHost(n *graph.Node, in []graph.Spec, t kernel.Target) bool {
	prefer := preferences[n.Op]
	return prefer != nil && host.Has(n.Op) && prefer(n, in, t)
}

// lacks reports whether the device lacks a type of n's operands or results. What n expands to then is no better.
func lacks(n *graph.Node, in []graph.Spec, t kernel.Target) bool {
	has := shaders.Has(t, n.Type)
	for _, s := range n.More {
		has = has && shaders.Has(t, s.Type)
	}
	for _, s := range in {
		has = has && shaders.Has(t, s.Type)
	}
	return !has
}

// onHost adds a step for n that the processor runs, and yields its results.
func (l *lowering) onHost(n *graph.Node, in []place) []place {
	h := &HostStep{Node: *n}
	s := Step{Kernel: -1, Host: h}
	for k := range in {
		p := &in[k]
		x := HostIn{Spec: p.spec, Buf: -1, Param: -1}
		switch {
		case p.tensor():
			x.Buf, x.Layout = p.buf, p.layout
			s.Access = append(s.Access, reached(p.buf, p.spec, p.layout, false))
		case p.constant():
			x.Data = p.value.AppendBytes(nil, p.spec.Type)
		default:
			x.Param = p.param
		}
		h.In = append(h.In, x)
	}
	var results []place
	for _, spec := range append([]graph.Spec{n.Spec}, n.More...) {
		r := l.result(spec)
		results = append(results, r)
		h.Out = append(h.Out, r.buf)
		s.Access = append(s.Access, reached(r.buf, r.spec, r.layout, true))
	}
	l.p.Steps = append(l.p.Steps, s)
	return results
}

// reached is the access of a whole tensor.
func reached(buf int, s graph.Spec, layout graph.Layout, write bool) Access {
	lo, hi := graph.Reach(s.Shape, layout)
	size := s.Type.Size()
	return Access{Buf: buf, Lo: uint64(lo * size), Hi: uint64(hi * size), Write: write}
}

// result is what result i is.
func (h *HostStep) result(i int) graph.Spec {
	if i == 0 {
		return h.Node.Spec
	}
	return h.Node.More[i-1]
}

// Tensors are h's operands: buf yields the bytes of a buffer, value those of a by-value parameter.
func (h *HostStep) Tensors(buf func(i int) []byte, value func(param int) []byte) []host.Tensor {
	xs := make([]host.Tensor, len(h.In))
	for i := range h.In {
		in := &h.In[i]
		x := host.Tensor{Spec: in.Spec, Layout: in.Layout}
		switch {
		case in.Buf >= 0:
			x.Data = buf(in.Buf)
		case in.Param >= 0:
			x.Data, x.Layout = value(in.Param), graph.Layout{Strides: make([]int, len(in.Shape))}
		default:
			x.Data, x.Layout = in.Data, graph.Layout{Strides: make([]int, len(in.Shape))}
		}
		xs[i] = x
	}
	return xs
}

// HostOps are the operations of p that the processor runs, in order.
func (p *Program) HostOps() []graph.Op {
	var ops []graph.Op
	for i := range p.Steps {
		if h := p.Steps[i].Host; h != nil {
			ops = append(ops, h.Node.Op)
		}
	}
	return ops
}
