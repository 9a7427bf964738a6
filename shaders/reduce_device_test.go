package shaders_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
	"nxvk/shaders"
	"nxvk/test/devtest"
)

// deviceTargets are the device as it is, and with the kernel shapes and accumulators of other classes.
func deviceTargets(t *testing.T) map[string]kernel.Target {
	own := devtest.Open(t).Target
	discrete, slow := own, own
	discrete.Class, discrete.SlowF64 = kernel.Discrete, false
	slow.Class, slow.SlowF64 = kernel.Discrete, true
	return map[string]kernel.Target{"own": own, "discrete": discrete, "slow f64": slow}
}

// The device gives what the interpreter gives, for random reductions in every form.
func TestReduceOnDevice(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	ops := []graph.Op{graph.OpSum, graph.OpProduct, graph.OpReduceMax, graph.OpReduceMin, graph.OpAll, graph.OpAny, graph.OpArgMax, graph.OpArgMin}
	for name, target := range deviceTargets(t) {
		for i := range 24 {
			ty := graph.RealTypes[rng.IntN(len(graph.RealTypes))]
			if !has(target, ty) {
				continue
			}
			op := ops[i%len(ops)]
			shape := randomShape(rng, 3000)
			if i%10 == 0 {
				shape = graph.Shape{2, 6000}
			}
			x := newTensor(ty, shape, randomLayout(rng, shape), someValue(rng, ty, i%3 == 0))
			axes := randomAxes(rng, len(shape))
			out := graph.Spec{Type: ty, Shape: graph.Shape{len(groups(shape, axes))}}
			var p *shaders.Plan
			var err error
			switch op {
			case graph.OpArgMax, graph.OpArgMin:
				axis := rng.IntN(len(shape)+1) - 1
				out = graph.Spec{Type: graph.S32, Shape: graph.Shape{1}}
				if axis >= 0 {
					out.Shape = graph.Shape{shape.Size() / shape[axis]}
				}
				p, err = shaders.ArgReduce(target, op, x.Operand, out, axis, i%2 == 0)
			case graph.OpAll, graph.OpAny:
				out.Type = graph.U8
				p, err = shaders.Reduce(target, op, x.Operand, out, axes, 0)
			default:
				out.Type = aggregate(ty)
				p, err = shaders.Reduce(target, op, x.Operand, out, axes, graph.Acc(i%3))
			}
			if err != nil {
				t.Fatal(err)
			}
			devtest.Agree(t, p, [][]byte{x.buf}, out)
			if t.Failed() {
				t.Fatalf("%s: %s of %v %v over %v", name, op, x.Spec, x.Layout, axes)
			}
		}
	}
}

// The device gives what the interpreter gives, for random contractions in every form.
func TestDotOnDevice(t *testing.T) {
	for name, target := range deviceTargets(t) {
		rng := rand.New(rand.NewPCG(23, 24))
		for i := range 16 {
			ta := graph.RealTypes[rng.IntN(len(graph.RealTypes))]
			tb := ta
			if i%3 == 0 {
				tb = graph.RealTypes[rng.IntN(len(graph.RealTypes))]
			}
			if !has(target, ta) || !has(target, tb) || !has(target, merged(ta, tb)) {
				continue
			}
			c := randomContraction(rng, ta, tb, smallExtents(rng, 4, 3), smallExtents(rng, 70, 70), smallExtents(rng, 70, 70),
				smallExtents(rng, 40, 40), i%3 == 0, i%2 == 0)
			p, err := shaders.Dot(target, c.a.Operand, c.b.Operand, c.out, c.at)
			if c.refused(t, target, err) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			devtest.Agree(t, p, [][]byte{c.a.buf, c.b.buf}, c.out)
			if t.Failed() {
				t.Fatalf("%s: dot of %v %v by %v %v, %+v", name, c.a.Spec, c.a.Layout, c.b.Spec, c.b.Layout, c.at)
			}
		}
	}
}

// A sum of more elements than an f32 can count is as good as promised: plain f32 would stay at 2^24.
func TestSumBeyondF32(t *testing.T) {
	const n = 1<<24 + 1<<20
	d := devtest.Open(t)
	buf := make([]byte, 4*n)
	for i := range n {
		putElem(buf, i, graph.F32, 0x3f800000)
	}
	x := shaders.Operand{Spec: graph.Spec{Type: graph.F32, Shape: graph.Shape{n}}, Layout: graph.Contiguous(graph.Shape{n})}
	for name, target := range deviceTargets(t) {
		p, err := shaders.Reduce(target, graph.OpSum, x, graph.Spec{Type: graph.F32}, []int{0}, graph.AccCompensated)
		if err != nil {
			t.Fatal(err)
		}
		got := d.Plan(t, p, [][]byte{buf}, 4)
		if g := number(elemAt(got[0], 0, graph.F32), graph.F32); g != n {
			t.Errorf("%s: the sum of %d ones is %v", name, n, g)
		}
	}
}

// Columns of a tensor too large for caches are gathered in bands, and are as good.
func TestSumOfLongColumns(t *testing.T) {
	const rows, cols = 1500, 1024
	d := devtest.Open(t)
	rng := rand.New(rand.NewPCG(31, 32))
	buf := make([]byte, 4*rows*cols)
	sums, mags := make([]float64, cols), make([]float64, cols)
	for i := range rows * cols {
		bits := graph.FromFloat(rng.NormFloat64(), graph.F32)
		putElem(buf, i, graph.F32, bits)
		v := number(bits, graph.F32)
		sums[i%cols] += v
		mags[i%cols] += math.Abs(v)
	}
	x := shaders.Operand{Spec: graph.Spec{Type: graph.F32, Shape: graph.Shape{rows, cols}}}
	for name, target := range deviceTargets(t) {
		p, err := shaders.Reduce(target, graph.OpSum, x, graph.Spec{Type: graph.F32, Shape: graph.Shape{cols}}, []int{0}, graph.AccCompensated)
		if err != nil {
			t.Fatal(err)
		}
		got := d.Plan(t, p, [][]byte{buf}, 4*cols)
		for c := range cols {
			if e := math.Abs(number(elemAt(got[0], c, graph.F32), graph.F32) - sums[c]); e > mags[c]*0x1p-24 {
				t.Fatalf("%s: column %d is off by %g, of magnitudes %g", name, c, e, mags[c])
			}
		}
	}
}
