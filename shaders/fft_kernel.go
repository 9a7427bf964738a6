package shaders

import (
	"fmt"

	"nxvk/graph"
	"nxvk/kernel"
)

// fftKernel is the state of a kernel of a transform.
type fftKernel struct {
	*writer
	f           *fft
	bound       *boundAxes
	along       []kernel.Value
	tables      map[int]*boundRoots
	chirp       *chirpTable
	chirpLength kernel.Value
}

func (f *fft) local() int {
	if f.t.Class == kernel.CPU {
		return cpuShape.local
	}
	return 64
}

func (f *fft) kernel(name string) *fftKernel {
	return &fftKernel{writer: newWriter(f.name+name, f.t, f.local(), f.wide), f: f, tables: map[int]*boundRoots{}}
}

// places yields what finds the offsets of operand and result for a row.
func (k *fftKernel) places() func(row kernel.Value) []kernel.Value {
	if k.bound == nil {
		b := k.bind("row", k.f.rows)
		k.bound = &b
		k.along = k.bind("at", []axis{k.f.along}).stride[0]
	}
	return func(row kernel.Value) []kernel.Value {
		return k.offsets(*k.bound, len(k.bound.axes), row, []kernel.Value{0, 0})
	}
}

// pairs adds a temporary or table of n complex numbers.
func (k *fftKernel) pairs(name string, slot, n int, write bool) kernel.Ptr {
	return k.pointer(name, kernel.MF64, write, 4, slot, 0, 0, 16*uint64(n))
}

func (k *fftKernel) pair(p kernel.Ptr, at kernel.Value) cpx {
	v := k.LoadV(p, at, 2)
	return cpx{v[0], v[1]}
}

// boundRoots is a table of roots in a kernel.
type boundRoots struct {
	k           *fftKernel
	t           *rootTable
	p           kernel.Ptr
	mask, shift kernel.Value
}

func (k *fftKernel) roots(n int) *boundRoots {
	if r, ok := k.tables[n]; ok {
		return r
	}
	t, slot := k.f.table(n)
	r := &boundRoots{k: k, t: t, p: k.pairs(fmt.Sprintf("roots%d", len(k.tables)), slot, len(t.data)/16, false)}
	if t.shift > 0 {
		r.mask, r.shift = k.number("roots_mask", t.low-1), k.number("roots_shift", t.shift)
	}
	k.tables[n] = r
	return r
}

// at is root i, for i below the number of roots.
func (r *boundRoots) at(i kernel.Value) cpx {
	k := r.k
	if r.t.shift == 0 {
		return k.pair(r.p, i)
	}
	low := k.pair(r.p, k.And(i, r.mask))
	high := k.pair(r.p, k.Add(k.AddI(r.mask, 1), k.Bin(kernel.ShrU, i, r.shift)))
	return k.times(low, high)
}

// pass adds one pass of a series, of radix r, when transforms of length before are done: invocation j takes
// elements j, j+n/r, …, turns them by roots of before·r, transforms them and leaves them as part of a
// transform of length before·r (Stockham).
func (f *fft) pass(s series, r, before int, src fftSource, dst fftSink) Launch {
	last := before*r == s.n
	k := f.kernel(fmt.Sprintf("_%d", r))
	load := src(k)
	store := dst(k)
	each := s.n / r
	step := k.number("each", each)
	var roots *boundRoots
	var rootStep, block kernel.Value
	var done Divisor
	if before > 1 {
		roots = k.roots(s.n)
		rootStep = k.number("root_step", s.n/(before*r))
	}
	if !last && before > 1 {
		done = k.divisor("done", before)
	}
	block = k.number("before", before)
	f.items(k, s, each, func(row, j kernel.Value) {
		from, to := load(row), store(row)
		v := make([]cpx, r)
		for e := range v {
			v[e] = from(k.sum(k.index(0), k.Add(j, k.Mul(step, k.index(e)))))
		}
		group, at := j, k.index(0) // of transforms that are done, and the place in them
		switch {
		case last:
			group, at = k.index(0), j
		case before > 1:
			group, at = done.DivMod(k.Builder, j)
		}
		if before > 1 {
			k.turn(v, roots, k.Mul(at, rootStep))
		}
		first := k.Add(k.Mul(group, k.Mul(block, k.index(r))), at)
		for e, x := range k.dft(v) {
			to(k.Add(first, k.Mul(block, k.index(e))), x)
		}
	})
	return k.launch(f.grid(s.rows * each))
}

// turn multiplies element e by the root e·at. Where results are of f32, powers of one root are exact enough.
func (k *fftKernel) turn(v []cpx, roots *boundRoots, at kernel.Value) {
	if k.f.out.Type.Part() == graph.F64 {
		i := k.index(0)
		for e := 1; e < len(v); e++ {
			i = k.Add(i, at)
			v[e] = k.times(v[e], roots.at(i))
		}
		return
	}
	powers := make([]cpx, len(v))
	for e := 1; e < len(v); e++ {
		if e == 1 {
			powers[e] = roots.at(at)
		} else {
			powers[e] = k.times(powers[e/2], powers[e-e/2])
		}
		v[e] = k.times(v[e], powers[e])
	}
}

// items runs body for every row and every j below each.
func (f *fft) items(k *fftKernel, s series, each int, body func(row, j kernel.Value)) {
	total := k.number("items", s.rows*each)
	if s.rows == 1 {
		GridStride(k.Builder, f.local(), total, func(j kernel.Value) { body(k.index(0), j) })
		return
	}
	if f.columns {
		rows := k.divisor("rows", s.rows)
		GridStride(k.Builder, f.local(), total, func(e kernel.Value) {
			j, row := rows.DivMod(k.Builder, e)
			body(row, j)
		})
		return
	}
	inner := k.divisor("inner", each)
	GridStride(k.Builder, f.local(), total, func(e kernel.Value) {
		row, j := inner.DivMod(k.Builder, e)
		body(row, j)
	})
}

func (f *fft) grid(items int) [3]uint32 {
	if f.t.Class == kernel.CPU {
		grid := Groups(items, f.local(), 16)
		grid[0] = min(grid[0], uint32(cpuShape.most))
		return grid
	}
	return Groups(items, f.local(), 1)
}

// direct sums each result by itself.
func (f *fft) direct() Launch {
	k := f.kernel("_direct")
	s := series{n: f.length, rows: f.count}
	load := f.operandSource(false)(k)
	store := f.resultSink(false)(k)
	roots := k.roots(f.length)
	n := k.number("n", f.length)
	f.items(k, s, f.length, func(row, j kernel.Value) {
		from := load(row)
		first := from(k.index(0))
		re, im, at := k.NewVar(first.re), k.NewVar(first.im), k.NewVar(k.index(0))
		k.For(k.index(1), n, k.index(1), func(i kernel.Value) {
			next := k.Add(k.Get(at), j)
			next = k.Select(k.Cmp(kernel.ULe, n, next), k.Sub(next, n), next)
			k.Set(at, next)
			sum := k.plus(cpx{k.Get(re), k.Get(im)}, k.times(from(i), roots.at(next)))
			k.Set(re, sum.re)
			k.Set(im, sum.im)
		})
		store(row)(j, cpx{k.Get(re), k.Get(im)})
	})
	return k.launch(f.grid(s.rows * f.length))
}
