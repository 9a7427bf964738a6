package lower

import "nxvk/graph"

// complexView is a view that takes complex numbers apart, or puts them together: in memory the parts of each
// lie side by side.
func (l *lowering) complexView(n *graph.Node, x place) (place, bool) {
	v := x
	v.spec = n.Spec
	switch n.Op {
	case "real", "imag":
		t := x.spec.Type
		if !t.Complex() || n.Type != t.Part() || !x.tensor() && !x.constant() || !n.Shape.Equal(x.spec.Shape) {
			return v, false
		}
		which := 0
		if n.Op == "imag" {
			which = 1
		}
		if x.constant() {
			re, im := x.value.Parts(t)
			v.value = graph.Real([...]uint64{re, im}[which])
			return v, true
		}
		v.layout = partLayout(x.layout)
		v.layout.Offset += which
		return v, true
	case graph.OpParts:
		if !x.tensor() {
			l.materialize(&x)
			v.buf, v.param = x.buf, -1
		}
		v.layout = partLayout(x.layout)
		v.layout.Strides = append(v.layout.Strides, 1)
		return v, true
	case graph.OpFromParts:
		return v, x.tensor() && v.join(x)
	}
	return v, false
}

// partLayout is a layout of complex elements as one of the real parts.
func partLayout(l graph.Layout) graph.Layout {
	p := graph.Layout{Offset: 2 * l.Offset, Strides: make([]int, len(l.Strides), len(l.Strides)+1)}
	for i, s := range l.Strides {
		p.Strides[i] = 2 * s
	}
	return p
}

// join makes v the complex tensor whose parts are x, where these lie in pairs.
func (v *place) join(x place) bool {
	last := len(x.layout.Strides) - 1
	if x.layout.Strides[last] != 1 || x.layout.Offset%2 != 0 {
		return false
	}
	v.layout = graph.Layout{Offset: x.layout.Offset / 2, Strides: make([]int, last)}
	for i, s := range x.layout.Strides[:last] {
		if s%2 != 0 && x.spec.Shape[i] != 1 {
			return false
		}
		v.layout.Strides[i] = s / 2
	}
	return true
}
