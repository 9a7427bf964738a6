package dispatch

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"nxvk/etf"
)

// What a frame to the caller starts with.
const (
	frameReply = 0
	frameEvent = 1
)

const (
	// readsAhead is how many bytes of answers to reads may wait for the caller. Further reads are put
	// off, not the work behind them: tensors do not change, so a read may come late.
	readsAhead = 64 << 20
	// eventsAhead is how many bytes may wait before events are dropped.
	eventsAhead = 4 << 20
	// answersAhead is how many bytes may wait before whoever sends has to.
	answersAhead = 256 << 20
)

// writer sends frames from a goroutine of its own, so that a caller who is slow to read holds up
// nobody else.
type writer struct {
	out    io.Writer
	record *recorder
	failed func(error) // the other side is gone

	mu      sync.Mutex
	moved   *sync.Cond
	waiting []outgoing
	bytes   int
	bodies  [][]byte // used before, of large frames
	dropped int
	closed  bool

	drained chan struct{} // tells the executor that there is room for reads
}

// outgoing is a frame: head, then body, which is not copied.
type outgoing struct {
	head, body []byte
	bare       bool // not for the recording: it was recorded in another form
}

func newWriter(out io.Writer, record *recorder, failed func(error)) *writer {
	w := &writer{out: out, record: record, failed: failed, drained: make(chan struct{}, 1)}
	w.moved = sync.NewCond(&w.mu)
	return w
}

// startReply starts the frame that answers req.
func startReply(req uint64) []byte {
	b := make([]byte, 4, 64)
	return etf.AppendVersion(binary.BigEndian.AppendUint64(append(b, frameReply), req))
}

// replyOK starts {:ok, x}; x follows.
func replyOK(req uint64) []byte { return etf.AppendAtom(etf.AppendTuple(startReply(req), 2), "ok") }

// reply sends {:ok, x}.
func (w *writer) reply(req uint64, x etf.Term) {
	b, err := etf.AppendTerm(replyOK(req), x)
	if err != nil {
		w.fail(req, failf("reply", ReasonInternal, "%v", err))
		return
	}
	w.send(outgoing{head: b})
}

// fail sends {:error, …}.
func (w *writer) fail(req uint64, f *Failure) { w.send(outgoing{head: f.append(startReply(req))}) }

// log sends a log event, unless too much waits already.
func (w *writer) log(level, message string) {
	w.mu.Lock()
	if w.bytes > eventsAhead {
		w.dropped++
		w.mu.Unlock()
		return
	}
	dropped := w.dropped
	w.dropped = 0
	w.mu.Unlock()
	if dropped > 0 {
		message = fmt.Sprintf("(%d messages were dropped) %s", dropped, message)
	}
	w.event("log", level, message)
}

// event sends {kind, a, message}.
func (w *writer) event(kind, a, message string) {
	w.send(outgoing{head: eventFrame(kind, a, message)})
}

// eventFrame is the frame of an event, with room for its length in front.
func eventFrame(kind, a, message string) []byte {
	b := etf.AppendVersion(append(make([]byte, 4, 64+len(message)), frameEvent))
	b = etf.AppendAtom(etf.AppendAtom(etf.AppendTuple(b, 3), kind), a)
	return etf.AppendString(b, message)
}

// RefuseToServe tells the node that there will be no server, and why: what Serve would have said, had it come to that.
func RefuseToServe(out io.Writer, why error) error {
	b := eventFrame("fault", string(ReasonStart), why.Error())
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	_, err := out.Write(b)
	return err
}

func (w *writer) send(o outgoing) {
	binary.BigEndian.PutUint32(o.head, uint32(len(o.head)-4+len(o.body)))
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.bytes > answersAhead && !w.closed {
		w.moved.Wait()
	}
	w.waiting = append(w.waiting, o)
	w.bytes += len(o.head) + len(o.body)
	w.moved.Broadcast()
}

// body yields an empty buffer with room for n bytes: of a frame that has been written, where there is one.
func (w *writer) body(n int) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, b := range w.bodies {
		if cap(b) >= n {
			w.bodies = append(w.bodies[:i], w.bodies[i+1:]...)
			return b[:0]
		}
	}
	return make([]byte, 0, n)
}

// backlog is the number of bytes that wait.
func (w *writer) backlog() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes
}

// run writes until close, and what is waiting then.
func (w *writer) run() {
	var joined []byte
	for {
		w.mu.Lock()
		for len(w.waiting) == 0 && !w.closed {
			w.moved.Wait()
		}
		if len(w.waiting) == 0 {
			w.mu.Unlock()
			return
		}
		frames := w.waiting
		w.waiting = nil
		w.mu.Unlock()

		size := 0
		joined = joined[:0]
		var err error
		for i := range frames {
			f := &frames[i]
			size += len(f.head) + len(f.body)
			if w.record != nil && !f.bare {
				w.record.frame(fromPort, f.head[4:], f.body)
			}
			joined = append(joined, f.head...)
			if len(f.body) > largeFrame {
				err = w.write(err, joined)
				err = w.write(err, f.body)
				joined = joined[:0]
			} else {
				joined = append(joined, f.body...)
			}
			if len(joined) > largeFrame {
				err = w.write(err, joined)
				joined = joined[:0]
			}
		}
		err = w.write(err, joined)
		w.mu.Lock()
		w.bytes -= size
		for i := range frames {
			if b := frames[i].body; b != nil && len(w.bodies) < 2 {
				w.bodies = append(w.bodies, b)
			}
		}
		w.moved.Broadcast()
		w.mu.Unlock()
		signal(w.drained)
		if err != nil {
			w.failed(err)
		}
	}
}

func (w *writer) write(err error, b []byte) error {
	if err != nil || len(b) == 0 {
		return err
	}
	_, err = w.out.Write(b)
	return err
}

// close lets run end when all is written.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.moved.Broadcast()
	w.mu.Unlock()
}
