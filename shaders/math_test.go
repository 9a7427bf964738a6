package shaders

import (
	"math"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
)

// Targets: binary64 present, and absent.
var (
	with64    = kernel.Target{F64: true, I64: true, Num: kernel.Exact}
	without64 = kernel.Target{Num: kernel.Exact}
)

// What Nx prints in its own documentation: Erlang's math functions, or the formula that Nx builds on them.
func TestNxDocExamples(t *testing.T) {
	whole, unit := []float64{1, 2, 3}, []float64{0.1, 0.5, 0.9}
	for _, c := range []struct {
		op   graph.Op
		x, y []float64
	}{
		{"exp", whole, []float64{2.718281828459045, 7.38905609893065, 20.085536923187668}},
		{"expm1", whole, []float64{1.718281828459045, 6.38905609893065, 19.085536923187668}},
		{"log", whole, []float64{0.0, 0.6931471805599453, 1.0986122886681098}},
		{"log1p", whole, []float64{0.6931471805599453, 1.0986122886681098, 1.3862943611198906}},
		{"sigmoid", whole, []float64{0.7310585786300049, 0.8807970779778823, 0.9525741268224334}},
		{"cos", whole, []float64{0.5403023058681398, -0.4161468365471424, -0.9899924966004454}},
		{"sin", whole, []float64{0.8414709848078965, 0.9092974268256817, 0.1411200080598672}},
		{"tan", whole, []float64{1.5574077246549023, -2.185039863261519, -0.1425465430742778}},
		{"cosh", whole, []float64{1.5430806348152437, 3.7621956910836314, 10.067661995777765}},
		{"sinh", whole, []float64{1.1752011936438014, 3.626860407847019, 10.017874927409903}},
		{"tanh", whole, []float64{0.7615941559557649, 0.9640275800758169, 0.9950547536867305}},
		{"acosh", whole, []float64{0.0, 1.3169578969248166, 1.762747174039086}},
		{"asinh", whole, []float64{0.881373587019543, 1.4436354751788103, 1.8184464592320668}},
		{"sqrt", whole, []float64{1.0, 1.4142135623730951, 1.7320508075688772}},
		{"rsqrt", whole, []float64{1.0, 0.7071067811865475, 0.5773502691896258}},
		{"cbrt", whole, []float64{1.0, 1.2599210498948732, 1.4422495703074083}},
		{"erf", whole, []float64{0.8427007929497149, 0.9953222650189527, 0.9999779095030014}},
		{"erfc", whole, []float64{0.15729920705028513, 0.004677734981047265, 2.2090496998585438e-5}},
		{"acos", unit, []float64{1.4706289056333368, 1.0471975511965979, 0.45102681179626236}},
		{"asin", unit, []float64{0.1001674211615598, 0.5235987755982989, 1.1197695149986342}},
		{"atan", unit, []float64{0.09966865249116204, 0.4636476090008061, 0.7328151017865066}},
		{"atanh", unit, []float64{0.10033534773107558, 0.5493061443340548, 1.4722194895832204}},
	} {
		if _, ok := unaryFuncs[c.op]; !ok {
			t.Errorf("%s: missing", c.op)
			continue
		}
		for _, k := range []struct {
			name   string
			typ    kernel.Type
			target kernel.Target
		}{{"f64", kernel.F64, with64}, {"f32", kernel.F32, with64}, {"f32 pairs", kernel.F32, without64}} {
			f := compileUnary(c.op, k.typ, k.target)
			for i, x := range c.x {
				want := c.y[i]
				if k.typ == kernel.F32 {
					want = float64(float32(want))
					if x != math.Trunc(x) {
						continue // the argument differs
					}
				}
				if got := f.f64(x); got != want {
					t.Errorf("%s %s(%v) = %v, Nx prints %v", k.name, c.op, x, got, want)
				}
			}
		}
	}
}
