package devtest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"nxvk/kernel"
)

// opCase is one operation on operands of one type.
type opCase struct {
	op      kernel.Op
	in, out kernel.Type
	arity   int
	defined func(x, y uint64) bool // nil: always
}

func opCases(t kernel.Target) []opCase {
	var cases []opCase
	ints, floats := []kernel.Type{kernel.I32}, []kernel.Type{kernel.F32}
	if t.I64 {
		ints = append(ints, kernel.I64)
	}
	if t.F64 {
		floats = append(floats, kernel.F64)
	}
	for _, i := range ints {
		top := uint64(1) << (i.Bits() - 1)
		mask := top | (top - 1)
		for op := kernel.IAdd; op <= kernel.ShrS; op++ {
			c := opCase{op, i, i, 2, nil}
			switch op {
			case kernel.UMulHi:
				if i == kernel.I64 {
					continue
				}
			case kernel.Not:
				c.arity = 1
			case kernel.UDiv, kernel.URem:
				c.defined = func(_, y uint64) bool { return y != 0 }
			case kernel.SDiv, kernel.SRem:
				c.defined = func(x, y uint64) bool { return y != 0 && !(x == top && y == mask) }
			case kernel.Shl, kernel.ShrU, kernel.ShrS:
				c.defined = func(_, y uint64) bool { return y < uint64(i.Bits()) }
			}
			cases = append(cases, c)
		}
		for op := kernel.IEq; op <= kernel.SLe; op++ {
			cases = append(cases, opCase{op, i, kernel.Bool, 2, nil})
		}
		for _, f := range floats {
			cases = append(cases, opCase{kernel.SToF, i, f, 1, nil}, opCase{kernel.UToF, i, f, 1, nil})
			for _, op := range []kernel.Op{kernel.FToS, kernel.FToU} {
				low, high := -1.0, math.Ldexp(1, i.Bits())
				if op == kernel.FToS {
					high /= 2
					low = -high
				}
				cases = append(cases, opCase{op, f, i, 1, func(x, _ uint64) bool {
					v := math.Float64frombits(x)
					if f == kernel.F32 {
						v = float64(math.Float32frombits(uint32(x)))
					}
					return v < high && (v > low || v == low && op == kernel.FToS)
				}})
			}
		}
	}
	cases = append(cases, opCase{kernel.Clz, kernel.I32, kernel.I32, 1, nil}, opCase{kernel.PopCnt, kernel.I32, kernel.I32, 1, nil})
	if t.I64 {
		cases = append(cases, opCase{kernel.Wrap, kernel.I64, kernel.I32, 1, nil},
			opCase{kernel.ZExt, kernel.I32, kernel.I64, 1, nil}, opCase{kernel.SExt, kernel.I32, kernel.I64, 1, nil})
	}
	for _, f := range floats {
		for op := kernel.FAdd; op <= kernel.RoundEven; op++ {
			c := opCase{op, f, f, 1, nil}
			if op <= kernel.FDiv {
				c.arity = 2
			}
			num := t.Num
			exact := map[kernel.Type][2]bool{kernel.F32: {num.DivF32, num.SqrtF32}, kernel.F64: {num.DivF64, num.SqrtF64}}[f]
			if op == kernel.FDiv && !exact[0] || op == kernel.FSqrt && !exact[1] {
				continue
			}
			cases = append(cases, c)
		}
		for op := kernel.FEq; op <= kernel.FLe; op++ {
			cases = append(cases, opCase{op, f, kernel.Bool, 2, nil})
		}
	}
	if t.F64 {
		cases = append(cases, opCase{kernel.FConv, kernel.F32, kernel.F64, 1, nil}, opCase{kernel.FConv, kernel.F64, kernel.F32, 1, nil})
	}
	return cases
}

var memOf = map[kernel.Type]kernel.Mem{kernel.Bool: kernel.M32, kernel.I32: kernel.M32, kernel.I64: kernel.M64, kernel.F32: kernel.MF32, kernel.F64: kernel.MF64}

// hardBits are values of t at which arithmetic goes wrong, and random ones.
func hardBits(rng *rand.Rand, t kernel.Type) []uint64 {
	var all []uint64
	add := func(x uint64) {
		if t.Bits() == 32 {
			x &= math.MaxUint32
		}
		all = append(all, x)
	}
	if t.Int() {
		for _, x := range []uint64{0, 1, 2, 3, 5, 7, 31, 32, 63, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, math.MaxUint64, math.MaxUint64 - 1,
			1<<24 + 1, 1<<24 + 3, 1<<53 + 1, 1<<53 + 3, 1<<63 + 1<<39 + 1, 0x7fffffbf, 0xaaaaaaaaaaaaaaaa} {
			add(x)
			add(-x)
		}
		for range 16 {
			add(rng.Uint64() >> rng.IntN(64))
		}
		return all
	}
	for _, v := range []float64{0, 0.25, 0.5, 1, 1.5, 2.5, 3, 1e10, 1e38, 1e39, 1e300, 0x1p-149, 0x1p-126, 0x1p-127, 0x1p-1074, 0x1p-1022, 0x1.fffffep127,
		math.MaxFloat64, math.Inf(1), math.NaN(), 0x1p31, 0x1p32, 0x1p63, 0x1p64, 0x1p31 - 1, 0x1p23 + 0.5, 0x1p52 + 0.5, 8388607.5, 1 + 0x1p-23, 1 + 0x1p-24, 1 + 0x1.8p-24, 1 + 0x1p-52} {
		for _, w := range []float64{v, -v} {
			if t == kernel.F32 {
				add(uint64(math.Float32bits(float32(w))))
			} else {
				add(math.Float64bits(w))
			}
		}
	}
	for range 16 {
		if t == kernel.F32 {
			add(uint64(math.Float32bits(float32(rng.NormFloat64() * math.Ldexp(1, rng.IntN(40)-20)))))
		} else {
			add(math.Float64bits(rng.NormFloat64() * math.Ldexp(1, rng.IntN(80)-40)))
		}
		add(rng.Uint64())
	}
	return all
}

func bytesOf(t kernel.Type, xs []uint64) []byte {
	var b []byte
	for _, x := range xs {
		if t.Bits() == 64 {
			b = binary.LittleEndian.AppendUint64(b, x)
		} else {
			b = binary.LittleEndian.AppendUint32(b, uint32(x))
		}
	}
	return b
}

// TestOperations holds each operation on the device to the interpreter, on all pairs of hard values
// for which it is defined.
func TestOperations(t *testing.T) {
	d := Open(t)
	rng := rand.New(rand.NewPCG(7, 7))
	for _, c := range opCases(d.Target) {
		t.Run(fmt.Sprintf("%v.%v.%v", c.op, c.in, c.out), func(t *testing.T) {
			hard := hardBits(rng, c.in)
			var xs, ys []uint64
			for _, x := range hard {
				for _, y := range hard {
					if c.arity == 1 {
						y = 0
					}
					if c.defined == nil || c.defined(x, y) {
						xs, ys = append(xs, x), append(ys, y)
					}
					if c.arity == 1 {
						break
					}
				}
			}
			b := kernel.NewBuilder("op_"+c.op.String(), d.Target, [3]uint32{1, 1, 1})
			px, py := b.Pointer("x", memOf[c.in], false, 0), b.Pointer("y", memOf[c.in], false, 0)
			out := b.Pointer("out", memOf[c.out], true, 0)
			i := b.BuiltinValue(kernel.GroupX)
			x, y := b.Load(px, i), b.Load(py, i)
			var r kernel.Value
			switch {
			case c.out == kernel.Bool:
				r = b.Select(b.Cmp(c.op, x, y), b.I32(1), b.I32(0))
			case c.arity == 2:
				r = b.Bin(c.op, x, y)
			case c.op >= kernel.Wrap:
				r = b.Conv(c.op, c.out, x)
			default:
				r = b.Un(c.op, x)
			}
			b.Store(out, i, r)
			Both(t, b.Build(), [3]uint32{uint32(len(xs)), 1, 1},
				kernel.Bind{Buf: bytesOf(c.in, xs)}, kernel.Bind{Buf: bytesOf(c.in, ys)},
				kernel.Bind{Buf: make([]byte, len(xs)*memOf[c.out].Size())})
		})
	}
}

// TestFmaExact holds the exact product error, and residuals of division and square root, to the
// interpreter's single rounding: by Dekker or by way of f64 where the device does not fuse.
func TestFmaExact(t *testing.T) {
	d := Open(t)
	slow := d.Target
	slow.SlowF64 = true // f32 by Dekker
	slow.Num.FuseF32, slow.Num.FuseF64 = false, false
	for _, target := range []kernel.Target{d.Target, slow} {
		for _, typ := range []kernel.Type{kernel.F32, kernel.F64} {
			if typ == kernel.F64 && !target.F64 {
				continue
			}
			const n = 4096
			b := kernel.NewBuilder("fma_exact", target, [3]uint32{64, 1, 1})
			m := memOf[typ]
			px, py, out := b.Pointer("x", m, false, 0), b.Pointer("y", m, false, 0), b.Pointer("out", m, true, 0)
			i := b.Add(b.MulI(b.BuiltinValue(kernel.GroupX), 64), b.BuiltinValue(kernel.LocalX))
			x, y := b.Load(px, i), b.Load(py, i)
			neg := func(v kernel.Value) kernel.Value { return b.Un(kernel.FNeg, v) }
			q := b.Load(px, b.AddI(i, n)) // the nearest quotient, from the host
			s := b.Load(py, b.AddI(i, n)) // the nearest square root of x
			for j, v := range []kernel.Value{
				b.FmaExact(x, y, neg(b.Mul(x, y))),
				b.FmaExact(neg(q), y, x),
				b.FmaExact(neg(s), s, x),
			} {
				b.Store(out, b.AddI(i, j*n), v)
			}
			rng := rand.New(rand.NewPCG(11, uint64(typ)))
			var xs, ys, qs, ss []uint64
			for range n {
				spread := 20
				x, y := (1+rng.Float64())*math.Ldexp(1, rng.IntN(spread)), (1+rng.Float64())*math.Ldexp(1, rng.IntN(spread)-spread/2)
				if typ == kernel.F32 {
					x, y := float32(x), float32(y)
					xs, ys = append(xs, uint64(math.Float32bits(x))), append(ys, uint64(math.Float32bits(y)))
					qs, ss = append(qs, uint64(math.Float32bits(x/y))), append(ss, uint64(math.Float32bits(float32(math.Sqrt(float64(x))))))
				} else {
					xs, ys = append(xs, math.Float64bits(x)), append(ys, math.Float64bits(y))
					qs, ss = append(qs, math.Float64bits(x/y)), append(ss, math.Float64bits(math.Sqrt(x)))
				}
			}
			k := b.Build()
			args := []kernel.Bind{{Buf: bytesOf(typ, append(xs, qs...))}, {Buf: bytesOf(typ, append(ys, ss...))}, {Buf: make([]byte, 3*n*m.Size())}}
			d.As(target).Both(t, k, [3]uint32{n / 64, 1, 1}, args...)
		}
	}
}

// TestZerosAreNotFolded holds arithmetic with zeros that a driver could know to IEEE 754.
func TestZerosAreNotFolded(t *testing.T) {
	d := Open(t)
	for _, typ := range []kernel.Type{kernel.F32, kernel.F64} {
		if typ == kernel.F64 && !d.Target.F64 {
			continue
		}
		m := memOf[typ]
		b := kernel.NewBuilder("zeros", d.Target, [3]uint32{1, 1, 1})
		in, out := b.Pointer("in", m, false, 0), b.Pointer("out", m, true, 0)
		n := b.ScalarArg("n", kernel.I32)
		i := b.BuiltinValue(kernel.GroupX)
		x := b.Load(in, i)
		zero, minus := b.Zero(typ), b.ConstFloat(typ, math.Copysign(0, -1))
		derived := b.Un(kernel.RoundEven, b.ConstFloat(typ, 0.25))
		tiny := b.Mul(b.ConstFloat(typ, 1e-30), b.ConstFloat(typ, 1e-30)) // 0 in f32
		acc := b.NewVar(zero)
		b.For(b.I32(0), b.I32(1), b.I32(1), func(kernel.Value) { b.Set(acc, b.Add(b.Get(acc), x)) })
		after := b.NewVar(zero)
		b.For(b.I32(0), n, b.I32(1), func(kernel.Value) { b.Set(after, b.Add(b.Get(after), x)) })
		results := []kernel.Value{
			b.Add(x, zero), b.Add(minus, x), b.Sub(zero, x), b.Sub(x, zero), b.Sub(x, minus), b.Sub(x, x), b.Mul(x, zero), b.Mul(minus, x),
			b.Add(x, derived), b.Sub(derived, x), b.Mul(x, derived), b.Add(x, tiny), b.Sub(tiny, x), b.Get(acc), b.Get(after),
			b.Mad(x, zero, x), b.Mad(b.ConstFloat(typ, 3), derived, x), b.Mad(x, x, minus), b.Mul(x, b.ConstFloat(typ, -1)), b.Mul(x, b.ConstFloat(typ, 1)),
			b.Add(x, b.Un(kernel.FNeg, x)),
		}
		if num := d.Target.Num; typ == kernel.F32 && num.DivF32 || typ == kernel.F64 && num.DivF64 {
			results = append(results, b.Bin(kernel.FDiv, x, zero), b.Bin(kernel.FDiv, zero, x), b.Bin(kernel.FDiv, x, x))
		}
		for j, r := range results {
			b.Store(out, b.AddI(b.MulI(i, len(results)), j), r)
		}
		xs := hardBits(rand.New(rand.NewPCG(3, 3)), typ)
		if typ == kernel.F32 && d.Target.Num.FlushF32 { // x*1 may flush x or not
			xs = slices.DeleteFunc(xs, func(x uint64) bool { return x&0x7f800000 == 0 && x&0x7fffff != 0 })
		}
		Both(t, b.Build(), [3]uint32{uint32(len(xs)), 1, 1}, kernel.Bind{Buf: bytesOf(typ, xs)},
			kernel.Bind{Buf: make([]byte, len(xs)*len(results)*m.Size())}, kernel.Bind{Bits: 1})
	}
}

// TestNarrowLoads holds what is done right after a load of 8 or 16 bits, which zero-extends, to the
// interpreter: drivers fuse the two.
func TestNarrowLoads(t *testing.T) {
	d := Open(t)
	for _, m := range []kernel.Mem{kernel.M8, kernel.M16} {
		b := kernel.NewBuilder("narrow_"+m.String(), d.Target, [3]uint32{1, 1, 1})
		in, narrow, out := b.Pointer("in", m, false, 3), b.Pointer("narrow", m, true, 0), b.Pointer("out", kernel.M32, true, 0)
		i := b.BuiltinValue(kernel.GroupX)
		var results []kernel.Value
		for _, load := range []func() kernel.Value{
			func() kernel.Value { return b.Load(in, i) },
			func() kernel.Value { return b.LoadV(in, i, 4)[3] },
		} {
			minus := b.I32(-1)
			results = append(results, b.Un(kernel.PopCnt, load()), b.Un(kernel.Clz, load()), b.Not(load()),
				b.BitsTo(kernel.I32, b.Conv(kernel.SToF, kernel.F32, load())), b.BitsTo(kernel.I32, b.Conv(kernel.UToF, kernel.F32, load())),
				b.Bin(kernel.SDiv, load(), b.I32(-3)), b.Bin(kernel.UDiv, load(), b.I32(3)), b.Bin(kernel.SRem, load(), b.I32(7)), b.Bin(kernel.URem, load(), b.I32(7)),
				b.Bin(kernel.UMulHi, load(), minus), b.Mul(load(), load()), b.Mul(load(), minus), b.ShlI(load(), 25), b.ShrUI(load(), 3), b.ShrSI(load(), 3),
				b.ShrSI(b.ShlI(load(), 32-8*m.Size()), 32-8*m.Size()), b.Select(b.Cmp(kernel.SLt, load(), b.I32(0)), minus, i),
				b.Select(b.Cmp(kernel.ULt, minus, load()), minus, i), b.Sub(load(), load()), b.And(load(), minus), b.Xor(load(), minus))
			if d.Target.I64 {
				for _, op := range []kernel.Op{kernel.ZExt, kernel.SExt} {
					results = append(results, b.Conv(kernel.Wrap, kernel.I32, b.ShrUI(b.Conv(op, kernel.I64, load()), 4)))
				}
			}
			if d.Target.F64 {
				for _, op := range []kernel.Op{kernel.SToF, kernel.UToF} {
					f := b.Opaque(b.Conv(kernel.FConv, kernel.F32, b.Conv(op, kernel.F64, load())))
					results = append(results, b.BitsTo(kernel.I32, f))
				}
			}
		}
		for j, r := range results {
			b.Store(out, b.AddI(b.MulI(i, len(results)), j), r)
		}
		b.Store(narrow, i, b.Sub(b.Load(in, i), b.I32(300)))
		const n = 256
		buf := make([]byte, 4*n*m.Size())
		rng := rand.New(rand.NewPCG(5, uint64(m)))
		for j := range buf {
			buf[j] = byte(rng.Uint32())
		}
		Both(t, b.Build(), [3]uint32{n, 1, 1}, kernel.Bind{Buf: buf}, kernel.Bind{Buf: make([]byte, n*m.Size())},
			kernel.Bind{Buf: make([]byte, 4*n*len(results))})
	}
}
