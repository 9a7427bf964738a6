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
	"nxvk/test/devtest"
)

// fftCase is a random transform.
type fftCase struct {
	op     graph.Op
	x      shaders.Operand
	buf    []byte
	elems  []complex128 // of x, in order
	axis   int
	length int
	out    graph.Spec
}

func (c fftCase) String() string {
	return fmt.Sprintf("%s of %v %v, axis %d, length %d, to %v", c.op, c.x.Spec, c.x.Layout, c.axis, c.length, c.out)
}

const testEps = 1e-10

func (c fftCase) plan(t kernel.Target) (*shaders.Plan, error) {
	return shaders.FFT(t, c.op, c.x, c.out, c.axis, c.length, testEps)
}

func (c fftCase) bytes() int { return c.out.Shape.Size() * c.out.Type.Size() }

func newFFT(rng *rand.Rand, op graph.Op, ty graph.Type, shape graph.Shape, axis, length int, plain bool) fftCase {
	c := fftCase{op: op, axis: axis, length: length}
	l := randomLayout(rng, shape)
	if plain {
		l = graph.Contiguous(shape)
	}
	part := ty.Part()
	if ty.Complex() {
		parts := graph.Layout{Offset: 2 * l.Offset}
		for _, s := range l.Strides {
			parts.Strides = append(parts.Strides, 2*s)
		}
		parts.Strides = append(parts.Strides, 1)
		x := newTensor(part, append(slices.Clone(shape), 2), parts, someValue(rng, part, false))
		for i := 0; i < len(x.elems); i += 2 {
			c.elems = append(c.elems, complex(number(x.elems[i], part), number(x.elems[i+1], part)))
		}
		c.buf = x.buf
	} else {
		x := newTensor(ty, shape, l, someValue(rng, ty, false))
		for _, e := range x.elems {
			c.elems = append(c.elems, complex(number(e, ty), 0))
		}
		c.buf = x.buf
	}
	c.x = shaders.Operand{Spec: graph.Spec{Type: ty, Shape: shape}, Layout: l}
	c.out = graph.Spec{Type: graph.C64, Shape: slices.Clone(shape)}
	if part == graph.F64 {
		c.out.Type = graph.C128
	}
	c.out.Shape[axis] = length
	switch op {
	case graph.OpRFFT:
		c.out.Shape[axis] = length/2 + 1
	case graph.OpIRFFT:
		c.out.Type = c.out.Type.Part()
	}
	return c
}

// dft sums by the definition, with exact roots, in f64.
func dft(row []complex128, inverse bool) []complex128 {
	n := len(row)
	out := make([]complex128, n)
	roots := make([]complex128, n)
	for k := range roots {
		s, c := math.Sincos(2 * math.Pi * float64(k) / float64(n))
		roots[k] = complex(c, -s)
		if inverse {
			roots[k] = complex(c, s)
		}
	}
	for k := range out {
		for i, x := range row {
			out[k] += x * roots[i*k%n]
		}
		if inverse {
			out[k] /= complex(float64(n), 0)
		}
	}
	return out
}

// check holds results to the definition: off by the rounding of the result's type and little of the row's norm.
func (c fftCase) check(got []byte) error {
	outs := rowsOf(c.out.Shape, c.axis)
	for r, in := range rowsOf(c.x.Shape, c.axis) {
		row := make([]complex128, c.length)
		inverse := c.op == graph.OpIFFT || c.op == graph.OpIRFFT
		if c.op == graph.OpIRFFT {
			for i := range row {
				at := i
				if i > c.length/2 {
					at = c.length - i
				}
				if at < len(in) {
					row[i] = c.elems[in[at]]
				}
				if at != i {
					row[i] = complex(real(row[i]), -imag(row[i]))
				}
			}
		} else {
			for i := range min(len(row), len(in)) {
				row[i] = c.elems[in[i]]
			}
		}
		norm := 0.0
		for _, v := range row {
			norm += real(v)*real(v) + imag(v)*imag(v)
		}
		norm = math.Sqrt(norm)
		if !inverse {
			norm *= math.Sqrt(float64(c.length))
		}
		part := c.out.Type.Part()
		ulp := 0.0
		if part == graph.F32 {
			ulp = 0x1p-24
		}
		near := func(g, w float64) bool {
			return g == w || math.Abs(g-w) <= ulp*math.Abs(w)*(1+1e-6)+1e-14*norm+testEps*1.0001 && (math.Abs(g-w) <= ulp*math.Abs(w)*(1+1e-6)+1e-14*norm || g == 0)
		}
		want := dft(row, inverse)
		for i, at := range outs[r] {
			if c.out.Type.Complex() {
				re, im := number(elemAt(got, 2*at, part), part), number(elemAt(got, 2*at+1, part), part)
				if !near(re, real(want[i])) || !near(im, imag(want[i])) {
					return fmt.Errorf("row %d, element %d: got %g %+gi, want %g", r, i, re, im, want[i])
				}
			} else if g := number(elemAt(got, at, part), part); !near(g, real(want[i])) {
				return fmt.Errorf("row %d, element %d: got %g, want %g", r, i, g, real(want[i]))
			}
		}
	}
	return nil
}

var fftLengths = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 23, 24, 30, 31, 32, 33, 48, 64, 67, 77, 97, 100, 128, 169, 240, 256, 257}

func randomFFT(rng *rand.Rand, length int) fftCase {
	shape := graph.Shape{}
	for range 1 + rng.IntN(3) {
		shape = append(shape, 1+rng.IntN(4))
	}
	if rng.IntN(4) == 0 {
		shape[len(shape)-1] = 8 + rng.IntN(5)
	}
	axis := rng.IntN(len(shape))
	shape[axis] = max(1, length+[]int{0, 0, 0, 3, -2, -length / 2}[rng.IntN(6)])
	op := []graph.Op{graph.OpFFT, graph.OpIFFT, graph.OpRFFT, graph.OpIRFFT}[rng.IntN(4)]
	types := []graph.Type{graph.F32, graph.F64, graph.C64, graph.C64, graph.C128, graph.S16, graph.U8, graph.F16, graph.BF16, graph.S64}
	ty := types[rng.IntN(len(types))]
	if op == graph.OpRFFT {
		ty = ty.Part()
	}
	return newFFT(rng, op, ty, shape, axis, length, false)
}

func TestFFT(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 72))
	for _, name := range []string{"cpu", "discrete"} {
		for _, length := range fftLengths {
			for range 2 {
				c := randomFFT(rng, length)
				p, err := c.plan(targets[name])
				if err != nil {
					t.Fatalf("%s: %v: %v", name, c, err)
				}
				got, err := devtest.Interpret(&kernel.Machine{Num: kernel.Exact}, p, [][]byte{c.buf}, c.bytes())
				if err != nil {
					t.Fatalf("%s: %v: %v", name, c, err)
				}
				if err := c.check(got[0]); err != nil {
					t.Fatalf("%s: %v: %v", name, c, err)
				}
			}
		}
	}
}

// withF64 is the device, if it has the f64 in which transforms are computed. On others it holds that they are the
// processor's.
func withF64(t *testing.T) *devtest.Device {
	d := devtest.Open(t)
	if d.Target.F64 {
		return d
	}
	var u *shaders.Unsupported
	c := randomFFT(rand.New(rand.NewPCG(75, 76)), 12)
	if _, err := c.plan(d.Target); !errors.As(err, &u) {
		t.Fatalf("%v: without f64 it is the processor's, got %v", c, err)
	}
	return nil
}

// The device gives what the interpreter gives, in every form.
func TestFFTOnDevice(t *testing.T) {
	rng := rand.New(rand.NewPCG(73, 74))
	if withF64(t) == nil {
		return
	}
	for name, target := range deviceTargets(t) {
		if name == "slow f64" {
			continue // the same plans
		}
		for i := range 12 {
			c := randomFFT(rng, fftLengths[(7*i+3)%len(fftLengths)])
			p, err := c.plan(target)
			if err != nil {
				t.Fatal(err)
			}
			parts := graph.Spec{Type: c.out.Type.Part(), Shape: graph.Shape{c.bytes() / c.out.Type.Part().Size()}}
			got := devtest.Agree(t, p, [][]byte{c.buf}, parts)
			if err := c.check(got[0]); err != nil || t.Failed() {
				t.Fatalf("%s: %v: %v", name, c, err)
			}
		}
	}
}

// Roots are the nearest f64 to the true values.
func TestRoots(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 7, 12, 360, 1000, 4096, 1 << 20, 999983} {
		for _, k := range []int{0, 1, 2, n / 8, n / 6, n / 4, n/3 + 1, n / 2, n - 1, 12345 % n} {
			re, im := shaders.ExactRoot(k, n)
			wantRe, wantIm := bigRoot(k%n, n)
			if re != wantRe || im != wantIm {
				t.Errorf("root %d of %d is %v %v, want %v %v", k, n, re, im, wantRe, wantIm)
			}
		}
	}
}

// bigRoot is exp(-2πi k/n) by its power series in 300 bits.
func bigRoot(k, n int) (re, im float64) {
	f := func() *big.Float { return new(big.Float).SetPrec(300) }
	pi, _ := f().SetString("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")
	x := f().Mul(pi, f().Quo(f().SetInt64(int64(-2*k)), f().SetInt64(int64(n))))
	sum := [2]*big.Float{f().SetInt64(1), f().Set(x)}
	term := f().Set(x)
	for i := int64(2); i < 80; i++ {
		term.Quo(f().Mul(term, x), f().SetInt64(i))
		if i/2%2 == 1 {
			term.Neg(term)
		}
		sum[i%2].Add(sum[i%2], term)
		if i/2%2 == 1 {
			term.Neg(term)
		}
	}
	clean := func(v *big.Float) float64 {
		if v.Sign() != 0 && v.MantExp(nil) < -200 {
			return 0
		}
		g, _ := v.Float64()
		return g
	}
	return clean(sum[0]), clean(sum[1])
}

// Long transforms are as exact as the types allow: their results, at a few places, are held to sums with exact products.
func TestLongFFT(t *testing.T) {
	d := withF64(t)
	if d == nil {
		return
	}
	rng := rand.New(rand.NewPCG(75, 76))
	for _, c := range []struct {
		ty     graph.Type
		length int
	}{{graph.C64, 1 << 16}, {graph.C128, 1 << 16}, {graph.C64, 65537}, {graph.C128, 65537}, {graph.C128, 3 * 5 * 7 * 11 * 13}} {
		worst := longFFT(t, d, rng, c.ty, c.length)
		t.Logf("%v, length %d: off by %.2g of the root mean square of the results", c.ty, c.length, worst)
		most := 0x1p-23
		if c.ty == graph.C128 {
			most = 0x1p-53 * math.Log2(float64(c.length))
		}
		if worst > most {
			t.Errorf("%v, length %d: off by %g of the root mean square of the results, at most %g", c.ty, c.length, worst, most)
		}
	}
}

// longFFT is the largest error of results of one row, in units of their root mean square.
func longFFT(t *testing.T, d *devtest.Device, rng *rand.Rand, ty graph.Type, n int) float64 {
	t.Helper()
	part := ty.Part()
	x := newTensor(part, graph.Shape{n, 2}, graph.Contiguous(graph.Shape{n, 2}), func() uint64 { return graph.FromFloat(rng.NormFloat64(), part) })
	spec := graph.Spec{Type: ty, Shape: graph.Shape{n}}
	p, err := shaders.FFT(d.Target, graph.OpFFT, shaders.Operand{Spec: spec, Layout: graph.Contiguous(spec.Shape)}, spec, 0, n, testEps)
	if err != nil {
		t.Fatal(err)
	}
	got := d.Plan(t, p, [][]byte{x.buf}, n*ty.Size())[0]
	norm := 0.0
	for _, e := range x.elems {
		norm += number(e, part) * number(e, part)
	}
	worst := 0.0
	for range 12 {
		k := rng.IntN(n)
		var re, im pairSum
		for i := range n {
			a, b := number(x.elems[2*i], part), number(x.elems[2*i+1], part)
			c, s := shaders.ExactRoot(int(int64(i)*int64(k)%int64(n)), n)
			re.add(a, c)
			re.add(-b, s)
			im.add(a, s)
			im.add(b, c)
		}
		e := math.Hypot(number(elemAt(got, 2*k, part), part)-re.hi-re.lo, number(elemAt(got, 2*k+1, part), part)-im.hi-im.lo)
		worst = max(worst, e/math.Sqrt(norm))
	}
	return worst
}

// pairSum sums exact products in two f64.
type pairSum struct{ hi, lo float64 }

func (s *pairSum) add(x, y float64) {
	p := x * y
	e := math.FMA(x, y, -p)
	t := s.hi + p
	z := t - s.hi
	e += (s.hi - (t - z)) + (p - z)
	s.hi, s.lo = t, s.lo+e
}
