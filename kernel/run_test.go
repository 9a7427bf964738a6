package kernel

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

var testTarget = Target{F64: true, I64: true, Mem8: true, Mem16: true, MaxShared: 32 << 10, MaxInvocations: 1024, Num: Exact}

func f32s(xs ...float32) []byte {
	var b []byte
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func u32s(xs ...uint32) []byte {
	var b []byte
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// hard values of each type, as bits.
var (
	hardI32 = []uint64{0, 1, 2, 3, 7, 31, 32, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 0xaaaaaaaa, 12345678}
	hardI64 = []uint64{0, 1, 2, 5, 63, 64, 1<<63 - 1, 1 << 63, 1<<64 - 1, 1<<64 - 2, 1 << 32, 0x123456789abcdef0, 1<<53 + 1}
	hardF64 = []uint64{}
	hardF32 = []uint64{}
)

func init() {
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 0.1, 1e10, -1e10, 1e300, 5e-324, -5e-324,
		2.2250738585072014e-308, math.Inf(1), math.Inf(-1), math.NaN(), 16777217, 1 << 31, -(1 << 31), 1 << 32, 1 << 63, -(1 << 63), 1 << 62, 1.0000001, math.MaxFloat64} {
		hardF64 = append(hardF64, math.Float64bits(f))
	}
	for _, f := range []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 0.1, 1e10, -1e10, 1e38, 1e-45, -1e-45,
		1.1754944e-38, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 16777215, 1 << 31, -(1 << 31), 1 << 30, 1 << 63, 1.0000001, math.MaxFloat32} {
		hardF32 = append(hardF32, uint64(math.Float32bits(f)))
	}
}

func hard(t Type) []uint64 {
	return map[Type][]uint64{Bool: {0, 1}, I32: hardI32, I64: hardI64, F32: hardF32, F64: hardF64}[t]
}

// TestOperationsAgreeWithBig holds integer arithmetic to math/big.
func TestOperationsAgreeWithBig(t *testing.T) {
	for _, typ := range []Type{I32, I64} {
		width := uint(typ.Bits())
		mod := new(big.Int).Lsh(big.NewInt(1), width)
		signed := func(x uint64) *big.Int {
			v := new(big.Int).SetUint64(x)
			if x>>(width-1)&1 == 1 {
				v.Sub(v, mod)
			}
			return v
		}
		wrap := func(v *big.Int) uint64 { return new(big.Int).Mod(v, mod).Uint64() }
		truth := func(c bool) uint64 {
			if c {
				return 1
			}
			return 0
		}
		for op := IAdd; op <= SLe; op++ {
			if op >= FAdd && op <= FmaExact || typ == I64 && (op == UMulHi || op == Clz || op == PopCnt) {
				continue
			}
			out := typ
			if op >= IEq {
				out = Bool
			}
			one, many := operation(op, typ, typ, out, Exact)
			for _, x := range hard(typ) {
				for _, y := range hard(typ) {
					ux, uy := new(big.Int).SetUint64(x), new(big.Int).SetUint64(y)
					sx, sy := signed(x), signed(y)
					r := new(big.Int)
					var want uint64
					undefined := false
					switch op {
					case IAdd:
						want = wrap(r.Add(ux, uy))
					case ISub:
						want = wrap(r.Sub(ux, uy))
					case IMul:
						want = wrap(r.Mul(ux, uy))
					case UMulHi:
						want = r.Rsh(r.Mul(ux, uy), width).Uint64()
					case UDiv, URem, SDiv, SRem:
						undefined = y == 0 || (op == SDiv || op == SRem) && sy.Int64() == -1 && x == 1<<(width-1)
						if undefined {
							break
						}
						want = wrap(map[Op]func() *big.Int{
							UDiv: func() *big.Int { return r.Quo(ux, uy) }, URem: func() *big.Int { return r.Rem(ux, uy) },
							SDiv: func() *big.Int { return r.Quo(sx, sy) }, SRem: func() *big.Int { return r.Rem(sx, sy) },
						}[op]())
					case And:
						want = wrap(r.And(ux, uy))
					case Or:
						want = wrap(r.Or(ux, uy))
					case Xor:
						want = wrap(r.Xor(ux, uy))
					case Not:
						want = wrap(r.Not(ux))
					case Shl, ShrU, ShrS:
						undefined = y >= uint64(width)
						if undefined {
							break
						}
						want = wrap(map[Op]func() *big.Int{
							Shl: func() *big.Int { return r.Lsh(ux, uint(y)) }, ShrU: func() *big.Int { return r.Rsh(ux, uint(y)) },
							ShrS: func() *big.Int { return r.Rsh(sx, uint(y)) },
						}[op]())
					case Clz:
						want = uint64(width) - uint64(ux.BitLen())
					case PopCnt:
						for i := range int(width) {
							want += uint64(ux.Bit(i))
						}
					case IEq:
						want = truth(x == y)
					case INe:
						want = truth(x != y)
					case ULt:
						want = truth(ux.Cmp(uy) < 0)
					case ULe:
						want = truth(ux.Cmp(uy) <= 0)
					case SLt:
						want = truth(sx.Cmp(sy) < 0)
					case SLe:
						want = truth(sx.Cmp(sy) <= 0)
					}
					if undefined {
						want = one(x, y, 0) // whatever it is, both forms give it
					}
					if got := one(x, y, 0); got != want {
						t.Errorf("%v.%v %#x %#x = %#x, want %#x", op, typ, x, y, got, want)
					}
					var d [1]uint64
					many(d[:], []uint64{x}, []uint64{y}, []uint64{0})
					if d[0] != want {
						t.Errorf("%v.%v %#x %#x = %#x over lanes, want %#x", op, typ, x, y, d[0], want)
					}
				}
			}
		}
	}
}

// round is the f32 nearest to an exact number.
func round32(x *big.Float) float32 { f, _ := x.Float32(); return f }
func round64(x *big.Float) float64 { f, _ := x.Float64(); return f }

// TestFloatsAgreeWithBig holds float arithmetic to exact numbers, rounded once.
func TestFloatsAgreeWithBig(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	exact := func() *big.Float { return new(big.Float).SetPrec(4000) }
	for range 20000 {
		// Nearby exponents, so that sums round.
		f := func() float32 { return float32(rng.NormFloat64() * math.Ldexp(1, rng.IntN(60)-30)) }
		x, y, z := f(), f(), f()
		if rng.IntN(2) == 0 { // a sum that nearly cancels
			z = -float32(x*y) * (1 + float32(rng.IntN(3)-1)*0x1p-23)
		}
		X, Y, Z := exact().SetFloat64(float64(x)), exact().SetFloat64(float64(y)), exact().SetFloat64(float64(z))
		p := exact().Mul(X, Y)
		if got, want := fma32(x, y, z), round32(exact().Add(p, Z)); got != want {
			t.Fatalf("fma32(%x, %x, %x) = %x, want %x", x, y, z, got, want)
		}
		check := func(op Op, typ Type, a, b uint64, want uint64) {
			one, many := operation(op, typ, typ, typ, Exact)
			var d [1]uint64
			many(d[:], []uint64{a}, []uint64{b}, []uint64{0})
			if got := one(a, b, 0); got != want || d[0] != want {
				t.Fatalf("%v.%v %#x %#x = %#x, %#x, want %#x", op, typ, a, b, got, d[0], want)
			}
		}
		check(FAdd, F32, of32(x), of32(y), of32(round32(exact().Add(X, Y))))
		check(FSub, F32, of32(x), of32(y), of32(round32(exact().Sub(X, Y))))
		check(FMul, F32, of32(x), of32(y), of32(round32(p)))
		check(FDiv, F32, of32(x), of32(y), of32(round32(exact().Quo(X, Y))))
		check(FSqrt, F32, of32(x*x), 0, of32(round32(exact().Sqrt(exact().SetFloat64(float64(float32(x*x)))))))
		u, v := rng.NormFloat64(), rng.NormFloat64()
		U, V := exact().SetFloat64(u), exact().SetFloat64(v)
		check(FAdd, F64, of64(u), of64(v), of64(round64(exact().Add(U, V))))
		check(FSub, F64, of64(u), of64(v), of64(round64(exact().Sub(U, V))))
		check(FMul, F64, of64(u), of64(v), of64(round64(exact().Mul(U, V))))
		check(FDiv, F64, of64(u), of64(v), of64(round64(exact().Quo(U, V))))
		one, _ := operation(FConv, F64, 0, F32, Exact)
		if got := f32(one(of64(u), 0, 0)); got != round32(U) {
			t.Fatalf("fconv %x = %x", u, got)
		}
	}
}

// TestLanesAgreeWithScalars holds the loops over lanes to the one-lane form, on hard values.
func TestLanesAgreeWithScalars(t *testing.T) {
	types := []Type{Bool, I32, I64, F32, F64}
	for op := IAdd; op < opCount; op++ {
		for _, a := range types {
			for _, b := range types {
				for _, out := range types {
					in := [3]Type{a, b, b}
					for j := len(rules[op].in); j < 3; j++ {
						in[j] = Void
					}
					if !Pure(op) || len(rules[op].in) < 2 && b != Bool || !rules[op].fits(op, in, out) {
						continue
					}
					for _, num := range []Numerics{{}, Exact, {FlushF32: true}} {
						one, many := operation(op, a, b, out, num)
						for _, x := range hard(a) {
							for _, y := range hard(b) {
								var d [1]uint64
								many(d[:], []uint64{x}, []uint64{y}, []uint64{y})
								if got := one(x, y, y); got != d[0] && !nan(got, out) {
									t.Fatalf("%v %v %v to %v: %#x %#x = %#x, %#x over lanes", op, a, b, out, x, y, got, d[0])
								}
								if out.Bits() <= 32 && d[0]>>32 != 0 || out == Bool && d[0] > 1 {
									t.Fatalf("%v %v to %v: %#x does not fit", op, a, out, d[0])
								}
							}
						}
					}
				}
			}
		}
	}
}

func nan(x uint64, t Type) bool {
	return t == F32 && f32(x) != f32(x) || t == F64 && f64(x) != f64(x)
}

func TestConversions(t *testing.T) {
	conv := func(op Op, in, out Type, x uint64) uint64 {
		one, _ := operation(op, in, Void, out, Exact)
		return one(x, 0, 0)
	}
	for _, c := range []struct {
		op      Op
		in, out Type
		x, want uint64
	}{
		{SToF, I32, F32, 0xffffffff, of32(-1)},
		{SToF, I32, F32, 16777217, of32(16777216)},
		{SToF, I32, F32, 16777219, of32(16777220)},
		{UToF, I32, F64, 0xffffffff, of64(4294967295)},
		{SToF, I64, F32, 1<<63 - 1, of32(0x1p63)},
		{UToF, I64, F32, 1<<63 + 1<<39 + 1, of32(0x1.000002p63)}, // rounds once
		{UToF, I64, F64, 1<<64 - 1, of64(0x1p64)},
		{FToS, F32, I32, of32(-1.9), 0xffffffff},
		{FToS, F64, I64, of64(-0x1p63), 1 << 63},
		{FToU, F64, I64, of64(0x1p63), 1 << 63},
		{FToU, F32, I32, of32(-0.9), 0},
		{FToS, F32, I32, of32(float32(math.NaN())), poison & math.MaxUint32},
		{FToS, F32, I32, of32(0x1p31), poison & math.MaxUint32},
		{FToS, F64, I32, of64(-0x1p31 - 0.5), 1 << 31},
		{FConv, F64, F32, of64(1 + 0x1p-24 + 0x1p-52), of32(1 + 0x1p-23)},
		{FConv, F32, F64, of32(1e-45), of64(0x1p-149)},
		{SExt, I32, I64, 0x80000000, 0xffffffff80000000},
		{ZExt, I32, I64, 0x80000000, 0x80000000},
		{Wrap, I64, I32, 0xffffffff80000001, 0x80000001},
		{RoundEven, F32, F32, of32(2.5), of32(2)},
		{RoundEven, F64, F64, of64(-0.5), of64(math.Copysign(0, -1))},
		{Ceil, F32, F32, of32(-0.5), of32(float32(math.Copysign(0, -1)))},
		{FNeg, F32, F32, 0x7fc00001, 0xffc00001},
		{FAbs, F64, F64, of64(math.Copysign(0, -1)), 0},
	} {
		if got := conv(c.op, c.in, c.out, c.x); got != c.want {
			t.Errorf("%v %v to %v of %#x = %#x, want %#x", c.op, c.in, c.out, c.x, got, c.want)
		}
	}
}

// blockSum adds up in shared memory, in workgroups of 8, reading n elements with a strided loop.
func blockSum(barriers bool) *Kernel {
	b := NewBuilder("block_sum", testTarget, [3]uint32{8, 1, 1})
	x := b.Pointer("x", MF32, false, 0)
	y := b.Pointer("y", MF32, true, 0)
	n := b.ScalarArg("n", I32)
	sh := b.SharedArray(MF32, 8)
	lane := b.BuiltinValue(LocalX)
	group := b.BuiltinValue(GroupX)
	acc := b.NewVar(b.Zero(F32))
	start := b.Add(b.MulI(group, 8), lane)
	b.For(start, n, b.MulI(b.BuiltinValue(GroupsX), 8), func(i Value) {
		b.Set(acc, b.Add(b.Get(acc), b.Load(x, i)))
	})
	b.SStore(sh, lane, b.Get(acc))
	for half := 4; half > 0; half /= 2 {
		if barriers {
			b.Barrier()
		}
		b.If(b.Cmp(ULt, lane, b.I32(half)), func() {
			b.SStore(sh, lane, b.Add(b.SLoad(sh, lane), b.SLoad(sh, b.AddI(lane, half))))
		}, nil)
	}
	b.If(b.Cmp(IEq, lane, b.I32(0)), func() { b.Store(y, group, b.SLoad(sh, lane)) }, nil)
	return b.Build()
}

func TestRunReducesInSharedMemory(t *testing.T) {
	k := blockSum(true)
	xs := make([]float32, 1003)
	var total float32
	for i := range xs {
		xs[i] = float32(i % 17)
		total += xs[i]
	}
	for _, groups := range []uint32{1, 3, 100} {
		y := make([]byte, 4*groups)
		if err := Run(k, [3]uint32{groups, 1, 1}, []Bind{{Buf: f32s(xs...)}, {Buf: y}, {Bits: 1003}}); err != nil {
			t.Fatal(err)
		}
		var got float32
		for i := range int(groups) {
			got += math.Float32frombits(binary.LittleEndian.Uint32(y[4*i:]))
		}
		if got != total {
			t.Errorf("%d groups: %v, want %v", groups, got, total)
		}
	}
}

// refused expects an error that holds all of parts.
func refused(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q lacks %q", err, p)
		}
	}
}

func TestRunFindsRaces(t *testing.T) {
	xs := make([]float32, 16)
	for i := range xs {
		xs[i] = float32(i + 1)
	}
	err := Run(blockSum(false), [3]uint32{1, 1, 1}, []Bind{{Buf: f32s(xs...)}, {Buf: make([]byte, 4)}, {Bits: 16}})
	refused(t, err, "kernel block_sum", "race", "shared array 0")

	shift := func(by int) *Kernel { // x[i] = x[i+by], in place when both are one buffer
		b := NewBuilder("shift", testTarget, [3]uint32{4, 1, 1})
		x, y := b.Pointer("x", M32, false, 0), b.Pointer("y", M32, true, 0)
		i := b.BuiltinValue(LocalX)
		b.Store(y, i, b.AddI(b.Load(x, b.AddI(i, by)), 1))
		return b.Build()
	}
	buf := u32s(1, 2, 3, 4, 5, 6, 7, 8)
	if err := Run(shift(0), [3]uint32{1, 1, 1}, []Bind{{Buf: buf}, {Buf: buf}}); err != nil {
		t.Errorf("in place: %v", err)
	}
	refused(t, Run(shift(1), [3]uint32{1, 1, 1}, []Bind{{Buf: buf}, {Buf: buf}}), "race", "argument 1 y", "read it")
	if err := Run(shift(1), [3]uint32{1, 1, 1}, []Bind{{Buf: buf}, {Buf: make([]byte, 16)}}); err != nil {
		t.Errorf("apart: %v", err)
	}

	same := func(v func(b *Builder) Value) *Kernel { // everyone writes element 0
		b := NewBuilder("same", testTarget, [3]uint32{4, 1, 1})
		b.Store(b.Pointer("y", M32, true, 0), b.I32(0), v(b))
		return b.Build()
	}
	if err := Run(same(func(b *Builder) Value { return b.I32(7) }), [3]uint32{2, 1, 1}, []Bind{{Buf: make([]byte, 4)}}); err != nil {
		t.Errorf("equal values: %v", err)
	}
	refused(t, Run(same(func(b *Builder) Value { return b.BuiltinValue(GroupX) }), [3]uint32{3, 1, 1}, []Bind{{Buf: make([]byte, 4)}}), "race", "wrote it")
}

func TestRunChecksBounds(t *testing.T) {
	b := NewBuilder("beyond", testTarget, [3]uint32{4, 1, 1})
	x, y := b.Pointer("x", M16, false, 3), b.Pointer("y", M16, true, 3)
	sh := b.SharedArray(M32, 3)
	i := b.BuiltinValue(LocalX)
	n := b.ScalarArg("which", I32)
	for w, f := range []func(){
		func() { b.Store(y, i, b.Load(x, b.AddI(i, 5))) },
		func() { b.StoreV(y, i, b.LoadV(x, b.I32(0), 4)) },
		func() { b.Store(y, b.Conv(SExt, I64, b.AddI(i, -1)), i) },
		func() { b.SStore(sh, i, i) },
	} {
		b.If(b.Cmp(IEq, n, b.I32(w)), f, nil)
	}
	k := b.Build()
	for w, want := range [][]string{
		{"load", "index 8", "argument 0 x", "8 elements", "[3 0 0]"},
		{"storev", "index 2", "argument 1 y", "4 at a time"},
		{"store", "index -1", "[0 0 0]"},
		{"sstore", "index 3", "shared array 0"},
	} {
		err := Run(k, [3]uint32{1, 1, 1}, []Bind{{Buf: make([]byte, 16)}, {Buf: make([]byte, 16)}, {Bits: uint64(w)}})
		refused(t, err, append(want, "kernel beyond")...)
	}
	refused(t, Run(k, [3]uint32{1, 1, 1}, nil), "0 arguments, it has 3")
}

// TestRunBreaksFromNestedIfs sums 1..lane through a break inside an If in a loop.
func TestRunBreaksFromNestedIfs(t *testing.T) {
	b := NewBuilder("breaks", testTarget, [3]uint32{16, 1, 1})
	y := b.Pointer("y", M32, true, 0)
	lane := b.BuiltinValue(LocalX)
	sum, i := b.NewVar(b.I32(0)), b.NewVar(b.I32(0))
	b.Loop(func() {
		at := b.Get(i)
		b.If(b.Cmp(ULt, b.I32(2), lane), func() {
			b.BreakIf(b.Cmp(ULt, lane, at))
		}, func() {
			b.BreakIf(b.Cmp(IEq, lane, at))
		})
		b.Set(sum, b.Add(b.Get(sum), at))
		b.Set(i, b.AddI(at, 1))
	})
	b.Store(y, lane, b.Get(sum))
	buf := make([]byte, 64)
	if err := Run(b.Build(), [3]uint32{1, 1, 1}, []Bind{{Buf: buf}}); err != nil {
		t.Fatal(err)
	}
	for l := range uint32(16) {
		want := l * (l + 1) / 2
		if l <= 2 {
			want -= l
		}
		if got := binary.LittleEndian.Uint32(buf[4*l:]); got != want {
			t.Errorf("lane %d: %d, want %d", l, got, want)
		}
	}
}

func TestRunStopsEndlessLoops(t *testing.T) {
	b := NewBuilder("endless", testTarget, [3]uint32{1, 1, 1})
	b.Loop(func() { b.BreakIf(b.Opaque(b.ConstBool(false))) })
	m := Machine{MaxSteps: 1000}
	refused(t, m.Run(b.Build(), [3]uint32{1, 1, 1}, nil), "kernel endless", "1000 steps")
}

func TestMadFollowsTheDevice(t *testing.T) {
	b := NewBuilder("mad", testTarget, [3]uint32{1, 1, 1})
	y := b.Pointer("y", MF64, true, 0)
	x := b.ConstFloat(F64, 1+0x1p-30)
	b.Store(y, b.I32(0), b.Mad(x, x, b.ConstFloat(F64, -1)))
	for _, fuse := range []bool{false, true} {
		buf := make([]byte, 8)
		m := Machine{Num: Numerics{FuseF64: fuse}}
		if err := m.Run(b.Build(), [3]uint32{1, 1, 1}, []Bind{{Buf: buf}}); err != nil {
			t.Fatal(err)
		}
		want := 0x1p-29
		if fuse {
			want += 0x1p-60
		}
		if got := f64(binary.LittleEndian.Uint64(buf)); got != want {
			t.Errorf("fused %v: %x, want %x", fuse, got, want)
		}
	}
}

func BenchmarkRunElementwise(b *testing.B) {
	bb := NewBuilder("axpy", testTarget, [3]uint32{64, 1, 1})
	x, y := bb.Pointer("x", MF32, false, 0), bb.Pointer("y", MF32, true, 0)
	n := bb.ScalarArg("n", I32)
	i := bb.Add(bb.MulI(bb.BuiltinValue(GroupX), 64), bb.BuiltinValue(LocalX))
	bb.If(bb.Cmp(ULt, i, n), func() {
		v := bb.Load(x, i)
		for range 20 {
			v = bb.Add(bb.Mul(v, v), bb.ConstFloat(F32, 0.25))
		}
		bb.Store(y, i, v)
	}, nil)
	k := bb.Build()
	const elems = 1 << 16
	in, out := make([]byte, 4*elems), make([]byte, 4*elems)
	b.ResetTimer()
	for range b.N {
		if err := Run(k, [3]uint32{elems / 64, 1, 1}, []Bind{{Buf: in}, {Buf: out}, {Bits: elems}}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(elems*45*b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
}
