// Command mathcoef computes the polynomial coefficients and the multi-part constants of the
// functions in shaders/math*.go with 320- and 1600-bit arithmetic, and prints shaders/math_coef.go:
//
//	go run ./shaders/internal/mathcoef > shaders/math_coef.go
//
// Every polynomial interpolates a function with a known Taylor series at the Chebyshev nodes of the
// reduced interval, which is within a small factor of the minimax polynomial. Coefficients are
// rounded to the arithmetic they are used in from the lowest order up, and the degree is the least
// whose error, measured on a fine grid with the rounded coefficients, stays below the bound.
package main

import (
	"fmt"
	"go/format"
	"math"
	"math/big"
	"os"
	"strings"
)

// prec is the working precision in bits: little for the polynomials, much for the bits of 2/π.
var prec uint = 320

func bf(x float64) *big.Float { return new(big.Float).SetPrec(prec).SetFloat64(x) }
func nf() *big.Float          { return new(big.Float).SetPrec(prec) }
func rat(a, b int64) *big.Float {
	return nf().Quo(nf().SetInt64(a), nf().SetInt64(b))
}

// series is a Taylor series: term n, n from 0.
type series func(n int) *big.Float

func (s series) at(x *big.Float) *big.Float {
	sum, pw := nf(), bf(1)
	small := nf().SetMantExp(bf(1), -int(prec)-10)
	for n := 0; n < 4000; n++ {
		t := nf().Mul(s(n), pw)
		sum.Add(sum, t)
		if n > 8 {
			if nf().Abs(t).Cmp(small) < 0 {
				break
			}
		}
		pw.Mul(pw, x)
	}
	return sum
}

func factorial(n int) *big.Float {
	f := bf(1)
	for i := 2; i <= n; i++ {
		f.Mul(f, nf().SetInt64(int64(i)))
	}
	return f
}

func inv(x *big.Float) *big.Float { return nf().Quo(bf(1), x) }

func sign(n int) int64 {
	if n%2 == 1 {
		return -1
	}
	return 1
}

// interpolate yields the monomial coefficients of the polynomial of degree d through f at the
// Chebyshev nodes of [lo, hi].
func interpolate(f func(*big.Float) *big.Float, lo, hi float64, d int) []*big.Float {
	xs := make([]*big.Float, d+1)
	cs := make([]*big.Float, d+1)
	for i := range xs {
		u := math.Cos(math.Pi * (float64(i) + 0.5) / float64(d+1))
		xs[i] = bf((lo+hi)/2 + (hi-lo)/2*u)
		cs[i] = f(xs[i])
	}
	for j := 1; j <= d; j++ { // divided differences
		for i := d; i >= j; i-- {
			cs[i] = nf().Quo(nf().Sub(cs[i], cs[i-1]), nf().Sub(xs[i], xs[i-j]))
		}
	}
	p := []*big.Float{cs[d]}
	for i := d - 1; i >= 0; i-- {
		q := make([]*big.Float, len(p)+1)
		for k := range q {
			q[k] = nf()
			if k > 0 {
				q[k].Add(q[k], p[k-1])
			}
			if k < len(p) {
				q[k].Sub(q[k], nf().Mul(p[k], xs[i]))
			}
		}
		q[0].Add(q[0], cs[i])
		p = q
	}
	return p
}

func round(x *big.Float, f32 bool) float64 {
	if f32 {
		f, _ := x.Float32()
		return float64(f)
	}
	f, _ := x.Float64()
	return f
}

// poly is one polynomial wanted: weight(x) times its error stays below 2^-bits.
type poly struct {
	name   string
	doc    string
	f      func(*big.Float) *big.Float
	lo, hi float64
	weight func(x float64) float64
	bits   float64
	f32    bool // coefficients are float32
}

func (p poly) fit() ([]float64, float64) {
	const n = 200
	var exact [n + 1]*big.Float
	for i := range exact {
		exact[i] = p.f(bf(p.lo + (p.hi-p.lo)*float64(i)/n))
	}
	for d := 1; d < 40; d++ {
		c := interpolate(p.f, p.lo, p.hi, d)
		r := make([]float64, len(c))
		for i := range c {
			r[i] = round(c[i], p.f32)
		}
		worst := 0.0
		for i := 0; i <= n; i++ {
			x := p.lo + (p.hi-p.lo)*float64(i)/n
			v := nf()
			for k := len(r) - 1; k >= 0; k-- {
				v.Mul(v, bf(x))
				v.Add(v, bf(r[k]))
			}
			e, _ := v.Sub(v, exact[i]).Float64()
			worst = math.Max(worst, math.Abs(e*p.weight(x)))
		}
		if worst < math.Exp2(-p.bits) {
			return r, math.Log2(worst)
		}
	}
	fmt.Fprintf(os.Stderr, "%s: no degree reaches 2^-%g\n", p.name, p.bits)
	os.Exit(1)
	return nil, 0
}

// Series.

// expTail is (e^r - 1 - r - … - r^(k-1)/(k-1)!) / r^k.
func expTail(k int) series { return func(n int) *big.Float { return inv(factorial(n + k)) } }

// atanhTail is (atanh(s)·2 - Σ first k odd terms)/s^(2k+1) in z = s².
func atanhTail(k int) series {
	return func(n int) *big.Float { return rat(2, int64(2*(n+k)+1)) }
}

func atanTail(k int) series {
	return func(n int) *big.Float { return rat(sign(n+k), int64(2*(n+k)+1)) }
}

func sinTail(k int) series {
	return func(n int) *big.Float {
		return nf().Mul(nf().SetInt64(sign(n+k)), inv(factorial(2*(n+k)+1)))
	}
}

func cosTail(k int) series {
	return func(n int) *big.Float {
		return nf().Mul(nf().SetInt64(sign(n+k)), inv(factorial(2*(n+k))))
	}
}

// erfTail is (erf x·√π/2/x - Σ first k terms)/z^k in z = x².
func erfTail(k int) series {
	return func(n int) *big.Float {
		m := n + k
		return nf().Quo(nf().SetInt64(sign(m)), nf().Mul(factorial(m), nf().SetInt64(int64(2*m+1))))
	}
}

// twoOverSqrtPi is 2/√π.
func twoOverSqrtPi() *big.Float { return nf().Quo(bf(2), nf().Sqrt(pi())) }

// erfcx is e^(x²)·erfc x, x ≥ 0: by Taylor series below 1, by Laplace's continued fraction above.
func erfcx(x *big.Float) *big.Float {
	z := nf().Mul(x, x)
	if v, _ := x.Float64(); v < 1 {
		erf := nf().Mul(nf().Mul(twoOverSqrtPi(), x), erfTail(0).at(z))
		return nf().Mul(expTail(0).at(z), erf.Sub(bf(1), erf))
	}
	f := nf().Set(x)
	for k := 2500; k > 0; k-- {
		f.Add(x, nf().Quo(rat(int64(k), 2), f))
	}
	return nf().Quo(nf().Quo(twoOverSqrtPi(), bf(2)), f)
}

// erfcG is x·erfcx x in s = 1/x².
func erfcG(s *big.Float) *big.Float {
	x := nf().Quo(bf(1), nf().Sqrt(s))
	return nf().Mul(x, erfcx(x))
}

// cbrt by Newton's iteration.
func cbrt(x *big.Float) *big.Float {
	v, _ := x.Float64()
	y := bf(math.Cbrt(v))
	for i := 0; i < 7; i++ {
		sq := nf().Mul(y, y)
		y = nf().Quo(nf().Add(nf().Mul(bf(2), y), nf().Quo(x, sq)), bf(3))
	}
	return y
}

// pi by Machin's formula, ln2 by atanh(1/3)·2.
func pi() *big.Float {
	at := func(q int64) *big.Float {
		x := rat(1, q)
		z := nf().Mul(x, x)
		return nf().Mul(x, atanTail(0).at(z))
	}
	p := nf().Sub(nf().Mul(bf(16), at(5)), nf().Mul(bf(4), at(239)))
	return p
}

func ln2() *big.Float {
	x := rat(1, 3)
	return nf().Mul(x, atanhTail(0).at(nf().Mul(x, x)))
}

// parts splits x into len(bits) floats of so many bits each (0: all of the format).
func parts(x *big.Float, f32 bool, bits ...uint) []float64 {
	x = nf().Set(x)
	full := uint(53)
	if f32 {
		full = 24
	}
	out := []float64{}
	for _, n := range bits {
		if n == 0 {
			n = full
		}
		h := new(big.Float).SetPrec(n).SetMode(big.ToNearestEven).Set(x)
		f, _ := h.Float64()
		out = append(out, f)
		x.Sub(x, h)
	}
	return out
}

func list(v []float64) string {
	s := make([]string, len(v))
	for i, f := range v {
		s[i] = fmt.Sprintf("%v", f)
	}
	return "[]float64{" + strings.Join(s, ", ") + "}"
}

// erfcEdges are the bounds of the intervals of s = 1/x² of erfc's approximations.
var erfcEdges = []float64{1.0 / 1024, 0.03125, 0.09375, 0.21875, 0.4375, 1, 2, 4}

func erfcMid(i int) float64 { return (erfcEdges[i] + erfcEdges[i+1]) / 2 }

func main() {
	one := func(float64) float64 { return 1 }
	pw := func(k float64) func(float64) float64 {
		return func(x float64) float64 { return math.Pow(math.Abs(x), k) }
	}
	const half2 = 0.34660 // ln2/2, and a little for the rounding of k
	// |s| ≤ (√2-1)/(√2+1) = 0.17158, squared.
	const s2 = 0.02945
	const q2 = 0.6170 // (π/4)² and a little
	const t2 = 0.0755 // 0.2748²: see atanCore
	polys := []poly{
		{"exp3F64", "(e^r-1-r-r²/2)/r³, |r| ≤ ln2/2", expTail(3).at, -half2, half2, pw(3), 61, false},
		{"exp4F64", "(e^r-1-r-r²/2-r³/6)/r⁴, |r| ≤ ln2/2", expTail(4).at, -half2, half2, pw(4), 64, false},
		{"exp4F32", "the same for binary32", expTail(4).at, -half2, half2, pw(4), 33, true},
		{"log1F64", "(2atanh(s)-2s)/s³ in s², s = (m-1)/(m+1), √½ ≤ m ≤ √2", atanhTail(1).at, 0, s2, pw(1), 59, false},
		{"log3F64", "(2atanh(s)-2s-2s³/3-2s⁵/5)/s⁷ in s²", atanhTail(3).at, 0, s2, pw(3), 70, false},
		{"log3F32", "the same for binary32", atanhTail(3).at, 0, s2, pw(3), 40, true},
		{"sin1F64", "(sin r-r)/r³ in r², |r| ≤ π/4", sinTail(1).at, 0, q2, pw(1), 56.5, false},
		{"sin2F64", "(sin r-r+r³/6)/r⁵ in r²", sinTail(2).at, 0, q2, pw(2), 60.5, false},
		{"sin2F32", "the same for binary32", sinTail(2).at, 0, q2, pw(2), 31.5, true},
		{"cos2F64", "(cos r-1+r²/2)/r⁴ in r²", cosTail(2).at, 0, q2, pw(2), 59, false},
		{"cos3F64", "(cos r-1+r²/2-r⁴/24)/r⁶ in r²", cosTail(3).at, 0, q2, pw(3), 61, false},
		{"cos3F32", "the same for binary32", cosTail(3).at, 0, q2, pw(3), 32, true},
		{"atan1F64", "(atan t-t)/t³ in t², |t| ≤ 0.2748", atanTail(1).at, 0, t2, pw(1), 58, false},
		{"atan2F64", "(atan t-t+t³/3)/t⁵ in t²", atanTail(2).at, 0, t2, pw(2), 62, false},
		{"atan2F32", "the same for binary32", atanTail(2).at, 0, t2, pw(2), 33, true},

		// Binary32 results from binary64 arithmetic: 2^-40 of the result is far more than enough.
		{"expW", "e^r, |r| ≤ ln2/2", expTail(0).at, -half2, half2, one, 40, false},
		{"expm1W", "(e^r-1-r)/r², |r| ≤ ln2/2", expTail(2).at, -half2, half2, pw(1), 40, false},
		{"logW", "(2atanh(s)-2s)/s³ in s²", atanhTail(1).at, 0, s2, pw(1), 41, false},
		{"sinW", "(sin r-r)/r³ in r²", sinTail(1).at, 0, q2, pw(1), 40, false},
		{"cosW", "(cos r-1)/r² in r²", cosTail(1).at, 0, q2, pw(1), 40, false},
		{"atanW", "(atan t-t)/t³ in t²", atanTail(1).at, 0, t2, pw(1), 40, false},
		{"sinPiW", "(sin r-r)/r³ in r², |r| ≤ π/2", sinTail(1).at, 0, 2.4685, pw(1), 40, false},
		{"cbrt0", "∛m, a first guess for 1 ≤ m < 8", cbrt, 1, 8, pw(-1.0 / 3), 7, true},

		{"erf2F64", "(erf x·√π/2/x-1+z/3)/z² in z = x², |x| ≤ 1", erfTail(2).at, 0, 1, pw(2), 56.5, false},
		{"erf2F32", "the same for binary32", erfTail(2).at, 0, 1, pw(2), 27, true},
		{"erfW", "erf x·√π/2/x in z = x², |x| ≤ 1", erfTail(0).at, 0, 1, one, 41, false},
		{"erfcW", "e^(x²)·erfc x in t = (x-2)/(x+2), 0 ≤ x ≤ 10.2", func(t *big.Float) *big.Float {
			return erfcx(nf().Quo(nf().Mul(bf(2), nf().Add(bf(1), t)), nf().Sub(bf(1), t)))
		}, -1, 0.6722, func(t float64) float64 { return 1 + 2*(1+t)/(1-t)*1.6 }, 40, false},
	}
	// x·e^(x²)·erfc x in s = 1/x², about the middle of each interval of s.
	for i := range erfcEdges[1:] {
		lo, hi := erfcEdges[i], erfcEdges[i+1]
		mid := erfcMid(i)
		g := nf()
		g.Set(erfcG(bf(mid)))
		f := func(u *big.Float) *big.Float {
			if u.Sign() == 0 {
				u = bf(1e-20)
			}
			return nf().Quo(nf().Sub(erfcG(nf().Add(bf(mid), u)), g), u)
		}
		width := (hi - lo) / 2
		polys = append(polys,
			poly{fmt.Sprintf("erfc%dF64", i), fmt.Sprintf("(g(%v+u)-g(%v))/u, g(s) = x·e^(x²)·erfc x, s = 1/x² in [%v, %v]", mid, mid, lo, hi), f, lo - mid, hi - mid, pw(1), 59 - math.Log2(1+4*hi), false},
			poly{fmt.Sprintf("erfc%dF32", i), "the same for binary32", f, -width, width, pw(1), 29 - math.Log2(1+4*hi), true})
	}
	var b strings.Builder
	b.WriteString("package shaders\n\n// Code generated by shaders/internal/mathcoef; DO NOT EDIT.\n\n")
	b.WriteString("// Polynomials, lowest order first; the error is absolute, weighted as the term enters the result.\nvar (\n")
	for _, p := range polys {
		c, e := p.fit()
		fmt.Fprintf(&b, "\t// %s: %s; error 2^%.1f.\n\t%s = %s\n", p.name, p.doc, e, p.name, list(c))
	}
	b.WriteString(")\n\n// Constants in parts: each but the last has trailing zeros enough that its product with a small integer is exact.\nvar (\n")
	con := func(name, doc string, v []float64) {
		fmt.Fprintf(&b, "\t// %s: %s.\n\t%s = %s\n", name, doc, name, list(v))
	}
	prec = 1600
	l2, p := ln2(), pi()
	con("ln2F64", "ln 2", parts(l2, false, 32, 0, 0))
	con("ln2F32", "ln 2", parts(l2, true, 14, 14, 0))
	con("log2e", "1/ln 2", parts(inv(l2), false, 0))
	ph := nf().Quo(p, bf(2))
	con("pio2F64", "π/2", parts(ph, false, 0, 0, 0))
	con("pio2F32", "π/2", parts(ph, true, 0, 0, 0))
	con("pio2W", "π/2", parts(ph, false, 30, 0))
	con("twoOverPi", "2/π", parts(inv(ph), false, 0))
	half := nf().Mul(rat(1, 2), atanTail(0).at(rat(1, 4)))
	con("atanHalfF64", "atan ½", parts(half, false, 0, 0))
	con("atanHalfF32", "atan ½", parts(half, true, 0, 0))
	c0 := twoOverSqrtPi()
	con("erfLeadF64", "2/√π", parts(c0, false, 0, 0))
	con("erfLeadF32", "2/√π", parts(c0, true, 0, 0))
	prec = 320
	for i := range erfcEdges[1:] {
		g := erfcG(bf(erfcMid(i)))
		con(fmt.Sprintf("erfcMid%dF64", i), fmt.Sprintf("g(%v)", erfcMid(i)), parts(g, false, 0, 0))
		con(fmt.Sprintf("erfcMid%dF32", i), "the same", parts(g, true, 0, 0))
	}
	con("erfcEdges", "the bounds of the intervals of s", erfcEdges)
	prec = 1600
	b.WriteString(")\n\n// twoOverPiBits are the bits of 2/π after the binary point, most significant word first.\nvar twoOverPiBits = []uint32{\n")
	n := nf().SetMantExp(inv(ph), 42*32)
	z, _ := n.Int(nil)
	for i := 41; i >= 0; i-- {
		w := new(big.Int).Rsh(z, uint(32*i))
		w.And(w, big.NewInt(math.MaxUint32))
		fmt.Fprintf(&b, "0x%08x,", w.Uint64())
		if i%6 == 0 {
			b.WriteString("\n")
		}
	}
	b.WriteString("}\n")
	src, err := format.Source([]byte(b.String()))
	if err != nil {
		fmt.Fprintln(os.Stderr, err, b.String())
		os.Exit(1)
	}
	os.Stdout.Write(src)
}
