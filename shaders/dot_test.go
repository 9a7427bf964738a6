package shaders_test

import (
	"errors"
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

// merged is the type of a dot of two types in Nx.
func merged(a, b graph.Type) graph.Type {
	if a == b {
		return a
	}
	rank := func(t graph.Type) int {
		switch t.Kind() {
		case graph.KindFloat:
			return 2
		case graph.KindSigned:
			return 1
		}
		return 0
	}
	if rank(a) < rank(b) {
		a, b = b, a
	}
	switch {
	case a.Float() && b.Float() && a.Size() == b.Size():
		if a.Size() == 1 {
			return graph.F8
		}
		return graph.F32
	case rank(a) == rank(b):
		if a.Bits() < b.Bits() {
			return b
		}
		return a
	case a.Float():
		return a
	}
	for _, t := range []graph.Type{graph.S4, graph.S8, graph.S16, graph.S32, graph.S64} {
		if t.Bits() >= a.Bits() && t.Bits() > b.Bits() {
			return t
		}
	}
	return graph.S64
}

// contractionCase is a random dot: axes of each operand in any order.
type contractionCase struct {
	a, b tensor
	out  graph.Spec
	at   graph.Attrs
}

func randomContraction(rng *rand.Rand, ta, tb graph.Type, batch, rows, cols, inner []int, hard, plain bool) contractionCase {
	place := func(parts ...[]int) (shape graph.Shape, at [][]int) {
		type axis struct{ part, i, n int }
		var free []axis
		at = make([][]int, len(parts))
		for p, part := range parts {
			at[p] = make([]int, len(part))
			for i, n := range part {
				if p == 0 { // batch axes lead
					at[0][i] = i
					shape = append(shape, n)
				} else {
					free = append(free, axis{p, i, n})
				}
			}
		}
		rng.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
		// Free axes keep their order; contraction axes may stand anywhere.
		next := 0
		for _, f := range free {
			if f.part == 1 {
				f.i, f.n = next, parts[1][next]
				next++
			}
			at[f.part][f.i] = len(shape)
			shape = append(shape, f.n)
		}
		return shape, at
	}
	sa, pa := place(batch, rows, inner)
	sb, pb := place(batch, cols, inner)
	layout := func(s graph.Shape) graph.Layout {
		if plain {
			return graph.Contiguous(s)
		}
		return randomLayout(rng, s)
	}
	c := contractionCase{
		a:   newTensor(ta, sa, layout(sa), someValue(rng, ta, hard)),
		b:   newTensor(tb, sb, layout(sb), someValue(rng, tb, hard)),
		out: graph.Spec{Type: merged(ta, tb), Shape: graph.Shape(slices.Concat(batch, rows, cols))},
		at:  graph.Attrs{ContractA: pa[2], ContractB: pb[2], BatchA: pa[0], BatchB: pb[0], Acc: graph.Acc(rng.IntN(3))},
	}
	return c
}

// refused reports whether a device without f64 leaves the dot to the processor, as it must where f32 would round an
// operand first.
func (c contractionCase) refused(t *testing.T, target kernel.Target, err error) bool {
	t.Helper()
	large := func(ty graph.Type) bool { return ty.Int() && ty.Size() >= 4 }
	must := !target.F64 && c.out.Type.Float() && (large(c.a.Type) || large(c.b.Type))
	var u *shaders.Unsupported
	if errors.As(err, &u) != must {
		t.Fatalf("dot of %v by %v: %v; must be refused: %v", c.a.Spec, c.b.Spec, err, must)
	}
	return must
}

// check runs a dot on the interpreter and holds every element against exact arithmetic.
func (c contractionCase) check(t *testing.T, name string) {
	t.Helper()
	target := targets[name]
	what := fmt.Sprintf("%s: dot of %v %v by %v %v, %+v", name, c.a.Spec, c.a.Layout, c.b.Spec, c.b.Layout, c.at)
	p, err := shaders.Dot(target, c.a.Operand, c.b.Operand, c.out, c.at)
	if c.refused(t, target, err) {
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	got, err := interpret(p, c.out.Shape.Size()*c.out.Type.Size(), c.a, c.b)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	as := operandRows(c.a.Shape, c.at.BatchA, c.at.ContractA)
	bs := operandRows(c.b.Shape, c.at.BatchB, c.at.ContractB)
	o := 0
	for batch := range as {
		for _, ra := range as[batch] {
			for _, rb := range bs[batch] {
				if err := c.checkElement(target, elemAt(got, o, c.out.Type), ra, rb); err != nil {
					t.Fatalf("%s: element %d: %v", what, o, err)
				}
				o++
			}
		}
	}
}

// operandRows yields, by batch and then by free index, the flat indices of an operand along its
// contraction.
func operandRows(shape graph.Shape, batch, contract []int) [][][]int {
	size := func(axes []int) int {
		n := 1
		for _, k := range axes {
			n *= shape[k]
		}
		return n
	}
	var free []int
	for k := range shape {
		if !slices.Contains(batch, k) && !slices.Contains(contract, k) {
			free = append(free, k)
		}
	}
	strides := shape.Strides()
	offset := func(axes []int, p int) (off int) {
		for i := len(axes) - 1; i >= 0; i-- {
			off += p % shape[axes[i]] * strides[axes[i]]
			p /= shape[axes[i]]
		}
		return off
	}
	out := make([][][]int, size(batch))
	for b := range out {
		out[b] = make([][]int, size(free))
		for f := range out[b] {
			for p := range size(contract) {
				out[b][f] = append(out[b][f], offset(batch, b)+offset(free, f)+offset(contract, p))
			}
		}
	}
	return out
}

func (c contractionCase) checkElement(target kernel.Target, got uint64, ra, rb []int) error {
	out := c.out.Type
	if !out.Float() {
		want := uint64(0)
		for i := range ra {
			want += graph.ConvertBits(c.a.elems[ra[i]], c.a.Type, out) * graph.ConvertBits(c.b.elems[rb[i]], c.b.Type, out)
		}
		if want = canonical(want, out); got != want {
			return fmt.Errorf("got %#x, want %#x", got, want)
		}
		return nil
	}
	sum, abs, flat, finite := new(big.Float).SetPrec(320), new(big.Float).SetPrec(320), 0.0, true
	small := (!target.F64 || target.SlowF64 || c.at.Acc == graph.AccF32) && out != graph.F64
	over := false // beyond the range of an F32 accumulator, infinities of both signs may meet
	for i := range ra {
		x, y := c.a.elems[ra[i]], c.b.elems[rb[i]]
		fx, fy := number(x, c.a.Type), number(y, c.b.Type)
		flat += fx * fy
		over = over || small && math.Abs(fx*fy) > math.MaxFloat32/64
		finite = finite && !math.IsNaN(fx) && !math.IsInf(fx, 0) && !math.IsNaN(fy) && !math.IsInf(fy, 0)
		if finite {
			p := new(big.Float).SetPrec(320).Mul(exact(x, c.a.Type), exact(y, c.b.Type))
			sum.Add(sum, p)
			abs.Add(abs, p.Abs(p))
		}
	}
	g := graph.ToFloat(got, out)
	if over {
		return nil
	}
	if !finite {
		if g != flat && !(math.IsNaN(g) && math.IsNaN(flat)) {
			return fmt.Errorf("got %v, want %v", g, flat)
		}
		return nil
	}
	eps := math.Exp2(-44) * float64(1+len(ra))
	switch {
	case out == graph.F64:
		eps = math.Exp2(-52) * float64(1+len(ra))
	case out == graph.F32 && c.at.Acc == graph.AccF32:
		eps = math.Exp2(-24) * float64(1+len(ra))
	case target.Class != kernel.CPU && len(ra) > 256:
		eps = math.Exp2(-24) // plain within tiles
	}
	slack := new(big.Float).Mul(abs, big.NewFloat(eps))
	if out != graph.F64 {
		slack.Add(slack, big.NewFloat(1e-44*float64(len(ra)))) // errors of products that are subnormal
	}
	if out == graph.F32 && c.at.Acc == graph.AccCompensated && !math.IsInf(g, 0) {
		// The promise, final rounding included.
		bound := new(big.Float).Mul(abs, big.NewFloat(math.Exp2(-24)))
		if target.Class != kernel.CPU && len(ra) > 256 {
			bound.Mul(bound, big.NewFloat(1.1)) // the tiles' errors on top of the rounding
		}
		bound.Add(bound, big.NewFloat(1e-44*float64(1+len(ra))))
		if e := new(big.Float).Sub(sum, big.NewFloat(g)); e.Abs(e).Cmp(bound) > 0 {
			return fmt.Errorf("got %v, want %s: off by %s, more than %s", g, sum.Text('g', 20), e.Text('g', 6), bound.Text('g', 6))
		}
		return nil
	}
	slack.Add(slack, big.NewFloat(math.SmallestNonzeroFloat64))
	if !within(got, out, sum, slack) {
		return fmt.Errorf("got %v, want %s, of magnitudes %s", g, sum.Text('g', 20), abs.Text('g', 6))
	}
	return nil
}

func smallExtents(rng *rand.Rand, max, most int) []int {
	out := []int{}
	n := 1
	for range rng.IntN(3) {
		d := 1 + rng.IntN(most)
		if n*d > max {
			break
		}
		n *= d
		out = append(out, d)
	}
	return out
}

func TestDot(t *testing.T) {
	for name, target := range targets {
		rng := rand.New(rand.NewPCG(9, 10))
		for range 120 {
			ta := graph.RealTypes[rng.IntN(len(graph.RealTypes))]
			tb := ta
			if rng.IntN(3) == 0 {
				tb = graph.RealTypes[rng.IntN(len(graph.RealTypes))]
			}
			if !has(target, ta) || !has(target, tb) || !has(target, merged(ta, tb)) {
				continue
			}
			c := randomContraction(rng, ta, tb, smallExtents(rng, 6, 3), smallExtents(rng, 40, 40), smallExtents(rng, 40, 40),
				smallExtents(rng, 60, 60), rng.IntN(3) == 0, rng.IntN(2) == 0)
			c.check(t, name)
		}
	}
}

// Shapes that take every form: tiles with and without edges, loads of every width, vectors, few results of
// long sums.
func TestDotForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	one := func(n int) []int { return []int{n} }
	for name, target := range targets {
		for _, s := range [][3][]int{
			{one(32), one(128), one(40)}, {one(40), one(72), one(16)}, {one(32), one(10), one(64)}, {one(33), one(65), one(17)},
			{one(1), one(50), one(30)}, {one(50), one(1), one(30)}, {one(3), one(50), one(30)}, {one(50), one(3), one(31)},
			{nil, nil, one(5000)}, {one(2), nil, one(3000)}, {one(9), one(9), one(1)}, {one(12), one(20), {5, 8}}, {one(20), one(24), one(900)}, {one(70), one(40), {3, 100}},
		} {
			for _, ty := range []graph.Type{graph.F32, graph.F16, graph.S8, graph.F64, graph.S64} {
				// The shapes are the same for every type: each target tries some.
				if has(target, ty) && (ty == graph.F32 || rng.IntN(4) == 0) {
					randomContraction(rng, ty, ty, nil, s[0], s[1], s[2], false, true).check(t, name)
				}
			}
		}
	}
}

// Training at any batch size makes no new kernel.
func TestDotKernelsShared(t *testing.T) {
	f32 := func(s ...int) shaders.Operand {
		return shaders.Operand{Spec: graph.Spec{Type: graph.F32, Shape: s}}
	}
	for name, target := range targets {
		seen := map[[32]byte]bool{}
		for batch := 16; batch < 36; batch++ {
			for i, c := range []struct {
				a, b   shaders.Operand
				ka, kb int
			}{
				{f32(batch, 784), f32(784, 128), 1, 0}, {f32(batch, 128), f32(128, 10), 1, 0},
				{f32(batch, 784), f32(batch, 128), 0, 0}, {f32(batch, 128), f32(batch, 10), 0, 0}, {f32(batch, 10), f32(128, 10), 1, 1},
			} {
				out := graph.Spec{Type: graph.F32, Shape: graph.Shape{c.a.Shape[1-c.ka], c.b.Shape[1-c.kb]}}
				p, err := shaders.Dot(target, c.a, c.b, out, graph.Attrs{ContractA: []int{c.ka}, ContractB: []int{c.kb}})
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range p.Launches {
					if err := kernel.Fits(l.Kernel, target); err != nil {
						t.Error(err)
					}
					h := l.Kernel.Hash()
					if batch > 16 && !seen[h] {
						t.Errorf("%s: a new kernel for case %d at batch size %d", name, i, batch)
					}
					seen[h] = true
				}
			}
		}
	}
}
