package host

import (
	"math"

	"nxvk/graph"
)

func init() { register(one(allClose), graph.OpAllClose) }

// allClose is 1 where |a - b| ≤ atol + rtol·|b| for all elements: each step rounded to the operands' common type, as the
// operations that Nx defines it by round. Equal infinities are close, and so are NaNs if asked.
func allClose(n *graph.Node, in []Tensor) Tensor {
	a, b := in[0], in[1]
	shape, _ := graph.Broadcast(a.Shape, b.Shape)
	s := graph.Spec{Type: graph.U8, Shape: shape}
	at := &n.Attrs
	var each Tensor
	switch classOf(a.Type, b.Type) {
	case integer:
		t := graph.MergeTypes(a.Type, b.Type)
		unsigned := t == graph.U64
		shift := 64 - t.Bits()
		each = map2(s, a, b, false, func(x, y int64) int64 {
			d := (x - y) << shift
			if t.Signed() {
				d >>= shift
				if d < 0 {
					d = -d << shift >> shift
				}
			} else {
				d = int64(uint64(d) >> shift)
			}
			limit := at.ATol + float64(at.RTol*math.Abs(toFloat(y, b.Type == graph.U64)))
			c := compareMixed(d, unsigned, limit)
			return boolean(c <= 0)
		})
	case float:
		round := rounding(graph.MergeTypes(a.Type, b.Type))
		rtol, atol := round(at.RTol), round(at.ATol)
		each = map2(s, a, b, false, func(x, y float64) int64 {
			switch {
			case x != x && y != y:
				return boolean(at.EqualNaN)
			case math.IsInf(x, 0) || math.IsInf(y, 0):
				return boolean(x == y)
			}
			return boolean(math.Abs(round(x-y)) <= round(atol+round(rtol*math.Abs(y))))
		})
	default:
		round := rounding(graph.MergeTypes(a.Type, b.Type).Part())
		rtol, atol := round(at.RTol), round(at.ATol)
		each = map2(s, a, b, false, func(x, y complex128) int64 {
			nan := func(z complex128) bool { return real(z) != real(z) || imag(z) != imag(z) }
			inf := func(z complex128) bool { return math.IsInf(real(z), 0) || math.IsInf(imag(z), 0) }
			switch {
			case nan(x) && nan(y) && at.EqualNaN:
				return 1
			case inf(x) || inf(y):
				return boolean(x == y)
			}
			d := complex(round(real(x)-real(y)), round(imag(x)-imag(y)))
			return boolean(round(absComplex(d)) <= round(atol+round(rtol*round(absComplex(y)))))
		})
	}
	all := foldRows(each, shape.Size(), int64(1), false, func(acc, x int64) int64 { return acc & x })
	return tensor(n.Spec, all, false)
}

// rounding rounds to a float type.
func rounding(t graph.Type) func(float64) float64 {
	switch t {
	case graph.F64:
		return func(x float64) float64 { return x }
	case graph.F32:
		return func(x float64) float64 { return float64(float32(x)) }
	}
	return func(x float64) float64 { return graph.ToFloat(graph.FromFloat(x, t), t) }
}
