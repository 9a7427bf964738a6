package dispatch

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"nxvk/etf"
	"nxvk/graph"
	"nxvk/kernel"
	"nxvk/lower"
	"nxvk/shaders"
	"nxvk/spirv"
	"nxvk/vkrt"
)

// executor runs requests in order. All that it holds is touched by its goroutine alone.
type executor struct {
	dev    *vkrt.Device
	stream *vkrt.Stream
	target kernel.Target
	queue  *queue
	writer *writer
	log    logFunc
	config *Config

	programs *programs
	compiled []*compiled
	byGraph  map[string]int64

	rest    []request // of the batch at hand, the current one first
	options options
	files   uint64 // bulk files made so far
	reads   []read // put off until the caller has read what waits for it
	inReads int    // bytes of reads that the device is at
	awaited int    // reads and syncs that the device is at
	lost    *Failure
	counts  counters
	hostOps map[string]*hostTime // by operation
	flags   flags

	timing bool // profile is on

	// Scratch, so that an op allocates nothing but its results.
	key   []byte
	bufs  []*vkrt.Buffer
	owned []*buffer
	addrs []uint64
	words []int // of flags
	table []uint64
	uses  []vkrt.Use
}

// counters are what stats reports.
type counters struct {
	Requests, Ops, Runs, Uploads, Reads, Frees, Failed, Dispatches, Views uint64
	BytesUp, BytesDown                                                    uint64
	Tensors                                                               int64
}

// run executes until the queue is closed.
func (e *executor) run() {
	for {
		b := e.queue.take()
		if b != nil {
			for i := range b.reqs {
				e.rest = b.reqs[i:]
				e.do(&b.reqs[i])
			}
			e.rest = nil
			e.queue.done(b)
			e.poll()
			continue
		}
		e.check(e.stream.Kick())
		if e.awaited > 0 && e.spin() {
			continue
		}
		select {
		case <-e.queue.ready:
		case <-e.stream.Completed():
			e.poll()
		case <-e.writer.drained:
			e.resume()
		case <-e.config.stop:
			return
		}
	}
}

// spinFor is how long an answer that somebody waits for is looked for before the executor sleeps: a short kernel
// takes less than waking up does.
const spinFor = 50 * time.Microsecond

// spin looks for the end of awaited work, and reports whether that, or a request, has come. A processor
// as the device needs the time itself.
func (e *executor) spin() bool {
	if e.target.Class == kernel.CPU {
		return false
	}
	was := e.awaited
	for end := time.Now().Add(spinFor); time.Now().Before(end); {
		if e.poll(); e.awaited < was {
			return true
		}
		select {
		case <-e.queue.ready:
			return true
		default:
		}
	}
	return false
}

// close waits for the device and lets go of all memory: what the table holds, and what programs do.
func (e *executor) close(tensors map[uint64]*tensor, partial map[uint64]*upload) {
	_ = e.stream.Wait() // its failure has been told
	for _, r := range e.reads {
		r.buf.drop()
	}
	e.reads = nil
	for b := e.queue.take(); b != nil; b = e.queue.take() {
		for i := range b.reqs {
			for _, t := range b.reqs[i].outs {
				t.release()
			}
		}
	}
	for _, t := range tensors {
		t.release()
	}
	for _, u := range partial {
		u.t.release()
	}
	if e.flags.buf != nil {
		e.flags.buf.Release()
	}
	for len(e.programs.byKey) > 0 {
		e.programs.evict(e.programs.order.Back().Value.(*program))
	}
}

// do runs one request. A bug in it fails the request, not the port.
func (e *executor) do(q *request) {
	e.counts.Requests++
	defer func() {
		if r := recover(); r != nil {
			e.log("error", fmt.Sprintf("%v: %v\n%s", q.verb, r, debug.Stack()))
			e.fail(q, failf(q.verb.String(), ReasonInternal, "%v", r))
		}
	}()
	f := q.fail
	if f == nil && e.lost != nil && q.verb != verbFree {
		f = e.lost
	}
	if f == nil {
		f = handlers[q.verb](e, q)
	}
	if f != nil {
		e.fail(q, f)
	}
}

// handlers run requests. The failure that they return goes to the caller or into the results.
var handlers = [...]func(*executor, *request) *Failure{
	verbUpload:     (*executor).upload,
	verbUploadPart: (*executor).uploadPart,
	verbOp:         (*executor).op,
	verbRun:        (*executor).runCompiled,
	verbFree:       (*executor).free,
	verbHello:      (*executor).hello,
	verbCompile:    (*executor).compile,
	verbPlan:       (*executor).plan,
	verbRead:       (*executor).read,
	verbSync:       (*executor).sync,
	verbInfo:       (*executor).info,
	verbStats:      (*executor).stats,
	verbProfile:    (*executor).profile,
}

// fail answers q with f, or marks its results.
func (e *executor) fail(q *request, f *Failure) {
	if q.call {
		e.writer.fail(q.req, f)
		return
	}
	if q.verb == verbFree {
		return
	}
	e.counts.Failed++
	for _, t := range q.outs {
		t.release()
		t.freed = false
		if t.err == nil {
			t.err = f
		}
	}
}

// check takes note of an error that ends the stream: it fails all that follows.
func (e *executor) check(err error) {
	if err == nil || e.lost != nil {
		return
	}
	e.lost = failf("device", ReasonDeviceLost, "%v", err)
	e.writer.event("fault", string(ReasonDeviceLost), err.Error())
}

// checkLost is check for errors that may be of one operation alone.
func (e *executor) checkLost(err error) {
	if errors.Is(err, vkrt.ErrDeviceLost) {
		e.check(err)
	}
}

func (e *executor) poll() { e.check(e.stream.Poll()) }

// op runs one operation: a graph of one node, found by its encoded form.
func (e *executor) op(q *request) *Failure {
	e.counts.Ops++
	if f := firstFailure(q.ins); f != nil {
		return f
	}
	narrowScalars(q)
	e.key = operandsKey(append(append(e.key[:0], 'o'), q.node...), q.ins)
	p := e.programs.get(e.key)
	if p == nil {
		var f *Failure
		if p, f = e.bindOp(q); f != nil {
			return f
		}
		e.programs.put(e.key, p)
	}
	return e.runProgram(p, q.ins, q.outs, func() string { return opName(q.node) })
}

// narrowScalars gives small whole numbers among an operation's host scalars a small type, so that their
// kernel need not reckon with large ones.
func narrowScalars(q *request) {
	for i := range q.ins {
		if in := &q.ins[i]; in.tensor == nil && in.typ.Int() && in.typ.Size() > 2 {
			in.typ, in.value.Lo = lower.NarrowInt(graph.Op(opName(q.node)), in.typ, in.value.Lo)
		}
	}
}

// firstFailure is the failure of the first operand that has one.
func firstFailure(ins []operand) *Failure {
	for i := range ins {
		if t := ins[i].tensor; t != nil {
			if f := t.failed(); f != nil {
				return f
			}
		}
	}
	return nil
}

func (e *executor) bindOp(q *request) (*program, *Failure) {
	var n graph.Node
	g := &graph.Graph{Params: paramsOf(q.ins)}
	for i := range q.ins {
		n.In = append(n.In, graph.Ref(i))
	}
	var d etf.Decoder
	d.ResetRaw(q.node)
	if err := readNode(&d, &n, false, 0); err != nil {
		op := opName(q.node)
		if op == "" {
			op = "op"
		}
		return nil, badNode(op, err)
	}
	g.Nodes, g.Outs = graph.One(n, len(g.Params))
	return e.bind(string(n.Op), g)
}

// paramsOf are operands as the parameters of a graph.
func paramsOf(ins []operand) []graph.Param {
	ps := make([]graph.Param, len(ins))
	for i := range ins {
		if t := ins[i].tensor; t != nil {
			ps[i] = graph.Param{Spec: t.shape.Spec, Layout: t.shape.Layout}
		} else {
			ps[i] = graph.Param{Spec: graph.Spec{Type: ins[i].typ, Shape: graph.Shape{}}, ByValue: true}
		}
	}
	return ps
}

// bind verifies and lowers g, makes its pipelines and uploads its constants.
func (e *executor) bind(op string, g *graph.Graph) (*program, *Failure) {
	if err := graph.Verify(g); err != nil {
		return nil, asFailure(op, err)
	}
	low, err := e.lower(g)
	if err == nil {
		// A stray address takes the process with it: no program runs unproved.
		err = lower.Check(low)
	}
	if err != nil {
		return nil, lowerFailure(op, err)
	}
	pipes, err := e.pipelines(low.Kernels)
	if err != nil {
		return nil, asFailure(op, err)
	}
	p := newProgram(low, pipes)
	for i, b := range low.Bufs {
		if b.Kind != lower.BufConst {
			continue
		}
		buf, err := e.alloc(uint64(len(b.Data)))
		if err == nil {
			p.consts[i] = buf
			err = e.stream.Upload(buf, 0, b.Data)
		}
		if err != nil {
			for _, c := range p.consts {
				if c != nil {
					c.Release()
				}
			}
			return nil, asFailure(op, err)
		}
	}
	return p, nil
}

// lowerFailure is an error of lowering: the device cannot, or the port is wrong.
func lowerFailure(op string, err error) *Failure {
	var u *shaders.Unsupported
	if errors.As(err, &u) {
		return failf(op, ReasonUnsupported, "%v", err)
	}
	return failf(op, ReasonInternal, "%v", err)
}

// pipelines makes the pipelines of a program's kernels, side by side.
func (e *executor) pipelines(kernels []*kernel.Kernel) ([]*vkrt.Pipeline, error) {
	pipes := make([]*vkrt.Pipeline, len(kernels))
	errs := make([]error, len(kernels))
	var wg sync.WaitGroup
	gate := make(chan struct{}, 8)
	for i, k := range kernels {
		make := func() {
			words, err := spirv.Emit(k, e.target)
			if err == nil {
				pipes[i], err = e.dev.Pipeline(k.Name, words)
			}
			errs[i] = err
		}
		if len(kernels) == 1 {
			make()
			break
		}
		wg.Add(1)
		gate <- struct{}{}
		go func() {
			defer func() { <-gate; wg.Done() }()
			defer func() {
				if r := recover(); r != nil {
					errs[i] = fmt.Errorf("%s: %v", k.Name, r)
				}
			}()
			make()
		}()
	}
	wg.Wait()
	return pipes, errors.Join(errs...)
}

// runProgram runs p on ins and fills outs. name is asked for the operation when it fails.
func (e *executor) runProgram(p *program, ins []operand, outs []*tensor, name func() string) *Failure {
	if len(outs) != len(p.outs) {
		return failf(name(), ReasonBadRequest, "%d results, and ids for %d", len(p.outs), len(outs))
	}
	e.bufs, e.owned, e.addrs = e.bufs[:0], e.owned[:0], e.addrs[:0]
	for i := range p.bufs {
		b := &p.bufs[i]
		var buf *vkrt.Buffer
		var owned *buffer
		switch b.Kind {
		case lower.BufParam:
			owned = ins[b.Index].tensor.buf
			buf = owned.Buffer
			if buf.Size() < b.Bytes {
				e.giveUp(p)
				return failf(name(), ReasonInternal, "operand %d has a buffer of %d bytes, its layout reaches %d", b.Index, buf.Size(), b.Bytes)
			}
		case lower.BufConst:
			buf = p.consts[i]
		case lower.BufFlag:
			word, err := e.flag()
			if err != nil {
				e.giveUp(p)
				return asFailure(name(), err)
			}
			e.words = append(e.words, word)
			buf = e.flags.buf
		default:
			var err error
			if buf, err = e.alloc(b.Bytes); err != nil {
				e.giveUp(p)
				return asFailure(name(), err)
			}
			owned = &buffer{Buffer: buf}
		}
		addr := buf.Addr()
		if b.Kind == lower.BufFlag {
			addr += uint64(4 * e.words[len(e.words)-1])
		}
		e.bufs = append(e.bufs, buf)
		e.owned = append(e.owned, owned)
		e.addrs = append(e.addrs, addr)
	}
	for i := range p.steps {
		if err := e.step(&p.steps[i], ins); err != nil {
			e.giveUp(p)
			e.checkLost(err)
			return asFailure(name(), err)
		}
	}
	if len(p.steps) == 0 {
		e.counts.Views++
	}
	doubts := doubtsOf(ins)
	for i := range p.bounds {
		d := &doubt{}
		doubts = append(doubts, d)
		e.watch(d, name(), &p.bounds[i], e.words[i], e.hold(p, p.bounds[i].Index))
	}
	e.words = e.words[:0]
	for i, o := range p.outs {
		owned := e.owned[o.buf]
		if owned == nil { // a constant that is a result: the program keeps a share
			owned = &buffer{Buffer: e.bufs[o.buf], refs: 1}
		}
		outs[i].set(o.shape, owned)
		outs[i].doubts = doubts
		e.counts.Tensors++
	}
	for _, t := range p.temps {
		if e.owned[t].refs == 0 { // else a check holds it
			e.bufs[t].Release()
		}
	}
	return nil
}

// giveUp releases what a run that failed has allocated.
func (e *executor) giveUp(p *program) {
	e.giveWordsBack()
	for i, buf := range e.bufs {
		if k := p.bufs[i].Kind; k == lower.BufOut || k == lower.BufTemp {
			buf.Release()
		}
	}
}

// giveWordsBack frees the words of a run that failed. Its kernels may have written, or be about to.
func (e *executor) giveWordsBack() {
	if len(e.words) == 0 {
		return
	}
	err := e.stream.Wait()
	for _, w := range e.words {
		if err == nil {
			err = e.stream.Upload(e.flags.buf, uint64(4*w), make([]byte, 4))
		}
	}
	if err == nil {
		e.flags.free = append(e.flags.free, e.words...)
	}
	e.checkLost(err)
	e.words = e.words[:0]
}

func (e *executor) step(s *step, ins []operand) error {
	if s.host != nil {
		return e.onHost(s, ins)
	}
	return e.dispatch(s, ins)
}

func (e *executor) dispatch(s *step, ins []operand) error {
	e.table = append(e.table[:0], s.table...)
	for i := range s.fixes {
		f := &s.fixes[i]
		if f.buf >= 0 {
			e.table[f.slot] = e.addrs[f.buf] + f.offset
		} else {
			e.table[f.slot] = f.conv.Bits(ins[f.param].value)
		}
	}
	e.uses = e.uses[:0]
	for _, u := range s.uses {
		if u.flag && e.bufs[u.buf].Host() != nil {
			continue // seen by the host alone
		}
		e.uses = append(e.uses, vkrt.Use{Buf: e.bufs[u.buf], Write: u.write})
	}
	e.counts.Dispatches++
	return e.stream.Dispatch(s.pipe, s.grid, e.table, e.uses)
}

// alloc takes device memory. Where there is none, it waits for what is in flight, lets go of what later
// frames free, and gives the caller a moment to free more.
func (e *executor) alloc(bytes uint64) (*vkrt.Buffer, error) {
	b, err := e.stream.Alloc(bytes)
	if err == nil || !errors.Is(err, vkrt.ErrOutOfMemory) {
		return b, err
	}
	if bytes > e.dev.Memory().Limit {
		return nil, &Failure{"", ReasonMemory, fmt.Sprintf("out of memory: %d bytes wanted, the device has %d", bytes, e.dev.Memory().Limit)}
	}
	e.queue.starve(true)
	defer e.queue.starve(false)
	for wait := time.Duration(0); wait < 100*time.Millisecond; wait = 2*wait + time.Millisecond {
		time.Sleep(wait)
		if freed := e.scavenge(); wait > 0 && freed == 0 {
			continue
		}
		if b, err := e.stream.Alloc(bytes); err == nil || !errors.Is(err, vkrt.ErrOutOfMemory) {
			return b, err
		}
	}
	m := e.dev.Memory()
	return nil, &Failure{"", ReasonMemory, fmt.Sprintf("out of memory: %d bytes wanted, %d of %d in use", bytes, m.InUse, m.Limit)}
}

// scavenge does the frees that wait in the queue, but for tensors that a request before them needs.
func (e *executor) scavenge() (freed int) {
	needed := map[*tensor]bool{}
	look := func(reqs []request) {
		for i := range reqs {
			q := &reqs[i]
			for _, in := range q.ins {
				needed[in.tensor] = true
			}
			for _, t := range q.outs {
				switch {
				case q.verb != verbFree:
					needed[t] = true
				case !needed[t] && !t.freed:
					freed++
					e.freeTensor(t)
				}
			}
		}
	}
	look(e.rest)
	e.queue.ahead(func(b *batch) { look(b.reqs) })
	return freed
}

// free forgets tensors.
func (e *executor) free(q *request) *Failure {
	e.counts.Frees++
	for _, t := range q.outs {
		if !t.freed {
			e.freeTensor(t)
		}
	}
	return nil
}

func (e *executor) freeTensor(t *tensor) {
	if t.buf != nil {
		e.counts.Tensors--
	}
	t.release()
}
