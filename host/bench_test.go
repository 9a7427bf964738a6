package host

import (
	"testing"

	"nxvk/graph"
)

// What an element costs, over a million of them.
func BenchmarkHost(b *testing.B) {
	const n = 1 << 20
	square := func(t graph.Type) graph.Spec { return spec(t, 1<<10, 1<<10) }
	f32, f64, s32, f16 := New(square(graph.F32)), New(square(graph.F64)), New(square(graph.S32)), New(square(graph.F16))
	for i := range n {
		storeFloats(f32.Data, graph.F32, i, []float64{float64(i%1000) / 100})
		storeFloats(f64.Data, graph.F64, i, []float64{float64(i%1000) / 100})
		storeFloats(f16.Data, graph.F16, i, []float64{float64(i%1000) / 100})
		storeInts(s32.Data, graph.S32, i, []int64{int64(i % 1000)}, false)
	}
	row := New(spec(graph.F32, 1<<10))
	rows := graph.Attrs{Axes: []int{1}}
	for _, c := range []struct {
		name string
		n    graph.Node
		in   []Tensor
	}{
		{"add f32", graph.Node{Op: "add", Spec: f32.Spec}, []Tensor{f32, f32}},
		{"add f32 row", graph.Node{Op: "add", Spec: f32.Spec}, []Tensor{f32, row}},
		{"add s32", graph.Node{Op: "add", Spec: s32.Spec}, []Tensor{s32, s32}},
		{"add f64", graph.Node{Op: "add", Spec: f64.Spec}, []Tensor{f64, f64}},
		{"add f16", graph.Node{Op: "add", Spec: f16.Spec}, []Tensor{f16, f16}},
		{"less f32", graph.Node{Op: "less", Spec: square(graph.U8)}, []Tensor{f32, f32}},
		{"select f32", graph.Node{Op: "select", Spec: f32.Spec}, []Tensor{s32, f32, f32}},
		{"as_type s32 f32", graph.Node{Op: "as_type", Spec: f32.Spec}, []Tensor{s32}},
		{"exp f32", graph.Node{Op: "exp", Spec: f32.Spec}, []Tensor{f32}},
		{"exp f64", graph.Node{Op: "exp", Spec: f64.Spec}, []Tensor{f64}},
		{"sin f64", graph.Node{Op: "sin", Spec: f64.Spec}, []Tensor{f64}},
		{"atan f64", graph.Node{Op: "atan", Spec: f64.Spec}, []Tensor{f64}},
		{"pow f32", graph.Node{Op: "pow", Spec: f32.Spec}, []Tensor{f32, f32}},
		{"transpose f32", graph.Node{Op: "transpose", Spec: f32.Spec, Attrs: graph.Attrs{Axes: []int{1, 0}}}, []Tensor{f32}},
		{"sum rows f32", graph.Node{Op: "sum", Spec: row.Spec, Attrs: rows}, []Tensor{f32}},
		{"sum all f32", graph.Node{Op: "sum", Spec: spec(graph.F32), Attrs: graph.Attrs{Axes: []int{0, 1}}}, []Tensor{f32}},
		{"sum columns f32", graph.Node{Op: "sum", Spec: row.Spec, Attrs: graph.Attrs{Axes: []int{0}}}, []Tensor{f32}},
		{"sort rows f32", graph.Node{Op: "sort", Spec: f32.Spec, Attrs: graph.Attrs{Axis: 1}}, []Tensor{f32}},
		{"cumulative_sum f32", graph.Node{Op: "cumulative_sum", Spec: f32.Spec, Attrs: graph.Attrs{Axis: 1}}, []Tensor{f32}},
		{"fft rows c64", graph.Node{Op: "fft", Spec: square(graph.C64), Attrs: graph.Attrs{Axis: 1, Length: 1 << 10}}, []Tensor{f32}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Run(&c.n, c.in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/element")
		})
	}
	m := New(spec(graph.F32, 256, 256))
	b.Run("dot f32 256", func(b *testing.B) {
		n := graph.Node{Op: graph.OpDot, Spec: m.Spec, Attrs: graph.Attrs{ContractA: []int{1}, ContractB: []int{0}}}
		for b.Loop() {
			if _, err := Run(&n, []Tensor{m, m}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(256*256*256), "ns/multiply")
	})
}
