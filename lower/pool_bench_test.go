package lower

import (
	"fmt"
	"testing"

	"nxvk/graph"
)

// Pooling of a LeNet, forward and backward, beside a copy of what it reads and writes.
func BenchmarkPool(b *testing.B) {
	for _, c := range []struct{ batch, side, channels int }{{32, 28, 6}, {32, 112, 64}} {
		x := f32(c.batch, c.side, c.side, c.channels)
		out := f32(c.batch, c.side/2, c.side/2, c.channels)
		at := graph.Attrs{Window: []int{1, 2, 2, 1}, Strides: []int{1, 2, 2, 1}, Pad: make([]graph.PadDim, 4)}
		dilated := at
		dilated.Dilation = []int{1, 1, 1, 1}
		bytes := 4 * (x.Shape.Size() + out.Shape.Size())
		name := func(what string) string { return fmt.Sprintf("%s/%dx%dx%d", what, c.batch, c.side, c.channels) }
		for _, op := range []graph.Op{graph.OpWindowMax, graph.OpWindowSum} {
			b.Run(name(string(op)), func(b *testing.B) {
				bench(b, one(graph.Node{Op: op, Spec: graph.Spec{Type: graph.F32, Shape: out.Shape}, Attrs: dilated}, x), bytes)
			})
		}
		b.Run(name("scatter"), func(b *testing.B) {
			bench(b, one(graph.Node{Op: graph.OpWindowScatterMax, Spec: x, Attrs: at}, x, out, f32()), 2*bytes)
		})
		half := f32(bytes / 8)
		b.Run(name("copy"), func(b *testing.B) {
			bench(b, one(graph.Node{Op: "negate", Spec: half}, half), bytes)
		})
		wide := at
		wide.Window, wide.Strides, wide.Dilation = []int{1, 3, 3, 1}, []int{1, 1, 1, 1}, []int{1, 1, 1, 1}
		wide.Pad = []graph.PadDim{{}, {Lo: 1, Hi: 1}, {Lo: 1, Hi: 1}, {}}
		b.Run(name("max3x3"), func(b *testing.B) {
			bench(b, one(graph.Node{Op: graph.OpWindowMax, Spec: x, Attrs: wide}, x), 2*bytes)
		})
		b.Run(name("sum3x3"), func(b *testing.B) {
			bench(b, one(graph.Node{Op: graph.OpWindowSum, Spec: x, Attrs: wide}, x), 2*bytes)
		})
	}
}
