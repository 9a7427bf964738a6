package shaders

import (
	"math"

	"nxvk/graph"
	"nxvk/kernel"
)

// An fftSource binds what a pass reads and yields, for a row, what reads its elements; an fftSink, what
// stores them.
type (
	fftSource func(k *fftKernel) func(row kernel.Value) func(i kernel.Value) cpx
	fftSink   func(k *fftKernel) func(row kernel.Value) func(i kernel.Value, v cpx)
)

// tempSource reads a temporary that holds a series.
func (f *fft) tempSource(s series, slot int) fftSource {
	return func(k *fftKernel) func(row kernel.Value) func(i kernel.Value) cpx {
		p := k.pairs("from", slot, s.n*s.rows, false)
		at := k.spread(s)
		return func(row kernel.Value) func(i kernel.Value) cpx {
			return func(i kernel.Value) cpx { return k.pair(p, at(row, i)) }
		}
	}
}

// tempSink writes the temporary whose turn it is. It is asked when the pass before it is done.
func (f *fft) tempSink(s series) fftSink {
	return func(k *fftKernel) func(row kernel.Value) func(i kernel.Value, v cpx) {
		return f.slotSink(s, f.next(f.largest(s)))(k)
	}
}

// largest is the number of complex numbers that a working temporary has.
func (f *fft) largest(s series) int { return s.n * max(s.rows, f.count) }

func (f *fft) slotSink(s series, slot int) fftSink {
	return func(k *fftKernel) func(row kernel.Value) func(i kernel.Value, v cpx) {
		p := k.pairs("to", slot, s.n*s.rows, true)
		at := k.spread(s)
		return func(row kernel.Value) func(i kernel.Value, v cpx) {
			return func(i kernel.Value, v cpx) { k.StoreV(p, at(row, i), []kernel.Value{v.re, v.im}) }
		}
	}
}

// spread yields what finds element i of a row in a temporary.
func (k *fftKernel) spread(s series) func(row, i kernel.Value) kernel.Value {
	if s.rows == 1 {
		return func(_, i kernel.Value) kernel.Value { return i }
	}
	r, a := k.f.spread(s)
	rows, at := k.number("row_step", r), k.number("step", a)
	return func(row, i kernel.Value) kernel.Value { return k.Add(k.Mul(row, rows), k.Mul(i, at)) }
}

// operandSource reads the operand: its conjugate for an inverse transform; times the chirp for Bluestein's.
func (f *fft) operandSource(chirp bool) fftSource {
	return func(k *fftKernel) func(row kernel.Value) func(i kernel.Value) cpx {
		in := k.operand(f.x, 0, false)
		place := k.places()
		along := k.along[0]
		have := k.number("have", f.have)
		var half, length kernel.Value
		if f.hermitian {
			half, length = k.number("half", f.length/2+1), k.number("length", f.length)
		}
		var chirps *chirpTable
		if chirp {
			chirps = k.chirps()
		}
		zero := k.Zero(kernel.F64)
		return func(row kernel.Value) func(i kernel.Value) cpx {
			start := place(row)[0]
			start = k.sum(start, in.start)
			return func(i kernel.Value) cpx {
				at, back := i, k.ConstBool(false)
				if f.hermitian {
					back = k.Cmp(kernel.ULe, half, i)
					at = k.Select(back, k.Sub(length, i), i)
				}
				inside := k.Cmp(kernel.ULt, at, have)
				if f.hermitian && chirp {
					inside = k.And(inside, k.Cmp(kernel.ULt, i, length)) // a convolution goes on
				}
				at = k.min(at, k.AddI(have, -1))
				off := k.advance(start, along, at)
				var v cpx
				if f.pairs {
					parts := in.loads(off, 2)
					v = cpx{Convert(k.Builder, parts[0], f.x.Type, graph.F64), Convert(k.Builder, parts[1], f.x.Type, graph.F64)}
				} else {
					v = cpx{Convert(k.Builder, in.load(off), f.x.Type, graph.F64), zero}
				}
				v = cpx{k.Select(inside, v.re, zero), k.Select(inside, v.im, zero)}
				if f.pairs && f.inverse {
					neg := k.Un(kernel.FNeg, v.im)
					v.im = k.Select(back, v.im, neg)
				}
				if chirp {
					v = k.times(v, chirps.at(i))
				}
				return v
			}
		}
	}
}

// resultSink stores what is asked for of the results.
func (f *fft) resultSink(chirp bool) fftSink {
	return func(k *fftKernel) func(row kernel.Value) func(i kernel.Value, v cpx) {
		parts := 1
		if f.out.Type.Complex() {
			parts = 2
		}
		part := f.out.Type.Part()
		to := k.output(part, fftOutSlot, parts*f.out.Shape.Size(), parts)
		place := k.places()
		keep := k.number("keep", f.keep)
		eps := k.real("eps", f.eps)
		var n, scale kernel.Value
		if f.inverse {
			n = k.real("length", float64(f.length))
		}
		var chirps *chirpTable
		if chirp {
			chirps = k.chirps()
			scale = k.real("scale", invLength(f.convolution()))
		}
		finish := func(v kernel.Value) kernel.Value {
			if f.inverse {
				v = k.Bin(kernel.FDiv, v, n)
			}
			small := k.Cmp(kernel.FLe, k.Un(kernel.FAbs, v), eps)
			v = k.Select(small, k.Zero(kernel.F64), v)
			return Narrow(k.Builder, part, CanonNaN(k.Builder, part, Convert(k.Builder, v, graph.F64, part)))
		}
		return func(row kernel.Value) func(i kernel.Value, v cpx) {
			start := place(row)[1]
			return func(i kernel.Value, v cpx) {
				k.If(k.Cmp(kernel.ULt, i, keep), func() {
					if chirp {
						v = k.times(k.scaled(k.conj(v), scale), chirps.at(i))
					}
					if f.inverse {
						v = k.conj(v)
					}
					out := []kernel.Value{finish(v.re)}
					if parts == 2 {
						out = append(out, finish(v.im))
					}
					to.store(k.offset(k.advance(start, k.along[1], i)), out)
				}, nil)
			}
		}
	}
}

// convolution is the length of Bluestein's series.
func (f *fft) convolution() int {
	m := 1
	for m < 2*f.length-1 {
		m *= 2
	}
	return m
}

// chirpTable yields exp(-πi i²/n), which is root i² mod 2n of 2n.
type chirpTable struct {
	k     *fftKernel
	roots *boundRoots
	turn  Divisor
	t     kernel.Type
}

// squareMost is the largest length whose squares a 32-bit register holds, as divisors want them.
const squareMost = 46340

func (k *fftKernel) chirps() *chirpTable {
	if k.chirp != nil {
		return k.chirp
	}
	n := k.f.length
	c := &chirpTable{k: k, t: k.idx}
	if n > squareMost {
		c.t = kernel.I64
	}
	c.roots = k.roots(2 * n)
	k.args = append(k.args, DivisorArgs(2*n, c.t)...)
	c.turn = DeclareDivisor(k.Builder, "twice", c.t)
	k.chirp = c
	return c
}

// at is the chirp at i, which is held below n.
func (c *chirpTable) at(i kernel.Value) cpx {
	k := c.k
	i = k.min(i, k.AddI(c.length(), -1))
	if k.TypeOf(i) == kernel.I32 && c.t == kernel.I64 {
		i = k.Conv(kernel.ZExt, kernel.I64, i)
	}
	_, rest := c.turn.DivMod(k.Builder, k.Mul(i, i))
	if c.t == kernel.I64 && k.idx == kernel.I32 {
		rest = k.Conv(kernel.Wrap, kernel.I32, rest)
	}
	return c.roots.at(rest)
}

func (c *chirpTable) length() kernel.Value {
	k := c.k
	if k.chirpLength == 0 {
		k.chirpLength = k.number("chirp_length", k.f.length)
	}
	return k.chirpLength
}

// chirpSource is the other side of Bluestein's convolution: the inverse of the chirp, around 0.
func (f *fft) chirpSource(m int) fftSource {
	return func(k *fftKernel) func(row kernel.Value) func(i kernel.Value) cpx {
		chirps := k.chirps()
		size, length, zero := k.number("size", m), k.number("length", f.length), k.Zero(kernel.F64)
		return func(kernel.Value) func(i kernel.Value) cpx {
			return func(i kernel.Value) cpx {
				d := k.min(i, k.Sub(size, i))
				w := k.conj(chirps.at(d))
				inside := k.Cmp(kernel.ULt, d, length)
				return cpx{k.Select(inside, w.re, zero), k.Select(inside, w.im, zero)}
			}
		}
	}
}

// productSource reads the conjugate of the product of two spectra, the second the same for all rows.
func (f *fft) productSource(s series, slot, chirps int) fftSource {
	return func(k *fftKernel) func(row kernel.Value) func(i kernel.Value) cpx {
		load := f.tempSource(s, slot)(k)
		p := k.pairs("chirps", chirps, s.n, false)
		return func(row kernel.Value) func(i kernel.Value) cpx {
			of := load(row)
			return func(i kernel.Value) cpx { return k.conj(k.times(of(i), k.pair(p, i))) }
		}
	}
}

// real adds a f64 scalar.
func (k *fftKernel) real(name string, x float64) kernel.Value {
	k.args = append(k.args, Arg{Kind: Imm, Imm: math.Float64bits(x)})
	return k.ScalarArg(name, kernel.F64)
}
