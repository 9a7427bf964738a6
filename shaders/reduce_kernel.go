package shaders

import (
	"fmt"
	"slices"

	"nxvk/kernel"
)

// sharing is how the invocations of a reduction's kernel share the work.
type sharing struct {
	// lanes is how many neighbouring invocations take turns at the positions of one chunk, and join in
	// shared memory.
	lanes int
	// across is how many neighbouring outputs one invocation gathers, when it takes no turns.
	across int
	local  int // invocations of a workgroup, 0 for groupSize
}

// groupSize is the number of invocations of a workgroup.
func groupSize(t kernel.Target) int {
	if t.Class == kernel.CPU {
		return 32
	}
	size := 256
	for t.MaxInvocations > 0 && size > t.MaxInvocations {
		size /= 2
	}
	return size
}

// emit builds one kernel of a reduction and its launch.
func (r *reduction) emit(f *fold, src source, dst sink, sh sharing) Launch {
	local := max(sh.local, groupSize(r.t))
	outs := axesSize(r.kept)
	name := r.name
	if src.partials > 0 {
		name += "_join"
	}
	w := newWriter(name, r.t, local, src.wide)
	k := reduceKernel{writer: w, f: f, r: r, sharing: sh}
	if src.partials > 0 {
		k.bindPartials(src, outs)
	} else {
		k.bindOperands()
	}
	columns := outs / sh.across
	items := columns * dst.chunks
	perGroup := local / sh.lanes
	groups := (items + perGroup - 1) / perGroup
	nItems := w.number("items", items)
	n := w.number("n", k.positions)
	var length kernel.Value
	var nColumns Divisor
	if dst.chunks > 1 {
		length = w.number("length", dst.length)
		nColumns = w.divisor("columns", columns)
	}
	store := k.bindSink(dst, outs)
	for _, m := range f.parts {
		if sh.lanes > 1 {
			k.shared = append(k.shared, w.SharedArray(m, local))
		}
	}

	lane := w.BuiltinValue(kernel.LocalX)
	member, seat := kernel.Value(0), lane
	if sh.lanes > 1 {
		seat = w.Bin(kernel.UDiv, lane, w.I32(sh.lanes))
		member = w.toIndex(w.Bin(kernel.URem, lane, w.I32(sh.lanes)))
	}
	body := func(group kernel.Value) {
		item := w.Add(w.Mul(group, w.index(perGroup)), w.toIndex(seat))
		inside := w.Cmp(kernel.ULt, item, nItems)
		o, chunk, from, to := item, w.index(0), w.index(0), n
		if dst.chunks > 1 {
			chunk, o = nColumns.DivMod(w.Builder, item)
			from = w.Mul(chunk, length)
			to = w.min(w.Add(from, length), n)
		}
		o = w.Mul(o, w.index(sh.across))
		if sh.lanes == 1 {
			w.If(inside, func() { store(chunk, o, k.walk(o, from, to)) }, nil)
			return
		}
		acc := k.turns(inside, o, member, from, to)
		w.If(w.And(inside, w.Cmp(kernel.IEq, member, w.index(0))), func() { store(chunk, o, [][]kernel.Value{acc()}) }, nil)
	}
	if groups <= MaxGroups {
		body(w.toIndex(w.BuiltinValue(kernel.GroupX)))
	} else {
		w.For(w.toIndex(w.BuiltinValue(kernel.GroupX)), w.number("groups", groups), w.toIndex(w.BuiltinValue(kernel.GroupsX)), body)
	}
	return w.launch([3]uint32{uint32(min(groups, MaxGroups)), 1, 1})
}

// reduceKernel is the state of a kernel being built.
type reduceKernel struct {
	*writer
	f *fold
	r *reduction
	sharing
	ins       []*input
	parts     []kernel.Ptr // of partial accumulators
	kept      boundAxes
	reduced   boundAxes
	positions int   // reduced positions, or chunks
	widths    []int // neighbouring positions that one load of each operand takes
	partials  bool
	partStep  kernel.Value // between the chunks of one output
	shared    []kernel.Shared
}

func (k *reduceKernel) bindOperands() {
	for i, x := range k.r.ins {
		in := k.operand(x, i, k.f.raw)
		k.ins = append(k.ins, in)
		k.widths = append(k.widths, k.r.width(in, i))
	}
	k.kept = k.bind("o", k.r.kept)
	k.reduced = k.bind("r", k.r.reduced)
	k.positions = axesSize(k.r.reduced)
}

// width is how many neighbouring positions one load of an operand can take.
func (r *reduction) width(in *input, operand int) int {
	last := len(r.reduced) - 1
	switch {
	case last < 0:
		return 1
	case in.value != 0:
		return 4
	case last == 0:
		return in.width(operand, r.reduced[0], 0, r.kept)
	}
	// Runs start wherever a multiple of the inner extent is.
	return in.width(operand, r.reduced[last], r.reduced[last].n, r.kept, r.reduced[:last])
}

// bindPartials reads accumulators that an earlier launch left, chunk by chunk, outputs side by side.
func (k *reduceKernel) bindPartials(src source, outs int) {
	k.partials = true
	for j, m := range k.f.parts {
		bytes := uint64(outs * src.partials * m.Size())
		k.parts = append(k.parts, k.pointer(fmt.Sprintf("part%d", j), m, false, 4, src.slot+j, 0, 0, bytes))
	}
	k.partStep = k.number("outs", outs)
	k.positions = src.partials
}

// bindSink yields what stores the accumulators of neighbouring outputs from o on.
func (k *reduceKernel) bindSink(dst sink, outs int) func(chunk, o kernel.Value, accs [][]kernel.Value) {
	if dst.chunks > 1 {
		var ptrs []kernel.Ptr
		for j, m := range k.f.parts {
			ptrs = append(ptrs, k.pointer(fmt.Sprintf("to%d", j), m, true, 4, dst.slot+j, 0, 0, uint64(outs*dst.chunks*m.Size())))
		}
		nOuts := k.number("outs", outs)
		return func(chunk, o kernel.Value, accs [][]kernel.Value) {
			at := k.Add(k.Mul(chunk, nOuts), o)
			for j, p := range ptrs {
				for e, acc := range accs {
					k.Store(p, k.AddI(at, e), acc[j])
				}
			}
		}
	}
	to := k.output(k.r.out.Type, dst.slot, outs, k.across)
	return func(_, o kernel.Value, accs [][]kernel.Value) {
		vs := make([]kernel.Value, len(accs))
		for e, acc := range accs {
			v := k.f.final(k.Builder, acc)
			if k.r.epilogue != nil {
				v = k.r.epilogue(k.Builder, v, k.AddI(o, e))
			}
			vs[e] = Narrow(k.Builder, k.r.out.Type, v)
		}
		to.store(o, vs)
	}
}

// newAccs yields n accumulators side by side.
func (k *reduceKernel) newAccs(n int) [][]kernel.Var {
	accs := make([][]kernel.Var, n)
	for i := range accs {
		accs[i] = k.accVars(k.f.ident(k.Builder))
	}
	return accs
}

// joined is one accumulator from those side by side.
func (k *reduceKernel) joined(accs [][]kernel.Var) []kernel.Value {
	acc := k.get(accs[0])
	for _, a := range accs[1:] {
		acc = k.f.join(k.Builder, acc, k.get(a))
	}
	return acc
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

// take steps an accumulator by the element at the given offsets.
func (k *reduceKernel) take(acc []kernel.Var, offs []kernel.Value, p kernel.Value) {
	vs := make([]kernel.Value, len(k.ins))
	for i, in := range k.ins {
		vs[i] = in.load(offs[i])
	}
	k.stepBy(acc, vs, p)
}

func (k *reduceKernel) stepBy(acc []kernel.Var, vs []kernel.Value, p kernel.Value) {
	k.set(acc, k.f.step(k.Builder, k.get(acc), k.f.elem(k.Builder, vs), k.position(p)))
}

// joinPartial joins the accumulator of chunk c.
func (k *reduceKernel) joinPartial(acc []kernel.Var, o, c kernel.Value) {
	at := k.Add(k.Mul(c, k.partStep), o)
	vs := make([]kernel.Value, len(k.parts))
	for i, p := range k.parts {
		vs[i] = k.Load(p, at)
	}
	k.set(acc, k.f.join(k.Builder, k.get(acc), vs))
}

// walk gathers positions [from, to) of k.across outputs from o on in one invocation.
func (k *reduceKernel) walk(o, from, to kernel.Value) [][]kernel.Value {
	if k.partials {
		accs := k.newAccs(1)
		k.For(from, to, k.index(1), func(c kernel.Value) { k.joinPartial(accs[0], o, c) })
		return [][]kernel.Value{k.get(accs[0])}
	}
	ways, run := k.f.ways, k.run
	if k.across > 1 {
		ways, run = k.across, k.runAcross
	}
	accs := k.newAccs(ways)
	starts := k.starts(o)
	rank := len(k.reduced.axes)
	switch rank {
	case 0:
		k.take(accs[0], starts, k.index(0))
	case 1:
		run(accs, starts, from, from, k.Sub(to, from))
	default:
		// Runs of the innermost axis, each addressed by one decomposition of the outer ones.
		pv := k.NewVar(from)
		k.Loop(func() {
			p := k.Get(pv)
			k.BreakIf(k.Not(k.Cmp(kernel.ULt, p, to)))
			q, i := k.reduced.extent[rank-1].DivMod(k.Builder, p)
			n := k.min(k.Sub(k.reduced.extent[rank-1].Extent(), i), k.Sub(to, p))
			run(accs, k.offsets(k.reduced, rank-1, q, starts), i, p, n)
			k.Set(pv, k.Add(p, n))
		})
	}
	if k.across == 1 {
		return [][]kernel.Value{k.joined(accs)}
	}
	out := make([][]kernel.Value, len(accs))
	for e, a := range accs {
		out[e] = k.get(a)
	}
	return out
}

// runAcross gathers n positions of neighbouring outputs, each into its own accumulator.
func (k *reduceKernel) runAcross(accs [][]kernel.Var, starts []kernel.Value, i, p, n kernel.Value) {
	last := k.reduced.stride[len(k.reduced.axes)-1]
	k.For(k.index(0), n, k.index(1), func(t kernel.Value) {
		vs := make([][]kernel.Value, len(accs))
		for j, in := range k.ins {
			off := k.advance(starts[j], last[j], k.Add(i, t))
			width := len(accs)
			if k.kept.stride[len(k.kept.axes)-1][j] == 0 {
				width = 1 // the same for all of them
			}
			got := in.loads(off, width)
			for e := range vs {
				vs[e] = append(vs[e], got[e%width])
			}
		}
		for e := range vs {
			k.stepBy(accs[e], vs[e], k.Add(p, t))
		}
	})
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
			for e := 0; e < 4; e += k.widths[j] {
				off := k.advance(offs[j], last[j], k.AddI(base, e))
				for i, v := range in.loads(off, k.widths[j]) {
					vs[e+i] = append(vs[e+i], v)
				}
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
	ways := k.f.ways
	if k.partials {
		ways = 1
	}
	accs := k.newAccs(ways)
	k.If(inside, func() { k.takeTurns(accs, o, member, from, to) }, nil)
	acc := k.joined(accs)
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
	if slices.Contains(k.widths, 4) {
		// Chunks begin at multiples of four.
		stop := k.Add(from, k.ShlI(k.ShrUI(k.Sub(to, from), 2), 2))
		k.For(k.Add(from, k.ShlI(member, 2)), stop, k.index(4*k.lanes), func(p kernel.Value) {
			offs := k.offsets(k.reduced, len(k.reduced.axes), p, starts)
			vs := make([][]kernel.Value, 4)
			for j, in := range k.ins {
				for e := 0; e < 4; e += k.widths[j] {
					off := offs[j]
					if e > 0 {
						off = k.offsets(k.reduced, len(k.reduced.axes), k.AddI(p, e), starts)[j]
					}
					for i, v := range in.loads(off, k.widths[j]) {
						vs[e+i] = append(vs[e+i], v)
					}
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
