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

	place := func(slot, group kernel.Value) (row, i, inside kernel.Value) {
		i = k.And(slot, mask)
		row = k.Add(k.Mul(group, rowsEach), k.Bin(kernel.ShrU, slot, logPadded))
		return row, i, k.And(k.Cmp(kernel.ULt, i, n), k.Cmp(kernel.ULt, row, nRows))
	}
	each := k.eachOf
	k.For(k.BuiltinValue(kernel.GroupX), nGroups, k.BuiltinValue(kernel.GroupsX), func(group kernel.Value) {
		k.Barrier() // the rows before may still be read
		each(tile, func(slot kernel.Value) {
			row, i, inside := place(slot, group)
			key := k.NewVar(k.ConstInt(s.keys.reg(), -1)) // beyond all keys, but for those that are the same
			k.If(inside, func() { k.Set(key, s.keys.key(k.Builder, k.load(k.enter(row), i))) }, nil)
			k.SStore(keys, slot, k.Get(key))
			k.SStore(from, slot, i)
		})
		k.network(keys, from, tile, logPadded, mask)
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

// eachOf calls f for every count/local-th of count slots, from this invocation's own on.
func (k *sortKernel) eachOf(count int, f func(slot kernel.Value)) {
	local := k.s.local()
	for e := 0; e < count; e += local {
		f(k.AddI(k.BuiltinValue(kernel.LocalX), e))
	}
}

// network sorts rows of 1<<logPadded pairs in shared memory, tile pairs in all. A barrier must follow it.
func (k *sortKernel) network(keys, from kernel.Shared, tile int, logPadded, mask kernel.Value) {
	// Runs of two, four … elements are merged, by comparisons ever closer.
	k.For(k.I32(1), k.AddI(logPadded, 1), k.I32(1), func(run kernel.Value) {
		step := k.NewVar(run)
		k.Loop(func() {
			left := k.Get(step)
			k.BreakIf(k.Cmp(kernel.IEq, left, k.I32(0)))
			half := k.AddI(left, -1)
			k.Barrier()
			k.eachOf(tile/2, func(pair kernel.Value) {
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
}

// bestOfTiles leaves the list of the best of each tile of bitonicLength elements of a row, or of the lists of an
// earlier launch.
func (s *sorting) bestOfTiles(src *candidates, dst candidates, share int) Launch {
	const tile = bitonicLength
	name, count := s.name+"_best_tiles", s.along.n
	if src != nil {
		name, count = name+"_of_lists", src.count
	}
	k := s.kernel(name, s.local())
	var inKeys, inFrom kernel.Ptr
	if src == nil {
		k.bindPlaces(true, false)
	} else {
		inKeys, inFrom = k.bindLists(*src, false)
	}
	toKeys, toFrom := k.bindLists(dst, true)
	n, items, shares := k.number("n", count), k.number("items", axesSize(s.rows)*share), k.divisor("share", share)
	keep := k.number("keep", s.keep)
	keys, from := k.SharedArray(memOfReg(s.keys.reg()), tile), k.SharedArray(kernel.M32, tile)
	none := origin{k.ConstInt(s.keys.reg(), -1), k.index(-1)} // comes after all others
	k.For(k.BuiltinValue(kernel.GroupX), items, k.BuiltinValue(kernel.GroupsX), func(item kernel.Value) {
		r, c := shares.DivMod(k.Builder, item)
		first := k.MulI(c, tile)
		k.Barrier() // the tile before may still be read
		k.eachOf(tile, func(slot kernel.Value) {
			i := k.Add(first, slot)
			key, at := k.NewVar(none.key), k.NewVar(none.from)
			k.If(k.Cmp(kernel.ULt, i, n), func() {
				if src == nil {
					k.Set(key, s.keys.key(k.Builder, k.load(k.enter(r), i)))
					k.Set(at, i)
					return
				}
				in := k.Add(k.Mul(r, n), i)
				k.Set(key, k.Load(inKeys, in))
				k.Set(at, k.Load(inFrom, in))
			}, nil)
			k.SStore(keys, slot, k.Get(key))
			k.SStore(from, slot, k.Get(at))
		})
		k.network(keys, from, tile, k.I32(int(log2(tile))), k.I32(tile-1))
		k.Barrier()
		lane := k.BuiltinValue(kernel.LocalX)
		k.If(k.Cmp(kernel.ULt, lane, keep), func() {
			to := k.Add(k.Mul(item, keep), lane)
			k.Store(toKeys, to, k.SLoad(keys, lane))
			k.Store(toFrom, to, k.SLoad(from, lane))
		}, nil)
	})
	return k.launch([3]uint32{uint32(min(axesSize(s.rows)*share, MaxGroups)), 1, 1})
}
