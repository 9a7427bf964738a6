package lower

import (
	"fmt"
	"testing"

	"nxvk/graph"
)

// convShape is a convolution of images, with its padding on both sides of both axes.
type convShape struct {
	name       string
	x, k       [4]int // batch, channels, height, width; output and input channels, height, width
	stride     int
	pad        int
	spread     int // of the input
	step       int // between elements of the kernel
	groups     int
	lastIsFast bool // channels lie side by side
}

func (c convShape) node() (graph.Node, [2]graph.Spec, int) {
	perm := []int{0, 1, 2, 3}
	if c.lastIsFast {
		perm = []int{0, 3, 1, 2}
	}
	place := func(d [4]int) graph.Spec {
		s := f32(0, 0, 0, 0)
		for i, a := range perm {
			s.Shape[a] = d[i]
		}
		return s
	}
	out := [4]int{c.x[0], c.k[0]}
	for i := 2; i < 4; i++ {
		out[i] = ((c.x[i]-1)*c.spread+1+2*c.pad-((c.k[i]-1)*c.step+1))/c.stride + 1
	}
	two := func(n int) []int { return []int{n, n} }
	at := graph.Attrs{Strides: two(c.stride), Pad: []graph.PadDim{{Lo: c.pad, Hi: c.pad}, {Lo: c.pad, Hi: c.pad}}, Conv: &graph.Conv{
		InputDilation: two(c.spread), KernelDilation: two(c.step), FeatureGroups: c.groups, BatchGroups: 1,
		InputPerm: perm, KernelPerm: []int{0, 1, 2, 3}, OutputPerm: perm,
	}}
	o := place(out)
	flops := 2 * o.Shape.Size() * c.k[1] * c.k[2] * c.k[3] / (c.spread * c.spread)
	return graph.Node{Op: graph.OpConv, Spec: o, Attrs: at}, [2]graph.Spec{place(c.x), {Type: graph.F32, Shape: c.k[:]}}, flops
}

var convShapes = []convShape{
	{"3x3", [4]int{4, 32, 28, 28}, [4]int{32, 32, 3, 3}, 1, 1, 1, 1, 1, false},
	{"3x3valid", [4]int{4, 32, 30, 30}, [4]int{32, 32, 3, 3}, 1, 0, 1, 1, 1, false},
	{"3x3nhwc", [4]int{4, 32, 28, 28}, [4]int{32, 32, 3, 3}, 1, 1, 1, 1, 1, true},
	{"3x3strided", [4]int{4, 32, 28, 28}, [4]int{64, 32, 3, 3}, 2, 1, 1, 1, 1, false},
	{"1x1", [4]int{4, 64, 28, 28}, [4]int{64, 64, 1, 1}, 1, 0, 1, 1, 1, false},
	{"first5x5", [4]int{32, 1, 28, 28}, [4]int{20, 1, 5, 5}, 1, 2, 1, 1, 1, false},
	{"depthwise", [4]int{4, 64, 28, 28}, [4]int{64, 1, 3, 3}, 1, 1, 1, 1, 64, false},
	{"depthwisevalid", [4]int{4, 64, 30, 30}, [4]int{64, 1, 3, 3}, 1, 0, 1, 1, 64, false},
	{"small7x7", [4]int{16, 64, 7, 7}, [4]int{64, 64, 3, 3}, 1, 1, 1, 1, 1, false},
	{"gradinput", [4]int{4, 64, 14, 14}, [4]int{32, 64, 3, 3}, 1, 1, 2, 1, 1, false},
	{"gradkernel", [4]int{32, 16, 28, 28}, [4]int{32, 16, 26, 26}, 1, 0, 1, 1, 1, false},
}

// BenchmarkConv reports what a convolution takes, and its operations by nanosecond.
func BenchmarkConv(b *testing.B) {
	for _, c := range convShapes {
		b.Run(c.name, func(b *testing.B) {
			n, in, flops := c.node()
			bench(b, one(n, in[0], in[1]), 0)
			b.ReportMetric(float64(flops)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
		})
	}
}

// BenchmarkConvAsDot is a product of matrices with as many operations as "3x3" above.
func BenchmarkConvAsDot(b *testing.B) {
	n := graph.Node{Op: graph.OpDot, Spec: f32(32, 3136), Attrs: graph.Attrs{ContractA: []int{1}, ContractB: []int{0}}}
	bench(b, one(n, f32(32, 288), f32(288, 3136)), 0)
	b.ReportMetric(float64(2*32*3136*288)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}

func BenchmarkGather(b *testing.B) {
	idx := graph.Spec{Type: graph.S32, Shape: graph.Shape{10000}}
	for _, w := range []int{1, 10, 64, 256} {
		n := graph.Node{Op: graph.OpTake, Spec: f32(10000, w), Attrs: graph.Attrs{Axis: 0}}
		b.Run(fmt.Sprint("rows", w), func(b *testing.B) { bench(b, one(n, f32(5000, w), idx), 8*10000*w) })
	}
	along := graph.Node{Op: graph.OpTakeAlongAxis, Spec: f32(1000, 100), Attrs: graph.Attrs{Axis: 1}}
	b.Run("along", func(b *testing.B) {
		bench(b, one(along, f32(1000, 100), graph.Spec{Type: graph.S32, Shape: graph.Shape{1000, 100}}), 8*100000)
	})
}

func BenchmarkIndexed(b *testing.B) {
	for _, c := range [][3]int{{5000, 10, 1}, {5000, 1000, 64}, {5000, 10000, 64}, {100, 10000, 64}, {100000, 100000, 1}} {
		idx := graph.Spec{Type: graph.S32, Shape: graph.Shape{c[1], 1}}
		for _, op := range []graph.Op{graph.OpIndexedAdd, graph.OpIndexedPut} {
			n := graph.Node{Op: op, Spec: f32(c[0], c[2]), Attrs: graph.Attrs{Axes: []int{0}}}
			b.Run(fmt.Sprintf("%s%dof%dx%d", op, c[1], c[0], c[2]), func(b *testing.B) {
				bench(b, one(n, f32(c[0], c[2]), idx, f32(c[1], c[2])), 0)
			})
		}
	}
}
