package shaders

import (
	"fmt"
	"math/bits"

	"nxvk/graph"
	"nxvk/kernel"
)

// Gather reads slices of x: the last axis of idx holds one index for each of axes, and the result has idx's other
// axes, then those of x that are not named. Indices that are out of range count as 0, and are flagged.
// Slots: x, idx, the result, the flag.
func Gather(t kernel.Target, x, idx Operand, out graph.Spec, axes []int) (*Plan, error) {
	lead := len(idx.Shape) - 1
	g := newGathering(graph.OpGather, t, x, idx, out)
	xs, is := stridesOf(x), stridesOf(idx)
	for k := range lead {
		g.from, g.index = append(g.from, 0), append(g.index, is[k])
	}
	for a, s := range xs {
		if !contains(axes, a) {
			g.from, g.index = append(g.from, s), append(g.index, 0)
		}
	}
	for c, a := range axes {
		g.parts = append(g.parts, indexPart{at: c * is[lead], stride: xs[a], extent: x.Shape[a]})
	}
	return g.plan(axes)
}

// Take reads x at indices along one axis: idx's axes take the place of that axis. Slots and indices are
// those of Gather.
func Take(t kernel.Target, x, idx Operand, out graph.Spec, axis int) (*Plan, error) {
	g := newGathering(graph.OpTake, t, x, idx, out)
	xs, is := stridesOf(x), stridesOf(idx)
	for a, s := range xs {
		if a != axis {
			g.from, g.index = append(g.from, s), append(g.index, 0)
			continue
		}
		g.from, g.index = append(g.from, make([]int, len(is))...), append(g.index, is...)
	}
	g.parts = []indexPart{{stride: xs[axis], extent: x.Shape[axis]}}
	return g.plan([]int{axis})
}

// TakeAlongAxis reads x at indices along one axis, which idx holds for each place of the result. Slots and
// indices are those of Gather.
func TakeAlongAxis(t kernel.Target, x, idx Operand, out graph.Spec, axis int) (*Plan, error) {
	g := newGathering(graph.OpTakeAlongAxis, t, x, idx, out)
	g.from = append(g.from, stridesOf(x)...)
	g.from[axis] = 0
	g.index = stridesOf(idx)
	g.parts = []indexPart{{stride: stridesOf(x)[axis], extent: x.Shape[axis]}}
	return g.plan([]int{axis})
}

func contains(axes []int, a int) bool {
	for _, b := range axes {
		if a == b {
			return true
		}
	}
	return false
}

// indexPart is one index of those that lead to an element.
type indexPart struct {
	at     int // where it lies, from the place of the first, in elements of the index tensor
	stride int // what it is multiplied by: the stride of the axis that it names
	extent int // of that axis
}

// gathering is result[i] = x[i·from + Σ index[i·index + part.at]·part.stride], i the place in the result.
type gathering struct {
	op          graph.Op
	t           kernel.Target
	x, idx      Operand
	out         graph.Spec
	from, index []int // strides by axis of the result
	parts       []indexPart
}

func newGathering(op graph.Op, t kernel.Target, x, idx Operand, out graph.Spec) *gathering {
	return &gathering{op: op, t: t, x: x, idx: idx, out: out}
}

// block is how many neighbours a kernel moves in one go, and as what: vec elements of type mem.
type block struct {
	n   int // elements of the tensor
	mem kernel.Mem
	vec int
}

// blockOf is a block of n elements of size bytes each, at most 32 bytes.
func blockOf(t kernel.Target, n, size int) block {
	bytes := n * size
	unit := min(bytes, 8)
	if unit == 8 && !t.I64 {
		unit = 4
	}
	mem := map[int]kernel.Mem{1: kernel.M8, 2: kernel.M16, 4: kernel.M32, 8: kernel.M64}[unit]
	return block{n: n, mem: mem, vec: bytes / unit}
}

// blockBytes is how much a lane moves at most in one go.
func blockBytes(t kernel.Target) int {
	if t.Class == kernel.CPU && t.I64 {
		return 32
	}
	return 16
}

// block is the largest that neighbours of the result allow: along the last axis x is contiguous, the index
// stays, and wherever a block begins is a multiple of its size.
func (g *gathering) block() block {
	size := g.x.Type.Size()
	last := len(g.out.Shape) - 1
	for last > 0 && g.out.Shape[last] == 1 {
		last--
	}
	n := 1
	if last >= 0 && g.from[last] == 1 && g.index[last] == 0 {
		lo, _ := reach(g.x)
		sum := lo | g.x.Layout.Offset | g.out.Shape[last]
		for a, s := range g.from {
			if a != last && g.out.Shape[a] > 1 {
				sum |= s
			}
		}
		for _, p := range g.parts {
			sum |= p.stride
		}
		n = min(1<<bits.TrailingZeros(uint(sum)|1<<10), max(1, blockBytes(g.t)/size))
	}
	return blockOf(g.t, n, size)
}

// ranged is an index of register type, checked: whether it is in [0, extent), and the index, as r, or 0.
func ranged(b *kernel.Builder, v kernel.Value, typ graph.Type, extent kernel.Value, r kernel.Type) (ok, at kernel.Value) {
	if b.TypeOf(extent) == kernel.I64 {
		v = ResizeInt(b, v, typ, kernel.I64)
	}
	// As an unsigned number a negative one is large.
	ok = b.Cmp(kernel.ULt, v, extent)
	return ok, ResizeInt(b, b.Select(ok, v, b.Zero(b.TypeOf(v))), graph.U32, r)
}

// indexReg is the register type in which an index of typ is compared with an extent.
func indexReg(typ graph.Type, extent int) kernel.Type {
	if RegOf(typ) == kernel.I64 || extent >= 1<<31 {
		return kernel.I64
	}
	return kernel.I32
}

func (g *gathering) plan(axes []int) (*Plan, error) {
	if err := needTypes(g.t, g.op, g.x.Type, g.idx.Type); err != nil {
		return nil, err
	}
	if g.x.Type != g.out.Type {
		return nil, fmt.Errorf("%s: %v cannot be moved into %v", g.op, g.x.Type, g.out.Type)
	}
	k := g.block()
	size := g.x.Type.Size()
	shape := append(graph.Shape(nil), g.out.Shape...)
	src := graph.Layout{Offset: g.x.Layout.Offset / k.n, Strides: make([]int, len(shape))}
	for a, s := range g.from {
		src.Strides[a] = s / k.n
	}
	if k.n > 1 {
		last := len(shape) - 1
		for shape[last] == 1 {
			last--
		}
		shape[last] /= k.n
		src.Strides[last] = 1
	}
	im := Merge(shape, src, graph.Layout{Offset: g.idx.Layout.Offset, Strides: g.index})
	lo, hi := reach(g.x)
	ilo, ihi := reach(g.idx)
	im.Wide = im.Wide || hi-lo >= wideFrom || ihi-ilo >= wideFrom

	tune := flatTuning(g.t)
	m := newMaker(string(g.op), g.t, tune.local)
	r := im.IndexType()
	count := m.scalar("n", r, immInt(im.Count))
	from := m.raw("x", k, 0, uint64(lo*size), uint64(hi*size), false)
	to := m.raw("out", k, 2, 0, uint64(g.out.Shape.Size()*size), true)
	isize := g.idx.Type.Size()
	m.args = append(m.args, Arg{Kind: Addr, Slot: 1, Offset: uint64(ilo * isize)})
	m.access = append(m.access, Access{Slot: 1, Lo: uint64(ilo * isize), Hi: uint64(ihi * isize)})
	index := m.Pointer("index", MemOf(g.idx.Type), false, 0)
	flag := m.flag(3)
	base := m.scalar("base", r, immInt(im.Maps[0].Lo-lo/k.n))
	ibase := m.scalar("index.base", r, immInt(im.Maps[1].Lo-ilo))
	type part struct{ at, stride, extent kernel.Value }
	parts := make([]part, len(g.parts))
	for c, p := range g.parts {
		parts[c].stride = m.scalar(fmt.Sprintf("stride%d", c), r, immInt(p.stride/k.n))
		parts[c].extent = m.scalar(fmt.Sprintf("extent%d", c), indexReg(g.idx.Type, p.extent), immInt(p.extent))
		if c > 0 {
			parts[c].at = m.scalar(fmt.Sprintf("at%d", c), r, immInt(p.at))
		}
	}
	map2 := m.index(im)
	GridStride(m.Builder, tune.local, count, func(i kernel.Value) {
		offs := map2.Offsets(i)
		at, iat := m.Add(offs[0], base), m.Add(offs[1], ibase)
		fine := m.ConstBool(true)
		for _, p := range parts {
			where := iat
			if p.at != 0 {
				where = m.Add(iat, p.at)
			}
			v := Widen(m.Builder, g.idx.Type, m.Load(index, where))
			ok, n := ranged(m.Builder, v, g.idx.Type, p.extent, r)
			fine = m.And(fine, ok)
			at = m.Add(at, m.Mul(n, p.stride))
		}
		m.If(m.Not(fine), func() { m.AtomicAdd(flag, m.I32(0), m.I32(1)) }, nil)
		k.move(m.Builder, from, at, to, i)
	})
	grid := Groups(im.Count, tune.local, tune.units)
	grid[0] = min(grid[0], uint32(tune.most))
	return &Plan{
		Launches: []Launch{m.launch(grid)},
		Temps:    []uint64{4},
		Bounds:   []Bounds{{Flag: 3, Index: 1, Axes: axes, Shape: g.x.Shape}},
	}, nil
}

// raw declares a pointer to blocks of a slot's bytes [lo, hi), from lo on.
func (m *maker) raw(name string, k block, slot int, lo, hi uint64, write bool) kernel.Ptr {
	m.args = append(m.args, Arg{Kind: Addr, Slot: slot, Offset: lo})
	m.access = append(m.access, Access{Slot: slot, Lo: lo, Hi: hi, Write: write})
	return m.Pointer(name, k.mem, write, log2(k.vec*k.mem.Size()))
}

// flag declares the pointer to a flag of Bounds.
func (m *maker) flag(slot int) kernel.Ptr {
	m.args = append(m.args, Arg{Kind: Addr, Slot: slot})
	m.access = append(m.access, Access{Slot: slot, Hi: 4, Write: true})
	return m.Pointer("flag", kernel.M32, true, 0)
}

// load reads block number at.
func (k block) load(b *kernel.Builder, p kernel.Ptr, at kernel.Value) []kernel.Value {
	if k.vec == 1 {
		return []kernel.Value{b.Load(p, at)}
	}
	return b.LoadV(p, at, k.vec)
}

// store writes block number at.
func (k block) store(b *kernel.Builder, p kernel.Ptr, at kernel.Value, vs []kernel.Value) {
	if k.vec == 1 {
		b.Store(p, at, vs[0])
		return
	}
	b.StoreV(p, at, vs)
}

// move copies block number from of src to block number at of dst.
func (k block) move(b *kernel.Builder, src kernel.Ptr, from kernel.Value, dst kernel.Ptr, at kernel.Value) {
	k.store(b, dst, at, k.load(b, src, from))
}
