package shaders

import (
	"fmt"

	"nxvk/graph"
	"nxvk/kernel"
)

// Sort plans the sorting of x along an axis, stable in either direction: elements that are equal stay in
// their order. NaNs are above all numbers and equal to each other, zeros of either sign are equal. Elements
// move as they are: a NaN keeps its bits.
func Sort(t kernel.Target, x Operand, out graph.Spec, axis int, desc bool) (*Plan, error) {
	s, err := newSorting(t, graph.OpSort, x, out.Shape, axis, desc)
	if err != nil {
		return nil, err
	}
	if out.Type != x.Type {
		return nil, fmt.Errorf("%s: of %v cannot be %v", graph.OpSort, x.Type, out.Type)
	}
	s.outs = []sortOut{{values: true, t: out.Type}}
	return s.plan(), nil
}

// ArgSort plans the positions that the elements of x have before Sort.
func ArgSort(t kernel.Target, x Operand, out graph.Spec, axis int, desc bool) (*Plan, error) {
	s, err := newSorting(t, graph.OpArgSort, x, out.Shape, axis, desc)
	if err != nil {
		return nil, err
	}
	if err := s.indices(graph.OpArgSort, out.Type); err != nil {
		return nil, err
	}
	s.outs = []sortOut{{t: out.Type}}
	return s.plan(), nil
}

// TopK plans the greatest elements along the last axis of x and their positions: as many as the results
// have, in the order of a descending Sort. Slots 1 and 2 are the values and the positions.
func TopK(t kernel.Target, x Operand, values, positions graph.Spec) (*Plan, error) {
	s, err := newSorting(t, graph.OpTopK, x, values.Shape, len(x.Shape)-1, true)
	if err != nil {
		return nil, err
	}
	if values.Type != x.Type || !positions.Shape.Equal(values.Shape) {
		return nil, fmt.Errorf("%s: of %v cannot be %v at %v", graph.OpTopK, x.Spec, values, positions)
	}
	if err := s.indices(graph.OpTopK, positions.Type); err != nil {
		return nil, err
	}
	s.outs = []sortOut{{values: true, t: values.Type}, {t: positions.Type}}
	if s.selects() {
		return s.selection(), nil
	}
	return s.plan(), nil
}

// sorting is what the planner works on: rows of n elements, at places that rows tells. Axes carry two
// strides, of the operand and of the results, whose first keep elements are stored.
type sorting struct {
	t     kernel.Target
	name  string
	x     Operand
	keys  sortKeys
	rows  []axis
	along axis
	keep  int
	outs  []sortOut
	size  int // elements of a result
	wide  bool
}

// sortOut is a result: the elements themselves, or their positions.
type sortOut struct {
	values bool
	t      graph.Type
}

func newSorting(t kernel.Target, op graph.Op, x Operand, out graph.Shape, a int, desc bool) (*sorting, error) {
	if err := checkOperand(string(op), x); err != nil {
		return nil, err
	}
	if a < 0 || a >= len(x.Shape) || len(out) != len(x.Shape) || out[a] > x.Shape[a] {
		return nil, fmt.Errorf("%s: axis %d of %v does not give shape %v", op, a, x.Spec, out)
	}
	if x.Type.Complex() {
		return nil, &Unsupported{op, x.Type, "complex numbers have no order"}
	}
	if err := needTypes(t, op, x.Type); err != nil {
		return nil, err
	}
	s := &sorting{t: t, name: string(op), x: x, keys: sortKeys{x.Type, desc}, keep: out[a], size: out.Size()}
	in, to := stridesOf(x), out.Strides()
	for k, d := range x.Shape {
		if k == a {
			continue
		}
		if out[k] != d {
			return nil, fmt.Errorf("%s: axis %d of %v does not give shape %v", op, a, x.Spec, out)
		}
		s.rows = append(s.rows, axis{d, []int{in[k], to[k]}})
	}
	s.rows = mergeAxes(s.rows)
	s.along = axis{x.Shape[a], []int{in[a], to[a]}}
	lo, hi := reach(x)
	s.wide = hi-lo >= wideFrom || x.Shape.Size() >= wideFrom
	return s, nil
}

// indices wants a type that positions can be of.
func (s *sorting) indices(op graph.Op, t graph.Type) error {
	if !t.Int() {
		return fmt.Errorf("%s: positions are integers, got type %v", op, t)
	}
	if s.wide && !s.t.I64 {
		return &Unsupported{op, s.x.Type, "so many elements take 64-bit positions"}
	}
	return needTypes(s.t, op, t)
}

// positions reports whether any result is of positions.
func (s *sorting) positions() bool {
	for _, o := range s.outs {
		if !o.values {
			return true
		}
	}
	return false
}

// Rows up to rankLength are sorted by counting, for each element, those that come before it. Longer
// ones that fit into shared memory pass a bitonic network there, where that is fast; all others
// are sorted digit by digit.
const (
	rankLengthCPU = 48
	rankLengthGPU = 24
	bitonicLength = 2048
	rowsOwn       = 64 // rows from which each is sorted by one lane of a processor,
	rowsOwnLength = 4096
)

func (s *sorting) plan() *Plan {
	n := s.along.n
	if s.t.Class == kernel.CPU {
		if n <= rankLengthCPU {
			return &Plan{Launches: []Launch{s.rank()}}
		}
		if axesSize(s.rows) >= rowsOwn && n <= rowsOwnLength {
			return s.radixRows()
		}
		return s.radix()
	}
	switch {
	case n <= rankLengthGPU:
		return &Plan{Launches: []Launch{s.rank()}}
	case n <= bitonicLength && !s.wide:
		return &Plan{Launches: []Launch{s.bitonic()}}
	}
	return s.radix()
}

// sortKeys maps the bits of elements in memory to unsigned integers in the order of the sort.
type sortKeys struct {
	t    graph.Type
	desc bool
}

// bits is how many bits of a key count.
func (o sortKeys) bits() int {
	switch o.t {
	case graph.U2, graph.S2:
		return 2
	case graph.U4, graph.S4:
		return 4
	}
	return 8 * o.t.Size()
}

// reg is the register type of keys.
func (o sortKeys) reg() kernel.Type {
	if o.bits() == 64 {
		return kernel.I64
	}
	return kernel.I32
}

// largest is the magnitude of a float beyond which there are only NaNs.
func (o sortKeys) largest() uint64 {
	switch o.t {
	case graph.F8:
		return 0x7c
	case graph.F8E4M3FN:
		return 0x7e
	case graph.F16:
		return 0x7c00
	case graph.BF16:
		return 0x7f80
	case graph.F32:
		return 0x7f800000
	}
	return 0x7ff0000000000000
}

// key maps what a load of an element's bits yielded. Keys are below 2^bits.
func (o sortKeys) key(b *kernel.Builder, raw kernel.Value) kernel.Value {
	r, n := o.reg(), o.bits()
	all := b.ConstBits(r, ^uint64(0)>>(64-n))
	sign := b.ConstBits(r, 1<<(n-1))
	if n < r.Bits() {
		raw = b.And(raw, all)
	}
	k := raw
	switch {
	case o.t.Float():
		mag := b.And(raw, b.ConstBits(r, 1<<(n-1)-1))
		neg := b.Cmp(kernel.INe, mag, raw)
		k = b.Select(neg, b.Xor(raw, all), b.Or(raw, sign))
		k = b.Select(b.Cmp(kernel.IEq, mag, b.Zero(r)), sign, k)
		k = b.Select(b.Cmp(kernel.ULt, b.ConstBits(r, o.largest()), mag), all, k)
	case o.t.Signed():
		k = b.Xor(raw, sign)
	}
	if o.desc {
		k = b.Xor(k, all)
	}
	return k
}

// sortKernel is the state of a kernel of a sort.
type sortKernel struct {
	*writer
	s      *sorting
	in     *input
	rows   boundAxes
	along  []kernel.Value
	n      kernel.Value
	keep   kernel.Value
	to     []kernel.Ptr
	starts []kernel.Value // of the row at hand
}

func (s *sorting) kernel(name string, local int) *sortKernel {
	return &sortKernel{writer: newWriter(name, s.t, local, s.wide), s: s}
}

// local is the number of invocations of a workgroup.
func (s *sorting) local() int {
	if s.t.Class == kernel.CPU {
		return cpuShape.local
	}
	return groupSize(s.t)
}

// bindPlaces adds where rows are, for reading the operand, storing results, or both.
func (k *sortKernel) bindPlaces(read, write bool) {
	s := k.s
	k.starts = []kernel.Value{0, 0}
	if read {
		k.in = k.operand(s.x, 0, true)
		k.starts[0] = k.in.start
	}
	k.rows = k.bind("row", s.rows)
	k.along = k.bind("at", []axis{s.along}).stride[0]
	if !write {
		return
	}
	k.keep = k.number("keep", s.keep)
	for i, o := range s.outs {
		m := MemOf(o.t)
		if o.values {
			m = RawMemOf(o.t)
		}
		k.to = append(k.to, k.pointer(fmt.Sprintf("out%d", i), m, true, 0, 1+i, 0, 0, uint64(s.size*o.t.Size())))
	}
}

// enter yields the offsets of operand and results for a row.
func (k *sortKernel) enter(row kernel.Value) []kernel.Value {
	return k.offsets(k.rows, len(k.rows.axes), row, k.starts)
}

// load reads the bits of element i of a row.
func (k *sortKernel) load(row []kernel.Value, i kernel.Value) kernel.Value {
	return k.in.load(k.advance(row[0], k.along[0], i))
}

// store puts the element that came from position i to position p of a row, if that is asked for.
func (k *sortKernel) store(row []kernel.Value, p, raw, i kernel.Value) {
	k.If(k.Cmp(kernel.ULt, p, k.keep), func() {
		at := k.offset(k.advance(row[1], k.along[1], p))
		for j, o := range k.s.outs {
			v := raw
			if !o.values {
				v = k.narrowed(o.t, i)
			}
			k.Store(k.to[j], at, v)
		}
	}, nil)
}

// narrowed is a position as an element of type t.
func (k *sortKernel) narrowed(t graph.Type, i kernel.Value) kernel.Value {
	from := graph.U32
	if k.idx == kernel.I64 {
		from = graph.U64
	}
	return Narrow(k.Builder, t, ResizeInt(k.Builder, i, from, RegOf(t)))
}

// rank sorts short rows: an invocation for each element counts those that come before it.
func (s *sorting) rank() Launch {
	k := s.kernel(s.name+"_rank", s.local())
	k.bindPlaces(true, true)
	n := k.divisor("n", s.along.n)
	count := axesSize(s.rows) * s.along.n
	total := k.number("elements", count)
	GridStride(k.Builder, s.local(), total, func(e kernel.Value) {
		r, i := n.DivMod(k.Builder, e)
		row := k.enter(r)
		raw := k.load(row, i)
		mine := s.keys.key(k.Builder, raw)
		rank := k.NewVar(k.index(0))
		k.For(k.index(0), n.Extent(), k.index(1), func(j kernel.Value) {
			other := s.keys.key(k.Builder, k.load(row, j))
			// Of equals the earlier comes first.
			tie := k.And(k.Cmp(kernel.IEq, other, mine), k.Cmp(kernel.ULt, j, i))
			before := k.Or(k.Cmp(kernel.ULt, other, mine), tie)
			k.Set(rank, k.Add(k.Get(rank), k.Select(before, k.index(1), k.index(0))))
		})
		k.store(row, k.Get(rank), raw, i)
	})
	per := 1
	if s.t.Class == kernel.CPU {
		per = 16
	}
	grid := Groups(count, s.local(), per)
	if s.t.Class == kernel.CPU {
		grid[0] = min(grid[0], uint32(cpuShape.most))
	}
	return k.launch(grid)
}
