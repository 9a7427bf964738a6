// Package kerneltest makes random kernels, and compares what they leave in memory, for tests that hold
// one way of running a kernel to another. It must not know SPIR-V or Vulkan.
//
// Start reading at random.go (Random).
package kerneltest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"nxvk/kernel"
)

// Case is a kernel with all that one run of it needs.
type Case struct {
	Kernel *kernel.Kernel
	Grid   [3]uint32
	Args   []kernel.Bind
}

// Clone copies a case's memory, so that it can be run twice.
func (c Case) Clone() []kernel.Bind {
	args := append([]kernel.Bind(nil), c.Args...)
	for i, a := range args {
		args[i].Buf = append([]byte(nil), a.Buf...)
	}
	return args
}

// slots is how many elements of each written argument belong to one invocation.
const slots = 8

// Random makes a valid kernel of about size operations for a device t, with inputs. What it does is
// defined: divisors, shift counts and conversions are guarded, NaN never becomes an integer, nothing
// races, and every conversion that narrows is hidden by Opaque. Division and square root occur only
// where the device's are correctly rounded. So it must leave the same bytes on every device that t
// describes, but for the payload of a NaN. Where f32 subnormals are flushed, none gets into arithmetic:
// whether x*1 flushes x is the compiler's choice.
func Random(rng *rand.Rand, t kernel.Target, size int) Case {
	local := [...][3]uint32{{1, 1, 1}, {8, 1, 1}, {5, 3, 1}, {16, 2, 1}, {64, 1, 1}, {4, 4, 4}}[rng.IntN(6)]
	grid := [...][3]uint32{{1, 1, 1}, {3, 1, 1}, {2, 3, 2}}[rng.IntN(3)]
	b := kernel.NewBuilder("random", t, local)
	g := &generator{Rand: rng, b: b, t: t, lanes: int(local[0] * local[1] * local[2])}
	g.groups = int(grid[0] * grid[1] * grid[2])
	g.arguments()
	g.invocation(local, grid)
	g.statements(size, 0, true)
	g.finish()
	return Case{b.Build(), grid, g.binds}
}

type generator struct {
	*rand.Rand
	b      *kernel.Builder
	t      kernel.Target
	lanes  int
	groups int
	lane   kernel.Value // invocation of the workgroup
	id     kernel.Value // invocation of the dispatch
	in     []kernel.Ptr
	out    []kernel.Ptr
	binds  []kernel.Bind
	pool   [kernel.F64 + 1][]kernel.Value
	vars   []kernel.Var
	shared []kernel.Shared
}

func (g *generator) types() []kernel.Type {
	ts := []kernel.Type{kernel.Bool, kernel.I32, kernel.F32}
	if g.t.I64 {
		ts = append(ts, kernel.I64)
	}
	if g.t.F64 {
		ts = append(ts, kernel.F64)
	}
	return ts
}

func (g *generator) has(m kernel.Mem) bool {
	switch m {
	case kernel.M64:
		return g.t.I64
	case kernel.MF64:
		return g.t.F64
	}
	return true
}

// arguments adds one read and one written pointer of each memory type, and some scalars.
func (g *generator) arguments() {
	n := g.lanes * g.groups
	for m := kernel.M8; m <= kernel.MF64; m++ {
		if !g.has(m) {
			continue
		}
		g.in = append(g.in, g.b.Pointer("in_"+m.String(), m, false, 5))
		g.binds = append(g.binds, kernel.Bind{Buf: g.bytes(m, n*4)})
		g.out = append(g.out, g.b.Pointer("out_"+m.String(), m, true, 5))
		g.binds = append(g.binds, kernel.Bind{Buf: g.bytes(m, n*slots)})
		if m >= kernel.M32 && g.lanes*m.Size() <= 1024 {
			g.shared = append(g.shared, g.b.SharedArray(m, g.lanes))
		}
	}
	for _, t := range g.types()[1:] {
		g.add(g.b.ScalarArg("s_"+t.String(), t))
		g.binds = append(g.binds, kernel.Bind{Bits: g.Bits(t)})
	}
}

// bytes makes n elements of m.
func (g *generator) bytes(m kernel.Mem, n int) []byte {
	buf := make([]byte, 0, n*m.Size())
	for range n {
		switch bits := g.Bits(m.Reg()); m.Size() {
		case 1:
			buf = append(buf, byte(bits))
		case 2:
			buf = binary.LittleEndian.AppendUint16(buf, uint16(bits))
		case 4:
			buf = binary.LittleEndian.AppendUint32(buf, uint32(bits))
		default:
			buf = binary.LittleEndian.AppendUint64(buf, bits)
		}
	}
	return buf
}

// Bits makes a random value of t: often small, often hard.
func (g *generator) Bits(t kernel.Type) uint64 {
	switch t {
	case kernel.Bool:
		return uint64(g.IntN(2))
	case kernel.I32:
		return uint64(uint32(g.integer()))
	case kernel.I64:
		return uint64(g.integer())
	case kernel.F32:
		bits := uint64(math.Float32bits(float32(g.float(kernel.F32))))
		if g.t.Num.FlushF32 && bits&0x7f800000 == 0 {
			bits &= 1 << 31
		}
		return bits
	}
	return math.Float64bits(g.float(kernel.F64))
}

// flush puts a zero in the place of an f32 subnormal, where the device may do so.
func (g *generator) flush(v kernel.Value) kernel.Value {
	b := g.b
	if b.TypeOf(v) != kernel.F32 || !g.t.Num.FlushF32 {
		return v
	}
	bits := b.BitsTo(kernel.I32, v)
	tiny := b.Cmp(kernel.IEq, b.And(bits, b.I32(0x7f800000)), b.I32(0))
	return b.Select(tiny, b.BitsTo(kernel.F32, b.And(bits, b.ConstInt(kernel.I32, 1<<31))), v)
}

func (g *generator) integer() int64 {
	switch g.IntN(4) {
	case 0:
		return int64(g.IntN(20) - 10)
	case 1:
		return 1<<g.IntN(64) - int64(g.IntN(3))
	}
	return int64(g.Uint64())
}

func (g *generator) float(t kernel.Type) float64 {
	switch g.IntN(8) {
	case 0:
		return float64(g.IntN(20)-10) / 2
	case 1:
		return [...]float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 0x1p-149, 0x1p-126, -0x1.fp-130}[g.IntN(8)]
	case 2:
		if t == kernel.F32 {
			return float64(math.Float32frombits(g.Uint32()))
		}
		return math.Float64frombits(g.Uint64())
	}
	return g.NormFloat64() * math.Ldexp(1, g.IntN(40)-20)
}

// invocation computes the ids, and starts the pools.
func (g *generator) invocation(local, grid [3]uint32) {
	b := g.b
	g.lane = b.Add(b.BuiltinValue(kernel.LocalX), b.MulI(b.Add(b.BuiltinValue(kernel.LocalY),
		b.MulI(b.BuiltinValue(kernel.LocalZ), int(local[1]))), int(local[0])))
	group := b.Add(b.BuiltinValue(kernel.GroupX), b.Mul(b.BuiltinValue(kernel.GroupsX),
		b.Add(b.BuiltinValue(kernel.GroupY), b.Mul(b.BuiltinValue(kernel.GroupZ), b.BuiltinValue(kernel.GroupsY)))))
	g.id = b.Add(g.lane, b.MulI(group, g.lanes))
	g.add(g.lane)
	g.add(g.id)
	for _, p := range g.in {
		g.add(g.load(p, g.id))
	}
	g.add(b.Cmp(kernel.ULt, g.lane, b.I32(g.lanes/2)))
	for _, t := range g.types() {
		g.vars = append(g.vars, b.NewVar(g.pick(t)))
	}
}

func (g *generator) load(p kernel.Ptr, i kernel.Value) kernel.Value { return g.flush(g.b.Load(p, i)) }

func (g *generator) add(v kernel.Value) {
	t := g.b.TypeOf(v)
	g.pool[t] = append(g.pool[t], v)
}

// pick takes a value in scope, a recent one as a rule, or a constant.
func (g *generator) pick(t kernel.Type) kernel.Value {
	pool := g.pool[t]
	if len(pool) == 0 || g.IntN(10) == 0 {
		return g.b.ConstBits(t, g.Bits(t))
	}
	if g.IntN(3) > 0 {
		pool = pool[max(0, len(pool)-4):]
	}
	return pool[g.IntN(len(pool))]
}

func (g *generator) anyType() kernel.Type { ts := g.types(); return ts[g.IntN(len(ts))] }

func (g *generator) intType() kernel.Type {
	if g.t.I64 && g.IntN(2) == 0 {
		return kernel.I64
	}
	return kernel.I32
}

func (g *generator) floatType() kernel.Type {
	if g.t.F64 && g.IntN(2) == 0 {
		return kernel.F64
	}
	return kernel.F32
}

// statements emits n operations. uniform: all of the workgroup is here.
func (g *generator) statements(n, depth int, uniform bool) {
	for n > 0 {
		kind := g.IntN(20)
		switch {
		case kind < 2 && depth < 3:
			inner := g.IntN(n)/2 + 1
			g.branch(inner, depth)
			n -= inner
		case kind < 3 && depth < 3:
			inner := g.IntN(n)/2 + 1
			g.loop(inner, depth, uniform)
			n -= inner
		case kind < 4 && uniform && len(g.shared) > 0:
			g.exchange()
		case kind < 5:
			v := g.vars[g.IntN(len(g.vars))]
			g.b.Set(v, g.pick(v.Type))
		case kind < 7:
			g.add(g.b.Get(g.vars[g.IntN(len(g.vars))]))
		case kind < 9:
			g.memory()
		default:
			g.add(g.operation())
		}
		n--
	}
}

// scoped runs f and forgets the values that it defined.
func (g *generator) scoped(f func()) {
	saved := g.pool
	f()
	g.pool = saved
}

func (g *generator) branch(n, depth int) {
	c := g.pick(kernel.Bool)
	var els func()
	if g.IntN(2) == 0 {
		els = func() { g.scoped(func() { g.statements(n/2, depth+1, false) }) }
	}
	g.b.If(c, func() { g.scoped(func() { g.statements(n-n/2, depth+1, false) }) }, els)
}

// loop runs a few times: as often for all (then a barrier may stand in it), or as often as the lane says.
func (g *generator) loop(n, depth int, uniform bool) {
	b := g.b
	trips := b.I32(g.IntN(4))
	same := uniform && g.IntN(2) == 0
	if !same {
		trips = b.And(g.pick(kernel.I32), b.I32(3))
	}
	b.For(b.I32(0), trips, b.I32(1), func(i kernel.Value) {
		g.scoped(func() {
			g.add(i)
			g.statements(n/2, depth+1, same)
			if !same {
				if g.IntN(2) == 0 {
					b.If(g.pick(kernel.Bool), func() { b.BreakIf(g.pick(kernel.Bool)) }, nil)
				} else {
					b.BreakIf(g.pick(kernel.Bool))
				}
			}
			g.statements(n-n/2, depth+1, same)
		})
	})
}

// exchange passes a value to another invocation of the workgroup.
func (g *generator) exchange() {
	b, s := g.b, g.shared[g.IntN(len(g.shared))]
	b.SStore(s, g.lane, g.pick(s.Mem.Reg()))
	b.Barrier()
	g.add(b.SLoad(s, b.Bin(kernel.URem, b.AddI(g.lane, g.IntN(g.lanes)), b.I32(g.lanes))))
	b.Barrier()
}

// memory reads anywhere in an input, or writes or reads back a slot of this invocation.
func (g *generator) memory() {
	b := g.b
	index := func(i kernel.Value) kernel.Value {
		if g.t.I64 && g.IntN(3) == 0 {
			return b.Conv(kernel.ZExt, kernel.I64, i)
		}
		return i
	}
	p := g.in[g.IntN(len(g.in))]
	q := g.out[g.IntN(len(g.out))]
	n := 2 << g.IntN(2)
	slot := func(n int) kernel.Value { return index(b.AddI(b.MulI(g.id, slots/n), g.IntN(slots/n))) }
	elems := g.lanes * g.groups * 4
	switch g.IntN(5) {
	case 0:
		g.add(g.load(p, index(b.Bin(kernel.URem, g.pick(kernel.I32), b.I32(elems)))))
	case 1:
		for _, v := range b.LoadV(p, index(b.Bin(kernel.URem, g.pick(kernel.I32), b.I32(elems/n))), n) {
			g.add(g.flush(v))
		}
	case 2:
		b.Store(q, slot(1), g.pick(q.Mem.Reg()))
	case 3:
		vs := make([]kernel.Value, n)
		for j := range vs {
			vs[j] = g.pick(q.Mem.Reg())
		}
		b.StoreV(q, slot(n), vs)
	case 4:
		g.add(g.load(q, slot(1)))
	}
}

// finish stores the youngest values of each type, so that all that was computed matters.
func (g *generator) finish() {
	b := g.b
	for _, v := range g.vars {
		g.add(b.Get(v))
	}
	for _, p := range g.out {
		t := p.Mem.Reg()
		for j := range slots / 2 {
			v := g.pick(t)
			if t == kernel.I32 && j == 0 {
				v = b.Select(g.pick(kernel.Bool), v, b.I32(77))
			}
			b.Store(p, b.AddI(b.MulI(g.id, slots), j*2), v)
		}
	}
}
