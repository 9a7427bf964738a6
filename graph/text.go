package graph

import (
	"encoding/binary"
	"fmt"
	"math"
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
		fmt.Fprintf(&b, "%s : %v", n.attrText(), n.Spec)
		for _, s := range n.More {
			fmt.Fprintf(&b, ", %v", s)
		}
		b.WriteByte('\n')
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
	if at.Upper != 0 {
		put(AttrValue, "value=%#x,%#x", at.Value, at.Upper)
	} else {
		put(AttrValue, "value=%#x", at.Value)
	}
	put(AttrIndex, "index=%d", at.Index)
	if at.Desc {
		put(AttrDesc, "descending")
	}
	if at.Reverse {
		put(AttrReverse, "reverse")
	}
	put(AttrWindow, "window=%v strides=%v pad=%v", at.Window, at.Strides, at.Pad)
	put(AttrDilation, "dilation=%v", at.Dilation)
	if c := at.Conv; c != nil {
		put(AttrConv, "strides=%v pad=%v dilation=%v,%v groups=%d,%d perm=%v,%v,%v", at.Strides, at.Pad,
			c.InputDilation, c.KernelDilation, c.FeatureGroups, c.BatchGroups, c.InputPerm, c.KernelPerm, c.OutputPerm)
	}
	put(AttrLength, "length=%d", at.Length)
	put(AttrExtents, "lengths=%v", at.Lengths)
	put(AttrEps, "eps=%g", at.Eps)
	put(AttrTol, "rtol=%g atol=%g equal_nan=%t", at.RTol, at.ATol, at.EqualNaN)
	put(AttrSolve, "upper=%t right=%t transform=%d", at.Solve.Upper, at.Solve.Right, at.Solve.Transform)
	if at.Full {
		put(AttrFull, "full")
	}
	put(AttrIter, "max_iter=%d", at.MaxIter)
	if at.Fun != nil {
		put(AttrFun, "fun={\n%v}", at.Fun)
	}
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
	flags := uint16(at.Acc) << 8
	for i, on := range [...]bool{at.Keep, at.High, at.Desc, at.Reverse, at.EqualNaN, at.Solve.Upper, at.Solve.Right, at.Full} {
		if on {
			flags |= 1 << i
		}
	}
	dst = append(dst, byte(n.Type), byte(flags), byte(flags>>8), byte(at.Solve.Transform))
	dst = appendList(dst, n.Shape)
	dst = appendInts(dst, len(n.More))
	for _, s := range n.More {
		dst = appendList(append(dst, byte(s.Type)), s.Shape)
	}
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
	if set&AttrExtents != 0 {
		dst = appendList(dst, at.Lengths)
	}
	if set&(AttrWindow|AttrConv) != 0 {
		dst = appendList(dst, at.Strides)
	}
	if set&AttrWindow != 0 {
		dst = appendList(dst, at.Window)
	}
	if set&AttrDilation != 0 {
		dst = appendList(dst, at.Dilation)
	}
	if set&(AttrPad|AttrWindow|AttrConv) != 0 {
		dst = appendInts(dst, len(at.Pad))
		for _, p := range at.Pad {
			dst = appendInts(dst, p.Lo, p.Hi, p.Interior)
		}
	}
	if set&AttrDot != 0 {
		dst = appendList(appendList(dst, at.ContractA), at.ContractB)
		dst = appendList(appendList(dst, at.BatchA), at.BatchB)
	}
	if c := at.Conv; set&AttrConv != 0 && c != nil {
		dst = appendList(appendList(dst, c.InputDilation), c.KernelDilation)
		dst = appendInts(dst, c.FeatureGroups, c.BatchGroups)
		dst = appendList(appendList(appendList(dst, c.InputPerm), c.KernelPerm), c.OutputPerm)
	}
	if set&(AttrIndex|AttrLength|AttrIter) != 0 {
		dst = appendInts(dst, at.Index, at.Length, at.MaxIter)
	}
	if set&(AttrEps|AttrTol) != 0 {
		for _, f := range [...]float64{at.Eps, at.RTol, at.ATol} {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
		}
	}
	if set&AttrFun != 0 && at.Fun != nil {
		dst = AppendKey(dst, at.Fun)
	}
	if set&AttrValue != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, at.Value)
		dst = binary.LittleEndian.AppendUint64(dst, at.Upper)
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
