package shaders

import (
	"fmt"
	"math"

	"nxvk/graph"
	"nxvk/kernel"
)

// FFT plans fft, ifft, rfft or irfft of x along an axis. The axis is cropped or padded with zeros to length
// (irfft: the half of a spectrum, to length/2+1); rfft keeps the first length/2+1 results, irfft their real
// parts. Results whose magnitude is at most eps become 0, part by part.
//
// Lengths whose prime factors are at most 13 take passes of Stockham's form, of radix 16 and below, that
// leave results in order; short others are summed directly; all others are convolutions of a length that
// is a power of two (Bluestein). All of it is computed and kept between passes in f64, with exact roots of unity,
// and rounded once: a device without f64 has no plan.
func FFT(t kernel.Target, op graph.Op, x Operand, out graph.Spec, a, length int, eps float64) (*Plan, error) {
	if err := checkOperand(string(op), x); err != nil {
		return nil, err
	}
	if a < 0 || a >= len(x.Shape) || len(out.Shape) != len(x.Shape) || length < 1 {
		return nil, fmt.Errorf("%s: axis %d of %v, length %d, does not give %v", op, a, x.Spec, length, out)
	}
	f := &fft{
		t: t, name: string(op), x: x, out: out, length: length, keep: out.Shape[a], eps: eps,
		inverse: op == graph.OpIFFT || op == graph.OpIRFFT, hermitian: op == graph.OpIRFFT,
	}
	if f.hermitian == out.Type.Complex() {
		return nil, fmt.Errorf("%s: cannot yield type %v", op, out.Type)
	}
	if f.keep > length {
		return nil, fmt.Errorf("%s: length %d does not give %v", op, length, out)
	}
	if err := needTypes(t, op, x.Type.Part(), out.Type.Part()); err != nil {
		return nil, err
	}
	if !t.F64 || !t.I64 {
		return nil, &Unsupported{op, out.Type, "the device lacks f64"}
	}
	if err := f.place(a); err != nil {
		return nil, err
	}
	return f.plan(), nil
}

// fft is what the planner works on. Axes carry two strides, of the operand and of the result, in units of
// their parts.
type fft struct {
	t         kernel.Target
	name      string
	x         Operand
	pairs     bool // the operand is of complex numbers: x has an innermost axis of parts
	out       graph.Spec
	rows      []axis
	along     axis
	count     int  // rows
	columns   bool // neighbouring rows are closer in memory than neighbouring elements
	length    int
	have      int // elements of a row to read; beyond are zeros
	keep      int // results of a row to store
	inverse   bool
	hermitian bool // the other half of a row is the conjugate of the first
	eps       float64
	wide      bool

	p      Plan
	tables map[int]int // length -> slot
	work   [2]int      // slots that passes write in turn, 0: none yet
	turn   int
}

func (f *fft) place(a int) error {
	in, out := append([]int(nil), stridesOf(f.x)...), f.out.Shape.Strides()
	n := f.x.Shape[a]
	if f.x.Type.Complex() {
		f.pairs = true
		l := graph.Layout{Offset: 2 * f.x.Layout.Offset}
		for k := range in {
			in[k] *= 2
		}
		l.Strides = append(append(l.Strides, in...), 1)
		f.x = Operand{Spec: graph.Spec{Type: f.x.Type.Part(), Shape: append(append(graph.Shape{}, f.x.Shape...), 2)}, Layout: l}
	}
	if f.out.Type.Complex() {
		for k := range out {
			out[k] *= 2
		}
	}
	for k, d := range f.out.Shape {
		if k == a {
			continue
		}
		if f.x.Shape[k] != d {
			return fmt.Errorf("%s: axis %d of %v, length %d, does not give %v", f.name, a, f.x.Spec, f.length, f.out)
		}
		f.rows = append(f.rows, axis{d, []int{in[k], out[k]}})
	}
	f.rows = mergeAxes(f.rows)
	f.count = axesSize(f.rows)
	f.along = axis{n, []int{in[a], out[a]}}
	f.have = min(n, f.length)
	if f.hermitian {
		f.have = min(n, f.length/2+1)
	}
	if k := len(f.rows) - 1; k >= 0 && f.rows[k].n >= 8 {
		if f.t.Class == kernel.CPU && f.length > 64 {
			// Lanes side by side on rows find what other passes left side by side too.
			f.columns = true
			return nil
		}
		near := func(n int) int { return max(n, -n) }
		f.columns = near(f.rows[k].stride[0]) < near(in[a]) && f.rows[k].stride[1] < out[a]
	}
	return nil
}

// Lengths up to directLength that have no radices are summed directly.
const directLength = 64

func (f *fft) plan() *Plan {
	f.tables = map[int]int{}
	lo, hi := reach(f.x)
	whole := max(hi-lo, 2*f.out.Shape.Size(), 2*f.count*f.length)
	rs := radices(f.length)
	switch {
	case rs != nil:
		f.wide = whole >= wideFrom
		f.transform(series{n: f.length, rows: f.count, radices: rs}, f.operandSource(false), f.resultSink(false))
	case f.length <= directLength:
		f.wide = whole >= wideFrom
		f.p.Launches = append(f.p.Launches, f.direct())
	default:
		f.wide = max(whole, 4*f.count*f.length) >= wideFrom
		f.bluestein()
	}
	// The slots of tables were counted down from -1.
	for i := range f.p.Launches {
		l := &f.p.Launches[i]
		for j := range l.Args {
			l.Args[j].Slot = f.slot(l.Args[j].Slot)
		}
		for j := range l.Access {
			l.Access[j].Slot = f.slot(l.Access[j].Slot)
		}
	}
	return &f.p
}

func (f *fft) slot(s int) int {
	if s < 0 {
		return fftTempSlot + len(f.p.Temps) - 1 - s
	}
	return s
}

// Slots of a transform: the operand, the result, temporaries, tables.
const (
	fftOutSlot  = 1
	fftTempSlot = 2
)

// temp adds a temporary of n complex numbers.
func (f *fft) temp(n int) int {
	f.p.Temps = append(f.p.Temps, 16*uint64(n))
	return fftTempSlot + len(f.p.Temps) - 1
}

// table yields the slot of the n-th roots of unity.
func (f *fft) table(n int) (*rootTable, int) {
	t := newRootTable(n)
	slot, ok := f.tables[n]
	if !ok {
		f.p.Consts = append(f.p.Consts, t.data)
		slot = -len(f.p.Consts)
		f.tables[n] = slot
	}
	return t, slot
}

// series is a transform of rows of n complex numbers, by passes.
type series struct {
	n, rows int
	radices []int
}

// spread is how a temporary holds the rows of a series: the distances between rows and between elements.
func (f *fft) spread(s series) (row, at int) {
	if f.columns && s.rows > 1 {
		return 1, s.rows
	}
	return s.n, 1
}

// transform adds the passes of a series.
func (f *fft) transform(s series, src fftSource, dst fftSink) {
	before := 1
	for i, r := range s.radices {
		from, to := src, dst
		if i > 0 {
			from = f.tempSource(s, f.work[f.turn])
		}
		if i < len(s.radices)-1 {
			to = f.tempSink(s)
		}
		f.p.Launches = append(f.p.Launches, f.pass(s, r, before, from, to))
		before *= r
	}
}

// next is the slot that a pass writes: not the one that was written last.
func (f *fft) next(n int) int {
	f.turn = 1 - f.turn
	if f.work[f.turn] == 0 {
		f.work[f.turn] = f.temp(n)
	}
	return f.work[f.turn]
}

// bluestein writes a transform of length n as a convolution: with w(i) = exp(-πi i²/n), result k is w(k)
// times Σ x(i) w(i) / w(k-i), and the sum is circular over any length from 2n-1 on.
func (f *fft) bluestein() {
	m := f.convolution()
	all := series{n: m, rows: f.count, radices: radices(m)}
	one := series{n: m, rows: 1, radices: radices(m)}
	// Temporaries of the first series serve the second, which is larger.
	f.work = [2]int{f.temp(f.count * m), f.temp(f.count * m)}
	chirps := f.temp(m)
	f.transform(one, f.chirpSource(m), f.slotSink(one, chirps))
	f.transform(all, f.operandSource(true), f.tempSink(all))
	f.transform(all, f.productSource(all, f.work[f.turn], chirps), f.resultSink(true))
}

// invLength is 1/m for a power of two, exactly.
func invLength(m int) float64 { return math.Ldexp(1, -int(log2(m))) }
