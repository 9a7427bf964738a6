package shaders

import (
	"fmt"
	"math/bits"

	"nxvk/graph"
	"nxvk/kernel"
)

// Class says how an operand follows the linear index of a result.
type Class uint8

const (
	Linear  Class = iota // its element offset is the linear index
	Scalar               // one element for all: its offset is 0
	Strided              // Σ coordinate*stride
)

func (c Class) String() string { return [...]string{"linear", "scalar", "strided"}[c] }

// IndexMap reads tensors of one shape, each in its own layout, by one linear (row-major) index. Axes are
// merged on the host as far as every layout allows, axes of extent 1 are gone, and extents, strides and
// division constants are scalar arguments: a kernel knows only the merged rank, each tensor's Class
// and the index width.
//
// Use: m := Merge(shape, layouts…); x := m.Declare(b); offsets := x.Offsets(linear); and in the launch
// m.Addr for each pointer, m.Args() for what Declare declared, m.Access for the ranges.
type IndexMap struct {
	Extents []int // merged, outermost first; empty for one element
	Maps    []Mapped
	Count   int  // elements of the shape
	Wide    bool // indices are I64: something has 2^31 elements or more
}

// Mapped is one tensor of an IndexMap. Offsets in the kernel count from its lowest element, so that they
// are never negative.
type Mapped struct {
	Class   Class
	Strides []int // of the merged axes; negative when reversed
	Bias    int   // distance from the lowest element to element (0, 0, …)
	Lo, Hi  int   // the element offsets in the buffer that it reaches, [Lo, Hi)
}

// wideFrom is the number of elements from which indices are I64. Tests lower it.
var wideFrom = 1 << 31

// Merge makes the map of a shape and the layouts of tensors of that shape.
func Merge(shape graph.Shape, layouts ...graph.Layout) *IndexMap {
	m := &IndexMap{Count: shape.Size(), Maps: make([]Mapped, len(layouts))}
	for i, l := range layouts {
		lo, hi := graph.Reach(shape, l)
		m.Maps[i] = Mapped{Bias: l.Offset - lo, Lo: lo, Hi: hi}
		m.Wide = m.Wide || hi-lo >= wideFrom
	}
	m.Wide = m.Wide || m.Count >= wideFrom
	// From the innermost axis out; the lists are built reversed.
	for a := len(shape) - 1; a >= 0; a-- {
		d := shape[a]
		if d == 1 {
			continue
		}
		n := len(m.Extents)
		merge := n > 0
		for i, l := range layouts {
			if merge && l.Strides[a] != m.Maps[i].Strides[n-1]*m.Extents[n-1] {
				merge = false
			}
		}
		if merge {
			m.Extents[n-1] *= d
			continue
		}
		m.Extents = append(m.Extents, d)
		for i, l := range layouts {
			m.Maps[i].Strides = append(m.Maps[i].Strides, l.Strides[a])
		}
	}
	reverse(m.Extents)
	for i := range m.Maps {
		reverse(m.Maps[i].Strides)
		m.Maps[i].Class = classOf(m.Extents, m.Maps[i].Strides)
	}
	return m
}

func reverse(s []int) {
	for i, j := 0, len(s)-1; i < j; i, j = i+1, j-1 {
		s[i], s[j] = s[j], s[i]
	}
}

// classOf compares with row-major and all-zero strides. One element counts as linear.
func classOf(extents, strides []int) Class {
	linear, scalar := true, len(extents) > 0
	n := 1
	for i := len(extents) - 1; i >= 0; i-- {
		linear = linear && strides[i] == n
		scalar = scalar && strides[i] == 0
		n *= extents[i]
	}
	switch {
	case linear:
		return Linear
	case scalar:
		return Scalar
	}
	return Strided
}

// IndexType is the register type of this map's indices.
func (m *IndexMap) IndexType() kernel.Type {
	if m.Wide {
		return kernel.I64
	}
	return kernel.I32
}

// decomposes reports whether any tensor needs coordinates.
func (m *IndexMap) decomposes() bool {
	for _, o := range m.Maps {
		if o.Class == Strided {
			return true
		}
	}
	return false
}

// Index is an IndexMap inside a kernel: the scalar arguments that Declare declared.
type Index struct {
	m       *IndexMap
	b       *kernel.Builder
	div     []Divisor        // of the inner extents; [0] is unused
	strides [][]kernel.Value // Strided tensors only
	bias    []kernel.Value
}

// Declare adds the map's scalar arguments to a kernel; Args yields their values in the same order.
func (m *IndexMap) Declare(b *kernel.Builder) *Index {
	x := &Index{m: m, b: b, strides: make([][]kernel.Value, len(m.Maps)), bias: make([]kernel.Value, len(m.Maps))}
	if !m.decomposes() {
		return x
	}
	t := m.IndexType()
	x.div = make([]Divisor, len(m.Extents))
	for i := 1; i < len(m.Extents); i++ {
		x.div[i] = DeclareDivisor(b, fmt.Sprintf("d%d", i), t)
	}
	for o := range m.Maps {
		if m.Maps[o].Class != Strided {
			continue
		}
		x.bias[o] = b.ScalarArg(fmt.Sprintf("bias%d", o), t)
		for i := range m.Extents {
			x.strides[o] = append(x.strides[o], b.ScalarArg(fmt.Sprintf("s%d.%d", o, i), t))
		}
	}
	return x
}

// Args are the values of what Declare declared.
func (m *IndexMap) Args() []Arg {
	var args []Arg
	if !m.decomposes() {
		return nil
	}
	for i := 1; i < len(m.Extents); i++ {
		args = append(args, DivisorArgs(m.Extents[i], m.IndexType())...)
	}
	for _, o := range m.Maps {
		if o.Class != Strided {
			continue
		}
		args = append(args, immInt(o.Bias))
		for _, s := range o.Strides {
			args = append(args, immInt(s))
		}
	}
	return args
}

func immInt(n int) Arg { return Arg{Kind: Imm, Imm: uint64(n)} }

// Coords splits a linear index into the coordinates of the merged axes.
func (x *Index) Coords(linear kernel.Value) []kernel.Value {
	c := make([]kernel.Value, len(x.m.Extents))
	rest := linear
	for i := len(c) - 1; i > 0; i-- {
		rest, c[i] = x.div[i].DivMod(x.b, rest)
	}
	if len(c) > 0 {
		c[0] = rest
	}
	return c
}

// Offsets yields, for each tensor, the element offset from its lowest element.
func (x *Index) Offsets(linear kernel.Value) []kernel.Value {
	b, m := x.b, x.m
	out := make([]kernel.Value, len(m.Maps))
	var coords []kernel.Value
	if m.decomposes() {
		coords = x.Coords(linear)
	}
	for o := range m.Maps {
		switch m.Maps[o].Class {
		case Linear:
			out[o] = linear
		case Scalar:
			out[o] = b.Zero(m.IndexType())
		default:
			v := x.bias[o]
			for i, c := range coords {
				v = b.Add(v, b.Mul(c, x.strides[o][i]))
			}
			out[o] = v
		}
	}
	return out
}

// Addr is the argument for the pointer of tensor o: the address of its lowest element.
func (m *IndexMap) Addr(slot, o int, t graph.Type) Arg {
	return Arg{Kind: Addr, Slot: slot, Offset: uint64(m.Maps[o].Lo * t.Size())}
}

// Access is the byte range of slot that tensor o reaches.
func (m *IndexMap) Access(slot, o int, t graph.Type, write bool) Access {
	p := m.Maps[o]
	return Access{Slot: slot, Lo: uint64(p.Lo * t.Size()), Hi: uint64(p.Hi * t.Size()), Write: write}
}

// Divisor divides indices by a number that arrives in the argument table. For I32 it multiplies by a
// reciprocal (dividends below 2^31); for I64 it divides.
type Divisor struct {
	n, magic, shift kernel.Value
}

// DeclareDivisor adds a divisor's scalar arguments to a kernel.
func DeclareDivisor(b *kernel.Builder, name string, t kernel.Type) Divisor {
	d := Divisor{n: b.ScalarArg(name, t)}
	if t == kernel.I32 {
		d.magic = b.ScalarArg(name+".magic", t)
		d.shift = b.ScalarArg(name+".shift", t)
	}
	return d
}

// DivisorArgs are the values of what DeclareDivisor declared. d is at least 1.
func DivisorArgs(d int, t kernel.Type) []Arg {
	if t != kernel.I32 {
		return []Arg{immInt(d)}
	}
	// Granlund and Montgomery, "Division by invariant integers using multiplication": with
	// l = ⌈log2 d⌉ and m = ⌊2^32 (2^l - d) / d⌋ + 1, n/d = (⌊m n / 2^32⌋ + n) >> l.
	l := bits.Len(uint(d - 1))
	m := (uint64(1)<<l-uint64(d))<<32/uint64(d) + 1
	return []Arg{immInt(d), {Kind: Imm, Imm: m & 0xffffffff}, immInt(l)}
}

// Extent is the divisor itself.
func (d Divisor) Extent() kernel.Value { return d.n }

// DivMod yields n/d and n%d.
func (d Divisor) DivMod(b *kernel.Builder, n kernel.Value) (q, r kernel.Value) {
	if d.magic == 0 {
		q = b.Bin(kernel.UDiv, n, d.n)
	} else {
		q = b.Bin(kernel.ShrU, b.Add(b.Bin(kernel.UMulHi, n, d.magic), n), d.shift)
	}
	return q, b.Sub(n, b.Mul(q, d.n))
}

// MaxGroups is how many workgroups a dispatch may have along an axis on any device.
const MaxGroups = 65535

// GridStride runs body for every unit index below n (an index value), spread over the whole
// dispatch of a one-dimensional grid. On GPUs each invocation takes every (workgroups × workgroup size)th,
// so that neighbours read neighbours. A processor runs one workgroup after another on a core: there each
// takes a run of units, which caches and prefetching want (measured, f32 + f32 of 10 M: 5 times as fast).
func GridStride(b *kernel.Builder, local int, n kernel.Value, body func(i kernel.Value)) {
	t := b.TypeOf(n)
	widen := func(v kernel.Value) kernel.Value {
		if t == kernel.I64 {
			return b.Conv(kernel.ZExt, kernel.I64, v)
		}
		return v
	}
	group, lane := widen(b.BuiltinValue(kernel.GroupX)), widen(b.BuiltinValue(kernel.LocalX))
	all := widen(b.MulI(b.BuiltinValue(kernel.GroupsX), local))
	if b.T.Class != kernel.CPU {
		b.For(b.Add(b.MulI(group, local), lane), n, all, body)
		return
	}
	// Runs are whole multiples of the workgroup size.
	run := b.MulI(b.Bin(kernel.UDiv, b.Add(n, b.AddI(all, -1)), all), local)
	first := b.Mul(group, run)
	end := b.Add(first, run)
	end = b.Select(b.Cmp(kernel.ULt, end, n), end, n)
	b.For(b.Add(first, lane), end, b.ConstInt(t, int64(local)), body)
}

// Groups is the grid of GridStride: enough workgroups for n units at perInvocation each, within what
// every device allows.
func Groups(n, local, perInvocation int) [3]uint32 {
	per := local * perInvocation
	return [3]uint32{uint32(min((n+per-1)/per, MaxGroups)), 1, 1}
}
