package vkrt

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"nxvk/vkrt/vk"
)

// Use names a buffer that an operation touches.
type Use struct {
	Buf   *Buffer
	Write bool // it may write (and read) the buffer; otherwise it only reads
}

// Pieces of a transfer through staging, and how much staging one submission holds.
const (
	uploadPiece = 8 << 20
	uploadSlot  = 32 << 20
)

// Dispatch records a run of p over grid workgroups. table is copied into argument memory, whose address p
// finds in its push constant; uses are the buffers that its addresses point into. A memory barrier goes before it
// when a use conflicts with work since the last barrier: read after write, write after write, write after read. A
// grid with a zero extent runs nothing.
func (s *Stream) Dispatch(p *Pipeline, grid [3]uint32, table []uint64, uses []Use) error {
	if s.err != nil {
		return s.err
	}
	most := &s.dev.phys.MaxGroups
	if grid[0] > most[0] || grid[1] > most[1] || grid[2] > most[2] {
		return fmt.Errorf("vkrt: dispatch %s: grid %v, the device takes %v", p.Name, grid, *most)
	}
	if p.dev != s.dev {
		return fmt.Errorf("vkrt: dispatch %s: the pipeline is another device's", p.Name)
	}
	if grid[0] == 0 || grid[1] == 0 || grid[2] == 0 {
		return nil
	}
	for i := range uses {
		if err := s.usable("dispatch", uses[i].Buf); err != nil {
			return fmt.Errorf("%w (%s, use %d)", err, p.Name, i)
		}
	}
	if err := s.room(); err != nil {
		return err
	}
	for i := range uses {
		if uses[i].Write && len(uses[i].Buf.reads) > 0 {
			if err := s.preserve(uses[i].Buf); err != nil {
				return err
			}
		}
	}
	l := s.slot
	c, at, err := l.args.alloc(&s.dev.pools, uint64(8*len(table)))
	if err != nil {
		return err
	}
	if len(table) > 0 {
		copy(unsafe.Slice((*uint64)(unsafe.Pointer(&c.host[at])), len(table)), table)
	}
	s.order(uses)
	if p != s.bound {
		s.call.CmdBindPipeline(s.vk, l.cb, vk.PipelineBindPointCompute, p.handle)
		s.bound = p
		l.pipes = append(l.pipes, p)
	}
	s.push = c.addr + at
	s.call.CmdPushConstants(s.vk, l.cb, s.dev.pipes.layout, vk.ShaderStageComputeBit, 0, 8, unsafe.Pointer(&s.push))
	s.call.CmdDispatch(s.vk, l.cb, grid[0], grid[1], grid[2])
	l.work++
	s.stats.Dispatches++
	if l.query.used > 0 {
		l.query.mark(s, l.cb, p.Name)
	}
	return nil
}

// usable checks that b may be used on this stream.
func (s *Stream) usable(op string, b *Buffer) error {
	switch {
	case b == nil:
		return fmt.Errorf("vkrt: %s: no buffer", op)
	case b.released.Load():
		return fmt.Errorf("vkrt: %s: the buffer of %d bytes was released", op, b.size)
	case b.dev != s.dev:
		return fmt.Errorf("vkrt: %s: the buffer of %d bytes is another device's", op, b.size)
	}
	return nil
}

// bounds checks a range of b.
func (s *Stream) bounds(op string, b *Buffer, off, n uint64) error {
	if err := s.usable(op, b); err != nil {
		return err
	}
	if off > b.size || n > b.size-off {
		return fmt.Errorf("vkrt: %s: %d bytes from %d of a buffer of %d", op, n, off, b.size)
	}
	return nil
}

// room makes sure that a recording is open and can take one more operation.
func (s *Stream) room() error {
	if s.recording && s.slot.query.full() {
		if err := s.Submit(); err != nil {
			return err
		}
	}
	return s.begin()
}

// order puts a barrier before an operation with these uses, if one is needed, and notes them.
func (s *Stream) order(uses []Use) {
	for i := range uses {
		b := uses[i].Buf
		if b.writeEpoch == s.epoch || uses[i].Write && b.readEpoch == s.epoch {
			s.fence(stages, stages, accessWrites, accessAll)
			break
		}
	}
	for i := range uses {
		b := uses[i].Buf
		if uses[i].Write {
			b.writeEpoch = s.epoch
		} else {
			b.readEpoch = s.epoch
		}
		b.used(s)
	}
}

// order1 is order for one use or two.
func (s *Stream) order1(uses ...Use) { s.order(uses) }

// copyBuffers records a copy between vk.Buffers; order was called.
func (s *Stream) copyBuffers(src vk.Buffer, srcOff uint64, dst vk.Buffer, dstOff, n uint64, name string) {
	l := s.slot
	s.region = vk.BufferCopy{SrcOffset: srcOff, DstOffset: dstOff, Size: n}
	s.call.CmdCopyBuffer(s.vk, l.cb, src, dst, 1, &s.region)
	l.work++
	s.stats.Copies++
	if l.query.used > 0 {
		l.query.mark(s, l.cb, name)
	}
}

// Upload writes data to dst from off on; it has taken data when it returns. Where the buffer is mapped and no work
// uses it, that is one copy by the host; else the bytes go through staging, in order with the stream's other work.
func (s *Stream) Upload(dst *Buffer, off uint64, data []byte) error {
	if s.err != nil {
		return s.err
	}
	if err := s.bounds("upload", dst, off, uint64(len(data))); err != nil {
		return err
	}
	if len(data) == 0 {
		return nil
	}
	if h := dst.Host(); h != nil && len(dst.reads) == 0 && !dst.busy() {
		copy(h[off:], data)
		return nil
	}
	for len(data) > 0 {
		n := min(len(data), uploadPiece)
		if s.recording && s.slot.up.bytes+uint64(n) > uploadSlot {
			if err := s.Submit(); err != nil {
				return err
			}
		}
		if err := s.room(); err != nil {
			return err
		}
		if len(dst.reads) > 0 {
			if err := s.preserve(dst); err != nil {
				return err
			}
		}
		c, at, err := s.slot.up.alloc(&s.dev.pools, uint64(n))
		if err != nil {
			return err
		}
		copy(c.host[at:], data[:n])
		s.order1(Use{dst, true})
		s.copyBuffers(c.buffer, c.base+at, dst.span.block.mem.buffer, dst.offset()+off, uint64(n), "upload")
		data = data[n:]
		off += uint64(n)
	}
	return nil
}

// Copy copies n bytes between buffers. Ranges of one buffer must not overlap.
func (s *Stream) Copy(dst *Buffer, dstOff uint64, src *Buffer, srcOff, n uint64) error {
	if s.err != nil {
		return s.err
	}
	if err := s.bounds("copy to", dst, dstOff, n); err != nil {
		return err
	}
	if err := s.bounds("copy from", src, srcOff, n); err != nil {
		return err
	}
	if dst == src && dstOff < srcOff+n && srcOff < dstOff+n {
		return fmt.Errorf("vkrt: copy: %d bytes from %d to %d of one buffer overlap", n, srcOff, dstOff)
	}
	if n == 0 {
		return nil
	}
	if err := s.room(); err != nil {
		return err
	}
	if len(dst.reads) > 0 {
		if err := s.preserve(dst); err != nil {
			return err
		}
	}
	s.order1(Use{src, false}, Use{dst, true})
	s.copyBuffers(src.span.block.mem.buffer, src.offset()+srcOff, dst.span.block.mem.buffer, dst.offset()+dstOff, n, "copy")
	return nil
}

// Read schedules done with n bytes of src from off on, as they are at this point of the stream's order. done runs in
// the stream's goroutine: inside Poll or Wait, or inside Read itself when the bytes are there already. data is valid
// during the call only. It may be the device's own memory: one copy out of it is all that it costs. src may be
// released meanwhile. Reads of many megabytes on devices with staging are better split.
func (s *Stream) Read(src *Buffer, off, n uint64, done func(data []byte, err error)) error {
	if s.err != nil {
		return s.err
	}
	if err := s.bounds("read", src, off, n); err != nil {
		return err
	}
	e := &event{off: off, n: n, read: done}
	if n == 0 {
		e.data = []byte{}
		e.ready = true
		s.ready = append(s.ready, e)
		s.drain()
		return nil
	}
	if s.dev.mem.types.cached {
		return s.readMapped(src, e)
	}
	if err := s.room(); err != nil {
		return err
	}
	return s.stage(src, e)
}

// readMapped waits for the last use of src and then hands its own memory out.
func (s *Stream) readMapped(src *Buffer, e *event) error {
	at := uint64(0) // the submission to wait for
	if src.busy() {
		if u, v := s.dev.useOf(src.last.Load()); u == s && len(src.more) == 0 {
			at = v
		} else {
			// Another stream's work comes first: what this one submits next runs after it.
			if err := s.begin(); err != nil {
				return err
			}
			at = s.next
		}
	}
	e.buf = src
	src.pins.Add(1)
	src.reads = append(src.reads, e)
	if at <= s.retired {
		e.ready = true
		s.ready = append(s.ready, e)
		s.drain()
		return nil
	}
	s.attach(at, e)
	return nil
}

// attach makes e wait for submission v, which is recorded or in flight.
func (s *Stream) attach(v uint64, e *event) {
	e.slot = v
	l := &s.slots[v%uint64(len(s.slots))]
	l.events = append(l.events, e)
}

// stage copies the range of e into staging within the open recording, and makes e wait for that.
func (s *Stream) stage(src *Buffer, e *event) error {
	c, at, err := s.slot.down.alloc(&s.dev.pools, e.n)
	if err != nil {
		return err
	}
	s.order1(Use{src, false})
	s.copyBuffers(src.span.block.mem.buffer, src.offset()+e.off, c.buffer, c.base+at, e.n, "read")
	e.chunk, e.at = c, at
	s.attach(s.next, e)
	return nil
}

// preserve is called before a write to b, whose reads are still to be handed out: they get copies. A recording is open.
func (s *Stream) preserve(b *Buffer) error {
	for _, e := range slices.Clone(b.reads) {
		if e.ready {
			e.data = slices.Clone(b.Host()[e.off : e.off+e.n])
		} else {
			l := &s.slots[e.slot%uint64(len(s.slots))]
			i := slices.Index(l.events, e)
			if err := s.stage(b, e); err != nil {
				return err
			}
			l.events[i] = nil
		}
		b.dropRead(e)
	}
	return nil
}

// dropRead ends e's hold on b.
func (b *Buffer) dropRead(e *event) {
	e.buf = nil
	if i := slices.Index(b.reads, e); i >= 0 {
		b.reads = slices.Delete(b.reads, i, i+1)
		b.unpin()
	}
}

// After runs done when everything recorded so far has finished, in the stream's goroutine: inside Poll or Wait, or
// at once when nothing is in flight. done gets the stream's error if it failed.
func (s *Stream) After(done func(err error)) {
	e := &event{after: done, err: s.err}
	switch {
	case s.err == nil && s.recording:
		s.attach(s.next, e)
	case s.err == nil && s.next-1 > s.retired:
		s.attach(s.next-1, e)
	default:
		e.ready = true
		s.ready = append(s.ready, e)
		s.drain()
	}
}

// Alloc is Device.Alloc for a buffer that this stream will use first: it also submits and waits for what is only recorded
// yet, and hands due reads out, since those hold their buffers.
func (s *Stream) Alloc(bytes uint64) (*Buffer, error) {
	d := s.dev
	for s.err == nil {
		if b := d.reuse(bytes); b != nil {
			return b, nil
		}
		if uint64(max(d.mem.deferred.Load(), 0)) < max(bytes, allocWait) || !s.waitOldest() {
			break
		}
	}
	b, err := d.Alloc(bytes)
	for errors.Is(err, ErrOutOfMemory) && s.waitOldest() {
		b, err = d.Alloc(bytes)
	}
	if errors.Is(err, ErrOutOfMemory) && len(s.ready) > 0 && !s.draining {
		s.drain()
		b, err = d.Alloc(bytes)
	}
	return b, err
}

// waitOldest waits for the oldest submission, after submitting what is recorded if none is in flight; false if there is
// no work at all, or the stream failed. Callbacks stay due.
func (s *Stream) waitOldest() bool {
	if s.retired == s.next-1 && s.Submit() != nil || s.retired == s.next-1 {
		return false
	}
	return s.waitFor(s.retired+1) == nil
}
