package host

import (
	"math"
	"math/big"
	"sync"
)

// pair is an unevaluated sum of two f64, the second below half a unit in the last place of the first: what functions
// are computed in before they are rounded once. Products are written float64(a*b) where they must not be fused.
type pair struct{ hi, lo float64 }

// twoSum is a+b, exactly.
func twoSum(a, b float64) pair {
	s := a + b
	t := s - a
	return pair{s, (a - (s - t)) + (b - t)}
}

// fastSum is a+b, exactly, for |a| ≥ |b| or a = 0.
func fastSum(a, b float64) pair {
	s := a + b
	return pair{s, b - (s - a)}
}

// twoMul is a·b, exactly.
func twoMul(a, b float64) pair {
	p := a * b
	return pair{p, math.FMA(a, b, -p)}
}

func (a pair) add(b pair) pair {
	s := twoSum(a.hi, b.hi)
	t := twoSum(a.lo, b.lo)
	s = fastSum(s.hi, s.lo+t.hi)
	return fastSum(s.hi, s.lo+t.lo)
}

func (a pair) plus(b float64) pair {
	s := twoSum(a.hi, b)
	return fastSum(s.hi, s.lo+a.lo)
}

func (a pair) neg() pair { return pair{-a.hi, -a.lo} }

func (a pair) mul(b pair) pair {
	p := twoMul(a.hi, b.hi)
	return fastSum(p.hi, p.lo+(float64(a.hi*b.lo)+float64(a.lo*b.hi)))
}

func (a pair) times(b float64) pair {
	p := twoMul(a.hi, b)
	return fastSum(p.hi, p.lo+float64(a.lo*b))
}

func (a pair) div(b pair) pair {
	q := a.hi / b.hi
	r := a.add(b.times(q).neg())
	return fastSum(q, (r.hi+r.lo)/b.hi)
}

func (a pair) sqrt() pair {
	if a.hi <= 0 {
		return pair{}
	}
	s := math.Sqrt(a.hi)
	r := a.add(twoMul(s, s).neg())
	return fastSum(s, (r.hi+r.lo)/(2*s))
}

func (a pair) sum() float64 { return a.hi + a.lo }

// half is a/2, exactly but for subnormals.
func (a pair) half() pair { return pair{a.hi / 2, a.lo / 2} }

// pairOf is the pair nearest to x.
func pairOf(x *big.Float) pair {
	hi, _ := x.Float64()
	lo, _ := new(big.Float).SetPrec(200).Sub(x, new(big.Float).SetFloat64(hi)).Float64()
	return pair{hi, lo}
}

const bigPrec = 220

// constants are what the functions are made of, computed once with 220 bits.
type constants struct {
	ln2         [3]float64 // in pieces, of which the first has 32 bits
	pio2        [4]float64 // π/2
	exps        [128]pair  // 2^(j/128)
	inv         [256]float64
	logs        [256]pair // of 1/inv[j]
	sines, cosi [52]pair  // of j/64
}

var consts = sync.OnceValue(func() *constants {
	c := &constants{}
	ln2 := bigLn2()
	c.ln2[0] = math.Float64frombits(math.Float64bits(first(ln2)) &^ (1<<21 - 1))
	rest := new(big.Float).SetPrec(bigPrec).Sub(ln2, big.NewFloat(c.ln2[0]))
	p := pairOf(rest)
	c.ln2[1], c.ln2[2] = p.hi, p.lo
	half := new(big.Float).SetPrec(bigPrec).SetMantExp(bigPi(bigPrec), -1)
	for i := range c.pio2 {
		c.pio2[i] = first(half)
		half.Sub(half, big.NewFloat(c.pio2[i]))
	}
	step := new(big.Float).SetPrec(bigPrec).SetMantExp(ln2, -7)
	for j := range c.exps {
		c.exps[j] = pairOf(bigExp(new(big.Float).SetPrec(bigPrec).Mul(step, big.NewFloat(float64(j)))))
	}
	// inv[j] is 1/m, rounded to multiples of 1/256, for m in the middle of the j-th of 256 parts of [3/4, 3/2).
	for j := range c.inv {
		m := 0.75 + (float64(j)+0.5)/256*0.75
		c.inv[j] = math.Round(256/m) / 256
		c.logs[j] = pairOf(new(big.Float).Neg(bigLog(new(big.Float).SetPrec(bigPrec).SetFloat64(c.inv[j]))))
	}
	for j := range c.sines {
		s, k := bigSinCos(float64(j) / 64)
		c.sines[j], c.cosi[j] = pairOf(s), pairOf(k)
	}
	return c
})

func first(x *big.Float) float64 { f, _ := x.Float64(); return f }

// bigExp is e^x for small x, by its series.
func bigExp(x *big.Float) *big.Float {
	sum, term := big.NewFloat(1).SetPrec(bigPrec), big.NewFloat(1).SetPrec(bigPrec)
	for n := 1; n < 80; n++ {
		term.Mul(term, x)
		term.Quo(term, big.NewFloat(float64(n)))
		sum.Add(sum, term)
	}
	return sum
}

// bigLog is ln(x) for x about 1: 2·artanh((x-1)/(x+1)), by its series.
func bigLog(x *big.Float) *big.Float {
	one := big.NewFloat(1).SetPrec(bigPrec)
	s := new(big.Float).SetPrec(bigPrec).Quo(new(big.Float).Sub(x, one), new(big.Float).Add(x, one))
	sq := new(big.Float).SetPrec(bigPrec).Mul(s, s)
	sum, term := new(big.Float).SetPrec(bigPrec), new(big.Float).SetPrec(bigPrec).Set(s)
	for n := 1; n < 200; n += 2 {
		sum.Add(sum, new(big.Float).SetPrec(bigPrec).Quo(term, big.NewFloat(float64(n))))
		term.Mul(term, sq)
	}
	return sum.SetMantExp(sum, 1)
}

func bigLn2() *big.Float {
	// ln 2 = -ln(1/2) = -(ln(3/4) + ln(2/3))
	a := bigLog(new(big.Float).SetPrec(bigPrec).SetFloat64(0.75))
	b := bigLog(new(big.Float).SetPrec(bigPrec).Quo(big.NewFloat(2), big.NewFloat(3).SetPrec(bigPrec)))
	return a.Neg(a.Add(a, b))
}

// bigPi is π to a number of bits, by Machin's formula.
func bigPi(prec uint) *big.Float {
	arctan := func(n int64) *big.Int { // of 1/n, times 2^(prec+32)
		one := new(big.Int).Lsh(big.NewInt(1), prec+32)
		term := new(big.Int).Quo(one, big.NewInt(n))
		sum := new(big.Int).Set(term)
		for k := int64(3); term.Sign() != 0; k += 2 {
			term.Quo(term, big.NewInt(-n*n))
			sum.Add(sum, new(big.Int).Quo(term, big.NewInt(k)))
		}
		return sum
	}
	pi := new(big.Int).Mul(arctan(5), big.NewInt(16))
	pi.Sub(pi, new(big.Int).Mul(arctan(239), big.NewInt(4)))
	f := new(big.Float).SetPrec(prec).SetInt(pi)
	return f.SetMantExp(f, -int(prec+32))
}

func bigSinCos(x float64) (s, c *big.Float) {
	s, c = new(big.Float).SetPrec(bigPrec), big.NewFloat(1).SetPrec(bigPrec)
	term := big.NewFloat(1).SetPrec(bigPrec)
	for n := 1; n < 60; n++ {
		term.Mul(term, big.NewFloat(x))
		term.Quo(term, big.NewFloat(float64(n)))
		switch n % 4 {
		case 0:
			c.Add(c, term)
		case 1:
			s.Add(s, term)
		case 2:
			c.Sub(c, term)
		case 3:
			s.Sub(s, term)
		}
	}
	return s, c
}
