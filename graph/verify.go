package graph

import "fmt"

// Error is a refused graph: which operation, and why.
type Error struct {
	Op     Op // "" when the graph as a whole is wrong
	Node   int
	Reason string
}

func (e *Error) Error() string {
	if e.Op == "" {
		return "graph: " + e.Reason
	}
	return string(e.Op) + ": " + e.Reason
}

// CheckShape bounds rank, extents and size, so that no later arithmetic on them overflows.
func CheckShape(s Shape) error {
	if len(s) > MaxRank {
		return fmt.Errorf("rank %d is above %d", len(s), MaxRank)
	}
	n := 1
	for i, d := range s {
		if d < 1 {
			return fmt.Errorf("axis %d has extent %d, wants at least 1", i, d)
		}
		if d > MaxElements/n {
			return fmt.Errorf("shape %v has more than %d elements", s, MaxElements)
		}
		n *= d
	}
	return nil
}

// CheckSpec bounds a shape and wants a known type.
func CheckSpec(s Spec) error {
	if s.Type == Invalid || int(s.Type) >= len(typeTable) {
		return fmt.Errorf("unknown type %d", uint8(s.Type))
	}
	return CheckShape(s.Shape)
}

// CheckLayout wants l to keep every element of s inside a buffer of the given number of elements.
func CheckLayout(s Shape, l Layout, elements int) error {
	if len(l.Strides) != len(s) {
		return fmt.Errorf("%d strides for rank %d", len(l.Strides), len(s))
	}
	lo, hi := Reach(s, l)
	if lo < 0 || hi > elements {
		return fmt.Errorf("elements %d to %d lie outside a buffer of %d", lo, hi-1, elements)
	}
	return nil
}

// Reach is the range [lo, hi) of element offsets that a tensor of shape s in layout l touches.
func Reach(s Shape, l Layout) (lo, hi int) {
	lo, hi = l.Offset, l.Offset+1
	for i, d := range s {
		if st := l.Strides[i]; st < 0 {
			lo += (d - 1) * st
		} else {
			hi += (d - 1) * st
		}
	}
	return lo, hi
}

// VerifyNode checks one node against its operands' specs: arity, attributes, types, shapes.
func VerifyNode(n *Node, in []Spec) error {
	info, ok := rules[n.Op]
	if !ok {
		return &Error{Op: n.Op, Reason: "no such operation"}
	}
	fail := func(err error) error { return &Error{Op: n.Op, Reason: err.Error()} }
	if len(in) < info.Min || info.Max >= 0 && len(in) > info.Max {
		want := fmt.Sprint(info.Min)
		switch {
		case info.Max < 0:
			want = "at least " + want
		case info.Max != info.Min:
			want = fmt.Sprintf("%d to %d", info.Min, info.Max)
		}
		return fail(fmt.Errorf("wants %s operands, got %d", want, len(in)))
	}
	if err := CheckSpec(n.Spec); err != nil {
		return fail(err)
	}
	for i := range in {
		if err := CheckSpec(in[i]); err != nil {
			return fail(fmt.Errorf("operand %d: %w", i, err))
		}
	}
	if len(n.More) > 0 && info.Attrs&AttrMore == 0 {
		return fail(fmt.Errorf("yields one result, got %d", 1+len(n.More)))
	}
	for i := range n.More {
		if err := CheckSpec(n.More[i]); err != nil {
			return fail(fmt.Errorf("result %d: %w", i+1, err))
		}
	}
	if err := info.check(n, in); err != nil {
		return fail(err)
	}
	return nil
}

// verifyElem checks a node that names one result of another.
func verifyElem(g *Graph, n *Node) error {
	at := int(n.In[0]) - len(g.Params)
	if at < 0 {
		return &Error{Op: n.Op, Reason: "names a parameter, which is one value"}
	}
	of := &g.Nodes[at]
	i := n.Attrs.Index
	if i < 0 || i > len(of.More) {
		return &Error{Op: n.Op, Reason: fmt.Sprintf("names result %d of %s, which has %d", i, of.Op, 1+len(of.More))}
	}
	want := of.Spec
	if i > 0 {
		want = of.More[i-1]
	}
	if n.Type != want.Type || !n.Shape.Equal(want.Shape) {
		return &Error{Op: n.Op, Reason: fmt.Sprintf("result %d of %s is %v, got %v", i, of.Op, want, n.Spec)}
	}
	return nil
}

// Verify checks a whole graph: every reference points back, every node obeys its op's rule, every
// layout is of its parameter's rank. What it accepts, lowering accepts, and nothing in it overflows.
func Verify(g *Graph) error {
	if len(g.Params)+len(g.Nodes) > MaxNodes {
		return &Error{Reason: fmt.Sprintf("%d parameters and nodes, at most %d", len(g.Params)+len(g.Nodes), MaxNodes)}
	}
	for i, p := range g.Params {
		if err := CheckSpec(p.Spec); err != nil {
			return &Error{Reason: fmt.Sprintf("parameter %d: %v", i, err)}
		}
		if p.ByValue && len(p.Shape) != 0 {
			return &Error{Reason: fmt.Sprintf("parameter %d travels by value but has shape %v", i, p.Shape)}
		}
		if p.Layout.Strides != nil && len(p.Layout.Strides) != len(p.Shape) {
			return &Error{Reason: fmt.Sprintf("parameter %d: %d strides for rank %d", i, len(p.Layout.Strides), len(p.Shape))}
		}
	}
	var in []Spec
	for i := range g.Nodes {
		n := &g.Nodes[i]
		in = in[:0]
		for _, r := range n.In {
			if r < 0 || int(r) >= len(g.Params)+i {
				return &Error{Op: n.Op, Node: i, Reason: fmt.Sprintf("operand %d does not come before it", r)}
			}
			in = append(in, g.SpecOf(r))
		}
		err := VerifyNode(n, in)
		if err == nil && n.Op == OpElem {
			err = verifyElem(g, n)
		}
		if err != nil {
			err.(*Error).Node = i
			return err
		}
	}
	for i, r := range g.Outs {
		if r < 0 || int(r) >= len(g.Params)+len(g.Nodes) {
			return &Error{Reason: fmt.Sprintf("result %d names value %d, of %d", i, r, len(g.Params)+len(g.Nodes))}
		}
	}
	return nil
}
