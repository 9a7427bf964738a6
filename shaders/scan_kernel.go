package shaders

import (
	"fmt"

	"nxvk/kernel"
)

// scanKernel is the state of a kernel of a scan.
type scanKernel struct {
	*writer
	s    *scan
	f    scanForm
	rows int
	// of the accumulators of chunks, chunk by chunk, rows side by side
	parts   []kernel.Ptr
	partRow kernel.Value
	shared  []kernel.Shared
}

func (s *scan) kernel(name string, f scanForm, shared bool) *scanKernel {
	local := groupSize(s.t)
	if s.t.Class == kernel.CPU {
		local = cpuShape.local
	}
	k := &scanKernel{writer: newWriter(name, s.t, local, s.wide), s: s, f: f, rows: axesSize(s.kept)}
	if shared {
		for _, m := range s.fold.parts {
			k.shared = append(k.shared, k.SharedArray(m, local))
		}
	}
	return k
}

// bindParts adds the accumulators of chunks.
func (k *scanKernel) bindParts(write bool) {
	for j, m := range k.s.fold.parts {
		bytes := uint64(k.rows * k.f.chunks * m.Size())
		k.parts = append(k.parts, k.pointer(fmt.Sprintf("part%d", j), m, write, 4, scanTempSlot+j, 0, 0, bytes))
	}
	k.partRow = k.number("rows", k.rows)
}

func (k *scanKernel) part(chunk, row kernel.Value) kernel.Value {
	return k.Add(k.Mul(chunk, k.partRow), row)
}

func (k *scanKernel) loadParts(at kernel.Value) []kernel.Value {
	out := make([]kernel.Value, len(k.parts))
	for j, p := range k.parts {
		out[j] = k.Load(p, at)
	}
	return out
}

func (k *scanKernel) storeParts(at kernel.Value, acc []kernel.Value) {
	for j, p := range k.parts {
		k.Store(p, at, acc[j])
	}
}

func (k *scanKernel) vars(init []kernel.Value) []kernel.Var {
	out := make([]kernel.Var, len(init))
	for i, v := range init {
		out[i] = k.NewVar(v)
	}
	return out
}

func (k *scanKernel) getAll(vs []kernel.Var) []kernel.Value {
	out := make([]kernel.Value, len(vs))
	for i, v := range vs {
		out[i] = k.Get(v)
	}
	return out
}

func (k *scanKernel) setAll(vs []kernel.Var, to []kernel.Value) {
	for i, v := range vs {
		k.Set(v, to[i])
	}
}

// over runs body for each of n items: one an invocation, or one a workgroup.
func (k *scanKernel) over(n int, perGroup bool, body func(item kernel.Value)) [3]uint32 {
	local := 1
	if !perGroup {
		local = k.local()
	}
	groups := (n + local - 1) / local
	items := k.number("items", n)
	one := func(group kernel.Value) {
		if perGroup {
			body(group)
			return
		}
		item := k.Add(k.Mul(group, k.index(local)), k.toIndex(k.BuiltinValue(kernel.LocalX)))
		k.If(k.Cmp(kernel.ULt, item, items), func() { body(item) }, nil)
	}
	if groups <= MaxGroups {
		one(k.toIndex(k.BuiltinValue(kernel.GroupX)))
	} else {
		k.For(k.toIndex(k.BuiltinValue(kernel.GroupX)), k.number("groups", groups), k.toIndex(k.BuiltinValue(kernel.GroupsX)), one)
	}
	return [3]uint32{uint32(min(groups, MaxGroups)), 1, 1}
}

func (k *scanKernel) local() int {
	if k.T.Class == kernel.CPU {
		return cpuShape.local
	}
	return groupSize(k.T)
}

// carries turns the accumulators of a row's chunks into those of everything before each chunk.
func (s *scan) carries(f scanForm) Launch {
	shared := s.t.Class != kernel.CPU && f.chunks > 64
	k := s.kernel(s.name+"_carries", f, shared)
	k.bindParts(true)
	n := k.number("chunks", f.chunks)
	grid := k.over(k.rows, shared, func(row kernel.Value) {
		load := func(c kernel.Value) []kernel.Value { return k.loadParts(k.part(c, row)) }
		if !shared {
			acc := k.vars(s.fold.ident(k.Builder))
			k.For(k.index(0), n, k.index(1), func(c kernel.Value) {
				v, before := load(c), k.getAll(acc)
				k.storeParts(k.part(c, row), before)
				k.setAll(acc, s.fold.join(k.Builder, before, v))
			})
			return
		}
		k.tiles(k.index(0), n, s.fold.ident(k.Builder), load, func(c kernel.Value, before, _ []kernel.Value) {
			k.storeParts(k.part(c, row), before)
		})
	})
	return k.launch(grid)
}

// walk scans every chunk from what came before it, and stores the results.
func (s *scan) walk(f scanForm) Launch {
	k := s.kernel(s.name, f, f.lanes > 1)
	in := k.operand(s.x, 0, s.fold.raw)
	part, per := s.out.Type.Part(), 1 // parts of an element
	if s.pairs {
		per = 2
	}
	to := k.output(part, scanOutSlot, per*s.out.Shape.Size(), 4)
	kept := k.bind("row", s.kept)
	along := k.bind("at", []axis{s.along}).stride[0]
	n := k.number("n", s.along.n)
	var outStart kernel.Value
	if s.outStart != 0 {
		outStart = k.number("out_start", s.outStart)
	}
	var length kernel.Value
	var nRows Divisor
	if f.chunks > 1 {
		k.bindParts(false)
		length = k.number("length", f.length)
		nRows = k.divisor("n_rows", k.rows)
	}
	grid := k.over(k.rows*f.chunks, f.lanes > 1, func(item kernel.Value) {
		row, from, end := item, k.index(0), n
		acc := s.fold.ident(k.Builder)
		if f.chunks > 1 {
			var chunk kernel.Value
			chunk, row = nRows.DivMod(k.Builder, item)
			from = k.Mul(chunk, length)
			end = k.min(k.Add(from, length), n)
			acc = k.loadParts(k.part(chunk, row))
		}
		starts := k.offsets(kept, len(kept.axes), row, []kernel.Value{in.start, outStart})
		elem := func(p kernel.Value) []kernel.Value {
			return s.fold.elem(k.Builder, in.loads(k.advance(starts[0], along[0], p), per))
		}
		store := func(p kernel.Value, accs ...[]kernel.Value) {
			var vs []kernel.Value
			for _, a := range accs {
				for i := range per {
					vs = append(vs, Narrow(k.Builder, part, s.fold.final(k.Builder, a[i:])))
				}
			}
			to.store(k.offset(k.advance(starts[1], along[1], p)), vs)
		}
		if f.lanes > 1 {
			first := s.fold.ident(k.Builder)
			load := func(p kernel.Value) []kernel.Value { return s.fold.step(k.Builder, first, elem(p), k.index(0)) }
			k.tiles(from, end, acc, load, func(p kernel.Value, _, upto []kernel.Value) { store(p, upto) })
			return
		}
		held := k.vars(acc)
		step := func(v []kernel.Value) []kernel.Value {
			a := s.fold.step(k.Builder, k.getAll(held), v, k.index(0))
			k.setAll(held, a)
			return a
		}
		rest := from
		if s.quads(in) {
			rest = k.Add(from, k.ShlI(k.ShrUI(k.Sub(end, from), 2), 2))
			k.For(from, rest, k.index(4), func(p kernel.Value) {
				var accs [][]kernel.Value
				for _, v := range in.loads(k.advance(starts[0], along[0], p), 4) {
					accs = append(accs, step(s.fold.elem(k.Builder, []kernel.Value{v})))
				}
				store(p, accs...)
			})
		}
		k.For(rest, end, k.index(1), func(p kernel.Value) { store(p, step(elem(p))) })
	})
	return k.launch(grid)
}

// tiles scans positions [from, end) by all invocations of a workgroup, from acc on. load yields the
// accumulator of one position; store takes a position, the accumulator of all before it and that
// of all up to it. Every invocation owns scanOwn consecutive positions of a tile.
func (k *scanKernel) tiles(from, end kernel.Value, acc []kernel.Value, load func(p kernel.Value) []kernel.Value, store func(p kernel.Value, before, upto []kernel.Value)) {
	f := &k.s.fold
	lane := k.BuiltinValue(kernel.LocalX)
	local := k.local()
	carry := k.vars(acc)
	last := k.AddI(end, -1)
	k.For(from, end, k.index(local*scanOwn), func(base kernel.Value) {
		mine := k.Add(base, k.ShlI(k.toIndex(lane), 2))
		var own [scanOwn][]kernel.Value
		for e := range own {
			// Positions past the end repeat the last: they are stored nowhere, and nothing comes after them.
			v := load(k.min(k.AddI(mine, e), last))
			if e > 0 {
				v = f.join(k.Builder, own[e-1], v)
			}
			own[e] = v
		}
		total := own[scanOwn-1]
		k.Barrier() // the tile before may still be read
		k.shareAll(lane, total)
		k.Barrier()
		for d := 1; d < local; d *= 2 {
			far := k.Cmp(kernel.ULe, k.I32(d), lane)
			from := k.Select(far, k.AddI(lane, -d), lane)
			joined := f.join(k.Builder, k.sharedAt(from), total)
			for j := range joined {
				joined[j] = k.Select(far, joined[j], total[j])
			}
			total = joined
			k.Barrier()
			k.shareAll(lane, total)
			k.Barrier()
		}
		first := k.Cmp(kernel.IEq, lane, k.I32(0))
		left := k.sharedAt(k.Select(first, lane, k.AddI(lane, -1)))
		held := k.getAll(carry)
		before := f.join(k.Builder, held, left)
		for j := range before {
			before[j] = k.Select(first, held[j], before[j])
		}
		base0 := before
		for e := range own {
			p := k.AddI(mine, e)
			upto := f.join(k.Builder, base0, own[e])
			b := before
			k.If(k.Cmp(kernel.ULt, p, end), func() { store(p, b, upto) }, nil)
			before = upto
		}
		k.setAll(carry, f.join(k.Builder, held, k.sharedAt(k.I32(local-1))))
	})
}

func (k *scanKernel) shareAll(at kernel.Value, acc []kernel.Value) {
	for j, s := range k.shared {
		k.SStore(s, at, acc[j])
	}
}

func (k *scanKernel) sharedAt(at kernel.Value) []kernel.Value {
	out := make([]kernel.Value, len(k.shared))
	for j, s := range k.shared {
		out[j] = k.SLoad(s, at)
	}
	return out
}
