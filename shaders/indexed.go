package shaders

import (
	"fmt"
	"math"

	"nxvk/graph"
	"nxvk/kernel"
)

// IndexedAdd adds slices of u to those of x that idx names, as Gather reads it. Updates of one slice are summed in their
// order (where there are many, on a GPU, in an order that their number and the indices fix), then added; integers
// wrap, floats are gathered in more precision than they have and rounded once.
// Updates at indices that are out of range are left out, and flagged. Slots: x, idx, u, the result, the flag.
func IndexedAdd(t kernel.Target, x, idx, u Operand, out graph.Spec, axes []int) (*Plan, error) {
	return newIndexed(t, graph.OpIndexedAdd, x, idx, u, out, axes).plan()
}

// IndexedPut lays slices of u over those of x that idx names: the last update of a slice stays. Slots and
// indices are those of IndexedAdd.
func IndexedPut(t kernel.Target, x, idx, u Operand, out graph.Spec, axes []int) (*Plan, error) {
	return newIndexed(t, graph.OpIndexedPut, x, idx, u, out, axes).plan()
}

// Slots of an indexed operation.
const (
	indexedX = iota
	indexedIdx
	indexedU
	indexedOut
	indexedFlag
	indexedKeys  // the number of each update's slice, or all ones
	indexedOrder // the updates, sorted by slice and stable
	indexedMore  // what the sort needs
)

// pairwiseUpdates is up to how many updates each looks at all others to find those of its own slice; more are
// sorted.
const pairwiseUpdates = 16

// indexed is an update of slices. Nothing in it depends on which lane comes first: each slice that is named has one
// owner, an update of its own, and the owner takes the others in order.
type indexed struct {
	t         kernel.Target
	op        graph.Op
	x, idx, u Operand
	out       graph.Spec
	axes      []int

	updates  int
	targets  graph.Shape    // extents of the axes that indices name
	lead     graph.Shape    // of the updates
	rest     graph.Shape    // of a slice
	atTarget []graph.Layout // of slices in the result, and in x
	inSlice  []graph.Layout // of elements in the result, in x, and in u
	key      graph.Type
	partSlot int // of the sums of parts
}

// A GPU takes long for the updates of one slice if a lane takes all of them, one after another. So, where there are many,
// the sorted updates are cut into parts of partLength: lanes sum what each part has of a slice, then the owner joins
// the parts.
const (
	partLength = 64
	partsFrom  = 512
)

func (d *indexed) inParts() bool {
	return d.op == graph.OpIndexedAdd && d.t.Class != kernel.CPU && d.updates > partsFrom
}

// application is what a launch of apply does.
type application uint8

const (
	inOne application = iota
	gatherParts
	joinParts
)

func newIndexed(t kernel.Target, op graph.Op, x, idx, u Operand, out graph.Spec, axes []int) *indexed {
	d := &indexed{t: t, op: op, x: x, idx: idx, u: u, out: out, axes: axes}
	last := len(idx.Shape) - 1
	d.lead = idx.Shape[:last]
	d.updates = d.lead.Size()
	d.atTarget, d.inSlice = make([]graph.Layout, 2), make([]graph.Layout, 3)
	for i, strides := range [][]int{out.Shape.Strides(), stridesOf(x)} {
		for _, a := range axes {
			d.atTarget[i].Strides = append(d.atTarget[i].Strides, strides[a])
		}
		for a, s := range strides {
			if !contains(axes, a) {
				d.inSlice[i].Strides = append(d.inSlice[i].Strides, s)
			}
		}
	}
	for _, a := range axes {
		d.targets = append(d.targets, x.Shape[a])
	}
	for a, n := range x.Shape {
		if !contains(axes, a) {
			d.rest = append(d.rest, n)
		}
	}
	d.inSlice[2].Strides = stridesOf(u)[last:]
	switch n := d.targets.Size(); {
	case n <= math.MaxUint8 && t.Mem8:
		d.key = graph.U8
	case n <= math.MaxUint16 && t.Mem16:
		d.key = graph.U16
	case n <= math.MaxUint32:
		d.key = graph.U32
	default:
		d.key = graph.U64
	}
	return d
}

func (d *indexed) plan() (*Plan, error) {
	if err := needTypes(d.t, d.op, d.x.Type, d.idx.Type, d.u.Type, d.out.Type, d.key); err != nil {
		return nil, err
	}
	if d.out.Type.Complex() && (d.op == graph.OpIndexedAdd || d.u.Type != d.out.Type) {
		return nil, &Unsupported{d.op, d.out.Type, "complex numbers are taken in parts"}
	}
	if d.t.Num.ShortLoops && d.op == graph.OpIndexedAdd && d.updates > loopRounds/4 {
		return nil, &Unsupported{d.op, d.out.Type, fmt.Sprintf("%d updates may be of one slice, and this device goes round loops %d times", d.updates, loopRounds)}
	}
	p, err := Copy(d.t, Leaf{Operand: Operand{Spec: d.x.Spec, Layout: graph.Layout{Offset: d.x.Layout.Offset, Strides: stridesOf(d.x)}}}, d.out)
	if err != nil {
		return nil, err
	}
	if len(p.Temps)+len(p.Consts) > 0 {
		return nil, fmt.Errorf("%s: a copy that takes temporaries", d.op)
	}
	p.move(func(slot int) int {
		if slot == 1 {
			return indexedOut
		}
		return slot
	})
	p.Temps = []uint64{4, uint64(d.updates * d.key.Size())}
	p.Bounds = []Bounds{{Flag: indexedFlag, Index: indexedIdx, Axes: d.axes, Shape: d.x.Shape}}
	p.Launches = append(p.Launches, d.keys())
	if d.updates > pairwiseUpdates {
		keys := graph.Spec{Type: d.key, Shape: graph.Shape{d.updates}}
		sort, err := ArgSort(d.t, Operand{Spec: keys, Layout: graph.Contiguous(keys.Shape)}, graph.Spec{Type: d.orderType(), Shape: keys.Shape}, 0, false)
		if err != nil {
			return nil, err
		}
		if len(sort.Consts) > 0 {
			return nil, fmt.Errorf("%s: a sort that takes tables", d.op)
		}
		sort.move(func(slot int) int {
			switch slot {
			case 0:
				return indexedKeys
			case 1:
				return indexedOrder
			}
			return slot - 2 + indexedMore
		})
		p.Temps = append(append(p.Temps, uint64(d.updates*d.orderType().Size())), sort.Temps...)
		p.Launches = append(p.Launches, sort.Launches...)
	}
	if !d.inParts() {
		p.Launches = append(p.Launches, d.apply(inOne))
		return p, nil
	}
	f, _ := d.fold()
	d.partSlot = 4 + len(p.Temps)
	for _, mem := range f.parts {
		p.Temps = append(p.Temps, uint64(d.u.Shape.Size()*mem.Size()))
	}
	p.Launches = append(p.Launches, d.apply(gatherParts), d.apply(joinParts))
	return p, nil
}

func (d *indexed) orderType() graph.Type {
	if d.updates >= wideFrom {
		return graph.U64
	}
	return graph.U32
}

// wide reports whether offsets take 64 bits.
func (d *indexed) wide() bool {
	for _, x := range []Operand{d.x, d.idx, d.u} {
		if lo, hi := reach(x); hi-lo >= wideFrom {
			return true
		}
	}
	return d.out.Shape.Size() >= wideFrom || d.u.Shape.Size() >= wideFrom
}

// keys is the kernel that numbers the slices of updates.
func (d *indexed) keys() Launch {
	tune := flatTuning(d.t)
	m := newMaker(string(d.op)+"_keys", d.t, tune.local)
	last := len(d.idx.Shape) - 1
	strides := stridesOf(d.idx)
	im := Merge(d.lead, graph.Layout{Offset: d.idx.Layout.Offset, Strides: strides[:last]})
	im.Wide = im.Wide || d.wide()
	r := im.IndexType()
	n := m.scalar("n", r, immInt(d.updates))
	lo, hi := reach(d.idx)
	size := d.idx.Type.Size()
	m.args = append(m.args, Arg{Kind: Addr, Slot: indexedIdx, Offset: uint64(lo * size)})
	m.access = append(m.access, Access{Slot: indexedIdx, Lo: uint64(lo * size), Hi: uint64(hi * size)})
	index := m.Pointer("index", MemOf(d.idx.Type), false, 0)
	base := m.scalar("base", r, immInt(im.Maps[0].Lo-lo))
	to := m.dense("keys", d.key, indexedKeys, d.updates, true)
	flag := m.flag(indexedFlag)
	type part struct{ at, stride, extent kernel.Value }
	parts := make([]part, len(d.axes))
	keyReg := RegOf(d.key)
	for c, a := range d.axes {
		parts[c] = part{
			m.scalar(fmt.Sprintf("at%d", c), r, immInt(c*strides[last])),
			m.scalar(fmt.Sprintf("stride%d", c), keyReg, immInt(d.targets.Strides()[c])),
			m.scalar(fmt.Sprintf("extent%d", c), indexReg(d.idx.Type, d.x.Shape[a]), immInt(d.x.Shape[a])),
		}
	}
	x := m.index(im)
	GridStride(m.Builder, tune.local, n, func(i kernel.Value) {
		at := m.Add(x.Offsets(i)[0], base)
		fine, key := m.ConstBool(true), m.Zero(keyReg)
		for _, p := range parts {
			v := Widen(m.Builder, d.idx.Type, m.Load(index, m.Add(at, p.at)))
			ok, n := ranged(m.Builder, v, d.idx.Type, p.extent, keyReg)
			fine = m.And(fine, ok)
			key = m.Add(key, m.Mul(n, p.stride))
		}
		m.If(m.Not(fine), func() { m.AtomicAdd(flag, m.I32(0), m.I32(1)) }, nil)
		m.Store(to, i, m.Select(fine, key, m.ConstInt(keyReg, -1)))
	})
	return m.launch(flatGrid(tune, d.updates))
}

// flatGrid is the grid of a GridStride over n.
func flatGrid(tune shape, n int) [3]uint32 {
	grid := Groups(n, tune.local, tune.units)
	grid[0] = min(grid[0], uint32(tune.most))
	return grid
}

// dense declares a pointer to the n elements of a slot, from its start.
func (m *maker) dense(name string, t graph.Type, slot, n int, write bool) kernel.Ptr {
	m.args = append(m.args, Arg{Kind: Addr, Slot: slot})
	m.access = append(m.access, Access{Slot: slot, Hi: uint64(n * t.Size()), Write: write})
	return m.Pointer(name, MemOf(t), write, 0)
}

// updates is how the kernel that applies updates finds those of one slice.
type updates struct {
	m     *maker
	d     *indexed
	keys  kernel.Ptr
	order kernel.Ptr
	n     kernel.Value
	r     kernel.Type
}

// at is the update at a place in the order.
func (u *updates) at(p kernel.Value) kernel.Value {
	if u.d.updates <= pairwiseUpdates {
		return p
	}
	v := u.m.Load(u.order, p)
	if u.m.TypeOf(v) != u.r {
		v = u.m.Conv(kernel.ZExt, u.r, v)
	}
	return v
}

// key is the slice of an update.
func (u *updates) key(i kernel.Value) kernel.Value { return u.m.Load(u.keys, i) }

// owner reports whether the update at p is the one that stands for its slice, key: of those that are added the first,
// of those that are put the last.
func (u *updates) owner(p, key kernel.Value) kernel.Value {
	m := u.m
	none := uint64(1)<<(8*u.d.key.Size()-1)<<1 - 1
	fine := m.NewVar(m.Cmp(kernel.INe, key, m.ConstBits(RegOf(u.d.key), none)))
	first := u.d.op == graph.OpIndexedAdd
	one := m.ConstInt(u.r, 1)
	if u.d.updates <= pairwiseUpdates {
		from, to := m.Zero(u.r), p
		if !first {
			from, to = m.Add(p, one), u.n
		}
		m.For(from, to, one, func(j kernel.Value) {
			m.Set(fine, m.And(m.Get(fine), m.Cmp(kernel.INe, u.key(j), key)))
		})
		return m.Get(fine)
	}
	edge, next := m.Zero(u.r), m.Sub(p, one)
	if !first {
		edge, next = m.Sub(u.n, one), m.Add(p, one)
	}
	m.If(m.Cmp(kernel.INe, p, edge), func() {
		m.Set(fine, m.And(m.Get(fine), m.Cmp(kernel.INe, u.key(u.at(next)), key)))
	}, nil)
	return m.Get(fine)
}

// each runs body for the updates of slice key from that at p on, in order.
func (u *updates) each(p, key kernel.Value, body func(i kernel.Value)) {
	m := u.m
	if u.d.updates <= pairwiseUpdates {
		m.For(p, u.n, m.ConstInt(u.r, 1), func(j kernel.Value) {
			m.If(m.Cmp(kernel.IEq, u.key(j), key), func() { body(j) }, nil)
		})
		return
	}
	at := m.NewVar(p)
	m.Loop(func() {
		q := m.Get(at)
		m.BreakIf(m.Not(m.Cmp(kernel.ULt, q, u.n)))
		i := u.at(q)
		m.BreakIf(m.Cmp(kernel.INe, u.key(i), key))
		body(i)
		m.Set(at, m.AddI(q, 1))
	})
}

// firstOfPart reports whether a part begins at p.
func (u *updates) firstOfPart(p kernel.Value) kernel.Value {
	return u.m.Cmp(kernel.IEq, u.m.And(p, u.m.ConstInt(u.r, partLength-1)), u.m.Zero(u.r))
}

// begins reports whether updates of slice key in one part begin at p.
func (u *updates) begins(p, key kernel.Value) kernel.Value {
	return u.m.Or(u.firstOfPart(p), u.owner(p, key))
}

// part runs body for the updates of slice key from that at p on, to the end of the part.
func (u *updates) part(p, key kernel.Value, body func(i kernel.Value)) {
	m := u.m
	at := m.NewVar(p)
	m.Loop(func() {
		q := m.Get(at)
		i := u.at(q)
		m.BreakIf(m.Cmp(kernel.INe, u.key(i), key))
		body(i)
		next := m.AddI(q, 1)
		m.Set(at, next)
		m.BreakIf(m.Or(u.firstOfPart(next), m.Not(m.Cmp(kernel.ULt, next, u.n))))
	})
}

// eachPart runs body for the places at which updates of slice key begin, that at p and those of later parts.
func (u *updates) eachPart(p, key kernel.Value, body func(q kernel.Value)) {
	m := u.m
	at := m.NewVar(p)
	m.Loop(func() {
		q := m.Get(at)
		m.BreakIf(m.Not(m.Cmp(kernel.ULt, q, u.n)))
		m.BreakIf(m.Cmp(kernel.INe, u.key(u.at(q)), key))
		body(q)
		m.Set(at, m.AddI(m.And(q, m.ConstInt(u.r, -partLength)), partLength))
	})
}

// apply is the kernel that brings updates into the result: a lane for each element of each update.
func (d *indexed) apply(what application) Launch {
	tune := flatTuning(d.t)
	m := newMaker(string(d.op)+[]string{"", "_parts", "_join"}[what], d.t, tune.local)
	add := d.op == graph.OpIndexedAdd
	raw := !add && d.u.Type == d.out.Type
	targets := Merge(d.targets, d.atTarget...)
	slice := Merge(d.rest, d.inSlice...)
	lead := Merge(d.lead, graph.Layout{Strides: stridesOf(d.u)[:len(d.lead)]})
	wide := d.wide() || targets.Wide || slice.Wide || lead.Wide
	targets.Wide, slice.Wide, lead.Wide = wide, wide, wide
	r := slice.IndexType()
	count := m.scalar("n", r, immInt(d.updates*slice.Count))
	width := m.divisor("slice", slice.Count, r)
	u := &updates{m: m, d: d, r: r, n: m.scalar("updates", r, immInt(d.updates))}
	u.keys = m.dense("keys", d.key, indexedKeys, d.updates, false)
	if d.updates > pairwiseUpdates {
		u.order = m.dense("order", d.orderType(), indexedOrder, d.updates, false)
	}
	element := func(t graph.Type) kernel.Mem {
		if raw {
			return RawMemOf(t)
		}
		return MemOf(t)
	}
	// Pointers stand at the lowest element, and maps count from their own.
	pointer := func(name string, x Operand, slot int, maps ...Mapped) (kernel.Ptr, kernel.Value) {
		lo, hi := reach(x)
		size := x.Type.Size()
		m.args = append(m.args, Arg{Kind: Addr, Slot: slot, Offset: uint64(lo * size)})
		m.access = append(m.access, Access{Slot: slot, Lo: uint64(lo * size), Hi: uint64(hi * size)})
		base := x.Layout.Offset - lo
		for _, o := range maps {
			base -= o.Bias
		}
		return m.Pointer(name, element(x.Type), false, 0), m.scalar(name+".base", r, immInt(base))
	}
	var from, under, to kernel.Ptr
	var fromBase, underBase kernel.Value
	if what != joinParts {
		from, fromBase = pointer("u", d.u, indexedU, lead.Maps[0], slice.Maps[2])
	}
	if add && what != gatherParts {
		under, underBase = pointer("x", d.x, indexedX, targets.Maps[1], slice.Maps[1])
	}
	if what != gatherParts {
		m.args = append(m.args, Arg{Kind: Addr, Slot: indexedOut})
		m.access = append(m.access, Access{Slot: indexedOut, Hi: uint64(d.out.Shape.Size() * d.out.Type.Size()), Write: true})
		to = m.Pointer("out", element(d.out.Type), true, 0)
	}
	target, inSlice, inLead := m.index(targets), m.index(slice), m.index(lead)
	f, via := d.fold()
	var parts []kernel.Ptr
	if what != inOne {
		for k, mem := range f.parts {
			m.args = append(m.args, Arg{Kind: Addr, Slot: d.partSlot + k})
			m.access = append(m.access, Access{Slot: d.partSlot + k, Hi: uint64(d.u.Shape.Size() * mem.Size()), Write: what == gatherParts})
			parts = append(parts, m.Pointer("parts", mem, what == gatherParts, 0))
		}
	}

	GridStride(m.Builder, tune.local, count, func(unit kernel.Value) {
		p, w := width.DivMod(m.Builder, unit)
		key := u.key(u.at(p))
		s := inSlice.Offsets(w)
		// read yields element w of an update.
		read := func(i kernel.Value) kernel.Value {
			return m.Load(from, m.Add(m.Add(inLead.Offsets(i)[0], s[2]), fromBase))
		}
		if what == gatherParts {
			m.If(u.begins(p, key), func() {
				acc := newSum(m.Builder, f, via)
				u.part(p, key, func(i kernel.Value) { acc.step(read(i), d.u.Type) })
				for k, v := range acc.get() {
					m.Store(parts[k], unit, v)
				}
			}, nil)
			return
		}
		m.If(u.owner(p, key), func() {
			t := target.Offsets(ResizeInt(m.Builder, key, graph.U32, r))
			dst := m.Add(t[0], s[0])
			if !add {
				v := read(u.at(p))
				if !raw {
					v = m.stored(v, d.u.Type, d.out.Type)
				}
				m.Store(to, dst, v)
				return
			}
			acc := newSum(m.Builder, f, via)
			if what == inOne {
				u.each(p, key, func(i kernel.Value) { acc.step(read(i), d.u.Type) })
			} else {
				u.eachPart(p, key, func(q kernel.Value) {
					at := m.Add(m.Mul(q, width.Extent()), w)
					var vs []kernel.Value
					for _, ptr := range parts {
						vs = append(vs, m.Load(ptr, at))
					}
					acc.set(f.join(m.Builder, acc.get(), vs))
				})
			}
			acc.step(m.Load(under, m.Add(m.Add(t[1], s[1]), underBase)), d.x.Type)
			m.Store(to, dst, Narrow(m.Builder, d.out.Type, f.final(m.Builder, acc.get())))
		}, nil)
	})
	return m.launch(flatGrid(tune, d.updates*slice.Count))
}

// sum is the accumulator of a fold whose elements are brought to type via.
type sum struct {
	*kernel.Builder
	f    fold
	via  graph.Type
	vars []kernel.Var
}

func newSum(b *kernel.Builder, f fold, via graph.Type) *sum {
	s := &sum{Builder: b, f: f, via: via}
	for _, v := range f.ident(b) {
		s.vars = append(s.vars, b.NewVar(v))
	}
	return s
}

func (s *sum) get() (vs []kernel.Value) {
	for _, v := range s.vars {
		vs = append(vs, s.Get(v))
	}
	return vs
}

func (s *sum) set(vs []kernel.Value) {
	for k, v := range vs {
		s.Set(s.vars[k], v)
	}
}

// step takes in what a load of an element of type t yielded.
func (s *sum) step(v kernel.Value, t graph.Type) {
	v = Convert(s.Builder, Widen(s.Builder, t, v), t, s.via)
	s.set(s.f.step(s.Builder, s.get(), []kernel.Value{v}, 0))
}

// fold gathers updates, brought to type via. In F64 it is exactly what Nx.BinaryBackend does.
func (d *indexed) fold() (f fold, via graph.Type) {
	out := d.out.Type
	if !out.Float() {
		r := RegOf(out)
		f = plainFold(r, unitOf(r, 0), (*kernel.Builder).Add)
		f.final = func(_ *kernel.Builder, acc []kernel.Value) kernel.Value { return acc[0] }
		return f, out
	}
	exact := func(t graph.Type) bool { return t.Float() && t.Size() <= 4 || t.Size() <= 2 } // in f32
	if out == graph.F64 || d.t.F64 && (fastF64(d.t) || !exact(d.x.Type) || !exact(d.u.Type)) {
		f = plainFold(kernel.F64, unitOf(kernel.F64, 0), (*kernel.Builder).Add)
		f.final = floatOut(kernel.F64, out)
		return f, graph.F64
	}
	return pairSum(kernel.F32, out), graph.F32
}
