package shaders

import "nxvk/kernel"

// A radix sort goes through the digits of the keys, the lowest first. Each pass counts the digits of
// every chunk of a row, turns the counts into the places where each chunk's elements of each digit go,
// and moves the elements there in their order: no atomics, and stable.
//
// On processors a chunk belongs to one invocation, whose counters are its own memory. On GPUs it is a
// tile of a workgroup: every invocation owns a run of it, with counters in shared memory.

// radixForm is the shape of a radix sort's kernels.
type radixForm struct {
	digit  int // bits
	passes int
	chunks int // of a row
	length int // elements a chunk
	own    int // elements of an invocation's run, on GPUs
	tiled  bool
}

// Digits of a tile are four bits, so that the counters of 256 invocations fit into 16 KiB.
const tileDigit = 4

func (s *sorting) radixForm() radixForm {
	n, rows := s.along.n, axesSize(s.rows)
	f := radixForm{digit: tileDigit, tiled: s.t.Class != kernel.CPU}
	if f.tiled {
		f.own = 8
		for f.own < 64 && n/(f.own*s.local()) > 1<<12 {
			f.own *= 2
		}
		f.length = f.own * s.local()
		f.chunks = (n + f.length - 1) / f.length
	} else {
		if n > 96 {
			f.digit = 8
		}
		// Enough lanes for a processor, each with many more elements than counters.
		f.chunks, f.length = split(n, max(1, min((64+rows-1)/rows, n/2048)))
	}
	f.passes = (s.keys.bits() + f.digit - 1) / f.digit
	return f
}

// radixSlots numbers the temporaries: counters, then elements and positions, twice each.
type radixSlots struct{ counts, elems, from int }

func (s *sorting) radix() *Plan {
	f := s.radixForm()
	rows, n := axesSize(s.rows), s.along.n
	idx := uint64(4)
	if s.wide {
		idx = 8
	}
	p := &Plan{Temps: []uint64{uint64(rows*f.chunks<<f.digit) * idx}}
	slots := radixSlots{counts: 1 + len(s.outs), elems: 2 + len(s.outs), from: 4 + len(s.outs)}
	if f.passes > 1 {
		elem := uint64(rows*n) * uint64(s.x.Type.Size())
		p.Temps = append(p.Temps, elem, elem)
		if s.positions() {
			p.Temps = append(p.Temps, uint64(rows*n)*idx, uint64(rows*n)*idx)
		}
	}
	for pass := range f.passes {
		move := radixPass{s: s, f: f, slots: slots, pass: pass}
		p.Launches = append(p.Launches, move.count(), move.places(), move.scatter())
	}
	return p
}

// radixPass is one pass: from the operand or the temporaries of the pass before, to the next ones or the
// results.
type radixPass struct {
	s     *sorting
	f     radixForm
	slots radixSlots
	pass  int
}

func (p *radixPass) first() bool { return p.pass == 0 }
func (p *radixPass) last() bool  { return p.pass == p.f.passes-1 }

// radixKernel is a kernel of a pass.
type radixKernel struct {
	*sortKernel
	p      *radixPass
	elems  kernel.Ptr // what an earlier pass left, row by row
	froms  kernel.Ptr
	shift  kernel.Value
	counts kernel.Ptr
	nRows  Divisor
	length kernel.Value
}

func (p *radixPass) kernel(name string, scatter bool) *radixKernel {
	s := p.s
	if p.first() {
		name += "_first"
	}
	if scatter && p.last() {
		name += "_last"
	}
	k := &radixKernel{sortKernel: s.kernel(s.name+name, s.local()), p: p}
	rows, n := axesSize(s.rows), s.along.n
	last := scatter && p.last()
	if p.first() || last {
		k.bindPlaces(p.first(), last)
	}
	if !p.first() {
		bytes := uint64(rows * n * s.x.Type.Size())
		k.elems = k.pointer("elems", RawMemOf(s.x.Type), false, 0, p.slots.elems+(p.pass-1)%2, 0, 0, bytes)
		if s.positions() && scatter {
			k.froms = k.pointer("from", k.mem(), false, 0, p.slots.from+(p.pass-1)%2, 0, 0, uint64(rows*n*k.mem().Size()))
		}
	}
	k.n = k.number("n", n)
	k.length = k.number("length", p.f.length)
	k.nRows = k.divisor("rows", rows)
	k.shift = k.ScalarArg("shift", s.keys.reg())
	k.args = append(k.args, immInt(p.pass*p.f.digit))
	k.counts = k.pointer("counts", k.mem(), true, 0, p.slots.counts, 0, 0, uint64(rows*p.f.chunks<<p.f.digit*k.mem().Size()))
	return k
}

// mem is the memory type of counters and positions.
func (k *sortKernel) mem() kernel.Mem { return memOfReg(k.idx) }

func (k *radixKernel) digits() int { return 1 << k.p.f.digit }

// read yields the bits of element i of a row, whose first element is at base in the temporaries.
func (k *radixKernel) read(row []kernel.Value, base, i kernel.Value) kernel.Value {
	if k.p.first() {
		return k.load(row, i)
	}
	return k.Load(k.elems, k.Add(base, i))
}

// digit is the digit of an element, as an index.
func (k *radixKernel) digit(raw kernel.Value) kernel.Value {
	d := k.Bin(kernel.ShrU, k.s.keys.key(k.Builder, raw), k.shift)
	d = k.And(d, k.ConstInt(k.TypeOf(d), int64(k.digits()-1)))
	if k.TypeOf(d) == kernel.I64 {
		d = k.Conv(kernel.Wrap, kernel.I32, d)
	}
	return k.toIndex(d)
}

// chunk says where an item's elements are: its row, and the range of positions.
type chunk struct {
	row      []kernel.Value // offsets, in the first and the last pass
	base     kernel.Value   // in the temporaries
	from, to kernel.Value
	counts   kernel.Value // index of its first counter
}

func (k *radixKernel) enterChunk(item kernel.Value) chunk {
	number, row := k.nRows.DivMod(k.Builder, item)
	from := k.Mul(number, k.length)
	c := chunk{
		base: k.Mul(row, k.n), from: from, to: k.min(k.Add(from, k.length), k.n),
		counts: k.ShlI(item, k.p.f.digit),
	}
	if k.starts != nil {
		c.row = k.enter(row)
	}
	return c
}

// move puts an element to position p of its row.
func (k *radixKernel) move(c chunk, to [2]kernel.Ptr, p, raw, from kernel.Value) {
	if k.p.last() {
		k.store(c.row, p, raw, from)
		return
	}
	at := k.Add(c.base, p)
	k.Store(to[0], at, raw)
	if k.s.positions() {
		k.Store(to[1], at, from)
	}
}

// bindMoved adds the temporaries that elements go to.
func (k *radixKernel) bindMoved() (to [2]kernel.Ptr) {
	s, p := k.s, k.p
	if p.last() {
		return
	}
	count := axesSize(s.rows) * s.along.n
	to[0] = k.pointer("moved", RawMemOf(s.x.Type), true, 0, p.slots.elems+p.pass%2, 0, 0, uint64(count*s.x.Type.Size()))
	if s.positions() {
		to[1] = k.pointer("moved_from", k.mem(), true, 0, p.slots.from+p.pass%2, 0, 0, uint64(count*k.mem().Size()))
	}
	return to
}

// cameFrom is where the element that now is at i came from.
func (k *radixKernel) cameFrom(c chunk, i kernel.Value) kernel.Value {
	if k.p.first() || !k.s.positions() {
		return i
	}
	return k.Load(k.froms, k.Add(c.base, i))
}

// items is the number of chunks of all rows.
func (p *radixPass) items() int { return axesSize(p.s.rows) * p.f.chunks }

// count leaves the number of elements of each digit, for every chunk.
func (p *radixPass) count() Launch {
	k := p.kernel("_count", false)
	if p.f.tiled {
		shared := k.newCounters()
		grid := k.overGroups(p.items(), func(item kernel.Value) {
			c := k.enterChunk(item)
			shared.count(c)
			shared.sums()
			lane := k.BuiltinValue(kernel.LocalX)
			k.If(k.Cmp(kernel.ULt, lane, k.I32(k.digits())), func() {
				k.Store(k.counts, k.Add(c.counts, k.toIndex(lane)), k.toIndex(shared.total(lane)))
			}, nil)
		})
		return k.launch(grid)
	}
	grid := k.overLanes(p.items(), func(item kernel.Value) {
		c := k.enterChunk(item)
		k.For(k.index(0), k.index(k.digits()), k.index(1), func(d kernel.Value) {
			k.Store(k.counts, k.Add(c.counts, d), k.index(0))
		})
		k.For(c.from, c.to, k.index(1), func(i kernel.Value) {
			at := k.Add(c.counts, k.digit(k.read(c.row, c.base, i)))
			k.Store(k.counts, at, k.AddI(k.Load(k.counts, at), 1))
		})
	})
	return k.launch(grid)
}

// places turns the counts of a row into the position where each chunk's first element of each digit goes.
func (p *radixPass) places() Launch {
	s, f := p.s, p.f
	rows := axesSize(s.rows)
	shared := f.tiled && f.chunks > 4
	plain := plainFold(kernel.I32, unitOf(kernel.I32, 0), (*kernel.Builder).Add)
	if s.wide {
		plain = plainFold(kernel.I64, unitOf(kernel.I64, 0), (*kernel.Builder).Add)
	}
	// The scan's tiles do it, over digits and, within them, chunks.
	sc := &scan{t: s.t, fold: plain, wide: s.wide}
	k := sc.kernel(s.name+"_places", scanForm{}, shared)
	counts := k.pointer("counts", plain.parts[0], true, 0, p.slots.counts, 0, 0, uint64(rows*f.chunks<<f.digit*plain.parts[0].Size()))
	chunks := k.divisor("chunks", f.chunks)
	nRows := k.number("rows", rows)
	grid := k.over(rows, shared, func(row kernel.Value) {
		place := func(digit, chunk kernel.Value) kernel.Value {
			return k.Add(k.ShlI(k.Add(k.Mul(chunk, nRows), row), f.digit), digit)
		}
		if shared {
			at := func(p kernel.Value) kernel.Value { return place(chunks.DivMod(k.Builder, p)) }
			k.tiles(k.index(0), k.ShlI(chunks.Extent(), f.digit), []kernel.Value{k.index(0)},
				func(p kernel.Value) []kernel.Value { return []kernel.Value{k.Load(counts, at(p))} },
				func(p kernel.Value, before, _ []kernel.Value) { k.Store(counts, at(p), before[0]) })
			return
		}
		sum := k.NewVar(k.index(0))
		k.For(k.index(0), k.index(1<<f.digit), k.index(1), func(d kernel.Value) {
			k.For(k.index(0), chunks.Extent(), k.index(1), func(c kernel.Value) {
				at, before := place(d, c), k.Get(sum)
				v := k.Load(counts, at)
				k.Store(counts, at, before)
				k.Set(sum, k.Add(before, v))
			})
		})
	})
	return k.launch(grid)
}

// scatter moves the elements of each chunk to their places.
func (p *radixPass) scatter() Launch {
	k := p.kernel("_scatter", true)
	to := k.bindMoved()
	if p.f.tiled {
		shared := k.newCounters()
		grid := k.overGroups(p.items(), func(item kernel.Value) {
			c := k.enterChunk(item)
			shared.count(c)
			shared.offsets(c)
			shared.each(c, func(i, raw, place kernel.Value) { k.move(c, to, place, raw, k.cameFrom(c, i)) })
		})
		return k.launch(grid)
	}
	grid := k.overLanes(p.items(), func(item kernel.Value) {
		c := k.enterChunk(item)
		k.For(c.from, c.to, k.index(1), func(i kernel.Value) {
			raw := k.read(c.row, c.base, i)
			at := k.Add(c.counts, k.digit(raw))
			place := k.Load(k.counts, at)
			k.Store(k.counts, at, k.AddI(place, 1))
			// Counters never leave their row, if nobody else writes them: what goes to memory is held to it.
			k.move(c, to, k.min(place, k.AddI(k.n, -1)), raw, k.cameFrom(c, i))
		})
	})
	return k.launch(grid)
}

// overLanes runs body for each of n items, an invocation each.
func (k *radixKernel) overLanes(n int, body func(item kernel.Value)) [3]uint32 {
	items, local := k.number("items", n), k.s.local()
	groups := min((n+local-1)/local, MaxGroups)
	first := k.Add(k.Mul(k.toIndex(k.BuiltinValue(kernel.GroupX)), k.index(local)), k.toIndex(k.BuiltinValue(kernel.LocalX)))
	k.For(first, items, k.Mul(k.toIndex(k.BuiltinValue(kernel.GroupsX)), k.index(local)), body)
	return [3]uint32{uint32(groups), 1, 1}
}

// overGroups runs body for each of n items, a workgroup each.
func (k *radixKernel) overGroups(n int, body func(item kernel.Value)) [3]uint32 {
	k.For(k.toIndex(k.BuiltinValue(kernel.GroupX)), k.number("items", n), k.toIndex(k.BuiltinValue(kernel.GroupsX)), body)
	return [3]uint32{uint32(min(n, MaxGroups)), 1, 1}
}
