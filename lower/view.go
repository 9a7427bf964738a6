package lower

import (
	"slices"

	"nxvk/graph"
)

// view computes a node that needs no kernel: its result is an operand seen through another layout, or a
// number.
func (l *lowering) view(n *graph.Node) (place, bool) {
	if n.Op == graph.OpConstant {
		return place{spec: n.Spec, buf: -1, param: -1, value: n.Attrs.Number()}, true
	}
	if len(n.In) == 0 {
		return place{}, false
	}
	if n.Op == graph.OpElem {
		if n.Attrs.Index == 0 {
			return l.at[n.In[0]], true
		}
		return l.more[n.In[0]][n.Attrs.Index-1], true
	}
	x := l.at[n.In[0]]
	if v, ok := l.complexView(n, x); ok {
		return v, true
	}
	v := x
	v.spec = n.Spec
	s, st := x.spec.Shape, x.layout.Strides
	at := &n.Attrs
	switch n.Op {
	case graph.OpReshape, graph.OpSqueeze, graph.OpTranspose, graph.OpReverse, graph.OpBroadcast:
		if !x.tensor() {
			return v, true // a number looks the same from everywhere
		}
	case graph.OpAsType:
		if x.constant() {
			v.value = graph.ConvertValue(x.value, x.spec.Type, n.Type)
			return v, true
		}
		return v, x.spec.Type == n.Type && (!x.tensor() || x.layout.IsContiguous(s))
	case graph.OpBitcast:
		if x.spec.Type.Bits() < 8 && x.spec.Type != n.Type { // the byte is extended by another sign
			v.value = graph.ConvertValue(x.value, x.spec.Type, n.Type)
			return v, x.constant()
		}
		return v, x.tensor() || x.constant()
	}
	switch n.Op {
	case graph.OpReshape:
		strides, ok := reshapeStrides(s, st, n.Shape)
		v.layout.Strides = strides
		return v, ok
	case graph.OpSqueeze:
		v.layout.Strides = nil
		for i := range s {
			if !slices.Contains(at.Axes, i) {
				v.layout.Strides = append(v.layout.Strides, st[i])
			}
		}
		return v, true
	case graph.OpTranspose:
		v.layout.Strides = make([]int, len(s))
		for i, a := range at.Axes {
			v.layout.Strides[i] = st[a]
		}
		return v, true
	case graph.OpReverse:
		v.layout.Strides = slices.Clone(st)
		for _, a := range at.Axes {
			v.layout.Offset += (s[a] - 1) * st[a]
			v.layout.Strides[a] = -st[a]
		}
		return v, true
	case graph.OpBroadcast:
		v.layout.Strides = make([]int, len(n.Shape))
		for i, a := range at.Axes {
			if s[i] != 1 {
				v.layout.Strides[a] = st[i]
			}
		}
		return v, true
	case graph.OpSlice:
		return l.sliceView(n, v)
	}
	return place{}, false
}

// sliceView is a slice whose starts are constants.
func (l *lowering) sliceView(n *graph.Node, v place) (place, bool) {
	x := &l.at[n.In[0]]
	if !x.tensor() {
		return v, true
	}
	v.layout = graph.Layout{Offset: x.layout.Offset, Strides: make([]int, len(n.Shape))}
	for i, r := range n.In[1:] {
		most := x.spec.Shape[i] - n.Attrs.Lengths[i]
		start := 0
		if most > 0 {
			p := &l.at[r]
			if !p.constant() {
				return v, false
			}
			start = clampStart(p.value.Lo, p.spec.Type, most)
		}
		v.layout.Offset += start * x.layout.Strides[i]
		v.layout.Strides[i] = x.layout.Strides[i] * n.Attrs.Strides[i]
	}
	return v, true
}

// clampStart brings a start of type t into [0, most].
func clampStart(bits uint64, t graph.Type, most int) int {
	if t.Signed() {
		n := int64(graph.ConvertBits(bits, t, graph.S64))
		return int(min(max(n, 0), int64(most)))
	}
	return int(min(graph.ConvertBits(bits, t, graph.U64), uint64(most)))
}

// reshapeStrides finds strides that show a tensor of shape from under shape to without moving it. Runs
// of axes with equal products on both sides are matched; each run of from must be evenly spaced.
func reshapeStrides(from graph.Shape, strides []int, to graph.Shape) ([]int, bool) {
	out := make([]int, len(to))
	// Axes of extent 1 say nothing.
	var ext, st []int
	for i, d := range from {
		if d != 1 {
			ext, st = append(ext, d), append(st, strides[i])
		}
	}
	i, j := 0, 0
	for i < len(ext) {
		iEnd, jEnd := i+1, j
		have, want := ext[i], 1
		for have != want {
			if want < have {
				want *= to[jEnd]
				jEnd++
			} else {
				have *= ext[iEnd]
				iEnd++
			}
		}
		for k := i; k < iEnd-1; k++ {
			if st[k] != st[k+1]*ext[k+1] {
				return nil, false
			}
		}
		step := st[iEnd-1]
		for k := jEnd - 1; k >= j; k-- {
			out[k] = step
			step *= to[k]
		}
		i, j = iEnd, jEnd
	}
	return out, true
}
