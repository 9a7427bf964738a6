package shaders

import (
	"fmt"
	"slices"

	"nxvk/graph"
	"nxvk/kernel"
)

// bitsType is the unsigned integer of t's width: what copies use, so that no bit of a float is looked
// at and types of one width share kernels.
func bitsType(t graph.Type) graph.Type {
	switch t.Size() {
	case 1:
		return graph.U8
	case 2:
		return graph.U16
	case 4:
		return graph.U32
	}
	return graph.U64
}

// blank makes what moves between equal types opaque to the kernel: from and to become one integer type.
// Types that differ stay, and values are converted on the way.
func blank(from, to graph.Type) (graph.Type, graph.Type) {
	if from == to {
		return bitsType(from), bitsType(to)
	}
	return from, to
}

// inParts shows a tensor of complex numbers as one of their parts, which lie along a last axis.
func inParts(s graph.Spec, l graph.Layout) (graph.Spec, graph.Layout) {
	shape := append(append(graph.Shape(nil), s.Shape...), 2)
	parts := graph.Layout{Offset: 2 * l.Offset, Strides: make([]int, len(l.Strides)+1)}
	for i, st := range l.Strides {
		parts.Strides[i] = 2 * st
	}
	parts.Strides[len(l.Strides)] = 1
	return graph.Spec{Type: s.Type.Part(), Shape: shape}, parts
}

// Copy makes a contiguous tensor of out's type from x, which broadcasts to out's shape.
func Copy(t kernel.Target, x Leaf, out graph.Spec) (*Plan, error) {
	if x.Type == out.Type && x.Type.Size() == 8 && !t.I64 && !x.Const && !x.ByValue {
		x.Operand, out = halves(x.Operand), graph.Spec{Type: graph.U32, Shape: append(slices.Clone(out.Shape), 2)}
	}
	r := &Region{Shape: out.Shape, In: []Leaf{x}, Outs: []int{0}}
	switch {
	case x.Type != out.Type:
		r.Nodes = []RegionNode{{Op: graph.OpAsType, In: []int{0}, Type: out.Type}}
		r.Outs[0] = 1
	case !x.Type.Complex() || x.Type == graph.C64 && t.I64:
		r.In[0].Type = bitsType(x.Type)
	case x.Const || x.ByValue:
		// As a complex number, whose parts differ.
	default:
		x.Spec, x.Layout = inParts(x.Spec, BroadcastLayout(x.Shape, x.Layout, out.Shape))
		out, _ = inParts(out, graph.Contiguous(out.Shape))
		x.Shape = out.Shape
		return Copy(t, x, out)
	}
	if err := needMove(t, graph.OpAsType, x.Type, out.Type); err != nil {
		return nil, err
	}
	if l := transposedCopy(t, r); l != nil {
		return &Plan{Launches: []Launch{*l}}, nil
	}
	return Elementwise(t, r)
}

// halves is a tensor of 8-byte elements as one of 4-byte elements, two for each along a last axis of its own.
func halves(x Operand) Operand {
	h := Operand{Spec: graph.Spec{Type: graph.U32, Shape: append(slices.Clone(x.Shape), 2)}, Layout: graph.Layout{Offset: 2 * x.Layout.Offset}}
	for _, s := range x.Layout.Strides {
		h.Layout.Strides = append(h.Layout.Strides, 2*s)
	}
	h.Layout.Strides = append(h.Layout.Strides, 1)
	return h
}

// flat is a kernel under construction that makes each element of a contiguous result by its index.
type flat struct {
	*maker
	out   graph.Spec
	wide  bool
	n     kernel.Value
	ptr   kernel.Ptr
	tune  shape
	count int
}

// newFlat starts such a kernel; the result is at slot. wide says that something else in it needs I64 indices.
func newFlat(name string, t kernel.Target, out graph.Spec, slot int, wide bool) *flat {
	tune := flatTuning(t)
	f := &flat{maker: newMaker(name+"."+out.Type.String(), t, tune.local), out: out, tune: tune, count: out.Shape.Size()}
	x := Merge(out.Shape, graph.Contiguous(out.Shape))
	f.wide = wide || x.Wide
	f.n = f.scalar("n", f.indexType(), immInt(f.count))
	f.ptr = f.pointer("out", MemOf(out.Type), x, 0, slot, out.Type, 1, true)
	return f
}

func (f *flat) indexType() kernel.Type {
	if f.wide {
		return kernel.I64
	}
	return kernel.I32
}

// each emits the loop over the elements: body yields what to store at linear index i.
func (f *flat) each(body func(i kernel.Value) kernel.Value) *Plan {
	GridStride(f.Builder, f.tune.local, f.n, func(i kernel.Value) { f.Store(f.ptr, i, body(i)) })
	grid := Groups(f.count, f.tune.local, f.tune.units)
	grid[0] = min(grid[0], uint32(f.tune.most))
	return &Plan{Launches: []Launch{f.launch(grid)}}
}

// leafScalar reads a one-element leaf, once: a constant, a by-value number or element 0 of a tensor.
func (m *maker) leafScalar(name string, slot int, l Leaf) value {
	if l.Const || l.ByValue {
		return m.scalarElement(name, slot, l)
	}
	x := Merge(nil, graph.Layout{Offset: l.Layout.Offset})
	p := m.pointer(name, elementMem(m.T, l.Type), x, 0, slot, l.Type, 1, false)
	return m.loadElement(p, m.I32(0), l.Type)
}

// stored is what to store for a loaded raw element, converted where types differ.
func (m *maker) stored(raw kernel.Value, from, to graph.Type) kernel.Value {
	if from == to {
		return raw
	}
	e := &eval{m.Builder}
	w := e.asType(&value{t: from, raw: raw}, to)
	return e.raw(&w)
}

// Iota counts along an axis, or (-1) over the flat index. The result is slot 0.
func Iota(t kernel.Target, out graph.Spec, axis int) (*Plan, error) {
	if err := needTypes(t, graph.OpIota, out.Type); err != nil {
		return nil, err
	}
	name := "iota"
	if axis >= 0 {
		name = "iota_axis"
	}
	f := newFlat(name, t, out, 0, false)
	counted := graph.S32
	if f.wide {
		counted = graph.S64
	}
	along := func(i kernel.Value) kernel.Value { return i }
	if axis >= 0 {
		inner := f.divisor("inner", graph.Shape(out.Shape[axis+1:]).Size(), f.indexType())
		extent := f.divisor("extent", out.Shape[axis], f.indexType())
		along = func(i kernel.Value) kernel.Value {
			q, _ := inner.DivMod(f.Builder, i)
			_, c := extent.DivMod(f.Builder, q)
			return c
		}
	}
	return f.each(func(i kernel.Value) kernel.Value {
		return Narrow(f.Builder, out.Type, Convert(f.Builder, along(i), counted, out.Type))
	}), nil
}

// Eye makes identity matrices of the last two axes. The result is slot 0.
func Eye(t kernel.Target, out graph.Spec) (*Plan, error) {
	if err := needTypes(t, graph.OpEye, out.Type); err != nil {
		return nil, err
	}
	rank := len(out.Shape)
	bits := bitsType(out.Type)
	f := newFlat("eye", t, graph.Spec{Type: bits, Shape: out.Shape}, 0, false)
	one := f.scalar("one", RegOf(bits), Arg{Kind: Imm, Imm: graph.ConvertBits(1, graph.U8, out.Type)})
	cols := f.divisor("cols", out.Shape[rank-1], f.indexType())
	rows := f.divisor("rows", out.Shape[rank-2], f.indexType())
	return f.each(func(i kernel.Value) kernel.Value {
		q, c := cols.DivMod(f.Builder, i)
		_, r := rows.DivMod(f.Builder, q)
		return f.Select(f.Cmp(kernel.IEq, r, c), one, f.Zero(RegOf(bits)))
	}), nil
}

// start is a dynamic start of a slice: clamped to [0, limit], as an index.
func (m *maker) start(name string, slot int, l Leaf, limit int, r kernel.Type) kernel.Value {
	if !m.T.I64 && l.Type.Size() == 8 { // it is clamped all the same: see startTypes
		switch {
		case l.Const:
			l.Type, l.Bits = graph.S32, graph.SaturateBits(l.Bits, l.Type, graph.S32)
		case l.ByValue:
			from := l.Type
			l.Type = graph.S32
			return m.clamped(name, m.scalar(name, kernel.I32, Arg{Kind: Value, Slot: slot, From: from, To: l.Type, Clamp: true}), l.Type, limit, r)
		}
	}
	v := m.leafScalar(name, slot, l)
	return m.clamped(name, (&eval{m.Builder}).reg(&v), l.Type, limit, r)
}

// clamped is x, an integer of type from, clamped to [0, limit], as an index.
func (m *maker) clamped(name string, x kernel.Value, from graph.Type, limit int, r kernel.Type) kernel.Value {
	t := m.TypeOf(x)
	top := uint64(limit)
	if t == kernel.I32 {
		top = min(top, 1<<32-1)
	}
	most := m.scalar(name+".limit", t, Arg{Kind: Imm, Imm: top})
	c := m.Select(m.Cmp(kernel.ULt, most, x), most, x)
	if from.Signed() {
		c = m.Select(m.Cmp(kernel.SLt, x, m.Zero(t)), m.Zero(t), c)
	}
	return ResizeInt(m.Builder, c, graph.U32, r)
}

// wideReach reports whether a tensor's elements lie 2^31 or more apart.
func wideReach(x graph.Shape, l graph.Layout) bool {
	lo, hi := graph.Reach(x, l)
	return hi-lo >= wideFrom
}

// Slice reads a window of x with steps; starts[i] belongs to axis i and is clamped so that lengths[i]
// elements fit. Slots: x, the starts, the result.
func Slice(t kernel.Target, x Operand, starts []Leaf, out graph.Spec, lengths, steps []int) (*Plan, error) {
	if err := needMove(t, graph.OpSlice, x.Type, out.Type); err != nil {
		return nil, err
	}
	if err := startTypes(t, graph.OpSlice, starts); err != nil {
		return nil, err
	}
	from, to := blank(x.Type, out.Type)
	lo, hi := graph.Reach(x.Shape, x.Layout)
	window := graph.Layout{Strides: make([]int, len(steps))}
	for i, s := range steps {
		window.Strides[i] = x.Layout.Strides[i] * s
	}
	im := Merge(out.Shape, graph.Contiguous(out.Shape), window)
	im.Wide = im.Wide || hi-lo >= wideFrom
	f := newFlat("slice", t, graph.Spec{Type: to, Shape: out.Shape}, 1+len(starts), im.Wide)
	r := f.indexType()
	whole := &IndexMap{Maps: []Mapped{{Lo: lo, Hi: hi}}}
	src := f.pointer("x", MemOf(from), whole, 0, 0, from, 1, false)
	// Where the window begins, counted from x's lowest element.
	base := f.scalar("base", r, immInt(x.Layout.Offset-lo-im.Maps[1].Bias))
	for i, l := range starts {
		if lengths[i] == x.Shape[i] {
			continue // always 0
		}
		s := f.start(fmt.Sprintf("start%d", i), 1+i, l, x.Shape[i]-lengths[i], r)
		stride := f.scalar(fmt.Sprintf("stride%d", i), r, immInt(x.Layout.Strides[i]))
		base = f.Add(base, f.Mul(s, stride))
	}
	idx := f.index(im)
	return f.each(func(i kernel.Value) kernel.Value {
		return f.stored(f.Load(src, f.Add(base, idx.Offsets(i)[1])), from, to)
	}), nil
}

func startTypes(t kernel.Target, op graph.Op, starts []Leaf) error {
	for _, s := range starts {
		if !s.ByValue && !s.Const {
			if err := needTypes(t, op, s.Type); err != nil {
				return err
			}
		}
	}
	return nil
}

func flatTuning(t kernel.Target) shape {
	if t.Class == kernel.CPU {
		return cpuShape
	}
	return shape{local: 256, units: 1, most: MaxGroups}
}

// scatterInto copies a dense tensor at slot from to where a layout has its elements, at slot to.
func scatterInto(t kernel.Target, s graph.Spec, l graph.Layout, from, to int) Launch {
	tune := flatTuning(t)
	m := newMaker("place", t, tune.local)
	im := Merge(s.Shape, graph.Contiguous(s.Shape), l)
	n := m.scalar("n", im.IndexType(), immInt(im.Count))
	src := m.pointer("x", RawMemOf(s.Type), im, 0, from, s.Type, 1, false)
	dst := m.pointer("out", RawMemOf(s.Type), im, 1, to, s.Type, 1, true)
	x := m.index(im)
	GridStride(m.Builder, tune.local, n, func(i kernel.Value) {
		offs := x.Offsets(i)
		m.Store(dst, offs[1], m.Load(src, offs[0]))
	})
	grid := Groups(im.Count, tune.local, tune.units)
	grid[0] = min(grid[0], uint32(tune.most))
	return m.launch(grid)
}

// zeroInto writes zeros where a layout has the elements of s, at slot to.
func zeroInto(t kernel.Target, s graph.Spec, l graph.Layout, to int) Launch {
	tune := flatTuning(t)
	m := newMaker("zeros", t, tune.local)
	im := Merge(s.Shape, l)
	n := m.scalar("n", im.IndexType(), immInt(im.Count))
	dst := m.pointer("out", RawMemOf(s.Type), im, 0, to, s.Type, 1, true)
	x := m.index(im)
	zero := m.Zero(RawMemOf(s.Type).Reg())
	GridStride(m.Builder, tune.local, n, func(i kernel.Value) { m.Store(dst, x.Offsets(i)[0], zero) })
	grid := Groups(im.Count, tune.local, tune.units)
	grid[0] = min(grid[0], uint32(tune.most))
	return m.launch(grid)
}
