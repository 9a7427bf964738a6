package shaders_test

import (
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
	"nxvk/shaders"
	"nxvk/test/devtest"
)

// rowsOf lists the flat indices of the elements of each row along an axis, in order.
func rowsOf(shape graph.Shape, axis int) [][]int {
	inner := graph.Shape(shape[axis+1:]).Size()
	n := shape[axis]
	rows := make([][]int, shape.Size()/n)
	for r := range rows {
		for i := range n {
			rows[r] = append(rows[r], r/inner*inner*n+i*inner+r%inner)
		}
	}
	return rows
}

// extreme is the greatest or least of vs: a NaN where there is one, and -0 is less than 0.
func extreme(t graph.Type, vs []uint64, max bool) uint64 {
	best := vs[0]
	for _, v := range vs[1:] {
		if beats(t, v, best, max, false) {
			best = v
		} else if t.Float() && number(v, t) == 0 && number(best, t) == 0 && math.Signbit(number(v, t)) != max {
			best = v
		}
	}
	if t.Float() && math.IsNaN(number(best, t)) {
		return nans[t]
	}
	return best
}

func checkScan(op graph.Op, x tensor, axis int, reverse bool, acc graph.Acc, got []byte) error {
	for _, row := range rowsOf(x.Shape, axis) {
		var vs []uint64
		for i := range row {
			at := row[i]
			if reverse {
				at = row[len(row)-1-i]
			}
			vs = append(vs, x.elems[at])
			if len(row) > 300 && i%61 != 0 && i != len(row)-1 {
				continue
			}
			g := elemAt(got, at, x.Type)
			switch op {
			case graph.OpCumulativeMax, graph.OpCumulativeMin:
				if want := extreme(x.Type, vs, op == graph.OpCumulativeMax); g != want {
					return fmt.Errorf("position %d: got %#x, want %#x", i, g, want)
				}
			default:
				fold := map[graph.Op]graph.Op{graph.OpCumulativeSum: graph.OpSum, graph.OpCumulativeProduct: graph.OpProduct}[op]
				if err := checkFold(fold, g, x.Type, x.Type, vs, acc); err != nil {
					return fmt.Errorf("position %d: %w", i, err)
				}
				if i == 0 && !(x.Type.Float() && math.IsNaN(number(vs[0], x.Type))) && g != vs[0] {
					return fmt.Errorf("the first of a row is %#x, got %#x", vs[0], g)
				}
			}
		}
	}
	return nil
}

var scanOps = []graph.Op{graph.OpCumulativeSum, graph.OpCumulativeProduct, graph.OpCumulativeMax, graph.OpCumulativeMin}

func randomScan(rng *rand.Rand, types []graph.Type) (graph.Op, tensor, int, bool, graph.Acc) {
	ty := types[rng.IntN(len(types))]
	shape := randomShape(rng, 3000)
	if len(shape) == 0 {
		shape = graph.Shape{1 + rng.IntN(200)}
	}
	axis := rng.IntN(len(shape))
	switch rng.IntN(10) {
	case 0:
		shape[axis] = 5000
		for k := range shape {
			if k != axis {
				shape[k] = 1 + rng.IntN(2)
			}
		}
	case 1:
		shape = graph.Shape{3000 + rng.IntN(3000)}
		axis = 0
	}
	x := newTensor(ty, shape, randomLayout(rng, shape), someValue(rng, ty, rng.IntN(2) == 0))
	return scanOps[rng.IntN(len(scanOps))], x, axis, rng.IntN(2) == 0, graph.Acc(rng.IntN(3))
}

func TestScan(t *testing.T) {
	for name, target := range targets {
		rng := rand.New(rand.NewPCG(51, 52))
		for range 50 {
			op, x, axis, reverse, acc := randomScan(rng, graph.RealTypes)
			if !has(target, x.Type) {
				continue
			}
			what := fmt.Sprintf("%s: %s of %v %v, axis %d, reverse %v, acc %d", name, op, x.Spec, x.Layout, axis, reverse, acc)
			p, err := shaders.Scan(target, op, x.Operand, x.Spec, axis, reverse, acc)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			got, err := interpret(p, len(x.elems)*x.Type.Size(), x)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if err := checkScan(op, x, axis, reverse, acc, got); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
}

// The device gives what the interpreter gives, in every form.
func TestScanOnDevice(t *testing.T) {
	for name, target := range deviceTargets(t) {
		rng := rand.New(rand.NewPCG(53, 54))
		for range 16 {
			op, x, axis, reverse, acc := randomScan(rng, graph.RealTypes)
			if !has(target, x.Type) {
				continue
			}
			p, err := shaders.Scan(target, op, x.Operand, x.Spec, axis, reverse, acc)
			if err != nil {
				t.Fatal(err)
			}
			devtest.Agree(t, p, [][]byte{x.buf}, x.Spec)
			if t.Failed() {
				t.Fatalf("%s: %s of %v %v, axis %d", name, op, x.Spec, x.Layout, axis)
			}
		}
	}
}

// A running sum of more elements than an f32 can count keeps its promise at every position.
func TestLongScan(t *testing.T) {
	const n = 1 << 20
	rng := rand.New(rand.NewPCG(55, 56))
	d := devtest.Open(t)
	x := newTensor(graph.F32, graph.Shape{n}, graph.Contiguous(graph.Shape{n}), func() uint64 { return graph.FromFloat(rng.NormFloat64(), graph.F32) })
	for name, target := range deviceTargets(t) {
		p, err := shaders.Scan(target, graph.OpCumulativeSum, x.Operand, x.Spec, 0, false, graph.AccCompensated)
		if err != nil {
			t.Fatal(err)
		}
		got := d.Plan(t, p, [][]byte{x.buf}, 4*n)[0]
		sum, mag := 0.0, 0.0
		for i, v := range x.elems {
			f := number(v, graph.F32)
			sum += f
			mag += math.Abs(f)
			if e := math.Abs(number(elemAt(got, i, graph.F32), graph.F32) - sum); e > mag*0x1p-24+1e-12*mag {
				t.Fatalf("%s: position %d is off by %g, of magnitudes %g", name, i, e, mag)
			}
		}
	}
}

// A running product of complex numbers is that of f64 numbers, rounded; infinities stay what they are in the first.
func TestComplexScan(t *testing.T) {
	for name, target := range deviceTargets(t) {
		rng := rand.New(rand.NewPCG(57, 58))
		for _, ty := range []graph.Type{graph.C64, graph.C128} {
			for _, shape := range []graph.Shape{{3, 7, 2}, {2, 700}} {
				part, axis := ty.Part(), 1
				l := randomLayout(rng, shape)
				parts := graph.Layout{Offset: 2 * l.Offset}
				for _, s := range l.Strides {
					parts.Strides = append(parts.Strides, 2*s)
				}
				parts.Strides = append(parts.Strides, 1)
				x := newTensor(part, append(slices.Clone(shape), 2), parts, func() uint64 {
					return graph.FromFloat(math.Cos(rng.Float64()*6), part)
				})
				out := graph.Spec{Type: ty, Shape: shape}
				p, err := shaders.Scan(target, graph.OpCumulativeProduct, shaders.Operand{Spec: out, Layout: l}, out, axis, true, 0)
				if !target.F64 {
					var u *shaders.Unsupported
					if !errors.As(err, &u) {
						t.Fatalf("%v: without f64 it is the processor's, got %v", ty, err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				got := devtest.Agree(t, p, [][]byte{x.buf}, graph.Spec{Type: part, Shape: append(slices.Clone(shape), 2)})[0]
				for _, row := range rowsOf(shape, axis) {
					slices.Reverse(row)
					product := complex(1, 0)
					for i, at := range row {
						product *= complex(number(x.elems[2*at], part), number(x.elems[2*at+1], part))
						g := complex(number(elemAt(got, 2*at, part), part), number(elemAt(got, 2*at+1, part), part))
						if cmplx.Abs(g-product) > cmplx.Abs(product)*(0x1p-24+float64(i)*0x1p-51)+1e-44 {
							t.Fatalf("%s: %v of %v: position %d is %v, want %v", name, ty, shape, i, g, product)
						}
					}
				}
			}
		}
	}
	inf := math.Inf(1)
	x := shaders.Operand{Spec: graph.Spec{Type: graph.C64, Shape: graph.Shape{1}}}
	p, err := shaders.Scan(targets["cpu"], graph.OpCumulativeProduct, x, x.Spec, 0, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	in := make([]byte, 8)
	putElem(in, 0, graph.F32, graph.FromFloat(inf, graph.F32))
	got, err := devtest.Interpret(&kernel.Machine{Num: kernel.Exact}, p, [][]byte{in}, 8)
	if err != nil || !slices.Equal(got[0], in) {
		t.Fatalf("inf+0i became %v, %v", got, err)
	}
}
