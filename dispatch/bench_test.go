package dispatch

import (
	"io"
	"testing"

	"nxvk/etf"
	"nxvk/graph"
)

// benchOps runs n times {op, …} and {free, [result]} through reader and executor in one goroutine, so
// that what an op costs the port is seen without the hand-over between goroutines. The device works
// beside it.
func benchOps(b *testing.B, op graph.Op, s graph.Spec, attrs etf.Map, ins ...etf.Term) {
	cfg := config(b)
	cfg.stop = make(chan struct{})
	q := newQueue(1 << 30)
	w := newWriter(io.Discard, nil, func(error) {})
	r := &reader{queue: q, tensors: map[uint64]*tensor{}, partial: map[uint64]*upload{}, events: func(_, m string) { b.Fatal(m) }, batch: &batch{}}
	e := &executor{
		dev: cfg.Device, stream: cfg.Device.NewStream(), target: cfg.Target, queue: q, writer: w, config: &cfg,
		programs: newPrograms(16), byGraph: map[string]int64{}, log: func(_, m string) { b.Fatal(m) },
	}
	run := func(frames ...[]byte) {
		for _, f := range frames {
			r.accept(f, nil)
		}
		for i := range r.batch.reqs {
			e.do(&r.batch.reqs[i])
			if f := r.batch.reqs[i].fail; f != nil {
				b.Fatal(f)
			}
		}
		r.batch.reset()
	}
	frame := func(t etf.Term) []byte {
		f, err := etf.Encode(t)
		must(b, err)
		return f
	}
	run(frame(opTerm(graph.OpIota, spec(graph.F32, 32, 128), nil, nil, 1)))
	const id = 1 << 40
	opFrame := frame(opTerm(op, s, attrs, ins, id))
	freeFrame := frame(etf.Tuple{etf.Atom("free"), etf.Seq{id}})
	run(opFrame)
	if t := r.tensors[id]; t == nil || t.err != nil {
		b.Fatalf("%+v", t)
	}
	run(freeFrame)
	b.ReportAllocs()
	b.ResetTimer()
	n := 0
	for b.Loop() {
		run(opFrame, freeFrame)
		if n++; n%64 == 0 {
			must(b, e.stream.Kick())
			must(b, e.stream.Poll())
		}
	}
	b.StopTimer()
	must(b, e.stream.Wait())
	e.close(r.tensors, r.partial)
}

// A view dispatches nothing: what is left is the port's own work.
func BenchmarkOpView(b *testing.B) {
	benchOps(b, "transpose", spec(graph.F32, 128, 32), attrs("axes", axes(1, 0)), 1)
}

// An add of a host scalar: allocation, argument table and recording come on top.
func BenchmarkOpAdd(b *testing.B) {
	benchOps(b, "add", spec(graph.F32, 32, 128), nil, 1, scalar(1))
}

// Frames to answers over pipes, all goroutines at work.
func BenchmarkPipeAdd(b *testing.B) {
	c := serve(b, config(b))
	s := spec(graph.F32, 32, 128)
	must(b, c.Op(graph.OpIota, s, nil, nil, 1))
	must(b, c.Sync())
	id := 2
	b.ResetTimer()
	for b.Loop() {
		must(b, c.Op("add", s, nil, []etf.Term{1, scalar(1)}, id))
		must(b, c.Free(id))
		id++
	}
	must(b, c.Sync())
}

// Frames whose program is new, over pipelines that are not: verify, lower, check, emit, bind.
func BenchmarkBind(b *testing.B) {
	cfg := config(b)
	cfg.Programs = 64
	c := serve(b, cfg)
	n, id := 1, 1
	b.ResetTimer()
	for b.Loop() {
		must(b, c.Free(id-1))
		must(b, c.Op("add", spec(graph.F32, 7, n), nil, []etf.Term{scalar(1), scalar(2)}, id))
		n++
		id++
	}
	must(b, c.Sync(id-1))
}
