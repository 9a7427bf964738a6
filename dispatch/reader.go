package dispatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"nxvk/etf"
	"nxvk/graph"
)

// MaxFrame bounds a frame in either direction, in bytes.
const MaxFrame = 16<<20 + 64<<10

// Version is the version of the wire that this port speaks.
const Version = 1

const (
	chunkSize  = 256 << 10 // what is read at once
	batchSize  = 64 << 10  // bytes of frames that the executor gets at once, at most
	largeFrame = 64 << 10  // a frame above has a buffer of its own
)

// reader reads frames, resolves ids in the order of the stream and batches requests for the
// executor. The handle table is its own: nothing else looks at it.
type reader struct {
	in     io.Reader
	queue  *queue
	gone   func() bool // has the other side gone, while nobody reads?
	record *recorder   // or nil
	events func(level, message string)

	chunk      []byte // what has been read and not handed on: chunk[at:end]
	at, end    int
	tensors    map[uint64]*tensor
	partial    map[uint64]*upload // uploads that wait for more pieces
	batch      *batch
	dec        etf.Decoder
	runtimeDir string // as hello said it: needed early when recording
}

// upload is one that comes in pieces.
type upload struct {
	t    *tensor
	spec graph.Spec
	next int64
}

// run reads until the other side closes its end.
func (r *reader) run() error {
	r.batch = r.queue.fresh()
	for {
		frame, recycle, err := r.next()
		if err != nil {
			r.flush()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if frame == nil {
			continue
		}
		r.accept(frame, recycle)
		if r.batch.size >= batchSize || !r.buffered() {
			r.flush()
		}
	}
}

func (r *reader) flush() {
	if len(r.batch.reqs) == 0 {
		return
	}
	r.queue.put(r.batch, r.gone)
	r.batch = r.queue.fresh()
}

// buffered reports whether a whole frame is there already.
func (r *reader) buffered() bool {
	have := r.end - r.at
	return have >= 4 && have >= 4+int(binary.BigEndian.Uint32(r.chunk[r.at:]))
}

// next yields the next frame; nil for one that was too large and is passed over. recycle is its
// buffer when it has one of its own.
func (r *reader) next() (frame, recycle []byte, err error) {
	if err := r.fill(4); err != nil {
		return nil, nil, err
	}
	n := int(binary.BigEndian.Uint32(r.chunk[r.at:]))
	if n > MaxFrame {
		r.at += 4
		r.events("error", fmt.Sprintf("bad_frame: a frame of %d bytes, at most %d", n, MaxFrame))
		return nil, nil, r.discard(n)
	}
	if n <= largeFrame {
		if err := r.fill(4 + n); err != nil {
			return nil, nil, err
		}
		frame = r.chunk[r.at+4 : r.at+4+n : r.at+4+n]
		r.at += 4 + n
		return frame, nil, nil
	}
	r.at += 4
	buf := r.queue.largeBuffer(n)
	m := copy(buf, r.chunk[r.at:r.end])
	r.at += m
	if m < n {
		r.flush()
		if _, err := io.ReadFull(r.in, buf[m:]); err != nil {
			return nil, nil, eof(err)
		}
	}
	return buf, buf, nil
}

// fill reads until n bytes are in the chunk. Requests hold on to parts of a chunk, so what is full is
// left to them and a new one begun.
func (r *reader) fill(n int) error {
	if r.end-r.at >= n {
		return nil
	}
	if len(r.chunk)-r.at < n {
		fresh := make([]byte, chunkSize)
		r.end = copy(fresh, r.chunk[r.at:r.end])
		r.chunk, r.at = fresh, 0
	}
	for r.end-r.at < n {
		// Nothing may wait in the batch while the pipe is silent.
		r.flush()
		m, err := r.in.Read(r.chunk[r.end:])
		r.end += m
		if err != nil && r.end-r.at < n {
			return eof(err)
		}
	}
	return nil
}

func (r *reader) discard(n int) error {
	m := min(n, r.end-r.at)
	r.at += m
	_, err := io.CopyN(io.Discard, r.in, int64(n-m))
	return eof(err)
}

func eof(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

// accept adds the request of a frame to the batch.
func (r *reader) accept(frame, recycle []byte) {
	r.batch.reqs = append(r.batch.reqs, request{})
	r.batch.size += len(frame)
	q := &r.batch.reqs[len(r.batch.reqs)-1]
	if err := r.parse(q, frame); err != nil {
		f := parseFailure(q, err)
		outs := q.outs
		if q.verb != verbUploadPart {
			outs = r.condemned(q.verb, frame)
		}
		*q = request{verb: q.verb, call: q.call, req: q.req, fail: f, outs: outs}
		if !q.call && len(q.outs) == 0 {
			r.events("error", string(f.Reason)+": "+f.Message)
		}
	}
	q.recycle = recycle
	if r.record != nil {
		r.recordRequest(q, frame)
	}
}

// parseFailure is why a frame is no request, by the name of what was asked for.
func parseFailure(q *request, err error) *Failure {
	op := q.verb.String()
	if name := opName(q.node); q.verb == verbOp && name != "" {
		op = name
	}
	var f *Failure
	if errors.As(err, &f) {
		return failf(op, f.Reason, "%s", f.Message)
	}
	reason := ReasonBadRequest
	if q.verb == verbNone && !q.call {
		reason = ReasonBadFrame
	}
	return failf(op, reason, "%v", err)
}

// parse reads a frame into q. Where it fails, q has at least verb, call and req if those could be
// told.
func (r *reader) parse(q *request, frame []byte) error {
	d := &r.dec
	if err := d.Reset(frame, etf.Limits{Size: MaxFrame}); err != nil {
		return err
	}
	// That it is one whole term is known first, so that no request is half done.
	start := *d
	if d.Skip(); d.End() != nil {
		return d.Err()
	}
	*d = start
	n := d.Tuple()
	if d.Peek() == etf.KindInt && n == 2 {
		at := d.Offset()
		id := d.Int()
		if id < 0 {
			return d.Fail(at, "request id %d is negative", id)
		}
		if d.Err() != nil {
			return d.Err()
		}
		q.call, q.req = true, uint64(id)
		n = 1
		if d.Peek() == etf.KindTuple {
			n = d.Tuple()
		}
	}
	at := d.Offset()
	name := d.Atom()
	if d.Err() != nil {
		return d.Err()
	}
	v := verbs[string(name)]
	if v == verbNone {
		return d.Fail(at, "unknown request %s", printable(name))
	}
	q.verb = v
	if v.isCall() != q.call {
		how := map[bool]string{true: "a call: {request_id, request}", false: "a cast, and has no request id"}
		return d.Fail(at, "%v is %s", v, how[v.isCall()])
	}
	if p := parsers[v]; p.arity != n {
		return d.Fail(at, "%v is a tuple of %d elements, got %d", v, p.arity, n)
	} else if err := p.read(r, d, q); err != nil {
		return err
	}
	return d.Err()
}

// parsers are the arity of each request, its name included, and how the rest is read.
var parsers = [...]struct {
	arity int
	read  func(*reader, *etf.Decoder, *request) error
}{
	verbUpload:     {5, (*reader).parseUpload},
	verbUploadPart: {6, (*reader).parseUploadPart},
	verbOp:         {4, (*reader).parseOp},
	verbRun:        {4, (*reader).parseRun},
	verbFree:       {2, (*reader).parseFree},
	verbHello:      {3, (*reader).parseHello},
	verbCompile:    {2, (*reader).parseCompile},
	verbPlan:       {3, (*reader).parsePlan},
	verbRead:       {4, (*reader).parseRead},
	verbSync:       {2, (*reader).parseSync},
	verbInfo:       {1, func(*reader, *etf.Decoder, *request) error { return nil }},
	verbStats:      {1, func(*reader, *etf.Decoder, *request) error { return nil }},
	verbProfile: {2, func(_ *reader, d *etf.Decoder, q *request) error {
		q.on = readChoice(d, "false", "true") == 1
		return d.Err()
	}},
}

func (r *reader) parseOp(d *etf.Decoder, q *request) error {
	q.node = d.Skip()
	if err := r.readIns(d, q); err != nil {
		return err
	}
	return r.readOuts(d, q)
}

func (r *reader) parseRun(d *etf.Decoder, q *request) error {
	q.n = d.Int()
	if err := r.readIns(d, q); err != nil {
		return err
	}
	return r.readOuts(d, q)
}

func (r *reader) parseFree(d *etf.Decoder, q *request) error {
	// The list is checked whole before any of it is done.
	start := *d
	l := d.List()
	for range l.N {
		d.Int()
	}
	if d.EndList(l); d.End() != nil {
		return d.Err()
	}
	*d = start
	from := len(r.batch.tensors)
	l = d.List()
	for range l.N {
		id := uint64(d.Int())
		t := r.tensors[id]
		if u := r.partial[id]; u != nil {
			t = u.t
		}
		if t != nil {
			delete(r.partial, id)
			delete(r.tensors, id)
			r.batch.tensors = append(r.batch.tensors, t)
		}
	}
	d.EndList(l)
	q.outs = r.made(from)
	return nil
}

// made are the tensors added to the batch since from.
func (r *reader) made(from int) []*tensor {
	n := len(r.batch.tensors)
	return r.batch.tensors[from:n:n]
}

func (r *reader) parseHello(d *etf.Decoder, q *request) error {
	q.n = d.Int()
	q.extra = &extra{}
	q.hello.bulkThreshold = 1 << 20
	for range d.Map() {
		key := d.Atom()
		if d.Err() != nil {
			return d.Err()
		}
		switch string(key) {
		case "runtime_dir":
			if d.Peek() == etf.KindAtom { // nil
				d.Skip()
				continue
			}
			q.hello.runtimeDir = string(d.Binary())
		case "bulk_threshold":
			q.hello.bulkThreshold = d.Int()
		case "epoch":
			// Built from a copy: it outlives the frame.
			var own etf.Decoder
			own.ResetRaw(append([]byte(nil), d.Skip()...))
			q.hello.epoch = own.Term(etf.Limits{Depth: 8, Count: 64})
		default:
			d.Skip()
		}
	}
	if d.Err() == nil {
		r.runtimeDir = q.hello.runtimeDir
	}
	return d.Err()
}

func (r *reader) parseCompile(d *etf.Decoder, q *request) error {
	q.node = d.Skip()
	return d.Err()
}

func (r *reader) parsePlan(d *etf.Decoder, q *request) error {
	q.node = d.Skip()
	q.data = d.Skip()
	return d.Err()
}

func (r *reader) parseRead(d *etf.Decoder, q *request) error {
	t, err := r.lookup(d)
	if err != nil {
		return err
	}
	q.offset, q.length = d.Int(), d.Int()
	r.batch.operands = append(r.batch.operands, operand{tensor: t})
	q.ins = r.batch.operands[len(r.batch.operands)-1:]
	return d.Err()
}

func (r *reader) parseSync(d *etf.Decoder, q *request) error {
	l := d.List()
	from := len(r.batch.operands)
	for i := 0; i < l.N && d.Err() == nil; i++ {
		t, err := r.lookup(d)
		if err != nil {
			return err
		}
		r.batch.operands = append(r.batch.operands, operand{tensor: t})
	}
	d.EndList(l)
	q.ins = r.batch.operands[from:]
	return d.Err()
}

// lookup reads an id and finds its tensor.
func (r *reader) lookup(d *etf.Decoder) (*tensor, error) {
	id := d.Int()
	if d.Err() != nil {
		return nil, d.Err()
	}
	if t := r.tensors[uint64(id)]; t != nil {
		return t, nil
	}
	if r.partial[uint64(id)] != nil {
		return nil, &Failure{"", ReasonUnknownID, fmt.Sprintf("tensor %d is not wholly uploaded yet", id)}
	}
	return nil, &Failure{"", ReasonUnknownID, fmt.Sprintf("tensor %d was freed, or never made here", id)}
}

// readIns reads operands into the batch's arena.
func (r *reader) readIns(d *etf.Decoder, q *request) error {
	l := d.List()
	from := len(r.batch.operands)
	for i := 0; i < l.N && d.Err() == nil; i++ {
		if d.Peek() != etf.KindTuple {
			t, err := r.lookup(d)
			if err != nil {
				return err
			}
			r.batch.operands = append(r.batch.operands, operand{tensor: t})
			continue
		}
		d.TupleOf(2)
		t, err := readType(d)
		if err != nil {
			return err
		}
		r.batch.operands = append(r.batch.operands, operand{typ: t, value: readValue(d, t)})
	}
	d.EndList(l)
	q.ins = r.batch.operands[from:len(r.batch.operands):len(r.batch.operands)]
	return d.Err()
}

// readOuts makes tensors under new ids: all of them, or none.
func (r *reader) readOuts(d *etf.Decoder, q *request) error {
	l := d.List()
	from := len(r.batch.tensors)
	for i := 0; i < l.N && d.Err() == nil; i++ {
		id, err := r.newID(d)
		if err != nil {
			r.undo(from)
			return err
		}
		r.addTensor(&tensor{id: id})
	}
	if d.EndList(l); d.Err() != nil {
		r.undo(from)
	}
	q.outs = r.made(from)
	return d.Err()
}

// undo forgets the tensors made since from.
func (r *reader) undo(from int) {
	for _, t := range r.batch.tensors[from:] {
		delete(r.tensors, t.id)
	}
	r.batch.tensors = r.batch.tensors[:from]
}

// newID reads an id that is not in use.
func (r *reader) newID(d *etf.Decoder) (uint64, error) {
	at := d.Offset()
	id := d.Int()
	if d.Err() != nil {
		return 0, d.Err()
	}
	if id <= 0 {
		return 0, d.Fail(at, "id %d is not positive", id)
	}
	if r.tensors[uint64(id)] != nil || r.partial[uint64(id)] != nil {
		return 0, &Failure{"", ReasonDuplicateID, fmt.Sprintf("id %d is in use", id)}
	}
	return uint64(id), nil
}

// condemned enters the results of a request that could not be read, for the executor to mark as
// failed, so that who reads them learns why. Ids that are in use are left alone.
func (r *reader) condemned(v verb, frame []byte) []*tensor {
	if v != verbOp && v != verbRun && v != verbUpload {
		return nil
	}
	d := &r.dec
	if d.Reset(frame, etf.Limits{Size: MaxFrame}) != nil {
		return nil
	}
	d.Tuple()
	d.Skip()
	from := len(r.batch.tensors)
	condemn := func() {
		if id, err := r.newID(d); err == nil {
			r.addTensor(&tensor{id: id})
		}
	}
	if v == verbUpload {
		condemn()
		return r.made(from)
	}
	d.Skip()
	d.Skip()
	l := d.List()
	for i := 0; i < l.N && d.Err() == nil; i++ {
		condemn()
	}
	return r.made(from)
}

func (r *reader) addTensor(t *tensor) {
	r.tensors[t.id] = t
	r.batch.tensors = append(r.batch.tensors, t)
}

// opName is the name of the operation of an encoded node, "" where there is none that is known.
func opName(node []byte) string {
	var d etf.Decoder
	d.ResetRaw(node)
	d.Tuple()
	if name := d.Atom(); d.Err() == nil {
		if _, ok := graph.Lookup(graph.Op(name)); ok {
			return string(name)
		}
	}
	return ""
}
