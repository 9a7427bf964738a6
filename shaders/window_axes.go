package shaders

import "nxvk/graph"

// slide is one axis along which windows stand: window o holds the positions o*step + w*gap - lo for w below
// size, of which those below 0 and from n on are padding.
type slide struct {
	n      int // extent of what the windows stand over
	outs   int // windows
	size   int // elements of a window
	step   int // between windows
	gap    int // between the elements of a window
	lo     int // padding before position 0; negative: positions that no window takes
	stride int // in memory
}

// plain is the axis of an operand that windows leave alone.
func plain(n, stride int) slide {
	return slide{n: n, outs: n, size: 1, step: 1, gap: 1, stride: stride}
}

// whole is an axis that one window covers.
func whole(n, stride int) slide {
	return slide{n: n, outs: 1, size: n, step: 1, gap: 1, stride: stride}
}

func (a slide) plain() bool {
	return a.size == 1 && a.lo == 0 && a.outs == a.n && (a.step == 1 || a.n == 1)
}

func (a slide) whole() bool { return a.outs == 1 && a.size == a.n && a.gap == 1 && a.lo == 0 }

// padded reports whether a window holds padding.
func (a slide) padded() bool {
	return a.lo > 0 || (a.outs-1)*a.step+(a.size-1)*a.gap-a.lo >= a.n
}

// wide reports whether index arithmetic along the axis needs 64 bits.
func (a slide) wide() bool {
	const most = 1 << 29
	return max(a.n, a.lo, -a.lo, a.outs*a.step, a.size*a.gap) > most
}

// slides are the windows of an operation over x, by axis of x; at names no dilations where the operation has none.
func slides(x Operand, out graph.Shape, at *graph.Attrs) []slide {
	strides := stridesOf(x)
	axes := make([]slide, len(x.Shape))
	for i, n := range x.Shape {
		gap := 1
		if len(at.Dilation) > 0 {
			gap = at.Dilation[i]
		}
		axes[i] = slide{n: n, outs: out[i], size: at.Window[i], step: at.Strides[i], gap: gap, lo: at.Pad[i].Lo, stride: strides[i]}
	}
	return axes
}

// mergeSlides drops axes of one position and merges neighbours that are walked as one, in every one of
// several sources alike: all of them have the same windows but for what each holds.
func mergeSlides(srcs [][]slide) [][]slide {
	out := make([][]slide, len(srcs))
	for i := range srcs[0] {
		idle, merge := true, len(out[0]) > 0
		for s, axes := range srcs {
			a := axes[i]
			idle = idle && a.n == 1 && a.plain()
			if merge {
				merge = mergeableSlides(out[s][len(out[s])-1], a)
			}
		}
		for s, axes := range srcs {
			a, k := axes[i], len(out[s])-1
			switch {
			case idle:
			case merge && out[s][k].plain():
				out[s][k] = plain(out[s][k].n*a.n, a.stride)
			case merge:
				out[s][k] = whole(out[s][k].n*a.n, a.stride)
			default:
				out[s] = append(out[s], a)
			}
		}
	}
	return out
}

func mergeableSlides(outer, inner slide) bool {
	alike := outer.plain() && inner.plain() || outer.whole() && inner.whole()
	return alike && outer.stride == inner.stride*inner.n
}

func outsOf(axes []slide) int {
	n := 1
	for _, a := range axes {
		n *= a.outs
	}
	return n
}

// sizeOf is the number of elements of a window.
func sizeOf(axes []slide) int {
	n := 1
	for _, a := range axes {
		n = satMul(n, a.size)
	}
	return n
}
