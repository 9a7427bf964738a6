package host

import (
	"math"
	"math/bits"

	"nxvk/graph"
)

func init() {
	register(one(fft), graph.OpFFT, graph.OpIFFT)
	register(one(fft2), graph.OpFFT2, graph.OpIFFT2)
	register(one(rfft), graph.OpRFFT)
	register(one(irfft), graph.OpIRFFT)
}

// transform is a discrete Fourier transform of one length. It is not for use by several goroutines.
type transform struct {
	n     int
	roots []complex128 // roots[k] = e^(-2πik/n)
	chirp *chirp       // for lengths whose odd part is large
	half  *transform   // for even lengths
	tmp   []complex128
}

// chirp turns a transform into a convolution of a power of two (Bluestein).
type chirp struct {
	m    *transform
	w    []complex128 // w[k] = e^(-πik²/n)
	hat  []complex128 // the transform of its conjugate, wrapped around
	work []complex128
}

// direct is the largest odd length that is transformed by its definition.
const direct = 64

func newTransform(n int) *transform {
	t := &transform{n: n, tmp: make([]complex128, n)}
	odd := n >> bits.TrailingZeros(uint(n))
	if n > 1 && n%2 == 0 && odd <= direct {
		t.roots = rootsOf(n)
		t.half = newTransform(n / 2)
		return t
	}
	if n <= direct {
		t.roots = rootsOf(n)
		return t
	}
	size := 1
	for size < 2*n-1 {
		size *= 2
	}
	c := &chirp{m: newTransform(size), w: make([]complex128, n), hat: make([]complex128, size), work: make([]complex128, size)}
	for k := range n {
		hi, lo := bits.Mul64(uint64(k), uint64(k))
		_, r := bits.Div64(hi%uint64(2*n), lo, uint64(2*n))
		c.w[k] = root(int(r), 2*n)
		conj := complex(real(c.w[k]), -imag(c.w[k]))
		c.hat[k] = conj
		if k > 0 {
			c.hat[size-k] = conj
		}
	}
	c.m.run(c.hat)
	t.chirp = c
	return t
}

// root is e^(-2πik/n), with the angle brought into an eighth of the circle first, where both parts are accurate.
func root(k, n int) complex128 {
	k %= n
	eighth := 8 * k / n
	var s, c float64
	switch eighth {
	case 0:
		s, c = math.Sincos(2 * math.Pi * float64(k) / float64(n))
	case 1, 2: // π/2 - x
		c, s = math.Sincos(2 * math.Pi * float64(n-4*k) / float64(4*n))
	case 3, 4: // π - x
		s, c = math.Sincos(2 * math.Pi * float64(n-2*k) / float64(2*n))
		c = -c
	case 5, 6: // 3π/2 - x
		c, s = math.Sincos(2 * math.Pi * float64(3*n-4*k) / float64(4*n))
		c, s = -c, -s
	default:
		s, c = math.Sincos(2 * math.Pi * float64(n-k) / float64(n))
		s = -s
	}
	return complex(c, -s)
}

func rootsOf(n int) []complex128 {
	w := make([]complex128, n)
	for k := range w {
		w[k] = root(k, n)
	}
	return w
}

// run transforms x in place.
func (t *transform) run(x []complex128) {
	switch n := t.n; {
	case n == 1:
	case t.chirp != nil:
		t.chirp.run(x)
	case t.half != nil:
		even, odd := t.tmp[:n/2], t.tmp[n/2:]
		for k := range even {
			even[k], odd[k] = x[2*k], x[2*k+1]
		}
		t.half.run(even)
		t.half.run(odd)
		for k := range even {
			o := mulComplex(t.roots[k], odd[k])
			x[k], x[k+n/2] = even[k]+o, even[k]-o
		}
	default:
		copy(t.tmp, x)
		for k := range x {
			sum := t.tmp[0]
			for i, at := 1, k; i < n; i, at = i+1, (at+k)%n {
				sum += mulComplex(t.tmp[i], t.roots[at])
			}
			x[k] = sum
		}
	}
}

func (c *chirp) run(x []complex128) {
	clear(c.work)
	for k, v := range x {
		c.work[k] = mulComplex(v, c.w[k])
	}
	c.m.run(c.work)
	for k, v := range c.work {
		p := mulComplex(v, c.hat[k])
		c.work[k] = complex(real(p), -imag(p)) // conjugates make the next transform the inverse
	}
	c.m.run(c.work)
	scale := 1 / float64(len(c.work))
	for k := range x {
		v := complex(real(c.work[k])*scale, -imag(c.work[k])*scale)
		x[k] = mulComplex(v, c.w[k])
	}
}

// along transforms one axis of complex numbers of shape s, which becomes n long, from rows of length n that fill makes.
func along(s graph.Shape, x []complex128, axis, n int, inverse bool, eps float64) (graph.Shape, []complex128) {
	to := append(graph.Shape(nil), s...)
	to[axis] = n
	out := make([]complex128, to.Size())
	inner := product(s[axis+1:]...)
	rows := s.Size() / s[axis]
	parallel(rows, 10*n*bits.Len(uint(n)), func(lo, hi int) {
		t := newTransform(n)
		row := make([]complex128, n)
		for r := lo; r < hi; r++ {
			o, i := r/inner, r%inner
			clear(row)
			for k := range min(n, s[axis]) {
				row[k] = x[(o*s[axis]+k)*inner+i]
				if inverse {
					row[k] = complex(real(row[k]), -imag(row[k]))
				}
			}
			t.run(row)
			for k, z := range row {
				if inverse {
					z = complex(real(z)/float64(n), -imag(z)/float64(n))
				}
				out[(o*n+k)*inner+i] = complex(drop(real(z), eps), drop(imag(z), eps))
			}
		}
	})
	return to, out
}

// drop takes what is no larger than eps for 0.
func drop(x, eps float64) float64 {
	if math.Abs(x) <= eps {
		return 0
	}
	return x
}

func fft(n *graph.Node, in []Tensor) Tensor {
	at := &n.Attrs
	_, out := along(in[0].Shape, complexes(in[0]), at.Axis, at.Length, n.Op == graph.OpIFFT, at.Eps)
	return tensor(n.Spec, out, false)
}

// fft2 transforms its axes one after the other; between them the numbers are rounded to the result's type.
func fft2(n *graph.Node, in []Tensor) Tensor {
	at := &n.Attrs
	s, x := in[0].Shape, complexes(in[0])
	for i, a := range at.Axes {
		if i > 0 && n.Type.Complex() {
			x = complexes(tensor(graph.Spec{Type: n.Type, Shape: s}, x, false))
		}
		s, x = along(s, x, a, at.Lengths[i], n.Op == graph.OpIFFT2, at.Eps)
	}
	return tensor(n.Spec, x, false)
}

func rfft(n *graph.Node, in []Tensor) Tensor {
	at := &n.Attrs
	s, x := along(in[0].Shape, complexes(in[0]), at.Axis, at.Length, false, at.Eps)
	return tensor(n.Spec, cut(s, x, at.Axis, n.Shape[at.Axis]), false)
}

// cut keeps the first n places of an axis.
func cut(s graph.Shape, x []complex128, axis, n int) []complex128 {
	inner := product(s[axis+1:]...)
	out := make([]complex128, 0, s.Size()/s[axis]*n)
	for o := range s.Size() / s[axis] / inner {
		out = append(out, x[o*s[axis]*inner:][:n*inner]...)
	}
	return out
}

// irfft mirrors its half of a spectrum, and transforms it back.
func irfft(n *graph.Node, in []Tensor) Tensor {
	at := &n.Attrs
	s, x := in[0].Shape, complexes(in[0])
	axis, length := at.Axis, at.Length
	have, half := s[axis], length/2+1
	inner := product(s[axis+1:]...)
	full := append(graph.Shape(nil), s...)
	full[axis] = length
	spectrum := make([]complex128, full.Size())
	for o := range s.Size() / have / inner {
		for k := range length {
			from, mirrored := k, k >= half
			if mirrored {
				from = length - k
			}
			if from >= have {
				continue
			}
			for i := range inner {
				z := x[(o*have+from)*inner+i]
				if mirrored {
					z = complex(real(z), -imag(z))
				}
				spectrum[(o*length+k)*inner+i] = z
			}
		}
	}
	_, out := along(full, spectrum, axis, length, true, at.Eps)
	return tensor(n.Spec, out, false)
}
