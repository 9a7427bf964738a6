package lower

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
)

// grid is the operands of a binary test: every pair of hard values and random ones, in one row each.
func pairs(r *rand.Rand, a, b graph.Type, most int) (x, y tensor) {
	ha, hb := hard(a), hard(b)
	x, y = tensor{Spec: graph.Spec{Type: a}}, tensor{Spec: graph.Spec{Type: b}}
	for i := 0; i < most; i++ {
		x.bits, y.bits = append(x.bits, ha[r.Intn(len(ha))]), append(y.bits, hb[r.Intn(len(hb))])
	}
	rx, ry := random(r, graph.Spec{Type: a, Shape: graph.Shape{most}}), random(r, graph.Spec{Type: b, Shape: graph.Shape{most}})
	x.bits, y.bits = append(x.bits, rx.bits...), append(y.bits, ry.bits...)
	if a == b {
		for _, v := range ha {
			x.bits, y.bits = append(x.bits, v), append(y.bits, v)
		}
	}
	x.Shape, y.Shape = graph.Shape{len(x.bits)}, graph.Shape{len(y.bits)}
	return x, y
}

func flatOf(t tensor) laidOut { return layOut(t, graph.Contiguous(t.Shape)) }

// outOf is the result type that Nx gives a binary op; ok is false where Nx refuses the operands.
func outOf(op graph.Op, a, b graph.Type) (out graph.Type, ok bool) {
	merged := mergeTypes(a, b)
	switch op {
	case "divide", "atan2":
		if merged.Int() {
			merged = graph.F32
		}
	case "quotient", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift":
		return merged, a.Int() && b.Int()
	case "equal", "not_equal", "greater", "less", "greater_equal", "less_equal", "logical_and", "logical_or", "logical_xor":
		return graph.U8, true
	}
	return merged, true
}

// near reports whether got is within a few units in the last place of want (in f64 a few thousand: Go's own Pow
// squares its rounding errors along).
func near(got, want uint64, t graph.Type) bool {
	g, w := graph.ToFloat(got, t), graph.ToFloat(want, t)
	if math.IsNaN(w) || math.IsInf(w, 0) || math.IsNaN(g) || math.IsInf(g, 0) {
		return got == want || math.IsNaN(g) && math.IsNaN(w) || math.Abs(g) > 1e38 || math.Abs(w) > 1e38 || t == graph.F8 && (math.Abs(g) > 5e4 || math.Abs(w) > 5e4)
	}
	eps := map[graph.Type]float64{graph.F8: 0x1p-2, graph.F8E4M3FN: 0x1p-3, graph.F16: 0x1p-9, graph.BF16: 0x1p-6, graph.F32: 0x1p-21, graph.F64: 0x1p-40}[t]
	tiny := map[graph.Type]float64{graph.F8: 0x1p-16, graph.F8E4M3FN: 0x1p-9, graph.F16: 0x1p-23, graph.BF16: 0x1p-126, graph.F32: 0x1p-126, graph.F64: 0x1p-1021}[t]
	return math.Abs(g-w) <= eps*math.Abs(w)+tiny
}

// report prints the first mistakes of one op and pair of types.
type report struct {
	t   *testing.T
	bad int
}

func (r *report) wrong(format string, args ...any) {
	if r.bad++; r.bad <= 3 {
		r.t.Errorf(format, args...)
	}
}

// ordinary is what Go's own functions are good for: neither NaN nor infinite, nor far out.
func ordinary(n number) bool {
	f := math.Abs(n.float())
	return !math.IsNaN(f) && !math.IsInf(f, 0) && (f == 0 || f > 1e-100) && f < 1e100
}

func binaryOnce(t *testing.T, m machine, r *rand.Rand, op graph.Op, a, b graph.Type, most int) {
	out, ok := outOf(op, a, b)
	if !ok {
		return
	}
	x, y := pairs(r, a, b, most)
	got := runGraph(t, m, one(graph.Node{Op: op, Spec: graph.Spec{Type: out, Shape: x.Shape}}, x.Spec, y.Spec), []laidOut{flatOf(x), flatOf(y)})[0]
	if m.Num.FlushF32 {
		return // the interpreter, which flushes as well, has agreed
	}
	rep := report{t: t}
	for i := range x.bits {
		nx, ny := numberOf(x.bits[i], a), numberOf(y.bits[i], b)
		n, exact := refBinary(op, nx, ny, out)
		if !exact && !(ordinary(nx) && ordinary(ny)) {
			continue // pow and atan2 follow Elixir's Complex there; their own tests hold them
		}
		if want := n.write(out); got.bits[i] != want && (exact || !near(got.bits[i], want, out)) {
			rep.wrong("%s: %v %#x (%s), %v %#x (%s) -> %v: got %#x (%s), want %#x (%s)", op, a, x.bits[i], show(x.bits[i], a), b, y.bits[i], show(y.bits[i], b), out,
				got.bits[i], show(got.bits[i], out), want, show(want, out))
		}
	}
}

func TestBinary(t *testing.T) {
	most := 150
	if testing.Short() {
		most = 30
	}
	r := rand.New(rand.NewSource(2))
	m := interpreted(testTargets["cpu"])
	for _, op := range graph.Binary {
		t.Run(string(op), func(t *testing.T) {
			for _, a := range graph.RealTypes {
				for _, b := range graph.RealTypes {
					binaryOnce(t, m, r, op, a, b, most)
				}
			}
		})
	}
}

func TestBinaryOnDevice(t *testing.T) {
	m := onDevice(t)
	r := rand.New(rand.NewSource(12))
	for _, op := range graph.Binary {
		t.Run(string(op), func(t *testing.T) {
			for _, a := range []graph.Type{graph.U8, graph.S16, graph.U32, graph.S64, graph.BF16, graph.F32, graph.F64} {
				binaryOnce(t, m, r, op, a, a, 150)
			}
			for k := 0; k < 3; k++ {
				m := m
				m.Class = kernel.Discrete
				binaryOnce(t, m, r, op, graph.RealTypes[r.Intn(len(graph.RealTypes))], graph.RealTypes[r.Intn(len(graph.RealTypes))], 150)
			}
		})
	}
}

func show(b uint64, t graph.Type) string {
	n := numberOf(b, t)
	if n.i != nil {
		return n.i.String()
	}
	return fmt.Sprint(n.f)
}

// unaryOut is the result type that Nx gives a unary op; ok is false where Nx refuses the operand.
func unaryOut(op graph.Op, a graph.Type) (out graph.Type, ok bool) {
	switch op {
	case "bitwise_not", "count_leading_zeros", "population_count":
		return a, a.Int()
	case "is_nan", "is_infinity":
		return graph.U8, true
	case "abs", "negate", "sign", "ceil", "floor", "round", "real", "conjugate":
		return a, true
	}
	if a.Int() {
		return graph.F32, true
	}
	return a, true
}

func unaryOnce(t *testing.T, m machine, r *rand.Rand, op graph.Op, a graph.Type) {
	out, ok := unaryOut(op, a)
	if !ok {
		return
	}
	x, _ := pairs(r, a, a, 200)
	got := runGraph(t, m, one(graph.Node{Op: op, Spec: graph.Spec{Type: out, Shape: x.Shape}}, x.Spec), []laidOut{flatOf(x)})[0]
	if m.Num.FlushF32 || op == "erf_inv" { // Nx's own approximation: the tests of the function hold it
		return
	}
	rep := report{t: t}
	for i := range x.bits {
		nx := numberOf(x.bits[i], a)
		n, exact := refUnary(op, nx, x.bits[i], a)
		want := n.write(out)
		if (op == "real" || op == "conjugate") && a == out {
			want = x.bits[i]
		}
		if !exact && (!ordinary(nx) || math.Abs(nx.float()) > 1e4) {
			continue
		}
		if got.bits[i] != want && (exact || !near(got.bits[i], want, out)) {
			rep.wrong("%s: %v %#x (%s) -> %v: got %#x (%s), want %#x (%s)", op, a, x.bits[i], show(x.bits[i], a), out, got.bits[i], show(got.bits[i], out), want, show(want, out))
		}
	}
}

func TestUnary(t *testing.T) {
	unaryAll(t, interpreted(testTargets["cpu"]), graph.RealTypes)
}

func TestUnaryOnDevice(t *testing.T) {
	unaryAll(t, onDevice(t), []graph.Type{graph.S64, graph.S2, graph.U4, graph.F8, graph.F8E4M3FN, graph.BF16, graph.F32, graph.F64})
}

func unaryAll(t *testing.T, m machine, types []graph.Type) {
	r := rand.New(rand.NewSource(3))
	for _, op := range graph.Unary {
		t.Run(string(op), func(t *testing.T) {
			for _, a := range types {
				unaryOnce(t, m, r, op, a)
			}
		})
	}
}

// asTypeOnce holds a conversion to the host's, which follows BinaryBackend.
func asTypeOnce(t *testing.T, m machine, r *rand.Rand, a, b graph.Type) {
	x, _ := pairs(r, a, a, 400)
	got := runGraph(t, m, one(graph.Node{Op: graph.OpAsType, Spec: graph.Spec{Type: b, Shape: x.Shape}}, x.Spec), []laidOut{flatOf(x)})[0]
	if m.Num.FlushF32 {
		return
	}
	rep := report{t: t}
	for i := range x.bits {
		want := numberOf(x.bits[i], a).write(b)
		if a == b {
			want = x.bits[i]
		}
		if got.bits[i] != want {
			rep.wrong("%v %#x (%s) -> %v: got %#x (%s), want %#x (%s)", a, x.bits[i], show(x.bits[i], a), b, got.bits[i], show(got.bits[i], b), want, show(want, b))
		}
	}
}

func TestAsType(t *testing.T) {
	noF64 := testTargets["cpu"]
	noF64.F64 = false
	asTypeAll(t, interpreted(testTargets["cpu"]))
	asTypeAll(t, interpreted(noF64))
}

func TestAsTypeOnDevice(t *testing.T) { asTypeAll(t, onDevice(t)) }

func asTypeAll(t *testing.T, m machine) {
	r := rand.New(rand.NewSource(4))
	for _, a := range graph.RealTypes {
		for _, b := range graph.RealTypes {
			asTypeOnce(t, m, r, a, b)
		}
	}
}

func TestSelectAndClip(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	types := []graph.Type{graph.S4, graph.U8, graph.S32, graph.U64, graph.S64, graph.F8, graph.F8E4M3FN, graph.F16, graph.BF16, graph.F32, graph.F64}
	for _, p := range types {
		for _, a := range types {
			for _, b := range types {
				out := mergeTypes(a, b)
				x, y := pairs(r, a, b, 40)
				c := random(r, graph.Spec{Type: p, Shape: x.Shape})
				got := runGraph(t, interpreted(testTargets["cpu"]), one(graph.Node{Op: graph.OpSelect, Spec: graph.Spec{Type: out, Shape: x.Shape}}, c.Spec, x.Spec, y.Spec), []laidOut{flatOf(c), flatOf(x), flatOf(y)})[0]
				for i := range x.bits {
					from, n := a, x.bits[i]
					if !truthy(numberOf(c.bits[i], p)) {
						from, n = b, y.bits[i]
					}
					want := numberOf(n, from).write(out)
					same := a == out && b == out && n == got.bits[i]
					if got.bits[i] != want && !same && !(from == out && got.bits[i] == n) {
						t.Fatalf("select %v %v %v: %#x: got %#x, want %#x", p, a, b, n, got.bits[i], want)
					}
				}
				// clip: p is x's type, a and b those of the bounds
				out = mergeTypes(p, mergeTypes(a, b))
				for k := 0; k < 4; k++ {
					lo, hi := tensor{graph.Spec{Type: a}, x.bits[k : k+1]}, tensor{graph.Spec{Type: b}, y.bits[k : k+1]}
					lov, hiv := flatOf(lo), flatOf(hi)
					lov.value, hiv.value = k&1 == 0, k&2 == 0
					got := runGraph(t, interpreted(testTargets["cpu"]), one(graph.Node{Op: graph.OpClip, Spec: graph.Spec{Type: out, Shape: c.Shape}}, c.Spec, lo.Spec, hi.Spec), []laidOut{flatOf(c), lov, hiv})[0]
					for i := range c.bits {
						want := refClip(numberOf(c.bits[i], p), numberOf(lo.bits[0], a), numberOf(hi.bits[0], b)).write(out)
						if got.bits[i] != want {
							t.Fatalf("clip %v to %v %v -> %v: %s to %s %s: got %#x, want %#x", p, a, b, out, show(c.bits[i], p), show(lo.bits[0], a), show(hi.bits[0], b), got.bits[i], want)
						}
					}
				}
			}
		}
	}
}
