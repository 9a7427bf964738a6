package shaders

import (
	"fmt"

	"nxvk/graph"
	"nxvk/kernel"
)

// windowSource is what a pass reads: an operand, or accumulators that an earlier pass left.
type windowSource struct {
	axes  []slide
	x     *Operand // nil for accumulators
	slot  int      // of x, or of the first part of the accumulators
	count int      // accumulators
}

// windowPass is a kernel that gathers each window by one invocation: the windows of its first source, then
// those of the next; the elements of a window in row-major order.
type windowPass struct {
	t    kernel.Target
	name string
	f    *fold
	srcs []windowSource
	// begin, unless nil, yields where accumulators begin, else at the unit.
	begin func(w *writer) []kernel.Value
	// filled says that padding holds the first register of that as an element; else padding is left out.
	filled bool
	// unroll is how many elements of a window may be visited without a loop.
	unroll int
	out    *graph.Spec // the result; nil: the accumulators are stored
	slot   int         // of the result, or of the first part
}

// windowKernel is the state of the kernel being built.
type windowKernel struct {
	*writer
	p    *windowPass
	acc  []kernel.Var
	init []kernel.Value // where accumulators begin
	srcs []boundSource
}

// boundSource is a source with what the argument table says of it.
type boundSource struct {
	in    *input
	parts []kernel.Ptr
	axes  []boundSlide
	// unrolled windows have a copy of the step for each of their elements, and their size is part of the kernel.
	unrolled bool
}

type boundSlide struct {
	slide
	nv, sizev, stepv, lov kernel.Value
	stridev, hop          kernel.Value // hop: between neighbours in a window
	gapv                  Divisor
	placev                kernel.Value // how many elements of a window come before its second one along the axis
}

// launch builds the pass.
func (p *windowPass) launch() Launch {
	lists := make([][]slide, len(p.srcs))
	wide := false
	for i, s := range p.srcs {
		lists[i] = s.axes
		count := s.count
		if s.x != nil {
			lo, hi := reach(*s.x)
			count = hi - lo
		}
		wide = wide || count >= wideFrom || outsOf(s.axes) >= wideFrom
		for _, a := range s.axes {
			wide = wide || a.wide()
		}
	}
	lists = mergeSlides(lists)
	tune := flatTuning(p.t)
	k := &windowKernel{writer: newWriter(p.name, p.t, tune.local, wide), p: p}
	outs := outsOf(lists[0])
	n := k.number("n", outs)
	extents := make([]Divisor, len(lists[0]))
	for i, a := range lists[0] {
		if i > 0 {
			extents[i] = k.divisor(fmt.Sprintf("o%d", i), a.outs)
		}
	}
	for i := range p.srcs {
		k.srcs = append(k.srcs, k.bindSource(i, lists[i]))
	}
	if p.begin != nil {
		k.init = p.begin(k.writer)
	} else {
		k.init = p.f.ident(k.Builder)
	}
	store := k.sink(outs)
	GridStride(k.Builder, tune.local, n, func(i kernel.Value) {
		at := make([]kernel.Value, len(extents))
		rest := i
		for a := len(at) - 1; a > 0; a-- {
			rest, at[a] = extents[a].DivMod(k.Builder, rest)
		}
		if len(at) > 0 {
			at[0] = rest
		}
		k.acc = nil
		for _, v := range k.init {
			k.acc = append(k.acc, k.NewVar(v))
		}
		for s := range k.srcs {
			k.gather(&k.srcs[s], at)
		}
		acc := make([]kernel.Value, len(k.acc))
		for j, v := range k.acc {
			acc[j] = k.Get(v)
		}
		store(i, acc)
	})
	work := 1
	for _, axes := range lists {
		for _, a := range axes {
			work *= min(a.size, tune.units)
			work = min(work, tune.units)
		}
	}
	grid := Groups(outs, tune.local, max(1, tune.units/work))
	grid[0] = min(grid[0], uint32(tune.most))
	return k.launch(grid)
}

func (k *windowKernel) bindSource(i int, axes []slide) boundSource {
	s := &k.p.srcs[i]
	b := boundSource{unrolled: sizeOf(axes) <= k.p.unroll}
	if s.x != nil {
		b.in = k.operand(*s.x, s.slot, k.p.f.raw)
	} else {
		for j, m := range k.p.f.parts {
			b.parts = append(b.parts, k.pointer(fmt.Sprintf("in%d_%d", i, j), m, false, 4, s.slot+j, 0, 0, uint64(s.count*m.Size())))
		}
	}
	for j, a := range axes {
		name := func(what string) string { return fmt.Sprintf("%s%d_%d", what, i, j) }
		v := boundSlide{slide: a, stridev: k.index(1)}
		if a.stride != 1 {
			v.stridev = k.number(name("s"), a.stride)
		}
		if !a.plain() {
			v.stepv, v.lov = k.number(name("step"), a.step), k.number(name("lo"), a.lo)
			if a.padded() || k.p.filled {
				v.nv = k.number(name("n"), a.n)
			}
			if a.size > 1 {
				if k.p.f.at != kernel.Void {
					v.placev = k.number(name("place"), sizeOf(axes[j+1:]))
				}
				v.hop = v.stridev
				if !b.unrolled {
					v.sizev = k.number(name("size"), a.size)
				}
				if a.gap != 1 {
					v.gapv = k.divisor(name("gap"), a.gap)
					v.hop = k.Mul(v.stridev, v.gapv.Extent())
				}
			}
		}
		b.axes = append(b.axes, v)
	}
	return b
}

// sink yields what stores the accumulators of window i.
func (k *windowKernel) sink(outs int) func(i kernel.Value, acc []kernel.Value) {
	p := k.p
	if p.out != nil {
		to := k.output(p.out.Type, p.slot, outs, 1)
		return func(i kernel.Value, acc []kernel.Value) {
			to.store(i, []kernel.Value{Narrow(k.Builder, p.out.Type, p.f.final(k.Builder, acc))})
		}
	}
	var ptrs []kernel.Ptr
	for j, m := range p.f.parts {
		ptrs = append(ptrs, k.writer.pointer(fmt.Sprintf("to%d", j), m, true, 4, p.slot+j, 0, 0, uint64(outs*m.Size())))
	}
	return func(i kernel.Value, acc []kernel.Value) {
		for j, ptr := range ptrs {
			k.Store(ptr, i, acc[j])
		}
	}
}

// span is what of a window's axis lies where: where it starts, and which of its elements are to be visited.
type span struct {
	axis     *boundSlide
	start    kernel.Value
	from, to kernel.Value
}

// gather takes in one source's window at the given coordinates.
func (k *windowKernel) gather(s *boundSource, at []kernel.Value) {
	off := kernel.Value(0)
	if s.in != nil {
		off = s.in.start
	}
	var spans []span
	inside := k.ConstBool(true)
	for i := range s.axes {
		a := &s.axes[i]
		if a.plain() {
			off = k.sum(off, k.Mul(at[i], a.stridev))
			continue
		}
		start := k.Sub(k.Mul(at[i], a.stepv), a.lov)
		off = k.sum(off, k.Mul(start, a.stridev))
		if a.size == 1 {
			if a.padded() {
				inside = k.And(inside, k.Cmp(kernel.ULt, start, a.nv))
			}
			continue
		}
		sp := span{axis: a, start: start, from: k.index(0), to: a.sizev}
		if a.padded() && !k.p.filled && !s.unrolled {
			sp.from, sp.to = k.clip(a, start)
		}
		spans = append(spans, sp)
	}
	k.visit(s, spans, k.offset(off), k.index(0), inside)
}

// clip yields which elements of a window that begins at start are no padding.
func (k *windowKernel) clip(a *boundSlide, start kernel.Value) (from, to kernel.Value) {
	zero := k.index(0)
	hops := func(distance kernel.Value) kernel.Value { // that reach a distance, which is not negative
		if a.gap == 1 {
			return distance
		}
		q, _ := a.gapv.DivMod(k.Builder, k.Add(distance, k.AddI(a.gapv.Extent(), -1)))
		return q
	}
	before := k.Cmp(kernel.SLt, start, zero)
	from = k.Select(before, hops(k.Select(before, k.Sub(zero, start), zero)), zero)
	left := k.Sub(a.nv, start)
	left = k.Select(k.Cmp(kernel.SLt, left, zero), zero, left)
	return from, k.min(hops(left), a.sizev)
}

// visit walks the rest of a window's axes and takes in its elements. place is where in its window an element stands.
func (k *windowKernel) visit(s *boundSource, rest []span, off, place, inside kernel.Value) {
	if len(rest) > 0 {
		sp := rest[0]
		element := func(w kernel.Value) {
			in, at := inside, place
			if (k.p.filled || s.unrolled) && sp.axis.padded() {
				reached := w
				if sp.axis.gap != 1 {
					reached = k.Mul(w, sp.axis.gapv.Extent())
				}
				in = k.And(in, k.Cmp(kernel.ULt, k.Add(sp.start, reached), sp.axis.nv))
			}
			if sp.axis.placev != 0 {
				at = k.Add(place, k.Mul(w, sp.axis.placev))
			}
			k.visit(s, rest[1:], k.Add(off, k.Mul(w, sp.axis.hop)), at, in)
		}
		if !s.unrolled {
			k.For(sp.from, sp.to, k.index(1), element)
			return
		}
		for w := range sp.axis.size {
			element(k.index(w))
		}
		return
	}
	take := func() { k.take(s, off, place) }
	if bits, ok := k.IsConst(inside); ok && bits == 1 {
		take()
		return
	}
	if !k.p.filled {
		k.If(inside, take, nil)
		return
	}
	// One copy of the step, whichever element it sees.
	v := k.NewVar(k.init[0])
	k.If(inside, func() { k.Set(v, k.element(s, off)[0]) }, nil)
	k.step([]kernel.Value{k.Get(v)}, place)
}

func (k *windowKernel) element(s *boundSource, off kernel.Value) []kernel.Value {
	return k.p.f.elem(k.Builder, []kernel.Value{s.in.load(off)})
}

func (k *windowKernel) take(s *boundSource, off, place kernel.Value) {
	if s.in != nil {
		k.step(k.element(s, off), place)
		return
	}
	vs := make([]kernel.Value, len(s.parts))
	for j, ptr := range s.parts {
		vs[j] = k.Load(ptr, off)
	}
	k.set(k.p.f.join(k.Builder, k.get(), vs))
}

func (k *windowKernel) step(v []kernel.Value, place kernel.Value) {
	k.set(k.p.f.step(k.Builder, k.get(), v, place))
}

func (k *windowKernel) get() []kernel.Value {
	out := make([]kernel.Value, len(k.acc))
	for j, v := range k.acc {
		out[j] = k.Get(v)
	}
	return out
}

func (k *windowKernel) set(to []kernel.Value) {
	for j, v := range to {
		k.Set(k.acc[j], v)
	}
}
