package kernel

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// broken lists kernels that Check must refuse, and words of the reason.
var broken = []struct {
	name string
	k    func(b *Builder) *Kernel
	want []string
}{
	{"use before definition", func(b *Builder) *Kernel {
		return &Kernel{Local: [3]uint32{1, 1, 1}, Values: 3, Body: []Instr{
			{Op: IAdd, Type: I32, Dst: 1, A: 2, B: 2}, {Op: Const, Type: I32, Dst: 2}}}
	}, []string{"v1 = iadd", "v2 is not defined here"}},
	{"use out of scope", func(b *Builder) *Kernel {
		var v Value
		b.If(b.ConstBool(true), func() { v = b.Add(b.BuiltinValue(GroupX), b.BuiltinValue(GroupY)) }, nil)
		return use(b, v)
	}, []string{"is not defined here"}},
	{"value of one arm in the other", func(b *Builder) *Kernel {
		p := b.Pointer("p", M32, true, 0)
		var v Value
		b.If(b.ConstBool(true), func() { v = b.Add(b.BuiltinValue(GroupX), b.BuiltinValue(GroupY)) }, func() { b.Store(p, v, v) })
		return b.Build()
	}, []string{"is not defined here"}},
	{"defined twice", func(b *Builder) *Kernel {
		return &Kernel{Local: [3]uint32{1, 1, 1}, Values: 2, Body: []Instr{{Op: Const, Type: I32, Dst: 1}, {Op: Const, Type: I32, Dst: 1}}}
	}, []string{"v1 is defined twice"}},
	{"types of operands", func(b *Builder) *Kernel {
		return &Kernel{Local: [3]uint32{1, 1, 1}, Values: 3, Body: []Instr{
			{Op: Const, Type: F32, Dst: 1}, {Op: IAdd, Type: I32, Dst: 2, A: 1, B: 1}}}
	}, []string{"v2 = iadd", "operands f32 f32"}},
	{"conversion to its own type", func(b *Builder) *Kernel {
		return &Kernel{Local: [3]uint32{1, 1, 1}, Values: 3, Body: []Instr{
			{Op: Const, Type: F32, Dst: 1}, {Op: FConv, Type: F32, Dst: 2, A: 1}}}
	}, []string{"v2 = fconv"}},
	{"constant too wide", func(b *Builder) *Kernel {
		return &Kernel{Local: [3]uint32{1, 1, 1}, Values: 2, Body: []Instr{{Op: Const, Type: I32, Dst: 1, Imm: 1 << 32}}}
	}, []string{"0x100000000 is no i32"}},
	{"endless loop", func(b *Builder) *Kernel {
		b.Loop(func() { b.Loop(func() { b.BreakIf(b.ConstBool(true)) }) })
		return b.Build()
	}, []string{"no break_if"}},
	{"break outside", func(b *Builder) *Kernel { b.BreakIf(b.ConstBool(true)); return b.Build() }, []string{"outside a loop"}},
	{"store through a pointer to read", func(b *Builder) *Kernel {
		p := b.Pointer("p", M32, false, 0)
		b.Store(p, b.I32(0), b.I32(0))
		return b.Build()
	}, []string{"argument 0 is not to be written"}},
	{"vector beyond the alignment", func(b *Builder) *Kernel {
		p := b.Pointer("p", MF32, false, 3)
		b.LoadV(p, b.I32(0), 4)
		return b.Build()
	}, []string{"aligned to 8 bytes, the access to 16"}},
	{"too large a workgroup", func(b *Builder) *Kernel { k := b.Build(); k.Local = [3]uint32{64, 64, 1}; return k }, []string{"4096 invocations"}},
	{"shared array of bytes", func(b *Builder) *Kernel { b.SharedArray(M8, 4); return b.Build() }, []string{"shared array 0"}},
	{"barrier under the lane", func(b *Builder) *Kernel {
		b.If(b.Cmp(ULt, b.BuiltinValue(LocalX), b.I32(2)), b.Barrier, nil)
		return b.Build()
	}, []string{"barrier"}},
	{"barrier under a loaded value", func(b *Builder) *Kernel {
		p := b.Pointer("p", M32, true, 0)
		b.If(b.Cmp(ULt, b.Load(p, b.I32(0)), b.I32(2)), b.Barrier, nil)
		return b.Build()
	}, []string{"barrier"}},
	{"barrier in a loop that lanes leave", func(b *Builder) *Kernel {
		b.For(b.I32(0), b.BuiltinValue(LocalX), b.I32(1), func(Value) { b.Barrier() })
		return b.Build()
	}, []string{"barrier"}},
	{"barrier after a break of some lanes, through a variable", func(b *Builder) *Kernel {
		v := b.NewVar(b.I32(0))
		b.Loop(func() {
			b.Barrier()
			b.BreakIf(b.Cmp(ULt, b.I32(3), b.Get(v)))
			b.If(b.Cmp(ULt, b.BuiltinValue(LocalX), b.I32(2)), func() { b.Set(v, b.AddI(b.Get(v), 1)) }, nil)
		})
		return b.Build()
	}, []string{"barrier"}},
	{"barrier after an inner break of some lanes", func(b *Builder) *Kernel {
		b.Loop(func() {
			b.If(b.Cmp(ULt, b.BuiltinValue(LocalX), b.I32(2)), func() { b.BreakIf(b.ConstBool(true)) }, nil)
			b.Barrier()
		})
		return b.Build()
	}, []string{"barrier"}},
}

func use(b *Builder, v Value) *Kernel {
	b.Store(b.Pointer("use", M32, true, 0), b.I32(0), v)
	return b.Build()
}

func TestCheckRefuses(t *testing.T) {
	for _, c := range broken {
		t.Run(c.name, func(t *testing.T) {
			refused(t, Check(c.k(NewBuilder("broken", testTarget, [3]uint32{8, 1, 1}))), append(c.want, "kernel ")...)
		})
	}
}

// TestCheckAcceptsUniformBarriers holds what must not be refused: conditions from scalars, from
// workgroup ids, from read-only memory at uniform indices, from axes of extent 1, and barriers after
// diverged flow.
func TestCheckAcceptsUniformBarriers(t *testing.T) {
	b := NewBuilder("uniform", testTarget, [3]uint32{8, 1, 1})
	p := b.Pointer("p", M32, false, 0)
	n := b.ScalarArg("n", I32)
	sh := b.SharedArray(M32, 8)
	lane := b.BuiltinValue(LocalX)
	v := b.NewVar(b.I32(0))
	b.If(b.Cmp(ULt, lane, b.I32(3)), func() { b.SStore(sh, lane, lane) }, nil)
	b.Barrier()
	b.Loop(func() { b.BreakIf(b.Cmp(ULt, lane, b.Load(p, lane))) })
	b.Barrier()
	for _, c := range []Value{b.Load(p, n), b.BuiltinValue(GroupX), b.BuiltinValue(LocalY), b.SLoad(sh, n)} {
		b.If(b.Cmp(ULt, c, n), func() {
			b.For(b.I32(0), n, b.I32(2), func(Value) { b.Barrier(); b.Set(v, b.AddI(b.Get(v), 1)) })
		}, nil)
	}
	b.If(b.Cmp(ULt, b.Get(v), n), b.Barrier, nil)
	if err := Check(b.Build()); err != nil {
		t.Error(err)
	}
}

func TestFits(t *testing.T) {
	k := blockSum(true)
	small := testTarget
	small.MaxShared = 16
	refused(t, Fits(k, small), "32 bytes of shared memory, the device has 16")
	if err := Fits(k, testTarget); err != nil {
		t.Error(err)
	}
	b := NewBuilder("wide", testTarget, [3]uint32{1, 1, 1})
	b.Store(b.Pointer("y", MF32, true, 0), b.I32(0), b.Conv(FConv, F32, b.ConstFloat(F64, 1)))
	small.F64 = false
	refused(t, Fits(b.Build(), small), "kernel wide", "no f64")
}

// TestText holds the text form of a kernel with every kind of instruction.
func TestText(t *testing.T) {
	b := NewBuilder("text", testTarget, [3]uint32{8, 2, 1})
	x, y := b.Pointer("x", M16, false, 3), b.Pointer("y", M32, true, 0)
	n, f := b.ScalarArg("n", I64), b.ScalarArg("f", F32)
	sh := b.SharedArray(MF32, 16)
	i := b.Mul(b.BuiltinValue(LocalX), b.BuiltinValue(GroupsZ))
	vs := b.LoadV(x, i, 2)
	v := b.NewVar(b.Conv(Wrap, I32, n))
	b.Loop(func() {
		b.BreakIf(b.Cmp(FLt, f, b.ConstFloat(F32, 0.1)))
		b.If(b.Cmp(ULt, vs[0], vs[1]), func() { b.Set(v, b.AtomicAdd(y, i, vs[1])) }, func() { b.SStore(sh, i, b.Mad(f, f, f)) })
	})
	b.Barrier()
	b.Store(y, b.Conv(ZExt, I64, i), b.Select(b.ConstBool(false), b.Get(v), b.BitsTo(I32, b.Opaque(b.SLoad(sh, i)))))
	k := b.Build()
	if err := Check(k); err != nil {
		t.Error(err)
	}
	golden(t, "text.golden", k.Text())
	golden(t, "block_sum.golden", blockSum(true).Text())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
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

func TestHashIsIdentity(t *testing.T) {
	a, b := blockSum(true), blockSum(true)
	b.Name, b.Args[0].Name = "other", "other"
	if a.Hash() != b.Hash() {
		t.Error("names change the hash")
	}
	// The same instructions under other numbers.
	shift := func(v *Value) {
		if *v != 0 {
			*v += 7
		}
	}
	walk(b.Body, func(in *Instr) {
		for _, v := range []*Value{&in.Dst, &in.A, &in.B, &in.C} {
			shift(v)
		}
	})
	b.Values += 7
	if err := Check(b); err != nil {
		t.Fatal(err)
	}
	if a.Hash() != b.Hash() {
		t.Error("numbering changes the hash")
	}
	seen := map[[32]byte]string{a.Hash(): ""}
	for name, change := range map[string]func(k *Kernel){
		"local": func(k *Kernel) { k.Local[0] = 4 }, "type": func(k *Kernel) { k.Args[0].Mem = M32 },
		"write": func(k *Kernel) { k.Args[0].Write = true }, "align": func(k *Kernel) { k.Args[0].Align = 4 },
		"shared": func(k *Kernel) { k.Shared[0].Len = 9 }, "body": func(k *Kernel) { k.Body = k.Body[:len(k.Body)-1] },
		"var": func(k *Kernel) { k.Vars[0] = I32 },
	} {
		k := blockSum(true)
		change(k)
		if other, ok := seen[k.Hash()]; ok {
			t.Errorf("%s: the hash of %q", name, other)
		}
		seen[k.Hash()] = name
	}
}

func TestBuilderRefusesIllTyped(t *testing.T) {
	b := NewBuilder("ill", testTarget, [3]uint32{1, 1, 1})
	for name, f := range map[string]func(){
		"sqrt of an integer":  func() { b.Un(FSqrt, b.I32(1)) },
		"wrap of 32 bits":     func() { b.Conv(Wrap, I32, b.I32(1)) },
		"sum of two types":    func() { b.Add(b.I32(1), b.ConstInt(I64, 1)) },
		"clz of 64 bits":      func() { b.Un(Clz, b.ConstInt(I64, 1)) },
		"select over a float": func() { b.Select(b.ConstFloat(F32, 1), b.I32(1), b.I32(2)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: accepted", name)
				}
			}()
			f()
		}()
	}
}
