package etf

import (
	"encoding/binary"
	"math/big"
	"unicode/utf8"
)

// Term is a built term: int64, *big.Int (beyond int64), float64, Atom, Tuple, Seq, Improper, Binary,
// Bits, Map or Opaque.
type Term any

// Atom is an atom's text.
type Atom string

// Tuple is a tuple.
type Tuple []Term

// Seq is a proper list; the empty one is [].
type Seq []Term

// Improper is a list whose tail is no list; Elems is not empty.
type Improper struct {
	Elems []Term
	Tail  Term
}

// Binary is a binary. A decoded one is part of the frame.
type Binary []byte

// Bits is a bitstring: the last byte holds Last bits (1 to 7), at its high end.
type Bits struct {
	Data []byte
	Last int
}

// Pair is an entry of a Map.
type Pair struct{ Key, Value Term }

// Map is a map, in the order of the frame.
type Map []Pair

// Get is the value of an atom key, or nil.
func (m Map) Get(key Atom) Term {
	for _, p := range m {
		if p.Key == key {
			return p.Value
		}
	}
	return nil
}

// Opaque is a pid, port, reference, fun or local term, kept as it came. A decoded one is part of the
// frame.
type Opaque struct {
	Kind Kind
	Raw  []byte // the encoded term, without the version byte
}

// Decode builds the one term of a frame.
func Decode(frame []byte, lim Limits) (Term, error) {
	var d Decoder
	if err := d.Reset(frame, lim); err != nil {
		return nil, err
	}
	t := d.Term(lim)
	return t, d.End()
}

// Term builds the next term, within lim's Depth and Count.
func (d *Decoder) Term(lim Limits) Term {
	lim = lim.filled()
	b := builder{d: d, depth: lim.Depth, count: lim.Count}
	t := b.term()
	if d.err != nil {
		return nil
	}
	return t
}

type builder struct {
	d            *Decoder
	depth, count int // left
}

func (b *builder) term() Term {
	d := b.d
	at := d.pos
	if b.count--; b.count < 0 {
		d.fail(at, "too many terms")
	}
	if b.depth--; b.depth < 0 {
		d.fail(at, "nested too deeply")
	}
	if d.err != nil {
		return nil
	}
	defer func() { b.depth++ }()
	switch d.Peek() {
	case KindInt:
		return b.integer()
	case KindFloat:
		return d.Float()
	case KindAtom:
		old := d.buf[at] == tagAtom || d.buf[at] == tagSmallAtom
		text := d.Atom()
		if d.err != nil {
			return nil
		}
		if old {
			return Atom(fromLatin1(text))
		}
		if !utf8.Valid(text) {
			d.fail(at, "atom is not UTF-8")
			return nil
		}
		return Atom(text)
	case KindTuple:
		return Tuple(b.terms(d.Tuple()))
	case KindList:
		l := d.List()
		elems := b.terms(l.N)
		if l.tail && d.err == nil && d.pos < len(d.buf) && d.buf[d.pos] != tagNil {
			tail := b.term()
			if len(elems) == 0 {
				return tail // a list of no elements is its tail
			}
			// A list as the tail of a list continues it.
			switch t := tail.(type) {
			case Seq:
				return Seq(append(elems, t...))
			case Improper:
				return Improper{append(elems, t.Elems...), t.Tail}
			}
			return Improper{elems, tail}
		}
		d.EndList(l)
		return Seq(elems)
	case KindMap:
		n := d.Map()
		m := make(Map, 0, b.room(n))
		for i := 0; i < n && d.err == nil; i++ {
			k := b.term()
			m = append(m, Pair{k, b.term()})
		}
		return m
	case KindBinary:
		return Binary(d.Binary())
	case KindBitstring:
		raw := d.Skip()
		if d.err != nil {
			return nil
		}
		last := int(raw[5])
		if last < 1 || last > 8 || len(raw) == 6 {
			d.fail(at, "bitstring with %d bits in its last byte of %d", last, len(raw)-6)
			return nil
		}
		if last == 8 {
			return Binary(raw[6:])
		}
		return Bits{raw[6:], last}
	case KindInvalid:
		d.Skip() // names the trouble
		return nil
	}
	kind := d.Peek()
	return Opaque{kind, d.Skip()}
}

// terms builds n terms. What is allocated at once is bounded by what the frame may still hold.
func (b *builder) terms(n int) []Term {
	ts := make([]Term, 0, b.room(n))
	for i := 0; i < n && b.d.err == nil; i++ {
		ts = append(ts, b.term())
	}
	return ts
}

func (b *builder) room(n int) int { return min(n, b.count, 1024) }

func (b *builder) integer() Term {
	d := b.d
	p := d.pos
	if d.str > 0 || d.buf[p] == tagSmallInt || d.buf[p] == tagInt {
		return d.Int()
	}
	raw := d.Skip()
	if d.err != nil {
		return nil
	}
	digits, sign := raw[3:], raw[2]
	if raw[0] == tagLargeBig {
		digits, sign = raw[6:], raw[5]
	}
	be := make([]byte, len(digits))
	for i, c := range digits {
		be[len(be)-1-i] = c
	}
	n := new(big.Int).SetBytes(be)
	if sign != 0 {
		n.Neg(n)
	}
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}

func fromLatin1(b []byte) string {
	r := make([]rune, len(b))
	for i, c := range b {
		r[i] = rune(c)
	}
	return string(r)
}

// sizeOfBig is the number of bytes of the digits of n.
func sizeOfBig(n *big.Int) int { return (n.BitLen() + 7) / 8 }

func appendU32(b []byte, n int) []byte { return binary.BigEndian.AppendUint32(b, uint32(n)) }
