package graph

import "fmt"

// indexed wants the index tensor of gather and its kin: integers, whose last axis holds one index for
// each of axes. It yields the index's leading shape and x's shape without those axes.
func indexed(x, idx Spec, axes []int) (lead, rest Shape, err error) {
	if !idx.Type.Int() {
		return nil, nil, fmt.Errorf("indices are integers, got type %v", idx.Type)
	}
	if err := ascending(axes, len(x.Shape)); err != nil {
		return nil, nil, err
	}
	n := len(idx.Shape)
	if n == 0 || idx.Shape[n-1] != len(axes) {
		return nil, nil, fmt.Errorf("indices of shape %v do not hold %d numbers for axes %v", idx.Shape, len(axes), axes)
	}
	return idx.Shape[:n-1], dropAxes(x.Shape, axes), nil
}

func checkGather(n *Node, in []Spec) error {
	lead, rest, err := indexed(in[0], in[1], n.Attrs.Axes)
	if err != nil {
		return err
	}
	return same(n, in[0], joined(lead, rest))
}

func joined(parts ...Shape) Shape {
	var out Shape
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func checkIndexed(n *Node, in []Spec) error {
	lead, rest, err := indexed(in[0], in[1], n.Attrs.Axes)
	if err != nil {
		return err
	}
	if want := joined(lead, rest); !in[2].Shape.Equal(want) {
		return fmt.Errorf("updates have shape %v, got %v", want, in[2].Shape)
	}
	return wantShape(n, in[0].Shape)
}

func axisOf(n *Node, rank int) error {
	if a := n.Attrs.Axis; a < 0 || a >= rank {
		return fmt.Errorf("axis %d is out of range for rank %d", a, rank)
	}
	return nil
}

func checkTake(n *Node, in []Spec) error {
	s, a := in[0].Shape, n.Attrs.Axis
	if err := axisOf(n, len(s)); err != nil {
		return err
	}
	if !in[1].Type.Int() {
		return fmt.Errorf("indices are integers, got type %v", in[1].Type)
	}
	return same(n, in[0], joined(s[:a], in[1].Shape, s[a+1:]))
}

func checkTakeAlong(n *Node, in []Spec) error {
	s, i := in[0].Shape, in[1].Shape
	if err := axisOf(n, len(s)); err != nil {
		return err
	}
	if !in[1].Type.Int() {
		return fmt.Errorf("indices are integers, got type %v", in[1].Type)
	}
	if len(i) != len(s) {
		return fmt.Errorf("indices of rank %d for rank %d", len(i), len(s))
	}
	for a := range s {
		if a != n.Attrs.Axis && i[a] != s[a] {
			return fmt.Errorf("indices of shape %v do not match %v outside axis %d", i, s, n.Attrs.Axis)
		}
	}
	return same(n, in[0], i)
}

func checkSort(n *Node, in []Spec) error {
	if err := axisOf(n, len(in[0].Shape)); err != nil {
		return err
	}
	return same(n, in[0], in[0].Shape)
}

func checkArgSort(n *Node, in []Spec) error {
	if err := axisOf(n, len(in[0].Shape)); err != nil {
		return err
	}
	if !n.Type.Int() {
		return fmt.Errorf("yields integers, got type %v", n.Type)
	}
	return wantShape(n, in[0].Shape)
}

func checkTopK(n *Node, in []Spec) error {
	s := in[0].Shape
	if len(s) == 0 || len(n.Shape) != len(s) {
		return fmt.Errorf("takes the last axis of shape %v, got a result of shape %v", s, n.Shape)
	}
	last := len(s) - 1
	k := n.Shape[last]
	if k > s[last] {
		return fmt.Errorf("%d of the %d elements of the last axis", k, s[last])
	}
	want := joined(s[:last], Shape{k})
	if len(n.More) != 1 || !n.More[0].Type.Int() || !n.More[0].Shape.Equal(want) {
		return fmt.Errorf("yields values and integer indices of shape %v, got %v", want, n.More)
	}
	return same(n, in[0], want)
}

func checkCumulative(n *Node, in []Spec) error {
	if err := axisOf(n, len(in[0].Shape)); err != nil {
		return err
	}
	return wantShape(n, in[0].Shape)
}
