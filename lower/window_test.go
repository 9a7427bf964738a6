package lower

import (
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
)

var windowOps = []graph.Op{graph.OpWindowSum, graph.OpWindowProduct, graph.OpWindowMax, graph.OpWindowMin}

// windows calls f for each window of at over s, with its number and its elements in order: their coordinates, and
// whether they are no padding.
func windows(s, outs graph.Shape, at graph.Attrs, f func(n int, elems [][]int, inside []bool)) {
	each(outs, func(n int, o []int) {
		var elems [][]int
		var inside []bool
		each(at.Window, func(_ int, w []int) {
			p, in := make([]int, len(s)), true
			for k := range s {
				gap := 1
				if at.Dilation != nil {
					gap = at.Dilation[k]
				}
				p[k] = o[k]*at.Strides[k] + w[k]*gap - at.Pad[k].Lo
				in = in && p[k] >= 0 && p[k] < s[k]
			}
			elems, inside = append(elems, p), append(inside, in)
		})
		f(n, elems, inside)
	})
}

// randomWindows draws windows over s, and yields their shape.
func randomWindows(r *rand.Rand, s graph.Shape, dilate bool) (graph.Attrs, graph.Shape) {
	for {
		at := graph.Attrs{Window: []int{}, Strides: []int{}, Pad: []graph.PadDim{}}
		if dilate {
			at.Dilation = []int{}
		}
		outs := graph.Shape{}
		ok := true
		for _, d := range s {
			w, step, gap, pad := 1, 1, 1, graph.PadDim{}
			if r.Intn(3) > 0 {
				w, step = 1+r.Intn(min(d+2, 5)), 1+r.Intn(3)
				if r.Intn(4) == 0 {
					w = d
				}
				if dilate {
					gap = 1 + r.Intn(3)
				}
				if r.Intn(2) == 0 {
					pad = graph.PadDim{Lo: r.Intn(6) - 2, Hi: r.Intn(6) - 2}
				}
			}
			at.Window, at.Strides, at.Pad = append(at.Window, w), append(at.Strides, step), append(at.Pad, pad)
			if dilate {
				at.Dilation = append(at.Dilation, gap)
			}
			room := d + pad.Lo + pad.Hi - (w-1)*gap - 1
			ok = ok && room >= 0 && d+pad.Lo > 0 && d+pad.Hi > 0
			outs = append(outs, room/step+1)
		}
		if ok {
			return at, outs
		}
	}
}

// refWindow gathers the elements of a window as Nx.BinaryBackend does; magnitude is the sum of absolute values.
func refWindow(op graph.Op, t graph.Type, vs []uint64) (bits uint64, magnitude float64) {
	var acc number
	switch {
	case op == graph.OpWindowSum && t.Float():
		acc = floaty(0)
	case op == graph.OpWindowSum:
		acc = whole(0)
	case op == graph.OpWindowProduct && t.Float():
		acc = floaty(1)
	case op == graph.OpWindowProduct:
		acc = whole(1)
	default:
		best := leastOf(t, op == graph.OpWindowMax)
		for _, v := range vs {
			x, y := numberOf(v, t), numberOf(best, t)
			switch {
			case y.nan():
			case x.nan(), op == graph.OpWindowMax && x.cmp(y) >= 0, op == graph.OpWindowMin && x.cmp(y) <= 0:
				best = v
			}
		}
		if n := numberOf(best, t); n.nan() {
			best = quietNaN[t]
		}
		return best, 0
	}
	for _, v := range vs {
		x := numberOf(v, t)
		magnitude += math.Abs(x.float())
		switch {
		case x.i != nil && op == graph.OpWindowSum:
			acc.i.Add(acc.i, x.i)
		case x.i != nil:
			acc.i.Mul(acc.i, x.i)
		case op == graph.OpWindowSum:
			acc.f += x.f
		default:
			acc.f *= x.f
		}
	}
	return acc.write(t), magnitude
}

// leastOf is the unit of the greatest (or least) element.
func leastOf(t graph.Type, max bool) uint64 {
	sign := 1
	if max {
		sign = -1
	}
	if t.Float() {
		if t == graph.F8E4M3FN {
			return graph.FromFloat(448*float64(sign), t)
		}
		return graph.FromFloat(math.Inf(sign), t)
	}
	one := big.NewInt(1)
	top := new(big.Int).Sub(new(big.Int).Lsh(one, uint(t.Bits())), one)
	low := new(big.Int)
	if t.Signed() {
		top.Rsh(top, 1)
		low.Not(top)
	}
	if max {
		top = low
	}
	return number{i: top}.write(t)
}

func runWindow(t *testing.T, m machine, op graph.Op, x tensor, at graph.Attrs, outs graph.Shape, kind string) tensor {
	t.Helper()
	g := &graph.Graph{
		Params: []graph.Param{{Spec: x.Spec}},
		Nodes:  []graph.Node{{Op: op, In: []graph.Ref{0}, Spec: graph.Spec{Type: x.Type, Shape: outs}, Attrs: at}},
		Outs:   []graph.Ref{1},
	}
	return runGraph(t, m, g, []laidOut{layOut(x, layoutOf(kind, x.Shape))})[0]
}

// checkWindow holds results against the reference: bit for bit, unless loose, where sums of floats may be off
// by the promise of 2^-24 of the sum of magnitudes and the rounding to their type.
func checkWindow(t *testing.T, op graph.Op, x tensor, at graph.Attrs, got tensor, loose bool) {
	t.Helper()
	windows(x.Shape, got.Shape, at, func(n int, elems [][]int, inside []bool) {
		var vs []uint64
		for i, e := range elems {
			if inside[i] {
				vs = append(vs, x.at(e))
			}
		}
		want, magnitude := refWindow(op, x.Type, vs)
		if got.bits[n] == want {
			return
		}
		g, w := graph.ToFloat(got.bits[n], x.Type), graph.ToFloat(want, x.Type)
		if loose && x.Type.Float() && (op == graph.OpWindowSum && math.Abs(g-w) <= magnitude*0x1p-24 || op == graph.OpWindowProduct && math.Abs(g-w) <= math.Abs(w)*0x1p-22) {
			return
		}
		t.Fatalf("%s of %v, %+v: window %d is %#x (%v), want %#x (%v)", op, x.Spec, at, n, got.bits[n], g, want, w)
	})
}

// Windows of all kinds over tensors of rank 0 to 6 are what BinaryBackend says, bit for bit.
func testWindows(t *testing.T, m machine, seed int64, trials int) {
	r := rand.New(rand.NewSource(seed))
	for range trials {
		for _, ty := range graph.RealTypes {
			op := windowOps[r.Intn(len(windowOps))]
			rank := r.Intn(7)
			x := random(r, graph.Spec{Type: ty, Shape: randomShape(r, rank, mostOf(rank))})
			if op == graph.OpWindowProduct && ty.Float() && m.Num.FlushF32 {
				x = moderate(r, x.Spec) // a subnormal product on the way is flushed
			}
			at, outs := randomWindows(r, x.Shape, true)
			got := runWindow(t, m, op, x, at, outs, layoutKinds[r.Intn(len(layoutKinds))])
			checkWindow(t, op, x, at, got, true)
		}
	}
}

func TestWindows(t *testing.T) {
	for name, target := range testTargets {
		t.Run(name, func(t *testing.T) { testWindows(t, interpreted(target), 1, 30) })
	}
}

func TestWindowsOnDevice(t *testing.T) {
	m := onDevice(t)
	testWindows(t, m, 2, 3)
	m.Target.Class = kernel.Discrete
	testWindows(t, m, 3, 2)
}

// small fills a tensor with numbers whose sums and products mean something.
func small(r *rand.Rand, s graph.Spec) tensor {
	return from(s, func([]int) uint64 {
		if s.Type.Float() {
			return graph.FromFloat(r.NormFloat64(), s.Type)
		}
		return canonical(uint64(r.Intn(7)-3), s.Type)
	})
}

// Long windows take other roads than small ones.
func TestLongWindows(t *testing.T) {
	cases := []struct {
		s      graph.Shape
		window []int
		step   []int
		gap    []int
		pad    []graph.PadDim
	}{
		{graph.Shape{270}, []int{270}, []int{1}, []int{1}, []graph.PadDim{{Lo: 269}}},
		{graph.Shape{3000}, []int{3000}, []int{1}, []int{1}, []graph.PadDim{{}}},
		{graph.Shape{3, 130}, []int{1, 100}, []int{1, 1}, []int{1, 1}, []graph.PadDim{{}, {Lo: 20, Hi: 110}}},
		{graph.Shape{260, 3}, []int{258, 3}, []int{1, 2}, []int{1, 1}, []graph.PadDim{{Lo: 40}, {Lo: 1, Hi: 1}}},
		{graph.Shape{400, 3}, []int{90, 2}, []int{3, 1}, []int{3, 2}, []graph.PadDim{{Lo: -5, Hi: 40}, {Lo: 2}}},
		{graph.Shape{20, 20}, []int{7, 7}, []int{1, 1}, []int{1, 1}, []graph.PadDim{{Lo: 3, Hi: 3}, {Lo: 3, Hi: 3}}},
		{graph.Shape{64, 64}, []int{64, 64}, []int{1, 1}, []int{1, 1}, []graph.PadDim{{}, {}}},
		{graph.Shape{4, 2, 2048}, []int{1, 2, 1500}, []int{1, 1, 500}, []int{1, 1, 1}, []graph.PadDim{{}, {}, {Lo: 10, Hi: -30}}},
	}
	for name, target := range testTargets {
		r := rand.New(rand.NewSource(4))
		for i, c := range cases {
			at := graph.Attrs{Window: c.window, Strides: c.step, Dilation: c.gap, Pad: c.pad}
			outs := graph.Shape{}
			for k, d := range c.s {
				outs = append(outs, (d+c.pad[k].Lo+c.pad[k].Hi-(c.window[k]-1)*c.gap[k]-1)/c.step[k]+1)
			}
			for k, ty := range []graph.Type{graph.F32, graph.S32, graph.F64, graph.U8, graph.BF16} {
				if k != i%5 && k != (i+2)%5 {
					continue
				}
				t.Run(fmt.Sprint(name, c.s, c.window, ty), func(t *testing.T) {
					x := small(r, graph.Spec{Type: ty, Shape: c.s})
					for _, op := range windowOps {
						checkWindow(t, op, x, at, runWindow(t, interpreted(target), op, x, at, outs, "contiguous"), true)
					}
					x.bits[len(x.bits)/3] = hard(ty)[0]
					zeros := from(x.Spec, func([]int) uint64 { return hard(ty)[r.Intn(2)] })
					for _, op := range windowOps[2:] {
						checkWindow(t, op, zeros, at, runWindow(t, interpreted(target), op, zeros, at, outs, "contiguous"), false)
					}
				})
			}
		}
	}
}
