package kernel

// Value names a register: the result of an instruction. Values are in single-assignment form; what
// changes in a loop lives in a Var. 0 is "no value".
type Value int32

// Op is an operation. Each line of the table in ops.go gives its operands and result.
type Op uint8

const (
	Nop Op = iota

	// Leaves.
	Const   // Imm holds the bits (F32 in the low 32; Bool 0 or 1)
	Scalar  // Imm = argument index: a scalar from the argument table
	Builtin // Imm = Builtin*: an I32

	// Integers (I32, I64; both operands and the result of one type).
	IAdd
	ISub
	IMul
	UDiv // divisor 0: undefined; generators guard
	SDiv // truncates to zero; divisor 0 and MIN/-1: undefined; generators guard
	URem
	SRem   // sign of the dividend
	UMulHi // high half of the unsigned product, I32 only
	And
	Or
	Xor
	Not
	Shl // the shift count has the operand's type and is below its width: generators guard
	ShrU
	ShrS
	Clz    // leading zeros, I32 only (via FindUMsb)
	PopCnt // set bits, I32 only

	// Floats (F32, F64). The device never contracts or reorders them.
	FAdd
	FSub
	FMul
	FDiv  // as precise as the device is; see Target.Num
	FSqrt // likewise
	FNeg  // flips the sign bit, NaN and zero included (emitted as XOR)
	FAbs  // clears the sign bit (emitted as AND)
	Floor
	Ceil
	Trunc
	RoundEven
	Mad      // A*B+C, rounded once or twice: whatever is fast
	FmaExact // A*B+C where the exact value is representable (a product's rounding error)

	// Comparisons, result Bool. Ordered: false when a float operand is NaN; FNe is true then.
	IEq
	INe
	ULt
	ULe
	SLt
	SLe
	FEq
	FNe
	FLt
	FLe

	// Bool.
	LAnd
	LOr
	LNot
	Select // A ? B : C, any one type

	// Conversions.
	Wrap   // I64 -> I32
	ZExt   // I32 -> I64
	SExt   // I32 -> I64
	SToF   // I32|I64 -> F32|F64, nearest even
	UToF   //
	FToS   // F32|F64 -> I32|I64, truncating; out of range is undefined: generators guard
	FToU   //
	FConv  // F32 <-> F64, nearest even
	Bits   // bit pattern: F32<->I32, F64<->I64
	Opaque // A, in a way that no driver can see through: stands where a narrowing is widened again

	// Memory. Imm = pointer argument index. Indices are I32 (below 2^31) or I64, in elements.
	Load      // A = index
	Store     // A = index, B = value
	LoadV     // N results Dst..Dst+N-1; A = index in units of N elements, address aligned to N*size
	StoreV    // A = index in units of N elements, List = N values
	AtomicAdd // I32 memory only: A = index, B = value; result is the old value (integers only: no float atomics)

	// Shared memory. Imm = shared array index; A = index I32.
	SLoad
	SStore

	// Mutable registers. Imm = variable index.
	Get
	Set // A = value

	// Control flow, structured. Barriers stand in workgroup-uniform control flow only.
	Barrier // execution and shared memory, workgroup
	If      // A = condition; Body, Else
	Loop    // Body, until a BreakIf
	BreakIf // A = condition; leaves the innermost Loop, also from an If inside it

	opCount
)

// Builtins. Each is an I32.
const (
	GroupX = iota // workgroup id
	GroupY
	GroupZ
	LocalX // invocation id within the workgroup
	LocalY
	LocalZ
	GroupsX // number of workgroups
	GroupsY
	GroupsZ
)

// Instr is one instruction.
type Instr struct {
	Op      Op
	Type    Type  // of the result; Void when there is none
	Dst     Value // 0 when there is none
	A, B, C Value
	Imm     uint64
	N       uint8   // LoadV, StoreV: 2 or 4 elements
	List    []Value // StoreV
	Body    []Instr // If, Loop
	Else    []Instr // If
}

// ArgKind says what an entry of the argument table is.
type ArgKind uint8

const (
	ArgPtr    ArgKind = iota // the address of element 0
	ArgScalar                // a value in the low bits
)

// Arg is one entry of the argument table. Entry i lies at byte 8*(i+1) of the table; the word at
// byte 0 is always zero (Opaque reads it). The table's address is the push constant.
type Arg struct {
	Name  string
	Kind  ArgKind
	Mem   Mem   // ArgPtr
	Type  Type  // ArgScalar: I32, I64, F32, F64
	Write bool  // ArgPtr: the kernel stores through it
	Align uint8 // ArgPtr: log2 of the alignment of the address in bytes, at least log2(Mem.Size())
}

// Array is a workgroup-shared array.
type Array struct {
	Mem Mem // M32, M64, MF32 or MF64
	Len int
}

// Kernel is a compute kernel. Two kernels with equal Text are the same kernel.
type Kernel struct {
	Name   string    // for people and profiles; not part of its identity
	Local  [3]uint32 // workgroup size
	Args   []Arg
	Shared []Array
	Vars   []Type
	Body   []Instr
	Values int // number of values; the largest is Values-1
}

// Class of a device, which chooses kernel shapes.
type Class uint8

const (
	Discrete Class = iota
	Integrated
	CPU
)

func (c Class) String() string { return [...]string{"discrete", "integrated", "cpu"}[c] }

// Numerics is what the probe saw the device do (shaders.Probe), or Exact for the interpreter.
type Numerics struct {
	FlushF32, FlushF64 bool // subnormals are flushed to zero
	FuseF32, FuseF64   bool // the extended instruction Fma rounds once
	DivF32, DivF64     bool // division is correctly rounded
	SqrtF32, SqrtF64   bool // square root is correctly rounded
	ShortLoops         bool // an invocation leaves its loops after 65,535 rounds, whatever their condition says
}

// Exact is a device that does everything as IEEE 754 says: the interpreter.
var Exact = Numerics{FuseF32: true, FuseF64: true, DivF32: true, DivF64: true, SqrtF32: true, SqrtF64: true}

// Target is what generators and the emitter may know of a device. Plain data.
type Target struct {
	Class  Class
	Vendor uint32 // PCI vendor id; 0x10005 is Mesa's software driver

	F64, I64                 bool // in registers and memory
	Mem8, Mem16              bool // 8- and 16-bit elements in buffers; without, they are parts of words
	MaxShared                int  // bytes
	MaxInvocations           int  // per workgroup
	MaxGroups                [3]uint32
	Subgroup                 int  // for tuning alone: results never depend on it
	PreserveF32, PreserveF64 bool // SignedZeroInfNanPreserve may be declared
	SlowF64                  bool // f64 arithmetic far below half of f32's rate

	Num Numerics
}
