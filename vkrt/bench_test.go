package vkrt

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// benchSetup yields what the benchmarks need: a stream, the adder and three small buffers.
func benchSetup(b *testing.B) (d *Device, s *Stream, p *Pipeline, bufs [3]*Buffer) {
	threads, _ := strconv.Atoi(os.Getenv("NXVK_THREADS"))
	d = openTest(b, Options{Threads: threads})
	s, p = d.NewStream(), addPipeline(b, d)
	for i := range bufs {
		bufs[i] = allocTest(b, d, 4096)
		must(b, s.Upload(bufs[i], 0, make([]byte, 4096)))
	}
	return
}

// BenchmarkRecord is the cost of recording one dispatch, without the device's own time.
func BenchmarkRecord(b *testing.B) {
	for _, dependent := range []bool{false, true} {
		b.Run(map[bool]string{false: "independent", true: "dependent"}[dependent], func(b *testing.B) {
			_, s, p, bufs := benchSetup(b)
			table := []uint64{0, bufs[0].Addr(), bufs[1].Addr(), 64, 1}
			uses := []Use{{bufs[0], false}, {bufs[1], dependent}}
			b.ReportAllocs()
			best := time.Duration(1 << 62)
			for done := 0; done < b.N; done += 500 {
				start := time.Now()
				for range 500 {
					if s.Dispatch(p, [3]uint32{1, 1, 1}, table, uses) != nil {
						b.Fatal("dispatch")
					}
				}
				best = min(best, time.Since(start))
				must(b, s.Wait())
			}
			b.ReportMetric(float64(best.Nanoseconds())/500, "ns-best")
		})
	}
}

// BenchmarkSubmitWait is one dispatch, submitted and waited for.
func BenchmarkSubmitWait(b *testing.B) {
	for _, spin := range []time.Duration{0, spinTime} {
		b.Run(fmt.Sprint("spin=", spin), func(b *testing.B) { benchSubmitWait(b, spin) })
	}
}

func benchSubmitWait(b *testing.B, spin time.Duration) {
	_, s, p, bufs := benchSetup(b)
	s.spin = spin
	table := []uint64{0, bufs[0].Addr(), bufs[1].Addr(), 64, 1}
	uses := []Use{{bufs[0], false}, {bufs[1], true}}
	b.ReportAllocs()
	submit, both := time.Duration(1<<62), time.Duration(1<<62)
	for range b.N {
		_ = s.Dispatch(p, [3]uint32{1, 1, 1}, table, uses)
		start := time.Now()
		_ = s.Submit()
		submit = min(submit, time.Since(start))
		_ = s.Wait()
		both = min(both, time.Since(start))
	}
	b.ReportMetric(float64(submit.Nanoseconds()), "ns-best-submit")
	b.ReportMetric(float64(both.Nanoseconds()), "ns-best-submit-wait")
}

// BenchmarkCompleted is BenchmarkSubmitWait through the waiter's channel.
func BenchmarkCompleted(b *testing.B) {
	_, s, p, bufs := benchSetup(b)
	table := []uint64{0, bufs[0].Addr(), bufs[1].Addr(), 64, 1}
	uses := []Use{{bufs[0], false}, {bufs[1], true}}
	run(b, func() {
		_ = s.Dispatch(p, [3]uint32{1, 1, 1}, table, uses)
		_ = s.Submit()
		for !s.Idle() {
			<-s.Completed()
			_ = s.Poll()
		}
	}, 1)
}

// BenchmarkChain is one of 1000 dependent dispatches, in submissions of the given size.
func BenchmarkChain(b *testing.B) {
	for _, size := range []int{1, 4, 16, 64, 256, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			_, s, p, bufs := benchSetup(b)
			run(b, func() {
				for i := range 1000 {
					add(b, s, p, bufs[(i+1)%2], bufs[i%2], 64, 1)
					if (i+1)%size == 0 {
						must(b, s.Submit())
					}
				}
				must(b, s.Wait())
			}, 1000)
		})
	}
}

// BenchmarkEager is one of 1000 dependent dispatches that come one every so often, as eager operations do, with the policy
// that Kick holds, and with a submission for each, and with one for all.
func BenchmarkEager(b *testing.B) {
	for _, every := range []time.Duration{0, 8 * time.Microsecond, 60 * time.Microsecond} {
		for name, kick := range map[string]func(s *Stream) error{
			"kick": (*Stream).Kick, "each": (*Stream).Submit, "all": func(*Stream) error { return nil },
		} {
			b.Run(fmt.Sprintf("%v/%s", every, name), func(b *testing.B) {
				_, s, p, bufs := benchSetup(b)
				run(b, func() {
					for i := range 1000 {
						for start := time.Now(); time.Since(start) < every; {
						}
						add(b, s, p, bufs[(i+1)%2], bufs[i%2], 64, 1)
						must(b, kick(s))
						must(b, s.Poll())
					}
					must(b, s.Wait())
				}, 1000)
			})
		}
	}
}

// run times f, which does n things, b.N/n times or more, and reports the best time of one: others may use the machine.
func run(b *testing.B, f func(), n int) {
	b.ReportAllocs()
	best := time.Duration(1 << 62)
	for done := 0; done < b.N || done < 5*n; done += n {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	b.ReportMetric(float64(best.Nanoseconds())/float64(n), "ns-best")
}

// BenchmarkAlloc is a buffer's allocation and release.
func BenchmarkAlloc(b *testing.B) {
	d := openTest(b, Options{})
	b.ReportAllocs()
	for range b.N {
		x, _ := d.Alloc(4096)
		x.Release()
	}
}

// BenchmarkTransfer moves 16 MiB each way.
func BenchmarkTransfer(b *testing.B) {
	for _, staging := range []bool{false, true} {
		b.Run(map[bool]string{false: "default", true: "staging"}[staging], func(b *testing.B) {
			d := openTest(b, Options{staging: staging})
			s := d.NewStream()
			data := make([]byte, 16<<20)
			x := allocTest(b, d, 16<<20)
			b.SetBytes(32 << 20)
			for range b.N {
				must(b, s.Upload(x, 0, data))
				must(b, s.Read(x, 0, 16<<20, func(got []byte, err error) { copy(data, got) }))
				must(b, s.Wait())
			}
		})
	}
}
