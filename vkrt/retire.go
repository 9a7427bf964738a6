package vkrt

import "fmt"

// event is a callback that waits for a submission.
type event struct {
	buf    *Buffer // a read straight out of this buffer's memory …
	off, n uint64
	chunk  *deviceBlock // … or of staging, from at
	at     uint64
	data   []byte // … or of a copy that was made because the buffer was about to change
	read   func(data []byte, err error)
	after  func(err error)
	chunks []*deviceBlock // not a callback: staging that its slot is done with
	slot   uint64         // the submission it waits for
	ready  bool
	err    error
}

// retire recycles the slots of finished submissions and queues their callbacks.
func (s *Stream) retire() {
	for s.retired < min(s.completed.Load(), s.next-1) {
		s.retired++
		l := &s.slots[s.retired%uint64(len(s.slots))]
		if l.query.used > 0 {
			if err := l.query.collect(s); err != nil {
				s.fail(err)
				return
			}
		}
		s.release(l, nil)
	}
}

// release empties a slot: callbacks go to ready, with err.
func (s *Stream) release(l *slot, err error) {
	for i, e := range l.events {
		l.events[i] = nil
		if e != nil {
			e.ready, e.err = true, err
			s.ready = append(s.ready, e)
		}
	}
	l.events = l.events[:0]
	if len(l.down.chunks) > 0 {
		s.ready = append(s.ready, &event{chunks: l.down.chunks, ready: true})
		l.down = hostArena{kind: hostDown}
	}
	l.args.reset(&s.dev.pools)
	l.up.reset(&s.dev.pools)
	clear(l.pipes)
	l.pipes = l.pipes[:0]
}

// drain runs the callbacks that are due. One that calls the stream does not start a second drain.
func (s *Stream) drain() {
	if s.draining {
		return
	}
	s.draining = true
	for i := 0; i < len(s.ready); i++ {
		e := s.ready[i]
		s.ready[i] = nil
		s.finish(e)
	}
	s.ready = s.ready[:0]
	s.draining = false
}

// finish runs one callback.
func (s *Stream) finish(e *event) {
	switch {
	case e.chunks != nil:
		for _, c := range e.chunks {
			s.dev.pools.put(hostDown, c)
		}
	case e.after != nil:
		e.after(e.err)
	case e.err != nil:
		e.read(nil, e.err)
	case e.data != nil:
		e.read(e.data, nil)
	case e.chunk != nil:
		e.read(e.chunk.host[e.at:e.at+e.n:e.at+e.n], nil)
	default:
		e.read(e.buf.Host()[e.off:e.off+e.n:e.off+e.n], nil)
	}
	if e.buf != nil {
		e.buf.dropRead(e)
	}
}

// fail makes err the stream's end: every callback that waits gets it, and so does every later call.
func (s *Stream) fail(err error) error {
	if s.err != nil {
		return s.err
	}
	s.err = err
	if err != ErrClosed {
		s.dev.log("error", fmt.Sprintf("stream failed with %d submissions in flight: %v", s.Pending(), err))
	}
	for v := s.retired + 1; v <= s.next; v++ {
		if l := &s.slots[v%uint64(len(s.slots))]; l.value == v {
			s.release(l, err)
		}
	}
	s.recording, s.slot = false, nil
	s.advance(1<<useBits - 1)
	s.retired = s.next - 1
	s.drain()
	return err
}
