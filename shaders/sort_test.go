package shaders_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
	"nxvk/shaders"
	"nxvk/test/devtest"
)

// before reports whether element x comes before y in an ascending sort: NaNs are last and equal to each
// other, and so are zeros.
func before(t graph.Type, x, y uint64) bool {
	switch {
	case t.Float():
		a, b := graph.ToFloat(x, t), graph.ToFloat(y, t)
		if math.IsNaN(a) || math.IsNaN(b) {
			return !math.IsNaN(a) && math.IsNaN(b)
		}
		return a < b
	case t.Signed():
		return int64(widen(x, t)) < int64(widen(y, t))
	}
	return x < y
}

// sorted yields the positions of a row's elements in stable order.
func sorted(t graph.Type, vs []uint64, desc bool) []int {
	order := make([]int, len(vs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		x, y := vs[i], vs[j]
		if desc {
			x, y = y, x
		}
		switch {
		case before(t, x, y):
			return -1
		case before(t, y, x):
			return 1
		}
		return 0
	})
	return order
}

// checkSorted holds the bytes of values and positions, either of which may be missing, to a stable sort
// of x, of which the first keep of each row are there.
func checkSorted(x tensor, axis int, desc bool, keep int, values []byte, positions []byte, pt graph.Type) error {
	out := slices.Clone(x.Shape)
	out[axis] = keep
	rows := rowsOf(x.Shape, axis)
	for r, to := range rowsOf(out, axis) {
		var vs []uint64
		for _, at := range rows[r] {
			vs = append(vs, x.elems[at])
		}
		order := sorted(x.Type, vs, desc)
		for i, at := range to {
			if values != nil {
				if g := elemAt(values, at, x.Type); g != vs[order[i]] {
					return fmt.Errorf("row %d, element %d: got %#x, want %#x", r, i, g, vs[order[i]])
				}
			}
			if positions != nil {
				want := graph.ConvertBits(uint64(order[i]), graph.U64, pt)
				if g := elemAt(positions, at, pt); g != want {
					return fmt.Errorf("row %d, position %d: got %d, want %d", r, i, g, want)
				}
			}
		}
	}
	return nil
}

// A random sort: the operation, its plan, the specs of its results.
type sortCase struct {
	x     tensor
	op    graph.Op
	axis  int
	desc  bool
	keep  int
	specs []graph.Spec
}

func (c sortCase) String() string {
	return fmt.Sprintf("%s of %v %v, axis %d, desc %v, %v", c.op, c.x.Spec, c.x.Layout, c.axis, c.desc, c.specs)
}

func (c sortCase) plan(t kernel.Target) (*shaders.Plan, error) {
	switch c.op {
	case graph.OpSort:
		return shaders.Sort(t, c.x.Operand, c.specs[0], c.axis, c.desc)
	case graph.OpArgSort:
		return shaders.ArgSort(t, c.x.Operand, c.specs[0], c.axis, c.desc)
	}
	return shaders.TopK(t, c.x.Operand, c.specs[0], c.specs[1])
}

func (c sortCase) check(got [][]byte) error {
	switch c.op {
	case graph.OpSort:
		return checkSorted(c.x, c.axis, c.desc, c.keep, got[0], nil, 0)
	case graph.OpArgSort:
		return checkSorted(c.x, c.axis, c.desc, c.keep, nil, got[0], c.specs[0].Type)
	}
	return checkSorted(c.x, c.axis, c.desc, c.keep, got[0], got[1], c.specs[1].Type)
}

func randomSort(rng *rand.Rand) sortCase {
	ty := graph.RealTypes[rng.IntN(len(graph.RealTypes))]
	shape := randomShape(rng, 3000)
	if len(shape) == 0 {
		shape = graph.Shape{1 + rng.IntN(200)}
	}
	c := sortCase{axis: rng.IntN(len(shape)), desc: rng.IntN(2) == 0}
	if n := []int{0, 0, 0, 0, 0, 25, 49, 256, 257, 700, 2048, 2049, 5000}[rng.IntN(13)]; n > 0 {
		for k := range shape {
			shape[k] = 1 + rng.IntN(2)
		}
		shape[c.axis] = n
	}
	if rng.IntN(8) == 0 { // many rows
		shape = graph.Shape{60 + rng.IntN(10), 50 + rng.IntN(60)}
		c.axis = rng.IntN(2)
	}
	c.op = []graph.Op{graph.OpSort, graph.OpArgSort, graph.OpTopK}[rng.IntN(3)]
	pt := []graph.Type{graph.S32, graph.S32, graph.S64, graph.U32, graph.U8}[rng.IntN(5)]
	if c.op == graph.OpTopK {
		c.axis, c.desc = len(shape)-1, true
	}
	value := someValue(rng, ty, rng.IntN(2) == 0)
	if rng.IntN(3) == 0 {
		value = func() uint64 { return rng.Uint64() & (^uint64(0) >> (64 - 8*ty.Size())) }
	}
	c.x = newTensor(ty, shape, randomLayout(rng, shape), value)
	c.keep = shape[c.axis]
	out := slices.Clone(shape)
	switch c.op {
	case graph.OpSort:
		c.specs = []graph.Spec{{Type: ty, Shape: out}}
	case graph.OpArgSort:
		c.specs = []graph.Spec{{Type: pt, Shape: out}}
	default:
		c.keep = 1 + rng.IntN(c.keep)
		if rng.IntN(2) == 0 {
			c.keep = 1 + rng.IntN(min(c.keep, 9))
		}
		out[c.axis] = c.keep
		c.specs = []graph.Spec{{Type: ty, Shape: out}, {Type: pt, Shape: out}}
	}
	return c
}

func TestSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 62))
	for _, name := range []string{"cpu", "discrete"} {
		for range 70 {
			c := randomSort(rng)
			p, err := c.plan(targets[name])
			if err != nil {
				t.Fatalf("%s: %v: %v", name, c, err)
			}
			var sizes []int
			for _, s := range c.specs {
				sizes = append(sizes, s.Shape.Size()*s.Type.Size())
			}
			got, err := devtest.Interpret(&kernel.Machine{Num: kernel.Exact}, p, [][]byte{c.x.buf}, sizes...)
			if err != nil {
				t.Fatalf("%s: %v: %v", name, c, err)
			}
			if err := c.check(got); err != nil {
				t.Fatalf("%s: %v: %v", name, c, err)
			}
		}
	}
}

// The device gives what the interpreter gives, in every form.
func TestSortOnDevice(t *testing.T) {
	for name, target := range deviceTargets(t) {
		rng := rand.New(rand.NewPCG(63, 64))
		for range 16 {
			c := randomSort(rng)
			if !has(target, c.x.Type) || slices.ContainsFunc(c.specs, func(s graph.Spec) bool { return !has(target, s.Type) }) {
				continue
			}
			p, err := c.plan(target)
			if err != nil {
				t.Fatal(err)
			}
			got := devtest.Agree(t, p, [][]byte{c.x.buf}, c.specs...)
			if err := c.check(got); err != nil || t.Failed() {
				t.Fatalf("%s: %v: %v", name, c, err)
			}
		}
	}
}

// Rows of a million elements are sorted, and stay stable where there are few different ones.
func TestLongSort(t *testing.T) {
	const n = 1 << 20
	rng := rand.New(rand.NewPCG(65, 66))
	d := devtest.Open(t)
	spec := graph.Spec{Type: graph.F32, Shape: graph.Shape{n}}
	x := newTensor(spec.Type, spec.Shape, graph.Contiguous(spec.Shape), func() uint64 {
		return graph.FromFloat(float64(rng.IntN(1000)-500)/8, graph.F32)
	})
	order := sorted(graph.F32, x.elems, true)
	target := d.Target
	for _, target.Class = range []kernel.Class{d.Target.Class, kernel.Discrete} {
		p, err := shaders.ArgSort(target, x.Operand, graph.Spec{Type: graph.S32, Shape: spec.Shape}, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		got := d.Plan(t, p, [][]byte{x.buf}, 4*n)[0]
		for i, at := range order {
			if g := elemAt(got, i, graph.S32); g != uint64(at) {
				t.Fatalf("%v: position %d: got %d, want %d", target.Class, i, g, at)
			}
		}
		for _, keep := range []int{1, 10, 100} {
			out := graph.Shape{keep}
			p, err := shaders.TopK(target, x.Operand, graph.Spec{Type: graph.F32, Shape: out}, graph.Spec{Type: graph.S32, Shape: out})
			if err != nil {
				t.Fatal(err)
			}
			got := d.Plan(t, p, [][]byte{x.buf}, 4*keep, 4*keep)
			if err := checkSorted(x, 0, true, keep, got[0], got[1], graph.S32); err != nil {
				t.Fatalf("%v: top %d: %v", target.Class, keep, err)
			}
		}
	}
}
