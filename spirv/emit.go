// Package spirv turns a kernel.Kernel into the words of a SPIR-V 1.5 module for Vulkan 1.2: ids,
// deduplicated types and constants, capabilities, section order. It must not know tensors or Vulkan.
// The same kernel for the same target always gives the same words.
//
// A module has one entry point, "main". Its push constant is 8 bytes: the address of the argument
// table, whose layout kernel.Arg describes. It asks of the device bufferDeviceAddress, shaderInt64 where the target has it,
// and shaderFloat64, storageBuffer8BitAccess and storageBuffer16BitAccess where the kernel uses them and the target has
// them.
//
// Start reading at emit.go (Emit, and the tables of plain operations), then memory.go (how a kernel
// reaches memory) and float.go (what is written out because hardware leaves it open). module.go puts
// the sections together.
package spirv

import (
	"fmt"

	"nxvk/kernel"
)

// Emit checks k and makes its module for a device t. An error names the kernel, and what is wrong with
// it or what the device lacks.
func Emit(k *kernel.Kernel, t kernel.Target) ([]uint32, error) {
	if err := kernel.Check(k); err != nil {
		return nil, fmt.Errorf("spirv: emit: %w", err)
	}
	if err := kernel.Fits(k, t); err != nil {
		return nil, fmt.Errorf("spirv: emit: %w", err)
	}
	e := &emitter{
		module: newModule(),
		k:      k,
		t:      t,
		ids:    make([]uint32, k.Values),
		def:    make([]*kernel.Instr, k.Values),
	}
	main, label := e.id(), e.id()
	e.capability(capShader)
	if t.I64 {
		e.capability(capInt64)
	}
	e.capability(capPhysicalStorageBufferAddresses)
	put(&e.modes, opExecutionMode, main, modeLocalSize, k.Local[0], k.Local[1], k.Local[2])
	e.prologue()
	e.block(k.Body)
	if e.err != nil {
		return nil, fmt.Errorf("spirv: emit %s: %w", k.Name, e.err)
	}
	e.preserve(main, 32, t.PreserveF32)
	e.preserve(main, 64, t.PreserveF64)
	return e.link(main, label), nil
}

// preserve declares SignedZeroInfNanPreserve for a float width that the module uses.
func (e *emitter) preserve(main, width uint32, may bool) {
	if _, used := e.known[typeKey(opTypeFloat, width)]; used && may {
		e.capability(capSignedZeroInfNanPreserve)
		put(&e.modes, opExecutionMode, main, modeSignedZeroInfNanPreserve, width)
	}
}

type emitter struct {
	*module
	k   *kernel.Kernel
	t   kernel.Target
	ids []uint32        // SPIR-V id of each value
	def []*kernel.Instr // the instruction behind each value
	err error

	need               usage
	zeros              [2][2]uint32      // float zeros from memory: by type from F32 on, by sign
	opaque32, opaque64 uint32            // the zero of the argument table
	args               []uint32          // argument words: u64 addresses, scalars as their type
	blocks             map[ptrKey]uint32 // typed pointers, made at the top
	words              map[int]wordsOf   // of arguments whose elements are parts of words
	shared, vars       []uint32
	builtins           [9]uint32
	merge              []uint32 // merge blocks of the enclosing loops
}

// fail keeps the first error. The emitter goes on, and the caller gets no module.
func (e *emitter) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

// typ is the SPIR-V type of a register.
func (e *emitter) typ(t kernel.Type) uint32 {
	switch t {
	case kernel.Bool:
		return e.bool()
	case kernel.I32:
		return e.u32()
	case kernel.I64:
		return e.u64()
	case kernel.F32:
		return e.float(32)
	case kernel.F64:
		if !e.t.F64 {
			e.fail("it computes in f64, which the device lacks")
		}
		return e.float(64)
	}
	e.fail("no type %v", t)
	return 0
}

// bits is the unsigned integer type as wide as t.
func (e *emitter) bits(t kernel.Type) uint32 { return e.uint(uint32(t.Bits())) }

// plain operations: one SPIR-V instruction on the operands, result of the instruction's type.
var plain = [256]uint32{
	kernel.IAdd: opIAdd, kernel.ISub: opISub, kernel.IMul: opIMul,
	kernel.UDiv: opUDiv, kernel.SDiv: opSDiv, kernel.URem: opUMod,
	kernel.And: opBitwiseAnd, kernel.Or: opBitwiseOr, kernel.Xor: opBitwiseXor, kernel.Not: opNot,
	kernel.Shl: opShiftLeftLogical, kernel.ShrU: opShiftRightLogical, kernel.ShrS: opShiftRightArithmetic,
	kernel.IEq: opIEqual, kernel.INe: opINotEqual,
	kernel.ULt: opULessThan, kernel.ULe: opULessThanEqual,
	kernel.SLt: opSLessThan, kernel.SLe: opSLessThanEqual,
	kernel.FEq: opFOrdEqual, kernel.FNe: opFUnordNotEqual,
	kernel.FLt: opFOrdLessThan, kernel.FLe: opFOrdLessThanEqual,
	kernel.LAnd: opLogicalAnd, kernel.LOr: opLogicalOr, kernel.LNot: opLogicalNot,
	kernel.Select: opSelect,
	kernel.Wrap:   opUConvert, kernel.ZExt: opUConvert, kernel.SExt: opSConvert,
	kernel.SToF: opConvertSToF, kernel.UToF: opConvertUToF,
	kernel.FToS: opConvertFToS, kernel.FToU: opConvertFToU,
	kernel.FConv: opFConvert, kernel.Bits: opBitcast,
}

// arithmetic operations are plain ones that must not be contracted.
var arithmetic = [256]uint32{
	kernel.FAdd: opFAdd, kernel.FSub: opFSub, kernel.FMul: opFMul, kernel.FDiv: opFDiv,
}

// glsl operations are GLSL.std.450 instructions that IEEE 754 fixes (Sqrt as precise as the device is).
var glsl = [256]uint32{
	kernel.FSqrt: glslSqrt, kernel.Floor: glslFloor, kernel.Ceil: glslCeil,
	kernel.Trunc: glslTrunc, kernel.RoundEven: glslRoundEven,
}

// block emits a sequence of instructions.
func (e *emitter) block(body []kernel.Instr) {
	for i := range body {
		if e.err != nil {
			return
		}
		e.instr(&body[i])
	}
}

// operands are the ids of the values that in takes.
func (e *emitter) operands(in *kernel.Instr) []uint32 {
	var ids [3]uint32
	n := 0
	for _, v := range [...]kernel.Value{in.A, in.B, in.C} {
		if v == 0 {
			break
		}
		ids[n] = e.use(v)
		n++
	}
	return ids[:n]
}

func (e *emitter) use(v kernel.Value) uint32 {
	if v <= 0 || int(v) >= len(e.ids) || e.ids[v] == 0 {
		e.fail("value v%d is used before it is defined", v)
		return 0
	}
	return e.ids[v]
}

func (e *emitter) set(in *kernel.Instr, v kernel.Value, id uint32) {
	if v <= 0 || int(v) >= len(e.ids) {
		e.fail("%v defines v%d of %d values", in.Op, v, len(e.ids))
		return
	}
	e.ids[v], e.def[v] = id, in
}

func (e *emitter) instr(in *kernel.Instr) {
	if op := plain[in.Op]; op != 0 {
		e.set(in, in.Dst, e.value(op, e.typ(in.Type), e.operands(in)...))
		return
	}
	if op := arithmetic[in.Op]; op != 0 {
		x, y := e.pair(in)
		e.set(in, in.Dst, e.exact(op, e.typ(in.Type), x, y))
		return
	}
	if op := glsl[in.Op]; op != 0 {
		e.set(in, in.Dst, e.ext(op, e.typ(in.Type), e.operands(in)...))
		return
	}
	switch in.Op {
	case kernel.Nop:
	case kernel.Const:
		e.set(in, in.Dst, e.literal(in.Type, in.Imm))
	case kernel.Scalar:
		e.set(in, in.Dst, e.args[in.Imm])
	case kernel.Builtin:
		e.set(in, in.Dst, e.builtins[in.Imm])
	case kernel.SRem:
		// Written out: NVIDIA's driver takes the signedness of OpSRem from the type, which has none here.
		t, a, b := e.typ(in.Type), e.use(in.A), e.use(in.B)
		whole := e.value(opIMul, t, e.value(opSDiv, t, a, b), b)
		e.set(in, in.Dst, e.value(opISub, t, a, whole))
	case kernel.UMulHi:
		pair := e.once(opTypeStruct, e.u32(), e.u32())
		both := e.value(opUMulExtended, pair, e.operands(in)...)
		e.set(in, in.Dst, e.value(opCompositeExtract, e.u32(), both, 1))
	case kernel.PopCnt:
		// NVIDIA's driver counts the bits of a byte that was just loaded as if it were sign-extended.
		e.set(in, in.Dst, e.value(opBitCount, e.u32(), e.hide(kernel.I32, e.use(in.A))))
	case kernel.Clz:
		// FindUMsb is -1 for 0, so that 31 less it is 32.
		top := e.ext(glslFindUMsb, e.u32(), e.use(in.A))
		e.set(in, in.Dst, e.value(opISub, e.u32(), e.const32(31), top))
	case kernel.FNeg, kernel.FAbs:
		e.set(in, in.Dst, e.sign(in.Op, in.Type, e.use(in.A)))
	case kernel.Mad:
		e.set(in, in.Dst, e.mad(in))
	case kernel.FmaExact:
		e.set(in, in.Dst, e.fmaExact(in))
	case kernel.Opaque:
		e.set(in, in.Dst, e.hide(in.Type, e.use(in.A)))
	case kernel.Load, kernel.Store, kernel.LoadV, kernel.StoreV, kernel.AtomicAdd:
		e.access(in)
	case kernel.SLoad:
		m := e.k.Shared[in.Imm].Mem
		e.set(in, in.Dst, e.value(opLoad, e.typ(m.Reg()), e.element(in)))
	case kernel.SStore:
		e.code(opStore, e.element(in), e.use(in.B))
	case kernel.Get:
		e.set(in, in.Dst, e.value(opLoad, e.typ(in.Type), e.vars[in.Imm]))
	case kernel.Set:
		e.code(opStore, e.vars[in.Imm], e.addend(in.A))
	case kernel.Barrier:
		wg := e.const32(scopeWorkgroup)
		e.code(opControlBarrier, wg, wg, e.const32(semanticsShared))
	case kernel.If:
		e.branch(in)
	case kernel.Loop:
		e.loop(in)
	case kernel.BreakIf:
		if len(e.merge) == 0 {
			e.fail("break_if outside a loop")
			return
		}
		next := e.id()
		e.code(opSelectionMerge, next, 0)
		e.code(opBranchConditional, e.use(in.A), e.merge[len(e.merge)-1], next)
		e.code(opLabel, next)
	default:
		e.fail("no such operation: %v", in.Op)
	}
}

func (e *emitter) literal(t kernel.Type, bits uint64) uint32 {
	if t == kernel.Bool {
		return e.constBool(bits != 0)
	}
	return e.constant(e.typ(t), bits, t.Bits())
}

func (e *emitter) branch(in *kernel.Instr) {
	then, merge := e.id(), e.id()
	els := merge
	if len(in.Else) > 0 {
		els = e.id()
	}
	e.code(opSelectionMerge, merge, 0)
	e.code(opBranchConditional, e.use(in.A), then, els)
	e.code(opLabel, then)
	e.block(in.Body)
	e.code(opBranch, merge)
	if len(in.Else) > 0 {
		e.code(opLabel, els)
		e.block(in.Else)
		e.code(opBranch, merge)
	}
	e.code(opLabel, merge)
}

func (e *emitter) loop(in *kernel.Instr) {
	header, body, again, merge := e.id(), e.id(), e.id(), e.id()
	e.code(opBranch, header)
	e.code(opLabel, header)
	e.code(opLoopMerge, merge, again, 0)
	e.code(opBranch, body)
	e.code(opLabel, body)
	e.merge = append(e.merge, merge)
	e.block(in.Body)
	e.merge = e.merge[:len(e.merge)-1]
	e.code(opBranch, again)
	e.code(opLabel, again)
	e.code(opBranch, header)
	e.code(opLabel, merge)
}
