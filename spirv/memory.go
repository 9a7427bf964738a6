package spirv

import (
	"math/bits"

	"nxvk/kernel"
)

// How a kernel reaches memory is decided here alone. An address from the argument table becomes a
// pointer to a struct that holds a runtime array of the element (or of a vector of them); an I32 index
// goes into the access chain, where drivers sign-extend it, so it must be below 2^31; an I64 index is
// multiplied out into the address. Nothing is marked Restrict: a result may lie where an operand lay.
//
// A device without 64-bit integers has addresses and words of the argument table as pairs of 32-bit ones, which are
// cast to pointers; its kernels have no I64, so no address is ever computed with. On one without 8- or 16-bit
// elements those are parts of words: see subword.go.

// ptrKey names a typed view of a pointer argument.
type ptrKey struct {
	arg int
	n   uint8 // elements of the vector, 1 for a scalar; asWords: the words that hold the elements
}

// wordType is the type of an entry of the argument table.
func (e *emitter) wordType() uint32 {
	if e.t.I64 {
		return e.u64()
	}
	return e.vector(e.u32(), 2)
}

// low is the lower half of an entry of the argument table.
func (e *emitter) low(word uint32) uint32 {
	if e.t.I64 {
		return e.value(opUConvert, e.u32(), word)
	}
	return e.value(opCompositeExtract, e.u32(), word, 0)
}

// toPointer makes a pointer of type typ of an address, an entry of the argument table.
func (e *emitter) toPointer(typ, address uint32) uint32 {
	if e.t.I64 {
		return e.value(opConvertUToPtr, typ, address)
	}
	return e.value(opBitcast, typ, address)
}

// prologue declares what lives for the whole kernel and reads, once, every argument that it uses.
func (e *emitter) prologue() {
	use := &e.need
	use.inWords = e.inWords
	use.walk(e.k)

	wordType := e.wordType()
	table := e.runtimeBlock(wordType, 8)
	push := e.iblock(wordType)
	pushVar := e.global(storagePushConstant, push)
	zero := e.const32(0)
	addr := e.value(opLoad, wordType, e.value(opAccessChain, e.pointer(storagePushConstant, wordType), pushVar, zero))
	base := e.toPointer(e.pointer(storagePhysicalStore, table), addr)
	word := func(i uint32) uint32 {
		p := e.value(opAccessChain, e.pointer(storagePhysicalStore, wordType), base, zero, e.const32(i))
		return e.value(opLoad, wordType, p, accessAligned, 8)
	}

	e.args = make([]uint32, len(e.k.Args))
	for i, a := range e.k.Args {
		if !use.args[i] {
			continue
		}
		w := word(uint32(i) + 1)
		if a.Kind == kernel.ArgScalar {
			w = e.narrow(a.Type, w)
		}
		e.args[i] = w
	}
	if use.opaque {
		e.opaque64 = word(0)
		e.opaque32 = e.low(e.opaque64)
	}
	e.hidden()
	e.blocks = make(map[ptrKey]uint32, len(use.views))
	for _, v := range use.views {
		if v.n == asWords {
			e.declareWords(v)
			continue
		}
		m := e.k.Args[v.arg].Mem
		elem, size := e.elem(m, v.n)
		p := e.pointer(storagePhysicalStore, e.runtimeBlock(elem, size))
		e.blocks[v] = e.toPointer(p, e.args[v.arg])
	}
	for i := 0; i < len(e.builtins); i += 3 {
		e.builtin(i, use.builtins[i:i+3])
	}
	for _, a := range e.k.Shared {
		array := e.once(opTypeArray, e.typ(a.Mem.Reg()), e.const32(uint32(a.Len)))
		e.shared = append(e.shared, e.global(storageWorkgroup, array))
	}
	for _, t := range e.k.Vars {
		e.vars = append(e.vars, e.local(e.typ(t)))
	}
}

// narrow takes a scalar of type t from the low bits of a word.
func (e *emitter) narrow(t kernel.Type, w uint32) uint32 {
	switch t {
	case kernel.I32:
		return e.low(w)
	case kernel.F32:
		return e.value(opBitcast, e.typ(t), e.low(w))
	case kernel.F64:
		return e.value(opBitcast, e.typ(t), w)
	}
	return w
}

var builtinVars = [...]uint32{builtinWorkgroupID, builtinLocalInvocationID, builtinNumWorkgroups}

// builtin reads the used components of the builtin vector whose x is kernel builtin first.
func (e *emitter) builtin(first int, used []bool) {
	if !used[0] && !used[1] && !used[2] {
		return
	}
	v := e.global(storageInput, e.uvec3())
	put(&e.annot, opDecorate, v, decorBuiltIn, builtinVars[first/3])
	all := e.value(opLoad, e.uvec3(), v)
	for i, u := range used {
		if u {
			e.builtins[first+i] = e.value(opCompositeExtract, e.u32(), all, uint32(i))
		}
	}
}

// elem is the type in memory of n elements of m, and its size in bytes.
func (e *emitter) elem(m kernel.Mem, n uint8) (typ, size uint32) {
	switch m {
	case kernel.M8:
		e.capability(capStorageBuffer8BitAccess)
		typ = e.uint(8)
	case kernel.M16:
		e.capability(capStorageBuffer16BitAccess)
		typ = e.uint(16)
	default:
		typ = e.typ(m.Reg())
	}
	return e.vector(typ, uint32(n)), uint32(m.Size()) * uint32(n)
}

// place is a pointer to the element (or vector) that in accesses, and its alignment.
func (e *emitter) place(in *kernel.Instr, n uint8) (p, align uint32) {
	arg := int(in.Imm)
	m := e.k.Args[arg].Mem
	elem, size := e.elem(m, n)
	typ := e.pointer(storagePhysicalStore, elem)
	zero := e.const32(0)
	if e.def[in.A].Type != kernel.I64 {
		return e.value(opAccessChain, typ, e.blocks[ptrKey{arg, n}], zero, e.use(in.A)), size
	}
	shift := e.constant(e.u64(), uint64(bits.TrailingZeros32(size)), 64)
	off := e.value(opShiftLeftLogical, e.u64(), e.use(in.A), shift)
	addr := e.value(opIAdd, e.u64(), e.args[arg], off)
	block := e.value(opConvertUToPtr, e.pointer(storagePhysicalStore, e.runtimeBlock(elem, size)), addr)
	return e.value(opAccessChain, typ, block, zero, zero), size
}

// access emits an instruction that reads or writes a buffer.
func (e *emitter) access(in *kernel.Instr) {
	m := e.k.Args[in.Imm].Mem
	n := max(in.N, 1)
	if in.Op != kernel.LoadV && in.Op != kernel.StoreV {
		n = 1
	}
	if e.use(in.A) == 0 {
		return
	}
	if e.inWords(m) {
		e.accessWords(in, n)
		return
	}
	p, align := e.place(in, n)
	mem, _ := e.elem(m, n)
	reg := e.vector(e.typ(m.Reg()), uint32(n))
	switch in.Op {
	case kernel.Load, kernel.LoadV:
		v := e.value(opLoad, mem, p, accessAligned, align)
		if mem != reg {
			v = e.value(opUConvert, reg, v)
		}
		if n == 1 {
			e.set(in, in.Dst, v)
			return
		}
		for j := range uint32(n) {
			part := e.value(opCompositeExtract, e.typ(m.Reg()), v, j)
			e.set(in, in.Dst+kernel.Value(j), part)
		}
	case kernel.Store, kernel.StoreV:
		var v uint32
		if in.Op == kernel.Store {
			v = e.use(in.B)
		} else {
			parts := make([]uint32, n)
			for j := range parts {
				parts[j] = e.use(in.List[j])
			}
			v = e.value(opCompositeConstruct, reg, parts...)
		}
		if mem != reg {
			v = e.value(opUConvert, mem, v)
		}
		e.code(opStore, p, v, accessAligned, align)
	case kernel.AtomicAdd:
		e.set(in, in.Dst, e.value(opAtomicIAdd, e.u32(), p, e.const32(scopeDevice), e.const32(0), e.use(in.B)))
	}
}

// element is a pointer to the element of a shared array that in accesses.
func (e *emitter) element(in *kernel.Instr) uint32 {
	typ := e.pointer(storageWorkgroup, e.typ(e.k.Shared[in.Imm].Mem.Reg()))
	return e.value(opAccessChain, typ, e.shared[in.Imm], e.use(in.A))
}

// usage is what a kernel touches: found before the first instruction is emitted, so that arguments
// are read where they dominate every use.
type usage struct {
	args     []bool
	views    []ptrKey // in order of first use
	seen     map[ptrKey]bool
	builtins [9]bool
	opaque   bool
	inWords  func(m kernel.Mem) bool
	k        *kernel.Kernel
	known    []bool                         // by value: computed of constants alone
	zeros    []bool                         // by value: a float zero that a driver may know, which arithmetic must not see
	consts   map[kernel.Value]*kernel.Instr // the constants among these
	literal  [2][2]bool                     // those of them that arithmetic takes: by type from F32 on, by sign
}

func (u *usage) walk(k *kernel.Kernel) {
	u.k = k
	u.args = make([]bool, len(k.Args))
	u.seen = map[ptrKey]bool{}
	u.zeros = make([]bool, k.Values)
	u.known = make([]bool, k.Values)
	u.consts = make(map[kernel.Value]*kernel.Instr)
	u.known[0] = true // no operand
	u.body(k.Body)
}

func (u *usage) body(body []kernel.Instr) {
	for i := range body {
		in := &body[i]
		switch in.Op {
		case kernel.Scalar:
			u.args[in.Imm] = true
		case kernel.Builtin:
			u.builtins[in.Imm] = true
		case kernel.Const:
			u.known[in.Dst] = true
			if zeroFloat(in) {
				u.zeros[in.Dst], u.consts[in.Dst] = true, in
			}
		case kernel.Opaque, kernel.PopCnt:
			u.opaque = true
		case kernel.FAdd, kernel.FSub, kernel.FMul, kernel.FDiv, kernel.Mad, kernel.FmaExact, kernel.Set:
			u.addends(in)
		case kernel.Load, kernel.Store, kernel.AtomicAdd:
			u.view(ptrKey{int(in.Imm), 1})
		case kernel.LoadV, kernel.StoreV:
			u.view(ptrKey{int(in.Imm), in.N})
		}
		if kernel.Pure(in.Op) && in.Op != kernel.Opaque && u.known[in.A] && u.known[in.B] && u.known[in.C] {
			u.known[in.Dst] = true
			u.zeros[in.Dst] = in.Type.Float()
		}
		u.body(in.Body)
		u.body(in.Else)
	}
}

// addends notes the zeros that float arithmetic takes.
func (u *usage) addends(in *kernel.Instr) {
	for _, v := range [...]kernel.Value{in.A, in.B, in.C} {
		if !u.zeros[v] {
			continue
		}
		u.opaque = true
		if c := u.consts[v]; c != nil {
			u.literal[c.Type-kernel.F32][c.Imm>>(c.Type.Bits()-1)] = true
		}
	}
	if in.Op == kernel.FSub && in.A == in.B {
		u.opaque = true
	}
}

func (u *usage) view(v ptrKey) {
	if u.inWords(u.k.Args[v.arg].Mem) {
		v.n = asWords
	}
	u.args[v.arg] = true
	if !u.seen[v] {
		u.seen[v] = true
		u.views = append(u.views, v)
	}
}
