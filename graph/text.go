package graph

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// String prints the graph, one value a line:
//
//	p0: f32{2, 3}
//	p1: f32{} by value
//	v2 = add p0 p1 : f32{2, 3}
//	return v2
func (g *Graph) String() string {
	var b strings.Builder
	for i, p := range g.Params {
		fmt.Fprintf(&b, "p%d: %v", i, p.Spec)
		if p.ByValue {
			b.WriteString(" by value")
		}
		if p.Layout.Strides != nil {
			fmt.Fprintf(&b, " strides %v", p.Layout.Strides)
			if p.Layout.Offset != 0 {
				fmt.Fprintf(&b, " from %d", p.Layout.Offset)
			}
		}
		b.WriteByte('\n')
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		fmt.Fprintf(&b, "v%d = %s", len(g.Params)+i, n.Op)
		for _, r := range n.In {
			b.WriteString(" " + g.name(r))
		}
		fmt.Fprintf(&b, "%s : %v\n", n.attrText(), n.Spec)
	}
	b.WriteString("return")
	for _, r := range g.Outs {
		b.WriteString(" " + g.name(r))
	}
	return b.String() + "\n"
}

func (g *Graph) name(r Ref) string {
	if int(r) < len(g.Params) {
		return fmt.Sprintf("p%d", r)
	}
	return fmt.Sprintf("v%d", r)
}

func (n *Node) attrText() string {
	var b strings.Builder
	at, set := &n.Attrs, rules[n.Op].Attrs
	put := func(flag AttrSet, format string, args ...any) {
		if set&flag != 0 {
			fmt.Fprintf(&b, " "+format, args...)
		}
	}
	put(AttrAxes, "axes=%v", at.Axes)
	put(AttrAxis, "axis=%d", at.Axis)
	if at.Keep {
		put(AttrKeep, "keep")
	}
	if at.High {
		put(AttrTie, "high")
	}
	put(AttrLengths, "lengths=%v strides=%v", at.Lengths, at.Strides)
	put(AttrPad, "pad=%v", at.Pad)
	put(AttrDot, "contract=%v,%v batch=%v,%v", at.ContractA, at.ContractB, at.BatchA, at.BatchB)
	if at.Acc != AccCompensated {
		put(AttrAcc, "acc=%v", at.Acc)
	}
	put(AttrValue, "value=%#x", at.Value)
	return b.String()
}

func (a Acc) String() string { return [...]string{"compensated", "f32", "f64"}[a] }

// AppendKey appends the structural key of g: two graphs have equal keys exactly when they are the
// same program, constants included.
func AppendKey(dst []byte, g *Graph) []byte {
	dst = appendInts(dst, len(g.Params), len(g.Nodes), len(g.Outs))
	for i := range g.Params {
		dst = AppendParamKey(dst, &g.Params[i])
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		dst = AppendNodeKey(dst, n)
		dst = appendInts(dst, len(n.In))
		for _, r := range n.In {
			dst = appendInts(dst, int(r))
		}
	}
	for _, r := range g.Outs {
		dst = appendInts(dst, int(r))
	}
	return dst
}

// AppendParamKey appends what of a parameter is part of the program.
func AppendParamKey(dst []byte, p *Param) []byte {
	flags := byte(0)
	if p.ByValue {
		flags |= 1
	}
	if p.Layout.Strides != nil {
		flags |= 2
	}
	dst = append(dst, byte(p.Type), flags)
	dst = appendList(dst, p.Shape)
	if p.Layout.Strides != nil {
		dst = appendList(dst, p.Layout.Strides)
		dst = appendInts(dst, p.Layout.Offset)
	}
	return dst
}

// AppendNodeKey appends op, result and attributes of a node, without its operands.
func AppendNodeKey(dst []byte, n *Node) []byte {
	at := &n.Attrs
	dst = append(dst, byte(len(n.Op)))
	dst = append(dst, n.Op...)
	flags := byte(at.Acc) << 2
	if at.Keep {
		flags |= 1
	}
	if at.High {
		flags |= 2
	}
	dst = append(dst, byte(n.Type), flags)
	dst = appendList(dst, n.Shape)
	set := rules[n.Op].Attrs
	if set&AttrAxes != 0 {
		dst = appendList(dst, at.Axes)
	}
	if set&AttrAxis != 0 {
		dst = appendInts(dst, at.Axis)
	}
	if set&AttrLengths != 0 {
		dst = appendList(appendList(dst, at.Lengths), at.Strides)
	}
	if set&AttrPad != 0 {
		dst = appendInts(dst, len(at.Pad))
		for _, p := range at.Pad {
			dst = appendInts(dst, p.Lo, p.Hi, p.Interior)
		}
	}
	if set&AttrDot != 0 {
		dst = appendList(appendList(dst, at.ContractA), at.ContractB)
		dst = appendList(appendList(dst, at.BatchA), at.BatchB)
	}
	if set&AttrValue != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, at.Value)
	}
	return dst
}

func appendInts(dst []byte, ns ...int) []byte {
	for _, n := range ns {
		dst = binary.AppendVarint(dst, int64(n))
	}
	return dst
}

func appendList[S ~[]int](dst []byte, ns S) []byte {
	dst = binary.AppendVarint(dst, int64(len(ns)))
	for _, n := range ns {
		dst = binary.AppendVarint(dst, int64(n))
	}
	return dst
}
