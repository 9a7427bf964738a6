package shaders

import (
	"fmt"
	"math/bits"
	"slices"

	"nxvk/graph"
	"nxvk/kernel"
)

// Reduce plans sum, product, reduce_max, reduce_min, all or any of x over the given axes, in any
// order. out may keep the reduced axes with extent 1 or not: its elements are the same. acc says how a sum of f32
// gathers (AccCompensated: |error| ≤ 2^-24 Σ|xi|).
//
// The order in which elements meet is a function of shapes, types and device class alone. Results are
// those of Nx.BinaryBackend: integers wrap, floats are gathered in more precision than they have
// and rounded once, a NaN wins, equal zeros yield the first.
func Reduce(t kernel.Target, op graph.Op, x Operand, out graph.Spec, axes []int, acc graph.Acc) (*Plan, error) {
	if err := checkReduce(t, op, x, out, axes); err != nil {
		return nil, err
	}
	kept, reduced := splitAxes(x, axes)
	r := reduction{t: t, name: string(op), ins: []Operand{x}, out: out, kept: kept, reduced: reduced}
	switch op {
	case graph.OpSum:
		r.fold = sumFold(t, x.Type, out.Type, acc)
		r.alone = inOrder(x.Type, out.Type, 0, (*kernel.Builder).Add)
	case graph.OpProduct:
		r.fold = productFold(t, x.Type, out.Type)
		r.alone = inOrder(x.Type, out.Type, 1, (*kernel.Builder).Mul)
	case graph.OpReduceMax, graph.OpReduceMin:
		r.fold = extremeFold(op, x.Type, out.Type)
		if x.Type.Float() {
			// Lanes that take turns do not see elements in order, and the order of equal zeros shows.
			wide := axesSize(reduced) >= 1<<31
			f := indexedFold(x.Type, op == graph.OpReduceMax, false, wide, r.fold.final)
			r.unordered = &f
		}
	case graph.OpAll, graph.OpAny:
		r.fold = boolFold(op, x.Type, out.Type)
	default:
		return nil, fmt.Errorf("%s: not a reduction", op)
	}
	return r.plan()
}

// checkReduce checks what the planner relies on; the graph's verifier has checked more.
func checkReduce(t kernel.Target, op graph.Op, x Operand, out graph.Spec, axes []int) error {
	if err := checkOperand(string(op), x); err != nil {
		return err
	}
	if err := needTypes(t, op, x.Type, out.Type); err != nil {
		return err
	}
	if out.Type.Float() && !t.F64 && !exactIn(x.Type, kernel.F32) {
		return &Unsupported{op, x.Type, "without f64 its operand would be rounded first"}
	}
	n := 1
	for k, d := range x.Shape {
		if !slices.Contains(axes, k) {
			n *= d
		}
	}
	for _, a := range axes {
		if a < 0 || a >= len(x.Shape) {
			return fmt.Errorf("%s: axis %d of an operand of shape %v", op, a, x.Shape)
		}
	}
	if n != out.Shape.Size() {
		return fmt.Errorf("%s: %v over axes %v gives %d elements, not those of %v", op, x.Shape, axes, n, out.Shape)
	}
	return nil
}

// splitAxes yields the merged kept and reduced axes of x, each in x's order.
func splitAxes(x Operand, axes []int) (kept, reduced []axis) {
	for k, s := range stridesOf(x) {
		a := axis{x.Shape[k], []int{s}}
		if slices.Contains(axes, k) {
			reduced = append(reduced, a)
		} else {
			kept = append(kept, a)
		}
	}
	return mergeAxes(kept), mergeAxes(reduced)
}

// reduction is what the planner works on: operands read side by side over kept and reduced axes, and
// a fold of what they yield. Dot products of any shape are reductions of two operands.
type reduction struct {
	t             kernel.Target
	name          string
	ins           []Operand
	out           graph.Spec
	kept, reduced []axis
	fold          fold
	// unordered takes the place of fold where a kernel's lanes do not see elements in order, alone
	// where one lane walks all of them.
	unordered, alone *fold
	// epilogue, unless nil, maps each result before it is stored; at is its flat index.
	epilogue epilogue
}

// source is where a kernel of a reduction reads: the operands, or the partial accumulators of an
// earlier launch.
type source struct {
	partials int  // number of chunks of partials to gather, 0 to read operands
	slot     int  // of the first part
	wide     bool // 64-bit indices
}

// sink is where a kernel leaves its accumulators: chunk by chunk in temporaries, or finished.
type sink struct {
	chunks int // 1: results
	length int // reduced positions a chunk, a multiple of 4 unless there is but one
	slot   int // of the first part
}

// Slots number the operands, the result, then the temporaries.
func (r *reduction) outSlot() int  { return len(r.ins) }
func (r *reduction) tempSlot() int { return len(r.ins) + 1 }

func (r *reduction) plan() (*Plan, error) {
	outs, n := axesSize(r.kept), axesSize(r.reduced)
	form := r.chooseForm(outs, n)
	f := &r.fold
	switch {
	case max(form.lanes, form.joinLanes) > 1 && r.unordered != nil:
		f = r.unordered
	case form.lanes == 1 && form.chunks == 1 && r.alone != nil:
		f = r.alone
	}
	wide := outs*form.chunks >= 1<<31 || n >= 1<<31
	for _, x := range r.ins {
		if lo, hi := reach(x); hi-lo >= 1<<31 {
			wide = true
		}
	}
	p := &Plan{}
	if form.chunks == 1 {
		p.Launches = append(p.Launches, r.emit(f, source{wide: wide}, sink{chunks: 1, length: n, slot: r.outSlot()}, form.sharing))
		return p, nil
	}
	for _, m := range f.parts {
		p.Temps = append(p.Temps, uint64(outs*form.chunks*m.Size()))
	}
	p.Launches = append(p.Launches,
		r.emit(f, source{wide: wide}, sink{form.chunks, form.length, r.tempSlot()}, form.sharing),
		r.emit(f, source{wide: wide, partials: form.chunks, slot: r.tempSlot()}, sink{chunks: 1, slot: r.outSlot()}, sharing{lanes: form.joinLanes, across: 1}))
	return p, nil
}

// form is the shape of the kernels of a reduction.
type form struct {
	sharing
	chunks    int // accumulators of each output; more than 1 takes a second launch
	length    int // positions a chunk
	joinLanes int // lanes of the second launch
}

// chooseForm is a pure function of shapes, layout classes and device class, so that the order of a
// sum is too.
func (r *reduction) chooseForm(outs, n int) form {
	if r.t.Class == kernel.CPU {
		return r.chooseSerial(outs, n)
	}
	return r.chooseShared(outs, n)
}

// split divides n positions into about want chunks, each a multiple of four but the last.
func split(n, want int) (chunks, length int) {
	length = ((n+want-1)/want + 3) &^ 3
	return (n + length - 1) / length, length
}

// chooseSerial shapes a reduction for a processor that runs lanes as vectors: no shared memory; one
// launch while that takes less time than a second launch would cost, then chunks for enough lanes.
func (r *reduction) chooseSerial(outs, n int) form {
	const (
		oneLaunch = 4096 // positions that a lane walks in about a launch's time
		lanes     = 256  // that keep a processor busy
		cache     = 4 << 20
		band      = 128 // rows whose pages stay in reach
	)
	one := form{sharing: sharing{lanes: 1, across: r.acrossWidth()}, chunks: 1, length: n, joinLanes: 1}
	if r.columns() && outs >= 1024 && outs*n*r.ins[0].Type.Size() > cache {
		// Columns from memory: what counts is how few lines and pages are in flight at once. Many narrow
		// lanes side by side, over few rows.
		one.across, one.local = 1, 256
		if n > 2*band {
			one.chunks, one.length = split(n, n/band)
		}
		return one
	}
	if n <= oneLaunch || outs >= lanes {
		return one
	}
	one.chunks, one.length = split(n, max((lanes+outs-1)/outs, n/16384))
	return one
}

// chooseShared shapes a reduction for a device with wide, coalesced memory: lanes of a workgroup share a
// row, or take columns each.
func (r *reduction) chooseShared(outs, n int) form {
	const want = 1 << 17 // lanes that fill a large device
	columns := r.columns()
	f := form{sharing: sharing{lanes: 1, across: 1}, chunks: 1, length: n, joinLanes: 1}
	switch {
	case n > 1024 && (!columns || outs < 32):
		f.lanes = groupSize(r.t)
	case columns:
		f.across = r.acrossWidth()
	case n <= 8:
	case n > 128:
		f.lanes = 32
	default:
		f.lanes = 8
	}
	used := outs / f.across * f.lanes
	if want := min((want+used-1)/used, n/(64*f.lanes)); want > 1 {
		f.chunks, f.length = split(n, want)
		if f.chunks > 32 {
			f.joinLanes = 32
		}
	}
	return f
}

// acrossWidth is how many neighbouring outputs one load of each operand can take.
func (r *reduction) acrossWidth() int {
	k, n := len(r.kept)-1, len(r.reduced)-1
	if k < 0 || n < 0 || slices.Contains(r.reduced[n].stride, 1) {
		return 1
	}
	width := 4
	for i, x := range r.ins {
		in := &input{x: x}
		if lo, _ := reach(x); lo < x.Layout.Offset {
			return 1
		}
		switch {
		case x.ByValue || r.kept[k].stride[i] == 0:
			width = min(width, 1<<bits.TrailingZeros(uint(r.kept[k].n|4)))
		default:
			width = min(width, in.width(i, r.kept[k], r.kept[k].n, r.kept[:k], r.reduced))
		}
	}
	return width
}

// columns reports whether neighbouring outputs are closer in memory than neighbouring positions.
func (r *reduction) columns() bool {
	if len(r.kept) == 0 || len(r.reduced) == 0 {
		return false
	}
	k, n := r.kept[len(r.kept)-1], r.reduced[len(r.reduced)-1]
	dist := func(a axis) (d int) {
		for _, s := range a.stride {
			d += max(s, -s)
		}
		return d
	}
	return dist(k) < dist(n)
}
