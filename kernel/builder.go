package kernel

import (
	"fmt"
	"math"
	"slices"
)

// Ptr is a pointer argument of the kernel being built.
type Ptr struct {
	Index int
	Mem   Mem
}

// Var is a mutable register of the kernel being built.
type Var struct {
	Index int
	Type  Type
}

// Shared is a shared array of the kernel being built.
type Shared struct {
	Index int
	Mem   Mem
}

// Builder makes a Kernel. It panics on ill-typed use, since that is a bug in a generator, never
// input. Pure operations on constants fold, and equal pure operations in scope are shared, so
// generators may write index arithmetic plainly.
type Builder struct {
	T     Target
	k     Kernel
	types []Type // by Value
	def   []Instr
	head  []Instr // leaves, which dominate all: Build puts them before the rest of the body
	body  *[]Instr
	scope []map[pureKey]Value
}

type pureKey struct {
	op      Op
	t       Type
	a, b, c Value
	imm     uint64
}

// NewBuilder starts a kernel for target t.
func NewBuilder(name string, t Target, local [3]uint32) *Builder {
	b := &Builder{T: t, k: Kernel{Name: name, Local: local}, types: make([]Type, 1), def: make([]Instr, 1)}
	b.body = &b.k.Body
	b.scope = []map[pureKey]Value{{}}
	return b
}

// Build ends the kernel.
func (b *Builder) Build() *Kernel {
	k := b.k
	k.Values = len(b.types)
	k.Body = append(slices.Clip(b.head), b.k.Body...)
	return &k
}

// TypeOf is the type of v.
func (b *Builder) TypeOf(v Value) Type { return b.types[v] }

// Pointer adds a pointer argument. align is log2 of the address's alignment in bytes, 0 for the element's own.
func (b *Builder) Pointer(name string, m Mem, write bool, align uint8) Ptr {
	own := uint8(0)
	for 1<<own < m.Size() {
		own++
	}
	b.k.Args = append(b.k.Args, Arg{Name: name, Kind: ArgPtr, Mem: m, Write: write, Align: max(align, own)})
	return Ptr{len(b.k.Args) - 1, m}
}

// ScalarArg adds a scalar argument and yields it.
func (b *Builder) ScalarArg(name string, t Type) Value {
	b.k.Args = append(b.k.Args, Arg{Name: name, Kind: ArgScalar, Type: t})
	// Arguments are read at the top, so that every scope sees them.
	return b.top(Instr{Op: Scalar, Type: t, Imm: uint64(len(b.k.Args) - 1)})
}

// SharedArray adds a shared array of n elements.
func (b *Builder) SharedArray(m Mem, n int) Shared {
	b.k.Shared = append(b.k.Shared, Array{m, n})
	return Shared{len(b.k.Shared) - 1, m}
}

// NewVar adds a mutable register, set to init here.
func (b *Builder) NewVar(init Value) Var {
	v := Var{len(b.k.Vars), b.types[init]}
	b.k.Vars = append(b.k.Vars, v.Type)
	b.Set(v, init)
	return v
}

func (b *Builder) fresh(t Type, in Instr) Value {
	b.types = append(b.types, t)
	b.def = append(b.def, in)
	return Value(len(b.types) - 1)
}

// top emits a leaf before the body, where it dominates everything.
func (b *Builder) top(in Instr) Value {
	key := pureKey{in.Op, in.Type, 0, 0, 0, in.Imm}
	if v, ok := b.scope[0][key]; ok {
		return v
	}
	in.Dst = b.fresh(in.Type, in)
	b.head = append(b.head, in)
	b.scope[0][key] = in.Dst
	return in.Dst
}

func (b *Builder) emit(in Instr) Value {
	if in.Type != Void {
		in.Dst = b.fresh(in.Type, in)
	}
	*b.body = append(*b.body, in)
	return in.Dst
}

// pure emits an operation without side effects, folded and shared where possible.
func (b *Builder) pure(op Op, t Type, x, y, z Value) Value {
	if !Pure(op) || !rules[op].fits(op, [3]Type{b.types[x], b.types[y], b.types[z]}, t) {
		b.need(false, opName(op)+" to "+t.String(), x, y, z)
	}
	if v, ok := b.fold(op, t, x, y, z); ok {
		return v
	}
	key := pureKey{op, t, x, y, z, 0}
	for i := len(b.scope) - 1; i >= 0; i-- {
		if v, ok := b.scope[i][key]; ok {
			return v
		}
	}
	v := b.emit(Instr{Op: op, Type: t, A: x, B: y, C: z})
	b.scope[len(b.scope)-1][key] = v
	return v
}

func (b *Builder) need(ok bool, op string, vs ...Value) {
	if !ok {
		ts := make([]Type, len(vs))
		for i, v := range vs {
			ts[i] = b.types[v]
		}
		panic(fmt.Sprintf("kernel: %s of %v", op, ts))
	}
}

// ConstInt yields an I32 or I64 constant, given as a signed number.
func (b *Builder) ConstInt(t Type, n int64) Value {
	if t == I32 {
		return b.top(Instr{Op: Const, Type: t, Imm: uint64(uint32(n))})
	}
	return b.top(Instr{Op: Const, Type: t, Imm: uint64(n)})
}

// I32 yields an I32 constant.
func (b *Builder) I32(n int) Value { return b.ConstInt(I32, int64(n)) }

// ConstFloat yields an F32 or F64 constant; for F32 the value is rounded.
func (b *Builder) ConstFloat(t Type, f float64) Value {
	if t == F32 {
		return b.top(Instr{Op: Const, Type: t, Imm: uint64(math.Float32bits(float32(f)))})
	}
	return b.top(Instr{Op: Const, Type: t, Imm: math.Float64bits(f)})
}

// ConstBits yields a constant of any type by its bits.
func (b *Builder) ConstBits(t Type, bits uint64) Value {
	return b.top(Instr{Op: Const, Type: t, Imm: bits})
}

// ConstBool yields true or false.
func (b *Builder) ConstBool(v bool) Value {
	n := uint64(0)
	if v {
		n = 1
	}
	return b.top(Instr{Op: Const, Type: Bool, Imm: n})
}

// Zero yields the zero of t.
func (b *Builder) Zero(t Type) Value { return b.top(Instr{Op: Const, Type: t}) }

// IsConst reports whether v is a constant, and its bits.
func (b *Builder) IsConst(v Value) (uint64, bool) {
	in := b.def[v]
	return in.Imm, in.Op == Const
}

// BuiltinValue yields a builtin (GroupX …) as an I32.
func (b *Builder) BuiltinValue(which int) Value {
	return b.top(Instr{Op: Builtin, Type: I32, Imm: uint64(which)})
}

// Bin emits a two-operand arithmetic operation, both operands and the result of one type.
func (b *Builder) Bin(op Op, x, y Value) Value {
	t := b.types[x]
	float := op >= FAdd && op <= FDiv
	b.need(t == b.types[y] && t.Float() == float && (t.Int() || float), opName(op), x, y)
	return b.pure(op, t, x, y, 0)
}

// Cmp emits a comparison.
func (b *Builder) Cmp(op Op, x, y Value) Value {
	t := b.types[x]
	b.need(t == b.types[y] && (op >= FEq) == t.Float() && (t.Int() || t.Float()), opName(op), x, y)
	return b.pure(op, Bool, x, y, 0)
}

// Un emits a one-operand operation that keeps its type.
func (b *Builder) Un(op Op, x Value) Value { return b.pure(op, b.types[x], x, 0, 0) }

// Add, Sub and Mul take integers and floats.
func (b *Builder) Add(x, y Value) Value { return b.Bin(pick(b.types[x], IAdd, FAdd), x, y) }

// Sub is x-y.
func (b *Builder) Sub(x, y Value) Value { return b.Bin(pick(b.types[x], ISub, FSub), x, y) }

// Mul is x*y.
func (b *Builder) Mul(x, y Value) Value { return b.Bin(pick(b.types[x], IMul, FMul), x, y) }

// AddI is x+n for an integer x.
func (b *Builder) AddI(x Value, n int) Value {
	return b.Bin(IAdd, x, b.ConstInt(b.types[x], int64(n)))
}

// MulI is x*n for an integer x.
func (b *Builder) MulI(x Value, n int) Value {
	return b.Bin(IMul, x, b.ConstInt(b.types[x], int64(n)))
}

func pick(t Type, i, f Op) Op {
	if t.Float() {
		return f
	}
	return i
}

// And, Or, Xor take two integers or two Bools.
func (b *Builder) And(x, y Value) Value { return b.logic(And, LAnd, x, y) }

// Or is x|y.
func (b *Builder) Or(x, y Value) Value { return b.logic(Or, LOr, x, y) }

// Xor is x^y, integers only.
func (b *Builder) Xor(x, y Value) Value { return b.Bin(Xor, x, y) }

// Not is the complement of an integer or Bool.
func (b *Builder) Not(x Value) Value {
	if b.types[x] == Bool {
		return b.pure(LNot, Bool, x, 0, 0)
	}
	return b.Un(Not, x)
}

func (b *Builder) logic(i, l Op, x, y Value) Value {
	if b.types[x] == Bool {
		b.need(b.types[y] == Bool, opName(l), x, y)
		return b.pure(l, Bool, x, y, 0)
	}
	return b.Bin(i, x, y)
}

// ShlI, ShrUI and ShrSI shift an integer by a constant below its width.
func (b *Builder) ShlI(x Value, n int) Value {
	return b.Bin(Shl, x, b.ConstInt(b.types[x], int64(n)))
}

// ShrUI is the logical shift right.
func (b *Builder) ShrUI(x Value, n int) Value {
	return b.Bin(ShrU, x, b.ConstInt(b.types[x], int64(n)))
}

// ShrSI is the arithmetic shift right.
func (b *Builder) ShrSI(x Value, n int) Value {
	return b.Bin(ShrS, x, b.ConstInt(b.types[x], int64(n)))
}

// Select is c ? x : y.
func (b *Builder) Select(c, x, y Value) Value {
	b.need(b.types[c] == Bool && b.types[x] == b.types[y], "select", c, x, y)
	return b.pure(Select, b.types[x], c, x, y)
}

// Mad is x*y+z, rounded once or twice.
func (b *Builder) Mad(x, y, z Value) Value {
	b.need(b.types[x].Float() && b.types[x] == b.types[y] && b.types[x] == b.types[z], "mad", x, y, z)
	return b.pure(Mad, b.types[x], x, y, z)
}

// FmaExact is x*y+z where that is representable.
func (b *Builder) FmaExact(x, y, z Value) Value {
	b.need(b.types[x].Float() && b.types[x] == b.types[y] && b.types[x] == b.types[z], "fma_exact", x, y, z)
	return b.pure(FmaExact, b.types[x], x, y, z)
}

// Conv emits a conversion to t.
func (b *Builder) Conv(op Op, t Type, x Value) Value {
	if op == FConv && b.types[x] == t {
		return x
	}
	return b.pure(op, t, x, 0, 0)
}

// BitsTo reinterprets x as t, of the same width.
func (b *Builder) BitsTo(t Type, x Value) Value {
	if b.types[x] == t {
		return x
	}
	b.need(t.Bits() == b.types[x].Bits() && t.Bits() >= 32, "bits", x)
	return b.pure(Bits, t, x, 0, 0)
}

// Opaque is x, hidden from the driver's optimizer.
func (b *Builder) Opaque(x Value) Value { return b.pure(Opaque, b.types[x], x, 0, 0) }

// Load reads element i.
func (b *Builder) Load(p Ptr, i Value) Value {
	b.need(b.types[i].Int(), "load index", i)
	return b.emit(Instr{Op: Load, Type: p.Mem.Reg(), A: i, Imm: uint64(p.Index)})
}

// Store writes element i.
func (b *Builder) Store(p Ptr, i, v Value) {
	b.need(b.types[i].Int() && b.types[v] == p.Mem.Reg(), "store", i, v)
	b.emit(Instr{Op: Store, A: i, B: v, Imm: uint64(p.Index)})
}

// LoadV reads n (2 or 4) elements, from element n*i on.
func (b *Builder) LoadV(p Ptr, i Value, n int) []Value {
	t := p.Mem.Reg()
	in := Instr{Op: LoadV, Type: t, A: i, Imm: uint64(p.Index), N: uint8(n)}
	vs := make([]Value, n)
	for j := range vs {
		vs[j] = b.fresh(t, in)
	}
	in.Dst = vs[0]
	*b.body = append(*b.body, in)
	return vs
}

// StoreV writes len(vs) (2 or 4) elements, from element len(vs)*i on.
func (b *Builder) StoreV(p Ptr, i Value, vs []Value) {
	for _, v := range vs {
		b.need(b.types[v] == p.Mem.Reg(), "storev", v)
	}
	b.emit(Instr{Op: StoreV, A: i, Imm: uint64(p.Index), N: uint8(len(vs)), List: append([]Value(nil), vs...)})
}

// AtomicAdd adds v to I32 element i and yields the old value.
func (b *Builder) AtomicAdd(p Ptr, i, v Value) Value {
	b.need(p.Mem == M32 && b.types[v] == I32, "atomic_add", v)
	return b.emit(Instr{Op: AtomicAdd, Type: I32, A: i, B: v, Imm: uint64(p.Index)})
}

// SLoad reads element i (I32) of a shared array.
func (b *Builder) SLoad(s Shared, i Value) Value {
	b.need(b.types[i] == I32, "sload", i)
	return b.emit(Instr{Op: SLoad, Type: s.Mem.Reg(), A: i, Imm: uint64(s.Index)})
}

// SStore writes element i (I32) of a shared array.
func (b *Builder) SStore(s Shared, i, v Value) {
	b.need(b.types[i] == I32 && b.types[v] == s.Mem.Reg(), "sstore", i, v)
	b.emit(Instr{Op: SStore, A: i, B: v, Imm: uint64(s.Index)})
}

// Get reads a mutable register.
func (b *Builder) Get(v Var) Value {
	return b.emit(Instr{Op: Get, Type: v.Type, Imm: uint64(v.Index)})
}

// Set writes a mutable register.
func (b *Builder) Set(v Var, x Value) {
	b.need(b.types[x] == v.Type, "set", x)
	b.emit(Instr{Op: Set, A: x, Imm: uint64(v.Index)})
}

// Barrier makes the workgroup's shared stores visible to all of it.
func (b *Builder) Barrier() { b.emit(Instr{Op: Barrier}) }

// If emits then (and els, unless nil) under c.
func (b *Builder) If(c Value, then, els func()) {
	b.need(b.types[c] == Bool, "if", c)
	in := Instr{Op: If, A: c}
	b.nest(&in.Body, then)
	if els != nil {
		b.nest(&in.Else, els)
	}
	*b.body = append(*b.body, in)
}

// Loop emits body again and again, until a BreakIf in it.
func (b *Builder) Loop(body func()) {
	in := Instr{Op: Loop}
	b.nest(&in.Body, body)
	*b.body = append(*b.body, in)
}

// BreakIf leaves the innermost Loop when c holds.
func (b *Builder) BreakIf(c Value) { b.emit(Instr{Op: BreakIf, A: c}) }

// For runs body for i = from; i < to (unsigned); i += step, all of one integer type.
func (b *Builder) For(from, to, step Value, body func(i Value)) {
	iv := b.NewVar(from)
	b.Loop(func() {
		i := b.Get(iv)
		b.BreakIf(b.Not(b.Cmp(ULt, i, to)))
		body(i)
		b.Set(iv, b.Add(i, step))
	})
}

func (b *Builder) nest(body *[]Instr, f func()) {
	saved := b.body
	b.body = body
	b.scope = append(b.scope, map[pureKey]Value{})
	f()
	b.scope = b.scope[:len(b.scope)-1]
	b.body = saved
}

// fold simplifies integer and Bool operations. Floats are left alone: what folding could save
// there is not worth a rounding question.
func (b *Builder) fold(op Op, t Type, x, y, z Value) (Value, bool) {
	if op == Select {
		if x, ok := b.IsConst(x); ok {
			if x != 0 {
				return y, true
			}
			return z, true
		}
		if y == z {
			return y, true
		}
		return 0, false
	}
	if !(t.Int() || t == Bool) {
		return 0, false
	}
	cx, okx := b.IsConst(x)
	cy, oky := uint64(0), false
	if y != 0 {
		cy, oky = b.IsConst(y)
	}
	xt := b.types[x]
	if xt.Float() {
		return 0, false
	}
	mask := ^uint64(0)
	if xt == I32 {
		mask = math.MaxUint32
	}
	switch {
	case op == IAdd && oky && cy == 0, op == ISub && oky && cy == 0, op == Or && oky && cy == 0,
		op == Xor && oky && cy == 0, op == Shl && oky && cy == 0, op == ShrU && oky && cy == 0,
		op == ShrS && oky && cy == 0, op == IMul && oky && cy == 1, op == UDiv && oky && cy == 1,
		op == And && oky && cy == mask, op == LAnd && oky && cy == 1, op == LOr && oky && cy == 0:
		return x, true
	case op == IAdd && okx && cx == 0, op == Or && okx && cx == 0, op == IMul && okx && cx == 1,
		op == LAnd && okx && cx == 1, op == LOr && okx && cx == 0:
		return y, true
	case op == IMul && (oky && cy == 0 || okx && cx == 0), op == And && (oky && cy == 0 || okx && cx == 0):
		return b.Zero(t), true
	case op == LAnd && (oky && cy == 0 || okx && cx == 0):
		return b.ConstBool(false), true
	case op == LOr && (oky && cy == 1 || okx && cx == 1):
		return b.ConstBool(true), true
	case op == URem && oky && cy == 1:
		return b.Zero(t), true
	}
	if !okx || (y != 0 && !oky) {
		return 0, false
	}
	sx, sy := int64(cx), int64(cy)
	if xt == I32 {
		sx, sy = int64(int32(cx)), int64(int32(cy))
	}
	boolean := func(v bool) (Value, bool) { return b.ConstBool(v), true }
	integer := func(v uint64) (Value, bool) {
		if t == I32 {
			v &= math.MaxUint32
		}
		return b.ConstBits(t, v), true
	}
	switch op {
	case IAdd:
		return integer(cx + cy)
	case ISub:
		return integer(cx - cy)
	case IMul:
		return integer(cx * cy)
	case UDiv:
		if cy != 0 {
			return integer(cx / cy)
		}
	case URem:
		if cy != 0 {
			return integer(cx % cy)
		}
	case UMulHi:
		return integer(cx * cy >> 32)
	case And:
		return integer(cx & cy)
	case Or:
		return integer(cx | cy)
	case Xor:
		return integer(cx ^ cy)
	case Not:
		return integer(^cx)
	case Shl:
		return integer(cx << cy)
	case ShrU:
		return integer(cx >> cy)
	case ShrS:
		return integer(uint64(sx >> cy))
	case IEq:
		return boolean(cx == cy)
	case INe:
		return boolean(cx != cy)
	case ULt:
		return boolean(cx < cy)
	case ULe:
		return boolean(cx <= cy)
	case SLt:
		return boolean(sx < sy)
	case SLe:
		return boolean(sx <= sy)
	case LAnd:
		return boolean(cx&cy != 0)
	case LOr:
		return boolean(cx|cy != 0)
	case LNot:
		return boolean(cx == 0)
	case Wrap, ZExt:
		return integer(cx)
	case SExt:
		return integer(uint64(sx))
	}
	return 0, false
}
