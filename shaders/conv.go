package shaders

import (
	"fmt"
	"slices"

	"nxvk/graph"
	"nxvk/kernel"
)

// Conv plans a convolution as contractions: of the kernel by x, seen through strides that walk a window's elements
// along some axes and the windows along others. Nothing is copied for that: x alone is, once, where it is padded.
//
// A dilated input is no input with holes: results that stand at equal places between its elements meet
// the same elements of the kernel, so they are a convolution of their own, of an input without dilation.
//
// Numerics are those of Dot; at.Acc says how f32 gathers. Slots: x, the kernel, the result.
func Conv(t kernel.Target, x, k Operand, out graph.Spec, at graph.Attrs) (*Plan, error) {
	if err := needTypes(t, graph.OpConv, x.Type, k.Type, out.Type); err != nil {
		return nil, err
	}
	c := newConvolution(t, x, k, out, at)
	if c.phaseCount() > maxPhases {
		c.spread()
	}
	p := &Plan{}
	input := 0
	if c.pads() {
		size := 1
		for _, d := range c.padded() {
			if size *= d; size > graph.MaxElements {
				return nil, fmt.Errorf("conv: an input of shape %v is padded to more than %d elements", x.Shape, graph.MaxElements)
			}
		}
		if err := c.pad(p); err != nil {
			return nil, err
		}
		input = 3
	}
	var err error
	c.eachPhase(func(ps []phase) {
		if err == nil {
			err = c.phase(p, ps, input)
		}
	})
	return p, err
}

// maxPhases is how many convolutions one is taken apart into at most; an input that is dilated more is
// copied with its holes.
const maxPhases = 64

// convolution is a conv with all axes in the order batch, channel, spatial …; of the kernel: output channel,
// input channel, spatial ….
type convolution struct {
	t       kernel.Target
	x, k    Operand // in memory
	out     graph.Spec
	acc     graph.Acc
	groups  int
	byBatch bool // groups are of the batch, else of the channels

	xShape, xStride []int
	kShape, kStride []int
	oShape, oStride []int
	spatial         []spatialAxis

	lo, hi   []int // what x is padded with, by spatial axis
	interior []int // and with how many holes between elements
}

// spatialAxis is how windows move along an axis: result o and kernel element k meet element
// (o·stride + k·step - lo) / spread of x, if that is whole and inside.
type spatialAxis struct {
	n, results, kernel         int
	stride, step, spread, lead int
}

func newConvolution(t kernel.Target, x, k Operand, out graph.Spec, at graph.Attrs) *convolution {
	cv := at.Conv
	c := &convolution{t: t, x: x, k: k, out: out, acc: at.Acc, groups: cv.FeatureGroups * cv.BatchGroups, byBatch: cv.BatchGroups > 1}
	view := func(s graph.Shape, strides, perm []int) (ext, st []int) {
		for _, a := range perm {
			ext, st = append(ext, s[a]), append(st, strides[a])
		}
		return ext, st
	}
	c.xShape, c.xStride = view(x.Shape, stridesOf(x), cv.InputPerm)
	c.kShape, c.kStride = view(k.Shape, stridesOf(k), cv.KernelPerm)
	c.oShape, c.oStride = view(out.Shape, out.Shape.Strides(), cv.OutputPerm)
	for s := range at.Strides {
		c.spatial = append(c.spatial, spatialAxis{
			n: c.xShape[2+s], results: c.oShape[2+s], kernel: c.kShape[2+s],
			stride: at.Strides[s], step: cv.KernelDilation[s], spread: cv.InputDilation[s], lead: at.Pad[s].Lo,
		})
	}
	n := len(c.spatial)
	c.lo, c.hi, c.interior = make([]int, n), make([]int, n), make([]int, n)
	c.reachPads()
	return c
}

// phase is the results of an axis at first, first+every, …: they meet kernel elements kernel, kernel+kernelEvery, …, and
// result number i meets with kernel element number j the element at + i·step + j·kernelStep of x.
type phase struct {
	results, first, every        int
	kernels, kernel, kernelEvery int // kernels: 0 if they meet none
	at, step, kernelStep         int
}

// phases are those of an axis.
func (s spatialAxis) phases() []phase {
	every, kernelEvery := s.spread/gcd(s.stride, s.spread), s.spread/gcd(s.step, s.spread)
	var out []phase
	for first := 0; first < min(every, s.results); first++ {
		p := phase{
			results: (s.results-first-1)/every + 1, first: first, every: every,
			kernelEvery: kernelEvery, step: every * s.stride / s.spread, kernelStep: kernelEvery * s.step / s.spread,
		}
		for k := range min(kernelEvery, s.kernel) {
			if at := first*s.stride + k*s.step - s.lead; at%s.spread == 0 {
				p.kernel, p.kernels, p.at = k, (s.kernel-k-1)/kernelEvery+1, at/s.spread
				break
			}
		}
		out = append(out, p)
	}
	return out
}

func (s spatialAxis) phaseCount() int { return min(s.spread/gcd(s.stride, s.spread), s.results) }

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (c *convolution) phaseCount() int {
	n := 1
	for _, s := range c.spatial {
		n = min(n*s.phaseCount(), maxPhases+1)
	}
	return n
}

// eachPhase calls f with one phase of each axis, in every combination.
func (c *convolution) eachPhase(f func(ps []phase)) {
	ps := make([]phase, len(c.spatial))
	var walk func(s int)
	walk = func(s int) {
		if s == len(ps) {
			f(ps)
			return
		}
		for _, p := range c.spatial[s].phases() {
			ps[s] = p
			walk(s + 1)
		}
	}
	walk(0)
}

// reachPads finds out how far beyond x's ends windows reach.
func (c *convolution) reachPads() {
	for s, a := range c.spatial {
		c.lo[s], c.hi[s] = 0, 0
		if a.phaseCount() > maxPhases {
			continue // see spread
		}
		for _, p := range a.phases() {
			if p.kernels > 0 {
				last := p.at + (p.results-1)*p.step + (p.kernels-1)*p.kernelStep
				c.lo[s], c.hi[s] = max(c.lo[s], -p.at), max(c.hi[s], last-(a.n-1))
			}
		}
	}
}

// spread makes the holes of a dilated input real.
func (c *convolution) spread() {
	for s := range c.spatial {
		a := &c.spatial[s]
		c.interior[s] = a.spread - 1
		a.n, a.spread = (a.n-1)*a.spread+1, 1
	}
	c.reachPads()
}

func (c *convolution) pads() bool {
	for s := range c.spatial {
		if c.lo[s]+c.hi[s]+c.interior[s] > 0 {
			return true
		}
	}
	return false
}

// padded is x's shape with its padding.
func (c *convolution) padded() graph.Shape {
	out := graph.Shape{c.xShape[0], c.xShape[1]}
	for s, a := range c.spatial {
		out = append(out, c.lo[s]+a.n+c.hi[s])
	}
	return out
}

// pad copies x, padded with zeros, into a temporary, its axes in the order in which they lie in memory.
func (c *convolution) pad(p *Plan) error {
	order := make([]int, len(c.xShape))
	for i := range order {
		order[i] = i
	}
	abs := func(a int) int { return max(c.xStride[a], -c.xStride[a]) }
	slices.SortStableFunc(order, func(a, b int) int { return abs(b) - abs(a) })
	shape := c.padded()
	x := Operand{Spec: graph.Spec{Type: c.x.Type}, Layout: graph.Layout{Offset: c.x.Layout.Offset}}
	out := graph.Spec{Type: c.x.Type}
	var config []graph.PadDim
	for _, a := range order {
		x.Shape, x.Layout.Strides = append(x.Shape, c.xShape[a]), append(x.Layout.Strides, c.xStride[a])
		out.Shape = append(out.Shape, shape[a])
		d := graph.PadDim{}
		if s := a - 2; s >= 0 {
			d = graph.PadDim{Lo: c.lo[s], Hi: c.hi[s], Interior: c.interior[s]}
		}
		config = append(config, d)
	}
	zero := Leaf{Operand: Operand{Spec: graph.Spec{Type: c.x.Type, Shape: graph.Shape{}}}, Const: true}
	padding, err := Pad(c.t, x, zero, out, config)
	if err != nil {
		return err
	}
	padding.move(func(slot int) int {
		if slot == 2 {
			return 3
		}
		return slot
	})
	p.Launches = append(p.Launches, padding.Launches...)
	p.Temps = append(p.Temps, uint64(out.Shape.Size()*out.Type.Size()))
	strides := out.Shape.Strides()
	for i, a := range order {
		c.xStride[a], c.xShape[a] = strides[i], out.Shape[i]
	}
	c.x = Operand{Spec: out}
	return nil
}

// phase adds the launches of one convolution without dilation of the input, whose x is at slot input.
func (c *convolution) phase(p *Plan, ps []phase, input int) error {
	xOff, kOff, oOff := c.x.Layout.Offset, c.k.Layout.Offset, 0
	empty := false
	perGroup := c.kShape[0] / c.groups // output channels
	batches := c.xShape[0]
	group := axis{c.groups, []int{c.kShape[1] * c.xStride[1], perGroup * c.kStride[0], perGroup * c.oStride[1]}}
	if c.byBatch {
		batches /= c.groups
		group.stride[0] = batches * c.xStride[0]
	}
	batch := axis{batches, []int{c.xStride[0], 0, c.oStride[0]}}
	channels := axis{perGroup, []int{0, c.kStride[0], c.oStride[1]}}
	inner := []axis{{c.kShape[1], []int{c.xStride[1], c.kStride[1], 0}}}
	var windows []axis
	for s, h := range ps {
		xs, ks, os := c.xStride[2+s], c.kStride[2+s], c.oStride[2+s]
		windows = append(windows, axis{h.results, []int{h.step * xs, 0, h.every * os}})
		inner = append(inner, axis{h.kernels, []int{h.kernelStep * xs, h.kernelEvery * ks, 0}})
		xOff += (h.at + c.lo[s]) * xs
		kOff += h.kernel * ks
		oOff += h.first * os
		empty = empty || h.kernels == 0
	}
	if empty {
		shape, layout := graph.Shape{}, graph.Layout{Offset: oOff}
		for _, a := range append(windows, batch, group, channels) {
			shape, layout.Strides = append(shape, a.n), append(layout.Strides, a.stride[2])
		}
		p.Launches = append(p.Launches, zeroInto(c.t, graph.Spec{Type: c.out.Type, Shape: shape}, layout, 2))
		return nil
	}
	d := &contraction{out: oOff, batch: []axis{group}, inner: c.order(inner)}
	if points := axesSize(windows); points >= c.wholeImages() {
		d.batch = append(d.batch, batch)
	} else {
		windows = append(windows, batch)
	}
	outermost := func(a, b axis) int { return b.stride[2] - a.stride[2] }
	slices.SortStableFunc(windows, outermost)
	slices.SortStableFunc(d.batch, outermost)
	// Columns are what lies side by side in the result.
	xOp, kOp := 1, 0
	d.rows, d.cols = []axis{channels}, windows
	if channels.stride[2] == 1 && channels.n > 1 {
		xOp, kOp = 0, 1
		d.rows, d.cols = windows, []axis{channels}
	}
	ins := make([]Operand, 2)
	ins[xOp] = walked(c.x.Type, xOff, 0, d.batch, windows, d.inner)
	ins[kOp] = walked(c.k.Type, kOff, 1, d.batch, []axis{channels}, d.inner)
	for _, axes := range [][]axis{d.batch, d.rows, d.cols, d.inner} {
		for i, a := range axes {
			axes[i].stride = []int{a.stride[0], a.stride[1], a.stride[2]}
			if xOp == 1 {
				axes[i].stride[0], axes[i].stride[1] = a.stride[1], a.stride[0]
			}
		}
	}
	d.batch, d.rows, d.cols, d.inner = mergeAxes(d.batch), mergeAxes(d.rows), mergeAxes(d.cols), mergeAxes(d.inner)
	sub, err := d.plan("conv", c.t, ins, c.out.Type, c.acc, nil)
	if err != nil {
		return err
	}
	temps := len(p.Temps)
	sub.move(func(slot int) int {
		switch slot {
		case xOp:
			return input
		case kOp:
			return 1
		case 2:
			return 2
		}
		return slot + temps
	})
	p.Launches = append(p.Launches, sub.Launches...)
	p.Temps = append(p.Temps, sub.Temps...)
	return nil
}

// walked is an operand as a contraction walks over it: for the range of its buffer that it reads.
func walked(t graph.Type, offset, operand int, spaces ...[]axis) Operand {
	x := Operand{Spec: graph.Spec{Type: t, Shape: graph.Shape{}}, Layout: graph.Layout{Offset: offset, Strides: []int{}}}
	for _, axes := range spaces {
		for _, a := range axes {
			if s := a.stride[operand]; s != 0 {
				x.Shape, x.Layout.Strides = append(x.Shape, a.n), append(x.Layout.Strides, s)
			}
		}
	}
	return x
}

// wholeImages is from how many results on an image is worth tiles of its own: its results are then read along one
// axis fewer.
func (c *convolution) wholeImages() int {
	if c.t.Class == kernel.CPU {
		return 128
	}
	return 1024
}

// order puts the axis innermost that is long enough to be walked in whole rounds and on which operands are
// read most closely.
func (c *convolution) order(inner []axis) []axis {
	const long = 8
	best := -1
	near := func(a axis) int { return max(a.stride[0], -a.stride[0]) + max(a.stride[1], -a.stride[1]) }
	for i, a := range inner {
		if a.n >= long && (best < 0 || near(a) < near(inner[best])) {
			best = i
		}
	}
	if best < 0 {
		return inner
	}
	last := inner[best]
	return append(slices.Delete(inner, best, best+1), last)
}
