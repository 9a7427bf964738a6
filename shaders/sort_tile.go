package shaders

import "nxvk/kernel"

// counters are the digit counts of a tile in shared memory, one for each digit and invocation. They lie
// digit by digit, so that a scan over them gives places in order. An invocation only touches its own
// until a barrier.
type counters struct {
	k     *radixKernel
	cells kernel.Shared // digits × local
	sum   kernel.Shared // local
	base  kernel.Shared // digits: what is added to a place in the tile for one in the row
	local int
	own   kernel.Value // elements of an invocation
}

func (k *radixKernel) newCounters() *counters {
	local := k.s.local()
	c := &counters{k: k, local: local, own: k.number("own", k.p.f.own)}
	c.cells = k.SharedArray(kernel.M32, k.digits()*local)
	c.sum = k.SharedArray(kernel.M32, local)
	c.base = k.SharedArray(k.mem(), k.digits())
	return c
}

func (c *counters) lane() kernel.Value { return c.k.BuiltinValue(kernel.LocalX) }

func (c *counters) cell(digit kernel.Value) kernel.Value {
	k := c.k
	if k.TypeOf(digit) == kernel.I64 {
		digit = k.Conv(kernel.Wrap, kernel.I32, digit)
	}
	return k.Add(k.MulI(digit, c.local), c.lane())
}

// run calls body for each element of this invocation's run.
func (c *counters) run(ch chunk, body func(i, raw, cell kernel.Value)) {
	k := c.k
	from := k.Add(ch.from, k.Mul(k.toIndex(c.lane()), c.own))
	to := k.min(k.Add(from, c.own), ch.to)
	k.For(from, to, k.index(1), func(i kernel.Value) {
		raw := k.read(ch.row, ch.base, i)
		body(i, raw, c.cell(k.digit(raw)))
	})
}

// count counts the digits of every invocation's run.
func (c *counters) count(ch chunk) {
	k := c.k
	k.Barrier() // the tile before may still be read
	for d := range k.digits() {
		k.SStore(c.cells, c.cell(k.I32(d)), k.I32(0))
	}
	c.run(ch, func(_, _, cell kernel.Value) { k.SStore(c.cells, cell, k.AddI(k.SLoad(c.cells, cell), 1)) })
	k.Barrier()
}

// part is the number of cells that an invocation gathers; they are of one digit.
func (c *counters) part() int { return c.k.digits() }

// sums leaves in sum the sum of each invocation's part of the cells.
func (c *counters) sums() {
	k := c.k
	first := k.MulI(c.lane(), c.part())
	total := k.I32(0)
	for e := range c.part() {
		total = k.Add(total, k.SLoad(c.cells, k.AddI(first, e)))
	}
	k.SStore(c.sum, c.lane(), total)
	k.Barrier()
}

// total is the number of elements of a digit.
func (c *counters) total(digit kernel.Value) kernel.Value {
	k := c.k
	each := c.local / k.digits()
	sum := k.I32(0)
	for e := range each {
		sum = k.Add(sum, k.SLoad(c.sum, k.AddI(k.MulI(digit, each), e)))
	}
	return sum
}

// offsets turns the cells into places within the tile, and finds the base of each digit.
func (c *counters) offsets(ch chunk) {
	k := c.k
	c.sums()
	lane := c.lane()
	acc := k.SLoad(c.sum, lane)
	own := acc
	for d := 1; d < c.local; d *= 2 {
		far := k.Cmp(kernel.ULe, k.I32(d), lane)
		left := k.SLoad(c.sum, k.Select(far, k.AddI(lane, -d), lane))
		acc = k.Add(acc, k.Select(far, left, k.I32(0)))
		k.Barrier()
		k.SStore(c.sum, lane, acc)
		k.Barrier()
	}
	place := k.Sub(acc, own)
	first := k.MulI(lane, c.part())
	for e := range c.part() {
		at := k.AddI(first, e)
		v := k.SLoad(c.cells, at)
		k.SStore(c.cells, at, place)
		place = k.Add(place, v)
	}
	k.Barrier()
	k.If(k.Cmp(kernel.ULt, lane, k.I32(k.digits())), func() {
		start := k.toIndex(k.SLoad(c.cells, k.MulI(lane, c.local)))
		k.SStore(c.base, lane, k.Sub(k.Load(k.counts, k.Add(ch.counts, k.toIndex(lane))), start))
	}, nil)
	k.Barrier()
}

// each calls body with every element of this invocation's run and its place in the row.
func (c *counters) each(ch chunk, body func(i, raw, place kernel.Value)) {
	k := c.k
	c.run(ch, func(i, raw, cell kernel.Value) {
		at := k.SLoad(c.cells, cell)
		k.SStore(c.cells, cell, k.AddI(at, 1))
		digit := k.Bin(kernel.UDiv, cell, k.I32(c.local))
		body(i, raw, k.min(k.Add(k.SLoad(c.base, digit), k.toIndex(at)), k.AddI(k.n, -1)))
	})
}
