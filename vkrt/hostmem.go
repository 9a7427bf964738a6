package vkrt

import (
	"errors"
	"slices"
	"sync"
)

// hostKind is a use of host-visible memory.
type hostKind uint8

const (
	hostArgs hostKind = iota // argument tables
	hostUp                   // staging towards the device
	hostDown                 // staging from the device
	hostKinds
)

// Sizes of the chunks that arenas are made of, and how many free bytes of them are kept.
var (
	chunkSize = [hostKinds]uint64{hostArgs: 256 << 10, hostUp: 1 << 20, hostDown: 1 << 20}
	chunkKeep = [hostKinds]uint64{hostArgs: 8 << 20, hostUp: 64 << 20, hostDown: 64 << 20}
)

// hostPools keeps free chunks of host-visible memory for the device's streams.
type hostPools struct {
	dev   *Device
	mu    sync.Mutex
	types [hostKinds]memType
	free  [hostKinds][]*deviceBlock
	bytes [hostKinds]uint64 // of free
	held  uint64            // of all chunks, free or not
}

func (p *hostPools) init(d *Device) {
	p.dev = d
	t := d.mem.types
	p.types = [hostKinds]memType{hostArgs: t.args, hostUp: t.up, hostDown: t.down}
}

// get yields a mapped chunk of at least n bytes.
func (p *hostPools) get(k hostKind, n uint64) (*deviceBlock, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	best := -1
	for i, c := range p.free[k] {
		if c.size >= n && (best < 0 || c.size < p.free[k][best].size) {
			best = i
		}
	}
	if best >= 0 {
		c := p.free[k][best]
		p.free[k] = slices.Delete(p.free[k], best, best+1)
		p.bytes[k] -= c.size
		return c, nil
	}
	size := roundUp(max(n, chunkSize[k]), 64<<10)
	c, err := p.dev.newBlock(size, p.types[k], true)
	if errors.Is(err, ErrOutOfMemory) {
		p.drop(0)
		if c, err = p.dev.newBlock(size, p.types[k], true); err != nil && k == hostArgs {
			// The window into device memory may be small (256 MiB without resizable BAR): the host's own will do.
			c, err = p.dev.newBlock(size, p.types[hostUp], true)
		}
	}
	if err == nil {
		p.held += c.size
	}
	return c, err
}

// put takes a chunk back.
func (p *hostPools) put(k hostKind, c *deviceBlock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes[k]+c.size > chunkKeep[k] {
		p.held -= c.size
		p.dev.freeBlock(c)
		return
	}
	p.free[k] = append(p.free[k], c)
	p.bytes[k] += c.size
}

// drop frees chunks until at most keep bytes of each kind are left. Under mu.
func (p *hostPools) drop(keep uint64) {
	for k := range p.free {
		p.free[k] = slices.DeleteFunc(p.free[k], func(c *deviceBlock) bool {
			if p.bytes[k] <= keep {
				return false
			}
			p.bytes[k] -= c.size
			p.held -= c.size
			p.dev.freeBlock(c)
			return true
		})
	}
}

func (p *hostPools) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(0)
}

// hostArena bumps through chunks; all of it is given up at once.
type hostArena struct {
	kind   hostKind
	chunks []*deviceBlock
	at     uint64 // within the last chunk
	bytes  uint64 // handed out since the last reset
}

// alloc yields n bytes at an offset that is a multiple of 64.
func (a *hostArena) alloc(p *hostPools, n uint64) (c *deviceBlock, at uint64, err error) {
	if len(a.chunks) > 0 {
		c = a.chunks[len(a.chunks)-1]
	}
	if c == nil || a.at+n > c.size {
		if c, err = p.get(a.kind, n); err != nil {
			return nil, 0, err
		}
		a.chunks = append(a.chunks, c)
		a.at = 0
	}
	at = a.at
	a.at = roundUp(at+n, 64)
	a.bytes += n
	return c, at, nil
}

// reset gives up everything but one ordinary chunk.
func (a *hostArena) reset(p *hostPools) {
	a.at, a.bytes = 0, 0
	if len(a.chunks) == 1 && a.chunks[0].size == chunkSize[a.kind] {
		return
	}
	for _, c := range a.chunks {
		p.put(a.kind, c)
	}
	a.chunks = a.chunks[:0]
}

// free gives up everything.
func (a *hostArena) free(p *hostPools) {
	for _, c := range a.chunks {
		p.put(a.kind, c)
	}
	*a = hostArena{kind: a.kind}
}
