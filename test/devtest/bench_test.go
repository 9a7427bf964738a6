package devtest

import (
	"fmt"
	"testing"
	"time"

	"nxvk/kernel"
	"nxvk/spirv"
	"nxvk/vkrt"
)

// BenchmarkAdd is y = x + 1 over 4 Mi f32, as memory bandwidth: one element an invocation, and vectors
// of 4, in a loop over the grid or not.
func BenchmarkAdd(b *testing.B) {
	d := Open(b)
	const n = 4 << 20 // 65,536 workgroups of 64
	for _, width := range []int{1, 4} {
		for _, trips := range []int{1, 16} {
			b.Run(fmt.Sprintf("x%d/%d trips", width, trips), func(b *testing.B) {
				d.bandwidth(b, addOne(d.Target, width), [3]uint32{uint32(n/width/64/trips - 1), 1, 1}, n, width)
			})
		}
	}
}

func addOne(t kernel.Target, width int) *kernel.Kernel {
	b := kernel.NewBuilder("add", t, [3]uint32{64, 1, 1})
	x, y := b.Pointer("x", kernel.MF32, false, 4), b.Pointer("y", kernel.MF32, true, 4)
	n := b.ScalarArg("n", kernel.I32)
	one := b.ConstFloat(kernel.F32, 1)
	first := b.Add(b.MulI(b.BuiltinValue(kernel.GroupX), 64), b.BuiltinValue(kernel.LocalX))
	b.For(first, n, b.MulI(b.BuiltinValue(kernel.GroupsX), 64), func(i kernel.Value) {
		if width == 1 {
			b.Store(y, i, b.Add(b.Load(x, i), one))
			return
		}
		vs := b.LoadV(x, i, width)
		for j := range vs {
			vs[j] = b.Add(vs[j], one)
		}
		b.StoreV(y, i, vs)
	})
	return b.Build()
}

// bandwidth times k over two buffers of n f32, read width at a time; best/op is the fastest run, which
// a loaded machine disturbs least.
func (d *Device) bandwidth(b *testing.B, k *kernel.Kernel, grid [3]uint32, n, width int) {
	words, err := spirv.Emit(k, d.Target)
	if err != nil {
		b.Fatal(err)
	}
	p, err := d.Dev.Pipeline(k.Name, words)
	if err != nil {
		b.Fatal(err)
	}
	var bufs [2]*vkrt.Buffer
	for i := range bufs {
		if bufs[i], err = d.Dev.Alloc(uint64(4 * n)); err != nil {
			b.Fatal(err)
		}
		defer bufs[i].Release()
		if err := d.stream.Upload(bufs[i], 0, make([]byte, 4*n)); err != nil {
			b.Fatal(err)
		}
	}
	table := []uint64{0, bufs[0].Addr(), bufs[1].Addr(), uint64(n / width)}
	best := time.Hour
	for range b.N + 1 {
		start := time.Now()
		if err := d.stream.Dispatch(p, grid, table, []vkrt.Use{{Buf: bufs[0]}, {Buf: bufs[1], Write: true}}); err != nil {
			b.Fatal(err)
		}
		if err := d.stream.Wait(); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	b.ReportMetric(float64(best.Nanoseconds()), "best-ns")
	b.ReportMetric(float64(8*n)/float64(best.Nanoseconds()), "best-GB/s")
}
