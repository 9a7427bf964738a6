package spirv

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nxvk/kernel"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// form says how to print an instruction: its name, whether a result type and a result come first, and
// how many of the operands after these are ids; the rest are literals.
type form struct {
	name         string
	typed, named bool
	ids          int
}

const all = 99

var forms = map[uint32]form{
	opExtInstImport: {"ExtInstImport", false, true, 0}, opExtInst: {"ExtInst", true, true, 1}, opMemoryModel: {"MemoryModel", false, false, 0},
	opEntryPoint: {"EntryPoint", false, false, 0}, opExecutionMode: {"ExecutionMode", false, false, 1}, opCapability: {"Capability", false, false, 0},
	opTypeVoid: {"TypeVoid", false, true, 0}, opTypeBool: {"TypeBool", false, true, 0}, opTypeInt: {"TypeInt", false, true, 0}, opTypeFloat: {"TypeFloat", false, true, 0},
	opTypeVector: {"TypeVector", false, true, 1}, opTypeArray: {"TypeArray", false, true, 2}, opTypeRuntimeArray: {"TypeRuntimeArray", false, true, 1},
	opTypeStruct: {"TypeStruct", false, true, all}, opTypePointer: {"TypePointer", false, true, 0}, opTypeFunction: {"TypeFunction", false, true, all},
	opConstant: {"Constant", true, true, 0}, opConstantTrue: {"ConstantTrue", true, true, 0}, opConstantFalse: {"ConstantFalse", true, true, 0},
	opFunction: {"Function", true, true, 0}, opFunctionEnd: {"FunctionEnd", false, false, 0}, opVariable: {"Variable", true, true, 0},
	opLoad: {"Load", true, true, 1}, opStore: {"Store", false, false, 2}, opAccessChain: {"AccessChain", true, true, all},
	opDecorate: {"Decorate", false, false, 1}, opMemberDecorate: {"MemberDecorate", false, false, 1},
	opCompositeExtract: {"CompositeExtract", true, true, 1}, opUConvert: {"UConvert", true, true, 1}, opConvertUToPtr: {"ConvertUToPtr", true, true, 1},
	opBitcast: {"Bitcast", true, true, 1}, opIAdd: {"IAdd", true, true, 2}, opIMul: {"IMul", true, true, 2}, opFAdd: {"FAdd", true, true, 2}, opFMul: {"FMul", true, true, 2},
	opShiftLeftLogical: {"ShiftLeftLogical", true, true, 2}, opULessThan: {"ULessThan", true, true, 2}, opIEqual: {"IEqual", true, true, 2}, opLogicalNot: {"LogicalNot", true, true, 1}, opBitwiseXor: {"BitwiseXor", true, true, 2},
	opControlBarrier: {"ControlBarrier", false, false, all}, opLoopMerge: {"LoopMerge", false, false, 2}, opSelectionMerge: {"SelectionMerge", false, false, 1},
	opLabel: {"Label", false, true, 0}, opBranch: {"Branch", false, false, 1}, opBranchConditional: {"BranchConditional", false, false, 3}, opReturn: {"Return", false, false, 0},
}

// disassemble prints a module, one instruction a line.
func disassemble(words []uint32) string {
	var b strings.Builder
	fmt.Fprintf(&b, "; version %#x, bound %d\n", words[1], words[3])
	for at := 5; at < len(words); {
		op, n := words[at]&0xffff, int(words[at]>>16)
		args := words[at+1 : at+n]
		f, ok := forms[op]
		if !ok {
			f.name = fmt.Sprintf("op%d", op)
		}
		line := f.name
		if f.typed {
			line += fmt.Sprintf(" %%%d", args[0])
			args = args[1:]
		}
		if f.named {
			line = fmt.Sprintf("%%%d = %s", args[0], line)
			args = args[1:]
		}
		for j, a := range args {
			if j < f.ids {
				line += fmt.Sprintf(" %%%d", a)
			} else {
				line += fmt.Sprintf(" %#x", a)
			}
		}
		b.WriteString(line + "\n")
		at += n
	}
	return b.String()
}

// axpy is y[i] += a*x[i] with every piece that a plain kernel has.
func axpy(t kernel.Target) *kernel.Kernel {
	b := kernel.NewBuilder("axpy", t, [3]uint32{64, 1, 1})
	x, y := b.Pointer("x", kernel.MF32, false, 0), b.Pointer("y", kernel.MF32, true, 0)
	a, n := b.ScalarArg("a", kernel.F32), b.ScalarArg("n", kernel.I32)
	first := b.Add(b.MulI(b.BuiltinValue(kernel.GroupX), 64), b.BuiltinValue(kernel.LocalX))
	b.For(first, n, b.MulI(b.BuiltinValue(kernel.GroupsX), 64), func(i kernel.Value) {
		b.Store(y, i, b.Opaque(b.Mad(a, b.Load(x, i), b.Load(y, i))))
	})
	return b.Build()
}

// rotate passes bytes to the next lane through shared memory.
func rotate(t kernel.Target) *kernel.Kernel {
	b := kernel.NewBuilder("rotate", t, [3]uint32{4, 1, 1})
	p := b.Pointer("p", kernel.M8, true, 0)
	s := b.SharedArray(kernel.M32, 4)
	lane := b.BuiltinValue(kernel.LocalX)
	b.SStore(s, lane, b.Load(p, b.Conv(kernel.ZExt, kernel.I64, lane)))
	b.Barrier()
	b.If(b.Cmp(kernel.IEq, lane, b.I32(3)), func() { b.Store(p, lane, b.SLoad(s, b.I32(0))) },
		func() { b.Store(p, lane, b.SLoad(s, b.AddI(lane, 1))) })
	return b.Build()
}

func TestGolden(t *testing.T) {
	for _, k := range []*kernel.Kernel{axpy(full), rotate(full)} {
		words, err := Emit(k, full)
		if err != nil {
			t.Fatal(err)
		}
		validate(t, words)
		got := disassemble(words)
		path := filepath.Join("testdata", k.Name+".golden")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s", path, got)
		}
	}
}

func BenchmarkEmitAxpy(b *testing.B) {
	k := axpy(full)
	words, err := Emit(k, full)
	if err != nil {
		b.Fatal(err)
	}
	for range b.N {
		if _, err := Emit(k, full); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(4*len(words)), "bytes")
}
