package vkrt

import "math/bits"

// An arena hands out ranges of blocks: two-level segregated fit (Masmano and others, 2004), in units of
// 256 bytes. It knows nothing of Vulkan: a block is a size and what its owner hangs on it.
//
// Free spans are listed by size class: the power of two, and eight steps within it. Two bitmaps find the
// first class that has one, so alloc and free take constant time. Neighbours in a block are linked, so free
// coalesces at once.
type arena struct {
	lists  [levels][steps]*span
	first  uint64 // levels with a free span
	second [levels]uint8
	empty  uint64 // bytes of blocks without a live span
	used   uint64 // bytes handed out
	total  uint64 // bytes of all blocks
	blocks int
	spare  *span // recycled span structs, linked by next
}

const (
	unit      = 256 // bytes: the granularity and alignment of every range
	unitShift = 8
	stepBits  = 3
	steps     = 1 << stepBits
	levels    = 48
)

// span is a range of a block, free or handed out.
type span struct {
	block      *block
	off, size  uint64
	free       bool
	prev, next *span // by address
	up, down   *span // free list
}

// block is a range of device memory that spans are cut from.
type block struct {
	size, used uint64
	first      *span
	mem        *deviceBlock // nil in tests of the arena alone
}

// class is the list that holds free spans of size bytes (a positive multiple of unit).
func class(size uint64) (level, step int) {
	u := size >> unitShift
	if u < steps {
		return 0, int(u)
	}
	l := bits.Len64(u) - 1
	return l - stepBits + 1, int(u>>(l-stepBits)) & (steps - 1)
}

func roundUp(n, to uint64) uint64 { return (n + to - 1) &^ (to - 1) }

func (a *arena) link(s *span) {
	l, st := class(s.size)
	s.free = true
	s.up, s.down = nil, a.lists[l][st]
	if s.down != nil {
		s.down.up = s
	}
	a.lists[l][st] = s
	a.first |= 1 << l
	a.second[l] |= 1 << st
}

func (a *arena) unlink(s *span) {
	l, st := class(s.size)
	s.free = false
	if s.down != nil {
		s.down.up = s.up
	}
	if s.up != nil {
		s.up.down = s.down
		return
	}
	a.lists[l][st] = s.down
	if s.down == nil {
		a.second[l] &^= 1 << st
		if a.second[l] == 0 {
			a.first &^= 1 << l
		}
	}
}

// find yields a free span of at least size bytes, nil if there is none.
func (a *arena) find(size uint64) *span {
	l, st := class(size)
	// The class of size itself holds spans that may be too small, but also the exact fits that repeated
	// requests leave behind: look at a few of them first.
	s := a.lists[l][st]
	for range 8 {
		if s == nil {
			break
		}
		if s.size >= size {
			return s
		}
		s = s.down
	}
	if m := a.second[l] &^ (1<<(st+1) - 1); m != 0 {
		return a.lists[l][bits.TrailingZeros8(m)]
	}
	m := a.first &^ (1<<(l+1) - 1)
	if m == 0 {
		// Nothing in a larger class: then the rest of its own class must do.
		for ; s != nil; s = s.down {
			if s.size >= size {
				return s
			}
		}
		return nil
	}
	l = bits.TrailingZeros64(m)
	return a.lists[l][bits.TrailingZeros8(a.second[l])]
}

func (a *arena) newSpan(s span) *span {
	n := a.spare
	if n == nil {
		n = new(span)
	} else {
		a.spare = n.next
	}
	*n = s
	return n
}

func (a *arena) recycle(s *span) {
	*s = span{next: a.spare}
	a.spare = s
}

// addBlock adds an empty block of size bytes, a multiple of unit.
func (a *arena) addBlock(size uint64, mem *deviceBlock) *block {
	b := &block{size: size, mem: mem}
	b.first = a.newSpan(span{block: b, size: size})
	a.link(b.first)
	a.empty += size
	a.total += size
	a.blocks++
	return b
}

// removeBlock takes an empty block out.
func (a *arena) removeBlock(b *block) {
	a.unlink(b.first)
	a.recycle(b.first)
	b.first = nil
	a.empty -= b.size
	a.total -= b.size
	a.blocks--
}

// alloc hands out size bytes (rounded up to the unit), nil when no block has room.
func (a *arena) alloc(size uint64) *span {
	size = max(roundUp(size, unit), unit)
	s := a.find(size)
	if s == nil {
		return nil
	}
	a.unlink(s)
	if s.size > size {
		rest := a.newSpan(span{block: s.block, off: s.off + size, size: s.size - size, prev: s, next: s.next})
		if s.next != nil {
			s.next.prev = rest
		}
		s.next, s.size = rest, size
		a.link(rest)
	}
	b := s.block
	if b.used == 0 {
		a.empty -= b.size
	}
	b.used += size
	a.used += size
	return s
}

// release takes a span back and joins it with its free neighbours. It yields the block if that is empty now.
func (a *arena) release(s *span) *block {
	b := s.block
	b.used -= s.size
	a.used -= s.size
	if p := s.prev; p != nil && p.free {
		a.unlink(p)
		p.size += s.size
		p.next = s.next
		if s.next != nil {
			s.next.prev = p
		}
		a.recycle(s)
		s = p
	}
	if n := s.next; n != nil && n.free {
		a.unlink(n)
		s.size += n.size
		s.next = n.next
		if n.next != nil {
			n.next.prev = s
		}
		a.recycle(n)
	}
	a.link(s)
	if b.used == 0 {
		a.empty += b.size
		return b
	}
	return nil
}
