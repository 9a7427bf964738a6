package etf

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Decoder is a cursor over the term of one frame. Each method reads the next term, or says why it
// cannot; the first error sticks, and later calls yield zeros, so that callers may check Err once.
// What it hands out as bytes is part of the frame: it lives as long as the frame is left alone.
//
// A Decoder is a plain value: declare one and call Reset. It allocates only for errors and for
// compressed terms.
type Decoder struct {
	buf      []byte
	pos      int
	str      int // bytes left of a string that is being read as a list of integers
	err      *Error
	inflated bool
}

// Reset points d at a frame: the version byte, then a term, compressed or not.
func (d *Decoder) Reset(frame []byte, lim Limits) error {
	*d = Decoder{buf: frame}
	lim = lim.filled()
	if len(frame) > lim.Size {
		return d.fail(0, "frame of %d bytes is over the limit of %d", len(frame), lim.Size)
	}
	if len(frame) == 0 {
		return d.fail(0, "empty frame")
	}
	if frame[0] != Version {
		return d.fail(0, "version %d, want %d", frame[0], Version)
	}
	d.pos = 1
	if len(frame) > 1 && frame[1] == tagCompressed {
		return d.inflate(lim)
	}
	return nil
}

// ResetRaw points d at a term without the version byte, such as a span that Skip returned.
func (d *Decoder) ResetRaw(term []byte) { *d = Decoder{buf: term} }

func (d *Decoder) inflate(lim Limits) error {
	if len(d.buf) < 6 {
		return d.fail(1, "compressed term is cut off")
	}
	size := binary.BigEndian.Uint32(d.buf[2:])
	if uint64(size) > uint64(lim.Inflated) {
		return d.fail(2, "compressed term of %d bytes is over the limit of %d", size, lim.Inflated)
	}
	z, err := zlib.NewReader(bytes.NewReader(d.buf[6:]))
	if err != nil {
		return d.fail(6, "compressed term: %v", err)
	}
	// The size is a claim: grow with what really comes, since hostile frames claim the limit.
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(z, int64(size)+1))
	if err != nil {
		return d.fail(6, "compressed term: %v", err)
	}
	if n != int64(size) {
		return d.fail(2, "compressed term claims %d bytes and holds others", size)
	}
	d.buf, d.pos, d.inflated = out.Bytes(), 0, true
	return nil
}

// Err is the first error, or nil.
func (d *Decoder) Err() error {
	if d.err == nil {
		return nil
	}
	return d.err
}

// Offset is where the next term starts.
func (d *Decoder) Offset() int { return d.pos }

// End demands that nothing follows the term that was read.
func (d *Decoder) End() error {
	if d.err == nil && d.pos != len(d.buf) {
		d.fail(d.pos, "%d bytes follow the term", len(d.buf)-d.pos)
	}
	return d.Err()
}

// Fail records an error of the caller's at the term at offset, unless there was one before.
func (d *Decoder) Fail(offset int, format string, args ...any) error {
	return d.fail(offset, format, args...)
}

func (d *Decoder) fail(at int, format string, args ...any) error {
	if d.err == nil {
		d.err = &Error{Offset: at, Inflated: d.inflated, Message: fmt.Sprintf(format, args...)}
		d.pos, d.str = len(d.buf), 0
	}
	return d.err
}

func (d *Decoder) short(at int) {
	d.fail(at, "the term is cut off")
}

func (d *Decoder) want(at int, k Kind) {
	if d.err == nil {
		d.fail(at, "want %v, got %v", k, d.Peek())
	}
}

// Peek is the kind of the next term, KindInvalid at the end and for unknown tags.
func (d *Decoder) Peek() Kind {
	if d.str > 0 {
		return KindInt
	}
	if d.pos >= len(d.buf) {
		return KindInvalid
	}
	return kindOf[d.buf[d.pos]]
}

// Int reads an integer that fits an int64.
func (d *Decoder) Int() int64 {
	p, b := d.pos, d.buf
	if d.str > 0 {
		d.str--
		d.pos++
		return int64(b[p])
	}
	if len(b)-p < 2 {
		d.want(p, KindInt)
		return 0
	}
	switch b[p] {
	case tagSmallInt:
		d.pos = p + 2
		return int64(b[p+1])
	case tagInt:
		if len(b)-p < 5 {
			d.short(p)
			return 0
		}
		d.pos = p + 5
		return int64(int32(binary.BigEndian.Uint32(b[p+1:])))
	case tagSmallBig:
		n := int(b[p+1])
		if len(b)-p < 3+n {
			d.short(p)
			return 0
		}
		var v uint64
		for i, c := range b[p+3 : p+3+n] {
			if i >= 8 && c != 0 {
				d.fail(p, "integer of %d bytes does not fit 64 bits", n)
				return 0
			}
			v |= uint64(c) << (8 * (i & 7))
		}
		neg := b[p+2] != 0
		if v > 1<<63 || v == 1<<63 && !neg {
			d.fail(p, "integer does not fit a signed 64-bit one")
			return 0
		}
		d.pos = p + 3 + n
		if neg {
			return -int64(v)
		}
		return int64(v)
	}
	d.want(p, KindInt)
	return 0
}

// Float reads a float.
func (d *Decoder) Float() float64 {
	at := d.pos
	if d.str > 0 || d.Peek() != KindFloat {
		d.want(at, KindFloat)
		return 0
	}
	b := d.buf[at:]
	if b[0] == tagNewFloat {
		if len(b) < 9 {
			d.short(at)
			return 0
		}
		d.pos = at + 9
		return math.Float64frombits(binary.BigEndian.Uint64(b[1:]))
	}
	if len(b) < 32 {
		d.short(at)
		return 0
	}
	text := strings.TrimRight(string(b[1:32]), "\x00 ")
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		d.fail(at, "float %q: %v", text, err)
		return 0
	}
	d.pos = at + 32
	return f
}

// Atom reads an atom and yields its text, in UTF-8 but for the Latin-1 bytes of tags that old nodes
// write. The bytes are part of the frame.
func (d *Decoder) Atom() []byte {
	p, b := d.pos, d.buf
	if d.str > 0 || len(b)-p < 2 {
		d.want(p, KindAtom)
		return nil
	}
	var start, n int
	switch b[p] {
	case tagSmallAtomUTF8, tagSmallAtom:
		start, n = p+2, int(b[p+1])
	case tagAtomUTF8, tagAtom:
		if len(b)-p < 3 {
			d.short(p)
			return nil
		}
		start, n = p+3, int(binary.BigEndian.Uint16(b[p+1:]))
	default:
		d.want(p, KindAtom)
		return nil
	}
	if len(b)-start < n {
		d.short(p)
		return nil
	}
	d.pos = start + n
	return b[start : start+n : start+n]
}

// Tuple enters a tuple and yields its arity.
func (d *Decoder) Tuple() int {
	p, b := d.pos, d.buf
	if d.str > 0 || len(b)-p < 2 {
		d.want(p, KindTuple)
		return 0
	}
	switch b[p] {
	case tagSmallTuple:
		n := int(b[p+1])
		if n > len(b)-p-2 {
			d.short(p)
			return 0
		}
		d.pos = p + 2
		return n
	case tagLargeTuple:
		return d.count(p, 1)
	}
	d.want(p, KindTuple)
	return 0
}

// count reads a 32-bit count at p+1 and moves behind it; each item takes at least min bytes.
func (d *Decoder) count(p, min int) int {
	if len(d.buf)-p < 5 {
		d.short(p)
		return 0
	}
	n := uint64(binary.BigEndian.Uint32(d.buf[p+1:]))
	if n*uint64(min) > uint64(len(d.buf)-p-5) {
		d.short(p)
		return 0
	}
	d.pos = p + 5
	return int(n)
}

// TupleOf enters a tuple that must have the given arity, and reports whether it had.
func (d *Decoder) TupleOf(arity int) bool {
	at := d.pos
	n := d.Tuple()
	if d.err == nil && n != arity {
		d.fail(at, "want a tuple of %d elements, got %d", arity, n)
	}
	return d.err == nil
}

// List is an entered list: N elements, which the next N calls read.
type List struct {
	N    int
	tail bool
}

// List enters a list. Strings, which is what Erlang makes of lists of bytes, read as lists of
// integers. EndList must follow the elements.
func (d *Decoder) List() List {
	p, b := d.pos, d.buf
	if d.str > 0 || p >= len(b) {
		d.want(p, KindList)
		return List{}
	}
	switch b[p] {
	case tagNil:
		d.pos = p + 1
		return List{}
	case tagString:
		if len(b)-p < 3 {
			d.short(p)
			return List{}
		}
		n := int(binary.BigEndian.Uint16(b[p+1:]))
		if n > len(b)-p-3 {
			d.short(p)
			return List{}
		}
		d.pos, d.str = p+3, n
		return List{N: n}
	case tagList:
		n := d.count(p, 1)
		return List{N: n, tail: d.err == nil}
	}
	d.want(p, KindList)
	return List{}
}

// EndList leaves a list whose elements have been read, and demands that it is a proper one.
func (d *Decoder) EndList(l List) {
	if !l.tail || d.err != nil {
		return
	}
	if d.pos < len(d.buf) && d.buf[d.pos] == tagNil {
		d.pos++
		return
	}
	d.fail(d.pos, "improper list")
}

// Ints appends the elements of a list of integers to dst.
func (d *Decoder) Ints(dst []int64) []int64 {
	l := d.List()
	for i := 0; i < l.N && d.err == nil; i++ {
		dst = append(dst, d.Int())
	}
	d.EndList(l)
	return dst
}

// Map enters a map and yields the number of its pairs; keys and values follow in turn.
func (d *Decoder) Map() int {
	p := d.pos
	if d.str > 0 || p >= len(d.buf) || d.buf[p] != tagMap {
		d.want(p, KindMap)
		return 0
	}
	return d.count(p, 2)
}

// Binary reads a binary. The bytes are part of the frame.
func (d *Decoder) Binary() []byte {
	p := d.pos
	if d.str > 0 || p >= len(d.buf) || d.buf[p] != tagBinary {
		d.want(p, KindBinary)
		return nil
	}
	n := d.count(p, 1)
	if d.err != nil {
		return nil
	}
	s := d.pos
	d.pos += n
	return d.buf[s:d.pos:d.pos]
}

// Bitstring reads a binary, or a bitstring whose last byte is filled up with zeros: what a binary of Elixir is when its
// bits make no whole bytes. The bytes are part of the frame.
func (d *Decoder) Bitstring() []byte {
	p := d.pos
	if d.str > 0 || p >= len(d.buf) || d.buf[p] != tagBitBinary {
		return d.Binary()
	}
	if n := len(d.buf) - p; n < 6 || uint64(binary.BigEndian.Uint32(d.buf[p+1:])) > uint64(n-6) {
		d.Fail(p, "a bitstring that is cut short")
		return nil
	}
	s := p + 6
	d.pos = s + int(binary.BigEndian.Uint32(d.buf[p+1:]))
	return d.buf[s:d.pos:d.pos]
}

// Skip moves over the next term, whatever it is, and yields its bytes. It needs no stack, so it has
// no depth limit.
func (d *Decoder) Skip() []byte {
	start := d.pos
	if d.str > 0 {
		d.str--
		d.pos++
		return d.buf[start:d.pos]
	}
	// Every term still owed takes a byte at least: that bounds the sum, too.
	for owed := 1; owed > 0; owed-- {
		at := d.pos
		if owed > len(d.buf)-at {
			d.short(at)
			return nil
		}
		fixed, children := d.head()
		if d.err != nil {
			return nil
		}
		if fixed > len(d.buf)-at {
			d.short(at)
			return nil
		}
		d.pos = at + fixed
		owed += children
	}
	return d.buf[start:d.pos:d.pos]
}

// head sizes the term at the cursor: the bytes up to its first child (to its end where it has none),
// and the number of children.
func (d *Decoder) head() (fixed, children int) {
	b := d.buf[d.pos:]
	u16 := func(at int) int {
		if len(b) < at+2 {
			return len(b) // too long for what follows: the caller reports it as cut off
		}
		return int(binary.BigEndian.Uint16(b[at:]))
	}
	u32 := func(at int) int {
		if len(b) < at+4 {
			return len(b)
		}
		return int(binary.BigEndian.Uint32(b[at:]))
	}
	u8 := func(at int) int {
		if len(b) < at+1 {
			return len(b)
		}
		return int(b[at])
	}
	switch b[0] {
	case tagSmallInt:
		return 2, 0
	case tagInt:
		return 5, 0
	case tagSmallAtomUTF8, tagSmallAtom:
		return 2 + u8(1), 0
	case tagSmallTuple:
		return 2, u8(1)
	case tagNil:
		return 1, 0
	case tagString:
		return 3 + u16(1), 0
	case tagList:
		return 5, u32(1) + 1
	case tagBinary:
		return 5 + u32(1), 0
	case tagMap:
		return 5, 2 * u32(1)
	case tagNewFloat:
		return 9, 0
	case tagFloat:
		return 32, 0
	case tagAtomUTF8, tagAtom:
		return 3 + u16(1), 0
	case tagLargeTuple:
		return 5, u32(1)
	case tagSmallBig:
		return 3 + u8(1), 0
	case tagLargeBig:
		return 6 + u32(1), 0
	case tagBitBinary:
		return 6 + u32(1), 0
	case tagExport:
		return 1, 3
	case tagNewFun:
		// The size counts itself but not the tag.
		return max(1+u32(1), 5), 0
	case tagFun:
		return 5, 4 + u32(1)
	case tagLocal:
		return 5, 1
	case tagPid, tagPort, tagRef, tagNewPid, tagNewPort, tagV4Port:
		return 1 + nodeLen(b, 1) + afterNode[b[0]], 0
	case tagNewRef, tagNewerRef:
		return 3 + nodeLen(b, 3) + afterNode[b[0]] + 4*u16(1), 0
	}
	d.fail(d.pos, "unknown tag %d", b[0])
	return 0, 0
}

// afterNode is the number of bytes that follow the node's name in an identifier, the words of a
// reference left out.
var afterNode = [256]int{tagPid: 9, tagPort: 5, tagRef: 5, tagNewPid: 12, tagNewPort: 8, tagV4Port: 12,
	tagNewRef: 1, tagNewerRef: 4}

// nodeLen sizes the atom that names a node, which local terms leave out ([]). What is no atom is
// made too long for any frame.
func nodeLen(b []byte, at int) int {
	if at+3 <= len(b) {
		switch b[at] {
		case tagSmallAtomUTF8, tagSmallAtom:
			return 2 + int(b[at+1])
		case tagAtomUTF8, tagAtom:
			return 3 + int(binary.BigEndian.Uint16(b[at+1:]))
		case tagNil:
			return 1
		}
	}
	return len(b)
}
