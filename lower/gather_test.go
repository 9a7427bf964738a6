package lower

import (
	"math"
	"math/rand"
	"strings"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
)

var intTypes = []graph.Type{graph.U8, graph.U16, graph.U32, graph.U64, graph.S8, graph.S16, graph.S32, graph.S64}

func init() {
	moveTrials[graph.OpGather] = func(r *rand.Rand, ty graph.Type) trial {
		rank := 1 + r.Intn(5)
		x := random(r, graph.Spec{Type: ty, Shape: sliceShape(r, rank)})
		axes := someAxes(r, rank)
		idx := randomIndices(r, randomShape(r, r.Intn(3), 5), x.Shape, axes)
		lead := len(idx.Shape) - 1
		shape := append(graph.Shape(nil), idx.Shape[:lead]...)
		for a, d := range x.Shape {
			if !has(axes, a) {
				shape = append(shape, d)
			}
		}
		want := from(graph.Spec{Type: ty, Shape: shape}, func(at []int) uint64 {
			return x.at(placed(x.Shape, idx, axes, at[:lead], at[lead:]))
		})
		return trial{graph.Node{Op: graph.OpGather, Spec: want.Spec, Attrs: graph.Attrs{Axes: axes}}, []tensor{x, idx}, want}
	}
	moveTrials[graph.OpTake] = func(r *rand.Rand, ty graph.Type) trial {
		rank := 1 + r.Intn(4)
		x := random(r, graph.Spec{Type: ty, Shape: sliceShape(r, rank)})
		axis := r.Intn(rank)
		idx := randomIndices(r, randomShape(r, r.Intn(3), 5), x.Shape, []int{axis})
		idx.Shape = idx.Shape[:len(idx.Shape)-1]
		shape := append(graph.Shape(nil), x.Shape[:axis]...)
		shape = append(append(shape, idx.Shape...), x.Shape[axis+1:]...)
		want := from(graph.Spec{Type: ty, Shape: shape}, func(at []int) uint64 {
			src := append([]int(nil), at[:axis]...)
			src = append(src, int(idx.at(at[axis:axis+len(idx.Shape)])))
			return x.at(append(src, at[axis+len(idx.Shape):]...))
		})
		return trial{graph.Node{Op: graph.OpTake, Spec: want.Spec, Attrs: graph.Attrs{Axis: axis}}, []tensor{x, idx}, want}
	}
	moveTrials[graph.OpTakeAlongAxis] = func(r *rand.Rand, ty graph.Type) trial {
		rank := 1 + r.Intn(4)
		x := random(r, graph.Spec{Type: ty, Shape: randomShape(r, rank, mostOf(rank))})
		axis := r.Intn(rank)
		shape := append(graph.Shape(nil), x.Shape...)
		shape[axis] = 1 + r.Intn(5)
		idx := randomIndices(r, shape, x.Shape, []int{axis})
		idx.Shape = shape
		want := from(graph.Spec{Type: ty, Shape: shape}, func(at []int) uint64 {
			src := append([]int(nil), at...)
			src[axis] = int(idx.at(at))
			return x.at(src)
		})
		return trial{graph.Node{Op: graph.OpTakeAlongAxis, Spec: want.Spec, Attrs: graph.Attrs{Axis: axis}}, []tensor{x, idx}, want}
	}
}

func init() {
	moveTrials[graph.OpIndexedAdd] = func(r *rand.Rand, ty graph.Type) trial { return indexedTrial(r, ty, true) }
	moveTrials[graph.OpIndexedPut] = func(r *rand.Rand, ty graph.Type) trial { return indexedTrial(r, ty, false) }
}

// indexedTrial updates slices, many of them more than once.
func indexedTrial(r *rand.Rand, ty graph.Type, add bool) trial {
	rank := 1 + r.Intn(4)
	x := random(r, graph.Spec{Type: ty, Shape: sliceShape(r, rank)})
	axes := someAxes(r, rank)
	lead := graph.Shape{1 + r.Intn(6)}
	if r.Intn(3) == 0 {
		lead = append(lead, 1+r.Intn(20))
	}
	return updated(r, x, axes, lead, add)
}

func updated(r *rand.Rand, x tensor, axes []int, lead graph.Shape, add bool) trial {
	ty := x.Type
	idx := randomIndices(r, lead, x.Shape, axes)
	us := append(graph.Shape(nil), lead...)
	for a, d := range x.Shape {
		if !has(axes, a) {
			us = append(us, d)
		}
	}
	ut, out := ty, ty
	if r.Intn(3) == 0 {
		ut = graph.RealTypes[r.Intn(len(graph.RealTypes))]
		out = mergeTypes(ut, ty)
	}
	u := random(r, graph.Spec{Type: ut, Shape: us})
	want := tensor{Spec: graph.Spec{Type: out, Shape: x.Shape}}
	sums := make([]float64, len(x.bits))
	touched := make([]bool, len(x.bits))
	for _, b := range x.bits {
		want.bits = append(want.bits, convert(b, ty, out))
	}
	each(us, func(n int, at []int) {
		k := offset(graph.Contiguous(x.Shape), placed(x.Shape, idx, axes, at[:len(lead)], at[len(lead):]))
		v := convert(u.bits[n], ut, out)
		switch {
		case !add:
			want.bits[k] = v
		case out.Int():
			want.bits[k] = convert(convert(want.bits[k], out, graph.S64)+convert(v, out, graph.S64), graph.S64, out)
		default:
			sums[k] += graph.ToFloat(graph.ConvertBits(u.bits[n], ut, graph.F64), graph.F64)
			touched[k] = true
		}
	})
	for k, hit := range touched {
		if hit {
			have := graph.ToFloat(graph.ConvertBits(x.bits[k], ty, graph.F64), graph.F64)
			sum := graph.FromFloat(have+sums[k], graph.F64)
			if math.IsNaN(have + sums[k]) {
				sum = 0x7ff8 << 48
			}
			want.bits[k] = convert(sum, graph.F64, out)
		}
	}
	op := graph.OpIndexedPut
	if add {
		op = graph.OpIndexedAdd
	}
	return trial{graph.Node{Op: op, Spec: want.Spec, Attrs: graph.Attrs{Axes: axes}}, []tensor{x, idx, u}, want}
}

// sliceShape is a shape whose last axis is often long, and a multiple of what kernels move at once.
func sliceShape(r *rand.Rand, rank int) graph.Shape {
	s := randomShape(r, rank, min(mostOf(rank), 12))
	if r.Intn(2) == 0 {
		s[rank-1] = []int{2, 4, 8, 12, 16, 32}[r.Intn(6)]
	}
	return s
}

func someAxes(r *rand.Rand, rank int) []int {
	for {
		var axes []int
		for a := range rank {
			if r.Intn(2) == 0 {
				axes = append(axes, a)
			}
		}
		if len(axes) > 0 {
			return axes
		}
	}
}

func has(axes []int, a int) bool {
	for _, b := range axes {
		if a == b {
			return true
		}
	}
	return false
}

// randomIndices draws indices of any integer type into axes of shape; its last axis holds one for each.
func randomIndices(r *rand.Rand, lead, shape graph.Shape, axes []int) tensor {
	t := tensor{Spec: graph.Spec{Type: intTypes[r.Intn(len(intTypes))], Shape: append(append(graph.Shape(nil), lead...), len(axes))}}
	t.bits = make([]uint64, t.Shape.Size())
	for i := range t.bits {
		t.bits[i] = uint64(r.Intn(min(shape[axes[i%len(axes)]], 100)))
	}
	return t
}

// placed is the place in a tensor of shape that index number at of idx names, where the other axes are at rest.
func placed(shape graph.Shape, idx tensor, axes, at, rest []int) []int {
	src := make([]int, len(shape))
	k := 0
	for a := range src {
		if !has(axes, a) {
			src[a] = rest[k]
			k++
		}
	}
	for c, a := range axes {
		src[a] = int(idx.at(append(append([]int(nil), at...), c)))
	}
	return src
}

// So many updates that they are sorted in passes, most of them of few slices.
func TestManyUpdates(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	for _, class := range []string{"cpu", "discrete"} {
		for _, add := range []bool{true, false} {
			x := random(r, graph.Spec{Type: graph.F32, Shape: graph.Shape{300, 2}})
			moveOnce(t, r, updated(r, x, []int{0}, graph.Shape{2500}, add), interpreted(testTargets[class]))
		}
	}
}

func TestManyUpdatesOnDevice(t *testing.T) {
	m := onDevice(t)
	r := rand.New(rand.NewSource(6))
	for _, class := range []kernel.Class{m.Class, kernel.Discrete} {
		m.Class = class
		x := random(r, graph.Spec{Type: graph.S32, Shape: graph.Shape{40, 3}})
		moveOnce(t, r, updated(r, x, []int{0}, graph.Shape{700}, true), m)
	}
}

// An index out of range is told by the value of the first, and touches nothing outside.
func TestBounds(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	machines := []machine{interpreted(testTargets["cpu"]), interpreted(testTargets["discrete"])}
	for _, op := range []graph.Op{graph.OpGather, graph.OpTake, graph.OpTakeAlongAxis, graph.OpIndexedAdd, graph.OpIndexedPut} {
		if moveTrials[op] == nil {
			continue
		}
		for i := range 40 {
			outOfRange(t, r, op, machines[i%2])
		}
	}
}

func TestBoundsOnDevice(t *testing.T) {
	m := onDevice(t)
	r := rand.New(rand.NewSource(4))
	for _, class := range []kernel.Class{m.Class, kernel.Discrete} {
		m.Class = class
		for _, op := range []graph.Op{graph.OpGather, graph.OpTake, graph.OpTakeAlongAxis, graph.OpIndexedAdd, graph.OpIndexedPut} {
			if moveTrials[op] != nil {
				outOfRange(t, r, op, m)
			}
		}
	}
}

func outOfRange(t *testing.T, r *rand.Rand, op graph.Op, m machine) {
	t.Helper()
	c := moveTrials[op](r, graph.F32)
	idx := &c.in[1]
	bits := 8 * idx.Type.Size()
	bad := []uint64{^uint64(0), 1 << 63, 1 << 31, 1 << 7, 200, 60000}[r.Intn(6)] & (^uint64(0) >> (64 - bits))
	idx.bits[r.Intn(len(idx.bits))] = bad
	var in []laidOut
	g := &graph.Graph{}
	for k, x := range c.in {
		in = append(in, layOut(x, layoutOf(layoutKinds[r.Intn(len(layoutKinds))], x.Shape)))
		g.Params = append(g.Params, graph.Param{Spec: x.Spec, Layout: in[k].layout})
		c.n.In = append(c.n.In, graph.Ref(k))
	}
	g.Nodes, g.Outs = []graph.Node{c.n}, []graph.Ref{graph.Ref(len(in))}
	p, err := Lower(g, m.Target)
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(p); err != nil {
		t.Fatal(err)
	}
	axes := c.n.Attrs.Axes
	if axes == nil {
		axes = []int{c.n.Attrs.Axis}
	}
	fits := true
	for i, v := range idx.bits {
		fits = fits && v < uint64(c.in[0].Shape[axes[i%len(axes)]])
	}
	switch _, err := execute(t, m, p, in); {
	case fits && err != nil:
		t.Fatalf("%v: %v\n%v", c.n.Op, err, g)
	case !fits && (err == nil || !strings.Contains(err.Error(), "is out of bounds for axis")):
		t.Fatalf("%v with index %#x of %v: %v\n%v", c.n.Op, bad, idx.Spec, err, g)
	}
}
