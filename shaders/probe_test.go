package shaders

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"nxvk/kernel"
)

// interpret is a Runner on a machine whose numerics are num.
func interpret(num kernel.Numerics) Runner {
	return func(k *kernel.Kernel, t kernel.Target, grid [3]uint32, args []kernel.Bind) error {
		m := kernel.Machine{Num: num}
		return m.Run(k, grid, args)
	}
}

var probeTarget = kernel.Target{F64: true, I64: true}

func TestProbeOfTheInterpreter(t *testing.T) {
	for _, num := range []kernel.Numerics{
		kernel.Exact,
		{FlushF32: true, FuseF32: true, FuseF64: true},
		{FuseF64: true},
		{FuseF32: true},
	} {
		num.DivF32, num.DivF64, num.SqrtF32, num.SqrtF64 = true, true, true, true
		got, err := Probe(probeTarget, interpret(num))
		if err != nil || got != num {
			t.Errorf("probe: %+v, %v; want %+v", got, err, num)
		}
	}
	got, err := Probe(kernel.Target{}, interpret(kernel.Exact))
	if want := (kernel.Numerics{FuseF32: true, DivF32: true, SqrtF32: true}); err != nil || got != want {
		t.Errorf("without f64: %+v, %v; want %+v", got, err, want)
	}
}

// TestProbeFindsFaults puts single wrong results among the right ones.
func TestProbeFindsFaults(t *testing.T) {
	spoil := func(result, every int) Runner {
		return func(k *kernel.Kernel, target kernel.Target, grid [3]uint32, args []kernel.Bind) error {
			if err := kernel.Run(k, grid, args); err != nil {
				return err
			}
			for i := 2; i < probeCases; i += every {
				args[1].Buf[4*(result*probeCases+i)] ^= 1
			}
			return nil
		}
	}
	for _, c := range []struct {
		result int
		want   kernel.Numerics
	}{
		{probeQuotient, kernel.Numerics{FuseF32: true, SqrtF32: true}},
		{probeRoot, kernel.Numerics{FuseF32: true, DivF32: true}},
		{probeFma, kernel.Numerics{DivF32: true, SqrtF32: true}},
	} {
		got, err := Probe(kernel.Target{}, spoil(c.result, probeCases))
		if err != nil || got != c.want {
			t.Errorf("result %d spoilt: %+v, %v; want %+v", c.result, got, err, c.want)
		}
	}
	for result, want := range map[int]string{probeProduct: "products", probeSum: "sums", probeLost: "two-sum", probeNarrow: "opaque"} {
		if _, err := Probe(kernel.Target{}, spoil(result, 8)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("result %d spoilt: %v, want an error with %q", result, err, want)
		}
	}
}

// TestHardCasesAreHard holds the hard operands to what they claim: results within 2^-16 of a rounding
// boundary, in units of the last place.
func TestHardCasesAreHard(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, digits := range []int{24, 53} {
		off := func(v *big.Float) float64 { // distance from the middle between two floats
			exp := v.MantExp(nil)
			scaled := new(big.Float).SetPrec(300).SetMantExp(v, digits-exp)
			whole, _ := scaled.Int(nil)
			frac, _ := new(big.Float).Sub(scaled, new(big.Float).SetInt(whole)).Float64()
			return math.Abs(frac - 0.5)
		}
		for range 2000 {
			x, y := hardQuotient(rng, digits)
			if q := new(big.Float).SetPrec(300).Quo(big.NewFloat(x), big.NewFloat(y)); off(q) > 0x1p-16 {
				t.Fatalf("%d digits: %x / %x is %g from a boundary", digits, x, y, off(q))
			}
			x = hardRoot(rng, digits)
			if digits == 24 && float64(float32(x)) != x {
				t.Fatalf("%x is no f32", x)
			}
			if r := new(big.Float).SetPrec(300).Sqrt(new(big.Float).SetPrec(300).SetFloat64(x)); off(r) > 0x1p-12 {
				t.Fatalf("%d digits: sqrt %x is %g from a boundary", digits, x, off(r))
			}
		}
	}
}
