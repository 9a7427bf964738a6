package host

import "nxvk/graph"

func init() { register(one(conv), graph.OpConv) }

// conv slides a kernel over its input. An element sums channel by channel, in f64; padding, and the holes that
// dilation leaves, count for nothing.
func conv(n *graph.Node, in []Tensor) Tensor {
	c := n.Attrs.Conv
	x, k := permuted(in[0], c.InputPerm), permuted(in[1], c.KernelPerm)
	// The result's axes in the order {batch, channel, spatial…}.
	shape := make(graph.Shape, len(n.Shape))
	strides := make([]int, len(n.Shape))
	own := n.Shape.Strides()
	for i, a := range c.OutputPerm {
		shape[i], strides[i] = n.Shape[a], own[a]
	}
	out := New(n.Spec)
	if classOf(x.Type, k.Type) == complex_ {
		convolve(out, n, x.Shape, complexes(x), k.Shape, complexes(k), shape, strides, mulComplex)
		return out
	}
	convolve(out, n, x.Shape, floats(x), k.Shape, floats(k), shape, strides, func(a, b float64) float64 { return a * b })
	return out
}

// tap is an element of the kernel over an element of the input, counted within a channel.
type tap struct{ kernel, input int }

func convolve[T number](out Tensor, n *graph.Node, xs graph.Shape, x []T, ks graph.Shape, k []T, shape graph.Shape, strides []int, mul func(a, b T) T) {
	at, c := &n.Attrs, n.Attrs.Conv
	spatial := shape[2:]
	fields, field := product(xs[2:]...), product(ks[2:]...)
	perBatch, perFeature := ks[0]/c.BatchGroups, ks[0]/c.FeatureGroups
	parallel(product(spatial...), 2*shape[0]*shape[1]*ks[1]*field, func(lo, hi int) {
		pos := make([]int, len(spatial))
		indexOf(pos, spatial, lo)
		var taps []tap
		for p := lo; p < hi; p++ {
			taps = tapsOf(taps[:0], pos, xs[2:], ks[2:], at)
			base := 0
			for i, o := range pos {
				base += o * strides[2+i]
			}
			for b := range shape[0] {
				for f := range shape[1] {
					item := b + f/perBatch*shape[0]
					channel := f / perFeature * ks[1]
					var sum T
					for ch := range ks[1] {
						xc, kc := x[(item*xs[1]+channel+ch)*fields:], k[(f*ks[1]+ch)*field:]
						var s T
						for _, t := range taps {
							s += mul(xc[t.input], kc[t.kernel])
						}
						sum += s
					}
					store(out.Data, out.Type, base+b*strides[0]+f*strides[1], []T{sum}, false)
				}
			}
			odometer(pos, spatial)
		}
	})
}

// tapsOf are the taps of the kernel at a position, in the kernel's order.
func tapsOf(taps []tap, pos []int, xs, ks graph.Shape, at *graph.Attrs) []tap {
	c := at.Conv
	idx := make([]int, len(ks))
	for {
		t, inside := tap{}, true
		for a, j := range idx {
			i := pos[a]*at.Strides[a] + j*c.KernelDilation[a] - at.Pad[a].Lo
			if i < 0 || i%c.InputDilation[a] != 0 || i/c.InputDilation[a] >= xs[a] {
				inside = false
				break
			}
			t.input = t.input*xs[a] + i/c.InputDilation[a]
			t.kernel = t.kernel*ks[a] + j
		}
		if inside {
			taps = append(taps, t)
		}
		if odometer(idx, ks) {
			return taps
		}
	}
}
