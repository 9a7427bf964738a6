package graph

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func spec(t Type, dims ...int) Spec { return Spec{t, Shape(dims)} }

// one builds a one-node graph over the given operands.
func one(op Op, out Spec, at Attrs, in ...Spec) *Graph {
	g := &Graph{Nodes: []Node{{Op: op, Spec: out, Attrs: at}}, Outs: []Ref{Ref(len(in))}}
	for i, s := range in {
		g.Params = append(g.Params, Param{Spec: s})
		g.Nodes[0].In = append(g.Nodes[0].In, Ref(i))
	}
	return g
}

func TestVerify(t *testing.T) {
	scalar := spec(S32)
	cases := []struct {
		g    *Graph
		want string // part of the error; "" accepts
	}{
		{one("add", spec(F32, 2, 3), Attrs{}, spec(F32, 2, 3), spec(S8, 3)), ""},
		{one("add", spec(F32, 2, 3), Attrs{}, spec(F32, 2, 3), spec(F32, 2)), "add: operand 1 of shape {2} does not broadcast to {2, 3}"},
		{one("add", spec(F32, 2), Attrs{}, spec(F32, 2)), "add: wants 2 operands, got 1"},
		{one("nope", spec(F32, 2), Attrs{}), "nope: no such operation"},
		{one("exp", spec(S32, 2), Attrs{}, spec(F32, 2)), "exp: cannot yield type s32"},
		{one("bitwise_and", spec(S32, 2), Attrs{}, spec(F32, 2), spec(S32, 2)), "bitwise_and: cannot take operands of type f32"},
		{one("equal", spec(S32, 2), Attrs{}, spec(F32, 2), spec(S32, 2)), "equal: cannot yield type s32"},
		{one("add", spec(F32, 0), Attrs{}, spec(F32, 1), spec(F32, 1)), "axis 0 has extent 0"},
		{one(OpIota, spec(F32, 1<<39, 4), Attrs{Axis: -1}), "elements"},
		{one(OpIota, spec(F32, 3), Attrs{Axis: 1}), "axis 1 is out of range"},
		{one(OpEye, spec(F32, 3), Attrs{}), "at least two axes"},
		{one(OpBitcast, spec(F32, 3), Attrs{}, spec(S64, 3)), "differ in width"},
		{one(OpReshape, spec(F32, 6), Attrs{}, spec(F32, 2, 3)), ""},
		{one(OpReshape, spec(F32, 5), Attrs{}, spec(F32, 2, 3)), "has 6 elements"},
		{one(OpReshape, spec(S32, 6), Attrs{}, spec(F32, 2, 3)), "type f32"},
		{one(OpSqueeze, spec(F32, 3), Attrs{Axes: []int{0}}, spec(F32, 1, 3)), ""},
		{one(OpSqueeze, spec(F32, 3), Attrs{Axes: []int{1}}, spec(F32, 1, 3)), "extent 3"},
		{one(OpBroadcast, spec(F32, 4, 3), Attrs{Axes: []int{1}}, spec(F32, 3)), ""},
		{one(OpBroadcast, spec(F32, 4, 3), Attrs{Axes: []int{0}}, spec(F32, 3)), "does not stretch"},
		{one(OpTranspose, spec(F32, 3, 2), Attrs{Axes: []int{1, 0}}, spec(F32, 2, 3)), ""},
		{one(OpTranspose, spec(F32, 3, 2), Attrs{Axes: []int{1, 1}}, spec(F32, 2, 3)), "no permutation"},
		{one(OpReverse, spec(F32, 3), Attrs{Axes: []int{1}}, spec(F32, 3)), "out of range"},
		{one(OpPad, spec(F32, 6), Attrs{Pad: []PadDim{{-1, 2, 1}}}, spec(F32, 3), spec(F32)), ""},
		{one(OpPad, spec(F32, 7), Attrs{Pad: []PadDim{{-1, 2, 1}}}, spec(F32, 3), spec(F32)), "shape {6}"},
		{one(OpPad, spec(F32, 6), Attrs{Pad: []PadDim{{0, 0, -1}}}, spec(F32, 3), spec(F32)), "negative interior"},
		{one(OpPad, spec(F32, 6), Attrs{Pad: []PadDim{{0, 0, math.MaxInt}}}, spec(F32, 3), spec(F32)), "too large"},
		{one(OpSlice, spec(F32, 2), Attrs{Lengths: []int{3}, Strides: []int{2}}, spec(F32, 5), scalar), ""},
		{one(OpSlice, spec(F32, 2), Attrs{Lengths: []int{6}, Strides: []int{2}}, spec(F32, 5), scalar), "do not fit"},
		{one(OpSlice, spec(F32, 2), Attrs{Lengths: []int{3}, Strides: []int{2}}, spec(F32, 5), spec(F32)), "integer scalar"},
		{one(OpSlice, spec(F32, 2), Attrs{Lengths: []int{3}, Strides: []int{2}}, spec(F32, 5)), "wants a start"},
		{one(OpPutSlice, spec(F32, 5), Attrs{}, spec(F32, 5), spec(F32, 2), scalar), ""},
		{one(OpPutSlice, spec(F32, 5), Attrs{}, spec(F32, 5), spec(F32, 6), scalar), "does not fit"},
		{one(OpConcat, spec(F32, 5, 2), Attrs{}, spec(F32, 2, 2), spec(U8, 3, 2)), ""},
		{one(OpConcat, spec(F32, 5, 2), Attrs{}, spec(F32, 2, 2), spec(U8, 3, 1)), "does not match"},
		{one(OpStack, spec(F32, 3, 2), Attrs{Axis: 1}, spec(F32, 3), spec(F32, 3)), ""},
		{one(OpStack, spec(F32, 3, 2), Attrs{Axis: 2}, spec(F32, 3), spec(F32, 3)), "out of range"},
		{one(OpClip, spec(F32, 3), Attrs{}, spec(F32, 3), spec(F32), spec(F32, 1)), "bounds are scalars"},
		{one(OpSum, spec(F32, 2, 1), Attrs{Axes: []int{1}, Keep: true}, spec(F32, 2, 3)), ""},
		{one(OpSum, spec(F32, 2), Attrs{Axes: []int{1, 0}}, spec(F32, 2, 3)), "not ascending"},
		{one(OpReduceMax, spec(S32, 2), Attrs{Axes: []int{1}}, spec(F32, 2, 3)), "type f32"},
		{one(OpAll, spec(S32, 2), Attrs{Axes: []int{1}}, spec(F32, 2, 3)), "type u8"},
		{one(OpArgMax, spec(S32), Attrs{Axis: -1}, spec(F32, 2, 3)), ""},
		{one(OpArgMax, spec(F32), Attrs{Axis: -1}, spec(F32, 2, 3)), "yields integers"},
		{one(OpDot, spec(F32, 7, 2, 5), Attrs{ContractA: []int{2}, BatchA: []int{0}, ContractB: []int{1}, BatchB: []int{0}}, spec(F32, 7, 2, 3), spec(F32, 7, 3, 5)), ""},
		{one(OpDot, spec(F32, 32, 10), Attrs{ContractA: []int{1}, ContractB: []int{0}}, spec(F32, 32, 128), spec(F32, 64, 10)), "dot: contraction size 128 of {32, 128} does not match 64 of {64, 10}"},
		{one(OpDot, spec(F32, 2), Attrs{ContractA: []int{0}, BatchA: []int{0}, ContractB: []int{0}, BatchB: []int{0}}, spec(F32, 2), spec(F32, 2)), "named twice"},
	}
	for _, c := range cases {
		err := Verify(c.g)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("refused:\n%v%v", c.g, err)
		case c.want != "" && err == nil:
			t.Errorf("accepted, wanted %q:\n%v", c.want, c.g)
		case c.want != "" && !strings.Contains(err.Error(), c.want):
			t.Errorf("got %q, wanted %q", err, c.want)
		}
	}
}

func TestVerifyReferences(t *testing.T) {
	g := one("negate", spec(F32, 2), Attrs{}, spec(F32, 2))
	g.Nodes[0].In[0] = 1 // itself
	if err := Verify(g); err == nil || !strings.Contains(err.Error(), "does not come before") {
		t.Errorf("a node that reads itself: %v", err)
	}
	g = one("negate", spec(F32, 2), Attrs{}, spec(F32, 2))
	g.Outs[0] = 2
	if err := Verify(g); err == nil {
		t.Error("accepted a result that does not exist")
	}
	g = one("negate", spec(F32, 2), Attrs{}, spec(F32, 2))
	g.Params[0].ByValue = true
	if err := Verify(g); err == nil {
		t.Error("accepted a by-value tensor")
	}
}

// Every op of the tables has a rule, and random nodes never panic the verifier.
func TestVerifyIsTotal(t *testing.T) {
	for _, ops := range [][]Op{Binary, Unary} {
		for _, op := range ops {
			if _, ok := Lookup(op); !ok {
				t.Errorf("%s has no rule", op)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	dims := func() Shape {
		s := make(Shape, r.IntN(5))
		for i := range s {
			s[i] = []int{-1, 0, 1, 2, 3, math.MaxInt}[r.IntN(6)]
		}
		return s
	}
	ints := func() []int { return dims() }
	var ops []Op
	for op := range rules {
		ops = append(ops, op)
	}
	for range 50000 {
		var in []Spec
		for range r.IntN(4) {
			in = append(in, Spec{Type(r.IntN(15)), dims()})
		}
		at := Attrs{Axes: ints(), Axis: r.IntN(6) - 2, Lengths: ints(), Strides: ints(), ContractA: ints(), ContractB: ints(), BatchA: ints(), BatchB: ints()}
		for range r.IntN(4) {
			at.Pad = append(at.Pad, PadDim{r.IntN(5) - 2, r.IntN(5) - 2, r.IntN(3) - 1})
		}
		_ = Verify(one(ops[r.IntN(len(ops))], Spec{Type(r.IntN(15)), dims()}, at, in...))
	}
}

func TestText(t *testing.T) {
	g := one(OpSum, spec(F32, 2), Attrs{Axes: []int{1}, Acc: AccF64}, spec(F32, 2, 3))
	g.Params[0].Layout = Layout{3, []int{1, 2}}
	want := "p0: f32{2, 3} strides [1 2] from 3\nv1 = sum p0 axes=[1] acc=f64 : f32{2}\nreturn v1\n"
	if g.String() != want {
		t.Errorf("got\n%swant\n%s", g, want)
	}
}

// Keys tell apart every field that is part of a program.
func TestKey(t *testing.T) {
	base := func() *Graph {
		return one(OpSum, spec(F32, 2), Attrs{Axes: []int{1}}, spec(F32, 2, 3))
	}
	changes := []func(*Graph){
		func(g *Graph) {},
		func(g *Graph) { g.Nodes[0].Op = OpProduct },
		func(g *Graph) { g.Nodes[0].Type = F64 },
		func(g *Graph) { g.Nodes[0].Shape = Shape{3} },
		func(g *Graph) { g.Nodes[0].Attrs.Axes = []int{0} },
		func(g *Graph) { g.Nodes[0].Attrs.Keep = true },
		func(g *Graph) { g.Nodes[0].Attrs.Acc = AccF32 },
		func(g *Graph) { g.Params[0].Type = F16 },
		func(g *Graph) { g.Params[0].Shape = Shape{2, 4} },
		func(g *Graph) { g.Params[0].ByValue = true },
		func(g *Graph) { g.Params[0].Layout = Layout{0, []int{3, 1}} },
		func(g *Graph) { g.Params[0].Layout = Layout{1, []int{3, 1}} },
		func(g *Graph) { g.Outs = append(g.Outs, 0) },
	}
	seen := map[string]int{}
	for i, change := range changes {
		g, again := base(), base()
		change(g)
		change(again)
		k := AppendKey(nil, g)
		if !bytes.Equal(k, AppendKey(nil, again)) {
			t.Errorf("change %d: two keys for one graph", i)
		}
		if j, ok := seen[string(k)]; ok {
			t.Errorf("changes %d and %d share a key", i, j)
		}
		seen[string(k)] = i
	}
}

func TestReach(t *testing.T) {
	lo, hi := Reach(Shape{2, 3}, Layout{5, []int{-3, 1}})
	if lo != 2 || hi != 8 {
		t.Errorf("reach [%d, %d), want [2, 8)", lo, hi)
	}
	if CheckLayout(Shape{2, 3}, Layout{5, []int{-3, 1}}, 7) == nil {
		t.Error("accepted a layout that leaves its buffer")
	}
}
