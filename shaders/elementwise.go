package shaders

import (
	"fmt"
	"strings"

	"nxvk/graph"
	"nxvk/kernel"
)

// Region is an elementwise computation: a small expression graph over operands that broadcast to one
// shape. One kernel computes it, reading each operand once an element and storing the results.
type Region struct {
	Shape graph.Shape
	In    []Leaf
	Nodes []RegionNode // each may use leaves and earlier nodes
	Outs  []int        // values to store, each contiguous; slots follow the leaves' slots in this order
}

// Leaf is an operand of a Region. Leaf i is slot i of the plan.
type Leaf struct {
	Operand
	Const bool   // a constant: Bits is its element, the slot is unused
	Bits  uint64 // in the leaf's type; of a c128 the real part, and
	Upper uint64 // the imaginary part
}

// RegionNode applies an elementwise op. Values are numbered leaves first, then nodes.
type RegionNode struct {
	Op   graph.Op
	In   []int
	Type graph.Type // of the result
}

// BroadcastLayout stretches a layout of shape s to shape to: axes align at the last one, missing ones
// and those of extent 1 repeat.
func BroadcastLayout(s graph.Shape, l graph.Layout, to graph.Shape) graph.Layout {
	out := graph.Layout{Offset: l.Offset, Strides: make([]int, len(to))}
	for i, skip := 0, len(to)-len(s); i < len(s); i++ {
		if s[i] != 1 {
			out.Strides[skip+i] = l.Strides[i]
		}
	}
	return out
}

// Tuning of elementwise kernels, by device class.
type shape struct {
	local int // workgroup size
	units int // units an invocation should take before more workgroups are used
	most  int // workgroups at most
}

// cpuShape is one vector of lanes a workgroup, each workgroup with a long run: lavapipe runs eight lanes
// through the whole kernel before the next eight, so a larger workgroup goes over its run many times
// (measured, f32 + f32 of 10 M: 19 ms of processor time with 8 lanes, 26 with 16, 50 with 64).
var cpuShape = shape{local: 8, units: 512, most: 256}

func (r *Region) tuning(t kernel.Target) shape {
	if t.Class == kernel.CPU {
		return cpuShape
	}
	return shape{local: 256, units: 1, most: MaxGroups}
}

// Elementwise makes the plan of a region.
func Elementwise(t kernel.Target, r *Region) (*Plan, error) {
	if err := r.check(t); err != nil {
		return nil, err
	}
	g := newElementwise(t, r)
	g.declare()
	g.emit()
	tune := r.tuning(t)
	units := (g.x.Count + g.vec - 1) / g.vec
	grid := Groups(units, tune.local, tune.units)
	grid[0] = min(grid[0], uint32(tune.most))
	return &Plan{Launches: []Launch{g.launch(grid)}}, nil
}

// check wants the device to compute each node as Nx does.
func (r *Region) check(t kernel.Target) error {
	for _, n := range r.Nodes {
		types := []graph.Type{n.Type}
		for _, i := range n.In {
			types = append(types, r.typeOf(i))
		}
		if err := needTypes(t, n.Op, types...); err != nil {
			return err
		}
		if err := r.needExact(t, n); err != nil {
			return err
		}
		if err := complexOps(t, n.Op, types...); err != nil {
			return err
		}
	}
	return nil
}

// needExact wants a device without f64 to hold the operands of float arithmetic as they are: f32 would round large
// integers before the operation does. Numbers that come with the call are let through, since most of them are small.
func (r *Region) needExact(t kernel.Target, n RegionNode) error {
	if t.F64 || !n.Type.Float() || !roundedOps[n.Op] {
		return nil
	}
	for _, i := range n.In {
		x := r.typeOf(i)
		if i < len(r.In) && r.In[i].ByValue {
			continue
		}
		if !exactIn(x, kernel.F32) || exactOps[n.Op] && significand(x) > significand(n.Type) {
			return &Unsupported{n.Op, x, "without f64 its operand would be rounded first"}
		}
	}
	return nil
}

// exactOps are the operations whose results are Nx's to the last bit, beside those that only choose or convert.
var exactOps = map[graph.Op]bool{"add": true, "subtract": true, "multiply": true, "divide": true, "sqrt": true}

// roundedOps are those that compute in floats, and round.
var roundedOps = func() map[graph.Op]bool {
	m := map[graph.Op]bool{"pow": true, "atan2": true, "remainder": true}
	for _, op := range graph.Unary[:23] { // exp to erf_inv
		m[op] = true
	}
	for op := range exactOps {
		m[op] = true
	}
	return m
}()

func (r *Region) typeOf(v int) graph.Type {
	if v < len(r.In) {
		return r.In[v].Type
	}
	return r.Nodes[v-len(r.In)].Type
}

// name of the kernel: its ops and result types.
func (r *Region) name() string {
	var s []string
	for i, n := range r.Nodes {
		if i == 6 {
			s = append(s, fmt.Sprintf("%d more", len(r.Nodes)-i))
			break
		}
		s = append(s, string(n.Op))
	}
	return strings.Join(s, "+") + "." + r.typeOf(r.Outs[0]).String()
}

// How a kernel walks: by single elements, by vectors of everything (with a tail), or by vectors along
// the innermost axis.
type walk uint8

const (
	walkElements walk = iota
	walkLinear
	walkInner
)

const vecLen = 4

type elementwise struct {
	*maker
	r    *Region
	x    *IndexMap // outs, then the leaves that are tensors
	walk walk
	vec  int

	tensor []int // leaf -> its number in x, or -1
	ptr    []kernel.Ptr
	fixed  []value // leaves that are the same for every element, by leaf; t is Invalid otherwise
	outs   []kernel.Ptr
	idx    *Index
	n      kernel.Value // elements, or vectors for walkInner
}

func newElementwise(t kernel.Target, r *Region) *elementwise {
	g := &elementwise{maker: newMaker(r.name(), t, r.tuning(t).local), r: r, vec: 1}
	layouts := make([]graph.Layout, 0, len(r.Outs)+len(r.In))
	for range r.Outs {
		layouts = append(layouts, graph.Contiguous(r.Shape))
	}
	g.tensor = make([]int, len(r.In))
	for i, l := range r.In {
		g.tensor[i] = -1
		if !l.Const && !l.ByValue {
			g.tensor[i] = len(layouts)
			layouts = append(layouts, BroadcastLayout(l.Shape, l.Layout, r.Shape))
		}
	}
	g.x = Merge(r.Shape, layouts...)
	g.chooseWalk()
	return g
}

// vectorsPay reports whether moving several elements at a time is worth a kernel some times as long. It is
// not where arithmetic outweighs memory. Processors gain nothing from vectors of 4- and 8-byte elements
// read in order (measured, f32 + f32: 0.6 ms a 400,000 either way; f16: 0.72 against 0.94), but along
// an inner axis vectors save index arithmetic.
func (g *elementwise) vectorsPay() (linear, inner bool) {
	for _, n := range g.r.Nodes {
		if heavyOps[n.Op] {
			return false, false
		}
	}
	if g.T.Class != kernel.CPU {
		return true, true
	}
	for i := range g.r.In {
		linear = linear || g.r.In[i].Type.Size() < 4
	}
	for _, v := range g.r.Outs {
		linear = linear || g.r.typeOf(v).Size() < 4
	}
	return linear, true
}

// heavyOps are those whose kernels are long: functions, and divisions by loops or of whole numbers.
var heavyOps = func() map[graph.Op]bool {
	m := map[graph.Op]bool{"pow": true, "atan2": true, "remainder": true, "quotient": true}
	for _, op := range graph.Unary[:23] { // exp to erf_inv
		m[op] = op != "sqrt"
	}
	return m
}()

// chooseWalk picks vectors where every tensor allows it. The choice depends on strides, on alignment and
// on whether whole vectors fill the innermost axis, never on the number of elements: a larger batch
// must not need another kernel.
func (g *elementwise) chooseWalk() {
	if g.anyComplex() {
		return // an element is a vector already
	}
	payLinear, payInner := g.vectorsPay()
	linear, inner := true, len(g.x.Extents) > 0
	if inner {
		inner = g.x.Extents[len(g.x.Extents)-1]%vecLen == 0
	}
	for _, m := range g.x.Maps {
		if m.Class == Scalar {
			continue
		}
		aligned := m.Lo%vecLen == 0
		if m.Class == Linear {
			linear, inner = linear && aligned, inner && aligned
			continue
		}
		linear = false
		last := len(m.Strides) - 1
		switch m.Strides[last] {
		case 0:
		case 1:
			inner = inner && aligned && m.Bias%vecLen == 0
			for _, s := range m.Strides[:last] {
				inner = inner && s%vecLen == 0
			}
		default:
			inner = false
		}
	}
	switch {
	case linear && payLinear:
		g.walk, g.vec = walkLinear, vecLen
	case inner && payInner && !linear:
		g.walk, g.vec = walkInner, vecLen
		g.x = g.x.vectors(vecLen)
	}
}

// anyComplex reports whether a complex number is loaded or stored.
func (g *elementwise) anyComplex() bool {
	for i := range g.r.In {
		if g.r.In[i].Type.Complex() {
			return true
		}
	}
	for _, v := range g.r.Outs {
		if g.r.typeOf(v).Complex() {
			return true
		}
	}
	return false
}

// vectors is the map whose innermost axis counts vectors of n elements. Tensors that are contiguous
// along it have offsets in vectors; those that repeat along it keep offsets in elements.
func (m *IndexMap) vectors(n int) *IndexMap {
	v := *m
	last := len(m.Extents) - 1
	v.Extents = append([]int(nil), m.Extents...)
	v.Extents[last] /= n
	v.Maps = append([]Mapped(nil), m.Maps...)
	for o := range v.Maps {
		p := &v.Maps[o]
		if p.Class != Strided || p.Strides[last] == 0 {
			continue
		}
		p.Strides = append([]int(nil), p.Strides...)
		for i := range p.Strides[:last] {
			p.Strides[i] /= n
		}
		p.Bias /= n
	}
	return &v
}

// inVectors reports whether tensor o is read as vectors.
func (g *elementwise) inVectors(o int) bool {
	m := g.x.Maps[o]
	return g.vec > 1 && (m.Class == Linear || m.Class == Strided && m.Strides[len(m.Strides)-1] == 1)
}

func (g *elementwise) declare() {
	count := g.x.Count
	if g.walk == walkInner {
		count /= g.vec
	}
	g.n = g.scalar("n", g.x.IndexType(), immInt(count))
	for i, v := range g.r.Outs {
		t := g.r.typeOf(v)
		g.outs = append(g.outs, g.pointer(fmt.Sprintf("out%d", i), elementMem(g.T, t), g.x, i, len(g.r.In)+i, t, g.vec, true))
	}
	g.ptr = make([]kernel.Ptr, len(g.r.In))
	g.fixed = make([]value, len(g.r.In))
	for i, l := range g.r.In {
		name := fmt.Sprintf("in%d", i)
		switch o := g.tensor[i]; {
		case l.Const, l.ByValue:
			g.fixed[i] = g.scalarElement(name, i, l)
		default:
			vec := 1
			if g.inVectors(o) {
				vec = g.vec
			}
			g.ptr[i] = g.pointer(name, elementMem(g.T, l.Type), g.x, o, i, l.Type, vec, false)
		}
	}
	g.idx = g.index(g.x)
}

func (g *elementwise) emit() {
	for i, l := range g.r.In {
		if o := g.tensor[i]; o >= 0 && g.x.Maps[o].Class == Scalar {
			g.fixed[i] = g.loadElement(g.ptr[i], g.I32(0), l.Type)
			g.reg(&g.fixed[i])
		}
	}
	local := g.r.tuning(g.T).local
	if g.walk != walkLinear {
		GridStride(g.Builder, local, g.n, func(i kernel.Value) { g.unit(i, g.vec) })
		return
	}
	GridStride(g.Builder, local, g.ShrUI(g.n, 2), func(i kernel.Value) { g.unit(i, g.vec) })
	t := g.TypeOf(g.n)
	first := g.Add(g.MulI(g.BuiltinValue(kernel.GroupX), local), g.BuiltinValue(kernel.LocalX))
	if t == kernel.I64 {
		first = g.Conv(kernel.ZExt, kernel.I64, first)
	}
	tail := g.And(g.n, g.ConstInt(t, vecLen-1))
	g.If(g.Cmp(kernel.ULt, first, tail), func() { g.unit(g.Add(g.Sub(g.n, tail), first), 1) }, nil)
}

// unit computes n elements: vector i, or element i where n is 1.
func (g *elementwise) unit(i kernel.Value, n int) {
	offs := g.idx.Offsets(i)
	leaves := make([][]value, n)
	for j := range leaves {
		leaves[j] = make([]value, len(g.r.In))
	}
	for l, leaf := range g.r.In {
		o := g.tensor[l]
		switch {
		case g.fixed[l].t != graph.Invalid:
			for j := range leaves {
				leaves[j][l] = g.fixed[l]
			}
		case n > 1 && g.inVectors(o):
			for j, raw := range g.LoadV(g.ptr[l], offs[o], n) {
				leaves[j][l] = value{t: leaf.Type, raw: raw}
			}
		default:
			v := g.loadElement(g.ptr[l], offs[o], leaf.Type)
			for j := range leaves {
				leaves[j][l] = v
			}
		}
	}
	stores := make([][]*value, len(g.r.Outs))
	for j := range leaves {
		for o, v := range g.element(leaves[j]) {
			stores[o] = append(stores[o], v)
		}
	}
	for o, vs := range stores {
		if n == 1 {
			g.storeElement(g.outs[o], offs[o], vs[0])
			continue
		}
		raw := make([]kernel.Value, n)
		for j, v := range vs {
			raw[j] = (&eval{g.Builder}).raw(v)
		}
		g.StoreV(g.outs[o], offs[o], raw)
	}
}

// element computes one element and yields what to store.
func (g *elementwise) element(vals []value) []*value {
	e := &eval{g.Builder}
	for _, n := range g.r.Nodes {
		in := make([]*value, len(n.In))
		for k, v := range n.In {
			in[k] = &vals[v]
		}
		vals = append(vals, e.apply(n.Op, in, n.Type))
	}
	out := make([]*value, len(g.r.Outs))
	for k, v := range g.r.Outs {
		out[k] = &vals[v]
	}
	return out
}

// reg makes the register form of v ahead of a loop.
func (g *elementwise) reg(v *value) {
	e := &eval{g.Builder}
	if v.parts == nil {
		e.reg(v)
		return
	}
	e.reg(&v.parts[0])
	e.reg(&v.parts[1])
}
