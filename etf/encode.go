package etf

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
)

// AppendVersion starts a term.
func AppendVersion(b []byte) []byte { return append(b, Version) }

// AppendInt appends an integer.
func AppendInt(b []byte, n int64) []byte {
	switch {
	case n >= 0 && n < 256:
		return append(b, tagSmallInt, byte(n))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		return binary.BigEndian.AppendUint32(append(b, tagInt), uint32(n))
	case n < 0:
		return appendSmallBig(b, 1, -uint64(n))
	}
	return appendSmallBig(b, 0, uint64(n))
}

// AppendUint appends an integer.
func AppendUint(b []byte, n uint64) []byte {
	if n <= math.MaxInt64 {
		return AppendInt(b, int64(n))
	}
	return appendSmallBig(b, 0, n)
}

func appendSmallBig(b []byte, sign byte, n uint64) []byte {
	at := len(b)
	b = append(b, tagSmallBig, 0, sign)
	for ; n > 0; n >>= 8 {
		b = append(b, byte(n))
	}
	b[at+1] = byte(len(b) - at - 3)
	return b
}

// AppendBig appends an integer.
func AppendBig(b []byte, n *big.Int) []byte {
	if n.IsInt64() {
		return AppendInt(b, n.Int64())
	}
	sign := byte(0)
	if n.Sign() < 0 {
		sign = 1
	}
	size := sizeOfBig(n)
	if size < 256 {
		b = append(b, tagSmallBig, byte(size), sign)
	} else {
		b = append(appendU32(append(b, tagLargeBig), size), sign)
	}
	at := len(b)
	b = append(b, make([]byte, size)...)
	digits := n.FillBytes(b[at:])
	for i, j := 0, size-1; i < j; i, j = i+1, j-1 {
		digits[i], digits[j] = digits[j], digits[i]
	}
	return b
}

// AppendFloat appends a float. Erlang has neither NaN nor infinities: the BEAM refuses them.
func AppendFloat(b []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(append(b, tagNewFloat), math.Float64bits(f))
}

// AppendAtom appends an atom, of at most 255 characters as Erlang has it.
func AppendAtom(b []byte, text string) []byte {
	if len(text) < 256 {
		return append(append(b, tagSmallAtomUTF8, byte(len(text))), text...)
	}
	return append(binary.BigEndian.AppendUint16(append(b, tagAtomUTF8), uint16(len(text))), text...)
}

// AppendBool appends true or false.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return AppendAtom(b, "true")
	}
	return AppendAtom(b, "false")
}

// AppendTuple starts a tuple of n elements, which follow.
func AppendTuple(b []byte, n int) []byte {
	if n < 256 {
		return append(b, tagSmallTuple, byte(n))
	}
	return appendU32(append(b, tagLargeTuple), n)
}

// AppendList starts a list of n elements, which follow, and after them AppendNil. n is not 0: the
// empty list is AppendNil alone.
func AppendList(b []byte, n int) []byte { return appendU32(append(b, tagList), n) }

// AppendNil appends the empty list, or ends a list.
func AppendNil(b []byte) []byte { return append(b, tagNil) }

// AppendMap starts a map of n pairs, which follow: key, value, key, value.
func AppendMap(b []byte, n int) []byte { return appendU32(append(b, tagMap), n) }

// AppendBinary appends a binary.
func AppendBinary(b []byte, data []byte) []byte {
	return append(AppendBinaryHeader(b, len(data)), data...)
}

// AppendString appends a binary that holds text.
func AppendString(b []byte, text string) []byte {
	return append(AppendBinaryHeader(b, len(text)), text...)
}

// AppendBinaryHeader starts a binary of n bytes, which follow.
func AppendBinaryHeader(b []byte, n int) []byte { return appendU32(append(b, tagBinary), n) }

// AppendInts appends a list of integers.
func AppendInts[T ~int | ~int32 | ~int64](b []byte, ns []T) []byte {
	if len(ns) > 0 {
		b = AppendList(b, len(ns))
		for _, n := range ns {
			b = AppendInt(b, int64(n))
		}
	}
	return AppendNil(b)
}

// Encode is the frame of a term: version byte and term.
func Encode(t Term) ([]byte, error) { return AppendTerm(AppendVersion(nil), t) }

// AppendTerm appends a built term. Beside the types of Term it takes Go's int, uint64, bool and string (a
// binary). Other types are an error.
func AppendTerm(b []byte, t Term) ([]byte, error) {
	var err error
	switch t := t.(type) {
	case int:
		return AppendInt(b, int64(t)), nil
	case int64:
		return AppendInt(b, t), nil
	case uint64:
		return AppendUint(b, t), nil
	case *big.Int:
		return AppendBig(b, t), nil
	case float64:
		return AppendFloat(b, t), nil
	case bool:
		return AppendBool(b, t), nil
	case string:
		return AppendString(b, t), nil
	case Atom:
		if len(t) > math.MaxUint16 {
			return b, fmt.Errorf("etf: atom of %d bytes", len(t))
		}
		return AppendAtom(b, string(t)), nil
	case Binary:
		return AppendBinary(b, t), nil
	case Bits:
		b = appendU32(append(b, tagBitBinary), len(t.Data))
		return append(append(b, byte(t.Last)), t.Data...), nil
	case Opaque:
		return append(b, t.Raw...), nil
	case Tuple:
		return appendTerms(AppendTuple(b, len(t)), t)
	case Seq:
		if len(t) > 0 {
			if b, err = appendTerms(AppendList(b, len(t)), t); err != nil {
				return b, err
			}
		}
		return AppendNil(b), nil
	case Improper:
		if len(t.Elems) == 0 {
			return b, fmt.Errorf("etf: improper list of no elements")
		}
		if b, err = appendTerms(AppendList(b, len(t.Elems)), t.Elems); err != nil {
			return b, err
		}
		return AppendTerm(b, t.Tail)
	case Map:
		b = AppendMap(b, len(t))
		for _, p := range t {
			if b, err = AppendTerm(b, p.Key); err != nil {
				return b, err
			}
			if b, err = AppendTerm(b, p.Value); err != nil {
				return b, err
			}
		}
		return b, nil
	}
	return b, fmt.Errorf("etf: no term for a value of type %T", t)
}

func appendTerms(b []byte, ts []Term) ([]byte, error) {
	var err error
	for _, t := range ts {
		if b, err = AppendTerm(b, t); err != nil {
			return b, err
		}
	}
	return b, nil
}
