package kernel

var opNames = [opCount]string{
	"nop", "const", "scalar", "builtin",
	"iadd", "isub", "imul", "udiv", "sdiv", "urem", "srem", "umulhi", "and", "or", "xor", "not",
	"shl", "shru", "shrs", "clz", "popcnt",
	"fadd", "fsub", "fmul", "fdiv", "fsqrt", "fneg", "fabs", "floor", "ceil", "trunc", "roundeven", "mad", "fma_exact",
	"ieq", "ine", "ult", "ule", "slt", "sle", "feq", "fne", "flt", "fle",
	"land", "lor", "lnot", "select",
	"wrap", "zext", "sext", "stof", "utof", "ftos", "ftou", "fconv", "bits", "opaque",
	"load", "store", "loadv", "storev", "atomic_add",
	"sload", "sstore", "get", "set",
	"barrier", "if", "loop", "break_if",
}

func opName(op Op) string {
	if int(op) < len(opNames) {
		return opNames[op]
	}
	return "op?"
}

func (op Op) String() string { return opName(op) }
