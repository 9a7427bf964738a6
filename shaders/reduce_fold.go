package shaders

import (
	"nxvk/graph"
	"nxvk/kernel"
)

// fold is how values are gathered into one: what a lane keeps, how it takes in an element, how two
// lanes' accumulators become one, and what comes out.
//
// Accumulators are lists of registers; parts says how each is stored between lanes and launches.
type fold struct {
	parts []kernel.Mem
	ident func(b *kernel.Builder) []kernel.Value
	// elem turns what the operands' loads yielded, widened, into what step takes.
	elem func(b *kernel.Builder, vs []kernel.Value) []kernel.Value
	// step takes in an element; at is its position along the reduction, and positions ascend.
	step func(b *kernel.Builder, acc, v []kernel.Value, at kernel.Value) []kernel.Value
	// join merges two accumulators. Every position of l lies before those of r, or the fold is indexed.
	join func(b *kernel.Builder, l, r []kernel.Value) []kernel.Value
	// final yields the result in the register type of the out type, ready for Narrow.
	final func(b *kernel.Builder, acc []kernel.Value) kernel.Value
	// ways is how many accumulators a lane may keep side by side, for the processor's pipelines: 1
	// where the order of elements shows in the result.
	ways int
	// at is the register type of positions, Void where step ignores them.
	at kernel.Type
	// raw operands are read as integers of their width, and not widened.
	raw bool
}

func memOfReg(t kernel.Type) kernel.Mem {
	switch t {
	case kernel.I64:
		return kernel.M64
	case kernel.F32:
		return kernel.MF32
	case kernel.F64:
		return kernel.MF64
	}
	return kernel.M32
}

func firstOnly(_ *kernel.Builder, vs []kernel.Value) []kernel.Value { return vs[:1] }

// plainFold accumulates one register with one operation, which is also how accumulators join.
func plainFold(r kernel.Type, unit func(b *kernel.Builder) kernel.Value, op func(b *kernel.Builder, x, y kernel.Value) kernel.Value) fold {
	return fold{
		parts: []kernel.Mem{memOfReg(r)},
		ident: func(b *kernel.Builder) []kernel.Value { return []kernel.Value{unit(b)} },
		elem:  firstOnly,
		step: func(b *kernel.Builder, acc, v []kernel.Value, _ kernel.Value) []kernel.Value {
			return []kernel.Value{op(b, acc[0], v[0])}
		},
		join: func(b *kernel.Builder, l, r []kernel.Value) []kernel.Value {
			return []kernel.Value{op(b, l[0], r[0])}
		},
		ways: 4,
	}
}

// unitOf is the unit of a sum (0) or product (1). A float zero is hidden from the driver, which else would
// fold its addition away: 0 + -0 is 0.
func unitOf(r kernel.Type, n int64) func(b *kernel.Builder) kernel.Value {
	return func(b *kernel.Builder) kernel.Value {
		switch {
		case r.Float() && n == 0:
			return b.Opaque(b.Zero(r))
		case r.Float():
			return b.ConstFloat(r, float64(n))
		}
		return b.ConstInt(r, n)
	}
}

// twoSum yields s = fl(x+y) and the error, exactly: x+y = s+e (Knuth).
func twoSum(b *kernel.Builder, x, y kernel.Value) (s, e kernel.Value) {
	s = b.Add(x, y)
	z := b.Sub(s, x)
	return s, b.Add(b.Sub(x, b.Sub(s, z)), b.Sub(y, z))
}

// pairSum is the fold of sums whose accumulator is a high part and the errors that it left behind.
// Elements are one value, or two: a value and its own error (a product's).
func pairSum(r kernel.Type, out graph.Type) fold {
	m := memOfReg(r)
	return fold{
		parts: []kernel.Mem{m, m},
		ident: func(b *kernel.Builder) []kernel.Value { return []kernel.Value{unitOf(r, 0)(b), b.Zero(r)} },
		elem:  firstOnly,
		step: func(b *kernel.Builder, acc, v []kernel.Value, _ kernel.Value) []kernel.Value {
			s, e := twoSum(b, acc[0], v[0])
			if len(v) == 2 {
				e = b.Add(e, v[1])
			}
			return []kernel.Value{s, b.Add(acc[1], e)}
		},
		join: func(b *kernel.Builder, l, r []kernel.Value) []kernel.Value {
			s, e := twoSum(b, l[0], r[0])
			return []kernel.Value{s, b.Add(e, b.Add(l[1], r[1]))}
		},
		final: func(b *kernel.Builder, acc []kernel.Value) kernel.Value { return pairOut(b, acc[0], acc[1], r, out) },
		ways:  4,
	}
}

// pairOut rounds hi+lo to out, once. Where hi overflowed, lo is NaN and says nothing.
func pairOut(b *kernel.Builder, hi, lo kernel.Value, r kernel.Type, out graph.Type) kernel.Value {
	s, e := twoSum(b, hi, lo)
	lost := b.Cmp(kernel.FNe, s, s)
	if r == kernel.F32 && smallFloat(out) {
		// Rounded to odd, so that Narrow's rounding is as if it were the only one: an inexact s with an
		// even last bit moves to its odd neighbour on the side of the error.
		u := b.BitsTo(kernel.I32, s)
		even := b.Cmp(kernel.IEq, b.And(u, b.I32(1)), b.I32(0))
		up := b.Cmp(kernel.FLt, b.Zero(r), e)
		down := b.Cmp(kernel.FLt, e, b.Zero(r))
		neg := b.Cmp(kernel.SLt, u, b.I32(0))
		// Growing in magnitude when the error has the sign of s.
		grow := b.Or(b.And(up, b.Not(neg)), b.And(down, neg))
		odd := b.BitsTo(kernel.F32, b.Select(grow, b.Add(u, b.I32(1)), b.Sub(u, b.I32(1))))
		s = b.Select(b.And(even, b.Or(up, down)), odd, s)
	}
	s = b.Select(lost, hi, s)
	return CanonNaN(b, regType(r), Convert(b, s, regType(r), out))
}

// regType is the Nx type that a register type computes with exactly; integers are taken as signed.
func regType(r kernel.Type) graph.Type {
	switch r {
	case kernel.I64:
		return graph.S64
	case kernel.F32:
		return graph.F32
	case kernel.F64:
		return graph.F64
	}
	return graph.S32
}

// fastF64 reports whether an F64 accumulator costs less than compensated F32.
func fastF64(t kernel.Target) bool { return t.F64 && (t.Class == kernel.CPU || !t.SlowF64) }

// sumFold is the fold of sum.
//
// Integers wrap. f16, bf16 and f32 gather in F64 where that is fast, else in a compensated F32, and
// are rounded once. f64 is compensated; see inOrder for where one lane does it all.
func sumFold(t kernel.Target, in, out graph.Type, acc graph.Acc) fold {
	if !out.Float() {
		r := RegOf(out)
		f := plainFold(r, unitOf(r, 0), (*kernel.Builder).Add)
		f.elem = func(b *kernel.Builder, vs []kernel.Value) []kernel.Value {
			return []kernel.Value{Convert(b, vs[0], in, out)}
		}
		f.final = func(_ *kernel.Builder, acc []kernel.Value) kernel.Value { return acc[0] }
		return f
	}
	var f fold
	r := kernel.F32
	switch {
	case out == graph.F64:
		r = kernel.F64
		f = pairSum(r, out)
	case out == graph.F32 && acc == graph.AccF32 && in.Float():
		f = plainFold(r, unitOf(r, 0), (*kernel.Builder).Add)
		f.final = floatOut(r, out)
	case fastF64(t) || t.F64 && (acc == graph.AccF64 || in.Size() == 8 || in.Int()):
		r = kernel.F64
		f = plainFold(r, unitOf(r, 0), (*kernel.Builder).Add)
		f.final = floatOut(r, out)
	default:
		f = pairSum(r, out)
	}
	f.elem = func(b *kernel.Builder, vs []kernel.Value) []kernel.Value {
		return []kernel.Value{Convert(b, vs[0], in, regType(r))}
	}
	return f
}

// inOrder is the fold of an f64 sum or product that one lane gathers alone, in order: exactly what
// Nx.BinaryBackend does, rounding errors included. nil for other types, which Nx rounds but once.
func inOrder(in, out graph.Type, unit int64, op func(b *kernel.Builder, x, y kernel.Value) kernel.Value) *fold {
	if out != graph.F64 {
		return nil
	}
	f := plainFold(kernel.F64, unitOf(kernel.F64, unit), op)
	f.ways = 1
	f.elem = func(b *kernel.Builder, vs []kernel.Value) []kernel.Value {
		return []kernel.Value{Convert(b, vs[0], in, out)}
	}
	f.final = floatOut(kernel.F64, out)
	return &f
}

// floatOut rounds one float accumulator to out.
func floatOut(r kernel.Type, out graph.Type) func(b *kernel.Builder, acc []kernel.Value) kernel.Value {
	return func(b *kernel.Builder, acc []kernel.Value) kernel.Value {
		return CanonNaN(b, out, Convert(b, acc[0], regType(r), out))
	}
}

// productFold is the fold of product. Floats gather in F64 where the device has it, else in a pair of
// F32: either way the result is rounded once.
func productFold(t kernel.Target, in, out graph.Type) fold {
	if !out.Float() {
		r := RegOf(out)
		f := plainFold(r, unitOf(r, 1), (*kernel.Builder).Mul)
		f.elem = func(b *kernel.Builder, vs []kernel.Value) []kernel.Value {
			return []kernel.Value{Convert(b, vs[0], in, out)}
		}
		f.final = func(_ *kernel.Builder, acc []kernel.Value) kernel.Value { return acc[0] }
		return f
	}
	r := kernel.F32
	if t.F64 {
		r = kernel.F64
	}
	var f fold
	if r == kernel.F64 && out != graph.F64 {
		f = plainFold(r, unitOf(r, 1), (*kernel.Builder).Mul)
		f.final = floatOut(r, out)
	} else {
		f = pairProduct(r, out)
	}
	f.elem = func(b *kernel.Builder, vs []kernel.Value) []kernel.Value {
		return []kernel.Value{Convert(b, vs[0], in, regType(r))}
	}
	return f
}

// pairProduct keeps a product as a high part and the error that it left behind.
func pairProduct(r kernel.Type, out graph.Type) fold {
	m := memOfReg(r)
	times := func(b *kernel.Builder, hi, lo, yhi, ylo kernel.Value) []kernel.Value {
		p := b.Mul(hi, yhi)
		e := b.Add(b.FmaExact(hi, yhi, b.Un(kernel.FNeg, p)), b.Mul(lo, yhi))
		if ylo != 0 {
			e = b.Add(e, b.Mul(hi, ylo))
		}
		return []kernel.Value{p, productError(b, p, e)}
	}
	return fold{
		parts: []kernel.Mem{m, m},
		ident: func(b *kernel.Builder) []kernel.Value { return []kernel.Value{b.ConstFloat(r, 1), b.Zero(r)} },
		elem:  firstOnly,
		step: func(b *kernel.Builder, acc, v []kernel.Value, _ kernel.Value) []kernel.Value {
			return times(b, acc[0], acc[1], v[0], 0)
		},
		join: func(b *kernel.Builder, l, r []kernel.Value) []kernel.Value {
			return times(b, l[0], l[1], r[0], r[1])
		},
		final: func(b *kernel.Builder, acc []kernel.Value) kernel.Value { return pairOut(b, acc[0], acc[1], r, out) },
		ways:  4,
	}
}

// boolFold is the fold of all and any: it looks at bits, so that subnormals count on every device and
// no float type need be computed with. A NaN is not zero, both zeros are.
func boolFold(op graph.Op, in, out graph.Type) fold {
	unit, join := int64(0), (*kernel.Builder).Or
	if op == graph.OpAll {
		unit, join = 1, (*kernel.Builder).And
	}
	f := plainFold(kernel.I32, unitOf(kernel.I32, unit), join)
	f.raw = true
	f.elem = func(b *kernel.Builder, vs []kernel.Value) []kernel.Value {
		v, bits := vs[0], 8*in.Size()
		switch b.TypeOf(v) { // a by-value operand comes widened
		case kernel.F32:
			v, bits = b.BitsTo(kernel.I32, v), 32
		case kernel.F64:
			v = b.BitsTo(kernel.I64, v)
		}
		t := b.TypeOf(v)
		if in.Float() {
			v = b.ShlI(v, 1+t.Bits()-bits) // the sign goes
		}
		return []kernel.Value{b.Select(b.Cmp(kernel.INe, v, b.Zero(t)), b.I32(1), b.I32(0))}
	}
	f.final = func(b *kernel.Builder, acc []kernel.Value) kernel.Value { return Convert(b, acc[0], graph.U8, out) }
	return f
}

// better yields the condition under which v displaces acc as the extreme of elements in order: it
// is greater (less, for a minimum), or as good where ties go to the later one, or a NaN.
func better(in graph.Type, max, late bool) func(b *kernel.Builder, acc, v kernel.Value) kernel.Value {
	lt, le := kernel.ULt, kernel.ULe
	if in.Signed() {
		lt, le = kernel.SLt, kernel.SLe
	}
	if in.Float() {
		lt, le = kernel.FLt, kernel.FLe
	}
	op := lt
	if late {
		op = le
	}
	return func(b *kernel.Builder, acc, v kernel.Value) kernel.Value {
		x, y := acc, v
		if !max {
			x, y = v, acc
		}
		c := b.Cmp(op, x, y)
		if in.Float() {
			c = b.Or(c, b.Cmp(kernel.FNe, v, v))
		}
		return c
	}
}

// worst is the value that every other displaces or equals.
func worst(in graph.Type, max bool) func(b *kernel.Builder) kernel.Value {
	r := RegOf(in)
	return func(b *kernel.Builder) kernel.Value {
		switch {
		case in == graph.F8E4M3FN && max: // it has no infinities
			return b.ConstFloat(r, -448)
		case in == graph.F8E4M3FN:
			return b.ConstFloat(r, 448)
		case r == kernel.F32 && max:
			return b.ConstBits(r, 0xff800000)
		case r == kernel.F32:
			return b.ConstBits(r, 0x7f800000)
		case r == kernel.F64 && max:
			return b.ConstBits(r, 0xfff0000000000000)
		case r == kernel.F64:
			return b.ConstBits(r, 0x7ff0000000000000)
		}
		lo, hi := IntRange(in)
		if max {
			return b.ConstInt(r, int64(lo))
		}
		return b.ConstInt(r, int64(hi))
	}
}

// extremeFold is the fold of reduce_max and reduce_min, over elements in order: of equal zeros the
// first stays, and a NaN stays.
func extremeFold(op graph.Op, in, out graph.Type) fold {
	max := op == graph.OpReduceMax
	wins := better(in, max, false)
	f := plainFold(RegOf(in), worst(in, max), func(b *kernel.Builder, acc, v kernel.Value) kernel.Value {
		return b.Select(wins(b, acc, v), v, acc)
	})
	if in.Float() {
		f.ways = 1
	}
	f.final = func(b *kernel.Builder, acc []kernel.Value) kernel.Value {
		return CanonNaN(b, out, Convert(b, acc[0], in, out))
	}
	return f
}

// indexedFold is extremeFold with positions: the accumulator is a value and where it stood, so that
// accumulators join in any order. Ties go to the lowest position (highest when high), a NaN
// displaces every number and the last NaN every other, as Nx.BinaryBackend has it.
//
// wide says that positions need 64 bits. pick yields the result from the accumulator.
func indexedFold(in graph.Type, max, high, wide bool, final func(b *kernel.Builder, acc []kernel.Value) kernel.Value) fold {
	at := kernel.I32
	if wide {
		at = kernel.I64
	}
	later := better(in, max, high)
	strictly := better(in, max, false)
	none := int64(-1) // no position yet: as unsigned it is above all, so it loses low ties
	r := RegOf(in)
	unit := worst(in, max)
	return fold{
		parts: []kernel.Mem{memOfReg(r), memOfReg(at)},
		ident: func(b *kernel.Builder) []kernel.Value {
			return []kernel.Value{unit(b), b.ConstInt(at, none)}
		},
		elem: firstOnly,
		step: func(b *kernel.Builder, acc, v []kernel.Value, p kernel.Value) []kernel.Value {
			take := b.Or(later(b, acc[0], v[0]), b.Cmp(kernel.IEq, acc[1], b.ConstInt(at, none)))
			return []kernel.Value{b.Select(take, v[0], acc[0]), b.Select(take, p, acc[1])}
		},
		join: func(b *kernel.Builder, l, r []kernel.Value) []kernel.Value {
			// Positions as unsigned numbers plus one: "none" is 0.
			pl, pr := b.AddI(l[1], 1), b.AddI(r[1], 1)
			after := b.Cmp(kernel.ULt, pl, pr)
			even := b.Not(b.Or(strictly(b, l[0], r[0]), strictly(b, r[0], l[0]))) // equal numbers
			tie := after
			if !high {
				tie = b.Not(after)
			}
			take := b.Select(even, tie, strictly(b, l[0], r[0]))
			if in.Float() {
				nl, nr := b.Cmp(kernel.FNe, l[0], l[0]), b.Cmp(kernel.FNe, r[0], r[0])
				take = b.Select(b.Or(nl, nr), b.And(nr, b.Or(b.Not(nl), after)), take)
			}
			empty := b.Zero(at)
			take = b.And(b.Cmp(kernel.INe, pr, empty), b.Or(take, b.Cmp(kernel.IEq, pl, empty)))
			return []kernel.Value{b.Select(take, r[0], l[0]), b.Select(take, r[1], l[1])}
		},
		final: final,
		ways:  1,
		at:    at,
	}
}
