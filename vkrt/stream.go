package vkrt

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"nxvk/vkrt/vk"
)

// Stream is an ordered queue of work. Operations are recorded into a command buffer; Submit, Kick or Wait
// hands it to the device; Poll and Wait see its end, run callbacks and recycle memory. A ring of slots, each
// with its own command buffer and argument memory, is in flight; recording into a full ring waits for the oldest.
type Stream struct {
	dev  *Device
	vk   *vk.DeviceProcs // the device's
	tag  uint64          // stream number + 1, above useBits
	sema vk.Semaphore    // timeline: the number of the last finished submission
	err  error           // sticky: the first failure of the stream

	next      uint64 // number of the submission that is, or will be, recorded
	retired   uint64 // submissions up to this one are recycled
	recording bool
	slot      *slot // of next, while recording
	slots     []slot

	submitted atomic.Uint64 // handed to the device
	completed atomic.Uint64 // finished, as far as known

	freeing sync.Mutex // guards slot.value and slot.frees

	// Recording state.
	epoch, epochs uint64    // of the last barrier; unique over streams
	bound         *Pipeline // in the command buffer
	profiling     bool
	timings       map[string]*KernelTime

	stats StreamStats

	// Callbacks whose work has finished, in order.
	ready    []*event
	draining bool

	// Parameter blocks that the driver reads: on the heap, with the stream.
	call    vk.Args
	count   uint64 // of the timeline
	push    uint64
	barrier vk.MemoryBarrier
	region  vk.BufferCopy
	wait    semaphoreWait
	spin    time.Duration // how long a wait looks before it sleeps
	begins  vk.CommandBufferBeginInfo

	waiter waiter
}

// slot is a place in the ring.
type slot struct {
	value  uint64 // the submission that it holds or held
	pool   vk.CommandPool
	cb     vk.CommandBuffer
	args   hostArena
	up     hostArena
	down   hostArena
	pipes  []*Pipeline // that the recording uses
	events []*event
	frees  []*Buffer // released, to be freed when value has finished
	work   int       // dispatches and copies recorded
	query  querySlot

	submit   vk.SubmitInfo
	timeline vk.TimelineSemaphoreSubmitInfo
	signal   uint64
	handle   vk.CommandBuffer // what submit points to
	sema     vk.Semaphore
}

// semaphoreWait is a wait for one value of one timeline.
type semaphoreWait struct {
	call  vk.Args
	info  vk.SemaphoreWaitInfo
	sema  vk.Semaphore
	value uint64
}

func (w *semaphoreWait) init(s vk.Semaphore) {
	w.sema = s
	w.info = vk.SemaphoreWaitInfo{SType: vk.StructureTypeSemaphoreWaitInfo, SemaphoreCount: 1, PSemaphores: &w.sema, PValues: &w.value}
}

// until blocks until the timeline has reached v.
func (w *semaphoreWait) until(d *Device, v uint64) error {
	w.value = v
	return check("vkWaitSemaphores", w.call.WaitSemaphores(d.vk, d.handle, &w.info, ^uint64(0)))
}

// StreamStats counts what a stream recorded and submitted.
type StreamStats struct {
	Submissions uint64 `json:"submissions"`
	Dispatches  uint64 `json:"dispatches"`
	Copies      uint64 `json:"copies"`   // on the device, those through staging included
	Barriers    uint64 `json:"barriers"` // two or three of them for each submission
	Waits       uint64 `json:"waits"`    // how often the owner had to wait for the device
}

// Stats counts what was recorded and submitted.
func (s *Stream) Stats() StreamStats { return s.stats }

// NewStream makes a stream. It lives until the device is closed.
func (d *Device) NewStream() *Stream {
	s := &Stream{dev: d, vk: d.vk, next: 1, timings: map[string]*KernelTime{}}
	s.barrier = vk.MemoryBarrier{SType: vk.StructureTypeMemoryBarrier}
	s.begins = vk.CommandBufferBeginInfo{SType: vk.StructureTypeCommandBufferBeginInfo, Flags: vk.CommandBufferUsageOneTimeSubmitBit}
	if d.phys.Class != ClassCPU && runtime.NumCPU() > 1 {
		s.spin = spinTime
	}
	d.opening.Lock()
	defer d.opening.Unlock()
	old := *d.streams.Load()
	s.tag = uint64(len(old)+1) << useBits
	if d.closed.Load() {
		s.err = ErrClosed
	} else {
		s.err = s.open()
	}
	all := append(old[:len(old):len(old)], s)
	d.streams.Store(&all)
	s.waiter.init(s)
	return s
}

func (s *Stream) open() error {
	d := s.dev
	sema := new(vk.Semaphore)
	err := check("vkCreateSemaphore", s.vk.CreateSemaphore(d.handle, &vk.SemaphoreCreateInfo{
		SType: vk.StructureTypeSemaphoreCreateInfo,
		PNext: ptr(&vk.SemaphoreTypeCreateInfo{SType: vk.StructureTypeSemaphoreTypeCreateInfo, SemaphoreType: vk.SemaphoreTypeTimeline}),
	}, sema))
	if err != nil {
		return err
	}
	s.sema = *sema
	s.wait.init(s.sema)
	s.slots = make([]slot, d.ring)
	for i := range s.slots {
		if err := s.slots[i].open(s); err != nil {
			return err
		}
	}
	return nil
}

func (l *slot) open(s *Stream) error {
	d := s.dev
	pool := new(vk.CommandPool)
	err := check("vkCreateCommandPool", s.vk.CreateCommandPool(d.handle, &vk.CommandPoolCreateInfo{
		SType: vk.StructureTypeCommandPoolCreateInfo, Flags: vk.CommandPoolCreateTransientBit, QueueFamilyIndex: d.phys.family,
	}, pool))
	if err != nil {
		return err
	}
	l.pool = *pool
	cb := new(vk.CommandBuffer)
	err = check("vkAllocateCommandBuffers", s.vk.AllocateCommandBuffers(d.handle, &vk.CommandBufferAllocateInfo{
		SType: vk.StructureTypeCommandBufferAllocateInfo, CommandPool: l.pool, Level: vk.CommandBufferLevelPrimary, CommandBufferCount: 1,
	}, cb))
	if err != nil {
		return err
	}
	l.cb, l.handle, l.sema = *cb, *cb, s.sema
	l.args.kind, l.up.kind, l.down.kind = hostArgs, hostUp, hostDown
	l.timeline = vk.TimelineSemaphoreSubmitInfo{
		SType: vk.StructureTypeTimelineSemaphoreSubmitInfo, SignalSemaphoreValueCount: 1, PSignalSemaphoreValues: &l.signal,
	}
	l.submit = vk.SubmitInfo{
		SType: vk.StructureTypeSubmitInfo, PNext: ptr(&l.timeline), CommandBufferCount: 1, PCommandBuffers: &l.handle,
		SignalSemaphoreCount: 1, PSignalSemaphores: &l.sema,
	}
	return nil
}

// close frees what the stream holds. The device is idle: callbacks of submitted work run as ever, those of work that
// was only recorded get ErrClosed.
func (s *Stream) close() {
	if s.Poll() == nil {
		s.fail(ErrClosed)
	}
	s.waiter.close()
	for i := range s.slots {
		l := &s.slots[i]
		for _, a := range []*hostArena{&l.args, &l.up, &l.down} {
			a.free(&s.dev.pools)
		}
		l.query.close(s)
		s.vk.DestroyCommandPool(s.dev.handle, l.pool)
	}
	s.slots = nil
	s.vk.DestroySemaphore(s.dev.handle, s.sema)
}

// spinTime is how long a wait for a GPU looks before it sleeps.
const spinTime = 50 * time.Microsecond

const (
	stages       = vk.PipelineStageComputeShaderBit | vk.PipelineStageTransferBit
	accessWrites = vk.AccessShaderWriteBit | vk.AccessTransferWriteBit
	accessAll    = vk.AccessShaderReadBit | vk.AccessTransferReadBit | accessWrites
)

// begin starts a recording, unless one is open.
func (s *Stream) begin() error {
	if s.recording || s.err != nil {
		return s.err
	}
	l := &s.slots[s.next%uint64(len(s.slots))]
	if l.value > s.retired {
		if err := s.waitFor(l.value); err != nil {
			return err
		}
	}
	s.freeing.Lock()
	l.value = s.next
	s.freeing.Unlock()
	if err := check("vkResetCommandPool", s.call.ResetCommandPool(s.vk, s.dev.handle, l.pool, 0)); err != nil {
		return s.fail(err)
	}
	if err := check("vkBeginCommandBuffer", s.call.BeginCommandBuffer(s.vk, l.cb, &s.begins)); err != nil {
		return s.fail(err)
	}
	s.recording, s.slot, s.bound, l.work = true, l, nil, 0
	if s.profiling {
		if err := l.query.begin(s, l.cb); err != nil {
			return s.fail(err)
		}
	}
	s.fence(stages|vk.PipelineStageHostBit, stages, accessWrites|vk.AccessHostWriteBit, accessAll)
	return nil
}

// fence records a memory barrier and starts a new epoch.
func (s *Stream) fence(from, to vk.PipelineStageFlags, src, dst vk.AccessFlags) {
	s.barrier.SrcAccessMask, s.barrier.DstAccessMask = src, dst
	s.call.CmdPipelineBarrier(s.vk, s.slot.cb, from, to, 0, 1, &s.barrier, 0, nil, 0, nil)
	s.stats.Barriers++
	s.epochs++
	s.epoch = s.tag | s.epochs
}

// Submit hands what is recorded to the device; nothing recorded is no error.
func (s *Stream) Submit() error {
	if s.err != nil || !s.recording {
		return s.err
	}
	l := s.slot
	if s.dev.mem.types.mapped || len(l.events) > 0 {
		// What was written becomes visible to the host.
		s.fence(stages, vk.PipelineStageHostBit, accessWrites, vk.AccessHostReadBit)
	}
	if err := check("vkEndCommandBuffer", s.call.EndCommandBuffer(s.vk, l.cb)); err != nil {
		return s.fail(err)
	}
	l.signal = s.next
	s.submitted.Store(s.next) // first, so that nobody sees the device ahead of it
	s.dev.submitting.Lock()
	r := s.call.QueueSubmit(s.vk, s.dev.queue, 1, &l.submit, 0)
	s.dev.submitting.Unlock()
	if err := check("vkQueueSubmit", r); err != nil {
		return s.fail(err)
	}
	s.next++
	s.recording, s.slot = false, nil
	s.stats.Submissions++
	return nil
}

// How much a recording gathers while the device is busy.
const (
	kickAhead = 2   // submissions in flight that keep the device from running dry
	kickWork  = 16  // work that is worth a submission while fewer are in flight
	kickMost  = 256 // work that is submitted in any case
)

// Kick submits what is recorded if the device would be idle without it, or if it is much. Call it after each batch
// of operations: the first goes out at once, and those that come while the device is busy share a submission.
func (s *Stream) Kick() error {
	if !s.recording {
		return s.err
	}
	w := s.slot.work
	if s.submitted.Load() > s.completed.Load() {
		s.refresh()
	}
	flying := s.submitted.Load() - min(s.completed.Load(), s.submitted.Load())
	if flying == 0 || flying < kickAhead && w >= kickWork || w >= kickMost {
		return s.Submit()
	}
	return nil
}

// Idle reports whether nothing is recorded, in flight or waiting for its callback. It does not ask the device: Poll does.
func (s *Stream) Idle() bool {
	return !s.recording && s.retired == s.next-1 && len(s.ready) == 0
}

// Pending counts the submissions in flight, as far as Poll has seen.
func (s *Stream) Pending() int { return int(s.next - 1 - s.retired) }

// Poll retires finished submissions: it runs their callbacks and recycles their memory. It never waits.
func (s *Stream) Poll() error {
	if s.err == nil && s.submitted.Load() > s.retired {
		if err := s.refresh(); err != nil {
			return s.fail(err)
		}
		s.retire()
	}
	s.drain()
	return s.err
}

// Wait submits what is recorded and blocks until all of it has finished and its callbacks have run.
func (s *Stream) Wait() error {
	if err := s.Submit(); err != nil {
		s.drain()
		return err
	}
	err := s.waitFor(s.next - 1)
	s.drain()
	return err
}

// WaitOne blocks until the oldest submission in flight has finished, and retires it. With none in flight it
// submits what is recorded first; with nothing to do it returns at once.
func (s *Stream) WaitOne() error {
	if s.retired == s.next-1 {
		if err := s.Submit(); err != nil {
			return err
		}
	}
	if s.retired == s.next-1 {
		return s.Poll()
	}
	err := s.waitFor(s.retired + 1)
	s.drain()
	return err
}

// waitFor blocks until submission v has finished, and retires up to what has.
func (s *Stream) waitFor(v uint64) error {
	if s.err != nil {
		return s.err
	}
	// On a GPU short work ends sooner than a sleep in the kernel does: look for a while first.
	for start := time.Now(); !s.finished(v) && time.Since(start) < s.spin; {
		if err := s.refresh(); err != nil {
			return s.fail(err)
		}
	}
	if !s.finished(v) {
		s.stats.Waits++
		if err := s.wait.until(s.dev, v); err != nil {
			return s.fail(err)
		}
		if err := s.refresh(); err != nil {
			return s.fail(err)
		}
	}
	s.retire()
	return nil
}

func (s *Stream) finished(v uint64) bool { return s.completed.Load() >= v }

// refresh asks how far the device is, and frees released buffers that waited for it.
func (s *Stream) refresh() error {
	return s.counted(s.call.GetSemaphoreCounterValue(s.vk, s.dev.handle, s.sema, &s.count), s.count)
}

// counted takes the answer of vkGetSemaphoreCounterValue. Any goroutine may call it.
func (s *Stream) counted(r vk.Result, v uint64) error {
	if v > s.submitted.Load() && r >= 0 {
		// Drivers may count a lost device's timelines up to the end, so that waits return, before they say that it is lost.
		r = vk.ErrorDeviceLost
	}
	if err := check("vkGetSemaphoreCounterValue", r); err != nil {
		return err
	}
	s.advance(v)
	return nil
}

// advance notes that submissions up to v have finished.
func (s *Stream) advance(v uint64) {
	for {
		old := s.completed.Load()
		if v <= old {
			return
		}
		if s.completed.CompareAndSwap(old, v) {
			break
		}
	}
	var frees []*Buffer
	s.freeing.Lock()
	for i := range s.slots {
		if l := &s.slots[i]; l.value <= v && len(l.frees) > 0 {
			frees = append(frees, l.frees...)
			clear(l.frees)
			l.frees = l.frees[:0]
		}
	}
	s.freeing.Unlock()
	for _, b := range frees {
		s.dev.mem.deferred.Add(-int64(b.span.size))
		s.dev.freeWhenIdle(b)
	}
}

// collect waits for the next submission to finish and frees the released buffers that it used; false with none in flight.
// Any goroutine may call it.
func (s *Stream) collect() bool {
	v := s.completed.Load() + 1
	if v > s.submitted.Load() {
		return false
	}
	w := new(semaphoreWait)
	w.init(s.sema)
	if w.until(s.dev, v) != nil {
		return false // the stream's owner will meet the same error
	}
	n := new(uint64)
	r := s.vk.GetSemaphoreCounterValue(s.dev.handle, s.sema, n)
	return s.counted(r, *n) == nil
}

// deferFree keeps b for submission v; false if that has finished.
func (s *Stream) deferFree(v uint64, b *Buffer) bool {
	s.freeing.Lock()
	defer s.freeing.Unlock()
	if s.finished(v) {
		return false
	}
	l := &s.slots[v%uint64(len(s.slots))]
	l.frees = append(l.frees, b)
	s.dev.mem.deferred.Add(int64(b.span.size))
	return true
}
