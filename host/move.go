package host

import (
	"math/bits"
	"slices"

	"nxvk/graph"
)

func init() {
	register(one(constant), graph.OpConstant)
	register(one(counted), graph.OpIota)
	register(one(eye), graph.OpEye)
	register(one(bitcast), graph.OpBitcast)
	register(one(copied), graph.OpReshape, graph.OpSqueeze)
	register(one(broadcast), graph.OpBroadcast)
	register(one(transpose), graph.OpTranspose)
	register(one(reverse), graph.OpReverse)
	register(one(pad), graph.OpPad)
	register(one(slice), graph.OpSlice)
	register(one(putSlice), graph.OpPutSlice)
	register(one(concatenate), graph.OpConcat)
	register(one(stack), graph.OpStack)
}

// copyRun copies n elements of size bytes: dst's follow one another dstep apart, src's sstep apart.
func copyRun(dst []byte, doff, dstep int, src []byte, soff, sstep, n, size int) {
	if dstep == 1 && sstep == 1 {
		copy(dst[doff*size:(doff+n)*size], src[soff*size:])
		return
	}
	d, s := doff*size, soff*size
	dstep, sstep = dstep*size, sstep*size
	switch size {
	case 1:
		for range n {
			dst[d] = src[s]
			d, s = d+dstep, s+sstep
		}
	case 2:
		for range n {
			le.PutUint16(dst[d:], le.Uint16(src[s:]))
			d, s = d+dstep, s+sstep
		}
	case 4:
		for range n {
			le.PutUint32(dst[d:], le.Uint32(src[s:]))
			d, s = d+dstep, s+sstep
		}
	case 8:
		for range n {
			le.PutUint64(dst[d:], le.Uint64(src[s:]))
			d, s = d+dstep, s+sstep
		}
	default:
		for range n {
			copy(dst[d:d+size], src[s:s+size])
			d, s = d+dstep, s+sstep
		}
	}
}

// copyInto writes the elements of src, in row-major order, one after the other.
func copyInto(dst []byte, src *source) {
	size, step := src.t.Size(), src.v.step()
	n := 1
	for _, d := range src.v.shape {
		n *= d
	}
	parallel(n, 2, func(lo, hi int) {
		src.v.runs(lo, hi, func(k, off, n int) { copyRun(dst, lo+k, 1, src.b, off, step, n, size) })
	})
}

// scatterInto writes the elements of src to where layout l puts those of a tensor of shape s.
func scatterInto(dst []byte, l graph.Layout, s graph.Shape, src *source) {
	size, from := src.t.Size(), src.v.step()
	to := stridedOf(s, l)
	step := to.step()
	parallel(s.Size(), 3, func(lo, hi int) {
		to.runs(lo, hi, func(k, off, n int) {
			src.v.runs(lo+k, lo+k+n, func(j, soff, m int) {
				copyRun(dst, off+j*step, step, src.b, soff, from, m, size)
			})
		})
	})
}

// seen is a new tensor of spec with the elements that lie in x's data by layout l.
func seen(s graph.Spec, x Tensor, l graph.Layout) Tensor {
	out := New(s)
	copyInto(out.Data, &source{stridedOf(s.Shape, l), x.Type, x.Data})
	return out
}

func constant(n *graph.Node, _ []Tensor) Tensor {
	return seen(n.Spec, Tensor{Spec: graph.Spec{Type: n.Type}, Data: n.Attrs.Number().AppendBytes(nil, n.Type)}, graph.Layout{Strides: make([]int, len(n.Shape))})
}

// counted counts along an axis, or through all elements.
func counted(n *graph.Node, _ []Tensor) Tensor {
	inner, ext := 1, n.Shape.Size()
	if a := n.Attrs.Axis; a >= 0 {
		ext = n.Shape[a]
		for _, d := range n.Shape[a+1:] {
			inner *= d
		}
	}
	out := New(n.Spec)
	parallel(n.Shape.Size(), 4, func(lo, hi int) {
		var v [scratch]int64
		for k := lo; k < hi; k += scratch {
			part := v[:min(scratch, hi-k)]
			for i := range part {
				part[i] = int64((k + i) / inner % ext)
			}
			storeInts(out.Data, n.Type, k, part, false)
		}
	})
	return out
}

func eye(n *graph.Node, _ []Tensor) Tensor {
	out := New(n.Spec)
	r := len(n.Shape)
	rows, cols := n.Shape[r-2], n.Shape[r-1]
	for b := range n.Shape.Size() / (rows * cols) {
		for i := range min(rows, cols) {
			storeInts(out.Data, n.Type, (b*rows+i)*cols+i, []int64{1}, false)
		}
	}
	return out
}

func bitcast(n *graph.Node, in []Tensor) Tensor {
	x := in[0]
	x.Type = n.Type
	return copied(n, []Tensor{x})
}

// copied has the operand's elements in their order.
func copied(n *graph.Node, in []Tensor) Tensor {
	out := New(n.Spec)
	s := sourceOf(in[0])
	copyInto(out.Data, &s)
	return out
}

func broadcast(n *graph.Node, in []Tensor) Tensor {
	x := in[0]
	l := graph.Layout{Offset: x.Layout.Offset, Strides: make([]int, len(n.Shape))}
	for i, a := range n.Attrs.Axes {
		if x.Shape[i] != 1 {
			l.Strides[a] = x.Layout.Strides[i]
		}
	}
	return seen(n.Spec, x, l)
}

// permuted is x with its axes in another order; it shares x's data.
func permuted(x Tensor, axes []int) Tensor {
	y := Tensor{Spec: graph.Spec{Type: x.Type}, Layout: graph.Layout{Offset: x.Layout.Offset}, Data: x.Data}
	for _, a := range axes {
		y.Shape = append(y.Shape, x.Shape[a])
		y.Layout.Strides = append(y.Layout.Strides, x.Layout.Strides[a])
	}
	return y
}

func transpose(n *graph.Node, in []Tensor) Tensor {
	return copied(n, []Tensor{permuted(in[0], n.Attrs.Axes)})
}

func reverse(n *graph.Node, in []Tensor) Tensor {
	x := in[0]
	l := graph.Layout{Offset: x.Layout.Offset, Strides: slices.Clone(x.Layout.Strides)}
	for _, a := range n.Attrs.Axes {
		l.Offset += (x.Shape[a] - 1) * l.Strides[a]
		l.Strides[a] = -l.Strides[a]
	}
	return seen(n.Spec, x, l)
}

// pad spreads the operand over the result by an interior padding, shifts it by the low one, and crops it.
func pad(n *graph.Node, in []Tensor) Tensor {
	x := as(graph.Spec{Type: n.Type, Shape: in[0].Shape}, in[0])
	value := as(graph.Spec{Type: n.Type}, in[1])
	out := seen(n.Spec, value, graph.Layout{Strides: make([]int, len(n.Shape))})
	// The part of x that the result shows, and where it stands there.
	from, to, part := x.Layout, out.Layout, make(graph.Shape, len(x.Shape))
	from.Strides, to.Strides = slices.Clone(from.Strides), slices.Clone(to.Strides)
	for a, p := range n.Attrs.Pad {
		step := p.Interior + 1
		first := 0
		if p.Lo < 0 {
			first = (-p.Lo + step - 1) / step
		}
		last := x.Shape[a] - 1
		if end := n.Shape[a] - 1 - p.Lo; end < last*step {
			if end < 0 {
				return out
			}
			last = end / step
		}
		if first > last {
			return out
		}
		part[a] = last - first + 1
		from.Offset += first * from.Strides[a]
		to.Offset += (p.Lo + first*step) * to.Strides[a]
		to.Strides[a] *= step
	}
	scatterInto(out.Data, to, part, &source{stridedOf(part, from), n.Type, x.Data})
	return out
}

// start reads a rank-0 integer as the start of a slice, in [0, most].
func start(x Tensor, most int) int {
	v := ints(x)[0]
	if x.Type == graph.U64 && v < 0 {
		return most
	}
	return int(min(max(v, 0), int64(most)))
}

func slice(n *graph.Node, in []Tensor) Tensor {
	x := in[0]
	l := graph.Layout{Offset: x.Layout.Offset, Strides: make([]int, len(x.Shape))}
	for a := range x.Shape {
		l.Offset += start(in[1+a], x.Shape[a]-n.Attrs.Lengths[a]) * x.Layout.Strides[a]
		l.Strides[a] = x.Layout.Strides[a] * n.Attrs.Strides[a]
	}
	return seen(n.Spec, x, l)
}

func putSlice(n *graph.Node, in []Tensor) Tensor {
	out := as(n.Spec, in[0])
	update := as(graph.Spec{Type: n.Type, Shape: in[1].Shape}, in[1])
	l := out.Layout
	for a := range n.Shape {
		l.Offset += start(in[2+a], n.Shape[a]-update.Shape[a]) * l.Strides[a]
	}
	s := sourceOf(update)
	scatterInto(out.Data, l, update.Shape, &s)
	return out
}

func concatenate(n *graph.Node, in []Tensor) Tensor { return join(n, in, n.Attrs.Axis) }

func join(n *graph.Node, in []Tensor, axis int) Tensor {
	out := New(n.Spec)
	l := out.Layout
	for _, x := range in {
		y := as(graph.Spec{Type: n.Type, Shape: x.Shape}, x)
		s := sourceOf(y)
		scatterInto(out.Data, l, x.Shape, &s)
		l.Offset += x.Shape[axis] * l.Strides[axis]
	}
	return out
}

func stack(n *graph.Node, in []Tensor) Tensor {
	axis := n.Attrs.Axis
	xs := make([]Tensor, len(in))
	for i, x := range in {
		x.Shape = slices.Insert(slices.Clone(x.Shape), axis, 1)
		x.Layout.Strides = slices.Insert(slices.Clone(x.Layout.Strides), axis, 0)
		xs[i] = x
	}
	return join(n, xs, axis)
}

// product is the number of elements of a shape; it panics where that overflows, which no verified node does.
func product(dims ...int) int {
	n := 1
	for _, d := range dims {
		hi, lo := bits.Mul64(uint64(n), uint64(d))
		if hi != 0 || lo > 1<<62 {
			panic("host: a tensor of too many elements")
		}
		n = int(lo)
	}
	return n
}
