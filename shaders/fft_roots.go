package shaders

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Roots of unity come from a table that the host makes, each part rounded correctly. Up to rootsWhole the
// table holds all of them; beyond, root k is the product of root k - k mod 2^s and root k mod 2^s.
const rootsWhole = 4096

// rootTable is a table of the n-th roots of unity exp(-2πi k/n), as pairs of f64.
type rootTable struct {
	n     int
	shift int // s; 0: the table is whole
	low   int // entries of the second part, which stands first
	data  []byte
}

func newRootTable(n int) *rootTable {
	t := &rootTable{n: n}
	if n <= rootsWhole {
		t.data = make([]byte, 0, 16*n)
		for k := range n {
			t.append(k)
		}
		return t
	}
	t.shift = bits.Len(uint(n-1)) / 2
	t.low = 1 << t.shift
	high := (n-1)>>t.shift + 1
	t.data = make([]byte, 0, 16*(t.low+high))
	for k := range t.low {
		t.append(k)
	}
	for k := range high {
		t.append(k << t.shift)
	}
	return t
}

func (t *rootTable) append(k int) {
	re, im := root(k, t.n)
	t.data = binary.LittleEndian.AppendUint64(t.data, math.Float64bits(re))
	t.data = binary.LittleEndian.AppendUint64(t.data, math.Float64bits(im))
}

// root is exp(-2πi k/n), each part rounded to the nearest f64 (but in cases that lie within 2^-100 of a tie).
func root(k, n int) (re, im float64) {
	// The angle as a part of a turn, brought to [0, 1/8] exactly: 8k/n is an octant and a rest.
	k %= n
	octant := 8 * k / n
	rest := 8*k - octant*n // of an octant, in units of 1/n
	if octant%2 == 1 {
		rest = n - rest
	}
	s, c := sinCosOctant(rest, n)
	sin, cos := s, c
	switch octant {
	case 1:
		sin, cos = c, s
	case 2:
		sin, cos = c, -s
	case 3:
		sin, cos = s, -c
	case 4:
		sin, cos = -s, -c
	case 5:
		sin, cos = -c, -s
	case 6:
		sin, cos = -c, s
	case 7:
		sin, cos = -s, c
	}
	return cos + 0, -sin + 0
}

// double is an unevaluated sum of two f64, the second at most half a unit in the last place of the first.
type double struct{ hi, lo float64 }

func quickSum(a, b float64) double {
	s := a + b
	return double{s, b - (s - a)}
}

func (a double) times(b double) double {
	p := a.hi * b.hi
	e := math.FMA(a.hi, b.hi, -p) + (a.hi*b.lo + a.lo*b.hi)
	return quickSum(p, e)
}

func (a double) over(d float64) double {
	q := a.hi / d
	r := math.FMA(-q, d, a.hi) + a.lo
	return quickSum(q, r/d)
}

// oneMinus is 1 - a for |a| < 1.
func (a double) oneMinus() double {
	s := 1 - a.hi
	e := (1 - s) - a.hi
	return quickSum(s, e-a.lo)
}

// π/4 in two parts.
var quarterPi = double{0.7853981633974483, 3.061616997868383e-17}

// sinCosOctant yields sine and cosine of π/4 · rest/n, for rest in [0, n], by their series.
func sinCosOctant(rest, n int) (s, c float64) {
	x := quarterPi.times(double{float64(rest), 0}.over(float64(n)))
	xx := x.times(x)
	sin, cos := double{1, 0}, double{1, 0}
	for i := 28; i >= 2; i -= 2 {
		cos = xx.times(cos).over(float64(i * (i - 1))).oneMinus()
		sin = xx.times(sin).over(float64(i * (i + 1))).oneMinus()
	}
	sin = sin.times(x)
	return sin.hi, cos.hi
}
