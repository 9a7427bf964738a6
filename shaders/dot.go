package shaders

import (
	"fmt"
	"slices"

	"nxvk/graph"
	"nxvk/kernel"
)

// Dot plans a contraction: at.ContractA pairs with at.ContractB, at.BatchA with at.BatchB, and the
// result's axes are batch, then the free axes of a, then those of b. Operands are read where they
// lie, whatever their layout.
//
// Products and sums follow Nx.BinaryBackend: integers wrap in the result's type, floats are gathered in
// more precision than they have and rounded once. at.Acc says how f32 gathers.
func Dot(t kernel.Target, a, b Operand, out graph.Spec, at graph.Attrs) (*Plan, error) {
	return dot(t, a, b, out, at, nil)
}

// dot is Dot with an epilogue, which maps each result (in out's register type, before it is narrowed)
// at its flat index.
func dot(t kernel.Target, a, b Operand, out graph.Spec, at graph.Attrs, epilogue epilogue) (*Plan, error) {
	d, err := newContraction(t, a, b, out, at)
	if err != nil {
		return nil, err
	}
	return d.plan("dot", t, []Operand{a, b}, out.Type, at.Acc, epilogue)
}

// plan chooses the kernels of a contraction of ins, whose products are gathered into type out.
func (d *contraction) plan(name string, t kernel.Target, ins []Operand, out graph.Type, acc graph.Acc, epilogue epilogue) (*Plan, error) {
	f := dotFold(t, ins[0].Type, ins[1].Type, out, acc)
	if t.Class == kernel.CPU {
		l := &lanesDot{t: t, name: name, d: d, ins: ins, out: out, fold: f, epilogue: epilogue}
		if l.chooseLanes() {
			return &Plan{Launches: []Launch{l.launch()}}, nil
		}
	} else {
		s := &sharedDot{t: t, name: name, d: d, ins: ins, out: out, fold: f, epilogue: epilogue}
		if axesSize(d.inner) > exactDepth {
			s.fold = dotFold(tiled(t), ins[0].Type, ins[1].Type, out, acc)
		}
		if s.choose() {
			if s.chunks == 1 {
				return &Plan{Launches: []Launch{s.launch()}}, nil
			}
			dense := d.results()
			return d.settle(t, out, dense, s.plan()), nil
		}
	}
	dense := d.results()
	slices.SortStableFunc(dense, func(x, y axis) int { return y.stride[2] - x.stride[2] })
	r := reduction{
		t: t, name: name, ins: ins, out: graph.Spec{Type: out, Shape: graph.Shape{axesSize(dense)}},
		kept:     mergeAxes(operandsOf(dense)),
		reduced:  operandsOf(d.inner),
		fold:     f.fold,
		alone:    f.alone,
		epilogue: epilogue,
	}
	p, err := r.plan()
	if err != nil {
		return nil, err
	}
	return d.settle(t, out, dense, p), nil
}

// results are the axes of the result: batch, rows, columns.
func (d *contraction) results() []axis { return slices.Concat(d.batch, d.rows, d.cols) }

// last is the element of the result's buffer that lies furthest.
func (d *contraction) last() int {
	n := d.out
	for _, a := range d.results() {
		n += (a.n - 1) * a.stride[2]
	}
	return n
}

// operandsOf is axes without the strides of the result.
func operandsOf(axes []axis) []axis {
	out := make([]axis, len(axes))
	for i, a := range axes {
		out[i] = axis{a.n, a.stride[:2]}
	}
	return out
}

// settle takes a plan that leaves its results in the order of axes, and has them where they belong.
func (d *contraction) settle(t kernel.Target, out graph.Type, axes []axis, p *Plan) *Plan {
	n, dense := 1, d.out == 0
	for i := len(axes) - 1; i >= 0; i-- {
		dense = dense && (axes[i].n == 1 || axes[i].stride[2] == n)
		n *= axes[i].n
	}
	if dense {
		return p
	}
	const result, temp = 2, 3
	p.move(func(slot int) int {
		if slot >= result {
			return slot + 1
		}
		return slot
	})
	p.Temps = slices.Insert(p.Temps, 0, uint64(n*out.Size()))
	layout := graph.Layout{Offset: d.out}
	shape := graph.Shape{}
	for _, a := range axes {
		shape, layout.Strides = append(shape, a.n), append(layout.Strides, a.stride[2])
	}
	p.Launches = append(p.Launches, scatterInto(t, graph.Spec{Type: out, Shape: shape}, layout, temp, result))
	return p
}

// move gives the slots of a plan other numbers.
func (p *Plan) move(to func(slot int) int) {
	for i := range p.Launches {
		l := &p.Launches[i]
		for k := range l.Args {
			if l.Args[k].Kind != Imm {
				l.Args[k].Slot = to(l.Args[k].Slot)
			}
		}
		for k := range l.Access {
			l.Access[k].Slot = to(l.Access[k].Slot)
		}
	}
}

// tiled is the target as tiles in shared memory see it: there, f32 with its errors costs less than f64.
func tiled(t kernel.Target) kernel.Target {
	t.SlowF64 = true
	return t
}

// epilogue maps a result before it is narrowed and stored; at is its flat index.
type epilogue func(b *kernel.Builder, v, at kernel.Value) kernel.Value

// contraction is a dot product as nested spaces; operand 0 is a, 1 is b, 2 the result. The strides of rows are
// 0 for b, those of cols 0 for a, those of inner 0 for the result.
type contraction struct {
	batch, rows, cols, inner []axis
	out                      int // element of the result's buffer at which point 0 lies
}

func newContraction(t kernel.Target, a, b Operand, out graph.Spec, at graph.Attrs) (*contraction, error) {
	fail := func(format string, args ...any) (*contraction, error) {
		return nil, fmt.Errorf("dot: "+format, args...)
	}
	for _, x := range []Operand{a, b} {
		if err := checkOperand("dot", x); err != nil {
			return nil, err
		}
	}
	if err := needTypes(t, graph.OpDot, a.Type, b.Type, out.Type); err != nil {
		return nil, err
	}
	for _, x := range []graph.Type{a.Type, b.Type} {
		if out.Type.Float() && !t.F64 && !exactIn(x, kernel.F32) {
			return nil, &Unsupported{graph.OpDot, x, "without f64 its operand would be rounded first"}
		}
	}
	sa, sb := stridesOf(a), stridesOf(b)
	pair := func(what string, as, bs []int) ([]axis, error) {
		if len(as) != len(bs) {
			return nil, fmt.Errorf("dot: %d %s axes of %v against %d of %v", len(as), what, a.Shape, len(bs), b.Shape)
		}
		var axes []axis
		for i := range as {
			x, y := as[i], bs[i]
			if x < 0 || x >= len(sa) || y < 0 || y >= len(sb) {
				return nil, fmt.Errorf("dot: %s axes %d and %d of shapes %v and %v", what, x, y, a.Shape, b.Shape)
			}
			if a.Shape[x] != b.Shape[y] {
				return nil, fmt.Errorf("dot: %s size %d of %v does not match %d of %v", what, a.Shape[x], a.Shape, b.Shape[y], b.Shape)
			}
			axes = append(axes, axis{a.Shape[x], []int{sa[x], sb[y], 0}})
		}
		return axes, nil
	}
	d := &contraction{}
	var err error
	if d.batch, err = pair("batch", at.BatchA, at.BatchB); err != nil {
		return nil, err
	}
	if d.inner, err = pair("contraction", at.ContractA, at.ContractB); err != nil {
		return nil, err
	}
	for k, s := range sa {
		if !slices.Contains(at.ContractA, k) && !slices.Contains(at.BatchA, k) {
			d.rows = append(d.rows, axis{a.Shape[k], []int{s, 0, 0}})
		}
	}
	for k, s := range sb {
		if !slices.Contains(at.ContractB, k) && !slices.Contains(at.BatchB, k) {
			d.cols = append(d.cols, axis{b.Shape[k], []int{0, s, 0}})
		}
	}
	if n := axesSize(d.batch) * axesSize(d.rows) * axesSize(d.cols); n != out.Shape.Size() {
		return fail("%v by %v gives %d elements, not those of %v", a.Shape, b.Shape, n, out.Shape)
	}
	n := 1
	for _, axes := range [][]axis{d.cols, d.rows, d.batch} {
		for i := len(axes) - 1; i >= 0; i-- {
			axes[i].stride[2] = n
			n *= axes[i].n
		}
	}
	d.batch, d.rows, d.cols, d.inner = mergeAxes(d.batch), mergeAxes(d.rows), mergeAxes(d.cols), mergeAxes(d.inner)
	return d, nil
}

// dotFolding is a fold of products: left and right bring an operand's value to the type in which products are
// made, once for all the products that it takes part in, and times yields an element for step.
type dotFolding struct {
	fold
	// alone, unless nil, is the fold where one lane takes all the products of a result, in order.
	alone       *fold
	via         kernel.Type // the register type of products
	left, right func(b *kernel.Builder, v kernel.Value) kernel.Value
	times       func(b *kernel.Builder, x, y kernel.Value) []kernel.Value
}

// dotFold gathers products. Floats narrower than f64, and integers times floats, are multiplied and
// gathered in F64 where that is fast or asked for; else products and sums carry their errors along.
func dotFold(t kernel.Target, a, b, out graph.Type, acc graph.Acc) dotFolding {
	var f dotFolding
	via := out
	f.times = func(w *kernel.Builder, x, y kernel.Value) []kernel.Value { return []kernel.Value{w.Mul(x, y)} }
	r := RegOf(out)
	if !out.Float() {
		f.fold = plainFold(r, unitOf(r, 0), (*kernel.Builder).Add)
		f.final = func(_ *kernel.Builder, acc []kernel.Value) kernel.Value { return acc[0] }
	} else {
		r = dotRegister(t, a, b, out, acc)
		via = regType(r)
		switch {
		case out == graph.F64:
			f.fold = pairSum(r, out)
		case r == kernel.F64, out == graph.F32 && acc == graph.AccF32:
			f.fold = plainFold(r, unitOf(r, 0), (*kernel.Builder).Add)
			f.final = floatOut(r, out)
		default:
			f.fold = pairSum(r, out)
			f.times = exactProduct
		}
	}
	f.via = RegOf(via)
	f.left = func(w *kernel.Builder, v kernel.Value) kernel.Value { return Convert(w, v, a, via) }
	f.right = func(w *kernel.Builder, v kernel.Value) kernel.Value { return Convert(w, v, b, via) }
	f.elem = func(w *kernel.Builder, vs []kernel.Value) []kernel.Value {
		return f.times(w, f.left(w, vs[0]), f.right(w, vs[1]))
	}
	if f.alone = inOrder(out, out, 0, (*kernel.Builder).Add); f.alone != nil {
		f.alone.elem = f.elem
	}
	return f
}

// exactProduct yields a product and its rounding error.
func exactProduct(b *kernel.Builder, x, y kernel.Value) []kernel.Value {
	p := b.Mul(x, y)
	e := b.FmaExact(x, y, b.Un(kernel.FNeg, p))
	return []kernel.Value{p, productError(b, p, e)}
}

// productError is e, the rounding error of product p, where it is one: beyond the range it is noise (inf − inf, or a split
// that overflowed), and of products so small that it is subnormal no device needs to know it.
func productError(b *kernel.Builder, p, e kernel.Value) kernel.Value {
	r := b.TypeOf(p)
	least := b.ConstFloat(r, 0x1p-100)
	if r == kernel.F64 {
		least = b.ConstFloat(r, 0x1p-960)
	}
	size := b.Un(kernel.FAbs, p)
	ok := b.And(b.Cmp(kernel.FLe, least, size), b.Cmp(kernel.FLt, b.Un(kernel.FAbs, e), size))
	return b.Select(ok, e, b.Zero(r))
}

// dotRegister is the register type in which products of a float result are gathered.
func dotRegister(t kernel.Target, a, b, out graph.Type, acc graph.Acc) kernel.Type {
	wide := func(x graph.Type) bool { return x.Size() == 8 || x.Int() && x.Size() == 4 } // beyond f32's 24 bits
	switch {
	case out == graph.F64:
		return kernel.F64
	case !t.F64, out == graph.F32 && acc == graph.AccF32 && !wide(a) && !wide(b):
		return kernel.F32
	case acc == graph.AccF64, wide(a), wide(b), fastF64(t):
		return kernel.F64
	}
	return kernel.F32
}
