package vkrt

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"nxvk/vkrt/vk"
)

// deviceBlock is one allocation with the buffer that spans it.
type deviceBlock struct {
	memory vk.DeviceMemory
	buffer vk.Buffer
	addr   uint64 // of the first usable byte, a multiple of unit
	base   uint64 // its offset in the buffer
	size   uint64 // usable bytes
	host   []byte // the usable bytes, where mapped
}

// memory is a device's tensor memory.
type memory struct {
	mu     sync.Mutex
	arena  arena
	types  memTypes
	blocks []*block
	limit  uint64
	grain  uint64 // bytes of an ordinary block
	peak   uint64
	timer  *time.Timer // set while empty blocks wait to be given back
	closed bool

	deferred atomic.Int64 // bytes of released buffers that wait for the device
}

const (
	keepIdle  = 64 << 20 // bytes of empty blocks that stay when the device is idle
	idleAfter = 2 * time.Second
)

// MemStats are a device's tensor memory in bytes.
type MemStats struct {
	InUse    uint64 `json:"in_use"`   // held by buffers, those that wait for the device's last use included
	Reserved uint64 `json:"reserved"` // taken from the driver
	Peak     uint64 `json:"peak"`     // the most that was in use
	Blocks   int    `json:"blocks"`
	Limit    uint64 `json:"limit"`
}

// Buffer is a range of device memory.
type Buffer struct {
	dev  *Device
	span *span
	size uint64
	addr uint64

	last     atomic.Uint64 // the last use: stream tag | submission number
	released atomic.Bool
	pins     atomic.Int32 // reads that are to come straight out of this memory, and the holder

	// more are last uses by other streams than last's; guarded by memory.mu.
	more []uint64

	// What the stream that works on the buffer last knows of it: the barrier epochs of the last read and
	// write, and the reads that pins counts.
	readEpoch, writeEpoch uint64
	reads                 []*event
}

// Size is the number of bytes asked for.
func (b *Buffer) Size() uint64 { return b.size }

// Addr is the device address, a multiple of 256.
func (b *Buffer) Addr() uint64 { return b.addr }

// Host is the buffer's memory as the host sees it, where tensors lie in memory that is both device-local and
// host-coherent; nil elsewhere. What the device wrote may be read once the work has finished.
func (b *Buffer) Host() []byte {
	m := b.span.block.mem
	if m.host == nil {
		return nil
	}
	return m.host[b.span.off : b.span.off+b.size : b.span.off+b.size]
}

// Cached is Host where the host reads that memory through its caches, as fast as its own; nil elsewhere.
func (b *Buffer) Cached() []byte {
	if !b.dev.mem.types.cached {
		return nil
	}
	return b.Host()
}

// offset is where the buffer starts in its block's vk.Buffer.
func (b *Buffer) offset() uint64 { return b.span.block.mem.base + b.span.off }

func (d *Device) initMemory(limit uint64) {
	m := &d.mem
	heap := d.phys.memory.MemoryHeaps[m.types.tensor.heap].Size
	m.limit = heap
	if d.phys.Class == ClassCPU {
		m.limit = heap / 4 * 3 // the heap is the machine's whole memory, and the kernel kills who takes it
	}
	if limit != 0 {
		m.limit = min(heap, limit)
	}
	m.grain = 64 << 20
	for m.grain > m.limit/16 && m.grain > 1<<20 {
		m.grain /= 2
	}
}

// allocWait is how many released bytes in flight are worth a wait instead of new memory from the driver, which costs
// more: on lavapipe a page fault for every 4 KiB, on GPUs a millisecond.
const allocWait = 64 << 20

// Alloc yields device memory for a tensor. Small buffers are cut from blocks; large ones get a block of their own,
// which serves others once it is free. Where that would take new memory from the driver while much of what was released
// only waits for submitted work, the call waits for that. When memory is short, it waits for all of it, and empty blocks go
// back to the driver. The error is ErrOutOfMemory after that.
func (d *Device) Alloc(bytes uint64) (*Buffer, error) {
	if d.closed.Load() {
		return nil, ErrClosed
	}
	for {
		if b := d.reuse(bytes); b != nil {
			return b, nil
		}
		if uint64(max(d.mem.deferred.Load(), 0)) < max(bytes, allocWait) || !d.collect() {
			break
		}
	}
	b, err := d.alloc(bytes)
	for errors.Is(err, ErrOutOfMemory) && d.collect() {
		b, err = d.alloc(bytes)
	}
	return b, err
}

// collect frees released buffers that the device is done with, after a wait for a submission of each stream that has any in
// flight. It is false when none has.
func (d *Device) collect() bool {
	any := false
	for _, s := range *d.streams.Load() {
		any = s.collect() || any
	}
	return any
}

// reuse is alloc from the blocks that are there; nil if they have no room.
func (d *Device) reuse(bytes uint64) *Buffer {
	m := &d.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	if s := m.arena.alloc(bytes); s != nil {
		return d.newBuffer(s, bytes)
	}
	return nil
}

// newBuffer wraps a span. Under memory.mu.
func (d *Device) newBuffer(s *span, bytes uint64) *Buffer {
	d.mem.peak = max(d.mem.peak, d.mem.arena.used)
	b := &Buffer{dev: d, span: s, size: bytes, addr: s.block.mem.addr + s.off}
	b.pins.Store(1)
	return b
}

func (d *Device) alloc(bytes uint64) (*Buffer, error) {
	m := &d.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	if bytes > m.limit {
		return nil, fmt.Errorf("vkrt: alloc of %d bytes: %w: the limit is %d", bytes, ErrOutOfMemory, m.limit)
	}
	s := m.arena.alloc(bytes)
	if s == nil {
		if err := d.grow(bytes); err != nil {
			return nil, err
		}
		s = m.arena.alloc(bytes)
	}
	return d.newBuffer(s, bytes), nil
}

// grow adds a block that serves bytes. Under memory.mu.
func (d *Device) grow(bytes uint64) error {
	m := &d.mem
	need := max(roundUp(bytes, unit), unit)
	// A request above a quarter of an ordinary block gets its own: cut from one, it would leave holes.
	size := m.grain
	if need > m.grain/4 {
		size = roundUp(need, 64<<10)
	}
	var err error
	for _, try := range []uint64{size, need} {
		if m.arena.total+try > m.limit {
			d.trim(0)
		}
		if m.arena.total+try > m.limit {
			err = fmt.Errorf("vkrt: alloc of %d bytes: %w: %d in use and %d reserved, the limit is %d", bytes, ErrOutOfMemory, m.arena.used, m.arena.total, m.limit)
			continue
		}
		var blk *deviceBlock
		blk, err = d.newBlock(try, m.types.tensor, m.types.mapped)
		if errors.Is(err, ErrOutOfMemory) && m.arena.empty > 0 {
			d.trim(0)
			blk, err = d.newBlock(try, m.types.tensor, m.types.mapped)
		}
		if err == nil {
			m.blocks = append(m.blocks, m.arena.addBlock(blk.size, blk))
			return nil
		}
		if !errors.Is(err, ErrOutOfMemory) {
			return err
		}
		err = fmt.Errorf("vkrt: alloc of %d bytes, %d in use: %w", bytes, m.arena.used, err)
	}
	return err
}

// newBlock takes size bytes of memory of type t from the driver, with a buffer over it.
func (d *Device) newBlock(size uint64, t memType, mapped bool) (*deviceBlock, error) {
	p, dev := d.vk, d.handle
	// The driver may align a buffer's address to less than unit: the first usable byte is rounded up.
	info := &vk.BufferCreateInfo{
		SType: vk.StructureTypeBufferCreateInfo, Size: size + unit, SharingMode: vk.SharingModeExclusive,
		Usage: vk.BufferUsageStorageBufferBit | vk.BufferUsageShaderDeviceAddressBit | vk.BufferUsageTransferSrcBit | vk.BufferUsageTransferDstBit,
	}
	buf := new(vk.Buffer)
	if err := check("vkCreateBuffer", p.CreateBuffer(dev, info, buf)); err != nil {
		return nil, err
	}
	b := &deviceBlock{buffer: *buf, size: size}
	req := new(vk.MemoryRequirements)
	p.GetBufferMemoryRequirements(dev, b.buffer, req)
	flags := &vk.MemoryAllocateFlagsInfo{SType: vk.StructureTypeMemoryAllocateFlagsInfo, Flags: vk.MemoryAllocateDeviceAddressBit}
	if size >= 16<<20 {
		dedicated := &vk.MemoryDedicatedAllocateInfo{SType: vk.StructureTypeMemoryDedicatedAllocateInfo, Buffer: b.buffer}
		flags.PNext = ptr(dedicated)
	}
	mem := new(vk.DeviceMemory)
	err := check("vkAllocateMemory", p.AllocateMemory(dev, &vk.MemoryAllocateInfo{
		SType: vk.StructureTypeMemoryAllocateInfo, PNext: ptr(flags), AllocationSize: req.Size, MemoryTypeIndex: t.index,
	}, mem))
	if err != nil {
		p.DestroyBuffer(dev, b.buffer)
		return nil, err
	}
	b.memory = *mem
	if err := check("vkBindBufferMemory", p.BindBufferMemory(dev, b.buffer, b.memory, 0)); err != nil {
		d.freeBlock(b)
		return nil, err
	}
	addr := p.GetBufferDeviceAddress(dev, &vk.BufferDeviceAddressInfo{SType: vk.StructureTypeBufferDeviceAddressInfo, Buffer: b.buffer})
	b.addr = roundUp(addr, unit)
	b.base = b.addr - addr
	if mapped {
		at := new(unsafe.Pointer)
		if err := check("vkMapMemory", p.MapMemory(dev, b.memory, 0, vk.WholeSize, 0, at)); err != nil {
			d.freeBlock(b)
			return nil, err
		}
		b.host = unsafe.Slice((*byte)(unsafe.Add(*at, b.base)), size)
	}
	return b, nil
}

func (d *Device) freeBlock(b *deviceBlock) {
	d.vk.DestroyBuffer(d.handle, b.buffer)
	d.vk.FreeMemory(d.handle, b.memory) // unmaps
}

// trim gives empty blocks back, the largest first, until at most keep bytes of them are left. Under memory.mu.
func (d *Device) trim(keep uint64) {
	m := &d.mem
	if m.arena.empty <= keep {
		return
	}
	slices.SortFunc(m.blocks, func(a, b *block) int {
		return int(min(b.size, 1<<62)) - int(min(a.size, 1<<62))
	})
	m.blocks = slices.DeleteFunc(m.blocks, func(b *block) bool {
		if b.used > 0 || m.arena.empty <= keep {
			return false
		}
		m.arena.removeBlock(b)
		d.freeBlock(b.mem)
		return true
	})
}

// Trim gives empty blocks back to the driver until at most keep bytes of them are left.
func (d *Device) Trim(keep uint64) {
	d.mem.mu.Lock()
	defer d.mem.mu.Unlock()
	if !d.mem.closed {
		d.trim(keep)
	}
}

// Memory says how much is in use.
func (d *Device) Memory() MemStats {
	m := &d.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	return MemStats{InUse: m.arena.used, Reserved: m.arena.total, Peak: m.peak, Blocks: m.arena.blocks, Limit: m.limit}
}

// Release gives the buffer back. Its memory is used again only when the last work that uses it, recorded or
// submitted before this call, has finished. A second call does nothing; any other use of a released buffer is an error.
func (b *Buffer) Release() {
	if b.released.CompareAndSwap(false, true) {
		b.unpin()
	}
}

// unpin drops one of pins; after the last the memory is free as soon as the device is done with it.
func (b *Buffer) unpin() {
	if b.pins.Add(-1) == 0 {
		b.dev.freeWhenIdle(b)
	}
}

// freeWhenIdle frees the memory of a released buffer, or hangs it on a submission that uses it.
func (d *Device) freeWhenIdle(b *Buffer) {
	if s, v := d.useOf(b.last.Load()); s != nil && s.deferFree(v, b) {
		return
	}
	m := &d.mem
	m.mu.Lock()
	for len(b.more) > 0 {
		n := len(b.more) - 1
		s, v := d.useOf(b.more[n])
		b.more = b.more[:n]
		m.mu.Unlock()
		if s != nil && s.deferFree(v, b) {
			return
		}
		m.mu.Lock()
	}
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	if m.arena.release(b.span) != nil {
		d.blockEmptied()
	}
}

// blockEmptied decides what becomes of empty blocks: up to a quarter of the limit stays ready for the next
// step of a loop; beyond that, and beyond keepIdle once nothing has emptied for a while, they go back.
// Under memory.mu.
func (d *Device) blockEmptied() {
	m := &d.mem
	d.trim(max(m.limit/4, keepIdle))
	if m.arena.empty <= keepIdle {
		return
	}
	if m.timer == nil {
		m.timer = time.AfterFunc(idleAfter, func() { d.Trim(keepIdle) })
	} else {
		m.timer.Reset(idleAfter)
	}
}

// Use tags: 16 bits of stream, 48 bits of submission number. 0 is no use.
const useBits = 48

func (d *Device) useOf(tag uint64) (*Stream, uint64) {
	if tag == 0 {
		return nil, 0
	}
	return (*d.streams.Load())[tag>>useBits-1], tag & (1<<useBits - 1)
}

// used notes that the submission which s records uses b.
func (b *Buffer) used(s *Stream) {
	tag := s.tag | s.next
	old := b.last.Load()
	if old == tag {
		return
	}
	if old != 0 && old>>useBits != tag>>useBits {
		m := &b.dev.mem
		m.mu.Lock()
		b.more = slices.DeleteFunc(b.more, func(u uint64) bool { return u>>useBits == old>>useBits })
		b.more = append(b.more, old)
		m.mu.Unlock()
	}
	b.last.Store(tag)
}

// busy reports whether recorded or submitted work may still touch the buffer.
func (b *Buffer) busy() bool {
	if s, v := b.dev.useOf(b.last.Load()); s != nil && !s.finished(v) {
		return true
	}
	m := &b.dev.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range b.more {
		if s, v := b.dev.useOf(u); !s.finished(v) {
			return true
		}
	}
	return false
}
