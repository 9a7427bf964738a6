package shaders

import (
	"fmt"
	"math/bits"

	"nxvk/graph"
	"nxvk/kernel"
)

// Scan plans cumulative_sum, cumulative_product, cumulative_max or cumulative_min of x along an axis,
// from the last element to the first when reverse. acc says how a sum of f32 gathers.
//
// Long rows are cut into chunks: each is reduced, the accumulators of a row's chunks are scanned, and
// each chunk is walked from what came before it. The order in which elements meet is a function of
// shapes, types and device class alone. Integers wrap. Floats are gathered in more precision than they
// have, and every result is rounded once: |error| ≤ 2^-24 Σ|xi| for a sum of f32. From a NaN on all
// results are NaN; of zeros -0 is the lesser.
func Scan(t kernel.Target, op graph.Op, x Operand, out graph.Spec, axis int, reverse bool, acc graph.Acc) (*Plan, error) {
	if err := checkOperand(string(op), x); err != nil {
		return nil, err
	}
	if axis < 0 || axis >= len(x.Shape) || !x.Shape.Equal(out.Shape) {
		return nil, fmt.Errorf("%s: axis %d of %v does not give %v", op, axis, x.Spec, out)
	}
	if err := needTypes(t, op, x.Type.Part(), out.Type.Part()); err != nil {
		return nil, err
	}
	s := &scan{t: t, name: string(op), x: x, out: out}
	if x.Type.Complex() || out.Type.Complex() {
		if op != graph.OpCumulativeProduct || x.Type != out.Type {
			return nil, &Unsupported{op, out.Type, "there is no kernel of complex numbers"}
		}
		if !t.F64 {
			return nil, &Unsupported{op, out.Type, "the device lacks f64, which products of pairs take"}
		}
		s.fold = complexProduct(out.Type.Part())
		s.pairs = true
		s.place(axis, reverse)
		return s.plan(), nil
	}
	switch op {
	case graph.OpCumulativeSum:
		s.fold = signedZeros(fromNegZero(sumFold(t, x.Type, out.Type, acc), out.Type), out.Type)
	case graph.OpCumulativeProduct:
		s.fold = signedZeros(productFold(t, x.Type, out.Type), out.Type)
	case graph.OpCumulativeMax, graph.OpCumulativeMin:
		if x.Type != out.Type {
			return nil, fmt.Errorf("%s: of %v cannot be %v", op, x.Type, out.Type)
		}
		s.fold = keyFold(x.Type, op == graph.OpCumulativeMax)
	default:
		return nil, fmt.Errorf("%s: not a cumulative operation", op)
	}
	s.place(axis, reverse)
	return s.plan(), nil
}

// scan is what the planner works on: rows of length n, at places that kept tells. Axes carry two strides:
// of the operand and of the result.
type scan struct {
	t        kernel.Target
	name     string
	x        Operand // seen in the direction of the scan
	out      graph.Spec
	outStart int // element of the result where point 0 of the first row is
	kept     []axis
	along    axis
	fold     fold
	pairs    bool // of complex numbers: strides and offsets are in units of their parts
	wide     bool
	reducing reduction // of the same rows, for the accumulators of chunks
}

// place lays operand and result out by kept axes and the axis of the scan, in its direction.
func (s *scan) place(a int, reverse bool) {
	in, out := append([]int(nil), stridesOf(s.x)...), s.out.Shape.Strides()
	n := s.x.Shape[a]
	shape := s.x.Shape
	if s.pairs {
		for k := range in {
			in[k], out[k] = 2*in[k], 2*out[k]
		}
	}
	s.x.Layout = graph.Layout{Offset: s.x.Layout.Offset, Strides: in}
	if s.pairs {
		s.x.Layout.Offset *= 2
	}
	if reverse {
		s.x.Layout.Offset += (n - 1) * in[a]
		s.outStart = (n - 1) * out[a]
		in[a], out[a] = -in[a], -out[a]
	}
	for k, d := range shape {
		if k != a {
			s.kept = append(s.kept, axis{d, []int{in[k], out[k]}})
		}
	}
	s.kept = mergeAxes(s.kept)
	s.along = axis{n, []int{in[a], out[a]}}
	if s.pairs {
		s.x.Spec = graph.Spec{Type: s.x.Type.Part(), Shape: append(append(graph.Shape{}, shape...), 2)}
		s.x.Layout.Strides = append(append([]int{}, in...), 1)
	}
	kept, reduced := splitAxes(s.x, []int{a})
	s.reducing = reduction{t: s.t, name: s.name + "_chunks", ins: []Operand{s.x}, out: s.out, kept: kept, reduced: reduced, fold: s.fold}
	lo, hi := reach(s.x)
	s.wide = hi-lo >= wideFrom || 2*s.out.Shape.Size() >= wideFrom
}

// scanForm is the shape of a scan's kernels.
type scanForm struct {
	lanes  int // invocations that share a chunk: 1, or a workgroup
	chunks int // of a row
	length int // positions a chunk, a multiple of 4 unless there is but one
}

// Tuning of scans.
const (
	scanOwn   = 4    // consecutive elements of an invocation in a tile
	scanShort = 4096 // positions that a processor's lane walks in about the time of two launches
)

func (s *scan) chooseForm() scanForm {
	rows, n := axesSize(s.kept), s.along.n
	f := scanForm{lanes: 1, chunks: 1, length: n}
	if s.pairs {
		if s.t.Class != kernel.CPU && n > 64 {
			f.lanes = groupSize(s.t)
		}
		return f
	}
	if s.t.Class == kernel.CPU {
		if n > scanShort && rows < 256 {
			f.chunks, f.length = split(n, max((256+rows-1)/rows, n/16384))
		}
		return f
	}
	inner := len(s.kept) > 0 && s.kept[len(s.kept)-1].stride[1] == 1 && s.kept[len(s.kept)-1].n >= 32
	want := 1 << 15 // lanes
	least := 64     // positions a chunk
	if !inner && n > 64 {
		f.lanes = groupSize(s.t)
		want, least = 1<<11, 4*f.lanes*scanOwn
	}
	if c := min((want+rows-1)/rows, n/least); c > 1 {
		f.chunks, f.length = split(n, c)
	}
	return f
}

func (s *scan) plan() *Plan {
	f := s.chooseForm()
	rows := axesSize(s.kept)
	if f.chunks == 1 {
		return &Plan{Launches: []Launch{s.walk(f)}}
	}
	p := &Plan{}
	for _, m := range s.fold.parts {
		p.Temps = append(p.Temps, uint64(rows*f.chunks*m.Size()))
	}
	sh := sharing{lanes: f.lanes, across: 1}
	p.Launches = []Launch{
		s.reducing.emit(&s.fold, source{wide: s.wide}, sink{f.chunks, f.length, scanTempSlot}, sh),
		s.carries(f),
		s.walk(f),
	}
	return p
}

// Slots of a scan: the operand, the result, the accumulators of chunks.
const (
	scanOutSlot  = 1
	scanTempSlot = 2
)

// fromNegZero makes a sum of floats start from -0, which is what leaves the first element as it is.
func fromNegZero(f fold, out graph.Type) fold {
	if !out.Float() {
		return f
	}
	ident := f.ident
	f.ident = func(b *kernel.Builder) []kernel.Value {
		acc := ident(b)
		acc[0] = b.Opaque(b.Un(kernel.FNeg, b.Zero(b.TypeOf(acc[0]))))
		return acc
	}
	return f
}

// signedZeros keeps the sign of a zero whose accumulator is a pair.
func signedZeros(f fold, out graph.Type) fold {
	if !out.Float() || len(f.parts) == 1 {
		return f
	}
	final := f.final
	f.final = func(b *kernel.Builder, acc []kernel.Value) kernel.Value {
		r := b.TypeOf(acc[0])
		whole := b.Cmp(kernel.FEq, acc[1], b.Zero(r))
		plain := Convert(b, CanonNaN(b, regType(r), acc[0]), regType(r), out)
		return b.Select(whole, plain, final(b, acc))
	}
	return f
}

// complexProduct multiplies complex numbers of the given parts, in f64. Its accumulator says whether it has an
// element yet: 1+0i would not leave an infinity as it is.
func complexProduct(part graph.Type) fold {
	const r = kernel.F64
	join := func(b *kernel.Builder, x, y []kernel.Value) []kernel.Value {
		re := b.Sub(b.Mul(x[0], y[0]), b.Mul(x[1], y[1]))
		im := b.Add(b.Mul(x[0], y[1]), b.Mul(x[1], y[0]))
		noX, noY := b.Cmp(kernel.IEq, x[2], b.I32(0)), b.Cmp(kernel.IEq, y[2], b.I32(0))
		pick := func(v, of, or kernel.Value) kernel.Value { return b.Select(noX, or, b.Select(noY, of, v)) }
		return []kernel.Value{pick(re, x[0], y[0]), pick(im, x[1], y[1]), b.Or(x[2], y[2])}
	}
	return fold{
		parts: []kernel.Mem{memOfReg(r), memOfReg(r), kernel.M32},
		ident: func(b *kernel.Builder) []kernel.Value {
			return []kernel.Value{b.ConstFloat(r, 1), b.Zero(r), b.I32(0)}
		},
		elem: func(b *kernel.Builder, vs []kernel.Value) []kernel.Value {
			return []kernel.Value{Convert(b, vs[0], part, regType(r)), Convert(b, vs[1], part, regType(r)), b.I32(1)}
		},
		step:  func(b *kernel.Builder, acc, v []kernel.Value, _ kernel.Value) []kernel.Value { return join(b, acc, v) },
		join:  join,
		final: func(b *kernel.Builder, acc []kernel.Value) kernel.Value { return floatOut(r, part)(b, acc) },
		ways:  1,
	}
}

// keyFold is the fold of running extremes: of order-preserving integers, so that it is the same in any order.
func keyFold(t graph.Type, max bool) fold {
	k := ordering{t, !max}
	f := plainFold(k.reg(),
		func(b *kernel.Builder) kernel.Value {
			if max {
				return b.ConstBits(k.reg(), k.lowest())
			}
			return b.ConstBits(k.reg(), k.highest())
		},
		func(b *kernel.Builder, x, y kernel.Value) kernel.Value {
			less := b.Cmp(k.less(), x, y)
			if max {
				return b.Select(less, y, x)
			}
			return b.Select(less, x, y)
		})
	f.elem = func(b *kernel.Builder, vs []kernel.Value) []kernel.Value { return []kernel.Value{k.key(b, vs[0])} }
	f.final = func(b *kernel.Builder, acc []kernel.Value) kernel.Value { return k.value(b, acc[0]) }
	return f
}

// ordering maps the elements of a type to integers whose order is theirs. NaNs become one number, above
// all others or below them; -0 lies just below 0.
type ordering struct {
	t        graph.Type
	nanFirst bool
}

// reg is the register type of keys: integers of the type's own register, or of a float's bits.
func (o ordering) reg() kernel.Type {
	if RegOf(o.t).Bits() == 64 {
		return kernel.I64
	}
	return kernel.I32
}

// less compares keys.
func (o ordering) less() kernel.Op {
	if o.t.Int() && !o.t.Signed() {
		return kernel.ULt
	}
	return kernel.SLt
}

func (o ordering) lowest() uint64 {
	if o.less() == kernel.ULt {
		return 0
	}
	return 1 << (o.reg().Bits() - 1)
}

func (o ordering) highest() uint64 {
	if o.less() == kernel.ULt {
		return ^uint64(0) >> (64 - o.reg().Bits())
	}
	return 1<<(o.reg().Bits()-1) - 1
}

// key maps a widened element.
func (o ordering) key(b *kernel.Builder, v kernel.Value) kernel.Value {
	if o.t.Int() {
		return v
	}
	r := o.reg()
	nan := o.highest()
	if o.nanFirst {
		nan = o.lowest()
	}
	u := b.BitsTo(r, v)
	return b.Select(isNaN(b, v), b.ConstBits(r, nan), o.flip(b, u))
}

// flip turns sign and magnitude into two's complement, with -0 as -1, and back.
func (o ordering) flip(b *kernel.Builder, u kernel.Value) kernel.Value {
	r := o.reg()
	sign := b.ShrSI(u, r.Bits()-1)
	return b.Xor(u, b.And(sign, b.ConstBits(r, 1<<(r.Bits()-1)-1)))
}

// value is the element of a key, ready for Narrow.
func (o ordering) value(b *kernel.Builder, k kernel.Value) kernel.Value {
	if o.t.Int() {
		return k
	}
	return CanonNaN(b, o.t, b.BitsTo(RegOf(o.t), o.flip(b, k)))
}

// quads reports whether four neighbours of operand and result can be moved at once, wherever a
// multiple of four is.
func (s *scan) quads(in *input) bool {
	if s.pairs || s.along.stride[1] != 1 || s.outStart != 0 || in.width(0, s.along, 0, s.kept) != 4 {
		return false
	}
	sum := 4
	for _, a := range s.kept {
		sum |= a.stride[1]
	}
	return bits.TrailingZeros(uint(sum)) == 2
}
