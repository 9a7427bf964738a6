package kernel

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"unsafe"
)

// buffer is the memory behind a pointer argument.
type buffer struct {
	data   []byte
	mem    Mem
	shift  uint // log2 of the element's size
	limit  uint64
	shadow *shadow // nil: nobody writes here, or races are allowed
	offset uint64  // of data in the shadow's memory, in bytes
	name   string
}

// shadow remembers who touched each grain of memory during the dispatch. Invocations are numbered
// from 1.
type shadow struct {
	grain  uint // log2 of the bytes of a grain
	writer []uint32
	reader []uint32
}

// Marks in a shadow, beside the number of an invocation.
const (
	nobody = 0
	many   = 1<<32 - 1 // several readers; as a writer: AtomicAdd
)

// bindBuffers pairs arguments with memory. Arguments whose memory overlaps share a shadow.
func bindBuffers(k *Kernel, args []Bind, noShadow bool) []buffer {
	bufs := make([]buffer, len(args))
	var order []int
	for i, a := range k.Args {
		if a.Kind != ArgPtr {
			continue
		}
		shift := uint(bits.TrailingZeros(uint(a.Mem.Size())))
		bufs[i] = buffer{data: args[i].Buf, mem: a.Mem, shift: shift, limit: uint64(len(args[i].Buf)) >> shift, name: a.Name}
		if len(args[i].Buf) > 0 {
			order = append(order, i)
		}
	}
	if noShadow {
		return bufs
	}
	start := func(i int) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(args[i].Buf)))) }
	end := func(i int) uint64 { return start(i) + uint64(len(args[i].Buf)) }
	slices.SortFunc(order, func(a, b int) int {
		if start(a) < start(b) {
			return -1
		}
		return 1
	})
	for len(order) > 0 {
		first, stop, n := start(order[0]), end(order[0]), 1
		for n < len(order) && start(order[n]) < stop {
			stop = max(stop, end(order[n]))
			n++
		}
		grain, written := uint(3), false
		for _, i := range order[:n] {
			grain = min(grain, bufs[i].shift, uint(bits.TrailingZeros64(start(i)-first|8)))
			written = written || k.Args[i].Write
		}
		if written {
			cells := (stop-first)>>grain + 1
			s := &shadow{grain, make([]uint32, cells), make([]uint32, cells)}
			for _, i := range order[:n] {
				bufs[i].shadow, bufs[i].offset = s, start(i)-first
			}
		}
		order = order[n:]
	}
	return bufs
}

// access is one element (or vector) that one lane touches.
type access struct {
	n    *node
	buf  *buffer
	lane int32
	who  uint32
	at   uint64 // byte in buf.data
	size uint64
}

// place finds what lane l touches, and checks that it lies inside the buffer.
func (r *run) place(n *node, l int32) (access, error) {
	b := &r.bufs[n.Imm]
	width := uint64(1)
	if n.Op == LoadV || n.Op == StoreV {
		width = uint64(n.N)
	}
	i := r.regs[n.A][l]
	if i >= b.limit || (i+1)*width > b.limit {
		return access{}, fmt.Errorf("%s: index %d of argument %d %s (%d elements of %v), %d at a time, %s",
			describe(n.Instr), int64(i), n.Imm, b.name, b.limit, b.mem, width, r.where(l))
	}
	who := uint32(r.first*r.per) + uint32(l) + 1
	return access{n, b, l, who, i * width << b.shift, width << b.shift}, nil
}

// cells is the part of a shadow that an access touches.
func (a *access) cells() (lo, hi uint64) {
	s := a.buf.shadow
	lo = (a.buf.offset + a.at) >> s.grain
	return lo, lo + max(1, a.size>>s.grain)
}

func (r *run) race(a *access, other uint32, did string) error {
	by := "an atomic"
	if other != many {
		by = fmt.Sprintf("invocation %d of the dispatch", other-1)
	}
	if other == many && did == "read" {
		by = "several invocations"
	}
	return fmt.Errorf("%s: race at byte %d of argument %d %s: %s %s it, %s", describe(a.n.Instr), a.at, a.n.Imm, a.buf.name, by, did, r.where(a.lane))
}

// reads notes a read.
func (r *run) reads(a *access) error {
	if a.buf.shadow == nil {
		return nil
	}
	lo, hi := a.cells()
	for i := lo; i < hi; i++ {
		if w := a.buf.shadow.writer[i]; w != nobody && w != a.who {
			return r.race(a, w, "wrote")
		}
		switch rd := &a.buf.shadow.reader[i]; *rd {
		case nobody:
			*rd = a.who
		case a.who:
		default:
			*rd = many
		}
	}
	return nil
}

// writes notes a write that changes something.
func (r *run) writes(a *access, atomic bool) error {
	if a.buf.shadow == nil {
		return nil
	}
	who := a.who
	if atomic {
		who = many
	}
	lo, hi := a.cells()
	for i := lo; i < hi; i++ {
		if rd := a.buf.shadow.reader[i]; rd != nobody && rd != a.who {
			return r.race(a, rd, "read")
		}
		if w := a.buf.shadow.writer[i]; w != nobody && w != who {
			return r.race(a, w, "wrote")
		}
		a.buf.shadow.writer[i] = who
	}
	return nil
}

func getElem(b []byte, m Mem) uint64 {
	switch m {
	case M8:
		return uint64(b[0])
	case M16:
		return uint64(binary.LittleEndian.Uint16(b))
	case M32, MF32:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func putElem(b []byte, m Mem, v uint64) {
	switch m {
	case M8:
		b[0] = byte(v)
	case M16:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case M32, MF32:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

func (r *run) load(n *node, act []int32) error {
	b := &r.bufs[n.Imm]
	for _, l := range act {
		a, err := r.place(n, l)
		if err != nil {
			return err
		}
		if err := r.reads(&a); err != nil {
			return err
		}
		for j := range a.size >> b.shift {
			r.regs[n.Dst+Value(j)][l] = getElem(b.data[a.at+j<<b.shift:], b.mem)
		}
	}
	return nil
}

func (r *run) store(n *node, act []int32) error {
	b := &r.bufs[n.Imm]
	values := n.List
	if n.Op == Store {
		values = []Value{n.B}
	}
	elem := uint64(1) << b.shift
	mask := ^uint64(0) >> (64 - 8*elem)
	for _, l := range act {
		a, err := r.place(n, l)
		if err != nil {
			return err
		}
		a.size = elem
		for _, v := range values {
			to, bits := b.data[a.at:], r.regs[v][l]&mask
			// To store what is there already is no race: everyone may do so.
			if b.shadow == nil || getElem(to, b.mem) != bits {
				if err := r.writes(&a, false); err != nil {
					return err
				}
				putElem(to, b.mem, bits)
			}
			a.at += elem
		}
	}
	return nil
}

func (r *run) atomicAdd(n *node, act []int32) error {
	b := &r.bufs[n.Imm]
	for _, l := range act {
		a, err := r.place(n, l)
		if err != nil {
			return err
		}
		if err := r.writes(&a, true); err != nil {
			return err
		}
		to := b.data[a.at:]
		old := getElem(to, b.mem)
		putElem(to, b.mem, old+r.regs[n.B][l])
		r.regs[n.Dst][l] = old
	}
	return nil
}

// sharedArray holds one shared array for each workgroup of the batch.
type sharedArray struct {
	Array
	data  []uint64
	cells []sharedCell
}

// sharedCell remembers who touched an element since the barrier that began epoch. Invocations are
// numbered from 1 within the workgroup; many is several readers.
type sharedCell struct {
	epoch          uint32
	writer, reader uint32
}

func newShared(a Array, groups int) sharedArray {
	return sharedArray{a, make([]uint64, groups*a.Len), make([]sharedCell, groups*a.Len)}
}

// reset makes the content undefined, as it is when a workgroup starts.
func (s *sharedArray) reset() {
	mask := ^uint64(0) >> (64 - 8*s.Mem.Size())
	for i := range s.data {
		s.data[i] = poison & mask
	}
}

// cell finds the element that lane l touches.
func (r *run) cell(n *node, l int32) (at int, c *sharedCell, who uint32, err error) {
	s := &r.shared[n.Imm]
	i := r.regs[n.A][l]
	if i >= uint64(s.Len) {
		return 0, nil, 0, fmt.Errorf("%s: index %d of shared array %d (%d elements of %v), %s", describe(n.Instr), int32(i), n.Imm, s.Len, s.Mem, r.where(l))
	}
	g := int(l) / r.per
	at = g*s.Len + int(i)
	c = &s.cells[at]
	if c.epoch != r.epochs[g] {
		*c = sharedCell{epoch: r.epochs[g]}
	}
	return at, c, uint32(int(l)-g*r.per) + 1, nil
}

func (r *run) sharedRace(n *node, l int32, did string) error {
	return fmt.Errorf("%s: race at element %d of shared array %d: another invocation %s it since the last barrier, %s",
		describe(n.Instr), r.regs[n.A][l], n.Imm, did, r.where(l))
}

func (r *run) sharedLoad(n *node, act []int32) error {
	s := &r.shared[n.Imm]
	for _, l := range act {
		at, c, who, err := r.cell(n, l)
		if err != nil {
			return err
		}
		if c.writer != nobody && c.writer != who && !r.AllowRaces {
			return r.sharedRace(n, l, "wrote")
		}
		if c.reader == nobody {
			c.reader = who
		} else if c.reader != who {
			c.reader = many
		}
		r.regs[n.Dst][l] = s.data[at]
	}
	return nil
}

func (r *run) sharedStore(n *node, act []int32) error {
	s := &r.shared[n.Imm]
	for _, l := range act {
		at, c, who, err := r.cell(n, l)
		if err != nil {
			return err
		}
		v := r.regs[n.B][l]
		if s.data[at] == v {
			continue
		}
		if !r.AllowRaces {
			if c.writer != nobody && c.writer != who {
				return r.sharedRace(n, l, "wrote")
			}
			if c.reader != nobody && c.reader != who {
				return r.sharedRace(n, l, "read")
			}
		}
		c.writer = who
		s.data[at] = v
	}
	return nil
}
