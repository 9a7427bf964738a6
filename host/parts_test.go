package host

import (
	"slices"
	"testing"

	"nxvk/graph"
)

func TestComplexParts(t *testing.T) {
	s := graph.Shape{2}
	re, im := New(graph.Spec{Type: graph.S32, Shape: s}), New(graph.Spec{Type: graph.F64, Shape: graph.Shape{}})
	store(re.Data, graph.S32, 0, []int64{3, -4}, false)
	store(im.Data, graph.F64, 0, []float64{0.5}, false)
	run := func(op graph.Op, spec graph.Spec, in ...Tensor) Tensor {
		n := &graph.Node{Op: op, Spec: spec}
		specs := make([]graph.Spec, len(in))
		for i, x := range in {
			specs[i] = x.Spec
		}
		if err := graph.VerifyNode(n, specs); err != nil {
			t.Fatal(err)
		}
		out, err := Run(n, in)
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	for _, ty := range []graph.Type{graph.C64, graph.C128} {
		z := run(graph.OpComplex, graph.Spec{Type: ty, Shape: s}, re, im)
		if got := complexes(z); !slices.Equal(got, []complex128{complex(3, 0.5), complex(-4, 0.5)}) {
			t.Errorf("%v: %v", ty, got)
		}
		p := run(graph.OpParts, graph.Spec{Type: ty.Part(), Shape: graph.Shape{2, 2}}, z)
		if got := floats(p); !slices.Equal(got, []float64{3, 0.5, -4, 0.5}) {
			t.Errorf("parts of %v: %v", ty, got)
		}
		if back := run(graph.OpFromParts, z.Spec, p); !slices.Equal(back.Data, z.Data) {
			t.Errorf("%v of parts: %v", ty, complexes(back))
		}
	}
	// Both halves of a constant.
	n := &graph.Node{Op: graph.OpConstant, Spec: graph.Spec{Type: graph.C128, Shape: s}}
	v := graph.Join(graph.C128, 0x3ff0000000000000, 0x4000000000000000)
	n.Attrs.Value, n.Attrs.Upper = v.Lo, v.Hi
	out, err := Run(n, nil)
	if err != nil || complexes(out[0])[1] != complex(1, 2) {
		t.Errorf("constant: %v, %v", out, err)
	}
}
