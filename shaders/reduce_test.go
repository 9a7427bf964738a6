package shaders_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
	"nxvk/shaders"
)

// groups lists, for each output in order, the flat indices of the elements reduced to it, in order.
func groups(shape graph.Shape, axes []int) [][]int {
	n := 1
	for k, d := range shape {
		if !slices.Contains(axes, k) {
			n *= d
		}
	}
	out := make([][]int, n)
	for i := range shape.Size() {
		o, mul := 0, 1
		for k, rest := len(shape)-1, i; k >= 0; k-- {
			if !slices.Contains(axes, k) {
				o += rest % shape[k] * mul
				mul *= shape[k]
			}
			rest /= shape[k]
		}
		out[o] = append(out[o], i)
	}
	return out
}

// aggregate is the type of sums and products in Nx.
func aggregate(t graph.Type) graph.Type {
	switch t {
	case graph.U2, graph.U4, graph.U8, graph.U16:
		return graph.U32
	case graph.S2, graph.S4, graph.S8, graph.S16:
		return graph.S32
	case graph.U64:
		return graph.S64
	}
	return t
}

var nans = map[graph.Type]uint64{graph.F8: 0x7e, graph.F8E4M3FN: 0x7f, graph.F16: 0x7e00, graph.BF16: 0x7fc0, graph.F32: 0x7fc00000, graph.F64: 0x7ff8000000000000}

// checkFold holds one result of a reduction against Nx.BinaryBackend's rules.
func checkFold(op graph.Op, got uint64, out graph.Type, in graph.Type, vs []uint64, acc graph.Acc) error {
	fail := func(want any) error {
		return fmt.Errorf("got %#x (%v), want %v", got, number(got, out), want)
	}
	switch op {
	case graph.OpAll, graph.OpAny:
		want := uint64(0)
		if op == graph.OpAll {
			want = 1
		}
		for _, v := range vs {
			zero := v == 0
			if in.Float() {
				zero = number(v, in) == 0
			}
			if zero == (op == graph.OpAll) {
				want = 1 - want
				break
			}
		}
		if got != want {
			return fail(want)
		}
		return nil
	case graph.OpReduceMax, graph.OpReduceMin:
		best := vs[0]
		for _, v := range vs[1:] {
			if beats(in, v, best, op == graph.OpReduceMax, false) {
				best = v
			}
		}
		if in.Float() && math.IsNaN(number(best, in)) {
			best = nans[in]
		}
		if got != best {
			return fail(fmt.Sprintf("%#x", best))
		}
		return nil
	}
	if !out.Float() {
		want := uint64(0)
		if op == graph.OpProduct {
			want = 1
		}
		for _, v := range vs {
			v = graph.ConvertBits(v, in, out)
			if op == graph.OpProduct {
				want *= v
			} else {
				want += v
			}
		}
		if want = canonical(want, out); got != want {
			return fail(want)
		}
		return nil
	}
	// Floats: exactly, with what IEEE says of infinities.
	sum, abs, flat := new(big.Float).SetPrec(320), new(big.Float).SetPrec(320), 0.0
	if op == graph.OpProduct {
		sum.SetInt64(1)
		flat = 1
	}
	special, tiny := false, false
	for _, v := range vs {
		x := number(v, in)
		special = special || math.IsNaN(x) || math.IsInf(x, 0)
		if op == graph.OpProduct {
			flat *= x
			tiny = tiny || flat != 0 && math.Abs(flat) < 0x1p-100
			if !special {
				sum.Mul(sum, exact(v, in))
			}
		} else {
			flat += x
			if !special {
				sum.Add(sum, exact(v, in))
				abs.Add(abs, new(big.Float).Abs(exact(v, in)))
			}
		}
	}
	if special {
		if g := graph.ToFloat(got, out); g != flat && !(math.IsNaN(g) && math.IsNaN(flat)) {
			return fail(flat)
		}
		if math.IsNaN(flat) && got != nans[out] {
			return fail("Nx's NaN")
		}
		return nil
	}
	eps := math.Exp2(-44)
	switch {
	case out == graph.F64:
		eps = math.Exp2(-53)
	case acc == graph.AccF32, tiny: // pairs of f32 do not know the errors of such products
		eps = math.Exp2(-24)
	}
	if op == graph.OpProduct {
		abs.Abs(sum)
	}
	slack := new(big.Float).Mul(abs, big.NewFloat(eps*float64(len(vs))))
	slack.Add(slack, big.NewFloat(math.SmallestNonzeroFloat64))
	if !within(got, out, sum, slack) {
		return fail(sum.Text('g', 20))
	}
	return nil
}

// beats reports whether v displaces the extreme found before it.
func beats(t graph.Type, v, best uint64, max, late bool) bool {
	var less, equal bool
	switch {
	case t.Float():
		x, y := graph.ToFloat(v, t), graph.ToFloat(best, t)
		if math.IsNaN(x) || math.IsNaN(y) {
			return math.IsNaN(x)
		}
		less, equal = x < y, x == y
	case t.Signed():
		less = int64(widen(v, t)) < int64(widen(best, t))
	default:
		less = v < best
	}
	equal = equal || v == best
	if equal {
		return late
	}
	return less != max
}

func randomShape(rng *rand.Rand, limit int) graph.Shape {
	shape := graph.Shape{}
	n := 1
	for range rng.IntN(5) {
		d := 1 + rng.IntN(9)
		if rng.IntN(6) == 0 {
			d = 1 + rng.IntN(300)
		}
		if n*d > limit {
			break
		}
		n *= d
		shape = append(shape, d)
	}
	return shape
}

func randomAxes(rng *rand.Rand, rank int) []int {
	var axes []int
	for k := range rank {
		if rng.IntN(2) == 0 {
			axes = append(axes, k)
		}
	}
	return axes
}

func has(t kernel.Target, ty graph.Type) bool { return shaders.Has(t, ty) }

func TestReduce(t *testing.T) {
	ops := []graph.Op{graph.OpSum, graph.OpProduct, graph.OpReduceMax, graph.OpReduceMin, graph.OpAll, graph.OpAny}
	for name, target := range targets {
		rng := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			ty := graph.RealTypes[rng.IntN(len(graph.RealTypes))]
			if !has(target, ty) {
				continue
			}
			op := ops[rng.IntN(len(ops))]
			out := ty
			switch op {
			case graph.OpSum, graph.OpProduct:
				out = aggregate(ty)
			case graph.OpAll, graph.OpAny:
				out = graph.U8
			}
			shape := randomShape(rng, 3000)
			x := newTensor(ty, shape, randomLayout(rng, shape), someValue(rng, ty, rng.IntN(2) == 0))
			checkReduce(t, name, op, x, out, randomAxes(rng, len(shape)), graph.Acc(rng.IntN(3)))
		}
	}
}

func checkReduce(t *testing.T, name string, op graph.Op, x tensor, out graph.Type, axes []int, acc graph.Acc) {
	t.Helper()
	members := groups(x.Shape, axes)
	spec := graph.Spec{Type: out, Shape: graph.Shape{len(members)}}
	what := fmt.Sprintf("%s: %s of %v %v over %v, acc %d", name, op, x.Spec, x.Layout, axes, acc)
	p, err := shaders.Reduce(targets[name], op, x.Operand, spec, axes, acc)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	got, err := interpret(p, len(members)*out.Size(), x)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for o, ms := range members {
		var vs []uint64
		for _, i := range ms {
			vs = append(vs, x.elems[i])
		}
		if err := checkFold(op, elemAt(got, o, out), out, x.Type, vs, acc); err != nil {
			t.Fatalf("%s: element %d: %v", what, o, err)
		}
	}
}

// Shapes that take every form: one launch and two, alone and in turns, rows and columns, runs.
func TestReduceForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	cases := []struct {
		shape graph.Shape
		axes  []int
	}{
		{graph.Shape{20000}, []int{0}}, {graph.Shape{9999}, []int{0}}, {graph.Shape{3, 7001}, []int{1}},
		{graph.Shape{6000, 3}, []int{0}}, {graph.Shape{600, 40}, []int{0}}, {graph.Shape{40, 600}, []int{1}},
		{graph.Shape{100, 5, 40}, []int{0, 2}}, {graph.Shape{70, 5, 33}, []int{0, 2}}, {graph.Shape{300, 20}, []int{1}},
		{graph.Shape{300, 12}, []int{1}}, {graph.Shape{20, 30, 40}, []int{1}},
	}
	for name, target := range targets {
		for _, c := range cases {
			for _, ty := range []graph.Type{graph.U8, graph.S64, graph.F16, graph.F32, graph.F64} {
				// Forms are the same for every type: each target tries some.
				if !has(target, ty) || ty != graph.F32 && rng.IntN(3) > 0 {
					continue
				}
				for _, op := range []graph.Op{graph.OpSum, graph.OpReduceMax, graph.OpAny} {
					out := ty
					switch op {
					case graph.OpSum:
						out = aggregate(ty)
					case graph.OpAny:
						out = graph.U8
					}
					x := newTensor(ty, c.shape, graph.Contiguous(c.shape), someValue(rng, ty, op != graph.OpSum))
					checkReduce(t, name, op, x, out, c.axes, graph.AccCompensated)
				}
			}
		}
	}
}

// A sum of f64 that fits one lane is Nx.BinaryBackend's, rounding errors included.
func TestSumF64InOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	shape := graph.Shape{8}
	x := newTensor(graph.F64, shape, graph.Contiguous(shape), func() uint64 { return math.Float64bits(rng.NormFloat64()) })
	want := 0.0
	for _, v := range x.elems {
		want += math.Float64frombits(v)
	}
	for _, name := range []string{"cpu", "discrete"} {
		p, err := shaders.Reduce(targets[name], graph.OpSum, x.Operand, graph.Spec{Type: graph.F64}, []int{0}, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := interpret(p, 8, x)
		if err != nil {
			t.Fatal(err)
		}
		if g := math.Float64frombits(elemAt(got, 0, graph.F64)); g != want {
			t.Errorf("%s: got %v, want %v", name, g, want)
		}
	}
}

func TestArgReduce(t *testing.T) {
	for name, target := range targets {
		rng := rand.New(rand.NewPCG(7, 8))
		for i := range 150 {
			ty := graph.RealTypes[rng.IntN(len(graph.RealTypes))]
			if !has(target, ty) {
				continue
			}
			op := []graph.Op{graph.OpArgMax, graph.OpArgMin}[rng.IntN(2)]
			shape := randomShape(rng, 3000)
			if i%20 == 0 {
				shape = graph.Shape{2, 6000}
			}
			axis := rng.IntN(len(shape)+1) - 1
			high := rng.IntN(2) == 0
			x := newTensor(ty, shape, randomLayout(rng, shape), someValue(rng, ty, rng.IntN(2) == 0))
			axes := []int{axis}
			if axis == -1 {
				axes = axes[:0]
				for k := range shape {
					axes = append(axes, k)
				}
			}
			members := groups(shape, axes)
			out := []graph.Type{graph.S32, graph.S32, graph.U8, graph.S64}[rng.IntN(4)]
			what := fmt.Sprintf("%s: %s of %v %v axis %d high %v", name, op, x.Spec, x.Layout, axis, high)
			p, err := shaders.ArgReduce(target, op, x.Operand, graph.Spec{Type: out, Shape: graph.Shape{len(members)}}, axis, high)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			got, err := interpret(p, len(members)*out.Size(), x)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			for o, ms := range members {
				best := 0
				for j := range ms {
					if beats(ty, x.elems[ms[j]], x.elems[ms[best]], op == graph.OpArgMax, high) {
						best = j
					}
				}
				want := uint64(best) & (^uint64(0) >> (64 - 8*out.Size()))
				if g := elemAt(got, o, out); g != want {
					t.Fatalf("%s: element %d: got %d, want %d", what, o, g, want)
				}
			}
		}
	}
}

// Kernels are the same at any batch size: extents travel in the argument table.
func TestReduceKernelsShared(t *testing.T) {
	for name, target := range targets {
		seen := map[[32]byte]bool{}
		for batch := 16; batch < 36; batch++ {
			for _, c := range []struct {
				shape graph.Shape
				axes  []int
			}{{graph.Shape{batch, 10}, []int{1}}, {graph.Shape{batch, 10}, []int{0}}, {graph.Shape{batch, 128}, []int{0}}, {graph.Shape{batch}, []int{0}}} {
				n := len(groups(c.shape, c.axes))
				p, err := shaders.Reduce(target, graph.OpSum, shaders.Operand{Spec: graph.Spec{Type: graph.F32, Shape: c.shape}}, graph.Spec{Type: graph.F32, Shape: graph.Shape{n}}, c.axes, 0)
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range p.Launches {
					if err := kernel.Fits(l.Kernel, target); err != nil {
						t.Error(err)
					}
					h := l.Kernel.Hash()
					if batch > 16 && !seen[h] {
						t.Errorf("%s: a new kernel for %v over %v", name, c.shape, c.axes)
					}
					seen[h] = true
				}
			}
		}
	}
}

// Tensors beyond 2^31 elements are indexed with 64 bits, and their grids stay within every device's.
func TestWideIndices(t *testing.T) {
	big := shaders.Operand{Spec: graph.Spec{Type: graph.U8, Shape: graph.Shape{1 << 16, 1 << 17}}}
	for name, target := range targets {
		target.MaxGroups = [3]uint32{65535, 65535, 65535}
		target.MaxShared, target.MaxInvocations = 32768, 256
		var plans []*shaders.Plan
		add := func(p *shaders.Plan, err error) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			plans = append(plans, p)
		}
		for _, axes := range [][]int{{0}, {1}, {0, 1}} {
			n := len(axes) - 1 // both axes leave one element
			shape := graph.Shape{1}
			if n == 0 {
				shape = graph.Shape{big.Shape[1-axes[0]]}
			}
			add(shaders.Reduce(target, graph.OpReduceMax, big, graph.Spec{Type: graph.U8, Shape: shape}, axes, 0))
		}
		add(shaders.ArgReduce(target, graph.OpArgMax, big, graph.Spec{Type: graph.S64}, -1, false))
		add(shaders.Reduce(target, graph.OpAny, big, graph.Spec{Type: graph.U8, Shape: big.Shape}, nil, 0))
		add(shaders.Dot(target, big, shaders.Operand{Spec: graph.Spec{Type: graph.U8, Shape: graph.Shape{1 << 17, 8}}},
			graph.Spec{Type: graph.U8, Shape: graph.Shape{1 << 16, 8}}, graph.Attrs{ContractA: []int{1}, ContractB: []int{0}}))
		for _, p := range plans {
			for _, l := range p.Launches {
				if err := kernel.Check(l.Kernel); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if l.Grid[0] == 0 || l.Grid[0] > 65535 || l.Grid[1] != 1 || l.Grid[2] != 1 {
					t.Errorf("%s: %s over a grid of %v", name, l.Kernel.Name, l.Grid)
				}
			}
		}
	}
	// Two elements 2^31 apart: their memory is never touched in between.
	far := newTensorAt(graph.U8, 1<<31)
	for _, name := range []string{"cpu", "discrete"} {
		p, err := shaders.Reduce(targets[name], graph.OpSum, far.Operand, graph.Spec{Type: graph.U32}, []int{0}, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := interpret(p, 4, far)
		if err != nil {
			t.Fatal(err)
		}
		if g := elemAt(got, 0, graph.U32); g != 12 {
			t.Errorf("%s: got %d, want 5+7", name, g)
		}
	}
}

// newTensorAt is {5, 7}, with 7 at the given element.
func newTensorAt(t graph.Type, far int) tensor {
	x := tensor{buf: make([]byte, (far+1)*t.Size())}
	x.Spec = graph.Spec{Type: t, Shape: graph.Shape{2}}
	x.Layout = graph.Layout{Strides: []int{far}}
	putElem(x.buf, 0, t, 5)
	putElem(x.buf, far, t, 7)
	return x
}
