package shaders_test

import (
	"testing"

	"nxvk/graph"
	"nxvk/shaders"
	"nxvk/test/devtest"
)

func fftOf(d *devtest.Device, length, axis int) func(x shaders.Operand) (*shaders.Plan, error) {
	return func(x shaders.Operand) (*shaders.Plan, error) {
		return shaders.FFT(d.Target, graph.OpFFT, x, x.Spec, axis, length, 1e-10)
	}
}

// BenchmarkSort times sorts, scans and transforms on the device.
func BenchmarkSort(b *testing.B) {
	d := devtest.Open(b)
	row := func(t graph.Type, s ...int) graph.Spec { return graph.Spec{Type: t, Shape: s} }
	bytes := func(s graph.Spec) int { return s.Shape.Size() * s.Type.Size() }
	plans := []struct {
		name string
		x    graph.Spec
		plan func(x shaders.Operand) (*shaders.Plan, error)
		outs []graph.Spec
	}{
		{"sort 1M f32", row(graph.F32, 1<<20), func(x shaders.Operand) (*shaders.Plan, error) {
			return shaders.Sort(d.Target, x, x.Spec, 0, false)
		}, []graph.Spec{row(graph.F32, 1<<20)}},
		{"argsort 1M f32", row(graph.F32, 1<<20), func(x shaders.Operand) (*shaders.Plan, error) {
			return shaders.ArgSort(d.Target, x, row(graph.S32, 1<<20), 0, false)
		}, []graph.Spec{row(graph.S32, 1<<20)}},
		{"sort 4096 rows of 256 f32", row(graph.F32, 4096, 256), func(x shaders.Operand) (*shaders.Plan, error) {
			return shaders.Sort(d.Target, x, x.Spec, 1, false)
		}, []graph.Spec{row(graph.F32, 4096, 256)}},
		{"sort 32768 rows of 32 f32", row(graph.F32, 32768, 32), func(x shaders.Operand) (*shaders.Plan, error) {
			return shaders.Sort(d.Target, x, x.Spec, 1, false)
		}, []graph.Spec{row(graph.F32, 32768, 32)}},
		{"sort 256 columns of 4096 f32", row(graph.F32, 4096, 256), func(x shaders.Operand) (*shaders.Plan, error) {
			return shaders.Sort(d.Target, x, x.Spec, 0, false)
		}, []graph.Spec{row(graph.F32, 4096, 256)}},
		{"top 10 of 1M f32", row(graph.F32, 1<<20), func(x shaders.Operand) (*shaders.Plan, error) {
			return shaders.TopK(d.Target, x, row(graph.F32, 10), row(graph.S32, 10))
		}, []graph.Spec{row(graph.F32, 10), row(graph.S32, 10)}},
		{"cumulative_sum of 10M f32", row(graph.F32, 10_000_000), func(x shaders.Operand) (*shaders.Plan, error) {
			return shaders.Scan(d.Target, graph.OpCumulativeSum, x, x.Spec, 0, false, 0)
		}, []graph.Spec{row(graph.F32, 10_000_000)}},
		{"cumulative_sum of 4096 rows of 256 f32", row(graph.F32, 4096, 256), func(x shaders.Operand) (*shaders.Plan, error) {
			return shaders.Scan(d.Target, graph.OpCumulativeSum, x, x.Spec, 1, false, 0)
		}, []graph.Spec{row(graph.F32, 4096, 256)}},
		{"cumulative_sum of 256 columns of 4096 f32", row(graph.F32, 4096, 256), func(x shaders.Operand) (*shaders.Plan, error) {
			return shaders.Scan(d.Target, graph.OpCumulativeSum, x, x.Spec, 0, false, 0)
		}, []graph.Spec{row(graph.F32, 4096, 256)}},
		{"fft of 2^20 c64", row(graph.C64, 1<<20), fftOf(d, 1<<20, 0), []graph.Spec{row(graph.C64, 1<<20)}},
		{"fft of 1000003 c64", row(graph.C64, 1000003), fftOf(d, 1000003, 0), []graph.Spec{row(graph.C64, 1000003)}},
		{"fft of 1024 rows of 1024 c64", row(graph.C64, 1024, 1024), fftOf(d, 1024, 1), []graph.Spec{row(graph.C64, 1024, 1024)}},
		{"fft of 1024 columns of 1024 c64", row(graph.C64, 1024, 1024), fftOf(d, 1024, 0), []graph.Spec{row(graph.C64, 1024, 1024)}},
		{"fft of 65536 rows of 16 c64", row(graph.C64, 65536, 16), fftOf(d, 16, 1), []graph.Spec{row(graph.C64, 65536, 16)}},
		{"top 50 of 64 rows of 50257 f32", row(graph.F32, 64, 50257), func(x shaders.Operand) (*shaders.Plan, error) {
			return shaders.TopK(d.Target, x, row(graph.F32, 64, 50), row(graph.S32, 64, 50))
		}, []graph.Spec{row(graph.F32, 64, 50), row(graph.S32, 64, 50)}},
		{"copy of 2^21 f32", row(graph.F32, 1<<21), func(x shaders.Operand) (*shaders.Plan, error) {
			return shaders.Copy(d.Target, shaders.Leaf{Operand: x}, x.Spec)
		}, []graph.Spec{row(graph.F32, 1<<21)}},
		{"copy of 10M f32", row(graph.F32, 10_000_000), func(x shaders.Operand) (*shaders.Plan, error) {
			return shaders.Copy(d.Target, shaders.Leaf{Operand: x}, x.Spec)
		}, []graph.Spec{row(graph.F32, 10_000_000)}},
	}
	for _, c := range plans {
		b.Run(c.name, func(b *testing.B) {
			p, err := c.plan(shaders.Operand{Spec: c.x, Layout: graph.Contiguous(c.x.Shape)})
			if err != nil {
				b.Fatal(err)
			}
			sizes := []int{bytes(c.x)}
			for _, o := range c.outs {
				sizes = append(sizes, bytes(o))
			}
			timePlan(b, d, p, sizes...)
		})
	}
}
