package shaders

import "nxvk/kernel"

// Where there are rows enough to keep a processor's lanes busy, each lane sorts whole rows by itself, in
// one launch: it counts the digits of all passes as it reads a row for the first time, and moves the
// elements to and fro in memory of its own.

// rowLanes is how many lanes take turns at the rows; their memory should stay in caches.
const rowLanes = 512

// rowPad keeps what lanes own apart by a line more than a power of two, which caches would put into one place.
const rowPad = 16

func (s *sorting) rowDigit() int {
	switch n := s.along.n; {
	case n < 128:
		return 4
	case n < 1024:
		return 6
	}
	return 8
}

// radixRows sorts rows by lanes.
func (s *sorting) radixRows() *Plan {
	rows, n := axesSize(s.rows), s.along.n
	digit := s.rowDigit()
	passes := (s.keys.bits() + digit - 1) / digit
	lanes := min(rowLanes, (rows+s.local()-1)/s.local()*s.local())
	bins := 1 << digit
	p := &Plan{}
	temp := func(per int, m kernel.Mem) (slot int, bytes uint64) {
		bytes = uint64(lanes*per) * uint64(m.Size())
		p.Temps = append(p.Temps, bytes)
		return len(s.outs) + len(p.Temps), bytes
	}
	k := s.kernel(s.name+"_rows", s.local())
	bind := func(name string, per int, m kernel.Mem) kernel.Ptr {
		slot, bytes := temp(per, m)
		return k.pointer(name, m, true, 0, slot, 0, 0, bytes)
	}
	k.bindPlaces(true, true)
	perCounts, perElems := passes*bins+rowPad, n+rowPad
	counts := bind("counts", perCounts, k.mem())
	var elems, froms [2]kernel.Ptr
	if passes > 1 {
		for i := range elems {
			elems[i] = bind("elems", perElems, RawMemOf(s.x.Type))
			if s.positions() {
				froms[i] = bind("from", perElems, k.mem())
			}
		}
	}
	length, nRows := k.number("n", n), k.number("rows", rows)
	own := k.number("own", perElems)
	lane := k.Add(k.Mul(k.toIndex(k.BuiltinValue(kernel.GroupX)), k.index(s.local())), k.toIndex(k.BuiltinValue(kernel.LocalX)))
	base := k.Mul(lane, own)
	first := k.Mul(lane, k.index(perCounts))
	zero, one := k.index(0), k.index(1)
	// cell is the counter of an element's digit.
	cell := func(key kernel.Value, pass int) kernel.Value {
		d := k.ShrUI(key, pass*digit)
		d = k.And(d, k.ConstInt(k.TypeOf(d), int64(bins-1)))
		if k.TypeOf(d) == kernel.I64 {
			d = k.Conv(kernel.Wrap, kernel.I32, d)
		}
		return k.Add(k.AddI(first, pass*bins), k.toIndex(d))
	}
	k.For(lane, nRows, k.Mul(k.toIndex(k.BuiltinValue(kernel.GroupsX)), k.index(s.local())), func(r kernel.Value) {
		row := k.enter(r)
		k.For(zero, k.index(passes*bins), one, func(d kernel.Value) { k.Store(counts, k.Add(first, d), zero) })
		k.For(zero, length, one, func(i kernel.Value) {
			key := s.keys.key(k.Builder, k.load(row, i))
			for pass := range passes {
				at := cell(key, pass)
				k.Store(counts, at, k.AddI(k.Load(counts, at), 1))
			}
		})
		sums := make([]kernel.Var, passes)
		for pass := range sums {
			sums[pass] = k.NewVar(zero)
		}
		k.For(zero, k.index(bins), one, func(d kernel.Value) {
			for pass, sum := range sums {
				at, before := k.Add(k.AddI(first, pass*bins), d), k.Get(sum)
				v := k.Load(counts, at)
				k.Store(counts, at, before)
				k.Set(sum, k.Add(before, v))
			}
		})
		for pass := range passes {
			k.For(zero, length, one, func(i kernel.Value) {
				raw, from := kernel.Value(0), i
				if pass == 0 {
					raw = k.load(row, i)
				} else {
					raw = k.Load(elems[(pass-1)%2], k.Add(base, i))
					if s.positions() {
						from = k.Load(froms[(pass-1)%2], k.Add(base, i))
					}
				}
				at := cell(s.keys.key(k.Builder, raw), pass)
				place := k.Load(counts, at)
				k.Store(counts, at, k.AddI(place, 1))
				// Counters never leave their row, if nobody else writes them: what goes to memory is held to it.
				place = k.min(place, k.AddI(length, -1))
				if pass == passes-1 {
					k.store(row, place, raw, from)
					return
				}
				k.Store(elems[pass%2], k.Add(base, place), raw)
				if s.positions() {
					k.Store(froms[pass%2], k.Add(base, place), from)
				}
			})
		}
	})
	p.Launches = []Launch{k.launch([3]uint32{uint32(lanes / s.local()), 1, 1})}
	return p
}
