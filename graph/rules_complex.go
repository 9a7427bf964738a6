package graph

import "fmt"

func checkComplex(n *Node, in []Spec) error {
	if !n.Type.Complex() {
		return fmt.Errorf("cannot yield type %v", n.Type)
	}
	for i, s := range in {
		if s.Type.Complex() {
			return fmt.Errorf("operand %d is a part, got type %v", i, s.Type)
		}
	}
	return checkBroadcasting(n, in)
}

func checkParts(n *Node, in []Spec) error {
	if !in[0].Type.Complex() {
		return fmt.Errorf("only complex types have parts, got %v", in[0].Type)
	}
	if err := wantType(n, in[0].Type.Part()); err != nil {
		return err
	}
	return wantShape(n, joined(in[0].Shape, Shape{2}))
}

func checkFromParts(n *Node, in []Spec) error {
	if !n.Type.Complex() {
		return fmt.Errorf("cannot yield type %v", n.Type)
	}
	if in[0].Type != n.Type.Part() {
		return fmt.Errorf("the parts of %v are %v, got %v", n.Type, n.Type.Part(), in[0].Type)
	}
	last := len(in[0].Shape) - 1
	if last < 0 || in[0].Shape[last] != 2 {
		return fmt.Errorf("the last axis holds 2 parts, got shape %v", in[0].Shape)
	}
	return wantShape(n, in[0].Shape[:last])
}
