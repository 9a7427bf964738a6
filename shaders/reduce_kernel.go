package shaders

import (
	"fmt"
	"math/bits"

	"nxvk/graph"
	"nxvk/kernel"
)

// input is an operand as a kernel reads it.
type input struct {
	typ    graph.Type
	mem    kernel.Mem
	ptr    kernel.Ptr
	value  kernel.Value // a by-value scalar, else 0
	start  kernel.Value // element offset of point 0, 0 for none
	widen  bool
	vector bool // quads of innermost positions are aligned
}

// load yields the register value of the element at an offset.
func (w *writer) load(in input, off kernel.Value) kernel.Value {
	if in.value != 0 {
		return in.value
	}
	v := w.Load(in.ptr, off)
	if in.widen {
		v = Widen(w.Builder, in.typ, v)
	}
	return v
}

// operand adds an operand to the argument table. The pointer stands at the lowest element that the
// layout reaches, so that every index is a natural number.
func (w *writer) operand(x Operand, slot int, raw bool) input {
	in := input{typ: x.Type, mem: MemOf(x.Type), widen: !raw}
	if raw {
		in.mem = RawMemOf(x.Type)
	}
	if x.ByValue {
		w.args = append(w.args, Arg{Kind: Value, Slot: slot, From: x.Type, To: x.Type})
		in.value = w.ScalarArg(fmt.Sprintf("x%d", slot), RegOf(x.Type))
		return in
	}
	lo, hi := reach(x)
	size := uint64(x.Type.Size())
	align := uint8(0)
	if in.vector = lo%4 == 0; in.vector {
		align = uint8(bits.TrailingZeros64(4 * size))
	}
	in.ptr = w.pointer(fmt.Sprintf("x%d", slot), in.mem, false, align, slot, uint64(lo)*size, uint64(lo)*size, uint64(hi)*size)
	if lo < x.Layout.Offset {
		in.start = w.number(fmt.Sprintf("x%d_start", slot), x.Layout.Offset-lo)
	}
	return in
}

// emit builds one kernel of a reduction and its launch.
//
// With lanes = 1 every invocation walks one chunk of one output. With more, that many neighbouring
// invocations of a workgroup take turns at the positions of one chunk and join in shared memory.
func (r *reduction) emit(f *fold, src source, dst sink, lanes int) Launch {
	const groupSize = 256
	local := groupSize
	if r.t.Class == kernel.CPU {
		local = 32
	}
	outs := axesSize(r.kept)
	name := r.name
	if src.partials > 0 {
		name += "_join"
	}
	w := newWriter(name, r.t, local, src.wide)
	k := reduceKernel{writer: w, f: f, r: r, lanes: lanes}
	if src.partials > 0 {
		k.bindPartials(src, outs)
	} else {
		k.bindOperands()
	}
	items := outs * dst.chunks
	perGroup := local / lanes
	groups := (items + perGroup - 1) / perGroup
	nItems := w.number("items", items)
	n := w.number("n", k.positions)
	var length, nOuts kernel.Value
	if dst.chunks > 1 {
		length = w.number("length", dst.length)
		nOuts = w.number("outs", outs)
	}
	store := k.bindSink(dst, outs)
	for _, m := range f.parts {
		if lanes > 1 {
			k.shared = append(k.shared, w.SharedArray(m, local))
		}
	}

	lane := w.BuiltinValue(kernel.LocalX)
	member, seat := kernel.Value(0), lane
	if lanes > 1 {
		seat = w.Bin(kernel.UDiv, lane, w.I32(lanes))
		member = w.toIndex(w.Bin(kernel.URem, lane, w.I32(lanes)))
	}
	body := func(group kernel.Value) {
		item := w.Add(w.Mul(group, w.index(perGroup)), w.toIndex(seat))
		inside := w.Cmp(kernel.ULt, item, nItems)
		o, from, to := item, w.index(0), n
		if dst.chunks > 1 {
			c := w.Bin(kernel.UDiv, item, nOuts)
			o = w.Sub(item, w.Mul(c, nOuts))
			from = w.Mul(c, length)
			to = w.min(w.Add(from, length), n)
		}
		if lanes == 1 {
			w.If(inside, func() { store(item, o, k.walk(o, from, to)) }, nil)
			return
		}
		acc := k.turns(inside, o, member, from, to)
		w.If(w.And(inside, w.Cmp(kernel.IEq, member, w.index(0))), func() { store(item, o, acc()) }, nil)
	}
	if groups <= maxGroups {
		body(w.toIndex(w.BuiltinValue(kernel.GroupX)))
	} else {
		w.For(w.toIndex(w.BuiltinValue(kernel.GroupX)), w.number("groups", groups), w.toIndex(w.BuiltinValue(kernel.GroupsX)), body)
	}
	return w.launch([3]uint32{uint32(min(groups, maxGroups)), 1, 1})
}

// reduceKernel is the state of a kernel being built.
type reduceKernel struct {
	*writer
	f         *fold
	r         *reduction
	lanes     int
	ins       []input
	kept      boundAxes
	reduced   boundAxes
	positions int  // reduced positions, or chunks
	quads     bool // the innermost reduced axis can be read four elements at a time
	partials  bool
	partStep  kernel.Value // between the chunks of one output
	shared    []kernel.Shared
}

func (k *reduceKernel) bindOperands() {
	k.quads = len(k.r.reduced) > 0
	for i, x := range k.r.ins {
		in := k.operand(x, i, k.f.raw)
		k.ins = append(k.ins, in)
		k.quads = k.quads && (in.value != 0 || in.vector && in.start == 0 && k.r.quadAligned(i))
	}
	k.kept = k.bind("o", k.r.kept)
	k.reduced = k.bind("r", k.r.reduced)
	k.positions = axesSize(k.r.reduced)
}

// quadAligned reports whether four neighbouring positions that start at a multiple of four lie side by
// side and aligned, for every output.
func (r *reduction) quadAligned(operand int) bool {
	last := len(r.reduced) - 1
	if r.reduced[last].stride[operand] != 1 {
		return false
	}
	for _, a := range r.kept {
		if a.stride[operand]%4 != 0 {
			return false
		}
	}
	for _, a := range r.reduced[:last] {
		if a.stride[operand]%4 != 0 {
			return false
		}
	}
	return last == 0 || r.reduced[last].n%4 == 0
}

// bindPartials reads accumulators that an earlier launch left, chunk by chunk, outputs side by side.
func (k *reduceKernel) bindPartials(src source, outs int) {
	k.partials = true
	for j, m := range k.f.parts {
		bytes := uint64(outs * src.partials * m.Size())
		ptr := k.pointer(fmt.Sprintf("part%d", j), m, false, 4, src.slot+j, 0, 0, bytes)
		k.ins = append(k.ins, input{ptr: ptr, mem: m})
	}
	k.partStep = k.number("outs", outs)
	k.positions = src.partials
}

// bindSink yields what stores the accumulator of an item.
func (k *reduceKernel) bindSink(dst sink, outs int) func(item, o kernel.Value, acc []kernel.Value) {
	if dst.chunks > 1 {
		var ptrs []kernel.Ptr
		for j, m := range k.f.parts {
			ptrs = append(ptrs, k.pointer(fmt.Sprintf("to%d", j), m, true, 4, dst.slot+j, 0, 0, uint64(outs*dst.chunks*m.Size())))
		}
		return func(item, _ kernel.Value, acc []kernel.Value) {
			for j, p := range ptrs {
				k.Store(p, item, acc[j])
			}
		}
	}
	t := k.r.out.Type
	p := k.pointer("out", MemOf(t), true, 0, dst.slot, 0, 0, uint64(outs*t.Size()))
	return func(_, o kernel.Value, acc []kernel.Value) {
		v := k.f.final(k.Builder, acc)
		if k.r.epilogue != nil {
			v = k.r.epilogue(k.Builder, v, o)
		}
		k.Store(p, o, Narrow(k.Builder, t, v))
	}
}

// accVars are accumulators in mutable registers.
func (k *reduceKernel) accVars(init []kernel.Value) []kernel.Var {
	vs := make([]kernel.Var, len(init))
	for i, v := range init {
		vs[i] = k.NewVar(v)
	}
	return vs
}

func (k *reduceKernel) get(vs []kernel.Var) []kernel.Value {
	out := make([]kernel.Value, len(vs))
	for i, v := range vs {
		out[i] = k.Get(v)
	}
	return out
}

func (k *reduceKernel) set(vs []kernel.Var, to []kernel.Value) {
	for i, v := range vs {
		k.Set(v, to[i])
	}
}

// position brings an index to the type of the fold's positions.
func (k *reduceKernel) position(p kernel.Value) kernel.Value {
	switch k.f.at {
	case kernel.I32:
		if k.idx == kernel.I64 {
			return k.Conv(kernel.Wrap, kernel.I32, p)
		}
	case kernel.I64:
		if k.idx == kernel.I32 {
			return k.Conv(kernel.ZExt, kernel.I64, p)
		}
	}
	return p
}

// starts yields the offset of each operand for output o; 0 stands for offset zero.
func (k *reduceKernel) starts(o kernel.Value) []kernel.Value {
	offs := make([]kernel.Value, len(k.ins))
	for i, in := range k.ins {
		offs[i] = in.start
	}
	return k.offsets(k.kept, len(k.kept.axes), o, offs)
}

func (k *reduceKernel) offset(v kernel.Value) kernel.Value {
	if v == 0 {
		return k.index(0)
	}
	return v
}

// take steps an accumulator by the element at the given offsets.
func (k *reduceKernel) take(acc []kernel.Var, offs []kernel.Value, p kernel.Value) {
	vs := make([]kernel.Value, len(k.ins))
	for i, in := range k.ins {
		vs[i] = k.load(in, k.offset(offs[i]))
	}
	k.stepBy(acc, vs, p)
}

func (k *reduceKernel) stepBy(acc []kernel.Var, vs []kernel.Value, p kernel.Value) {
	k.set(acc, k.f.step(k.Builder, k.get(acc), k.f.elem(k.Builder, vs), k.position(p)))
}

// joinPartial joins the accumulator of chunk c.
func (k *reduceKernel) joinPartial(acc []kernel.Var, o, c kernel.Value) {
	at := k.Add(k.Mul(c, k.partStep), o)
	vs := make([]kernel.Value, len(k.ins))
	for i, in := range k.ins {
		vs[i] = k.Load(in.ptr, at)
	}
	k.set(acc, k.f.join(k.Builder, k.get(acc), vs))
}

// walk gathers positions [from, to) of output o in one invocation.
func (k *reduceKernel) walk(o, from, to kernel.Value) []kernel.Value {
	accs := [][]kernel.Var{k.accVars(k.f.ident(k.Builder))}
	if k.partials {
		k.For(from, to, k.index(1), func(c kernel.Value) { k.joinPartial(accs[0], o, c) })
		return k.get(accs[0])
	}
	for len(accs) < k.f.ways {
		accs = append(accs, k.accVars(k.f.ident(k.Builder)))
	}
	starts := k.starts(o)
	rank := len(k.reduced.axes)
	switch rank {
	case 0:
		k.take(accs[0], starts, k.index(0))
	case 1:
		k.run(accs, starts, from, from, k.Sub(to, from))
	default:
		// Runs of the innermost axis, each addressed by one decomposition of the outer ones.
		inner := k.reduced.extent[rank-1]
		pv := k.NewVar(from)
		k.Loop(func() {
			p := k.Get(pv)
			k.BreakIf(k.Not(k.Cmp(kernel.ULt, p, to)))
			q, i := inner.DivMod(k.Builder, p)
			n := k.min(k.Sub(inner.Extent(), i), k.Sub(to, p))
			offs := k.offsets(boundAxes{k.reduced.axes[:rank-1], k.reduced.extent[:rank-1], k.reduced.stride[:rank-1]}, rank-1, q, starts)
			k.run(accs, offs, i, p, n)
			k.Set(pv, k.Add(p, n))
		})
	}
	acc := k.get(accs[0])
	for _, a := range accs[1:] {
		acc = k.f.join(k.Builder, acc, k.get(a))
	}
	return acc
}

// run gathers n positions from p on, which stand at index i of the innermost reduced axis.
func (k *reduceKernel) run(accs [][]kernel.Var, starts []kernel.Value, i, p, n kernel.Value) {
	last := k.reduced.stride[len(k.reduced.axes)-1]
	offs := make([]kernel.Value, len(starts))
	for j := range starts {
		offs[j] = k.advance(starts[j], last[j], i)
	}
	quads := k.ShrUI(n, 2)
	k.For(k.index(0), quads, k.index(1), func(q kernel.Value) {
		vs := make([][]kernel.Value, 4)
		base := k.ShlI(q, 2)
		for j, in := range k.ins {
			if k.quads && in.value == 0 {
				raw := k.LoadV(in.ptr, k.Add(k.ShrUI(k.offset(offs[j]), 2), q), 4)
				for e, v := range raw {
					if in.widen {
						v = Widen(k.Builder, in.typ, v)
					}
					vs[e] = append(vs[e], v)
				}
				continue
			}
			for e := range vs {
				off := k.advance(offs[j], last[j], k.AddI(base, e))
				vs[e] = append(vs[e], k.load(in, k.offset(off)))
			}
		}
		for e := range vs {
			k.stepBy(accs[e%len(accs)], vs[e], k.Add(p, k.AddI(base, e)))
		}
	})
	k.For(k.ShlI(quads, 2), n, k.index(1), func(t kernel.Value) {
		at := make([]kernel.Value, len(offs))
		for j := range offs {
			at[j] = k.advance(offs[j], last[j], t)
		}
		k.take(accs[0], at, k.Add(p, t))
	})
}

// turns gathers positions [from, to) of output o by k.lanes invocations that take turns, then joins
// them through shared memory. All of the workgroup comes here, inside or not. The result is valid in
// member 0, where it is asked for.
func (k *reduceKernel) turns(inside, o, member, from, to kernel.Value) func() []kernel.Value {
	accs := [][]kernel.Var{k.accVars(k.f.ident(k.Builder))}
	for !k.partials && len(accs) < k.f.ways {
		accs = append(accs, k.accVars(k.f.ident(k.Builder)))
	}
	k.If(inside, func() { k.takeTurns(accs, o, member, from, to) }, nil)
	acc := k.get(accs[0])
	for _, a := range accs[1:] {
		acc = k.f.join(k.Builder, acc, k.get(a))
	}
	lane := k.BuiltinValue(kernel.LocalX)
	me := member
	if k.idx == kernel.I64 {
		me = k.Conv(kernel.Wrap, kernel.I32, member)
	}
	k.Barrier() // an earlier round may still be read
	for j, s := range k.shared {
		k.SStore(s, lane, acc[j])
	}
	for half := k.lanes / 2; half > 0; half /= 2 {
		k.Barrier()
		k.If(k.Cmp(kernel.ULt, me, k.I32(half)), func() {
			l, r := make([]kernel.Value, len(k.shared)), make([]kernel.Value, len(k.shared))
			for j, s := range k.shared {
				l[j] = k.SLoad(s, lane)
				r[j] = k.SLoad(s, k.AddI(lane, half))
			}
			for j, v := range k.f.join(k.Builder, l, r) {
				k.SStore(k.shared[j], lane, v)
			}
		}, nil)
	}
	return func() []kernel.Value {
		out := make([]kernel.Value, len(k.shared))
		for j, s := range k.shared {
			out[j] = k.SLoad(s, lane)
		}
		return out
	}
}

func (k *reduceKernel) takeTurns(accs [][]kernel.Var, o, member, from, to kernel.Value) {
	if k.partials {
		k.For(k.Add(from, member), to, k.index(k.lanes), func(c kernel.Value) { k.joinPartial(accs[0], o, c) })
		return
	}
	starts := k.starts(o)
	if k.quads {
		// Chunks begin at multiples of four.
		stop := k.Add(from, k.ShlI(k.ShrUI(k.Sub(to, from), 2), 2))
		k.For(k.Add(from, k.ShlI(member, 2)), stop, k.index(4*k.lanes), func(p kernel.Value) {
			offs := k.offsets(k.reduced, len(k.reduced.axes), p, starts)
			vs := make([][]kernel.Value, 4)
			for j, in := range k.ins {
				if in.value != 0 {
					for e := range vs {
						vs[e] = append(vs[e], in.value)
					}
					continue
				}
				for e, v := range k.LoadV(in.ptr, k.ShrUI(k.offset(offs[j]), 2), 4) {
					if in.widen {
						v = Widen(k.Builder, in.typ, v)
					}
					vs[e] = append(vs[e], v)
				}
			}
			for e := range vs {
				k.stepBy(accs[e%len(accs)], vs[e], k.AddI(p, e))
			}
		})
		k.For(k.Add(stop, member), to, k.index(k.lanes), func(p kernel.Value) {
			k.take(accs[0], k.offsets(k.reduced, len(k.reduced.axes), p, starts), p)
		})
		return
	}
	// Four rounds at a time, so that loads overlap.
	ways := len(accs)
	if ways > 1 {
		stride := k.lanes * ways
		pv := k.NewVar(k.Add(from, member))
		k.Loop(func() {
			p := k.Get(pv)
			k.BreakIf(k.Not(k.Cmp(kernel.ULt, k.AddI(p, k.lanes*(ways-1)), to)))
			for e := 0; e < ways; e++ {
				pe := k.AddI(p, e*k.lanes)
				k.take(accs[e], k.offsets(k.reduced, len(k.reduced.axes), pe, starts), pe)
			}
			k.Set(pv, k.AddI(p, stride))
		})
		k.For(k.Get(pv), to, k.index(k.lanes), func(p kernel.Value) {
			k.take(accs[0], k.offsets(k.reduced, len(k.reduced.axes), p, starts), p)
		})
		return
	}
	k.For(k.Add(from, member), to, k.index(k.lanes), func(p kernel.Value) {
		k.take(accs[0], k.offsets(k.reduced, len(k.reduced.axes), p, starts), p)
	})
}
