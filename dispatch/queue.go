package dispatch

import (
	"sync"
	"time"
)

// queue carries batches from the reader to the executor, in order. It holds a bounded number of
// bytes: beyond, the reader waits, and so the pipe fills and the BEAM's senders are suspended. While the
// executor waits for memory the bound is larger, since the frees that it waits for may be behind.
type queue struct {
	mu      sync.Mutex
	batches []*batch // to be run
	free    []*batch // done, to be filled again
	large   [][]byte // buffers of large frames, likewise
	bytes   int
	starved bool
	closed  bool

	limit int
	ready chan struct{} // tells the executor that there is work
	room  chan struct{} // tells the reader that there is room
}

// starvedFactor is how much more is read while the executor waits for memory.
const starvedFactor = 4

func newQueue(limit int) *queue {
	return &queue{limit: limit, ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put hands b over and waits until there is room for more. gone is asked now and then during the
// wait, and ends it.
func (q *queue) put(b *batch, gone func() bool) {
	q.mu.Lock()
	q.batches = append(q.batches, b)
	q.bytes += b.size
	q.mu.Unlock()
	signal(q.ready)
	for q.full() {
		select {
		case <-q.room:
		case <-time.After(100 * time.Millisecond):
			if gone() {
				return
			}
		}
	}
}

func (q *queue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	limit := q.limit
	if q.starved {
		limit *= starvedFactor
	}
	return q.bytes > limit && !q.closed
}

// take yields the next batch, or nil.
func (q *queue) take() *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.batches) == 0 {
		return nil
	}
	b := q.batches[0]
	q.batches[0] = nil
	q.batches = q.batches[1:]
	return b
}

// done gives a batch back.
func (q *queue) done(b *batch) {
	q.mu.Lock()
	q.bytes -= b.size
	for i := range b.reqs {
		if r := b.reqs[i].recycle; r != nil && len(q.large) < 2 {
			q.large = append(q.large, r)
		}
	}
	b.reset()
	if len(q.free) < 8 && cap(b.reqs) < 1<<14 && cap(b.operands) < 1<<16 {
		q.free = append(q.free, b)
	}
	q.mu.Unlock()
	signal(q.room)
}

// fresh yields an empty batch.
func (q *queue) fresh() *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.free); n > 0 {
		b := q.free[n-1]
		q.free = q.free[:n-1]
		return b
	}
	return &batch{}
}

// largeBuffer yields a buffer of n bytes, used before where there is one.
func (q *queue) largeBuffer(n int) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, b := range q.large {
		if cap(b) >= n {
			q.large = append(q.large[:i], q.large[i+1:]...)
			return b[:n]
		}
	}
	return make([]byte, n)
}

// starve says whether the executor waits for memory.
func (q *queue) starve(on bool) {
	q.mu.Lock()
	q.starved = on
	q.mu.Unlock()
	if on {
		signal(q.room)
	}
}

// ahead calls f with each waiting batch, in order, while the reader is held off.
func (q *queue) ahead(f func(*batch)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range q.batches {
		f(b)
	}
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	signal(q.room)
	signal(q.ready)
}
