package lower

import (
	"nxvk/graph"
	"nxvk/kernel"
)

// Complex tensors. What only moves elements, or works on each part alone, works on the parts: a tensor of
// complex numbers is one of real numbers with a last axis of extent 2. What mixes parts is an elementwise
// kernel, or is written with those.

// complexExpanders are the expanders of nodes that have a complex operand or result. They come before the
// others.
var complexExpanders map[graph.Op]expander

func init() {
	complexExpanders = map[graph.Op]expander{
		graph.OpIota: expandReal, graph.OpEye: expandReal, graph.OpAsType: expandComplexAsType,
		graph.OpPad: expandComplexPad, graph.OpSlice: expandMoved(1), graph.OpPutSlice: expandMoved(2),
		graph.OpConcat: expandMoved(-1), graph.OpStack: expandMoved(-1),
		graph.OpGather: expandMoved(1), graph.OpTake: expandMoved(1), graph.OpTakeAlongAxis: expandMoved(1),
		graph.OpIndexedPut: expandIndexed, graph.OpIndexedAdd: expandIndexed,
		graph.OpSum: expandByParts, graph.OpCumulativeSum: expandByParts, graph.OpWindowSum: expandByParts,
		graph.OpProduct: expandComplexProduct, graph.OpWindowProduct: expandComplexWindowProduct,
		graph.OpAll: expandComplexTruth, graph.OpAny: expandComplexTruth,
		graph.OpDot: expandComplexDot, graph.OpConv: expandComplexConv,
		"add": expandPartwise, "subtract": expandPartwise, "negate": expandPartwise,
	}
}

// touchesComplex reports whether a node has a complex operand or result.
func touchesComplex(g *graph.Graph, n *graph.Node, in []graph.Ref) bool {
	if n.Type.Complex() {
		return true
	}
	for _, r := range in {
		if g.SpecOf(r).Type.Complex() {
			return true
		}
	}
	return false
}

// expanderOf is the expander of a node with operands in of g, or nil.
func expanderOf(g *graph.Graph, n *graph.Node, in []graph.Ref) expander {
	if e := complexExpanders[n.Op]; e != nil && touchesComplex(g, n, in) {
		return e
	}
	return expanders[n.Op]
}

// partSpec is a complex spec as one of parts.
func partSpec(s graph.Spec) graph.Spec {
	return graph.Spec{Type: s.Type.Part(), Shape: append(append(graph.Shape{}, s.Shape...), 2)}
}

// parts is a complex tensor as one of parts: a view.
func (x *expansion) parts(r graph.Ref) (graph.Ref, error) {
	return x.add(graph.OpParts, partSpec(x.g.SpecOf(r)), graph.Attrs{}, r)
}

// fromParts is the complex tensor of spec whose parts are r.
func (x *expansion) fromParts(s graph.Spec, r graph.Ref, err error) ([]graph.Ref, error) {
	if err != nil {
		return nil, err
	}
	z, err := x.add(graph.OpFromParts, s, graph.Attrs{}, r)
	return []graph.Ref{z}, err
}

// part is the real (0) or the imaginary (1) part of a tensor: a view of a complex one.
func (x *expansion) part(which int, r graph.Ref) (graph.Ref, error) {
	s := x.g.SpecOf(r)
	op := [...]graph.Op{"real", "imag"}[which]
	return x.add(op, graph.Spec{Type: s.Type.Part(), Shape: s.Shape}, graph.Attrs{}, r)
}

// complex is the tensor of spec with the given parts.
func (x *expansion) complex(s graph.Spec, re, im graph.Ref) ([]graph.Ref, error) {
	z, err := x.add(graph.OpComplex, s, graph.Attrs{}, re, im)
	return []graph.Ref{z}, err
}

// cast is r converted to type t.
func (x *expansion) cast(t graph.Type, r graph.Ref) (graph.Ref, error) {
	s := x.g.SpecOf(r)
	if s.Type == t {
		return r, nil
	}
	return x.add(graph.OpAsType, graph.Spec{Type: t, Shape: s.Shape}, graph.Attrs{}, r)
}

// castAll is the first k references, or all for -1, converted to type t, and the others as they are.
func (x *expansion) castAll(t graph.Type, rs []graph.Ref, k int) ([]graph.Ref, error) {
	out := append([]graph.Ref(nil), rs...)
	if k < 0 {
		k = len(rs)
	}
	for i := range out[:k] {
		var err error
		if out[i], err = x.cast(t, out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// number reports whether every element of r is the same host scalar or constant: it has no parts in memory.
func (x *expansion) number(r graph.Ref) bool {
	if int(r) < len(x.g.Params) {
		return x.g.Params[r].ByValue
	}
	return x.g.Nodes[int(r)-len(x.g.Params)].Op == graph.OpConstant
}

// expandReal makes a real tensor first.
func expandReal(x *expansion, n *graph.Node, _ []graph.Ref) ([]graph.Ref, error) {
	r, err := x.add(n.Op, graph.Spec{Type: n.Type.Part(), Shape: n.Shape}, n.Attrs)
	if err != nil {
		return nil, err
	}
	z, err := x.cast(n.Type, r)
	return []graph.Ref{z}, err
}

func expandComplexAsType(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error) {
	from := x.g.SpecOf(in[0])
	switch {
	case !from.Type.Complex() || from.Type == n.Type || x.number(in[0]):
		return nil, nil // a kernel of its own, or none
	case !n.Type.Complex():
		re, err := x.part(0, in[0])
		if err != nil {
			return nil, err
		}
		r, err := x.cast(n.Type, re)
		return []graph.Ref{r}, err
	}
	p, err := x.parts(in[0])
	if err != nil {
		return nil, err
	}
	r, err := x.cast(n.Type.Part(), p)
	return x.fromParts(n.Spec, r, err)
}

// movedByParts are the operations that move elements, which a device can without computing with them.
var movedByParts = map[graph.Op]bool{
	graph.OpPad: true, graph.OpSlice: true, graph.OpPutSlice: true, graph.OpConcat: true, graph.OpStack: true,
	graph.OpGather: true, graph.OpTake: true, graph.OpTakeAlongAxis: true, graph.OpIndexedPut: true,
}

// moves says whether the device moves elements of t as they are: as one word.
func (x *expansion) moves(t graph.Type) bool { return movesWhole(x.t, t) }

func movesWhole(d kernel.Target, t graph.Type) bool { return t == graph.C64 && d.I64 }

// expandMoved is the expander of what moves elements of the first k operands (-1: of all) along any axes.
func expandMoved(k int) expander {
	return func(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error) {
		in, err := x.castAll(n.Type, in, k)
		if err != nil {
			return nil, err
		}
		if !n.Type.Complex() || x.moves(n.Type) {
			return []graph.Ref{x.append(n, in)}, nil
		}
		return x.byParts(n, in, k)
	}
}

// byParts applies n to the parts of the first k operands (-1: of all).
func (x *expansion) byParts(n *graph.Node, in []graph.Ref, k int) ([]graph.Ref, error) {
	if k < 0 {
		k = len(in)
	}
	in = append([]graph.Ref(nil), in...)
	for i := range in[:k] {
		var err error
		if in[i], err = x.parts(in[i]); err != nil {
			return nil, err
		}
	}
	at := n.Attrs
	last := len(n.Shape) // the axis of the parts
	switch n.Op {
	case graph.OpSlice:
		at.Lengths, at.Strides = extend(at.Lengths, 2), extend(at.Strides, 1)
	case graph.OpPad:
		at.Pad = append(append([]graph.PadDim{}, at.Pad...), graph.PadDim{})
	case graph.OpWindowSum:
		at.Window, at.Strides, at.Dilation = extend(at.Window, 1), extend(at.Strides, 1), extend(at.Dilation, 1)
		at.Pad = append(append([]graph.PadDim{}, at.Pad...), graph.PadDim{})
	case graph.OpTakeAlongAxis:
		// Both parts of an element are taken from one place.
		s := x.g.SpecOf(in[1])
		axes := make([]int, last)
		for i := range axes {
			axes[i] = i
		}
		wide := graph.Spec{Type: s.Type, Shape: append(append(graph.Shape{}, s.Shape...), 2)}
		var err error
		if in[1], err = x.add(graph.OpBroadcast, wide, graph.Attrs{Axes: axes}, in[1]); err != nil {
			return nil, err
		}
	}
	if n.Op == graph.OpSlice || n.Op == graph.OpPutSlice {
		zero, err := x.constant(graph.Spec{Type: graph.S32, Shape: graph.Shape{}}, 0)
		if err != nil {
			return nil, err
		}
		in = append(in, zero)
	}
	r, err := x.add(n.Op, partSpec(n.Spec), at, in...)
	return x.fromParts(n.Spec, r, err)
}

func extend(s []int, v int) []int { return append(append([]int{}, s...), v) }

// expandByParts is the expander of sums, whose operand is converted first.
func expandByParts(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error) {
	in, err := x.castAll(n.Type, in, 1)
	if err != nil || !n.Type.Complex() {
		return nil, err
	}
	return x.byParts(n, in, 1)
}

// expandIndexed is the expander of indexed_add and indexed_put: the tensor and the updates have parts.
func expandIndexed(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error) {
	if !n.Type.Complex() {
		return nil, nil
	}
	in = append([]graph.Ref(nil), in...)
	for _, i := range []int{0, 2} {
		var err error
		if in[i], err = x.cast(n.Type, in[i]); err != nil {
			return nil, err
		}
		if n.Op == graph.OpIndexedPut && x.moves(n.Type) {
			continue
		}
		if in[i], err = x.parts(in[i]); err != nil {
			return nil, err
		}
	}
	if n.Op == graph.OpIndexedPut && x.moves(n.Type) {
		return []graph.Ref{x.append(n, in)}, nil
	}
	r, err := x.add(n.Op, partSpec(n.Spec), n.Attrs, in...)
	return x.fromParts(n.Spec, r, err)
}

// expandComplexPad pads both parts alike with a constant whose parts are equal (0, as a rule), else each alone.
func expandComplexPad(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error) {
	in, err := x.castAll(n.Type, in, 2)
	if err != nil {
		return nil, err
	}
	if !n.Type.Complex() || x.moves(n.Type) {
		return []graph.Ref{x.append(n, in)}, nil
	}
	if int(in[1]) >= len(x.g.Params) {
		c := &x.g.Nodes[int(in[1])-len(x.g.Params)]
		if re, im := c.Attrs.Number().Parts(n.Type); c.Op == graph.OpConstant && re == im {
			value, err := x.constant(graph.Spec{Type: n.Type.Part(), Shape: graph.Shape{}}, re)
			if err != nil {
				return nil, err
			}
			return x.byParts(n, []graph.Ref{in[0], value}, 1)
		}
	}
	return x.byPlanes(n.Spec, func(which int) (graph.Ref, error) {
		p, err := x.part(which, in[0])
		if err != nil {
			return 0, err
		}
		v, err := x.part(which, in[1])
		if err != nil {
			return 0, err
		}
		return x.add(n.Op, graph.Spec{Type: n.Type.Part(), Shape: n.Shape}, n.Attrs, p, v)
	})
}

// byPlanes makes a complex tensor of the parts that plane yields.
func (x *expansion) byPlanes(s graph.Spec, plane func(which int) (graph.Ref, error)) ([]graph.Ref, error) {
	re, err := plane(0)
	if err != nil {
		return nil, err
	}
	im, err := plane(1)
	if err != nil {
		return nil, err
	}
	return x.complex(s, re, im)
}

// expandPartwise is the expander of elementwise operations that mix no parts, over tensors of one type.
func expandPartwise(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error) {
	for _, r := range in {
		if x.g.SpecOf(r).Type != n.Type || x.number(r) {
			return nil, nil
		}
	}
	return x.byParts(n, in, -1)
}

// complexKernels are the ops whose generators take complex tensors: what moves elements as they are, and what
// has kernels of its own.
var complexKernels = func() map[graph.Op]bool {
	m := map[graph.Op]bool{
		graph.OpReshape: true, graph.OpAsType: true, graph.OpBroadcast: true, graph.OpFromParts: true,
		graph.OpSelect: true, graph.OpComplex: true, graph.OpCumulativeProduct: true,
		graph.OpFFT: true, graph.OpIFFT: true, graph.OpRFFT: true, graph.OpIRFFT: true,
	}
	for _, ops := range [][]graph.Op{graph.Unary, graph.Binary} {
		for _, op := range ops {
			m[op] = true // shaders refuse those that are not defined
		}
	}
	return m
}()
