package shaders

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"nxvk/kernel"
)

// Runner runs k, emitted for t, over grid workgroups, and leaves what the device wrote in the Bufs of
// args: kernel.Machine.Run on a device.
type Runner func(k *kernel.Kernel, t kernel.Target, grid [3]uint32, args []kernel.Bind) error

// probeCases is how many operands each float width is tried on. A device that rounds one quotient in a
// thousand wrongly must be found.
const probeCases = 4096

// Probe learns what the device does where Vulkan leaves it open, by one small dispatch on hard
// operands: quotients and square roots next to a rounding boundary, products and sums whose rounding
// error is known, subnormal operands and results. t is the device, its Num not looked at; the widths
// that t lacks keep the zero of Numerics.
//
// An error means that the device breaks what all kernels stand on: that sums and products of normal
// numbers are rounded to nearest even and neither contracted nor reordered, and that no driver sees
// through Opaque.
func Probe(t kernel.Target, run Runner) (kernel.Numerics, error) {
	// With these, Mad becomes the extended instruction Fma, which is what is asked for.
	t.Num = kernel.Numerics{FuseF32: true, FuseF64: true}
	p := probe{t: t, b: kernel.NewBuilder("probe", t, [3]uint32{32, 1, 1})}
	p.id = p.b.Add(p.b.MulI(p.b.BuiltinValue(kernel.GroupX), 32), p.b.BuiltinValue(kernel.LocalX))
	w32 := p.width(kernel.F32)
	var w64 *probeWidth
	if t.F64 && t.I64 {
		w64 = p.width(kernel.F64)
	}
	if err := run(p.b.Build(), t, [3]uint32{probeCases / 32, 1, 1}, p.args); err != nil {
		return kernel.Numerics{}, fmt.Errorf("numerics probe: %w", err)
	}
	var n kernel.Numerics
	seen, err := w32.judge()
	if err != nil {
		return n, fmt.Errorf("numerics probe: f32: %w", err)
	}
	n.FlushF32, n.FuseF32, n.DivF32, n.SqrtF32 = seen.flush, seen.fuse, seen.div, seen.sqrt
	if w64 != nil {
		if seen, err = w64.judge(); err != nil {
			return n, fmt.Errorf("numerics probe: f64: %w", err)
		}
		n.FlushF64, n.FuseF64, n.DivF64, n.SqrtF64 = seen.flush, seen.fuse, seen.div, seen.sqrt
	}
	return n, nil
}

// probe builds the kernel: for each width a group of results for each case.
type probe struct {
	t    kernel.Target
	b    *kernel.Builder
	id   kernel.Value
	args []kernel.Bind
}

// What the kernel computes of operands x, y, z: result r of case i lies at element r*probeCases + i.
const (
	probeQuotient = iota // x/y
	probeRoot            // sqrt(|x|)
	probeFma             // fma(x, y, z)
	probeProduct         // x*y
	probeSum             // x+z
	probeLost            // the rounding error of x+z, by two-sum
	probeNarrow          // integer bits of x, halved, rounded to the width, and back
	probeNonzero         // x != 0
	probeResults
)

// probeWidth is the operands and results of one float width. Floats are held as bits.
type probeWidth struct {
	typ     kernel.Type
	x, y, z []uint64
	out     []byte
}

// width adds the tests of one float width to the kernel.
func (p *probe) width(typ kernel.Type) *probeWidth {
	b, w := p.b, &probeWidth{typ: typ}
	w.operands()
	size := typ.Bits() / 8
	w.out = make([]byte, probeResults*probeCases*size)
	mem, ints, pattern := kernel.MF32, kernel.I32, kernel.M32
	if typ == kernel.F64 {
		mem, ints, pattern = kernel.MF64, kernel.I64, kernel.M64
	}
	in := b.Pointer("in", mem, false, 0)
	out := b.Pointer("out", pattern, true, 0)
	raw := make([]byte, 0, 3*probeCases*size)
	for _, list := range [][]uint64{w.x, w.y, w.z} {
		for _, v := range list {
			raw = binary.LittleEndian.AppendUint64(raw, v)[:len(raw)+size]
		}
	}
	p.args = append(p.args, kernel.Bind{Buf: raw}, kernel.Bind{Buf: w.out})

	x, y := b.Load(in, p.id), b.Load(in, b.AddI(p.id, probeCases))
	z := b.Load(in, b.AddI(p.id, 2*probeCases))
	put := func(result int, v kernel.Value) {
		b.Store(out, b.AddI(p.id, result*probeCases), b.BitsTo(ints, v))
	}
	put(probeQuotient, b.Bin(kernel.FDiv, x, y))
	put(probeRoot, b.Un(kernel.FSqrt, b.Un(kernel.FAbs, x)))
	put(probeFma, b.Mad(x, y, z))
	put(probeProduct, b.Mul(x, y))
	s := b.Add(x, z)
	v := b.Sub(s, x)
	put(probeSum, s)
	put(probeLost, b.Add(b.Sub(x, b.Sub(s, v)), b.Sub(z, v)))
	// Twice: a float of this width between integers, and, where there are both, an f32 between two f64.
	narrow := b.Opaque(b.Conv(kernel.UToF, typ, b.ShrUI(b.BitsTo(ints, x), 1)))
	if typ == kernel.F64 {
		narrow = b.Conv(kernel.FConv, kernel.F64, b.Opaque(b.Conv(kernel.FConv, kernel.F32, narrow)))
	}
	put(probeNarrow, b.Conv(kernel.FToU, ints, narrow))
	put(probeNonzero, b.Select(b.Cmp(kernel.FNe, x, b.Zero(typ)), b.ConstInt(ints, 1), b.ConstInt(ints, 0)))
	return w
}

// format is a binary float format.
type format struct {
	digits int // of the significand, the hidden one included
	minExp int // of the smallest normal number 2^minExp
	maxExp int
}

func (w *probeWidth) format() format {
	if w.typ == kernel.F32 {
		return format{24, -126, 127}
	}
	return format{53, -1022, 1023}
}

// bits rounds a float64 to the width.
func (w *probeWidth) bits(v float64) uint64 {
	if w.typ == kernel.F32 {
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(v)
}

func (w *probeWidth) float(bits uint64) float64 {
	if w.typ == kernel.F32 {
		return float64(math.Float32frombits(uint32(bits)))
	}
	return math.Float64frombits(bits)
}

// operands fills x, y and z: a quarter each of hard quotients and hard square roots, half of random
// numbers, and every sixteenth case subnormal. All are the same on every run.
func (w *probeWidth) operands() {
	rng := rand.New(rand.NewPCG(0x6e78766b, uint64(w.typ)))
	f := w.format()
	for i := range probeCases {
		var x, y float64
		switch i % 4 {
		case 0:
			x, y = hardQuotient(rng, f.digits)
		case 1:
			x, y = hardRoot(rng, f.digits), 1+rng.Float64()
		default:
			x, y = 1+rng.Float64(), 1+rng.Float64()
		}
		// Exponents anywhere, as long as quotient and product stay normal, their errors too.
		low, high := f.minExp/4+f.digits, f.maxExp/4-1
		up := rng.IntN(high-low) + low
		if i%4 == 1 {
			up &^= 1 // a hard square root depends on the parity of the exponent
		}
		x, y = math.Ldexp(x, up), math.Ldexp(y, rng.IntN(high-low)+low)
		if rng.IntN(2) == 0 {
			x = -x
		}
		switch {
		case i%16 == 15: // a subnormal operand
			x, y = math.Ldexp(float64(rng.IntN(1<<22)+1), f.minExp-f.digits+1), 1
		case i%16 == 7: // a subnormal product
			x, y = math.Ldexp(1+rng.Float64(), f.minExp), 0.5
		}
		x, y = w.float(w.bits(x)), w.float(w.bits(y))
		z := -x * y // of f32 exact here, rounded below
		if i%8 >= 4 {
			z = x * math.Ldexp(rng.Float64()-0.5, rng.IntN(20))
		}
		w.x, w.y, w.z = append(w.x, w.bits(x)), append(w.y, w.bits(y)), append(w.z, w.bits(z))
	}
}

// hardQuotient yields x and y of digits digits whose quotient is as near as can be to the middle
// between two floats: m*y = x*2^k + r for an odd m of digits+1 digits and a small r.
func hardQuotient(rng *rand.Rand, digits int) (x, y float64) {
	mask := uint64(1)<<(digits+1) - 1
	for {
		d := rng.Uint64()>>(64-digits) | 1<<(digits-1) | 1
		inverse := d // modulo 2^64, by Newton: each step doubles the right digits
		for range 6 {
			inverse *= 2 - d*inverse
		}
		r := uint64(rng.IntN(64)*2+1) * (1 - 2*uint64(rng.IntN(2)))
		m := r * inverse & mask
		if m>>digits == 0 {
			continue
		}
		// x = (m*d - r) / 2^(digits+1), exact.
		hi, lo := bits.Mul64(m, d)
		lo2 := lo - r
		switch {
		case int64(r) >= 0 && lo < r:
			hi--
		case int64(r) < 0 && lo2 < lo:
			hi++
		}
		n := hi<<(63-digits) | lo2>>(digits+1)
		return float64(n), float64(d)
	}
}

// hardRoot yields an x of digits digits whose square root is as near as can be to the middle between
// two floats: m*m = x*2^k + r for an odd m of digits+1 digits and a small r.
func hardRoot(rng *rand.Rand, digits int) float64 {
	for {
		// r = 1 modulo 8 has square roots modulo any power of two: find one digit by digit.
		r := uint64(1+8*(rng.IntN(512)-256)) & (1<<(digits+2) - 1)
		m := uint64(1 + 2*rng.IntN(4))
		if m*m&7 != 1 {
			continue
		}
		k := digits + 1 + rng.IntN(2)
		for bit := 3; bit < k; bit++ {
			if (m*m^r)>>bit&1 == 1 {
				m += 1 << (bit - 1)
			}
		}
		m &= 1<<k - 1
		if rng.IntN(2) == 0 {
			m = 1<<k - m
		}
		m &= 1<<(digits+1) - 1
		if m>>digits == 0 || (m*m^r)&(1<<k-1) != 0 {
			continue
		}
		// x = (m*m - r) / 2^k; r stands for a small number of either sign.
		hi, lo := bits.Mul64(m, m)
		small := int64(r<<(62-digits)) >> (62 - digits)
		lo2 := lo - uint64(small)
		switch {
		case small >= 0 && lo < uint64(small):
			hi--
		case small < 0 && lo2 < lo:
			hi++
		}
		x := hi<<(64-k) | lo2>>k
		if x>>digits != 0 {
			continue
		}
		return math.Ldexp(float64(x), k)
	}
}

// probeSeen is what one width does.
type probeSeen struct{ flush, fuse, div, sqrt bool }

// judge compares the results with the exact ones.
func (w *probeWidth) judge() (probeSeen, error) {
	seen := probeSeen{fuse: true, div: true, sqrt: true}
	for i := range probeCases {
		x, y, z := w.float(w.x[i]), w.float(w.y[i]), w.float(w.z[i])
		if w.subnormal(x) || w.subnormal(x*y) || w.subnormal(z) {
			// Flushed in operands, in results, or in comparisons: one of them is enough.
			if w.result(probeProduct, i) != w.bits(x*y) || w.result(probeNonzero, i) != 1 {
				seen.flush = true
			}
			continue
		}
		if got, want := w.result(probeProduct, i), w.bits(x*y); got != want {
			return seen, fmt.Errorf("%x * %x is %x, want %x: products are not rounded to nearest", x, y, w.float(got), w.float(want))
		}
		sum, lost := w.twoSum(x, z)
		if got := w.result(probeSum, i); got != w.bits(sum) {
			return seen, fmt.Errorf("%x + %x is %x, want %x: sums are not rounded to nearest", x, z, w.float(got), sum)
		}
		if got := w.float(w.result(probeLost, i)); got != lost && !w.subnormal(lost) {
			return seen, fmt.Errorf("two-sum of %x and %x loses %x, want %x: sums are contracted or reordered", x, z, got, lost)
		}
		if got, want := w.result(probeNarrow, i), w.narrowed(w.x[i]>>1); got != want {
			return seen, fmt.Errorf("integer %#x rounded and widened again is %#x, want %#x: the driver sees through opaque", w.x[i]>>1, got, want)
		}
		seen.div = seen.div && w.result(probeQuotient, i) == w.quotient(x, y)
		seen.sqrt = seen.sqrt && w.result(probeRoot, i) == w.bits(math.Sqrt(math.Abs(x)))
		seen.fuse = seen.fuse && w.float(w.result(probeFma, i)) == w.fma(x, y, z)
	}
	return seen, nil
}

func (w *probeWidth) result(r, i int) uint64 {
	at := r*probeCases + i
	if w.typ == kernel.F32 {
		return uint64(binary.LittleEndian.Uint32(w.out[4*at:]))
	}
	return binary.LittleEndian.Uint64(w.out[8*at:])
}

func (w *probeWidth) subnormal(v float64) bool {
	return v != 0 && math.Abs(v) < math.Ldexp(1, w.format().minExp)
}

// quotient rounds once: twice, f64 then f32, is innocuous.
func (w *probeWidth) quotient(x, y float64) uint64 { return w.bits(x / y) }

// fma is x*y+z where that is what z was made for: the rounding error of the product, or a sum that
// the second rounding of f32 could spoil, which then counts as fused.
func (w *probeWidth) fma(x, y, z float64) float64 {
	if w.typ == kernel.F64 {
		return math.FMA(x, y, z)
	}
	return float64(fused32(float32(x), float32(y), float32(z)))
}

// fused32 is x*y+z rounded once: the product is exact in f64, and the sum is rounded to odd there.
func fused32(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	v := s - p
	if lost := (p - (s - v)) + (c - v); lost != 0 && math.Float64bits(s)&1 == 0 {
		toward := math.Inf(1)
		if lost < 0 {
			toward = math.Inf(-1)
		}
		s = math.Nextafter(s, toward)
	}
	return float32(s)
}

// twoSum is the rounded sum of x and z, and what it lost.
func (w *probeWidth) twoSum(x, z float64) (sum, lost float64) {
	if w.typ == kernel.F32 {
		a, b := float32(x), float32(z)
		s := a + b
		v := s - a
		return float64(s), float64((a - (s - v)) + (b - v))
	}
	s := x + z
	v := s - x
	return s, (x - (s - v)) + (z - v)
}

// narrowed is what rounding an integer to the width, and for f64 to f32 after that, leaves of it.
func (w *probeWidth) narrowed(n uint64) uint64 {
	if w.typ == kernel.F32 {
		return uint64(float32(n))
	}
	return uint64(float64(float32(float64(n))))
}
