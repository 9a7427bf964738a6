package graph

// MergeTypes is the type that an operation of Nx computes operands of types a and b in, as Nx.Type.merge has it:
// complex before float, float before bf16, and integers signed where one is. Of two formats of one rank
// that are not of one family, the first operand's stays.
func MergeTypes(a, b Type) Type {
	lo, hi := b, a
	if mergeRank(a) < mergeRank(b) {
		lo, hi = a, b
	}
	bits := max(a.Bits(), b.Bits())
	switch {
	case a.family() == b.family():
		return byFamily(a.family(), bits)
	case lo.Kind() == KindUnsigned && hi.Kind() == KindSigned:
		return byFamily(hi.family(), max(min(2*lo.Bits(), 64), hi.Bits()))
	case lo.family() == familyFloat && hi.Complex():
		return byFamily(hi.family(), max(2*lo.Bits(), hi.Bits()))
	}
	return hi
}

// family is what Nx writes before the size of a type.
type family uint8

const (
	familyUnsigned family = iota
	familySigned
	familyBrain
	familyE4M3
	familyFloat
	familyComplex
)

func (t Type) family() family {
	switch {
	case t == BF16:
		return familyBrain
	case t == F8E4M3FN:
		return familyE4M3
	case t.Float():
		return familyFloat
	case t.Complex():
		return familyComplex
	case t.Signed():
		return familySigned
	}
	return familyUnsigned
}

func mergeRank(t Type) int {
	if f := t.family(); f != familyE4M3 {
		return int(f)
	}
	return int(familyFloat)
}

// byFamily is the type of a family and a width that it has.
func byFamily(f family, bits int) Type {
	for t := U8; int(t) < len(typeTable); t++ {
		if t.family() == f && t.Bits() == bits {
			return t
		}
	}
	return Invalid
}
