package vkrt

// waiter tells when a submission has finished, without blocking the stream's owner.
type waiter struct {
	stream *Stream
	signal chan struct{}
	arm    chan uint64
	armed  uint64
	done   chan struct{} // closed when the goroutine has ended; nil before its start
}

func (w *waiter) init(s *Stream) {
	w.stream, w.signal, w.arm = s, make(chan struct{}, 1), make(chan uint64, 1)
}

// Completed yields a channel that receives after a submission in flight has finished (or failed); call Poll then. It is for
// a select beside other work, and must be called anew before each select. A spare value may come.
func (s *Stream) Completed() <-chan struct{} {
	w := &s.waiter
	v := s.retired + 1
	if s.err != nil || v >= s.next || w.armed >= v {
		return w.signal
	}
	if w.done == nil {
		w.done = make(chan struct{})
		go w.run()
	}
	select {
	case w.arm <- v:
		w.armed = v
	default: // it is behind: it takes the one before first, and signals
	}
	return w.signal
}

func (w *waiter) run() {
	defer close(w.done)
	wait := new(semaphoreWait)
	wait.init(w.stream.sema)
	for v := range w.arm {
		if !w.stream.finished(v) {
			_ = wait.until(w.stream.dev, v) // Poll meets the same error
		}
		select {
		case w.signal <- struct{}{}:
		default:
		}
	}
}

func (w *waiter) close() {
	close(w.arm)
	if w.done != nil {
		<-w.done
	}
}
