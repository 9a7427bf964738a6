package shaders

import (
	"fmt"

	"nxvk/graph"
	"nxvk/kernel"
)

// Window plans window_sum, window_product, window_max or window_min of x. Padding holds the unit of the
// operation. Slots: x, the result.
//
// Small windows are gathered in one pass, element by element in row-major order, which is what
// Nx.BinaryBackend does. Large ones take one axis at a time, from the innermost out, and along an axis by
// windows of windows, so that the work grows with the logarithm of the extent. Either is a function of
// shapes, types and device class alone. Sums and products of floats are gathered in more precision than
// they have and rounded once; of equal zeros the last is the extreme, and a NaN wins.
func Window(t kernel.Target, op graph.Op, x Operand, out graph.Spec, at *graph.Attrs) (*Plan, error) {
	if err := checkOperand(string(op), x); err != nil {
		return nil, err
	}
	if err := needTypes(t, op, x.Type, out.Type); err != nil {
		return nil, err
	}
	w := windowing{t: t, name: string(op), out: out, plan: &Plan{}}
	switch op {
	case graph.OpWindowSum:
		w.staged = sumFold(t, x.Type, out.Type, graph.AccCompensated)
		w.direct = inOrder(x.Type, out.Type, 0, (*kernel.Builder).Add)
	case graph.OpWindowProduct:
		w.staged = productFold(t, x.Type, out.Type)
		w.direct = inOrder(x.Type, out.Type, 1, (*kernel.Builder).Mul)
	case graph.OpWindowMax, graph.OpWindowMin:
		w.staged = lateExtreme(op == graph.OpWindowMax, x.Type, out.Type)
	default:
		return nil, fmt.Errorf("%s: no windowed reduction", op)
	}
	if w.direct == nil {
		w.direct = &w.staged
	}
	w.gather(windowSource{x: &x, axes: slides(x, out.Shape, at)})
	return w.plan, nil
}

// lateExtreme is the fold of the greatest or least element, the last of equal ones.
func lateExtreme(max bool, in, out graph.Type) fold {
	wins := better(in, max, true)
	f := plainFold(RegOf(in), worst(in, max), func(b *kernel.Builder, acc, v kernel.Value) kernel.Value {
		return b.Select(wins(b, acc, v), v, acc)
	})
	f.final = func(b *kernel.Builder, acc []kernel.Value) kernel.Value {
		return CanonNaN(b, out, Convert(b, acc[0], in, out))
	}
	return f
}

// windowing is the planner. Slots: the operand, the result, then temporaries.
type windowing struct {
	t      kernel.Target
	name   string
	out    graph.Spec
	direct *fold // where one pass does it all
	staged fold
	plan   *Plan
}

const (
	windowOut  = 1 // slot of the result
	firstStage = 2
	// radix is how many windows a window of windows holds.
	radix = 16
	// unrolled is the most elements of windows whose size is part of a kernel: 2×2 and 3×3, of which models have few.
	unrolled = 9
)

// lanes is how many invocations keep a device of a class busy.
func lanes(t kernel.Target) int {
	if t.Class == kernel.CPU {
		return 64
	}
	return 4096
}

// gather plans the passes over x.
func (w *windowing) gather(x windowSource) {
	elements, size := 1, 1
	for _, a := range x.axes {
		elements *= a.n
		size = satMul(size, a.size)
	}
	outs := outsOf(x.axes)
	if size <= 2*radix || satMul(outs, size) <= 4*elements && outs >= lanes(w.t) {
		w.pass(w.direct, &w.out, x)
		return
	}
	// One axis after another, or neighbours together as long as their windows are small.
	for last := len(x.axes) - 1; last >= 0; {
		first, size := last, x.axes[last].size
		for first > 0 && satMul(size, x.axes[first-1].size) <= 2*radix {
			first--
			size *= x.axes[first].size
		}
		rest := 1
		for _, a := range x.axes[:first] {
			rest *= a.size
		}
		x = w.along(x, first, last, rest == 1)
		if rest == 1 {
			return
		}
		last = first - 1
	}
}

// satMul multiplies, up to a number that no work reaches.
func satMul(x, y int) int {
	const most = 1 << 50
	if y > 0 && x > most/y {
		return most
	}
	return x * y
}

// along gathers the windows of axes first to last; where done, to the result. The others stay as they are.
func (w *windowing) along(x windowSource, first, last int, done bool) windowSource {
	axes := make([]slide, len(x.axes))
	for i, a := range x.axes {
		axes[i] = plain(a.n, a.stride)
	}
	copy(axes[first:last+1], x.axes[first:last+1])
	to := func() *graph.Spec {
		if done {
			return &w.out
		}
		return nil
	}
	with := func(s windowSource, a slide) windowSource {
		s.axes = append([]slide(nil), s.axes...)
		a.stride = s.axes[first].stride
		s.axes[first] = a
		return s
	}
	// next is the accumulators that a pass left, with what is yet to do with the other axes.
	next := func(s windowSource) windowSource {
		for i := range x.axes {
			if i < first {
				a := x.axes[i]
				a.stride = s.axes[i].stride
				s.axes[i] = a
			}
		}
		return s
	}
	a := x.axes[first]
	src := x
	src.axes = axes
	outs := outsOf(axes)
	busy := outs >= lanes(w.t)
	switch {
	case first < last, a.size <= 4*radix, satMul(a.outs, a.size) <= 4*(a.n+max(0, a.lo)) && (busy || a.size <= 64*radix):
		return next(w.pass(&w.staged, to(), src))
	case a.outs == 1:
		// One long window, in pieces.
		pieces := min(max(lanes(w.t)/outs, 2), a.size/radix)
		length := (a.size + pieces - 1) / pieces
		pieces = (a.size + length - 1) / length
		n := min(a.n, (a.size-1)*a.gap+1-a.lo)
		s := w.pass(&w.staged, nil, with(src, slide{n: n, outs: pieces, size: length, step: length * a.gap, gap: a.gap, lo: a.lo}))
		return next(w.pass(&w.staged, to(), with(s, whole(pieces, 0))))
	}
	// Level j has, at each position, the window of the radix^j elements from there on. A window of any size
	// is made of some of each level.
	extent := (a.outs-1)*a.step + (a.size-1)*a.gap + 1
	var parts []windowSource
	level, reach, base := with(src, a), 1, 0
	lo := a.lo // of level 0; later levels begin with the padding
	for rest := a.size; rest > 0; rest /= radix {
		if n := rest % radix; n > 0 {
			parts = append(parts, with(level, slide{n: level.axes[first].n, outs: a.outs, size: n, step: a.step, gap: a.gap * reach, lo: lo - base*a.gap}))
			base += n * reach
		}
		if rest < radix {
			break
		}
		level = w.pass(&w.staged, nil, with(level, slide{n: level.axes[first].n, outs: extent, size: radix, step: 1, gap: a.gap * reach, lo: lo}))
		lo, reach = 0, reach*radix
	}
	return next(w.pass(&w.staged, to(), parts...))
}

// pass adds a launch that gathers the windows of the sources: to the result, or to accumulators, which it
// yields as a source that has yet to be given windows.
func (w *windowing) pass(f *fold, out *graph.Spec, srcs ...windowSource) windowSource {
	p := windowPass{t: w.t, name: w.name, f: f, srcs: srcs, out: out, slot: windowOut, unroll: unrolled}
	outs := outsOf(srcs[0].axes)
	to := windowSource{count: outs}
	if out == nil {
		p.name += "_part"
		p.slot = firstStage + len(w.plan.Temps)
		to.slot = p.slot
		for _, m := range f.parts {
			w.plan.Temps = append(w.plan.Temps, uint64(outs*m.Size()))
		}
	}
	n := 1
	to.axes = make([]slide, len(srcs[0].axes))
	for i := len(to.axes) - 1; i >= 0; i-- {
		a := srcs[0].axes[i]
		to.axes[i] = plain(a.outs, n)
		n *= a.outs
	}
	w.plan.Launches = append(w.plan.Launches, p.launch())
	return to
}
