package host

import "nxvk/graph"

func init() {
	register(reduceFun, graph.OpReduce)
	register(windowReduce, graph.OpWindowReduce)
}

// function is a scalar function of an element and an accumulator, that is applied to many pairs at once where its
// operations allow: each of its scalars then is a vector.
type function struct {
	g     *graph.Graph
	typ   graph.Type
	wide  bool
	lanes int
	fun   *graph.Graph // of vectors of lanes elements
}

// pointwise are the operations that mean the same for a vector as for each of its elements.
var pointwise = func() map[graph.Op]bool {
	m := map[graph.Op]bool{graph.OpConstant: true, graph.OpAsType: true, graph.OpBitcast: true, graph.OpSelect: true, graph.OpLogicalNot: true, graph.OpPhase: true}
	for _, op := range graph.Binary {
		m[op] = true
	}
	for _, op := range graph.Unary {
		m[op] = true
	}
	return m
}()

func newFunction(g *graph.Graph, t graph.Type) *function {
	f := &function{g: g, typ: t, wide: true}
	for i := range g.Nodes {
		if !pointwise[g.Nodes[i].Op] {
			f.wide = false
		}
	}
	return f
}

// vector is the function's graph over vectors of n elements.
func (f *function) vector(n int) *graph.Graph {
	if f.fun != nil && f.lanes == n {
		return f.fun
	}
	s := graph.Shape{n}
	g := &graph.Graph{Outs: f.g.Outs}
	for _, p := range f.g.Params {
		p.Shape = s
		g.Params = append(g.Params, p)
	}
	for _, x := range f.g.Nodes {
		x.Shape = s
		g.Nodes = append(g.Nodes, x)
	}
	f.fun, f.lanes = g, n
	return g
}

// apply is the function of vectors x and acc.
func (f *function) apply(x, acc Tensor) (Tensor, error) {
	n := x.Shape[0]
	if f.wide {
		out, err := eval(f.vector(n), []Tensor{x, acc})
		if err != nil {
			return Tensor{}, err
		}
		return out[0], nil
	}
	out, size := New(acc.Spec), f.typ.Size()
	scalar := func(t Tensor, i int) Tensor {
		return Tensor{Spec: graph.Spec{Type: f.typ, Shape: graph.Shape{}}, Data: t.Data[i*size : (i+1)*size]}
	}
	for i := range n {
		r, err := eval(f.g, []Tensor{scalar(x, i), scalar(acc, i)})
		if err != nil {
			return Tensor{}, err
		}
		copy(out.Data[i*size:], r[0].Data)
	}
	return out, nil
}

// fold folds rows of count elements, which lie one after the other in x, from init on: all rows at once, an element of
// each at a time. Row r's k-th element is at place(r, k), or is init where that is negative.
func (f *function) fold(x, init Tensor, rows, count int, place func(r, k int) int) ([]byte, error) {
	size := f.typ.Size()
	s := graph.Spec{Type: f.typ, Shape: graph.Shape{rows}}
	acc, col := seen(s, init, graph.Layout{Strides: []int{0}}), New(s)
	for k := range count {
		for r := range rows {
			if i := place(r, k); i < 0 {
				copy(col.Data[r*size:(r+1)*size], init.Data)
			} else {
				copy(col.Data[r*size:(r+1)*size], x.Data[i*size:])
			}
		}
		var err error
		if acc, err = f.apply(col, acc); err != nil {
			return nil, err
		}
	}
	return acc.Data, nil
}

// reduceFun folds the elements of the reduced axes, in row-major order, with a function.
func reduceFun(n *graph.Node, in []Tensor) ([]Tensor, error) {
	view, count := lanes(in[0], n.Attrs.Axes)
	x := as(graph.Spec{Type: n.Type, Shape: view.Shape}, view)
	init := as(graph.Spec{Type: n.Type}, in[1])
	data, err := newFunction(n.Attrs.Fun, n.Type).fold(x, init, n.Shape.Size(), count, func(r, k int) int { return r*count + k })
	return []Tensor{{Spec: n.Spec, Layout: graph.Contiguous(n.Shape), Data: data}}, err
}

// windowReduce folds the elements of each window with a function. Padding is the initial value.
func windowReduce(n *graph.Node, in []Tensor) ([]Tensor, error) {
	x := as(graph.Spec{Type: n.Type, Shape: in[0].Shape}, in[0])
	init := as(graph.Spec{Type: n.Type}, in[1])
	w := newWindows(x.Shape, n.Shape, &n.Attrs, n.Attrs.Dilation)
	rows, count := n.Shape.Size(), product(w.window...)
	pos, idx := make([]int, len(n.Shape)), make([]int, len(n.Shape))
	data, err := newFunction(n.Attrs.Fun, n.Type).fold(x, init, rows, count, func(r, k int) int {
		indexOf(pos, w.out, r)
		indexOf(idx, w.window, k)
		return w.at(pos, idx)
	})
	return []Tensor{{Spec: n.Spec, Layout: graph.Contiguous(n.Shape), Data: data}}, err
}
