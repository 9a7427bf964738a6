package lower

import (
	"math"
	"math/rand"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
)

// complexOf draws a tensor of spec, which may be complex, of parts that draw draws.
func complexOf(r *rand.Rand, s graph.Spec, draw func(r *rand.Rand, s graph.Spec) tensor) tensor {
	if !s.Type.Complex() {
		return draw(r, s)
	}
	x := draw(r, graph.Spec{Type: s.Type.Part(), Shape: append(append(graph.Shape{}, s.Shape...), 2)})
	x.Spec = s
	return x
}

// asComplex makes the operands and results of type from of a node complex.
func asComplex(r *rand.Rand, n *graph.Node, xs []tensor, from, to graph.Type, draw func(r *rand.Rand, s graph.Spec) tensor) {
	if n.Type == from {
		n.Type = to
	}
	for i := range xs {
		if xs[i].Type == from {
			xs[i] = complexOf(r, graph.Spec{Type: to, Shape: xs[i].Shape}, draw)
		}
	}
}

var complexFamilies = map[string]draw{
	"window": func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
		x := complexOf(r, graph.Spec{Type: t, Shape: smallShape(r, 1+r.Intn(3))}, moderate)
		op := []graph.Op{graph.OpWindowSum, graph.OpWindowProduct}[r.Intn(2)]
		return windowNode(r, op, x.Spec, true), []tensor{x}, 1e-6
	},
	"cumulative": func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
		x := complexOf(r, graph.Spec{Type: t, Shape: smallShape(r, 1+r.Intn(3))}, moderate)
		op := []graph.Op{graph.OpCumulativeSum, graph.OpCumulativeProduct}[r.Intn(2)]
		return &graph.Node{Op: op, Spec: x.Spec, Attrs: graph.Attrs{Axis: r.Intn(len(x.Shape)), Reverse: r.Intn(2) == 0}}, []tensor{x}, 1e-6
	},
	"reduce": func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
		x := complexOf(r, graph.Spec{Type: t, Shape: smallShape(r, r.Intn(4))}, moderate)
		axes, _ := splitAxes(r, len(x.Shape))
		n := &graph.Node{Op: []graph.Op{graph.OpSum, graph.OpProduct, graph.OpAll, graph.OpAny}[r.Intn(4)], Spec: graph.Spec{Type: t}}
		n.Attrs.Axes, n.Attrs.Keep = axes, r.Intn(2) == 0
		for a, d := range x.Shape {
			switch {
			case !has(axes, a):
				n.Shape = append(n.Shape, d)
			case n.Attrs.Keep:
				n.Shape = append(n.Shape, 1)
			}
		}
		if n.Op == graph.OpAll || n.Op == graph.OpAny {
			n.Type = graph.U8
			for i := range x.bits {
				if r.Intn(3) > 0 {
					x.bits[i] = 0
				}
			}
		}
		return n, []tensor{x}, 1e-6
	},
	"fft": func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
		x := complexOf(r, graph.Spec{Type: t, Shape: smallShape(r, 1+r.Intn(3))}, moderate)
		n := &graph.Node{Op: []graph.Op{graph.OpFFT, graph.OpIFFT}[r.Intn(2)], Spec: graph.Spec{Type: t, Shape: append(graph.Shape{}, x.Shape...)}}
		n.Attrs = graph.Attrs{Axis: r.Intn(len(x.Shape)), Length: 1 + r.Intn(9), Eps: 1e-10}
		n.Shape[n.Attrs.Axis] = n.Attrs.Length
		return n, []tensor{x}, 1e-6
	},
	"dot": func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
		n, xs, tolerance := families["dot"](r, t.Part())
		n.Type = t
		kind := r.Intn(4) // 3: both are complex
		for i := range xs {
			if kind == 3 || kind&1 == i {
				xs[i] = complexOf(r, graph.Spec{Type: t, Shape: xs[i].Shape}, moderate)
			}
		}
		return n, xs, tolerance
	},
	"conv": func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
		n, xs, tolerance := families["conv"](r, t.Part())
		if n != nil {
			asComplex(r, n, xs, t.Part(), t, moderate)
		}
		return n, xs, tolerance
	},
}

func init() {
	for _, name := range []string{"gather", "take", "pad", "indexed"} {
		complexFamilies[name] = func(r *rand.Rand, t graph.Type) (*graph.Node, []tensor, float64) {
			n, xs, tolerance := families[name](r, t.Part())
			if n != nil {
				asComplex(r, n, xs, t.Part(), t, moderate)
			}
			return n, xs, tolerance
		}
	}
}

// Every family of complex tensors runs on kernels, and they agree with the host.
func TestComplexFamilies(t *testing.T) {
	complexFamiliesAgree(t, []machine{interpreted(testTargets["cpu"]), interpreted(testTargets["discrete"])}, 50)
}

// Devices without f64, and without 64-bit integers too, give what the host gives.
func TestComplexOnLesserDevices(t *testing.T) {
	single := testTargets["cpu"]
	single.F64 = false
	narrow := testTargets["discrete"]
	narrow.F64, narrow.I64 = false, false
	machines := []machine{interpreted(single), interpreted(narrow)}
	t.Run("families", func(t *testing.T) { complexFamiliesAgree(t, machines, 20) })
	t.Run("functions", func(t *testing.T) { complexFunctionsAgree(t, machines, 60) })
}

func TestComplexFamiliesOnDevice(t *testing.T) {
	m := onDevice(t)
	gpu := m
	gpu.Class = kernel.Discrete
	complexFamiliesAgree(t, []machine{m, gpu}, 6)
}

func complexFamiliesAgree(t *testing.T, machines []machine, rounds int) {
	for name, family := range complexFamilies {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewSource(63))
			for k := 0; k < rounds; {
				n, xs, tolerance := family(r, complexTypes[r.Intn(2)])
				if n == nil {
					continue
				}
				specs, in := make([]graph.Spec, len(xs)), make([]laidOut, len(xs))
				for i, x := range xs {
					specs[i] = x.Spec
					in[i] = layOut(x, layoutOf(layoutKinds[r.Intn(len(layoutKinds))], x.Shape))
				}
				g := one(*n, specs...)
				if graph.Verify(g) != nil {
					continue // a shape that is empty, say
				}
				k++
				m := machines[k%len(machines)]
				if tier := TierOf(m.Target, *n, g.Params); tier != Device && (m.F64 || tier != Host) {
					t.Errorf("%v: the %v runs it", g, tier)
				}
				partsNear(t, g, runGraph(t, m, g, in), hostEval(t, g, in), tolerance)
			}
		})
	}
}

// partsNear is nearly for tensors that may be complex: as tensors of their parts.
func partsNear(t *testing.T, g *graph.Graph, got, want []tensor, tolerance float64) {
	t.Helper()
	parts := func(xs []tensor) []tensor {
		var out []tensor
		for _, x := range xs {
			x.Type = x.Type.Part()
			out = append(out, x)
		}
		return out
	}
	nearly(t, g, parts(got), parts(want), tolerance)
}

// complexFunctions are the elementwise operations of complex numbers, by how many operands they take.
var complexFunctions = map[int][]graph.Op{
	1: {
		"exp", "expm1", "log", "log1p", "sigmoid", "cos", "sin", "tan", "cosh", "sinh", "tanh", "acos", "asin", "atan", "acosh", "asinh", "atanh",
		"sqrt", "rsqrt", "cbrt", "abs", "negate", "conjugate", "sign", "real", "imag", "is_nan", "is_infinity",
	},
	2: {"add", "subtract", "multiply", "divide", "pow", "equal", "not_equal", "logical_and", "logical_or", "logical_xor"},
}

// complexResult is the type that Nx gives.
func complexResult(op graph.Op, t graph.Type) graph.Type {
	switch op {
	case "abs", "real", "imag":
		return t.Part()
	case "is_nan", "is_infinity", "equal", "not_equal", "logical_and", "logical_or", "logical_xor":
		return graph.U8
	}
	return t
}

// ordinaryPart draws parts in the range where no function loses all its digits, with zeros among them.
func ordinaryPart(r *rand.Rand, s graph.Spec) tensor {
	x := tensor{Spec: s, bits: make([]uint64, s.Shape.Size())}
	for i := range x.bits {
		v := r.NormFloat64() * 2
		if r.Intn(8) == 0 {
			v = float64(r.Intn(3) - 1)
		}
		x.bits[i] = graph.FromFloat(v, s.Type)
	}
	return x
}

// specialPart draws the numbers that formulas treat apart.
func specialPart(r *rand.Rand, s graph.Spec) tensor {
	x := tensor{Spec: s, bits: make([]uint64, s.Shape.Size())}
	some := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -2, math.Inf(1), math.Inf(-1), math.NaN()}
	for i := range x.bits {
		x.bits[i] = graph.FromFloat(some[r.Intn(len(some))], s.Type)
	}
	return x
}

// TestComplexFunctions holds each function to the host, which computes it as the Complex library does.
func TestComplexFunctions(t *testing.T) {
	complexFunctionsAgree(t, []machine{interpreted(testTargets["cpu"]), interpreted(testTargets["discrete"])}, 300)
}

func TestComplexFunctionsOnDevice(t *testing.T) {
	complexFunctionsAgree(t, []machine{onDevice(t)}, 300)
}

func complexFunctionsAgree(t *testing.T, machines []machine, count int) {
	for arity, ops := range complexFunctions {
		for _, op := range ops {
			t.Run(string(op), func(t *testing.T) {
				r := rand.New(rand.NewSource(64))
				for i, ty := range complexTypes {
					m := machines[i%len(machines)]
					for _, draw := range []func(r *rand.Rand, s graph.Spec) tensor{ordinaryPart, specialPart} {
						complexFunctionOnce(t, m, r, op, arity, ty, count, draw)
					}
				}
			})
		}
	}
}

func complexFunctionOnce(t *testing.T, m machine, r *rand.Rand, op graph.Op, arity int, ty graph.Type, count int, draw func(r *rand.Rand, s graph.Spec) tensor) {
	t.Helper()
	s := graph.Spec{Type: ty, Shape: graph.Shape{count}}
	var in []laidOut
	var specs []graph.Spec
	for k := range arity {
		x := complexOf(r, s, draw)
		if arity == 2 && k == 1 && (r.Intn(2) == 0 || op == "equal") {
			x = draw(r, graph.Spec{Type: ty.Part(), Shape: s.Shape}) // one of the two is real
		}
		in, specs = append(in, layOut(x, layoutOf(layoutKinds[r.Intn(len(layoutKinds))], x.Shape))), append(specs, x.Spec)
	}
	out := complexResult(op, ty)
	g := one(graph.Node{Op: op, Spec: graph.Spec{Type: out, Shape: s.Shape}}, specs...)
	if tier := TierOf(m.Target, g.Nodes[0], g.Params); tier != Device && (m.F64 || tier != Host) {
		t.Fatalf("%v: the %v runs it", g, tier)
	}
	want := hostEval(t, g, in)[0]
	got := runGraph(t, m, g, in)[0]
	part := out.Part()
	eps := map[graph.Type]float64{graph.F32: 0x1p-22, graph.F64: 0x1p-44}[part]
	per := len(want.bits) / count
	for i := 0; i < len(want.bits); i += per {
		most := 0.0
		for p := range per {
			most = max(most, math.Abs(number64(want.bits[i+p], part)))
		}
		for p := range per {
			a, b := number64(got.bits[i+p], part), number64(want.bits[i+p], part)
			close := got.bits[i+p] == want.bits[i+p] || a == b || a != a && b != b ||
				!math.IsInf(b, 0) && math.Abs(a-b) <= eps*max(most, 1)
			if !close {
				var args []float64
				for _, x := range in {
					k := len(x.bits) / count
					for q := range k {
						args = append(args, number64(x.bits[i/per*k+q], x.Type.Part()))
					}
				}
				t.Errorf("%s of %v %v: part %d is %v, want %v", op, ty, args, p, a, b)
				return
			}
		}
	}
}

func number64(b uint64, t graph.Type) float64 {
	return floaty(numberOf(b, t).float()).f
}
