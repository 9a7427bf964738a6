package shaders_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"nxvk/graph"
	"nxvk/shaders"
	"nxvk/spirv"
	"nxvk/test/devtest"
	"nxvk/vkrt"
)

// timePlan runs a plan b.N times on the device, over operands of random f32 in device memory.
func timePlan(b *testing.B, d *devtest.Device, p *shaders.Plan, bytes ...int) {
	s := d.Dev.NewStream()
	var slots []*vkrt.Buffer
	must := func(err error) {
		if err != nil {
			b.Helper()
			b.Fatal(err)
		}
	}
	for _, n := range p.Temps {
		bytes = append(bytes, int(n))
	}
	rng := rand.New(rand.NewPCG(1, 1))
	data := make([]byte, 1<<20)
	for i := range len(data) / 4 {
		putElem(data, i, graph.F32, graph.FromFloat(rng.Float64()-0.5, graph.F32))
	}
	for _, n := range bytes {
		buf, err := d.Dev.Alloc(uint64(n))
		must(err)
		defer buf.Release()
		for off := 0; off < n; off += len(data) {
			must(s.Upload(buf, uint64(off), data[:min(n-off, len(data))]))
		}
		slots = append(slots, buf)
	}
	for _, data := range p.Consts {
		buf, err := d.Dev.Alloc(uint64(len(data)))
		must(err)
		defer buf.Release()
		must(s.Upload(buf, 0, data))
		slots = append(slots, buf)
	}
	must(s.Wait())
	var pipes []*vkrt.Pipeline
	for _, l := range p.Launches {
		words, err := spirv.Emit(l.Kernel, d.Target)
		must(err)
		pipe, err := d.Dev.Pipeline(l.Kernel.Name, words)
		must(err)
		pipes = append(pipes, pipe)
	}
	run := func() {
		for i, l := range p.Launches {
			table := []uint64{0}
			for _, a := range l.Args {
				if a.Kind == shaders.Addr {
					table = append(table, slots[a.Slot].Addr()+a.Offset)
				} else {
					table = append(table, a.Imm)
				}
			}
			var uses []vkrt.Use
			for _, acc := range l.Access {
				uses = append(uses, vkrt.Use{Buf: slots[acc.Slot], Write: acc.Write})
			}
			must(s.Dispatch(pipes[i], l.Grid, table, uses))
		}
	}
	run()
	must(s.Wait())
	b.ResetTimer()
	for range b.N {
		run()
	}
	must(s.Wait())
	b.StopTimer()
}

func BenchmarkReduce(b *testing.B) {
	d := devtest.Open(b)
	for _, c := range []struct {
		op    graph.Op
		shape graph.Shape
		axes  []int
	}{
		{graph.OpSum, graph.Shape{32, 10}, []int{1}}, {graph.OpSum, graph.Shape{32, 128}, []int{0}},
		{graph.OpSum, graph.Shape{1 << 16}, []int{0}}, {graph.OpSum, graph.Shape{1 << 20}, []int{0}},
		{graph.OpSum, graph.Shape{1 << 24}, []int{0}}, {graph.OpSum, graph.Shape{1 << 26}, []int{0}},
		{graph.OpReduceMax, graph.Shape{1 << 24}, []int{0}},
		{graph.OpSum, graph.Shape{4096, 4096}, []int{0}}, {graph.OpSum, graph.Shape{4096, 4096}, []int{1}},
		{graph.OpSum, graph.Shape{1 << 20, 16}, []int{0}}, {graph.OpSum, graph.Shape{1 << 20, 16}, []int{1}},
		{graph.OpSum, graph.Shape{256, 256, 256}, []int{1}}, {graph.OpSum, graph.Shape{256, 256, 256}, []int{0, 2}},
	} {
		b.Run(fmt.Sprintf("%s%v%v", c.op, c.shape, c.axes), func(b *testing.B) {
			n := 1
			for k, e := range c.shape {
				n *= e
				for _, a := range c.axes {
					if a == k {
						n /= e
					}
				}
			}
			x := shaders.Operand{Spec: graph.Spec{Type: graph.F32, Shape: c.shape}}
			p, err := shaders.Reduce(d.Target, c.op, x, graph.Spec{Type: graph.F32, Shape: graph.Shape{n}}, c.axes, graph.AccCompensated)
			if err != nil {
				b.Fatal(err)
			}
			timePlan(b, d, p, 4*c.shape.Size(), 4*n)
			b.ReportMetric(4*float64(c.shape.Size())*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
		})
	}
}

func BenchmarkDot(b *testing.B) {
	d := devtest.Open(b)
	for _, c := range []struct {
		name     string
		a, b     graph.Shape
		ka, kb   int
		skipsCPU bool
	}{
		{name: "forward", a: graph.Shape{32, 784}, b: graph.Shape{784, 128}, ka: 1},
		{name: "weights", a: graph.Shape{32, 784}, b: graph.Shape{32, 128}},
		{name: "forward2", a: graph.Shape{32, 128}, b: graph.Shape{128, 10}, ka: 1},
		{name: "weights2", a: graph.Shape{32, 128}, b: graph.Shape{32, 10}},
		{name: "inputs2", a: graph.Shape{32, 10}, b: graph.Shape{128, 10}, ka: 1, kb: 1},
		{name: "matvec", a: graph.Shape{1024, 1024}, b: graph.Shape{1024, 1}, ka: 1},
		{name: "vecmat", a: graph.Shape{1, 1024}, b: graph.Shape{1024, 1024}, ka: 1},
		{name: "256", a: graph.Shape{256, 256}, b: graph.Shape{256, 256}, ka: 1},
		{name: "512", a: graph.Shape{512, 512}, b: graph.Shape{512, 512}, ka: 1},
		{name: "512t", a: graph.Shape{512, 512}, b: graph.Shape{512, 512}, ka: 1, kb: 1},
		{name: "1024", a: graph.Shape{1024, 1024}, b: graph.Shape{1024, 1024}, ka: 1},
		{name: "longsum", a: graph.Shape{64, 65536}, b: graph.Shape{65536, 64}, ka: 1},
		{name: "4096", a: graph.Shape{4096, 4096}, b: graph.Shape{4096, 4096}, ka: 1, skipsCPU: true},
		{name: "8192", a: graph.Shape{8192, 8192}, b: graph.Shape{8192, 8192}, ka: 1, skipsCPU: true},
	} {
		for _, acc := range []graph.Acc{graph.AccCompensated, graph.AccF32, graph.AccF64} {
			b.Run(fmt.Sprintf("%s/%v", c.name, acc), func(b *testing.B) {
				if c.skipsCPU && d.Target.Class.String() == "cpu" {
					fmt.Println("SKIPPED", b.Name(), "too large for a processor")
					b.SkipNow()
				}
				m, n, k := c.a[1-c.ka], c.b[1-c.kb], c.a[c.ka]
				f32 := func(s graph.Shape) shaders.Operand {
					return shaders.Operand{Spec: graph.Spec{Type: graph.F32, Shape: s}}
				}
				out := graph.Spec{Type: graph.F32, Shape: graph.Shape{m, n}}
				p, err := shaders.Dot(d.Target, f32(c.a), f32(c.b), out, graph.Attrs{ContractA: []int{c.ka}, ContractB: []int{c.kb}, Acc: acc})
				if err != nil {
					b.Fatal(err)
				}
				timePlan(b, d, p, 4*m*k, 4*k*n, 4*m*n)
				b.ReportMetric(2*float64(m)*float64(n)*float64(k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
