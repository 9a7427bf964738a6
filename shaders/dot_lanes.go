package shaders

import (
	"nxvk/graph"
	"nxvk/kernel"
)

// laneTile is the shape of a dot kernel without shared memory: each lane holds rows×cols
// accumulators, and the lanes of a workgroup stand side by side along the columns.
type laneTile struct {
	rows, cols int // 1, 2, or multiples of 4
	lanes      int
	unroll     int // contraction positions a round, 1 or a multiple of 4
}

// lanesDot is a contraction in register tiles: one workgroup for rows × cols·lanes results, and no
// shared memory. It is the shape for processors, where a workgroup's lanes are a vector's: loads
// are gathers, whose cost is by lane and not by byte, so a tile is as large as it pays to be.
type lanesDot struct {
	t        kernel.Target
	name     string
	d        *contraction
	ins      []Operand
	out      graph.Type
	fold     dotFolding
	tile     laneTile
	swap     bool // rows of the tile are b's free axes, columns a's
	epilogue epilogue
}

// chooseLanes yields the tile of a contraction, and whether one is worth while: few results of long
// sums are better spread along the sum. It looks at the free and the contracted sizes, and not
// closely, so that batches of any size share kernels.
func (l *lanesDot) chooseLanes() bool {
	m, n, inner := axesSize(l.d.rows), axesSize(l.d.cols), axesSize(l.d.inner)
	if len(l.d.inner) == 0 || axesSize(l.d.batch)*m*n < 256 && inner > 2048 {
		return false
	}
	if n <= 4 && m > n {
		l.swap = true
		m, n = n, m
	}
	l.tile = laneTile{rows: 8, cols: 8, lanes: 8, unroll: 4}
	switch {
	case m == 1:
		l.tile.rows = 1
	case m <= 4:
		l.tile.rows = 4
	}
	switch {
	case n <= 8:
		l.tile.cols = 1
	case n <= 16:
		l.tile.cols = 2
	case n <= 32:
		l.tile.cols = 4
	}
	f := &l.fold.fold
	if l.fold.alone != nil {
		f = l.fold.alone
	}
	if len(f.parts)*f.parts[0].Size() > 8 || l.out.Size() < 4 || l.ins[0].Type.Size() < 4 || l.ins[1].Type.Size() < 4 {
		// Pairs of F64 take twice the registers; narrow types take much code to widen and narrow, and
		// compiling that takes longer than most programs run.
		l.tile.rows, l.tile.cols = min(l.tile.rows, 4), min(l.tile.cols, 4)
	}
	return true
}

func (l *lanesDot) launch() Launch {
	d, tl := l.d, l.tile
	rows, cols, rowOp, colOp := d.rows, d.cols, 0, 1
	if l.swap {
		rows, cols, rowOp, colOp = cols, rows, 1, 0
	}
	m, n, batches := axesSize(rows), axesSize(cols), axesSize(d.batch)
	wide := batches*m*n >= 1<<31 || d.last() >= 1<<31
	for _, x := range l.ins {
		lo, hi := reach(x)
		wide = wide || hi-lo >= 1<<31
	}
	w := newWriter(l.name, l.t, tl.lanes, wide)
	k := lanesKernel{writer: w, lanesDot: l}
	ins := []*input{w.operand(l.ins[0], 0, false), w.operand(l.ins[1], 1, false)}
	k.to = w.result(l.out, d, d.cols)
	k.m, k.n = w.number("m", m), w.number("n", n)
	k.inner = w.bind("k", d.inner)
	k.count = w.number("k", axesSize(d.inner))
	boundRows, boundCols := w.bind("m", rows), w.bind("n", cols)

	rowTiles, colTiles := (m+tl.rows-1)/tl.rows, (n+tl.cols*tl.lanes-1)/(tl.cols*tl.lanes)
	groups := batches * rowTiles * colTiles
	body := func(group kernel.Value) {
		// Row tiles turn fastest, so that a panel of columns stays in the cache.
		rest, tr := w.divisor("row_tiles", rowTiles).DivMod(w.Builder, group)
		tc := rest
		starts := []kernel.Value{ins[0].start, ins[1].start}
		starts = append(starts, 0)
		if batches > 1 {
			var batch kernel.Value
			batch, tc = w.divisor("col_tiles", colTiles).DivMod(w.Builder, rest)
			starts = w.offsets(w.bind("batch", d.batch), len(d.batch), batch, starts)
		}
		lane := w.toIndex(w.BuiltinValue(kernel.LocalX))
		row0 := w.Mul(tr, w.index(tl.rows))
		col0 := w.Mul(w.Add(w.Mul(tc, w.index(tl.lanes)), lane), w.index(tl.cols))
		k.block(
			k.side(row0, tl.rows, k.m, ins[rowOp], rowOp, boundRows, starts[rowOp]),
			k.side(col0, tl.cols, k.n, ins[colOp], colOp, boundCols, starts[colOp]),
			starts[2])
	}
	if groups <= MaxGroups {
		body(w.toIndex(w.BuiltinValue(kernel.GroupX)))
	} else {
		w.For(w.toIndex(w.BuiltinValue(kernel.GroupX)), w.number("groups", groups), w.toIndex(w.BuiltinValue(kernel.GroupsX)), body)
	}
	return w.launch([3]uint32{uint32(min(groups, MaxGroups)), 1, 1})
}

// lanesKernel is the state of a kernel being built.
type lanesKernel struct {
	*writer
	*lanesDot
	to          *output
	inner       boundAxes
	m, n, count kernel.Value // rows, columns and contraction positions
}

// side is the part of an operand that a lane works on: some of the tile's rows, or of its columns.
type side struct {
	in      *input
	operand int
	at      []kernel.Value // their indices, which may lie beyond the edge
	off     []kernel.Value // their offsets, clamped to the edge: what is read twice is not stored
	step    kernel.Value   // stride of the innermost contraction axis, 0 for none
	axes    boundAxes
	across  int // neighbouring rows (columns) that one load takes
	along   int // neighbouring contraction positions that one load takes
}

func (k *lanesKernel) side(first kernel.Value, n int, count kernel.Value, in *input, operand int, axes boundAxes, start kernel.Value) *side {
	d := k.d
	last := len(d.inner) - 1
	s := &side{
		in: in, operand: operand, axes: axes, across: 1, along: 1,
		at: make([]kernel.Value, n), off: make([]kernel.Value, n),
		step: k.inner.stride[last][operand],
	}
	if len(axes.axes) == 1 {
		s.across = min(n, in.width(operand, axes.axes[0], axes.axes[0].n, d.batch, d.inner))
	}
	if s.across == 1 {
		s.along = in.width(operand, d.inner[last], 0, d.batch, axes.axes, d.inner[:last])
	}
	for i := range s.at {
		s.at[i] = k.AddI(first, i)
		if i%s.across == 0 {
			at := k.min(s.at[i], k.Sub(count, k.index(s.across)))
			offs := []kernel.Value{0, 0}
			offs[operand] = start
			s.off[i] = k.offsets(axes, len(axes.axes), at, offs)[operand]
		}
	}
	return s
}

// gather yields the values of a side at contraction positions p … p+n-1, from offset off on: by
// position, then by row (column), each brought to the type of products.
func (k *lanesKernel) gather(s *side, off, p kernel.Value, n int) [][]kernel.Value {
	bring := k.fold.left
	if s.operand == 1 {
		bring = k.fold.right
	}
	out := make([][]kernel.Value, n)
	for u := range out {
		out[u] = make([]kernel.Value, len(s.at))
	}
	along := s.along
	if n%along != 0 {
		along = 1
	}
	for i := 0; i < len(s.at); i += s.across {
		for u := 0; u < n; u += along {
			at := k.advance(k.sum(s.off[i], off), s.step, k.AddI(p, u))
			for e, v := range s.in.loads(at, s.across*along) {
				v = bring(k.Builder, v)
				if s.across > 1 {
					out[u][i+e] = v
				} else {
					out[u+e][i] = v
				}
			}
		}
	}
	return out
}

// block computes one tile.
func (k *lanesKernel) block(row, col *side, outStart kernel.Value) {
	f := &k.fold.fold
	if k.fold.alone != nil {
		f = k.fold.alone
	}
	acc := make([][]kernel.Var, len(row.at)*len(col.at))
	for i := range acc {
		for _, v := range f.ident(k.Builder) {
			acc[i] = append(acc[i], k.NewVar(v))
		}
	}
	get := func(i, j int) []kernel.Value {
		var vs []kernel.Value
		for _, v := range acc[i*len(col.at)+j] {
			vs = append(vs, k.Get(v))
		}
		return vs
	}
	// steps takes n positions from p on along the innermost contraction axis.
	steps := func(offs []kernel.Value, p kernel.Value, n int) {
		xs, ys := k.gather(row, offs[row.operand], p, n), k.gather(col, offs[col.operand], p, n)
		for i := range row.at {
			for j := range col.at {
				cur := get(i, j)
				for u := range xs {
					cur = f.step(k.Builder, cur, k.fold.times(k.Builder, xs[u][i], ys[u][j]), 0)
				}
				for x, v := range acc[i*len(col.at)+j] {
					k.Set(v, cur[x])
				}
			}
		}
	}
	one := k.index(1)
	run := func(offs []kernel.Value, n kernel.Value) {
		whole := k.index(0)
		if u := k.tile.unroll; u > 1 {
			whole = k.And(n, k.Not(k.index(u-1)))
			k.For(k.index(0), whole, k.index(u), func(p kernel.Value) { steps(offs, p, u) })
		}
		k.For(whole, n, one, func(p kernel.Value) { steps(offs, p, 1) })
	}
	if rank := len(k.d.inner); rank == 1 {
		run([]kernel.Value{0, 0}, k.count)
	} else {
		extent := k.inner.extent[rank-1]
		outer, _ := extent.DivMod(k.Builder, k.count)
		k.For(k.index(0), outer, one, func(q kernel.Value) {
			run(k.offsets(k.inner, rank-1, q, []kernel.Value{0, 0}), extent.Extent())
		})
	}

	k.store(row, col, outStart, func(i, j int, at kernel.Value) kernel.Value {
		v := f.final(k.Builder, get(i, j))
		if k.epilogue != nil {
			v = k.epilogue(k.Builder, v, at)
		}
		return Narrow(k.Builder, k.out, v)
	})
}

// store writes what lies inside the result of a tile whose element (i, j) is value(i, j, its flat
// index). Neighbours go out together where the result's rows are whole numbers of them.
func (k *lanesKernel) store(row, col *side, outStart kernel.Value, value func(i, j int, at kernel.Value) kernel.Value) {
	inner := col // the side whose neighbours lie side by side
	if k.swap {
		inner = row
	}
	place := func(s *side) []kernel.Value {
		out := make([]kernel.Value, len(s.at))
		for i := range out {
			out[i] = k.offsets(s.axes, len(s.axes.axes), s.at[i], []kernel.Value{0, 0, 0})[2]
		}
		return out
	}
	rowOut, colOut := place(row), place(col)
	group := min(len(inner.at), k.to.width)
	for a := 0; a < len(row.at)*len(col.at)/len(inner.at); a++ {
		for b := 0; b < len(inner.at); b += group {
			at := func(e int) (i, j int) {
				if k.swap {
					return b + e, a
				}
				return a, b + e
			}
			i, j := at(0)
			k.If(k.And(k.Cmp(kernel.ULt, row.at[i], k.m), k.Cmp(kernel.ULt, col.at[j], k.n)), func() {
				first := k.offset(k.sum(k.sum(rowOut[i], colOut[j]), outStart))
				vs := make([]kernel.Value, group)
				for e := range vs {
					i, j := at(e)
					vs[e] = value(i, j, k.AddI(first, e))
				}
				k.to.store(first, vs)
			}, nil)
		}
	}
}
