package spirv

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nxvk/kernel"
	"nxvk/kernel/kerneltest"
)

var full = kernel.Target{
	Class: kernel.CPU, F64: true, I64: true, Mem8: true, Mem16: true,
	MaxShared: 32 << 10, MaxInvocations: 1024, MaxGroups: [3]uint32{65535, 65535, 65535}, Subgroup: 8,
	PreserveF32: true, PreserveF64: true,
	Num: kernel.Numerics{DivF32: true, DivF64: true, SqrtF32: true, SqrtF64: true},
}

// everything is a kernel that uses every operation, over every kind of memory.
func everything(t kernel.Target) *kernel.Kernel {
	b := kernel.NewBuilder("everything", t, [3]uint32{8, 2, 1})
	var ptrs []kernel.Ptr
	for m := kernel.M8; m <= kernel.MF64; m++ {
		ptrs = append(ptrs, b.Pointer(m.String(), m, true, 5))
	}
	n := b.ScalarArg("n", kernel.I32)
	n64 := b.ScalarArg("n64", kernel.I64)
	f := b.ScalarArg("f", kernel.F32)
	d := b.ScalarArg("d", kernel.F64)
	sh := b.SharedArray(kernel.M32, 16)
	shd := b.SharedArray(kernel.MF64, 16)
	id := b.Add(b.BuiltinValue(kernel.LocalX), b.Mul(b.BuiltinValue(kernel.GroupX), b.BuiltinValue(kernel.GroupsY)))
	id = b.Add(id, b.BuiltinValue(kernel.LocalY))
	for _, p := range ptrs {
		x := b.Load(p, id)
		b.Store(p, b.Conv(kernel.ZExt, kernel.I64, id), x)
		for _, w := range []int{2, 4} {
			b.StoreV(p, id, b.LoadV(p, b.Conv(kernel.SExt, kernel.I64, id), w))
		}
	}
	i := n
	for op := kernel.IAdd; op <= kernel.ShrS; op++ {
		switch op {
		case kernel.Not:
			i = b.Not(i)
			n64 = b.Not(n64)
		case kernel.UMulHi:
			i = b.Bin(op, i, id)
		default:
			i = b.Bin(op, i, id)
			n64 = b.Bin(op, n64, b.Conv(kernel.ZExt, kernel.I64, i))
		}
	}
	i = b.Un(kernel.PopCnt, b.Un(kernel.Clz, i))
	for op := kernel.FAdd; op <= kernel.FDiv; op++ {
		f, d = b.Bin(op, f, f), b.Bin(op, d, d)
	}
	for op := kernel.FSqrt; op <= kernel.RoundEven; op++ {
		f, d = b.Un(op, f), b.Un(op, d)
	}
	f, d = b.Mad(f, f, f), b.Mad(d, d, d)
	f, d = b.FmaExact(f, f, f), b.FmaExact(d, n2(b, d), d)
	d = b.FmaExact(d, n2(b, d), b.Un(kernel.FNeg, b.Mul(d, n2(b, d))))
	c := b.ConstBool(true)
	for op := kernel.IEq; op <= kernel.SLe; op++ {
		c = b.And(b.Cmp(op, i, n), b.Not(b.Or(b.Cmp(op, n64, b.Conv(kernel.SExt, kernel.I64, n)), c)))
	}
	for op := kernel.FEq; op <= kernel.FLe; op++ {
		c = b.Or(b.Opaque(b.Cmp(op, f, b.ConstFloat(kernel.F32, 1))), b.And(b.Cmp(op, d, b.ConstFloat(kernel.F64, 1)), c))
	}
	f = b.Select(c, f, b.Conv(kernel.SToF, kernel.F32, i))
	f = b.Add(f, b.Opaque(b.Conv(kernel.FConv, kernel.F32, d)))
	d = b.Add(b.Opaque(d), b.Conv(kernel.UToF, kernel.F64, b.Opaque(n64)))
	i = b.Add(b.Opaque(i), b.Conv(kernel.FToS, kernel.I32, f))
	i = b.Add(i, b.Conv(kernel.Wrap, kernel.I32, b.Conv(kernel.FToU, kernel.I64, d)))
	i = b.Xor(i, b.BitsTo(kernel.I32, f))
	v, w := b.NewVar(i), b.NewVar(c)
	b.SStore(sh, b.BuiltinValue(kernel.LocalX), i)
	b.SStore(shd, b.BuiltinValue(kernel.LocalX), d)
	b.Barrier()
	b.For(b.I32(0), b.I32(8), b.I32(1), func(j kernel.Value) {
		b.If(b.Get(w), func() {
			b.Set(v, b.Add(b.Get(v), b.SLoad(sh, j)))
			b.BreakIf(b.Cmp(kernel.SLt, b.Get(v), n))
		}, func() {
			b.If(c, func() { b.Set(w, b.ConstBool(true)) }, nil)
		})
	})
	b.AtomicAdd(ptrs[kernel.M32], id, b.Get(v))
	b.Store(ptrs[kernel.MF64], id, b.SLoad(shd, b.I32(0)))
	b.Store(ptrs[kernel.MF32], id, f)
	return b.Build()
}

func n2(b *kernel.Builder, d kernel.Value) kernel.Value { return b.Un(kernel.FAbs, d) }

// validate runs spirv-val, where it is.
func validate(t *testing.T, words []uint32) {
	t.Helper()
	tool, err := exec.LookPath("spirv-val")
	if err != nil {
		fmt.Println("SKIPPED spirv-val of emitted modules: it is not on PATH")
		t.SkipNow()
	}
	file := filepath.Join(t.TempDir(), "module.spv")
	raw := make([]byte, 0, 4*len(words))
	for _, w := range words {
		raw = binary.LittleEndian.AppendUint32(raw, w)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "--target-env", "vulkan1.2", file).CombinedOutput(); err != nil {
		t.Fatalf("spirv-val: %v\n%s", err, out)
	}
}

func TestEverythingIsValid(t *testing.T) {
	fused, narrow := full, full
	fused.Num = kernel.Exact
	narrow.SlowF64, narrow.PreserveF32, narrow.PreserveF64 = true, false, false
	for _, tt := range []kernel.Target{full, fused, narrow} {
		words, err := Emit(everything(tt), tt)
		if err != nil {
			t.Fatal(err)
		}
		validate(t, words)
	}
}

// TestRandomKernelsAreValid validates a few random kernels; test/devtest validates many more.
func TestRandomKernelsAreValid(t *testing.T) {
	for seed := range uint64(20) {
		c := kerneltest.Random(rand.New(rand.NewPCG(seed, 2)), full, 80)
		words, err := Emit(c.Kernel, full)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		validate(t, words)
		again, _ := Emit(c.Kernel, full)
		if !slices.Equal(words, again) {
			t.Fatalf("seed %d: emitted twice, two modules", seed)
		}
	}
}

// lesser are devices without what the emitter can do without, and the capabilities that their modules must not declare.
var lesser = map[string]struct {
	target kernel.Target
	never  []uint32
}{
	"no int8":  {without(func(t *kernel.Target) { t.Mem8 = false }), []uint32{capStorageBuffer8BitAccess}},
	"no int16": {without(func(t *kernel.Target) { t.Mem16 = false }), []uint32{capStorageBuffer16BitAccess}},
	"no int64": {without(func(t *kernel.Target) { t.I64, t.F64 = false, false }), []uint32{capInt64, capFloat64}},
	"no f64":   {without(func(t *kernel.Target) { t.F64 = false }), []uint32{capFloat64}},
	"none of them": {without(func(t *kernel.Target) { t.Mem8, t.Mem16, t.I64, t.F64 = false, false, false, false }),
		[]uint32{capStorageBuffer8BitAccess, capStorageBuffer16BitAccess, capInt64, capFloat64}},
}

func without(change func(t *kernel.Target)) kernel.Target {
	t := full
	change(&t)
	return t
}

// Modules for lesser devices are valid, and ask for nothing that these lack.
func TestEmitForLesserDevices(t *testing.T) {
	for name, l := range lesser {
		for seed := range uint64(12) {
			c := kerneltest.Random(rand.New(rand.NewPCG(seed, 3)), l.target, 60)
			words, err := Emit(c.Kernel, l.target)
			if err != nil {
				t.Fatalf("%s, seed %d: %v", name, seed, err)
			}
			validate(t, words)
			for i := 5; i < len(words) && words[i]&0xffff == opCapability; i += int(words[i] >> 16) {
				if slices.Contains(l.never, words[i+1]) {
					t.Errorf("%s, seed %d: the module declares capability %d", name, seed, words[i+1])
				}
			}
		}
	}
}

func TestEmitRefuses(t *testing.T) {
	k := everything(full)
	for lack, change := range map[string]func(t *kernel.Target){
		"no f64":            func(t *kernel.Target) { t.F64 = false },
		"of shared memory":  func(t *kernel.Target) { t.MaxShared = 64 },
		"16 invocations in": func(t *kernel.Target) { t.MaxInvocations = 8 },
	} {
		small := full
		change(&small)
		if _, err := Emit(k, small); err == nil || !strings.Contains(err.Error(), lack) {
			t.Errorf("error %v, want one with %q", err, lack)
		}
	}
	k.Body = append(k.Body, kernel.Instr{Op: kernel.BreakIf})
	if _, err := Emit(k, full); err == nil {
		t.Error("a kernel that does not check was emitted")
	}
}

func BenchmarkEmit(b *testing.B) {
	c := kerneltest.Random(rand.New(rand.NewPCG(3, 2)), full, 60)
	words, err := Emit(c.Kernel, full)
	if err != nil {
		b.Fatal(err)
	}
	for range b.N {
		if _, err := Emit(c.Kernel, full); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(4*len(words)), "bytes")
	b.ReportMetric(float64(c.Kernel.Values), "values")
}

// TestCheckedMutantsAreValid holds Check to what the emitter needs: a mutated kernel that checks, and
// fits the device, gives a valid module.
func TestCheckedMutantsAreValid(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for valid := 0; valid < 40; {
		seed := rng.Uint64()
		c := kerneltest.Random(rand.New(rand.NewPCG(seed, 1)), full, 20)
		edits := make([]byte, 4+4*rng.IntN(3))
		for i := range edits {
			edits[i] = byte(rng.Uint32())
		}
		edits[2] %= 10 // leave the size of the workgroup and the number of values alone
		before := c.Kernel.Text()
		kerneltest.Mutate(c.Kernel, edits)
		if c.Kernel.Text() == before || kernel.Check(c.Kernel) != nil {
			continue
		}
		words, err := Emit(c.Kernel, full)
		if err != nil {
			t.Fatalf("seed %d, edits %v: %v", seed, edits, err)
		}
		validate(t, words)
		valid++
	}
}
