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

// convCase is a convolution with operands in some layouts.
type convCase struct {
	x, k tensor
	out  graph.Spec
	at   graph.Attrs
}

// newConv lays out a convolution of an input {batch, channels, spatial…} and a kernel {out, in, spatial…}, given in that
// order, with random permutations of axes; false where no window fits.
func newConv(rng *rand.Rand, tx, tk, to graph.Type, x, k []int, at graph.Attrs, plain bool) (convCase, bool) {
	cv := *at.Conv
	rank := len(x)
	perm := func() []int {
		if plain {
			return slices.Collect(func(yield func(int) bool) {
				for i := range rank {
					if !yield(i) {
						return
					}
				}
			})
		}
		return rng.Perm(rank)
	}
	cv.InputPerm, cv.KernelPerm, cv.OutputPerm = perm(), perm(), perm()
	out := []int{x[0] / cv.BatchGroups, k[0]}
	for s := range rank - 2 {
		have := (x[2+s]-1)*cv.InputDilation[s] + 1 + at.Pad[s].Lo + at.Pad[s].Hi - ((k[2+s]-1)*cv.KernelDilation[s] + 1)
		if have < 0 {
			return convCase{}, false
		}
		out = append(out, have/at.Strides[s]+1)
	}
	place := func(dims, perm []int) graph.Shape {
		s := make(graph.Shape, rank)
		for i, a := range perm {
			s[a] = dims[i]
		}
		return s
	}
	layout := func(s graph.Shape) graph.Layout {
		if plain {
			return graph.Contiguous(s)
		}
		return randomLayout(rng, s)
	}
	at.Conv = &cv
	xs, ks := place(x, cv.InputPerm), place(k, cv.KernelPerm)
	return convCase{
		x:   newTensor(tx, xs, layout(xs), someValue(rng, tx, false)),
		k:   newTensor(tk, ks, layout(ks), someValue(rng, tk, false)),
		out: graph.Spec{Type: to, Shape: place(out, cv.OutputPerm)},
		at:  at,
	}, true
}

func randomConv(rng *rand.Rand, tx, tk, to graph.Type) convCase {
	for {
		spatial := rng.IntN(4)
		most := []int{1, 40, 9, 5}[spatial]
		cv := &graph.Conv{FeatureGroups: 1, BatchGroups: 1}
		x, k := []int{1 + rng.IntN(4), 1 + rng.IntN(5)}, []int{1 + rng.IntN(10), 0}
		switch rng.IntN(4) {
		case 0:
			cv.FeatureGroups = 1 + rng.IntN(3)
		case 1:
			cv.BatchGroups = 1 + rng.IntN(3)
		}
		k[1] = x[1]
		x[0], x[1], k[0] = x[0]*cv.BatchGroups, x[1]*cv.FeatureGroups, k[0]*cv.BatchGroups*cv.FeatureGroups
		at := graph.Attrs{Conv: cv, Acc: graph.Acc(rng.IntN(3))}
		step := func() int {
			if rng.IntN(2) == 0 {
				return 1
			}
			return 1 + rng.IntN(4)
		}
		for range spatial {
			x, k = append(x, 1+rng.IntN(most)), append(k, 1+rng.IntN(4))
			pad := graph.PadDim{}
			if rng.IntN(2) == 0 {
				pad = graph.PadDim{Lo: rng.IntN(6) - 2, Hi: rng.IntN(6) - 2}
			}
			at.Strides, at.Pad = append(at.Strides, step()), append(at.Pad, pad)
			cv.InputDilation, cv.KernelDilation = append(cv.InputDilation, step()), append(cv.KernelDilation, step())
		}
		if rng.IntN(12) == 0 && spatial > 0 {
			cv.InputDilation[0] = 70 // more phases than are kept apart
		}
		if c, ok := newConv(rng, tx, tk, to, x, k, at, rng.IntN(2) == 0); ok {
			return c
		}
	}
}

// terms calls f with the flat indices of the elements of x and k that meet in each result.
func (c convCase) terms(f func(result int, pairs [][2]int)) {
	cv, rank := c.at.Conv, len(c.x.Shape)
	dims := func(s graph.Shape, perm []int) (d, st []int) {
		for _, a := range perm {
			d, st = append(d, s[a]), append(st, s.Strides()[a])
		}
		return d, st
	}
	xd, xs := dims(c.x.Shape, cv.InputPerm)
	kd, ks := dims(c.k.Shape, cv.KernelPerm)
	od, os := dims(c.out.Shape, cv.OutputPerm)
	for o := range c.out.Shape.Size() {
		at := make([]int, rank)
		result, rest := 0, o
		for i := rank - 1; i >= 0; i-- {
			at[i] = rest % od[i]
			rest /= od[i]
			result += at[i] * os[i]
		}
		perGroup := kd[0] / (cv.FeatureGroups * cv.BatchGroups)
		batch, channel := at[0], 0
		if group := at[1] / perGroup; cv.BatchGroups > 1 {
			batch += group * od[0]
		} else {
			channel = group * kd[1]
		}
		var pairs [][2]int
		for n := range c.k.Shape.Size() / kd[0] {
			xAt, kAt, rest, ok := batch*xs[0], at[1]*ks[0], n, true
			for i := rank - 1; i >= 1; i-- {
				e := rest % kd[i]
				rest /= kd[i]
				kAt += e * ks[i]
				if i == 1 {
					xAt += (channel + e) * xs[1]
					continue
				}
				s := i - 2
				p := at[i]*c.at.Strides[s] + e*cv.KernelDilation[s] - c.at.Pad[s].Lo
				ok = ok && p >= 0 && p%cv.InputDilation[s] == 0 && p/cv.InputDilation[s] < xd[i]
				xAt += p / cv.InputDilation[s] * xs[i]
			}
			if ok {
				pairs = append(pairs, [2]int{xAt, kAt})
			}
		}
		f(result, pairs)
	}
}

// verify holds a result against sums in f64, whose own errors are far below what is allowed.
func (c convCase) verify(target kernel.Target, out []byte) error {
	var failed error
	tiled := target.Class != kernel.CPU
	c.terms(func(o int, pairs [][2]int) {
		if failed != nil {
			return
		}
		sum, abs := 0.0, 0.0
		for _, p := range pairs {
			v := number(c.x.elems[p[0]], c.x.Type) * number(c.k.elems[p[1]], c.k.Type)
			sum, abs = sum+v, abs+math.Abs(v)
		}
		n := float64(1 + len(pairs))
		eps := 0x1p-24 * (1 + 1e-6*n)
		switch {
		case c.out.Type == graph.F64:
			eps = 0x1p-52 * n
		case c.at.Acc == graph.AccF32, c.out.Type != graph.F32:
			eps = 0x1p-24 * n
		case tiled && len(pairs) > 256:
			eps *= 1.1
		}
		slack := abs*eps + 1e-44*n
		switch c.out.Type {
		case graph.F16:
			slack += math.Abs(sum)*0x1p-11 + 0x1p-25
		case graph.BF16:
			slack += math.Abs(sum) * 0x1p-8
		}
		got := graph.ToFloat(elemAt(out, o, c.out.Type), c.out.Type)
		if over := math.Abs(sum) > 6e4 && c.out.Type == graph.F16 || abs > 1e37; !over && !(math.Abs(got-sum) <= slack) {
			failed = fmt.Errorf("element %d is %v, want %v, of magnitudes %v over %d terms", o, got, sum, abs, len(pairs))
		}
	})
	return failed
}

func (c convCase) String() string {
	return fmt.Sprintf("conv of %v %v by %v %v to %v, %+v %+v", c.x.Spec, c.x.Layout, c.k.Spec, c.k.Layout, c.out, c.at, *c.at.Conv)
}

var convTypes = [][3]graph.Type{
	{graph.F32, graph.F32, graph.F32}, {graph.F64, graph.F64, graph.F64}, {graph.F16, graph.F16, graph.F16}, {graph.BF16, graph.BF16, graph.BF16},
	{graph.S8, graph.F32, graph.F32}, {graph.U8, graph.S16, graph.F32}, {graph.F32, graph.F64, graph.F64},
}

func TestConv(t *testing.T) {
	for name, target := range targets {
		rng := rand.New(rand.NewPCG(21, 22))
		for i := range 28 {
			types := convTypes[i%len(convTypes)]
			if !has(target, types[2]) {
				continue
			}
			c := randomConv(rng, types[0], types[1], types[2])
			p, err := shaders.Conv(target, c.x.Operand, c.k.Operand, c.out, c.at)
			if err != nil {
				t.Fatalf("%s: %v: %v", name, c, err)
			}
			out, err := interpret(p, c.out.Shape.Size()*c.out.Type.Size(), c.x, c.k)
			if err == nil {
				err = c.verify(target, out)
			}
			if err != nil {
				t.Fatalf("%s: %v: %v", name, c, err)
			}
		}
	}
}

// Shapes of networks, whole and in part: images in tiles, depthwise, one by one, the gradients of a strided one.
func TestConvOnDevice(t *testing.T) {
	d := devtest.Open(t)
	rng := rand.New(rand.NewPCG(23, 24))
	ones := []int{1, 1}
	same := []graph.PadDim{{Lo: 1, Hi: 1}, {Lo: 1, Hi: 1}}
	var cases []convCase
	add := func(x, k []int, at graph.Attrs, plain bool) {
		if c, ok := newConv(rng, graph.F32, graph.F32, graph.F32, x, k, at, plain); ok {
			cases = append(cases, c)
		} else {
			t.Fatalf("no window of %v fits into %v", k, x)
		}
	}
	conv := func(fg, bg int) *graph.Conv {
		return &graph.Conv{FeatureGroups: fg, BatchGroups: bg, InputDilation: ones, KernelDilation: ones}
	}
	for _, plain := range []bool{true, false} {
		add([]int{2, 8, 8, 9}, []int{9, 8, 3, 3}, graph.Attrs{Strides: ones, Pad: same, Conv: conv(1, 1)}, plain)
		add([]int{3, 16, 6, 6}, []int{12, 16, 1, 1}, graph.Attrs{Strides: ones, Pad: make([]graph.PadDim, 2), Conv: conv(1, 1)}, plain)
		add([]int{2, 12, 9, 9}, []int{12, 1, 3, 3}, graph.Attrs{Strides: []int{2, 2}, Pad: same, Conv: conv(12, 1)}, plain)
		add([]int{4, 6, 7, 7}, []int{8, 6, 3, 3}, graph.Attrs{Strides: ones, Pad: same, Conv: conv(1, 2)}, plain)
		grad := conv(1, 1)
		grad.InputDilation = []int{2, 2}
		add([]int{2, 9, 5, 5}, []int{8, 9, 3, 3}, graph.Attrs{Strides: ones, Pad: same, Conv: grad}, plain)
		weights := conv(1, 1)
		weights.KernelDilation = []int{2, 2}
		add([]int{3, 9, 11, 11}, []int{6, 9, 5, 5}, graph.Attrs{Strides: ones, Pad: same, Conv: weights}, plain)
	}
	classes := []kernel.Class{d.Target.Class, kernel.Discrete}
	for i := range 9 {
		types := convTypes[i%len(convTypes)]
		cases = append(cases, randomConv(rng, types[0], types[1], types[2]))
	}
	for _, c := range cases {
		for _, class := range classes {
			target := d.Target
			target.Class = class
			if !has(target, c.out.Type) || !has(target, c.x.Type) {
				continue
			}
			p, err := shaders.Conv(target, c.x.Operand, c.k.Operand, c.out, c.at)
			if err != nil {
				t.Fatalf("%v: %v", c, err)
			}
			out := devtest.Agree(t, p, [][]byte{c.x.buf, c.k.buf}, c.out)
			if err := c.verify(target, out[0]); err != nil {
				t.Fatalf("class %v: %v: %v", class, c, err)
			}
		}
	}
}
