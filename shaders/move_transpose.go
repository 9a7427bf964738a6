package shaders

import (
	"nxvk/graph"
	"nxvk/kernel"
)

// Tile of a transposed copy: tileSide × tileSide elements pass through shared memory, so that reads and
// writes both run along memory. One row more keeps columns out of each other's banks.
const (
	tileSide = 32
	tileRows = 8
)

// transposedCopy is a copy whose operand runs along memory in another axis than the result does, by
// tiles. It yields nil where a plain copy is as good: on the cpu class, where shared memory is poison, for
// narrow axes, and for batches of more than the grid allows.
func transposedCopy(t kernel.Target, r *Region) *Launch {
	if t.Class == kernel.CPU || len(r.Nodes) != 0 || r.In[0].ByValue || r.In[0].Const {
		return nil
	}
	x := r.In[0]
	m := Merge(r.Shape, graph.Contiguous(r.Shape), BroadcastLayout(x.Shape, x.Layout, r.Shape))
	last := len(m.Extents) - 1
	if m.Wide || last < 1 || last > 2 || m.Maps[1].Class != Strided {
		return nil
	}
	st := m.Maps[1].Strides
	// The axis along which the operand runs: the one with stride 1, not the innermost.
	along := -1
	for i, s := range st[:last] {
		if s == 1 {
			along = i
		}
	}
	if along < 0 || m.Extents[along] < tileSide/2 || m.Extents[last] < tileSide/2 {
		return nil
	}
	batch := 1 // of the axis that is left, if there is one
	other := -1
	for i := range st[:last] {
		if i != along {
			other, batch = i, m.Extents[i]
		}
	}
	if batch > MaxGroups {
		return nil
	}
	rows, cols := m.Extents[along], m.Extents[last]
	gx, gy := (cols+tileSide-1)/tileSide, (rows+tileSide-1)/tileSide
	if gx > MaxGroups || gy > MaxGroups {
		return nil
	}
	outStr := graph.Shape(m.Extents).Strides()
	batchIn, batchOut := 0, 0
	if other >= 0 {
		batchIn, batchOut = st[other], outStr[other]
	}

	elem := bitsType(x.Type)
	mk := &maker{Builder: kernel.NewBuilder("transpose."+x.Type.String(), t, [3]uint32{tileSide, tileRows, 1})}
	out := mk.pointer("out", MemOf(elem), m, 0, 1, elem, 1, true)
	in := mk.pointer("in", MemOf(elem), m, 1, 0, elem, 1, false)
	arg := func(name string, n int) kernel.Value { return mk.scalar(name, kernel.I32, immInt(n)) }
	nrows, ncols := arg("rows", rows), arg("cols", cols)
	bias, colIn := arg("bias", m.Maps[1].Bias), arg("col_in", st[last])
	rowOut := arg("row_out", outStr[along])
	bIn, bOut := arg("batch_in", batchIn), arg("batch_out", batchOut)

	tileMem := kernel.M32
	if elem == graph.U64 {
		tileMem = kernel.M64
	}
	tile := mk.SharedArray(tileMem, tileSide*(tileSide+1))
	lx, ly := mk.BuiltinValue(kernel.LocalX), mk.BuiltinValue(kernel.LocalY)
	col0 := mk.MulI(mk.BuiltinValue(kernel.GroupX), tileSide)
	row0 := mk.MulI(mk.BuiltinValue(kernel.GroupY), tileSide)
	z := mk.BuiltinValue(kernel.GroupZ)
	inBase, outBase := mk.Add(bias, mk.Mul(z, bIn)), mk.Mul(z, bOut)
	// Neighbouring invocations are neighbours along the rows when they read …
	for k := 0; k < tileSide; k += tileRows {
		row, c := mk.Add(row0, lx), mk.AddI(ly, k)
		col := mk.Add(col0, c)
		mk.If(mk.And(mk.Cmp(kernel.ULt, row, nrows), mk.Cmp(kernel.ULt, col, ncols)), func() {
			v := mk.Load(in, mk.Add(mk.Add(inBase, row), mk.Mul(col, colIn)))
			mk.SStore(tile, mk.Add(mk.MulI(c, tileSide+1), lx), v)
		}, nil)
	}
	mk.Barrier()
	// … and along the columns when they write.
	for k := 0; k < tileSide; k += tileRows {
		rr := mk.AddI(ly, k)
		row, col := mk.Add(row0, rr), mk.Add(col0, lx)
		mk.If(mk.And(mk.Cmp(kernel.ULt, row, nrows), mk.Cmp(kernel.ULt, col, ncols)), func() {
			v := mk.SLoad(tile, mk.Add(mk.MulI(lx, tileSide+1), rr))
			mk.Store(out, mk.Add(mk.Add(outBase, mk.Mul(row, rowOut)), col), v)
		}, nil)
	}
	l := mk.launch([3]uint32{uint32(gx), uint32(gy), uint32(batch)})
	return &l
}
