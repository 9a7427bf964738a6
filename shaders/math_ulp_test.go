package shaders

import (
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
)

// ulpSweep is 1 for daily use; docs/NUMERICS.md was made with 8.
var ulpSweep = flag.Int("ulp", 1, "by how much to multiply the points of the ulp sweeps")

// kind is one of the three ways in which functions are computed.
type kind struct {
	name   string
	typ    kernel.Type
	target kernel.Target
	mant   int
	emin   int // exponent of the least normal
}

var kinds = []kind{
	{"f64", kernel.F64, with64, 52, -1022},
	{"f32", kernel.F32, with64, 23, -126},
	{"f32 in pairs", kernel.F32, without64, 23, -126},
}

// ulpError is |got - exact| in units in the last place of the exact value; an overflow is right from
// half an ulp above the greatest finite number on.
func (k kind) ulpError(got float64, exact *big.Float) float64 {
	e := k.emin
	if exact.Sign() != 0 {
		e = max(exact.MantExp(nil)-1, k.emin)
	}
	if math.IsNaN(got) {
		return math.Inf(1)
	}
	g := new(big.Float).SetPrec(320)
	if math.IsInf(got, 0) {
		emax := -k.emin + 1
		limit := new(big.Float).SetMantExp(big.NewFloat(2-math.Ldexp(1, -k.mant-1)), emax)
		if new(big.Float).Abs(exact).Cmp(limit) >= 0 && math.Signbit(got) == exact.Signbit() {
			return 0
		}
		g.SetMantExp(big.NewFloat(math.Copysign(1, got)), emax+1)
		e = max(min(e, emax), k.emin)
	} else {
		g.SetFloat64(got)
	}
	d := g.Sub(g, exact)
	d.SetMantExp(d, k.mant-e)
	f, _ := d.Float64()
	return math.Abs(f)
}

// rangeOf is where a function's domain or interest lies: points outside are left to the tests of
// special values.
type rangeOf struct{ lo, hi float64 }

var (
	everywhere = rangeOf{math.Inf(-1), math.Inf(1)}
	positive   = rangeOf{0, math.Inf(1)}
)

// ulpCases lists the functions, their domains, an interval to search densely, and the bounds for
// binary64, binary32 by binary64 and binary32 by pairs.
var ulpCases = []struct {
	op     graph.Op
	domain rangeOf
	dense  rangeOf
	bound  [3]float64
}{
	{"exp", everywhere, rangeOf{-750, 715}, [3]float64{0.52, 0.51, 0.51}},
	{"expm1", everywhere, rangeOf{-45, 90}, [3]float64{1.02, 0.51, 0.51}},
	{"log", positive, rangeOf{0.3, 3}, [3]float64{0.52, 0.51, 0.51}},
	{"log1p", rangeOf{-1, math.Inf(1)}, rangeOf{-0.999, 5}, [3]float64{0.52, 0.51, 0.51}},
	{"sigmoid", everywhere, rangeOf{-100, 50}, [3]float64{2, 0.51, 0.51}},
	{"cos", everywhere, rangeOf{-100, 100}, [3]float64{0.53, 0.51, 0.51}},
	{"sin", everywhere, rangeOf{-100, 100}, [3]float64{0.52, 0.51, 0.51}},
	{"tan", everywhere, rangeOf{-100, 100}, [3]float64{0.53, 0.51, 0.51}},
	{"cosh", everywhere, rangeOf{-20, 90}, [3]float64{0.52, 0.51, 0.51}},
	{"sinh", everywhere, rangeOf{-20, 90}, [3]float64{1, 0.51, 0.51}},
	{"tanh", everywhere, rangeOf{-10, 25}, [3]float64{0.53, 0.51, 0.51}},
	{"acos", rangeOf{-1, 1}, rangeOf{-1, 1}, [3]float64{0.55, 0.51, 0.51}},
	{"asin", rangeOf{-1, 1}, rangeOf{-1, 1}, [3]float64{0.55, 0.51, 0.51}},
	{"atan", everywhere, rangeOf{-5, 5}, [3]float64{0.55, 0.51, 0.51}},
	{"acosh", rangeOf{1, math.Inf(1)}, rangeOf{1, 10}, [3]float64{1.05, 0.51, 0.51}},
	{"asinh", everywhere, rangeOf{-3, 3}, [3]float64{0.52, 0.51, 0.51}},
	{"atanh", rangeOf{-1, 1}, rangeOf{-1, 1}, [3]float64{1, 0.51, 0.51}},
	{"sqrt", positive, rangeOf{0.5, 4}, [3]float64{0.5, 0.5, 0.5}},
	{"rsqrt", positive, rangeOf{0.5, 4}, [3]float64{1.5, 0.51, 0.51}},
	{"cbrt", everywhere, rangeOf{-8, 8}, [3]float64{0.51, 0.51, 0.51}},
	{"erf", everywhere, rangeOf{-6, 6}, [3]float64{0.61, 0.51, 0.65}},
	{"erfc", rangeOf{math.Inf(-1), 30}, rangeOf{-6, 28}, [3]float64{2.5, 0.51, 0.8}},
}

// points are values of the kind's type: n random mantissas for each exponent and sign, the powers of
// two and their neighbours, and m values spread over the dense interval.
func (k kind) points(r *rand.Rand, domain, dense rangeOf, n, m int) []float64 {
	var out []float64
	keep := func(v float64) {
		if k.typ == kernel.F32 {
			v = float64(float32(v))
		}
		if v > domain.lo && v < domain.hi && !math.IsInf(v, 0) && v != 0 {
			out = append(out, v)
		}
	}
	step := 1
	if k.mant == 52 {
		step = 7
	}
	for e := k.emin - k.mant; e < -k.emin+2; e += step {
		p := math.Ldexp(1, e)
		for _, s := range []float64{1, -1} {
			keep(s * p)
			keep(s * math.Nextafter(p, 0))
			for range n {
				keep(s * p * (1 + r.Float64()))
			}
		}
	}
	for range m {
		keep(dense.lo + (dense.hi-dense.lo)*r.Float64())
	}
	return out
}

// TestULP prints the table of docs/NUMERICS.md.
func TestULP(t *testing.T) {
	n, m := *ulpSweep, 300**ulpSweep
	if testing.Short() {
		n, m = 1, 100
	}
	for _, c := range ulpCases {
		row := fmt.Sprintf("%-8s", c.op)
		for i, k := range kinds {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			f := compileUnary(c.op, k.typ, k.target)
			worst, at, sub := 0.0, 0.0, 0.0
			for _, x := range k.points(r, c.domain, c.dense, n, m) {
				y := truthAt(c.op, x)
				e := k.ulpError(f.f64(x), y)
				if y.Sign() == 0 || y.MantExp(nil)-1 < k.emin {
					sub = max(sub, e)
				} else if e > worst {
					worst, at = e, x
				}
			}
			row += fmt.Sprintf("  %s %.4f at %-22.17g (subnormal %.2f; %d instructions)", k.name, worst, at, sub, f.count())
			if sub > max(0.51, c.bound[i]) {
				t.Errorf("%s %s: %.4f ulp among subnormal results", k.name, c.op, sub)
			}
			if worst > c.bound[i] {
				t.Errorf("%s %s: %.4f ulp at %v (%x), bound %v", k.name, c.op, worst, at, at, c.bound[i])
			}
		}
		t.Log(row)
	}
}

// truthAt is truth, with the ends that overflow any exponent range done by hand.
func truthAt(op graph.Op, x float64) *big.Float {
	switch op {
	case "exp", "sinh", "cosh", "expm1", "sigmoid", "tanh":
		x = math.Max(math.Min(x, 2000), -2000)
	case "erf":
		x = math.Max(math.Min(x, 30), -30)
	case "erfc":
		x = math.Max(x, -30)
	}
	return truth(string(op), x)
}
