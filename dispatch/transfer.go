package dispatch

import (
	"fmt"
	"slices"

	"nxvk/etf"
	"nxvk/graph"
	"nxvk/vkrt"
)

// upload makes a tensor of bytes from the frame or from a bulk file.
func (e *executor) upload(q *request) *Failure {
	e.counts.Uploads++
	buf, err := e.alloc(uint64(q.shape.bytes()))
	if err != nil {
		return asFailure("upload", err)
	}
	if !q.bulk {
		err = e.put(buf, q.shape, 0, q.data)
	} else {
		err = e.uploadFile(buf, q.shape, q.file)
	}
	if err != nil {
		buf.Release()
		e.checkLost(err)
		return asFailure("upload", err)
	}
	e.counts.BytesUp += uint64(q.shape.wireBytes())
	q.outs[0].set(q.shape, &buffer{Buffer: buf})
	e.counts.Tensors++
	return nil
}

// uploadFile fills a buffer that no work uses yet from a bulk file: straight, where the host sees its memory.
func (e *executor) uploadFile(buf *vkrt.Buffer, s *shape, name string) error {
	var failed error // of the device, not of the file
	var err error
	size := s.wireBytes()
	if h := buf.Host(); h != nil && !s.packed() {
		err = readBulk(e.options.runtimeDir, name, h[:size])
	} else {
		err = readBulkPieces(e.options.runtimeDir, name, size, func(at int64, piece []byte) error {
			failed = e.put(buf, s, at, piece)
			return failed
		})
	}
	if err == nil || failed != nil {
		return failed
	}
	return &Failure{"", ReasonBadFile, err.Error()}
}

// unpackAtOnce is how many packed bytes put takes apart at a time.
const unpackAtOnce = 64 << 10

// put sends bytes of the wire to a tensor's buffer. at counts bytes of the wire.
func (e *executor) put(buf *vkrt.Buffer, s *shape, at int64, data []byte) error {
	if !s.packed() {
		return e.stream.Upload(buf, uint64(at), data)
	}
	per, total := s.perByte(), s.bytes()
	elems := make([]byte, min(total, per*int64(min(len(data), unpackAtOnce))))
	for len(data) > 0 {
		piece := data[:min(len(data), unpackAtOnce)]
		data = data[len(piece):]
		to := elems[:min(per*int64(len(piece)), total-per*at)]
		graph.Unpack(s.Type, to, piece)
		if err := e.stream.Upload(buf, uint64(per*at), to); err != nil {
			return err
		}
		at += int64(len(piece))
	}
	return nil
}

// uploadPart takes a piece of a tensor; the reader saw to the order.
func (e *executor) uploadPart(q *request) *Failure {
	t := q.outs[0]
	if t.err != nil {
		return nil
	}
	if q.offset == 0 {
		buf, err := e.alloc(uint64(q.shape.bytes()))
		if err != nil {
			return asFailure("upload_part", err)
		}
		t.set(q.shape, &buffer{Buffer: buf})
		e.counts.Tensors++
		e.counts.Uploads++
	}
	if t.buf == nil { // freed meanwhile
		return nil
	}
	if err := e.put(t.buf.Buffer, q.shape, q.offset, q.data); err != nil {
		e.checkLost(err)
		return asFailure("upload_part", err)
	}
	e.counts.BytesUp += uint64(len(q.data))
	return nil
}

// read is a read that was accepted: bytes of a tensor, which cannot change any more.
type read struct {
	req            uint64
	buf            *buffer
	offset, length int64      // on the device
	pack           graph.Type // what the answer packs; Invalid: nothing
	doubts         []*doubt
}

// maxReads bounds how many reads may be put off.
const maxReads = 1 << 16

// read answers with bytes of a tensor.
func (e *executor) read(q *request) *Failure {
	t := q.ins[0].tensor
	if f := t.failed(); f != nil {
		return f
	}
	size := t.shape.wireBytes()
	if q.offset < 0 || q.length < 0 || q.offset > size || q.length > size-q.offset {
		return failf("read", ReasonBadRequest, "bytes %d to %d of tensor %d, which has %d", q.offset, q.offset+q.length, t.id, size)
	}
	if q.length > MaxReply && e.options.runtimeDir == "" && !e.config.inline {
		return failf("read", ReasonTooLarge, "%d bytes of tensor %d at once, at most %d without bulk files: read it in pieces", q.length, t.id, MaxReply)
	}
	e.counts.Reads++
	if q.length == 0 {
		e.writer.reply(q.req, etf.Binary{})
		return nil
	}
	r := read{req: q.req, buf: t.buf, offset: q.offset, length: q.length, doubts: t.doubts}
	part := t.shape
	if part.packed() {
		per := part.perByte()
		r.pack, r.offset = part.Type, per*q.offset
		r.length = min(per*q.length, part.bytes()-r.offset)
	}
	if !part.IsContiguous(part.Shape) {
		// Only what is asked for is copied: a view of a few bytes may have the shape of more than there is memory.
		var skipped int64
		part, skipped = t.shape.window(r.offset, r.length)
		r.offset -= skipped
	}
	if part.IsContiguous(part.Shape) {
		r.offset += int64(part.Offset * part.Type.Size())
		r.buf.refs++
	} else {
		c, f := e.contiguous(&tensor{id: t.id, shape: part, buf: t.buf})
		if f != nil {
			return f
		}
		r.buf = c
	}
	if len(e.reads) > 0 || !e.room() {
		if len(e.reads) >= maxReads {
			r.buf.drop()
			return failf("read", ReasonBusy, "%d reads wait for the caller to take their answers", len(e.reads))
		}
		e.reads = append(e.reads, r)
		return nil
	}
	e.start(r)
	return nil
}

// contiguous copies a tensor of any layout into a buffer of its own, in row-major order.
func (e *executor) contiguous(t *tensor) (*buffer, *Failure) {
	var c tensor
	ins := []operand{{tensor: t}}
	e.key = operandsKey(append(e.key[:0], 'c'), ins)
	p := e.programs.get(e.key)
	if p == nil {
		g := &graph.Graph{
			Params: paramsOf(ins),
			Nodes:  []graph.Node{{Op: graph.OpAsType, In: []graph.Ref{0}, Spec: t.shape.Spec}},
			Outs:   []graph.Ref{1},
		}
		var f *Failure
		if p, f = e.bind("read", g); f != nil {
			return nil, f
		}
		e.programs.put(e.key, p)
	}
	if f := e.runProgram(p, ins, []*tensor{&c}, func() string { return "read" }); f != nil {
		return nil, f
	}
	e.counts.Tensors--
	if !c.shape.IsContiguous(c.shape.Shape) || c.shape.Offset != 0 {
		c.release()
		return nil, failf("read", ReasonInternal, "the copy of tensor %d is not contiguous", t.id)
	}
	return c.buf, nil
}

// room reports whether another read may be started.
func (e *executor) room() bool { return e.inReads+e.writer.backlog() < readsAhead }

// resume starts reads that were put off.
func (e *executor) resume() {
	for len(e.reads) > 0 && e.room() {
		r := e.reads[0]
		e.reads = e.reads[1:]
		e.start(r)
	}
	if len(e.reads) == 0 {
		e.reads = nil
	}
}

// start sends a read to the device. The answer leaves when the bytes are there.
func (e *executor) start(r read) {
	e.inReads += int(r.length)
	e.awaited++
	err := e.stream.Read(r.buf.Buffer, uint64(r.offset), uint64(r.length), func(data []byte, err error) {
		e.inReads -= int(r.length)
		e.awaited--
		if slices.ContainsFunc(r.doubts, func(d *doubt) bool { return !d.over }) {
			data = slices.Clone(data)
		}
		settle(r.doubts, func(f *Failure) {
			if err == nil && f != nil {
				err = f
			}
			if err == nil {
				err = e.answer(r, data)
			}
			if err != nil {
				e.checkLost(err)
				e.writer.fail(r.req, asFailure("read", err))
			}
		})
		r.buf.drop()
	})
	if err != nil {
		e.inReads -= int(r.length)
		e.awaited--
		r.buf.drop()
		e.checkLost(err)
		e.writer.fail(r.req, asFailure("read", err))
		return
	}
	e.check(e.stream.Submit())
}

// answer sends the bytes of a read, by frame or by file.
func (e *executor) answer(r read, data []byte) error {
	if r.pack != graph.Invalid {
		elems := data
		data = make([]byte, r.pack.PackedSize(len(elems)))
		graph.Pack(r.pack, data, elems)
	}
	e.counts.BytesDown += uint64(len(data))
	o := e.options
	if o.runtimeDir != "" && (int64(len(data)) >= o.bulkThreshold || len(data) > MaxReply) {
		err := e.answerByFile(r, data)
		if err == nil {
			return nil
		}
		// A full runtime directory is no reason to fail what a frame can carry.
		if len(data) > MaxReply {
			return &Failure{"", ReasonBadFile, err.Error()}
		}
		e.log("warning", fmt.Sprintf("read: no bulk file: %v", err))
	}
	b := etf.AppendBinaryHeader(replyOK(r.req), len(data))
	if len(data) <= largeFrame {
		e.writer.send(outgoing{head: append(b, data...)})
	} else {
		e.writer.send(outgoing{head: b, body: append(e.writer.body(len(data)), data...)})
	}
	return nil
}

func (e *executor) answerByFile(r read, data []byte) error {
	e.files++
	name := fmt.Sprintf("nxvk-%d-%d", e.config.pid, e.files)
	if err := writeBulk(e.options.runtimeDir, name, data); err != nil {
		return err
	}
	if rec := e.writer.record; rec != nil {
		rec.frame(fromPort, etf.AppendBinaryHeader(replyOK(r.req), len(data))[4:], data)
	}
	b := etf.AppendAtom(etf.AppendTuple(replyOK(r.req), 3), "file")
	e.writer.send(outgoing{head: etf.AppendInt(etf.AppendString(b, name), int64(len(data))), bare: true})
	return nil
}

// profile turns timestamps on, or off with a report: what each kernel's runs took.
func (e *executor) profile(q *request) *Failure {
	var list etf.Seq
	if e.timing {
		e.check(e.stream.Wait())
		for _, t := range e.stream.Timings() {
			list = append(list, etf.Tuple{t.Name, t.Count, t.Total.Nanoseconds()})
		}
		for _, op := range sortedKeys(e.hostOps) {
			if t := e.hostOps[op]; t.total > 0 {
				list = append(list, etf.Tuple{"host " + op, t.count - t.before, t.total.Nanoseconds()})
			}
		}
	}
	e.stream.ResetTimings()
	for _, t := range e.hostOps {
		t.before, t.total = t.count, 0
	}
	e.timing = q.on
	if err := e.stream.Profile(q.on); err != nil {
		e.check(err)
		return asFailure("profile", err)
	}
	if q.on {
		e.writer.reply(q.req, etf.Atom("ok"))
	} else {
		e.writer.reply(q.req, list)
	}
	return nil
}
