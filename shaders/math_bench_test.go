package shaders_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"nxvk/graph"
	"nxvk/kernel"
	"nxvk/shaders"
	"nxvk/spirv"
	"nxvk/test/devtest"
	"nxvk/vkrt"
)

// BenchmarkMath times unary ops over 4 M elements on the device, beside negate, which is a copy:
//
//	go test ./shaders -run - -bench Math
func BenchmarkMath(b *testing.B) {
	d := devtest.Open(b)
	stream := d.Dev.NewStream()
	slow := d.Target
	slow.SlowF64 = true
	for _, c := range []struct {
		name   string
		typ    graph.Type
		target kernel.Target
	}{{"f32", graph.F32, d.Target}, {"pairs", graph.F32, slow}, {"f64", graph.F64, d.Target}} {
		for _, op := range append([]graph.Op{"negate"}, mathOps...) {
			b.Run(c.name+"/"+string(op), func(b *testing.B) {
				const n = 4 << 20
				spec := graph.Spec{Type: c.typ, Shape: graph.Shape{n}}
				plan, err := shaders.Elementwise(c.target, &shaders.Region{
					Shape: spec.Shape,
					In:    []shaders.Leaf{{Operand: shaders.Operand{Spec: spec, Layout: graph.Contiguous(spec.Shape)}}},
					Nodes: []shaders.RegionNode{{Op: op, In: []int{0}, Type: c.typ}},
					Outs:  []int{1},
				})
				if err != nil {
					b.Fatal(err)
				}
				l := &plan.Launches[0]
				words, err := spirv.Emit(l.Kernel, c.target)
				if err != nil {
					b.Fatal(err)
				}
				p, err := d.Dev.Pipeline(l.Kernel.Name, words)
				if err != nil {
					b.Fatal(err)
				}
				typ := kernel.F32
				if c.typ == graph.F64 {
					typ = kernel.F64
				}
				bytes := moderate(rand.New(rand.NewPCG(5, 5)), typ, n)
				var bufs [2]*vkrt.Buffer
				for i := range bufs {
					if bufs[i], err = d.Dev.Alloc(uint64(len(bytes))); err != nil {
						b.Fatal(err)
					}
					defer bufs[i].Release()
				}
				if err := stream.Upload(bufs[0], 0, bytes); err != nil {
					b.Fatal(err)
				}
				table, uses := []uint64{0}, []vkrt.Use{{Buf: bufs[0]}, {Buf: bufs[1], Write: true}}
				for _, a := range l.Args {
					if a.Kind == shaders.Addr {
						table = append(table, bufs[a.Slot].Addr()+a.Offset)
					} else {
						table = append(table, a.Imm)
					}
				}
				once := func() {
					if err := stream.Dispatch(p, l.Grid, table, uses); err != nil {
						b.Fatal(err)
					}
					if err := stream.Wait(); err != nil {
						b.Fatal(err)
					}
				}
				once()
				b.ResetTimer()
				best := time.Duration(math.MaxInt64)
				for range b.N {
					start := time.Now()
					once()
					best = min(best, time.Since(start))
				}
				b.ReportMetric(float64(best.Nanoseconds())/n, "best-ns/elem")
			})
		}
	}
}

// moderate are count values between -4 and 4.
func moderate(r *rand.Rand, typ kernel.Type, count int) []byte {
	var out []byte
	for range count {
		out = appendFloat(out, typ, r.Float64()*8-4)
	}
	return out
}
