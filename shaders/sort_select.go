package shaders

import "nxvk/kernel"

// A few of the greatest of many need no sort. On processors each lane goes through a share of a row with a list
// of the best that it has met, in order; lanes of a second launch go through these lists in the same way
// where there are many; and what is left is ranked. On GPUs workgroups sort tiles, and tiles of the best of
// tiles. Pairs of key and position are compared, so no order of visits shows.

// Selection pays up to selectMost results, where a row has selectLeast elements for each of them.
const (
	selectMost  = 128
	selectLeast = 32
	selectShort = 256 // elements of a row, at least
)

// selects reports whether the planner selects.
func (s *sorting) selects() bool {
	n := s.along.n
	if s.t.Class == kernel.CPU && s.t.Num.ShortLoops {
		return false // a list that is kept in order takes any number of rounds
	}
	if s.t.Class != kernel.CPU && (s.wide || n <= bitonicLength || s.local() < selectMost) {
		return false
	}
	return s.keep <= selectMost && n >= selectShort && n/s.keep >= selectLeast
}

// candidates are lists of pairs in temporaries: count pairs for each row.
type candidates struct {
	keys, from int // slots
	count      int
}

func (s *sorting) selection() *Plan {
	n, rows := s.along.n, axesSize(s.rows)
	p := &Plan{}
	idx := uint64(4)
	if s.wide {
		idx = 8
	}
	lists := func(lanes int) candidates {
		count := lanes * s.keep
		p.Temps = append(p.Temps, uint64(rows*count)*uint64(s.keys.reg().Bits()/8), uint64(rows*count)*idx)
		return candidates{keys: len(s.outs) + len(p.Temps) - 1, from: len(s.outs) + len(p.Temps), count: count}
	}
	if s.t.Class != kernel.CPU {
		var src *candidates
		for count := n; ; {
			share := (count + bitonicLength - 1) / bitonicLength
			dst := lists(share)
			p.Launches = append(p.Launches, s.bestOfTiles(src, dst, share))
			src, count = &dst, dst.count
			if share == 1 {
				break
			}
		}
		p.Launches = append(p.Launches, s.ranked(*src))
		return p
	}
	const want, few = 64, 8 // lanes; lists that are ranked
	least := 16 * s.keep    // elements of a lane
	share := max(1, min(want/rows, n/least))
	first := lists(share)
	p.Launches = append(p.Launches, s.best(nil, first, share))
	if share > few {
		next := lists(few)
		p.Launches = append(p.Launches, s.best(&first, next, few))
		first = next
	}
	p.Launches = append(p.Launches, s.ranked(first))
	return p
}

// bindLists adds the temporaries of lists.
func (k *sortKernel) bindLists(c candidates, write bool) (keys, from kernel.Ptr) {
	m := memOfReg(k.s.keys.reg())
	pairs := axesSize(k.s.rows) * c.count
	name := "in_"
	if write {
		name = "list_"
	}
	keys = k.pointer(name+"keys", m, write, 0, c.keys, 0, 0, uint64(pairs*m.Size()))
	from = k.pointer(name+"from", k.mem(), write, 0, c.from, 0, 0, uint64(pairs*k.mem().Size()))
	return keys, from
}

// origin is a key and the position that it came from.
type origin struct{ key, from kernel.Value }

func (k *sortKernel) comesBefore(x, y origin) kernel.Value {
	tie := k.And(k.Cmp(kernel.IEq, x.key, y.key), k.Cmp(kernel.ULt, x.from, y.from))
	return k.Or(k.Cmp(kernel.ULt, x.key, y.key), tie)
}

// best leaves the list of each lane's best. Lanes share the operand's rows, or the lists of an earlier launch.
func (s *sorting) best(src *candidates, dst candidates, share int) Launch {
	name, count := s.name+"_best", s.along.n
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
	keys, from := k.bindLists(dst, true)
	rows := axesSize(s.rows)
	n, items, shares := k.number("n", count), k.number("items", rows*share), k.divisor("share", share)
	keep := k.number("keep", s.keep)
	length := k.number("length", (count+share-1)/share)
	none := origin{k.ConstInt(s.keys.reg(), -1), k.index(-1)} // comes after all others
	one, local := k.index(1), s.local()
	lane := k.Add(k.Mul(k.toIndex(k.BuiltinValue(kernel.GroupX)), k.index(local)), k.toIndex(k.BuiltinValue(kernel.LocalX)))
	k.For(lane, items, k.Mul(k.toIndex(k.BuiltinValue(kernel.GroupsX)), k.index(local)), func(item kernel.Value) {
		r, c := shares.DivMod(k.Builder, item)
		list := k.Mul(item, keep)
		at := func(i kernel.Value) origin { return origin{k.Load(keys, k.Add(list, i)), k.Load(from, k.Add(list, i))} }
		put := func(i kernel.Value, v origin) {
			k.Store(keys, k.Add(list, i), v.key)
			k.Store(from, k.Add(list, i), v.from)
		}
		k.For(k.index(0), keep, one, func(i kernel.Value) { put(i, none) })
		var row []kernel.Value
		var base kernel.Value
		if src == nil {
			row = k.enter(r)
		} else {
			base = k.Mul(r, n)
		}
		worstKey, worstFrom := k.NewVar(none.key), k.NewVar(none.from)
		first := k.Mul(c, length)
		k.For(first, k.min(k.Add(first, length), n), one, func(i kernel.Value) {
			v := origin{from: i}
			if src == nil {
				v.key = s.keys.key(k.Builder, k.load(row, i))
			} else {
				v = origin{k.Load(inKeys, k.Add(base, i)), k.Load(inFrom, k.Add(base, i))}
			}
			k.If(k.comesBefore(v, origin{k.Get(worstKey), k.Get(worstFrom)}), func() {
				hole := k.NewVar(k.AddI(keep, -1))
				k.Loop(func() {
					j := k.Get(hole)
					k.BreakIf(k.Cmp(kernel.IEq, j, k.index(0)))
					left := at(k.AddI(j, -1))
					k.BreakIf(k.Not(k.comesBefore(v, left)))
					put(j, left)
					k.Set(hole, k.AddI(j, -1))
				})
				put(k.Get(hole), v)
				w := at(k.AddI(keep, -1))
				k.Set(worstKey, w.key)
				k.Set(worstFrom, w.from)
			}, nil)
		})
	})
	return k.launch([3]uint32{uint32(min((rows*share+local-1)/local, MaxGroups)), 1, 1})
}

// ranked stores the best of a row's candidates in order: an invocation for each counts those before it.
func (s *sorting) ranked(src candidates) Launch {
	k := s.kernel(s.name+"_of_best", s.local())
	k.bindPlaces(true, true)
	keys, from := k.bindLists(src, false)
	n := k.divisor("candidates", src.count)
	count := axesSize(s.rows) * src.count
	total, last := k.number("all", count), k.number("last", s.along.n-1)
	GridStride(k.Builder, s.local(), total, func(e kernel.Value) {
		r, i := n.DivMod(k.Builder, e)
		base := k.Sub(e, i)
		mine := origin{k.Load(keys, e), k.Load(from, e)}
		rank := k.NewVar(k.index(0))
		k.For(k.index(0), n.Extent(), k.index(1), func(j kernel.Value) {
			other := origin{k.Load(keys, k.Add(base, j)), k.Load(from, k.Add(base, j))}
			k.Set(rank, k.Add(k.Get(rank), k.Select(k.comesBefore(other, mine), k.index(1), k.index(0))))
		})
		row := k.enter(r)
		at := k.min(mine.from, last)
		k.store(row, k.Get(rank), k.load(row, at), at)
	})
	grid := Groups(count, s.local(), 1)
	if s.t.Class == kernel.CPU {
		grid[0] = min(grid[0], uint32(cpuShape.most))
	}
	return k.launch(grid)
}
