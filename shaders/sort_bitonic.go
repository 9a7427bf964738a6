package shaders

import "nxvk/kernel"

// bitonic sorts rows of up to bitonicLength elements in shared memory, by Batcher's bitonic network over
// pairs of key and position: no two are equal, so the network is as good as a stable sort. Rows are
// filled up to a power of two; short ones share a workgroup.
func (s *sorting) bitonic() Launch {
	local := s.local()
	padded := 2
	for padded < s.along.n {
		padded *= 2
	}
	tile := max(padded, 2*local) // elements a workgroup
	name := s.name + "_bitonic"
	if tile > 2*local {
		name += "_long"
	}
	k := s.kernel(name, local)
	k.bindPlaces(true, true)
	rows := axesSize(s.rows)
	perGroup := tile / padded
	groups := (rows + perGroup - 1) / perGroup
	n, nRows := k.number("n", s.along.n), k.number("rows", rows)
	logPadded := k.number("log_padded", int(log2(padded)))
	size := k.number("padded", padded)
	mask := k.AddI(size, -1)
	nGroups, rowsEach := k.number("groups", groups), k.number("rows_each", perGroup)
	keyMem := memOfReg(s.keys.reg())
	keys := k.SharedArray(keyMem, tile)
	from := k.SharedArray(kernel.M32, tile)
	lane := k.BuiltinValue(kernel.LocalX)

	place := func(slot, group kernel.Value) (row, i, inside kernel.Value) {
		i = k.And(slot, mask)
		row = k.Add(k.Mul(group, rowsEach), k.Bin(kernel.ShrU, slot, logPadded))
		return row, i, k.And(k.Cmp(kernel.ULt, i, n), k.Cmp(kernel.ULt, row, nRows))
	}
	each := func(count int, f func(slot kernel.Value)) {
		for e := 0; e < count; e += local {
			f(k.AddI(lane, e))
		}
	}
	k.For(k.BuiltinValue(kernel.GroupX), nGroups, k.BuiltinValue(kernel.GroupsX), func(group kernel.Value) {
		k.Barrier() // the rows before may still be read
		each(tile, func(slot kernel.Value) {
			row, i, inside := place(slot, group)
			key := k.NewVar(k.ConstInt(s.keys.reg(), -1)) // beyond all keys, but for those that are the same
			k.If(inside, func() { k.Set(key, s.keys.key(k.Builder, k.load(k.enter(row), i))) }, nil)
			k.SStore(keys, slot, k.Get(key))
			k.SStore(from, slot, i)
		})
		// Runs of two, four … elements are merged, by comparisons ever closer.
		k.For(k.I32(1), k.AddI(logPadded, 1), k.I32(1), func(run kernel.Value) {
			step := k.NewVar(run)
			k.Loop(func() {
				left := k.Get(step)
				k.BreakIf(k.Cmp(kernel.IEq, left, k.I32(0)))
				half := k.AddI(left, -1)
				k.Barrier()
				each(tile/2, func(pair kernel.Value) {
					dist := k.Bin(kernel.Shl, k.I32(1), half)
					low := k.And(pair, k.AddI(dist, -1))
					a := k.Or(k.Bin(kernel.Shl, k.Bin(kernel.ShrU, pair, half), left), low)
					c := k.Or(a, dist)
					up := k.Cmp(kernel.IEq, k.And(k.Bin(kernel.ShrU, k.And(a, mask), run), k.I32(1)), k.I32(0))
					ka, kc := k.SLoad(keys, a), k.SLoad(keys, c)
					ia, ic := k.SLoad(from, a), k.SLoad(from, c)
					tie := k.And(k.Cmp(kernel.IEq, ka, kc), k.Cmp(kernel.ULt, ic, ia))
					after := k.Or(k.Cmp(kernel.ULt, kc, ka), tie)
					swap := k.Or(k.And(up, after), k.Not(k.Or(up, after)))
					k.If(swap, func() {
						k.SStore(keys, a, kc)
						k.SStore(keys, c, ka)
						k.SStore(from, a, ic)
						k.SStore(from, c, ia)
					}, nil)
				})
				k.Set(step, half)
			})
		})
		k.Barrier()
		each(tile, func(slot kernel.Value) {
			row, p, inside := place(slot, group)
			k.If(inside, func() {
				at := k.enter(row)
				i := k.SLoad(from, slot)
				k.store(at, p, k.load(at, i), i)
			}, nil)
		})
	})
	return k.launch([3]uint32{uint32(min(groups, MaxGroups)), 1, 1})
}
