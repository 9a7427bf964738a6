package spirv

import (
	"math/bits"

	"nxvk/kernel"
)

// Devices without 8- or 16-bit elements in memory have them as parts of 32-bit words. A load takes the words that hold
// the elements apart. A store of whole words writes them; one of less clears its bits of the word and then sets them,
// each an atomic operation that leaves the other bits alone: so it does not matter what other invocations do to
// other elements of the word, nor in which order, and those that store the same to one element agree as well.
//
// Every address in the argument table points into memory of whole words, whose ends are on word boundaries too (see
// vkrt.Device.Alloc): the word that holds an element of a buffer is memory of that buffer alone.

// asWords is the vector length of the view through which elements are parts of words.
const asWords = 0

// inWords reports whether elements of m are parts of words. Without 64-bit integers they always are: addresses are cast to
// pointers there, and SPIR-V allows no cast to a pointer to elements that can only be stored.
func (e *emitter) inWords(m kernel.Mem) bool {
	return m == kernel.M8 && !(e.t.Mem8 && e.t.I64) || m == kernel.M16 && !(e.t.Mem16 && e.t.I64)
}

// wordsOf is the memory behind a pointer argument, as words.
type wordsOf struct {
	address uint32 // of the word that holds the first element; a u64, where the device has these
	skip    uint32 // bytes of that word before the first element, an id; 0: none
}

// declareWords makes the view of v's argument as words.
func (e *emitter) declareWords(v ptrKey) {
	w := wordsOf{address: e.args[v.arg]}
	if e.k.Args[v.arg].Align < 2 {
		below := e.const32(3)
		w.skip = e.value(opBitwiseAnd, e.u32(), e.low(w.address), below)
		if e.t.I64 {
			w.address = e.value(opBitwiseAnd, e.u64(), w.address, e.constant(e.u64(), ^uint64(3), 64))
		} else {
			lo := e.value(opBitwiseAnd, e.u32(), e.low(w.address), e.const32(^uint32(3)))
			hi := e.value(opCompositeExtract, e.u32(), w.address, 1)
			w.address = e.value(opCompositeConstruct, e.wordType(), lo, hi)
		}
	}
	if e.words == nil {
		e.words = map[int]wordsOf{}
	}
	e.words[v.arg] = w
	e.blocks[v] = e.toPointer(e.pointer(storagePhysicalStore, e.runtimeBlock(e.u32(), 4)), w.address)
}

// parts are the elements that an instruction touches, as parts of one or two words.
type parts struct {
	size  uint32   // bytes of an element
	words []uint32 // pointers to the words, in order
	shift uint32   // the first element's place in its word, in bits, an id; 0: at the bottom
}

// parts finds the words that hold the n elements that in touches, whose index counts n elements.
func (e *emitter) parts(in *kernel.Instr, n uint8) parts {
	arg := int(in.Imm)
	w := e.words[arg]
	size := uint32(e.k.Args[arg].Mem.Size())
	p := parts{size: size}
	log := uint32(bits.TrailingZeros32(size * uint32(n))) // of the bytes that one index stands for
	block := e.blocks[ptrKey{arg, asWords}]
	word, zero := e.pointer(storagePhysicalStore, e.u32()), e.const32(0)
	count := max(size*uint32(n)/4, 1)
	if e.def[in.A].Type != kernel.I64 {
		at := e.use(in.A) // of the word
		switch {
		case log > 2:
			at = e.value(opShiftLeftLogical, e.u32(), at, e.const32(log-2))
		case log < 2:
			byte := e.value(opShiftLeftLogical, e.u32(), at, e.const32(log))
			if w.skip != 0 {
				byte = e.value(opIAdd, e.u32(), byte, w.skip)
			}
			p.shift = e.bitOf(byte)
			at = e.value(opShiftRightLogical, e.u32(), byte, e.const32(2))
		}
		p.words = append(p.words, e.value(opAccessChain, word, block, zero, at))
		if count == 2 {
			p.words = append(p.words, e.value(opAccessChain, word, block, zero, e.value(opIAdd, e.u32(), at, e.const32(1))))
		}
		return p
	}
	wide := func(n uint64) uint32 { return e.constant(e.u64(), n, 64) }
	byte := e.value(opShiftLeftLogical, e.u64(), e.use(in.A), wide(uint64(log)))
	if log < 2 {
		if w.skip != 0 {
			byte = e.value(opIAdd, e.u64(), byte, e.value(opUConvert, e.u64(), w.skip))
		}
		p.shift = e.bitOf(e.value(opUConvert, e.u32(), byte))
		byte = e.value(opBitwiseAnd, e.u64(), byte, wide(^uint64(3)))
	}
	address := e.value(opIAdd, e.u64(), w.address, byte)
	block = e.toPointer(e.pointer(storagePhysicalStore, e.runtimeBlock(e.u32(), 4)), address)
	for i := range count {
		p.words = append(p.words, e.value(opAccessChain, word, block, zero, e.const32(i)))
	}
	return p
}

// bitOf is the place in its word, in bits, of the byte with index at.
func (e *emitter) bitOf(at uint32) uint32 {
	return e.value(opShiftLeftLogical, e.u32(), e.value(opBitwiseAnd, e.u32(), at, e.const32(3)), e.const32(3))
}

// accessWords emits an instruction that reads or writes n elements that are parts of words.
func (e *emitter) accessWords(in *kernel.Instr, n uint8) {
	p := e.parts(in, n)
	switch in.Op {
	case kernel.Load, kernel.LoadV:
		words := make([]uint32, len(p.words))
		for i, at := range p.words {
			words[i] = e.value(opLoad, e.u32(), at, accessAligned, 4)
		}
		if p.shift != 0 {
			words[0] = e.value(opShiftRightLogical, e.u32(), words[0], p.shift)
		}
		for j := range uint32(n) {
			v, bit := words[j*p.size/4], j*p.size%4*8
			if bit != 0 {
				v = e.value(opShiftRightLogical, e.u32(), v, e.const32(bit))
			}
			e.set(in, in.Dst+kernel.Value(j), e.value(opBitwiseAnd, e.u32(), v, e.const32(p.mask(1))))
		}
	case kernel.Store:
		e.storeWords(p, []kernel.Value{in.B})
	case kernel.StoreV:
		e.storeWords(p, in.List)
	default:
		e.fail("%v of 8- or 16-bit elements", in.Op)
	}
}

// mask covers n elements of less than a word, at the bottom of a word.
func (p *parts) mask(n uint32) uint32 { return uint32(uint64(1)<<(8*p.size*n) - 1) }

// storeWords writes elements.
func (e *emitter) storeWords(p parts, vs []kernel.Value) {
	words := make([]uint32, len(p.words))
	for j, v := range vs {
		part := e.value(opBitwiseAnd, e.u32(), e.use(v), e.const32(p.mask(1)))
		if bit := uint32(j) * p.size % 4 * 8; bit != 0 {
			part = e.value(opShiftLeftLogical, e.u32(), part, e.const32(bit))
		}
		w := &words[uint32(j)*p.size/4]
		if *w == 0 {
			*w = part
		} else {
			*w = e.value(opBitwiseOr, e.u32(), *w, part)
		}
	}
	if p.size*uint32(len(vs)) >= 4 {
		for i, at := range p.words {
			e.code(opStore, at, words[i], accessAligned, 4)
		}
		return
	}
	field, bits := e.const32(p.mask(uint32(len(vs)))), words[0]
	if p.shift != 0 {
		field = e.value(opShiftLeftLogical, e.u32(), field, p.shift)
		bits = e.value(opShiftLeftLogical, e.u32(), bits, p.shift)
	}
	scope, relaxed := e.const32(scopeDevice), e.const32(0)
	e.value(opAtomicAnd, e.u32(), p.words[0], scope, relaxed, e.value(opNot, e.u32(), field))
	e.value(opAtomicOr, e.u32(), p.words[0], scope, relaxed, bits)
}
