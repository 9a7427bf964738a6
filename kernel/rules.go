package kernel

// rule is the type of an operation: a letter for each operand, and one for the result. Equal letters
// stand for equal types.
//
//	i  I32 or I64      w  I32      b  Bool
//	f  F32 or F64      g  another F32 or F64
//	x  any type
type rule struct {
	in  string
	out byte // 0: no such pure operation
}

// rules types the operations without side effects. Leaves, memory and control flow are typed in check.go.
var rules = [opCount]rule{
	IAdd: {"ii", 'i'}, ISub: {"ii", 'i'}, IMul: {"ii", 'i'},
	UDiv: {"ii", 'i'}, SDiv: {"ii", 'i'}, URem: {"ii", 'i'}, SRem: {"ii", 'i'},
	UMulHi: {"ww", 'w'},
	And:    {"ii", 'i'}, Or: {"ii", 'i'}, Xor: {"ii", 'i'}, Not: {"i", 'i'},
	Shl: {"ii", 'i'}, ShrU: {"ii", 'i'}, ShrS: {"ii", 'i'},
	Clz: {"w", 'w'}, PopCnt: {"w", 'w'},

	FAdd: {"ff", 'f'}, FSub: {"ff", 'f'}, FMul: {"ff", 'f'}, FDiv: {"ff", 'f'},
	FSqrt: {"f", 'f'}, FNeg: {"f", 'f'}, FAbs: {"f", 'f'},
	Floor: {"f", 'f'}, Ceil: {"f", 'f'}, Trunc: {"f", 'f'}, RoundEven: {"f", 'f'},
	Mad: {"fff", 'f'}, FmaExact: {"fff", 'f'},

	IEq: {"ii", 'b'}, INe: {"ii", 'b'},
	ULt: {"ii", 'b'}, ULe: {"ii", 'b'}, SLt: {"ii", 'b'}, SLe: {"ii", 'b'},
	FEq: {"ff", 'b'}, FNe: {"ff", 'b'}, FLt: {"ff", 'b'}, FLe: {"ff", 'b'},

	LAnd: {"bb", 'b'}, LOr: {"bb", 'b'}, LNot: {"b", 'b'},
	Select: {"bxx", 'x'},

	Wrap: {"l", 'w'}, ZExt: {"w", 'l'}, SExt: {"w", 'l'},
	SToF: {"i", 'f'}, UToF: {"i", 'f'}, FToS: {"f", 'i'}, FToU: {"f", 'i'},
	FConv: {"f", 'g'}, Bits: {"x", 'y'}, Opaque: {"x", 'x'},
}

// Pure reports whether op has no side effect, and a result that depends on its operands alone.
func Pure(op Op) bool { return op < opCount && rules[op].out != 0 }

func (r rule) letter(l byte, t Type) bool {
	switch l {
	case 'i':
		return t.Int()
	case 'w':
		return t == I32
	case 'l':
		return t == I64
	case 'b':
		return t == Bool
	case 'f', 'g':
		return t.Float()
	}
	return t > Void && t <= F64
}

// fits reports whether an operation on operands of types in may yield out.
func (r rule) fits(op Op, in [3]Type, out Type) bool {
	var bound [256]Type
	for j := range 3 {
		if j >= len(r.in) {
			if in[j] != Void {
				return false
			}
			continue
		}
		l := r.in[j]
		if !r.letter(l, in[j]) || bound[l] != Void && bound[l] != in[j] {
			return false
		}
		bound[l] = in[j]
	}
	if !r.letter(r.out, out) || bound[r.out] != Void && bound[r.out] != out {
		return false
	}
	if op == FConv {
		return in[0] != out
	}
	if op == Bits {
		return in[0] != out && in[0] != Bool && out != Bool && in[0].Bits() == out.Bits()
	}
	return true
}
