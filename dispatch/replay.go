package dispatch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"

	"nxvk/etf"
	"nxvk/graph"
)

// Difference is an answer of a replay that is not the recorded one.
type Difference struct {
	Request string // what was asked
	Want    etf.Term
	Got     etf.Term
	// Relative is the largest relative difference of the numbers in a read tensor; NaN where they cannot be
	// compared.
	Relative float64
}

// Summary is what a replay saw.
type Summary struct {
	Frames, Calls, Compared, Different int
	Recorded, Took                     time.Duration
	Truncated                          bool // the recording ends in the middle of a frame
}

// asked is a call of the recording.
type asked struct {
	verb verb
	what string
	typ  graph.Type // of the tensor that is read
	want []byte     // the recorded reply's term, when it came
}

// Replay runs a recording on a server made of cfg, and reports answers that differ. Reads of floats may
// differ by tolerance, relative to the recorded values. Answers that tell of the device (hello, info,
// stats, profile) are not compared.
func Replay(cfg Config, recording io.Reader, tolerance float64, report func(Difference)) (Summary, error) {
	var sum Summary
	var frames [][]byte
	calls := map[uint64]*asked{}
	track := newTracker()
	err := ReadRecording(recording, func(r Recorded) error {
		sum.Recorded = r.Time
		if r.ToPort() {
			frames = append(frames, r.Frame)
			if req, a := track.request(r.Frame); a != nil {
				calls[req] = a
			}
			return nil
		}
		if len(r.Frame) > 9 && r.Frame[0] == frameReply {
			req := binary.BigEndian.Uint64(r.Frame[1:])
			if a := calls[req]; a != nil {
				a.want = r.Frame[9:]
				track.reply(req, a)
			}
		}
		return nil
	})
	if sum.Truncated = err == ErrTruncated; err != nil && !sum.Truncated {
		return sum, err
	}
	sum.Frames, sum.Calls = len(frames), len(calls)

	cfg.inline = true
	toPort, feed := io.Pipe()
	answers, fromPort := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := Serve(cfg, toPort, fromPort)
		fromPort.CloseWithError(io.EOF)
		served <- err
	}()
	start := time.Now()
	// The answers are all there, or none is to be had any more, when a sync that follows them has been
	// answered and nothing else came since the one before: a damaged call gets no answer.
	left, since := len(calls), 0
	fence := uint64(1<<63 - 1)
	for calls[fence] != nil {
		fence--
	}
	again := make(chan bool, 1)
	go func() {
		w := newFrameWriter(feed)
		for _, f := range frames {
			if w.write(f) != nil {
				return
			}
		}
		sync, _ := etf.Encode(etf.Tuple{int64(fence), etf.Tuple{etf.Atom("sync"), etf.Seq{}}})
		for more := left > 0; more; more = <-again {
			if w.write(sync) != nil || w.flush() != nil {
				return
			}
		}
		_ = w.flush()
		feed.Close()
	}()
	_ = readFrames(answers, func(frame []byte) error {
		if len(frame) < 9 || frame[0] != frameReply {
			return nil
		}
		req := binary.BigEndian.Uint64(frame[1:])
		if req == fence {
			again <- left > 0 && since > 0
			since = 0
			return nil
		}
		a := calls[req]
		if a == nil {
			return nil
		}
		delete(calls, req)
		if d, compared := a.compare(frame[9:], tolerance); compared {
			sum.Compared++
			if d != nil {
				sum.Different++
				report(*d)
			}
		}
		since++
		if left--; left == 0 {
			sum.Took = time.Since(start)
		}
		return nil
	})
	if sum.Took == 0 {
		sum.Took = time.Since(start)
	}
	for _, a := range calls {
		report(Difference{Request: a.what, Want: etf.Atom("an_answer"), Got: etf.Atom("none"), Relative: math.NaN()})
		sum.Different++
	}
	return sum, <-served
}

// frameWriter joins small frames, as the pipe of an Erlang node does.
type frameWriter struct {
	out io.Writer
	buf []byte
}

func newFrameWriter(out io.Writer) *frameWriter { return &frameWriter{out: out} }

func (w *frameWriter) write(frame []byte) error {
	w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(len(frame)))
	w.buf = append(w.buf, frame...)
	if len(w.buf) >= 64<<10 {
		return w.flush()
	}
	return nil
}

func (w *frameWriter) flush() error {
	_, err := w.out.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}

// tracker knows what the tensors of a recording are, so that reads can be compared as numbers and
// programs shown.
type tracker struct {
	specs    map[int64]graph.Spec
	programs map[int64][]graph.Spec // results by program
	compiles map[uint64][]graph.Spec
	graph    func(*graph.Graph) // told each op and each compiled graph, if not nil
}

func newTracker() *tracker {
	return &tracker{specs: map[int64]graph.Spec{}, programs: map[int64][]graph.Spec{}, compiles: map[uint64][]graph.Spec{}}
}

// request takes note of a frame to the port, and yields what is asked if it is a call.
func (t *tracker) request(frame []byte) (uint64, *asked) {
	var d etf.Decoder
	if d.Reset(frame, etf.Limits{Size: 1 << 40}) != nil {
		return 0, nil
	}
	d.Tuple()
	req, call := uint64(0), d.Peek() == etf.KindInt
	if call {
		req = uint64(d.Int())
		if d.Peek() == etf.KindTuple {
			d.Tuple()
		}
	}
	v := verbs[string(d.Atom())]
	switch v {
	case verbUpload, verbUploadPart:
		id := d.Int()
		if s, err := readSpec(&d); err == nil {
			t.specs[id] = s
		}
	case verbOp:
		var n graph.Node
		if readNode(&d, &n, false, 0) == nil {
			g := &graph.Graph{Params: t.params(&d)}
			for _, id := range d.Ints(nil) {
				t.specs[id] = n.Spec
			}
			for i := range g.Params {
				n.In = append(n.In, graph.Ref(i))
			}
			g.Nodes, g.Outs = []graph.Node{n}, []graph.Ref{graph.Ref(len(g.Params))}
			t.tell(g)
		}
	case verbRun:
		p := d.Int()
		d.Skip()
		for i, id := range d.Ints(nil) {
			if i < len(t.programs[p]) {
				t.specs[id] = t.programs[p][i]
			}
		}
	case verbCompile:
		if g, err := readGraph(&d); err == nil && graph.Verify(g) == nil {
			var ss []graph.Spec
			for _, r := range g.Outs {
				ss = append(ss, g.SpecOf(r))
			}
			t.compiles[req] = ss
			t.tell(g)
		}
	}
	if !call {
		return 0, nil
	}
	a := &asked{verb: v, what: fmt.Sprintf("%v, request %d", v, req)}
	if v == verbRead {
		id := d.Int()
		a.typ = t.specs[id].Type
		a.what = fmt.Sprintf("read of tensor %d %v, request %d", id, a.typ, req)
	}
	return req, a
}

// params reads operands as parameters. Layouts are not in a recording: tensors count as contiguous.
func (t *tracker) params(d *etf.Decoder) []graph.Param {
	var ps []graph.Param
	l := d.List()
	for i := 0; i < l.N && d.Err() == nil; i++ {
		if d.Peek() == etf.KindTuple {
			d.TupleOf(2)
			typ, _ := readType(d)
			d.Skip()
			ps = append(ps, graph.Param{Spec: graph.Spec{Type: typ, Shape: graph.Shape{}}, ByValue: true})
			continue
		}
		ps = append(ps, graph.Param{Spec: t.specs[d.Int()]})
	}
	d.EndList(l)
	return ps
}

func (t *tracker) tell(g *graph.Graph) {
	if t.graph != nil && graph.Verify(g) == nil {
		t.graph(g)
	}
}

// Graphs calls f with each op and compiled graph of a recording, equal ones once, as if every operand were contiguous.
func Graphs(recording io.Reader, f func(*graph.Graph)) error {
	seen := map[string]bool{}
	track := newTracker()
	track.graph = func(g *graph.Graph) {
		if key := string(graph.AppendKey(nil, g)); !seen[key] {
			seen[key] = true
			f(g)
		}
	}
	err := ReadRecording(recording, func(r Recorded) error {
		if r.ToPort() {
			track.request(r.Frame)
		}
		return nil
	})
	if err == ErrTruncated {
		return nil
	}
	return err
}

// reply takes note of the number that a program got.
func (t *tracker) reply(req uint64, a *asked) {
	if a.verb != verbCompile {
		return
	}
	var d etf.Decoder
	d.Reset(a.want, etf.Limits{})
	d.Tuple()
	d.Atom()
	d.Tuple()
	if id := d.Int(); d.Err() == nil {
		t.programs[id] = t.compiles[req]
	}
}

// compare holds an answer against the recorded one.
func (a *asked) compare(got []byte, tolerance float64) (d *Difference, compared bool) {
	switch a.verb {
	case verbHello, verbInfo, verbStats, verbProfile:
		return nil, false
	}
	if a.want == nil {
		return nil, false
	}
	lim := etf.Limits{Size: 1 << 40}
	if bytes.Equal(got, a.want) {
		return nil, true
	}
	w, werr := etf.Decode(a.want, lim)
	g, gerr := etf.Decode(got, lim)
	if werr != nil || gerr != nil {
		return &Difference{a.what, fmt.Sprint(werr), fmt.Sprint(gerr), math.NaN()}, true
	}
	want, werr := unwrap(w)
	have, gerr := unwrap(g)
	if a.verb == verbCompile && werr == nil && gerr == nil {
		// How many kernels a graph becomes is this device's affair.
		wt, _ := want.(etf.Tuple)
		ht, _ := have.(etf.Tuple)
		if len(wt) == 2 && len(ht) == 2 && wt[0] == ht[0] {
			return nil, true
		}
	}
	d = &Difference{a.what, w, g, math.NaN()}
	wb, wok := want.(etf.Binary)
	hb, hok := have.(etf.Binary)
	if a.typ == graph.Invalid || !wok || !hok || len(wb) != len(hb) {
		return d, true
	}
	d.Relative = relative(a.typ, wb, hb)
	if a.typ.Float() && d.Relative <= tolerance {
		return nil, true
	}
	return d, true
}

// relative is the largest difference of two tensors' elements, relative to the larger of the two; NaN equals NaN.
func relative(t graph.Type, a, b []byte) float64 {
	worst := 0.0
	for i := 0; i+t.Size() <= len(a); i += t.Size() {
		x, y := element(t, a[i:]), element(t, b[i:])
		if x == y || math.IsNaN(x) && math.IsNaN(y) {
			continue
		}
		r := math.Abs(x-y) / math.Max(math.Abs(x), math.Abs(y))
		if math.IsNaN(r) {
			return math.Inf(1)
		}
		worst = math.Max(worst, r)
	}
	return worst
}

func element(t graph.Type, b []byte) float64 {
	var w [8]byte
	copy(w[:], b[:t.Size()])
	return graph.ToFloat(binary.LittleEndian.Uint64(w[:]), t)
}
