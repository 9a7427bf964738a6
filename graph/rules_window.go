package graph

import "fmt"

// windowed is the shape that a window walks over: for each axis how many positions it takes.
func windowed(s Shape, at *Attrs, dilation []int) (Shape, error) {
	if len(at.Window) != len(s) || len(at.Strides) != len(s) || len(at.Pad) != len(s) || len(dilation) != len(s) {
		return nil, fmt.Errorf("wants a window, a stride, a padding and a dilation for each of %d axes, got %d, %d, %d and %d",
			len(s), len(at.Window), len(at.Strides), len(at.Pad), len(dilation))
	}
	out := make(Shape, len(s))
	for i, d := range s {
		n, err := positions(d, 1, at.Window[i], dilation[i], at.Strides[i], at.Pad[i])
		if err != nil {
			return nil, fmt.Errorf("axis %d: %w", i, err)
		}
		out[i] = n
	}
	return out, nil
}

// positions counts where a window of the given extent and dilation fits into an axis of d elements, which
// spread steps apart and are padded.
func positions(d, spread, window, dilation, stride int, pad PadDim) (int, error) {
	switch {
	case window < 1 || dilation < 1 || stride < 1 || spread < 1:
		return 0, fmt.Errorf("window %d, dilations %d and %d and stride %d are at least 1", window, dilation, spread, stride)
	case pad.Interior != 0:
		return 0, fmt.Errorf("interior padding %d", pad.Interior)
	case max(window, dilation, stride, spread, pad.Lo, pad.Hi, -pad.Lo, -pad.Hi) > MaxElements:
		return 0, fmt.Errorf("window, dilation, stride or padding is above %d", MaxElements)
	case d > 1 && spread > MaxElements/(d-1) || window > 1 && dilation > MaxElements/(window-1):
		return 0, fmt.Errorf("dilated extents are above %d", MaxElements)
	}
	padded := (d-1)*spread + 1 + pad.Lo + pad.Hi
	reach := (window-1)*dilation + 1
	if padded < reach {
		return 0, fmt.Errorf("a window that reaches over %d does not fit into %d", reach, padded)
	}
	return (padded-reach)/stride + 1, nil
}

func checkWindow(n *Node, in []Spec) error {
	want, err := windowed(in[0].Shape, &n.Attrs, n.Attrs.Dilation)
	if err != nil {
		return err
	}
	return wantShape(n, want)
}

// checkFun wants a function of an element and an accumulator, both scalars of the given types.
func checkFun(f *Graph, element, acc Type) error {
	if f == nil {
		return fmt.Errorf("has no function")
	}
	if len(f.Params) != 2 || len(f.Outs) != 1 {
		return fmt.Errorf("the function takes 2 values and yields 1, got %d and %d", len(f.Params), len(f.Outs))
	}
	if err := Verify(f); err != nil {
		return fmt.Errorf("the function: %w", err)
	}
	for i, want := range []Type{element, acc} {
		if p := f.Params[i]; len(p.Shape) != 0 || p.Type != want || p.ByValue {
			return fmt.Errorf("parameter %d of the function is %v{}, got %v", i, want, p.Spec)
		}
	}
	for i := range f.Nodes {
		if f.Nodes[i].Attrs.Fun != nil {
			return fmt.Errorf("the function has a function of its own, in %s", f.Nodes[i].Op)
		}
		if len(f.Nodes[i].Shape) != 0 {
			return fmt.Errorf("the function computes %s of shape %v, wants scalars", f.Nodes[i].Op, f.Nodes[i].Shape)
		}
	}
	if out := f.SpecOf(f.Outs[0]); len(out.Shape) != 0 || out.Type != acc {
		return fmt.Errorf("the function yields %v{}, got %v", acc, out)
	}
	return nil
}

// The function's element and accumulator both have the result's type: operands are cast before.
func checkReduceFun(n *Node, in []Spec) error {
	if len(in[1].Shape) != 0 {
		return fmt.Errorf("the accumulator is a scalar, got shape %v", in[1].Shape)
	}
	if err := checkReduce(n, in); err != nil {
		return err
	}
	return checkFun(n.Attrs.Fun, n.Type, n.Type)
}

func checkWindowReduce(n *Node, in []Spec) error {
	if len(in[1].Shape) != 0 {
		return fmt.Errorf("the accumulator is a scalar, got shape %v", in[1].Shape)
	}
	if err := checkWindow(n, in); err != nil {
		return err
	}
	return checkFun(n.Attrs.Fun, n.Type, n.Type)
}

func checkWindowScatter(n *Node, in []Spec) error {
	s := in[0].Shape
	ones := make([]int, len(s))
	for i := range ones {
		ones[i] = 1
	}
	want, err := windowed(s, &n.Attrs, ones)
	if err != nil {
		return err
	}
	if !in[1].Shape.Equal(want) {
		return fmt.Errorf("the source has shape %v, got %v", want, in[1].Shape)
	}
	if len(in[2].Shape) != 0 {
		return fmt.Errorf("the initial value is a scalar, got shape %v", in[2].Shape)
	}
	return wantShape(n, s)
}

// permuted is s with its axes in the order of perm.
func permuted(s Shape, perm []int) (Shape, error) {
	if len(perm) != len(s) {
		return nil, fmt.Errorf("permutation %v for rank %d", perm, len(s))
	}
	seen := make([]bool, len(s))
	out := make(Shape, len(s))
	for i, a := range perm {
		if a < 0 || a >= len(s) || seen[a] {
			return nil, fmt.Errorf("%v is no permutation of %d axes", perm, len(s))
		}
		seen[a] = true
		out[i] = s[a]
	}
	return out, nil
}

func checkConv(n *Node, in []Spec) error {
	at, c := &n.Attrs, n.Attrs.Conv
	if c == nil {
		return fmt.Errorf("has no dimensions")
	}
	rank := len(in[0].Shape)
	if rank < 2 || len(in[1].Shape) != rank {
		return fmt.Errorf("input and kernel are of one rank, at least 2, got %v and %v", in[0].Shape, in[1].Shape)
	}
	x, err := permuted(in[0].Shape, c.InputPerm)
	if err != nil {
		return fmt.Errorf("input: %w", err)
	}
	k, err := permuted(in[1].Shape, c.KernelPerm)
	if err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	spatial := rank - 2
	if len(at.Strides) != spatial || len(at.Pad) != spatial || len(c.InputDilation) != spatial || len(c.KernelDilation) != spatial {
		return fmt.Errorf("wants a stride, a padding and dilations for each of %d spatial axes, got %d, %d, %d and %d",
			spatial, len(at.Strides), len(at.Pad), len(c.InputDilation), len(c.KernelDilation))
	}
	if fg, bg := c.FeatureGroups, c.BatchGroups; fg < 1 || bg < 1 || fg > 1 && bg > 1 ||
		x[1] != k[1]*fg || k[0]%fg != 0 || x[0]%bg != 0 || k[0]%bg != 0 {
		return fmt.Errorf("%d feature groups and %d batch groups do not divide input %v and kernel %v", fg, bg, x, k)
	}
	out := make(Shape, rank)
	out[0], out[1] = x[0]/c.BatchGroups, k[0]
	for i := range spatial {
		if out[2+i], err = positions(x[2+i], c.InputDilation[i], k[2+i], c.KernelDilation[i], at.Strides[i], at.Pad[i]); err != nil {
			return fmt.Errorf("spatial axis %d: %w", i, err)
		}
	}
	if len(n.Shape) != rank {
		return fmt.Errorf("yields rank %d, got shape %v", rank, n.Shape)
	}
	got, err := permuted(n.Shape, c.OutputPerm)
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	if !got.Equal(out) {
		return fmt.Errorf("yields batch, channels and spatial axes %v, got %v", out, got)
	}
	if n.Type.Int() {
		return fmt.Errorf("yields floats, got type %v", n.Type)
	}
	return nil
}
