package shaders

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
)

var specials = []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1, -1, 2, -2, 0.5, -0.5,
	3, -3, 1e-30, -1e-30, 1e30, -1e30, 88, -88, 89.5, -104, 100, -100}

func extremes(k kind) []float64 {
	least, most := math.Ldexp(1, k.emin-k.mant), math.Ldexp(2-math.Ldexp(1, -k.mant), -k.emin+1)
	norm := math.Ldexp(1, k.emin)
	return []float64{least, -least, norm, -norm, most, -most}
}

// reference gives the special cases of each function: Go's math follows C99.
var reference = map[graph.Op]func(float64) float64{
	"exp": math.Exp, "expm1": math.Expm1, "log": logSub, "log1p": math.Log1p,
	"sigmoid": func(x float64) float64 {
		if x < -700 {
			return math.Exp(x)
		}
		return 1 / (1 + math.Exp(-x))
	},
	"cos": math.Cos, "sin": math.Sin, "tan": math.Tan, "cosh": math.Cosh, "sinh": math.Sinh, "tanh": math.Tanh,
	"acos": math.Acos, "asin": math.Asin, "atan": math.Atan, "acosh": math.Acosh, "asinh": math.Asinh, "atanh": math.Atanh,
	"sqrt": math.Sqrt, "rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
	"cbrt": math.Cbrt, "erf": math.Erf, "erfc": math.Erfc,
	"erf_inv": giles,
}

// logSub is math.Log, subnormal arguments included.
func logSub(x float64) float64 {
	if x > 0 && x < 0x1p-1000 {
		return math.Log(x*0x1p100) - 100*math.Ln2
	}
	return math.Log(x)
}

// giles is the definition of erf_inv in Nx.BinaryBackend, step by step.
func giles(z float64) float64 {
	if z == 0 {
		return 0
	}
	if math.Abs(z) == 1 {
		return math.Inf(int(z))
	}
	w := -math.Log((1 - z) * (1 + z))
	u, cs := w-2.5, erfInvCentral
	if w >= 5 {
		u, cs = math.Sqrt(w)-3, erfInvTail
	}
	p := 0.0
	for _, c := range cs {
		p = float64(p*u) + c
	}
	return p * z
}

// near says whether got is want to a relative 2^-(mant-8) (binary64, as good as math.Sin is) or
// 2^-(mant-3), or the same special value.
func near(k kind, got, want float64) bool {
	if k.typ == kernel.F32 {
		want = float64(float32(want))
	}
	if math.IsNaN(want) || math.IsInf(want, 0) || want == 0 {
		return same(k.typ, got, want)
	}
	slack := 3
	if k.mant == 52 {
		slack = 8
	}
	return math.Abs(got-want) <= math.Max(math.Abs(want)*math.Ldexp(1, slack-k.mant), math.Ldexp(1, k.emin-k.mant))
}

func TestSpecialValues(t *testing.T) {
	for op, ref := range reference {
		for _, k := range kinds {
			f := compileUnary(op, k.typ, k.target)
			for _, x := range append(extremes(k), specials...) {
				if k.typ == kernel.F32 {
					x = float64(float32(x))
				}
				if got, want := f.f64(x), ref(x); !near(k, got, want) {
					t.Errorf("%s %s(%v) = %v, want %v", k.name, op, x, got, want)
				}
			}
		}
	}
	for op := range unaryFuncs {
		if reference[op] == nil {
			t.Errorf("%s: no reference", op)
		}
	}
}

func compilePow(k kind) *compiled {
	return compile(k.typ, k.target, 2, func(b *kernel.Builder, x []kernel.Value) kernel.Value { return Pow(b, x[0], x[1]) })
}

func compileAtan2(k kind) *compiled {
	return compile(k.typ, k.target, 2, func(b *kernel.Builder, x []kernel.Value) kernel.Value { return Atan2(b, x[0], x[1]) })
}

// nxPow are the special cases of pow in Nx.BinaryBackend.
func nxPow(x, y float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsNaN(y):
		return math.NaN()
	case math.IsInf(y, 0) && (y > 0) == (x != 0):
		return math.Inf(1)
	case math.IsInf(y, 0):
		return 0
	}
	return math.Pow(x, y)
}

func TestBinarySpecialValues(t *testing.T) {
	for _, k := range kinds {
		p, a := compilePow(k), compileAtan2(k)
		values := append(extremes(k), specials...)
		for _, x := range values {
			for _, y := range values {
				if k.typ == kernel.F32 {
					x, y = float64(float32(x)), float64(float32(y))
				}
				if got, want := p.f64(x, y), nxPow(x, y); !near(k, got, want) {
					t.Errorf("%s pow(%v, %v) = %v, want %v", k.name, x, y, got, want)
				}
				if got, want := a.f64(x, y), math.Copysign(math.Atan2(x, y), x); !near(k, got, want) {
					t.Errorf("%s atan2(%v, %v) = %v, want %v", k.name, x, y, got, want)
				}
			}
		}
	}
}

// TestBinaryULP prints the rows of pow, atan2 and erf_inv of the table in docs/NUMERICS.md.
func TestBinaryULP(t *testing.T) {
	n := 3000 * *ulpSweep
	if testing.Short() {
		n = 1500
	}
	powBound, atanBound, invBound := [3]float64{0.52, 0.51, 0.51}, [3]float64{0.52, 0.51, 0.51}, [3]float64{3, 0.51, 0.51}
	rows := [3]string{"pow     ", "atan2   ", "erf_inv "}
	for i, k := range kinds {
		r := rand.New(rand.NewPCG(3, uint64(i)))
		p, a, inv := compilePow(k), compileAtan2(k), compileUnary("erf_inv", k.typ, k.target)
		var worst [3]float64
		var at [3][2]float64
		var sub [3]float64
		note := func(f int, e float64, y *big.Float, args ...float64) {
			if y.Sign() == 0 || y.MantExp(nil)-1 < k.emin {
				sub[f] = max(sub[f], e)
			} else if e > worst[f] {
				worst[f] = e
				copy(at[f][:], args)
			}
		}
		o := bigf{320}
		for range n {
			x := math.Ldexp(1+r.Float64(), r.IntN(2*-k.emin)+k.emin)
			if r.IntN(2) == 0 {
				x = 0.5 + r.Float64()
			}
			if k.typ == kernel.F32 {
				x = float64(float32(x))
			}
			// An exponent that keeps the result finite, or nearly.
			y := (r.Float64()*2 - 1) * float64(-k.emin+30) / math.Abs(math.Log2(x))
			if r.IntN(4) == 0 {
				y = float64(r.IntN(20) - 10)
			}
			if k.typ == kernel.F32 {
				y = float64(float32(y))
			}
			if l := y * math.Log2(x); x != 1 && math.Abs(l) < 2000 {
				truth := o.exp(o.mul(o.f(y), o.log(o.f(x))))
				note(0, k.ulpError(p.f64(x, y), truth), truth, x, y)
			}
			u, v := randomFloats(r, k.typ), randomFloats(r, k.typ)
			if u*0 == 0 && v*0 == 0 && u != 0 && v != 0 {
				q := bigf{2600}
				if k.typ == kernel.F32 || math.Abs(math.Log2(math.Abs(u))-math.Log2(math.Abs(v))) < 100 {
					q = bigf{900}
				} else if r.IntN(50) != 0 {
					continue
				}
				truth := q.atan2(q.f(u), q.f(v))
				note(1, k.ulpError(a.f64(u, v), truth), truth, u, v)
			}
			z := r.Float64()*2 - 1
			if r.IntN(3) == 0 {
				z = 1 - math.Ldexp(r.Float64(), -r.IntN(20))
			}
			if k.typ == kernel.F32 {
				z = float64(float32(z))
			}
			if math.Abs(z) < 1 {
				want := new(big.Float).SetFloat64(giles(z))
				note(2, k.ulpError(inv.f64(z), want), want, z)
			}
		}
		bounds := [3]float64{powBound[i], atanBound[i], invBound[i]}
		for f, c := range []*compiled{p, a, inv} {
			rows[f] += fmt.Sprintf("  %s %.4f at %v (subnormal %.2f; %d instructions)", k.name, worst[f], at[f], sub[f], c.count())
			if worst[f] > bounds[f] || sub[f] > max(0.52, bounds[f]) {
				t.Errorf("%s: %.4f ulp at %v, %.4f among subnormal results; bound %v", rows[f][:8]+k.name, worst[f], at[f], sub[f], bounds[f])
			}
		}
	}
	for _, row := range rows {
		t.Log(row)
	}
}
