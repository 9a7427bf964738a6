package shaders

import (
	"slices"

	"nxvk/graph"
	"nxvk/kernel"
)

// Reduce and window_reduce take any function of an element and an accumulator. It is a Region whose first
// two operands are the element and the accumulator, of the result's type as its one result is, and whose
// others are constants. One invocation applies it to the elements of an output in row-major order, since
// the function may be anything.

// ReduceFun plans reduce of x over axes, from init on. Slots: x, init, the result.
func ReduceFun(t kernel.Target, x Operand, init Leaf, out graph.Spec, axes []int, f *Region) (*Plan, error) {
	if err := checkReduce(t, graph.OpReduce, x, out, axes); err != nil {
		return nil, err
	}
	var spans []slide
	for k, stride := range stridesOf(x) {
		if slices.Contains(axes, k) {
			spans = append(spans, whole(x.Shape[k], stride))
		} else {
			spans = append(spans, plain(x.Shape[k], stride))
		}
	}
	return foldFun(t, graph.OpReduce, x, init, out, spans, f)
}

// WindowReduce plans window_reduce of x, from init on, which padding holds too. Slots: x, init, the result.
func WindowReduce(t kernel.Target, x Operand, init Leaf, out graph.Spec, at *graph.Attrs, f *Region) (*Plan, error) {
	if err := checkOperand(string(graph.OpWindowReduce), x); err != nil {
		return nil, err
	}
	return foldFun(t, graph.OpWindowReduce, x, init, out, slides(x, out.Shape, at), f)
}

func foldFun(t kernel.Target, op graph.Op, x Operand, init Leaf, out graph.Spec, axes []slide, f *Region) (*Plan, error) {
	if err := needTypes(t, op, x.Type, init.Type, out.Type); err != nil {
		return nil, err
	}
	for _, from := range []graph.Type{x.Type, init.Type} {
		if from.Complex() || out.Type.Complex() {
			return nil, &Unsupported{op, from, "there is no kernel for complex numbers"}
		}
	}
	for i := range f.Nodes {
		if f.Nodes[i].Type.Complex() {
			return nil, &Unsupported{op, f.Nodes[i].Type, "there is no kernel for complex numbers"}
		}
	}
	if err := f.check(t); err != nil {
		return nil, err
	}
	cast := func(b *kernel.Builder, v value) kernel.Value {
		e := &eval{b}
		w := e.asType(&v, out.Type)
		return e.reg(&w)
	}
	var consts []value // of the kernel; set where its arguments are declared
	begin := func(w *writer) []kernel.Value {
		for _, l := range f.In[2:] {
			consts = append(consts, w.one(l, 0))
		}
		return []kernel.Value{cast(w.Builder, w.one(init, 1))}
	}
	fd := fold{
		elem: func(b *kernel.Builder, vs []kernel.Value) []kernel.Value {
			return []kernel.Value{cast(b, value{t: x.Type, reg: vs[0]})}
		},
		step: func(b *kernel.Builder, acc, v []kernel.Value, _ kernel.Value) []kernel.Value {
			e := &eval{b}
			vals := append([]value{{t: out.Type, reg: v[0]}, {t: out.Type, reg: acc[0]}}, consts...)
			for _, n := range f.Nodes {
				in := make([]*value, len(n.In))
				for k, i := range n.In {
					in[k] = &vals[i]
				}
				vals = append(vals, e.apply(n.Op, in, n.Type))
			}
			return []kernel.Value{e.reg(&vals[f.Outs[0]])}
		},
		final: func(b *kernel.Builder, acc []kernel.Value) kernel.Value { return CanonNaN(b, out.Type, acc[0]) },
	}
	p := windowPass{t: t, name: string(op) + "." + f.name(), f: &fd, srcs: []windowSource{{axes: axes, x: &x}}, out: &out, slot: 2}
	p.begin, p.filled = begin, op == graph.OpWindowReduce
	l := p.launch()
	rounds := 1
	for _, a := range axes {
		rounds *= a.size
	}
	if err := needRounds(t, &l, out.Shape.Size(), rounds); err != nil {
		return nil, &Unsupported{op, out.Type, err.Error()}
	}
	return &Plan{Launches: []Launch{l}}, nil
}

// one reads the one element of a leaf: a constant, a number that came with the call, or a tensor's.
func (w *writer) one(l Leaf, slot int) value {
	if l.Const {
		w.args = append(w.args, Arg{Kind: Imm, Imm: registerBits(l.Bits, l.Type)})
		return value{t: l.Type, reg: w.ScalarArg("c", RegOf(l.Type))}
	}
	x := l.Operand
	return value{t: l.Type, reg: w.operand(x, slot, false).load(0)}
}
