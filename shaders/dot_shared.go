package shaders

import (
	"nxvk/graph"
	"nxvk/kernel"
)

// sharedTile is the shape of a dot kernel with shared memory: a workgroup computes rows×cols results, each
// invocation perRow×perCol of them, and walks the contraction depth positions at a time.
type sharedTile struct {
	rows, cols     int
	perRow, perCol int
	depth          int
}

func (t sharedTile) invocations() int { return t.rows / t.perRow * (t.cols / t.perCol) }

// The tiles, largest first: a larger one reads less, a smaller one fills the device with fewer results.
// A compensated result takes three registers where a plain one takes one.
var (
	plainTiles = []sharedTile{{128, 128, 8, 8, 16}, {64, 64, 4, 4, 16}, {32, 32, 2, 4, 16}}
	pairTiles  = []sharedTile{{128, 64, 8, 4, 16}, {64, 64, 4, 4, 16}, {32, 32, 2, 4, 16}}
)

// sharedDot is a contraction in tiles that a workgroup reads into shared memory once.
type sharedDot struct {
	t        kernel.Target
	name     string
	d        *contraction
	ins      []Operand
	out      graph.Type
	fold     dotFolding
	tile     sharedTile
	chunks   int // pieces of the contraction, a second launch joins them
	length   int // positions a piece, a multiple of the tile's depth
	epilogue epilogue
}

// choose yields whether tiles in shared memory are worth while, which they are not for vectors,
// and which.
func (s *sharedDot) choose() bool {
	m, n, k := axesSize(s.d.rows), axesSize(s.d.cols), axesSize(s.d.inner)
	if m <= 4 || n <= 4 || k < 4 {
		return false
	}
	tiles := plainTiles
	if len(s.fold.parts) == 2 {
		tiles = pairTiles
	}
	const busy = 128 // workgroups that fill a large device
	groups := 0
	for _, t := range tiles {
		via := memOfReg(s.fold.via)
		if (t.rows+t.cols+2*pad)*t.depth*via.Size() > s.t.MaxShared || t.invocations() > s.t.MaxInvocations {
			continue
		}
		s.tile = t
		groups = axesSize(s.d.batch) * ((m + t.rows - 1) / t.rows) * ((n + t.cols - 1) / t.cols)
		if groups >= busy {
			break
		}
	}
	if groups == 0 {
		return false
	}
	s.chunks, s.length = 1, k
	// Few results of a long sum: pieces of at least 64 positions.
	if want := min(2*busy/groups, k/64); want > 1 {
		s.length = ((k+want-1)/want + s.tile.depth - 1) / s.tile.depth * s.tile.depth
		s.chunks = (k + s.length - 1) / s.length
	}
	return true
}

// exactDepth is the longest contraction whose f32 products are each gathered with their error (or in F64).
// Longer ones are summed plainly within a tile and gathered with their errors between tiles, at a
// fifth of the cost: the errors of many tiles cancel, those of few need not (up to 1.3 · 2^-24 Σ|ai·bi|
// was seen with 40 positions).
const exactDepth = 256

// tilewise reports whether tiles of plain f32 sums are gathered with their errors.
func (s *sharedDot) tilewise() bool {
	return len(s.fold.parts) == 2 && s.fold.via == kernel.F32 && axesSize(s.d.inner) > exactDepth
}

// pad keeps the rows of a shared tile on different banks, and aligned to four.
const pad = 4

// plan gathers chunks, and joins them; the results are dense, in the order of batch, rows, columns.
func (s *sharedDot) plan() *Plan {
	outs := axesSize(s.d.results())
	p := &Plan{}
	for _, m := range s.fold.parts {
		p.Temps = append(p.Temps, uint64(outs*s.chunks*m.Size()))
	}
	join := reduction{t: s.t, name: s.name, ins: s.ins, out: graph.Spec{Type: s.out, Shape: graph.Shape{outs}}, fold: s.fold.fold, epilogue: s.epilogue, kept: []axis{{outs, []int{1}}}}
	src := source{partials: s.chunks, slot: 3, wide: outs*s.chunks >= 1<<31}
	p.Launches = append(p.Launches, s.launch(), join.emit(&s.fold.fold, src, sink{chunks: 1, slot: 2}, sharing{lanes: 1, across: 1}))
	return p
}

func (s *sharedDot) launch() Launch {
	d, tl := s.d, s.tile
	m, n, batches := axesSize(d.rows), axesSize(d.cols), axesSize(d.batch)
	wide := batches*m*n*s.chunks >= 1<<31 || d.last() >= 1<<31
	for _, x := range s.ins {
		lo, hi := reach(x)
		wide = wide || hi-lo >= 1<<31
	}
	w := newWriter(s.name, s.t, tl.invocations(), wide)
	k := &sharedKernel{writer: w, sharedDot: s}
	k.f = &s.fold.fold
	if s.fold.alone != nil && s.chunks == 1 {
		k.f = s.fold.alone
	}
	k.m, k.n, k.count = w.number("m", m), w.number("n", n), w.number("k", axesSize(d.inner))
	k.inner = w.bind("k", d.inner)
	k.sides[0] = k.newSide(0, tl.rows, tl.perRow, k.m, d.rows)
	k.sides[1] = k.newSide(1, tl.cols, tl.perCol, k.n, d.cols)
	store := k.sink(batches * m * n)

	rowTiles, colTiles := (m+tl.rows-1)/tl.rows, (n+tl.cols-1)/tl.cols
	groups := rowTiles * colTiles * batches * s.chunks
	body := func(group kernel.Value) {
		rest, tr := w.divisor("row_tiles", rowTiles).DivMod(w.Builder, group)
		tc := rest
		starts := []kernel.Value{k.sides[0].in.start, k.sides[1].in.start}
		from, to, chunk := w.index(0), k.count, w.index(0)
		starts = append(starts, 0)
		if s.chunks > 1 || batches > 1 {
			rest, tc = w.divisor("col_tiles", colTiles).DivMod(w.Builder, rest)
		}
		if s.chunks > 1 {
			rest, chunk = w.divisor("chunks", s.chunks).DivMod(w.Builder, rest)
			length := w.number("length", s.length)
			from = w.Mul(chunk, length)
			to = w.min(w.Add(from, length), k.count)
		}
		if batches > 1 {
			starts = w.offsets(w.bind("batch", d.batch), len(d.batch), rest, starts)
			if s.chunks > 1 { // results of a chunk are dense
				starts[2] = w.Mul(rest, w.Mul(k.m, k.n))
			}
		}
		k.block([2]kernel.Value{w.Mul(tr, w.index(tl.rows)), w.Mul(tc, w.index(tl.cols))}, starts, from, to,
			func(i, j kernel.Value, acc [][]kernel.Value) { store(chunk, starts[2], i, j, acc) })
	}
	if groups <= MaxGroups {
		body(w.toIndex(w.BuiltinValue(kernel.GroupX)))
	} else {
		w.For(w.toIndex(w.BuiltinValue(kernel.GroupX)), w.number("groups", groups), w.toIndex(w.BuiltinValue(kernel.GroupsX)), body)
	}
	return w.launch([3]uint32{uint32(min(groups, MaxGroups)), 1, 1})
}

// sharedKernel is the state of a kernel being built.
type sharedKernel struct {
	*writer
	*sharedDot
	f           *fold
	inner       boundAxes
	m, n, count kernel.Value
	sides       [2]*sharedSide
}

// sharedSide is an operand's part of a tile: extent rows (columns) by depth positions, in shared memory by
// position.
type sharedSide struct {
	in      *input
	operand int
	extent  int
	per     int // rows (columns) of an invocation's results
	count   kernel.Value
	axes    boundAxes
	tile    kernel.Shared
	// The invocations read vectors of width elements, along the contraction or across it.
	width int
	along bool
}

func (k *sharedKernel) newSide(operand, extent, per int, count kernel.Value, axes []axis) *sharedSide {
	d := k.d
	s := &sharedSide{operand: operand, extent: extent, per: per, count: count, width: 1}
	s.in = k.operand(k.ins[operand], operand, false)
	s.axes = k.bind([]string{"m", "n"}[operand], axes)
	s.tile = k.SharedArray(memOfReg(k.fold.via), (extent+pad)*k.tile.depth)
	last := len(d.inner) - 1
	if len(axes) == 1 && axes[0].stride[operand] == 1 {
		s.width = s.in.width(operand, axes[0], axes[0].n, d.batch, d.inner)
		return s
	}
	s.along = d.inner[last].stride[operand] == 1
	if s.along && last == 0 {
		s.width = s.in.width(operand, d.inner[0], d.inner[0].n, d.batch, axes)
	}
	return s
}

// place is where an invocation's share number i of a side's tile stands: row (column) and position.
func (k *sharedKernel) place(s *sharedSide, i int) (row, pos kernel.Value) {
	unit := k.AddI(k.BuiltinValue(kernel.LocalX), i*k.tile.invocations())
	if s.along {
		per := k.tile.depth / s.width
		return k.Bin(kernel.UDiv, unit, k.I32(per)), k.MulI(k.Bin(kernel.URem, unit, k.I32(per)), s.width)
	}
	per := s.extent / s.width
	return k.MulI(k.Bin(kernel.URem, unit, k.I32(per)), s.width), k.Bin(kernel.UDiv, unit, k.I32(per))
}

func (k *sharedKernel) shares(s *sharedSide) int {
	return s.extent * k.tile.depth / s.width / k.tile.invocations()
}

// fetch reads an invocation's shares of a side's tile at position p. Beyond the edges of the operand
// it reads the last element, beyond the contraction zeros take its place.
func (k *sharedKernel) fetch(s *sharedSide, first, start, p, to kernel.Value, rowOffs []kernel.Value) []kernel.Value {
	bring := k.fold.left
	if s.operand == 1 {
		bring = k.fold.right
	}
	var out []kernel.Value
	for i := range k.shares(s) {
		_, pos := k.place(s, i)
		at := k.Add(p, k.toIndex(pos))
		step := 1
		if s.along {
			step = s.width
		}
		inside := k.Cmp(kernel.ULt, at, to)
		at = k.min(at, k.Sub(k.count, k.index(step)))
		offs := []kernel.Value{0, 0}
		offs[s.operand] = rowOffs[i]
		off := k.offsets(k.inner, len(k.d.inner), at, offs)[s.operand]
		for e, v := range s.in.loads(off, s.width) {
			v = bring(k.Builder, v)
			in := inside
			if s.along && e > 0 {
				in = k.Cmp(kernel.ULt, k.AddI(k.Add(p, k.toIndex(pos)), e), to)
			}
			out = append(out, k.Select(in, v, k.Zero(k.TypeOf(v))))
		}
	}
	return out
}

// rowOffsets are the offsets of the rows (columns) of an invocation's shares.
func (k *sharedKernel) rowOffsets(s *sharedSide, first, start kernel.Value) []kernel.Value {
	var out []kernel.Value
	for i := range k.shares(s) {
		row, _ := k.place(s, i)
		last := 1
		if !s.along {
			last = s.width
		}
		at := k.min(k.Add(first, k.toIndex(row)), k.Sub(s.count, k.index(last)))
		offs := []kernel.Value{0, 0}
		offs[s.operand] = start
		out = append(out, k.offsets(s.axes, len(s.axes.axes), at, offs)[s.operand])
	}
	return out
}

// put stores fetched elements into the side's shared tile.
func (k *sharedKernel) put(s *sharedSide, vs []kernel.Value) {
	for i := range k.shares(s) {
		row, pos := k.place(s, i)
		for e := range s.width {
			r, p := row, pos
			if s.along {
				p = k.AddI(pos, e)
			} else {
				r = k.AddI(row, e)
			}
			k.SStore(s.tile, k.Add(k.MulI(p, s.extent+pad), r), vs[i*s.width+e])
		}
	}
}

// block computes one tile over positions [from, to) and hands out each result's accumulator.
func (k *sharedKernel) block(first [2]kernel.Value, starts []kernel.Value, from, to kernel.Value, store func(i, j kernel.Value, acc [][]kernel.Value)) {
	tl := k.tile
	var held [2][]kernel.Var
	var rowOffs [2][]kernel.Value
	for o, s := range k.sides {
		rowOffs[o] = k.rowOffsets(s, first[o], starts[o])
		for _, v := range k.fetch(s, first[o], starts[o], from, to, rowOffs[o]) {
			held[o] = append(held[o], k.NewVar(v))
		}
	}
	lane := k.BuiltinValue(kernel.LocalX)
	perLine := tl.cols / tl.perCol
	mine := [2]kernel.Value{
		k.MulI(k.Bin(kernel.UDiv, lane, k.I32(perLine)), tl.perRow),
		k.MulI(k.Bin(kernel.URem, lane, k.I32(perLine)), tl.perCol),
	}
	acc := make([][]kernel.Var, tl.perRow*tl.perCol)
	for i := range acc {
		for _, v := range k.f.ident(k.Builder) {
			acc[i] = append(acc[i], k.NewVar(v))
		}
	}
	k.For(from, to, k.index(tl.depth), func(p kernel.Value) {
		k.Barrier()
		for o, s := range k.sides {
			var vs []kernel.Value
			for _, h := range held[o] {
				vs = append(vs, k.Get(h))
			}
			k.put(s, vs)
		}
		k.Barrier()
		next := k.AddI(p, tl.depth)
		k.If(k.Cmp(kernel.ULt, next, to), func() { // so that memory works while we compute
			for o, s := range k.sides {
				for i, v := range k.fetch(s, first[o], starts[o], next, to, rowOffs[o]) {
					k.Set(held[o][i], v)
				}
			}
		}, nil)
		k.multiply(acc, mine)
	})
	for i := range tl.perRow {
		vs := make([][]kernel.Value, tl.perCol)
		for j := range vs {
			for _, v := range acc[i*tl.perCol+j] {
				vs[j] = append(vs[j], k.Get(v))
			}
		}
		store(k.Add(first[0], k.toIndex(k.AddI(mine[0], i))), k.Add(first[1], k.toIndex(mine[1])), vs)
	}
}

// multiply gathers one tile's products. Compensated sums are plain within the tile, whose depth bounds
// their error, and exact between tiles.
func (k *sharedKernel) multiply(acc [][]kernel.Var, mine [2]kernel.Value) {
	tl := k.tile
	pairs := k.tilewise()
	cur := make([][]kernel.Value, len(acc))
	for i := range acc {
		if pairs {
			continue
		}
		for _, v := range acc[i] {
			cur[i] = append(cur[i], k.Get(v))
		}
	}
	for u := range tl.depth {
		var vs [2][]kernel.Value
		for o, s := range k.sides {
			base := k.AddI(mine[o], u*(s.extent+pad))
			for e := range s.per {
				vs[o] = append(vs[o], k.SLoad(s.tile, k.AddI(base, e)))
			}
		}
		for i := range tl.perRow {
			for j := range tl.perCol {
				x, y := vs[0][i], vs[1][j]
				c := &cur[i*tl.perCol+j]
				switch {
				case pairs && u == 0:
					*c = []kernel.Value{k.Mul(x, y)}
				case pairs || k.fold.via == kernel.F32 && len(*c) == 1:
					*c = []kernel.Value{k.Mad(x, y, (*c)[0])}
				default:
					*c = k.f.step(k.Builder, *c, k.fold.times(k.Builder, x, y), 0)
				}
			}
		}
	}
	for i := range acc {
		if pairs {
			cur[i] = k.f.step(k.Builder, []kernel.Value{k.Get(acc[i][0]), k.Get(acc[i][1])}, cur[i], 0)
		}
		for x, v := range acc[i] {
			k.Set(v, cur[i][x])
		}
	}
}

// placed is the offset in the result of a row (column).
func (k *sharedKernel) placed(side int, i kernel.Value) kernel.Value {
	axes := k.sides[side].axes
	return k.offsets(axes, len(axes.axes), i, []kernel.Value{0, 0, 0})[2]
}

// sink yields what stores neighbouring results (i, j …), or their accumulators as chunk's.
func (k *sharedKernel) sink(outs int) func(chunk, outStart, i, j kernel.Value, acc [][]kernel.Value) {
	perCol := k.tile.perCol
	if k.chunks > 1 {
		var ptrs []kernel.Ptr
		for x, m := range k.f.parts {
			ptrs = append(ptrs, k.pointer("to", m, true, 4, 3+x, 0, 0, uint64(outs*k.chunks*m.Size())))
		}
		nOuts := k.number("outs", outs)
		return func(chunk, outStart, i, j kernel.Value, acc [][]kernel.Value) {
			at := k.sum(k.Add(k.Add(k.Mul(chunk, nOuts), k.Mul(i, k.n)), j), outStart)
			for e := range acc {
				k.If(k.And(k.Cmp(kernel.ULt, i, k.m), k.Cmp(kernel.ULt, k.AddI(j, e), k.n)), func() {
					for x, p := range ptrs {
						k.Store(p, k.AddI(at, e), acc[e][x])
					}
				}, nil)
			}
		}
	}
	to := k.result(k.out, k.d, k.d.cols)
	group := min(perCol, to.width)
	return func(_, outStart, i, j kernel.Value, acc [][]kernel.Value) {
		for b := 0; b < len(acc); b += group {
			k.If(k.And(k.Cmp(kernel.ULt, i, k.m), k.Cmp(kernel.ULt, k.AddI(j, b), k.n)), func() {
				at := k.offset(k.sum(k.sum(k.placed(0, i), k.placed(1, k.AddI(j, b))), outStart))
				vs := make([]kernel.Value, group)
				for e := range vs {
					v := k.f.final(k.Builder, acc[b+e])
					if k.epilogue != nil {
						v = k.epilogue(k.Builder, v, k.AddI(at, e))
					}
					vs[e] = Narrow(k.Builder, k.out, v)
				}
				to.store(at, vs)
			}, nil)
		}
	}
}
