package graph

import "fmt"

// matrices splits a shape into its batch and its last two axes.
func matrices(s Shape) (batch Shape, m, n int, err error) {
	r := len(s)
	if r < 2 {
		return nil, 0, 0, fmt.Errorf("wants matrices, got shape %v", s)
	}
	return s[:r-2], s[r-2], s[r-1], nil
}

func square(s Shape) (batch Shape, n int, err error) {
	batch, m, n, err := matrices(s)
	if err == nil && m != n {
		err = fmt.Errorf("wants square matrices, got shape %v", s)
	}
	return batch, n, err
}

// wantResults holds a node's results against shapes; none of them is of integers.
func wantResults(n *Node, shapes ...Shape) error {
	if len(n.More) != len(shapes)-1 {
		return fmt.Errorf("yields %d results, got %d", len(shapes), 1+len(n.More))
	}
	for i, want := range shapes {
		got := n.Spec
		if i > 0 {
			got = n.More[i-1]
		}
		if got.Type.Int() || !got.Shape.Equal(want) {
			return fmt.Errorf("result %d is of a float type and shape %v, got %v", i, want, got)
		}
	}
	return nil
}

func checkTriangularSolve(n *Node, in []Spec) error {
	batch, d, err := square(in[0].Shape)
	if err != nil {
		return err
	}
	b := in[1].Shape
	axis := len(batch) // of b, the one that is contracted
	if n.Attrs.Solve.Right && len(b) == len(batch)+2 {
		axis++
	}
	if len(b) != len(batch)+1 && len(b) != len(batch)+2 || !b[:len(batch)].Equal(batch) || b[axis] != d {
		return fmt.Errorf("a of shape %v does not fit b of shape %v", in[0].Shape, b)
	}
	return wantResults(n, b)
}

func checkCholesky(n *Node, in []Spec) error {
	if _, _, err := square(in[0].Shape); err != nil {
		return err
	}
	return wantResults(n, in[0].Shape)
}

func checkSolve(n *Node, in []Spec) error {
	batch, d, err := square(in[0].Shape)
	if err != nil {
		return err
	}
	b := in[1].Shape
	if len(b) != len(batch)+1 && len(b) != len(batch)+2 || !b[:len(batch)].Equal(batch) || b[len(batch)] != d {
		return fmt.Errorf("a of shape %v does not fit b of shape %v", in[0].Shape, b)
	}
	return wantResults(n, b)
}

func checkLU(n *Node, in []Spec) error {
	if _, _, err := square(in[0].Shape); err != nil {
		return err
	}
	s := in[0].Shape
	if len(n.More) == 2 && n.Shape.Equal(s) && n.More[0].Shape.Equal(s) && n.More[1].Shape.Equal(s) {
		return nil // P may be of any type
	}
	return fmt.Errorf("yields P, L and U of shape %v, got %v and %v", s, n.Spec, n.More)
}

func checkQR(n *Node, in []Spec) error {
	batch, m, k, err := matrices(in[0].Shape)
	if err != nil {
		return err
	}
	inner := min(m, k)
	if n.Attrs.Full {
		inner = m
	}
	return wantResults(n, joined(batch, Shape{m, inner}), joined(batch, Shape{inner, k}))
}

func checkSVD(n *Node, in []Spec) error {
	batch, m, k, err := matrices(in[0].Shape)
	if err != nil {
		return err
	}
	r := min(m, k)
	rows, cols := r, r
	if n.Attrs.Full {
		rows, cols = m, k
	}
	return wantResults(n, joined(batch, Shape{m, rows}), joined(batch, Shape{r}), joined(batch, Shape{cols, k}))
}

func checkEigh(n *Node, in []Spec) error {
	batch, d, err := square(in[0].Shape)
	if err != nil {
		return err
	}
	return wantResults(n, joined(batch, Shape{d}), in[0].Shape)
}

func checkDeterminant(n *Node, in []Spec) error {
	batch, _, err := square(in[0].Shape)
	if err != nil {
		return err
	}
	return wantShape(n, batch)
}

func checkFFT(n *Node, in []Spec) error {
	s, at := in[0].Shape, &n.Attrs
	if err := axisOf(n, len(s)); err != nil {
		return err
	}
	if at.Length < 1 || at.Length > MaxElements {
		return fmt.Errorf("length %d of axis %d", at.Length, at.Axis)
	}
	want := joined(s)
	want[at.Axis] = at.Length
	if n.Op == OpRFFT {
		want[at.Axis] = at.Length/2 + 1
	}
	return wantShape(n, want)
}

func checkFFT2(n *Node, in []Spec) error {
	s, at := in[0].Shape, &n.Attrs
	if len(at.Axes) != 2 || len(at.Lengths) != 2 || at.Axes[0] == at.Axes[1] {
		return fmt.Errorf("wants 2 axes and lengths, got %v and %v", at.Axes, at.Lengths)
	}
	want := joined(s)
	for i, a := range at.Axes {
		if a < 0 || a >= len(s) {
			return fmt.Errorf("axis %d is out of range for rank %d", a, len(s))
		}
		if at.Lengths[i] < 1 || at.Lengths[i] > MaxElements {
			return fmt.Errorf("length %d of axis %d", at.Lengths[i], a)
		}
		want[a] = at.Lengths[i]
	}
	return wantShape(n, want)
}

func checkLogicalNot(n *Node, in []Spec) error {
	if err := wantType(n, U8); err != nil {
		return err
	}
	return wantShape(n, in[0].Shape)
}

func checkPhase(n *Node, in []Spec) error {
	if !n.Type.Float() {
		return fmt.Errorf("cannot yield type %v", n.Type)
	}
	return wantShape(n, in[0].Shape)
}

func checkAllClose(n *Node, in []Spec) error {
	if err := wantType(n, U8); err != nil {
		return err
	}
	if _, ok := Broadcast(in[0].Shape, in[1].Shape); !ok {
		return fmt.Errorf("shapes %v and %v do not broadcast", in[0].Shape, in[1].Shape)
	}
	return wantShape(n, Shape{})
}
