package dispatch

import (
	"encoding/binary"
	"slices"

	"nxvk/lower"
	"nxvk/vkrt"
)

// doubt is a run whose kernels check indices as they go: whether it failed is known when the device is done. Its
// results, and all that is computed from them meanwhile, carry the doubt.
type doubt struct {
	over    bool
	failure *Failure // over: nil if all was right
	waiting []func() // called when it is over
}

func (d *doubt) end(f *Failure) {
	d.over, d.failure = true, f
	for _, tell := range d.waiting {
		tell()
	}
	d.waiting = nil
}

// failed is the first failure that is known of t.
func (t *tensor) failed() *Failure {
	if t.err != nil {
		return t.err
	}
	for _, d := range t.doubts {
		if d.failure != nil {
			return d.failure
		}
	}
	return nil
}

// doubtsOf are the doubts that results of ins inherit: those that are not over.
func doubtsOf(ins []operand) []*doubt {
	var all []*doubt
	for i := range ins {
		t := ins[i].tensor
		if t == nil || len(t.doubts) == 0 {
			continue
		}
		t.doubts = slices.DeleteFunc(slices.Clone(t.doubts), func(d *doubt) bool { return d.over && d.failure == nil })
		for _, d := range t.doubts {
			if !slices.Contains(all, d) {
				all = append(all, d)
			}
		}
	}
	return all
}

// settle calls then with the first failure among doubts, or nil, once it is known: at once where all are over.
func settle(doubts []*doubt, then func(*Failure)) {
	for i, d := range doubts {
		if !d.over {
			d.waiting = append(d.waiting, func() { settle(doubts[i:], then) })
			return
		}
		if d.failure != nil {
			then(d.failure)
			return
		}
	}
	then(nil)
}

// flagWords is how many runs with checks may be on their way at once.
const flagWords = 4096

// flags are the words in which kernels tell what they found. A free word is zero.
type flags struct {
	buf  *vkrt.Buffer
	free []int
}

// flag takes a word.
func (e *executor) flag() (int, error) {
	f := &e.flags
	if f.buf == nil {
		buf, err := e.alloc(4 * flagWords)
		if err != nil {
			return 0, err
		}
		if err := e.stream.Upload(buf, 0, make([]byte, 4*flagWords)); err != nil {
			buf.Release()
			return 0, err
		}
		f.buf = buf
		for i := range flagWords {
			f.free = append(f.free, i)
		}
	}
	if len(f.free) == 0 { // runs that end give theirs back
		if err := e.stream.Wait(); err != nil {
			return 0, err
		}
	}
	n := len(f.free) - 1
	if n < 0 {
		return 0, failf("flag", ReasonInternal, "no word is free")
	}
	w := f.free[n]
	f.free = f.free[:n]
	return w, nil
}

// watch looks at a word when what was dispatched so far has run, and ends d. indices hold what the kernels checked,
// until then.
func (e *executor) watch(d *doubt, op string, b *lower.Bound, word int, indices held) {
	found := func(data []byte, err error) {
		if err != nil {
			indices.drop()
			d.end(asFailure(op, err))
			return
		}
		flagged := binary.LittleEndian.Uint32(data) != 0
		if flagged {
			if err := e.stream.Upload(e.flags.buf, uint64(4*word), make([]byte, 4)); err != nil {
				e.check(err)
			}
		}
		e.flags.free = append(e.flags.free, word)
		if !flagged {
			indices.drop()
			d.end(nil)
			return
		}
		e.counts.Failed++
		e.explain(d, op, b, indices)
	}
	if h := e.flags.buf.Host(); h != nil {
		e.stream.After(func(err error) { found(h[4*word:4*word+4], err) })
		return
	}
	if err := e.stream.Read(e.flags.buf, uint64(4*word), 4, found); err != nil {
		found(nil, err)
	}
}

// explain finds the index that was out of range.
func (e *executor) explain(d *doubt, op string, b *lower.Bound, indices held) {
	if b.Op != "" {
		op = string(b.Op)
	}
	if b.Message != "" {
		indices.drop()
		d.end(&Failure{op, Reason(b.Reason), b.Message})
		return
	}
	lo, hi := b.Range()
	end := func(data []byte, err error) {
		if err == nil {
			err = b.Failed(data)
		}
		f := failf(op, ReasonInternal, "an index was flagged that is in range")
		switch {
		case err != nil && data == nil:
			f = asFailure(op, err)
		case err != nil:
			f = &Failure{op, ReasonOutOfRange, err.Error()}
		}
		indices.drop()
		d.end(f)
	}
	if indices.data != nil {
		end(indices.data[lo:hi], nil)
		return
	}
	if err := e.stream.Read(indices.Buffer, uint64(lo), uint64(hi-lo), end); err != nil {
		end(nil, err)
		return
	}
	e.check(e.stream.Submit())
}

// held is a buffer that outlives the run that it was used in.
type held struct {
	*buffer
	data []byte // of a constant, instead
}

func (h held) drop() {
	if h.buffer != nil {
		h.buffer.drop()
	}
}

// hold keeps buffer i of the run at hand.
func (e *executor) hold(p *program, i int) held {
	if b := &p.bufs[i]; b.Kind == lower.BufConst {
		return held{data: b.Data}
	}
	e.owned[i].refs++
	return held{buffer: e.owned[i]}
}
