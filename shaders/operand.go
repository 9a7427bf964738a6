package shaders

import (
	"fmt"
	"math/bits"

	"nxvk/graph"
	"nxvk/kernel"
)

// input is an operand as a kernel reads it: one element at a time, or two or four neighbours in one load.
type input struct {
	w     *writer
	x     Operand
	slot  int
	raw   bool         // elements are moved, not looked at: they stay integers of their width
	value kernel.Value // a by-value scalar, else 0
	start kernel.Value // element offset of point 0 from the lowest element, 0 for none
	views map[view]kernel.Ptr
}

// view is an operand as elements of a type, aligned to n of its own elements.
type view struct {
	mem kernel.Mem
	n   int
}

// operand adds an operand to the argument table. Pointers stand at the lowest element that the layout
// reaches, so that every index is a natural number.
func (w *writer) operand(x Operand, slot int, raw bool) *input {
	in := &input{w: w, x: x, slot: slot, raw: raw, views: map[view]kernel.Ptr{}}
	if x.ByValue {
		w.args = append(w.args, Arg{Kind: Value, Slot: slot, From: x.Type, To: x.Type})
		in.value = w.ScalarArg(fmt.Sprintf("x%d", slot), RegOf(x.Type))
		return in
	}
	lo, hi := reach(x)
	size := uint64(x.Type.Size())
	w.access = append(w.access, Access{Slot: slot, Lo: uint64(lo) * size, Hi: uint64(hi) * size})
	if lo < x.Layout.Offset {
		in.start = w.number(fmt.Sprintf("x%d_start", slot), x.Layout.Offset-lo)
	}
	return in
}

// width is how many neighbours along an axis one load can take: 4, 2 or 1, where the axis is
// contiguous and every place that a load may stand at is aligned. extent is the axis's extent, or 0
// where the caller itself stays below it; others are the axes that move the place.
func (in *input) width(operand int, along axis, extent int, others ...[]axis) int {
	if in.value != 0 || in.start != 0 || along.stride[operand] != 1 {
		return 1
	}
	lo, _ := reach(in.x)
	sum := lo | extent | 4
	for _, axes := range others {
		for _, a := range axes {
			sum |= a.stride[operand]
		}
	}
	return 1 << bits.TrailingZeros(uint(sum))
}

// view adds the address of the operand, as elements of type m, to the argument table.
func (in *input) view(m kernel.Mem, n int) kernel.Ptr {
	v := view{m, n}
	if p, ok := in.views[v]; ok {
		return p
	}
	size := in.x.Type.Size()
	lo, _ := reach(in.x)
	in.w.args = append(in.w.args, Arg{Kind: Addr, Slot: in.slot, Offset: uint64(lo * size)})
	p := in.w.Pointer(fmt.Sprintf("x%d_%v", in.slot, m), m, false, uint8(bits.TrailingZeros(uint(n*size))))
	in.views[v] = p
	return p
}

// mem is the type of a single element in memory.
func (in *input) mem() kernel.Mem {
	if in.raw {
		return RawMemOf(in.x.Type)
	}
	return MemOf(in.x.Type)
}

func (in *input) widened(v kernel.Value) kernel.Value {
	if in.raw {
		return v
	}
	return Widen(in.w.Builder, in.x.Type, v)
}

// load yields the register value of the element at an offset; offset 0 is none.
func (in *input) load(off kernel.Value) kernel.Value {
	if in.value != 0 {
		return in.value
	}
	return in.widened(in.w.Load(in.view(in.mem(), 1), in.w.offset(off)))
}

// loads yields n neighbours from an offset on, which is a multiple of n.
func (in *input) loads(off kernel.Value, n int) []kernel.Value {
	out := make([]kernel.Value, n)
	if in.value != 0 || n == 1 {
		for i := range out {
			out[i] = in.load(off)
		}
		return out
	}
	w := in.w
	at := w.ShrUI(w.offset(off), bits.TrailingZeros(uint(n)))
	size := in.x.Type.Size()
	if !w.packs() || size == 8 {
		copy(out, w.LoadV(in.view(in.mem(), n), at, n))
	} else {
		// Processors gather: a load's cost is by lane, not by byte. So neighbours come in one integer.
		in.unpack(out, at, size*n)
	}
	for i := range out {
		out[i] = in.widened(out[i])
	}
	return out
}

// packs reports whether neighbours travel in one integer.
func (w *writer) packs() bool { return w.T.Class == kernel.CPU && w.T.I64 && w.T.Mem16 }

// unpack reads bytes bytes at index at, in units of as many, and takes them apart.
func (in *input) unpack(out []kernel.Value, at kernel.Value, bytes int) {
	w := in.w
	var words []kernel.Value // of 32 bits
	switch bytes {
	case 16:
		for _, v := range w.LoadV(in.view(kernel.M64, 4), at, 2) {
			words = append(words, w.Conv(kernel.Wrap, kernel.I32, v), w.Conv(kernel.Wrap, kernel.I32, w.ShrUI(v, 32)))
		}
	case 8:
		v := w.Load(in.view(kernel.M64, len(out)), at)
		words = append(words, w.Conv(kernel.Wrap, kernel.I32, v), w.Conv(kernel.Wrap, kernel.I32, w.ShrUI(v, 32)))
	case 4:
		words = append(words, w.Load(in.view(kernel.M32, len(out)), at))
	case 2:
		words = append(words, w.Load(in.view(kernel.M16, len(out)), at))
	}
	size := in.x.Type.Size()
	per := len(out) / len(words)
	for i := range out {
		v := words[i/per]
		if size < 4 {
			v = w.And(w.ShrUI(v, 8*size*(i%per)), w.I32(1<<(8*size)-1))
		}
		if !in.raw && in.x.Type == graph.F32 {
			v = w.BitsTo(kernel.F32, v)
		}
		out[i] = v
	}
}

// output is a contiguous result, written one element at a time or two or four neighbours at once.
type output struct {
	w     *writer
	typ   graph.Type
	slot  int
	first uint64 // byte at which element 0 lies
	width int    // neighbours that go out together
	ptrs  map[view]kernel.Ptr
}

// output adds a result of n elements, in runs of run elements, to the argument table.
func (w *writer) output(t graph.Type, slot, n, run int) *output {
	w.access = append(w.access, Access{Slot: slot, Hi: uint64(n * t.Size()), Write: true})
	return &output{w: w, typ: t, slot: slot, width: 1 << bits.TrailingZeros(uint(run|4)), ptrs: map[view]kernel.Ptr{}}
}

// result adds the result of a contraction to the argument table. Neighbours along inner go out together where they
// lie side by side.
func (w *writer) result(t graph.Type, d *contraction, inner []axis) *output {
	sum := d.out | 4
	if len(inner) != 1 || inner[0].stride[2] != 1 {
		sum = 1
	} else {
		for _, a := range d.results() {
			if a.stride[2] != 1 {
				sum |= a.stride[2]
			}
		}
		sum |= inner[0].n
	}
	size := uint64(t.Size())
	w.access = append(w.access, Access{Slot: 2, Lo: uint64(d.out) * size, Hi: uint64(d.last()+1) * size, Write: true})
	return &output{w: w, typ: t, slot: 2, first: uint64(d.out) * size, width: 1 << bits.TrailingZeros(uint(sum)), ptrs: map[view]kernel.Ptr{}}
}

func (o *output) view(m kernel.Mem, n int) kernel.Ptr {
	v := view{m, n}
	if p, ok := o.ptrs[v]; ok {
		return p
	}
	o.w.args = append(o.w.args, Arg{Kind: Addr, Slot: o.slot, Offset: o.first})
	p := o.w.Pointer(fmt.Sprintf("out_%v", m), m, true, uint8(bits.TrailingZeros(uint(n*o.typ.Size()))))
	o.ptrs[v] = p
	return p
}

// store writes narrowed neighbours from element at on, a multiple of their number.
func (o *output) store(at kernel.Value, vs []kernel.Value) {
	w, n := o.w, len(vs)
	if n == 1 {
		w.Store(o.view(MemOf(o.typ), 1), at, vs[0])
		return
	}
	at = w.ShrUI(at, bits.TrailingZeros(uint(n)))
	if !w.packs() || o.typ.Size() != 4 {
		w.StoreV(o.view(MemOf(o.typ), n), at, vs)
		return
	}
	// Processors scatter by lane: two elements in one integer.
	var words []kernel.Value
	for i := 0; i < n; i += 2 {
		lo, hi := w.bits64(vs[i]), w.bits64(vs[i+1])
		words = append(words, w.Or(lo, w.ShlI(hi, 32)))
	}
	if n == 2 {
		w.Store(o.view(kernel.M64, 2), at, words[0])
	} else {
		w.StoreV(o.view(kernel.M64, 4), at, words)
	}
}

// bits64 is the bits of a 32-bit value in 64.
func (w *writer) bits64(v kernel.Value) kernel.Value {
	return w.Conv(kernel.ZExt, kernel.I64, w.BitsTo(kernel.I32, v))
}
