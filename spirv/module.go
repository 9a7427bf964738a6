package spirv

import "slices"

// module collects the sections of a SPIR-V module. Types and constants are made once: asking again
// for an equal one yields the same id.
type module struct {
	next    uint32
	caps    []uint32
	modes   []uint32 // OpExecutionMode instructions
	annot   []uint32
	globals []uint32 // types, constants, global variables
	fn      []uint32
	vars    []uint32 // OpVariable instructions of the function, which must open its first block
	iface   []uint32 // ids of global variables
	known   map[[4]uint32]uint32
	glsl    uint32
}

func newModule() *module {
	m := &module{next: 1, known: make(map[[4]uint32]uint32, 64)}
	m.glsl = m.id()
	return m
}

func (m *module) id() uint32 {
	id := m.next
	m.next++
	return id
}

func put(section *[]uint32, op uint32, operands ...uint32) {
	*section = append(*section, uint32(len(operands)+1)<<16|op)
	*section = append(*section, operands...)
}

// code appends an instruction without a result to the function.
func (m *module) code(op uint32, operands ...uint32) { put(&m.fn, op, operands...) }

// value appends an instruction with a result to the function.
func (m *module) value(op, typ uint32, operands ...uint32) uint32 {
	id := m.id()
	m.fn = append(m.fn, uint32(len(operands)+3)<<16|op, typ, id)
	m.fn = append(m.fn, operands...)
	return id
}

// exact is value for float arithmetic that the driver must not contract.
func (m *module) exact(op, typ uint32, operands ...uint32) uint32 {
	id := m.value(op, typ, operands...)
	put(&m.annot, opDecorate, id, decorNoContraction)
	return id
}

// ext appends a GLSL.std.450 instruction.
func (m *module) ext(inst, typ uint32, operands ...uint32) uint32 {
	id := m.id()
	m.fn = append(m.fn, uint32(len(operands)+5)<<16|opExtInst, typ, id, m.glsl, inst)
	m.fn = append(m.fn, operands...)
	return id
}

func (m *module) capability(c uint32) {
	if !slices.Contains(m.caps, c) {
		m.caps = append(m.caps, c)
	}
}

func typeKey(op uint32, operands ...uint32) [4]uint32 {
	key := [4]uint32{op, ^uint32(0), ^uint32(0), ^uint32(0)}
	copy(key[1:], operands)
	return key
}

// once makes a type by its operands, at most one of each.
func (m *module) once(op uint32, operands ...uint32) uint32 {
	key := typeKey(op, operands...)
	if id, ok := m.known[key]; ok {
		return id
	}
	id := m.id()
	m.known[key] = id
	m.globals = append(m.globals, uint32(len(operands)+2)<<16|op, id)
	m.globals = append(m.globals, operands...)
	return id
}

func (m *module) void() uint32  { return m.once(opTypeVoid) }
func (m *module) bool() uint32  { return m.once(opTypeBool) }
func (m *module) u32() uint32   { return m.uint(32) }
func (m *module) u64() uint32   { return m.uint(64) }
func (m *module) uvec3() uint32 { return m.vector(m.u32(), 3) }

func (m *module) uint(bits uint32) uint32 { return m.once(opTypeInt, bits, 0) }

func (m *module) float(bits uint32) uint32 {
	if bits == 64 {
		m.capability(capFloat64)
	}
	return m.once(opTypeFloat, bits)
}

func (m *module) vector(elem, n uint32) uint32 {
	if n == 1 {
		return elem
	}
	return m.once(opTypeVector, elem, n)
}

func (m *module) pointer(class, elem uint32) uint32 { return m.once(opTypePointer, class, elem) }

// runtimeBlock is a struct whose only member is a runtime array of elem, stride bytes apart: what an
// address of the argument table points to.
func (m *module) runtimeBlock(elem, stride uint32) uint32 {
	array := m.once(opTypeRuntimeArray, elem)
	key := [4]uint32{opTypeStruct, array, 0, 0}
	if id, ok := m.known[key]; ok {
		return id
	}
	put(&m.annot, opDecorate, array, decorArrayStride, stride)
	id := m.iblock(array)
	m.known[key] = id
	return id
}

// iblock is a struct of one member, decorated as an interface block.
func (m *module) iblock(member uint32) uint32 {
	id := m.id()
	put(&m.globals, opTypeStruct, id, member)
	put(&m.annot, opDecorate, id, decorBlock)
	put(&m.annot, opMemberDecorate, id, 0, decorOffset, 0)
	return id
}

func (m *module) constant(typ uint32, bits uint64, width int) uint32 {
	key := [4]uint32{opConstant, typ, uint32(bits), uint32(bits >> 32)}
	if id, ok := m.known[key]; ok {
		return id
	}
	id := m.id()
	m.known[key] = id
	if width == 64 {
		put(&m.globals, opConstant, typ, id, uint32(bits), uint32(bits>>32))
	} else {
		put(&m.globals, opConstant, typ, id, uint32(bits))
	}
	return id
}

func (m *module) const32(n uint32) uint32 { return m.constant(m.u32(), uint64(n), 32) }

func (m *module) constBool(v bool) uint32 {
	op := uint32(opConstantFalse)
	if v {
		op = opConstantTrue
	}
	key := [4]uint32{op, 0, 0, 0}
	if id, ok := m.known[key]; ok {
		return id
	}
	typ := m.bool()
	id := m.id()
	m.known[key] = id
	put(&m.globals, op, typ, id)
	return id
}

// global declares a variable outside the function.
func (m *module) global(class, elem uint32) uint32 {
	typ := m.pointer(class, elem)
	id := m.id()
	put(&m.globals, opVariable, typ, id, class)
	m.iface = append(m.iface, id)
	return id
}

// local declares a variable of the function.
func (m *module) local(elem uint32) uint32 {
	typ := m.pointer(storageFunction, elem)
	id := m.id()
	put(&m.vars, opVariable, typ, id, storageFunction)
	return id
}

// str is a literal string: UTF-8, closed by a zero, padded to words.
func str(s string) []uint32 {
	ws := make([]uint32, len(s)/4+1)
	for i := range len(s) {
		ws[i/4] |= uint32(s[i]) << (8 * (i % 4))
	}
	return ws
}

// link puts the sections in the order that the specification asks for. main is the function's id,
// its first block's label is label.
func (m *module) link(main, label uint32) []uint32 {
	voidFn := m.once(opTypeFunction, m.void())
	void := m.void()
	slices.Sort(m.caps)
	out := make([]uint32, 0, 64+len(m.annot)+len(m.globals)+len(m.vars)+len(m.fn))
	out = append(out, magic, version, 0, m.next, 0)
	for _, c := range m.caps {
		put(&out, opCapability, c)
	}
	put(&out, opExtInstImport, append([]uint32{m.glsl}, str("GLSL.std.450")...)...)
	put(&out, opMemoryModel, addressingPhysicalStorageBuffer64, memoryGLSL450)
	entry := append([]uint32{modelGLCompute, main}, str("main")...)
	put(&out, opEntryPoint, append(entry, m.iface...)...)
	out = append(out, m.modes...)
	out = append(out, m.annot...)
	out = append(out, m.globals...)
	put(&out, opFunction, void, main, 0, voidFn)
	put(&out, opLabel, label)
	out = append(out, m.vars...)
	out = append(out, m.fn...)
	put(&out, opReturn)
	put(&out, opFunctionEnd)
	return out
}
