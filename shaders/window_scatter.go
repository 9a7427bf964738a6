package shaders

import (
	"fmt"

	"nxvk/graph"
	"nxvk/kernel"
)

// WindowScatter plans window_scatter_max or window_scatter_min: each element of src is added to init where the extreme
// of its window of x lies. Of equal extremes the last is it, and padding, which is init too, may be: then the element is
// lost. A NaN is the extreme only where it comes first. Slots: x, src, init, the result.
//
// The first pass notes for each window which of its elements is chosen. In the second, each position of the result looks
// at the windows that hold it, in order, and adds the elements of those that chose it: no two invocations write to one
// place, so that the order of a sum is fixed. Sums of floats are rounded once.
func WindowScatter(t kernel.Target, op graph.Op, x, src Operand, init Leaf, out graph.Spec, at *graph.Attrs) (*Plan, error) {
	for _, o := range []Operand{x, src} {
		if err := checkOperand(string(op), o); err != nil {
			return nil, err
		}
	}
	if err := needTypes(t, op, x.Type, src.Type, init.Type, out.Type); err != nil {
		return nil, err
	}
	s := scatter{t: t, op: op, x: x, src: src, init: init, out: out, axes: slides(x, src.Shape, at)}
	var ok bool
	if s.typ, ok = comparedAs(t, x.Type, init.Type); !ok {
		return nil, &Unsupported{op, x.Type, fmt.Sprintf("no type of the device holds its numbers and those of %v", init.Type)}
	}
	for _, from := range []graph.Type{src.Type, init.Type} {
		if out.Type.Float() && !t.F64 && !exactIn(from, kernel.F32) {
			return nil, &Unsupported{op, from, "without f64 its operand would be rounded first"}
		}
	}
	choice, chosen := s.choose()
	return &Plan{
		Launches: []Launch{choice, s.add(chosen)},
		Temps:    []uint64{uint64(src.Shape.Size() * chosen.Size())},
	}, nil
}

// comparedAs is a type whose registers hold every number of two types.
func comparedAs(t kernel.Target, a, b graph.Type) (graph.Type, bool) {
	switch {
	case a.Complex() || b.Complex():
		return graph.Invalid, false
	case a == b:
		return a, true
	case !a.Int() || !b.Int():
		if exactIn(a, kernel.F32) && exactIn(b, kernel.F32) {
			return graph.F32, true
		}
		return graph.F64, t.F64 && exactIn(a, kernel.F64) && exactIn(b, kernel.F64)
	}
	for _, c := range []graph.Type{graph.S32, graph.S64, graph.U64} {
		holds := func(x graph.Type) bool {
			return x == c || x.Size() < c.Size() && (c.Signed() || !x.Signed())
		}
		if Has(t, c) && holds(a) && holds(b) {
			return c, true
		}
	}
	return graph.Invalid, false
}

const (
	scatterOut    = 3 // slots
	scatterChosen = 4
)

type scatter struct {
	t      kernel.Target
	op     graph.Op
	x, src Operand
	init   Leaf
	out    graph.Spec
	axes   []slide
	typ    graph.Type // in which elements are compared
}

// choose is the pass that notes which element of each window is its extreme, counted in row-major order: as numbers of
// the type that it yields.
func (s *scatter) choose() (Launch, graph.Type) {
	typ, r := graph.S32, kernel.I32
	if sizeOf(s.axes) >= wideFrom {
		typ, r = graph.S64, kernel.I64
	}
	cast := func(b *kernel.Builder, v value) kernel.Value {
		e := &eval{b}
		w := e.asType(&v, s.typ)
		return e.reg(&w)
	}
	f := fold{
		at: r,
		elem: func(b *kernel.Builder, vs []kernel.Value) []kernel.Value {
			return []kernel.Value{cast(b, value{t: s.x.Type, reg: vs[0]})}
		},
		step: func(b *kernel.Builder, acc, v []kernel.Value, at kernel.Value) []kernel.Value {
			o := (&eval{b}).order(&value{t: s.typ, reg: v[0]}, &value{t: s.typ, reg: acc[0]})
			past := o.greater
			if s.op == graph.OpWindowScatterMin {
				past = o.less
			}
			at = ResizeInt(b, at, graph.U32, r)
			take := b.Or(b.Or(past, o.equal), b.Cmp(kernel.IEq, at, b.Zero(r)))
			return []kernel.Value{b.Select(take, v[0], acc[0]), b.Select(take, at, acc[1])}
		},
		final: func(b *kernel.Builder, acc []kernel.Value) kernel.Value { return acc[1] },
	}
	p := windowPass{t: s.t, name: string(s.op) + "_choice", f: &f, srcs: []windowSource{{axes: s.axes, x: &s.x}},
		out: &graph.Spec{Type: typ, Shape: s.src.Shape}, slot: scatterChosen, filled: true, unroll: unrolled}
	p.begin = func(w *writer) []kernel.Value { return []kernel.Value{cast(w.Builder, w.one(s.init, 2)), w.Zero(r)} }
	return p.launch(), typ
}

// scatterAxis is one axis of the second pass: positions of the result, and the windows that hold them.
type scatterAxis struct {
	slide
	src, windows int // strides, in windows: of the source, and of what was chosen
	place        int // how many elements of a window come before its second one along the axis

	srcv, windowsv, placev kernel.Value
	stepv                  Divisor
	lov, sizev, outsv      kernel.Value
}

// merged are the axes of the second pass, neighbours that windows leave alone as one.
func (s *scatter) merged() []scatterAxis {
	var out []scatterAxis
	windows, place := s.src.Shape.Strides(), 1
	strides := stridesOf(s.src)
	for i := len(s.axes) - 1; i >= 0; i-- {
		a := scatterAxis{slide: s.axes[i], src: strides[i], windows: windows[i], place: place}
		place *= a.size
		if a.n == 1 && a.plain() {
			continue
		}
		if n := len(out); n > 0 && a.plain() && out[n-1].plain() && a.src == out[n-1].src*out[n-1].n {
			in := &out[n-1]
			in.slide = plain(a.n*in.n, 0)
			continue
		}
		out = append(out, a)
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// add is the pass that gathers, for each position of the result, the elements of the windows that chose it.
func (s *scatter) add(chosen graph.Type) Launch {
	tune := flatTuning(s.t)
	axes := s.merged()
	lo, hi := reach(s.src)
	wide := hi-lo >= wideFrom || s.out.Shape.Size() >= wideFrom || s.src.Shape.Size() >= wideFrom || chosen == graph.S64
	for _, a := range axes {
		wide = wide || a.wide()
	}
	k := &scatterKernel{writer: newWriter(string(s.op), s.t, tune.local, wide), s: s}
	n := k.number("n", s.out.Shape.Size())
	k.src = k.operand(s.src, 1, false)
	k.chosen = k.pointer("chosen", MemOf(chosen), false, 0, scatterChosen, 0, 0, uint64(s.src.Shape.Size()*chosen.Size()))
	extents := make([]Divisor, len(axes))
	for i := range axes {
		a := &axes[i]
		name := func(what string) string { return fmt.Sprintf("%s%d", what, i) }
		if i > 0 {
			extents[i] = k.divisor(name("n"), a.n)
		}
		a.srcv, a.windowsv = k.number(name("src"), a.src), k.number(name("w"), a.windows)
		if !a.plain() {
			a.stepv, a.lov = k.divisor(name("step"), a.step), k.number(name("lo"), a.lo)
			a.sizev, a.outsv, a.placev = k.number(name("size"), a.size), k.number(name("outs"), a.outs), k.number(name("place"), a.place)
		}
	}
	f := sumFold(s.t, s.src.Type, s.out.Type, graph.AccCompensated)
	if exact := inOrder(s.src.Type, s.out.Type, 0, (*kernel.Builder).Add); exact != nil {
		f = *exact
	}
	k.f = &f
	begin := k.begin()
	to := k.output(s.out.Type, scatterOut, s.out.Shape.Size(), 1)
	GridStride(k.Builder, tune.local, n, func(i kernel.Value) {
		k.acc = nil
		for _, v := range begin {
			k.acc = append(k.acc, k.NewVar(v))
		}
		at := make([]kernel.Value, len(axes))
		rest := i
		for a := len(at) - 1; a > 0; a-- {
			rest, at[a] = extents[a].DivMod(k.Builder, rest)
		}
		if len(at) > 0 {
			at[0] = rest
		}
		k.holding(axes, at, spot{src: k.offset(k.src.start), window: k.index(0), place: k.index(0), inside: k.ConstBool(true)})
		to.store(i, []kernel.Value{Narrow(k.Builder, s.out.Type, f.final(k.Builder, k.get()))})
	})
	grid := Groups(s.out.Shape.Size(), tune.local, max(1, tune.units/8))
	grid[0] = min(grid[0], uint32(tune.most))
	return k.launch(grid)
}

// scatterKernel is the state of the second pass's kernel.
type scatterKernel struct {
	*writer
	s      *scatter
	f      *fold
	src    *input
	chosen kernel.Ptr
	acc    []kernel.Var
}

// begin is the accumulator of the initial value alone.
func (k *scatterKernel) begin() []kernel.Value {
	e := &eval{k.Builder}
	v := k.one(k.s.init, 2)
	acc := k.f.ident(k.Builder)
	switch t := k.s.out.Type; {
	case t.Int():
		w := e.asType(&v, t)
		acc[0] = ResizeInt(k.Builder, e.reg(&w), t, k.TypeOf(acc[0]))
	default:
		r := k.TypeOf(acc[0])
		acc[0] = e.float(&v, r)
		if len(acc) > 1 { // what an error is added to keeps the sign of a zero
			acc[1] = k.Un(kernel.FNeg, k.Zero(r))
		}
	}
	return acc
}

// spot is a window that holds a position: where its element of the source and what it chose lie, and which of its
// elements the position is.
type spot struct{ src, window, place, inside kernel.Value }

// holding visits the windows that hold the position at, in order.
func (k *scatterKernel) holding(axes []scatterAxis, at []kernel.Value, w spot) {
	if len(axes) == 0 {
		k.If(w.inside, func() {
			c := k.Load(k.chosen, w.window)
			k.If(k.Cmp(kernel.IEq, c, ResizeInt(k.Builder, w.place, graph.U32, k.TypeOf(c))), func() {
				v := k.f.elem(k.Builder, []kernel.Value{k.src.load(w.src)})
				for j, x := range k.f.step(k.Builder, k.get(), v, k.index(0)) {
					k.Set(k.acc[j], x)
				}
			}, nil)
		}, nil)
		return
	}
	a := &axes[0]
	step := func(o, place, inside kernel.Value) {
		k.holding(axes[1:], at[1:], spot{
			src:    k.Add(w.src, k.Mul(o, a.srcv)),
			window: k.Add(w.window, k.Mul(o, a.windowsv)),
			place:  place,
			inside: inside,
		})
	}
	if a.plain() {
		step(at[0], w.place, w.inside)
		return
	}
	zero := k.index(0)
	p := k.Add(at[0], a.lov) // counted from the padding's begin, so that window o starts at o*step
	before := k.Cmp(kernel.SLt, p, zero)
	last, rest := a.stepv.DivMod(k.Builder, k.Select(before, zero, p))
	if a.step >= a.size {
		// At most one window holds it.
		in := k.And(k.And(k.Not(before), k.Cmp(kernel.ULt, rest, a.sizev)), k.Cmp(kernel.ULt, last, a.outsv))
		step(last, k.Add(w.place, k.Mul(rest, a.placev)), k.And(w.inside, in))
		return
	}
	reach := k.Sub(a.sizev, k.index(1))
	early := k.Cmp(kernel.SLt, reach, p)
	// The first one that reaches p: ⌈(p - reach) / step⌉.
	first, _ := a.stepv.DivMod(k.Builder, k.Add(k.Select(early, k.Sub(p, reach), zero), k.AddI(a.stepv.Extent(), -1)))
	to := k.Select(before, zero, k.min(k.AddI(last, 1), a.outsv))
	k.For(first, to, k.index(1), func(o kernel.Value) {
		place := k.Sub(p, k.Mul(o, a.stepv.Extent()))
		step(o, k.Add(w.place, k.Mul(place, a.placev)), w.inside)
	})
}

func (k *scatterKernel) get() []kernel.Value {
	out := make([]kernel.Value, len(k.acc))
	for j, v := range k.acc {
		out[j] = k.Get(v)
	}
	return out
}
