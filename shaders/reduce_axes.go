package shaders

import (
	"fmt"

	"nxvk/graph"
	"nxvk/kernel"
)

// axis is one axis of an iteration space: its extent, and the stride of each operand along it in elements.
type axis struct {
	n      int
	stride []int
}

// mergeAxes drops axes of extent 1 and merges neighbours that every operand walks as one, so that
// equal computations over other shapes meet in one kernel.
func mergeAxes(axes []axis) []axis {
	var out []axis
	for _, a := range axes {
		if a.n == 1 {
			continue
		}
		if k := len(out) - 1; k >= 0 && mergeable(out[k], a) {
			out[k] = axis{out[k].n * a.n, a.stride}
			continue
		}
		out = append(out, a)
	}
	return out
}

func mergeable(outer, inner axis) bool {
	for i := range outer.stride {
		if outer.stride[i] != inner.stride[i]*inner.n {
			return false
		}
	}
	return true
}

// axesSize is the number of points of a space.
func axesSize(axes []axis) int {
	n := 1
	for _, a := range axes {
		n *= a.n
	}
	return n
}

// stridesOf yields the strides of an operand, for the zero Layout too (contiguous).
func stridesOf(x Operand) []int {
	if len(x.Layout.Strides) == 0 {
		return x.Shape.Strides()
	}
	return x.Layout.Strides
}

// reach is the range of elements [lo, hi) that the elements of x lie in.
func reach(x Operand) (lo, hi int) {
	return graph.Reach(x.Shape, graph.Layout{Offset: x.Layout.Offset, Strides: stridesOf(x)})
}

// checkOperand rejects an operand whose layout does not fit its shape.
func checkOperand(op string, x Operand) error {
	if n := len(x.Layout.Strides); n != 0 && n != len(x.Shape) {
		return fmt.Errorf("%s: %d strides for an operand of shape %v", op, n, x.Shape)
	}
	if x.Type == graph.Invalid {
		return fmt.Errorf("%s: operand of invalid type", op)
	}
	if lo, _ := reach(x); lo < 0 && !x.ByValue {
		return fmt.Errorf("%s: the layout of operand %v reaches element %d", op, x.Spec, lo)
	}
	return nil
}

// writer builds a kernel and the argument table of its launch side by side, so that the two cannot
// get out of step.
type writer struct {
	*kernel.Builder
	idx    kernel.Type // of element indices: I32 below 2^31 elements, else I64
	args   []Arg
	access []Access
}

func newWriter(name string, t kernel.Target, local int, wide bool) *writer {
	w := &writer{Builder: kernel.NewBuilder(name, t, [3]uint32{uint32(local), 1, 1}), idx: kernel.I32}
	if wide {
		w.idx = kernel.I64
	}
	return w
}

// pointer adds the address of byte off of a slot, of which the launch touches bytes [lo, hi).
func (w *writer) pointer(name string, m kernel.Mem, write bool, align uint8, slot int, off, lo, hi uint64) kernel.Ptr {
	w.args = append(w.args, Arg{Kind: Addr, Slot: slot, Offset: off})
	w.access = append(w.access, Access{Slot: slot, Lo: lo, Hi: hi, Write: write})
	return w.Pointer(name, m, write, align)
}

// number adds an index-typed scalar.
func (w *writer) number(name string, n int) kernel.Value {
	w.args = append(w.args, Arg{Kind: Imm, Imm: immOf(w.idx, n)})
	return w.ScalarArg(name, w.idx)
}

// divisor adds a number that indices are divided by.
func (w *writer) divisor(name string, n int) Divisor {
	w.args = append(w.args, DivisorArgs(n, w.idx)...)
	return DeclareDivisor(w.Builder, name, w.idx)
}

func immOf(t kernel.Type, n int) uint64 {
	if t == kernel.I32 {
		return uint64(uint32(n))
	}
	return uint64(n)
}

// launch ends the kernel.
func (w *writer) launch(grid [3]uint32) Launch {
	return Launch{Kernel: w.Build(), Grid: grid, Args: w.args, Access: w.access}
}

// index yields a constant of the index type.
func (w *writer) index(n int) kernel.Value { return w.ConstInt(w.idx, int64(n)) }

// offset yields an offset of which 0 stands for none.
func (w *writer) offset(v kernel.Value) kernel.Value {
	if v == 0 {
		return w.index(0)
	}
	return v
}

// sum adds two offsets, either of which may be 0, for none.
func (w *writer) sum(x, y kernel.Value) kernel.Value {
	switch {
	case x == 0:
		return y
	case y == 0:
		return x
	}
	return w.Add(x, y)
}

// toIndex widens a builtin to the index type.
func (w *writer) toIndex(v kernel.Value) kernel.Value {
	if w.idx == kernel.I64 && w.TypeOf(v) == kernel.I32 {
		return w.Conv(kernel.ZExt, kernel.I64, v)
	}
	return v
}

// min is the lesser of two indices.
func (w *writer) min(x, y kernel.Value) kernel.Value {
	return w.Select(w.Cmp(kernel.ULt, x, y), x, y)
}

// boundAxes is a space whose extents and strides are arguments of the kernel.
type boundAxes struct {
	axes   []axis
	extent []Divisor        // of the inner axes; the outermost extent bounds the space, which is never left
	stride [][]kernel.Value // by axis, then operand; 0 where the stride is 0
}

// bind adds the extents and strides of a space to the argument table. Strides 0 and 1 are part of
// the kernel: they are the broadcast and the contiguous class of an operand.
func (w *writer) bind(name string, axes []axis) boundAxes {
	s := boundAxes{axes: axes, extent: make([]Divisor, len(axes)), stride: make([][]kernel.Value, len(axes))}
	for i, a := range axes {
		if i > 0 {
			s.extent[i] = w.divisor(fmt.Sprintf("%s_n%d", name, i), a.n)
		}
		s.stride[i] = make([]kernel.Value, len(a.stride))
		for j, st := range a.stride {
			switch st {
			case 0:
			case 1:
				s.stride[i][j] = w.index(1)
			default:
				s.stride[i][j] = w.number(fmt.Sprintf("%s_s%d_%d", name, i, j), st)
			}
		}
	}
	return s
}

// advance adds i steps along an axis to the offset of one operand. Offset 0 means none yet.
func (w *writer) advance(off kernel.Value, stride, i kernel.Value) kernel.Value {
	if stride == 0 {
		return off
	}
	d := w.Mul(i, stride)
	if off == 0 {
		return d
	}
	return w.Add(off, d)
}

// offsets adds to each operand's offset that of point p (row-major) of the axes [0, upto).
func (w *writer) offsets(s boundAxes, upto int, p kernel.Value, offs []kernel.Value) []kernel.Value {
	out := append([]kernel.Value(nil), offs...)
	for i := upto - 1; i >= 0; i-- {
		at := p
		if i > 0 {
			p, at = s.extent[i].DivMod(w.Builder, p)
		}
		for j := range out {
			out[j] = w.advance(out[j], s.stride[i][j], at)
		}
	}
	return out
}
