package lower

import "nxvk/graph"

// Contractions of complex tensors are real ones of twice the size. A complex number c acts on the parts of another,
// a column, as the matrix
//
//	re c  -im c
//	im c   re c
//
// so one operand becomes such matrices, the other and the result are seen as parts. Products and their order are those of
// the real contraction: each part of the result keeps its promise.

// expandComplexDot writes a dot as a real one. Of two complex operands the smaller becomes matrices; of one, its parts
// are a free axis.
func expandComplexDot(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error) {
	if !n.Type.Complex() {
		return nil, nil
	}
	at := n.Attrs
	other, parted := side{in[0], at.ContractA, at.BatchA}, side{in[1], at.ContractB, at.BatchB}
	so, sp := x.g.SpecOf(other.ref), x.g.SpecOf(parted.ref)
	both := so.Type.Complex() && sp.Type.Complex()
	swapped := so.Type.Complex() && (!both || so.Shape.Size() < sp.Shape.Size())
	if swapped {
		other, parted, so, sp = parted, other, sp, so
	}
	var err error
	if both {
		if parted.ref, err = x.acting(parted.ref, n.Type); err != nil {
			return nil, err
		}
		if other.ref, err = x.castParts(other.ref, n.Type); err != nil {
			return nil, err
		}
		parted.contract = extend(parted.contract, len(sp.Shape))
		other.contract = extend(other.contract, len(so.Shape))
	} else {
		if parted.ref, err = x.castParts(parted.ref, n.Type); err != nil {
			return nil, err
		}
		if other.ref, err = x.cast(n.Type.Part(), other.ref); err != nil {
			return nil, err
		}
	}
	return x.contractParts(n, other, parted, swapped)
}

// castParts is r, converted to complex type t, as parts.
func (x *expansion) castParts(r graph.Ref, t graph.Type) (graph.Ref, error) {
	r, err := x.cast(t, r)
	if err != nil {
		return 0, err
	}
	return x.parts(r)
}

// side is an operand of a dot.
type side struct {
	ref             graph.Ref
	contract, batch []int
}

// free lists the axes of s that are neither contracted nor batched.
func (s *side) free(shape graph.Shape) []int {
	used := make([]bool, len(shape))
	for _, axes := range [][]int{s.contract, s.batch} {
		for _, a := range axes {
			used[a] = true
		}
	}
	var out []int
	for a := range shape {
		if !used[a] {
			out = append(out, a)
		}
	}
	return out
}

// contractParts contracts a and b, of which b has the parts of the result as a free last axis, and puts the free axes of
// the two in the order of n: swapped says that b is n's first operand.
func (x *expansion) contractParts(n *graph.Node, a, b side, swapped bool) ([]graph.Ref, error) {
	as, bs := x.g.SpecOf(a.ref), x.g.SpecOf(b.ref)
	freeA, freeB := a.free(as.Shape), b.free(bs.Shape)
	shape := graph.Shape{}
	for _, i := range a.batch {
		shape = append(shape, as.Shape[i])
	}
	for _, i := range freeA {
		shape = append(shape, as.Shape[i])
	}
	for _, i := range freeB {
		shape = append(shape, bs.Shape[i])
	}
	at := graph.Attrs{ContractA: a.contract, BatchA: a.batch, ContractB: b.contract, BatchB: b.batch, Acc: n.Attrs.Acc}
	r, err := x.add(graph.OpDot, graph.Spec{Type: n.Type.Part(), Shape: shape}, at, a.ref, b.ref)
	if err != nil || !swapped {
		return x.fromParts(n.Spec, r, err)
	}
	z, err := x.fromParts(graph.Spec{Type: n.Type, Shape: shape[:len(shape)-1]}, r, nil)
	if err != nil {
		return nil, err
	}
	var axes []int
	nb, na := len(a.batch), len(freeA)
	for i := range nb {
		axes = append(axes, i)
	}
	for i := range len(freeB) - 1 {
		axes = append(axes, nb+na+i)
	}
	for i := range na {
		axes = append(axes, nb+i)
	}
	t, err := x.add(graph.OpTranspose, n.Spec, graph.Attrs{Axes: axes}, z[0])
	return []graph.Ref{t}, err
}

// acting is r, converted to complex type t, as matrices that act on parts. Two last axes are added: that of the parts which
// are acted on, then that of the parts which come out.
func (x *expansion) acting(r graph.Ref, t graph.Type) (graph.Ref, error) {
	r, err := x.cast(t, r)
	if err != nil {
		return 0, err
	}
	s := x.g.SpecOf(r)
	same, err := x.parts(r)
	if err != nil {
		return 0, err
	}
	turned, err := x.add("conjugate", s, graph.Attrs{}, r)
	if err != nil {
		return 0, err
	}
	if turned, err = x.parts(turned); err != nil {
		return 0, err
	}
	// (-im, re): what the imaginary part of the other contributes.
	wide := partSpec(s)
	if turned, err = x.add(graph.OpReverse, wide, graph.Attrs{Axes: []int{len(s.Shape)}}, turned); err != nil {
		return 0, err
	}
	pair := graph.Spec{Type: wide.Type, Shape: append(append(graph.Shape{}, s.Shape...), 2, 2)}
	return x.add(graph.OpStack, pair, graph.Attrs{Axis: len(s.Shape)}, same, turned)
}
