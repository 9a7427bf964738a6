package shaders

import (
	"fmt"

	"nxvk/graph"
	"nxvk/kernel"
)

// windowAxis is an axis of a result into which a smaller tensor, the patch, is laid.
type windowAxis struct {
	n, p     int  // extents of the result and of the patch
	patch    int  // stride of the patch
	under    int  // stride of what lies under it
	cut      bool // the patch does not cover the axis from end to end
	start    int  // cut: which start; its value counts scale elements of the (merged) axis
	scale    int
	interior int // gaps between elements of the patch
}

// mergeWindow merges neighbours as far as strides allow and only the outer one is cut.
func mergeWindow(axes []windowAxis) []windowAxis {
	var out []windowAxis
	for i := len(axes) - 1; i >= 0; i-- {
		a := axes[i]
		if a.n == 1 && !a.cut {
			continue
		}
		if n := len(out); n > 0 {
			in := &out[n-1]
			if !in.cut && a.interior == 0 && (a.p == 1 || a.patch == in.patch*in.n) && a.under == in.under*in.n {
				in.n, in.p = a.n*in.n, a.p*in.n
				in.cut, in.start, in.scale = a.cut, a.start, a.scale*(in.n/a.n)
				continue
			}
		}
		out = append(out, a)
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// overlay is the kernel of pad and put_slice: a patch over a background.
type overlay struct {
	*flat
	axes  []windowAxis
	patch Operand
	from  graph.Type
	src   kernel.Ptr
	bias  kernel.Value

	div      []Divisor
	starts   []kernel.Value // by axis, scaled; 0 where not cut
	extent   []kernel.Value
	gap      []Divisor
	patchStr []kernel.Value
}

// newOverlay declares the patch at slot; start yields the value of start i of an axis.
func newOverlay(f *flat, axes []windowAxis, patch Operand, from graph.Type, slot int, start func(a windowAxis) kernel.Value) *overlay {
	w := &overlay{flat: f, axes: axes, patch: patch, from: from}
	r := f.indexType()
	lo, hi := graph.Reach(patch.Shape, patch.Layout)
	whole := &IndexMap{Maps: []Mapped{{Lo: lo, Hi: hi}}}
	w.src = f.pointer("patch", MemOf(from), whole, 0, slot, from, 1, false)
	w.bias = f.scalar("bias", r, immInt(patch.Layout.Offset-lo))
	n := len(axes)
	w.div, w.gap = make([]Divisor, n), make([]Divisor, n)
	w.starts, w.extent, w.patchStr = make([]kernel.Value, n), make([]kernel.Value, n), make([]kernel.Value, n)
	for i, a := range axes {
		if i > 0 {
			w.div[i] = f.divisor(fmt.Sprintf("d%d", i), a.n, r)
		}
		w.patchStr[i] = f.scalar(fmt.Sprintf("p%d", i), r, immInt(a.patch))
		if !a.cut {
			continue
		}
		w.starts[i] = start(a)
		span := a.p
		if a.interior > 0 {
			span = (a.p-1)*(a.interior+1) + 1
			w.gap[i] = f.divisor(fmt.Sprintf("gap%d", i), a.interior+1, r)
		}
		w.extent[i] = f.scalar(fmt.Sprintf("e%d", i), r, immInt(span))
	}
	return w
}

// at splits a linear index: whether it is inside the patch, where in the patch, and the coordinates.
func (w *overlay) at(i kernel.Value) (inside, offset kernel.Value, coords []kernel.Value) {
	inside, offset = w.ConstBool(true), w.bias
	coords = make([]kernel.Value, len(w.axes))
	rest := i
	for k := len(w.axes) - 1; k > 0; k-- {
		rest, coords[k] = w.div[k].DivMod(w.Builder, rest)
	}
	if len(coords) > 0 {
		coords[0] = rest
	}
	for k, a := range w.axes {
		c := coords[k]
		if a.cut {
			c = w.Sub(c, w.starts[k])
			inside = w.And(inside, w.Cmp(kernel.ULt, c, w.extent[k]))
			if a.interior > 0 {
				q, r := w.gap[k].DivMod(w.Builder, c)
				inside = w.And(inside, w.Cmp(kernel.IEq, r, w.Zero(w.TypeOf(r))))
				c = q
			}
		}
		offset = w.Add(offset, w.Mul(c, w.patchStr[k]))
	}
	return inside, offset, coords
}

// Pad surrounds x with a value: gaps between elements first, then the ends, where negative numbers
// crop. Slots: x, the value, the result.
func Pad(t kernel.Target, x Operand, v Leaf, out graph.Spec, pads []graph.PadDim) (*Plan, error) {
	if err := needTypes(t, graph.OpPad, x.Type, v.Type, out.Type); err != nil {
		return nil, err
	}
	axes := make([]windowAxis, len(pads))
	for i, p := range pads {
		axes[i] = windowAxis{n: out.Shape[i], p: x.Shape[i], patch: x.Layout.Strides[i], cut: p != graph.PadDim{}, start: p.Lo, scale: 1, interior: p.Interior}
		if x.Shape[i] == 1 {
			axes[i].interior = 0
		}
	}
	from, to := blank(x.Type, out.Type)
	f := newFlat("pad", t, graph.Spec{Type: to, Shape: out.Shape}, 2, wideReach(x.Shape, x.Layout) || paddedWide(x.Shape, pads))
	r := f.indexType()
	e := &eval{f.Builder}
	filledAs := out.Type
	if v.Type == out.Type {
		v.Type, filledAs = blank(v.Type, v.Type)
	}
	fill := f.leafScalar("value", 1, v)
	filled := e.asType(&fill, filledAs)
	background := e.BitsTo(MemOf(to).Reg(), e.raw(&filled))
	n := 0
	w := newOverlay(f, mergePad(axes), x, from, 0, func(a windowAxis) kernel.Value {
		n++
		return f.scalar(fmt.Sprintf("lo%d", n), r, immInt(a.start*a.scale))
	})
	return w.each(func(i kernel.Value) kernel.Value {
		inside, offset, _ := w.at(i)
		v := w.NewVar(background)
		w.If(inside, func() { w.Set(v, w.stored(w.Load(w.src, offset), from, to)) }, nil)
		return w.Get(v)
	}), nil
}

// paddedWide reports whether coordinates before cropping need I64.
func paddedWide(s graph.Shape, pads []graph.PadDim) bool {
	for i, p := range pads {
		if n := s[i] + (s[i]-1)*p.Interior; n >= 1<<30 || p.Lo >= 1<<30 || p.Lo <= -1<<30 {
			return true
		}
	}
	return false
}

// mergePad is mergeWindow for axes whose starts are numbers.
func mergePad(axes []windowAxis) []windowAxis {
	for i := range axes {
		axes[i].under = 0
	}
	return mergeWindow(axes)
}

// PutSlice lays u over x at clamped starts. Slots: x, u, the starts, the result.
func PutSlice(t kernel.Target, x, u Operand, starts []Leaf, out graph.Spec) (*Plan, error) {
	if err := needMove(t, graph.OpPutSlice, x.Type, u.Type, out.Type); err != nil {
		return nil, err
	}
	if err := startTypes(t, graph.OpPutSlice, starts); err != nil {
		return nil, err
	}
	axes := make([]windowAxis, len(starts))
	for i := range axes {
		axes[i] = windowAxis{
			n: out.Shape[i], p: u.Shape[i], patch: u.Layout.Strides[i], under: x.Layout.Strides[i],
			cut: u.Shape[i] < x.Shape[i], start: i, scale: 1,
		}
	}
	axes = mergeWindow(axes)
	from, to, base := u.Type, out.Type, x.Type
	if from == to && base == to {
		from, to = blank(from, to)
		base = to
	}
	f := newFlat("put_slice", t, graph.Spec{Type: to, Shape: out.Shape}, 2+len(starts), wideReach(x.Shape, x.Layout) || wideReach(u.Shape, u.Layout))
	r := f.indexType()
	linear := x.Layout.IsContiguous(x.Shape)
	lo, hi := graph.Reach(x.Shape, x.Layout)
	whole := &IndexMap{Maps: []Mapped{{Lo: lo, Hi: hi}}}
	under := f.pointer("x", MemOf(base), whole, 0, 0, base, 1, false)
	var underBias kernel.Value
	underStr := make([]kernel.Value, len(axes))
	if !linear {
		underBias = f.scalar("x.bias", r, immInt(x.Layout.Offset-lo))
		for k, a := range axes {
			underStr[k] = f.scalar(fmt.Sprintf("x%d", k), r, immInt(a.under))
		}
	}
	w := newOverlay(f, axes, u, from, 1, func(a windowAxis) kernel.Value {
		name := fmt.Sprintf("start%d", a.start)
		s := f.start(name, 2+a.start, starts[a.start], x.Shape[a.start]-u.Shape[a.start], r)
		return f.Mul(s, f.scalar(name+".scale", r, immInt(a.scale)))
	})
	return w.each(func(i kernel.Value) kernel.Value {
		inside, offset, coords := w.at(i)
		v := w.NewVar(w.Zero(MemOf(to).Reg()))
		w.If(inside,
			func() { w.Set(v, w.stored(w.Load(w.src, offset), from, to)) },
			func() {
				o := i
				if !linear {
					o = underBias
					for k, c := range coords {
						o = w.Add(o, w.Mul(c, underStr[k]))
					}
				}
				w.Set(v, w.stored(w.Load(under, o), base, to))
			})
		return w.Get(v)
	}), nil
}
