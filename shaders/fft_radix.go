package shaders

import "nxvk/kernel"

// cpx is a complex number in two f64 registers.
type cpx struct{ re, im kernel.Value }

// Radices of a pass, for the powers of two, and the odd primes that have a transform of their own.
const widestRadix = 16

var oddRadices = []int{3, 5, 7, 11, 13}

// radices factors n into radices of passes; nil where it has another prime factor.
func radices(n int) []int {
	var odd []int
	for _, p := range oddRadices {
		for n%p == 0 {
			odd = append(odd, p)
			n /= p
		}
	}
	if n&(n-1) != 0 {
		return nil
	}
	var out []int
	for n > widestRadix {
		// Two passes of 8 rather than 16 and 4.
		r := widestRadix
		if n == 64 {
			r = 8
		}
		out = append(out, r)
		n /= r
	}
	if n > 1 || len(odd) == 0 && len(out) == 0 {
		out = append(out, n)
	}
	return append(out, odd...)
}

func (k *fftKernel) plus(x, y cpx) cpx  { return cpx{k.Add(x.re, y.re), k.Add(x.im, y.im)} }
func (k *fftKernel) minus(x, y cpx) cpx { return cpx{k.Sub(x.re, y.re), k.Sub(x.im, y.im)} }
func (k *fftKernel) conj(x cpx) cpx     { return cpx{x.re, k.Un(kernel.FNeg, x.im)} }
func (k *fftKernel) byNegI(x cpx) cpx   { return cpx{x.im, k.Un(kernel.FNeg, x.re)} } // -i·x

func (k *fftKernel) times(x, y cpx) cpx {
	return cpx{k.Sub(k.Mul(x.re, y.re), k.Mul(x.im, y.im)), k.Add(k.Mul(x.re, y.im), k.Mul(x.im, y.re))}
}

func (k *fftKernel) scaled(x cpx, s kernel.Value) cpx { return cpx{k.Mul(x.re, s), k.Mul(x.im, s)} }

func (k *fftKernel) f64(x float64) kernel.Value { return k.ConstFloat(kernel.F64, x) }

// turned is x times the root exp(-2πi j/n), a constant.
func (k *fftKernel) turned(x cpx, j, n int) cpx {
	j %= n
	switch {
	case j == 0:
		return x
	case 4*j == n:
		return k.byNegI(x)
	case 2*j == n:
		return cpx{k.Un(kernel.FNeg, x.re), k.Un(kernel.FNeg, x.im)}
	case 8*j == n:
		re, _ := root(1, 8)
		return k.scaled(cpx{k.Add(x.re, x.im), k.Sub(x.im, x.re)}, k.f64(re))
	case 8*j == 3*n:
		re, _ := root(1, 8)
		return k.scaled(cpx{k.Sub(x.im, x.re), k.Un(kernel.FNeg, k.Add(x.re, x.im))}, k.f64(re))
	}
	re, im := root(j, n)
	return k.times(x, cpx{k.f64(re), k.f64(im)})
}

// dft transforms v, of a length that is a radix.
func (k *fftKernel) dft(v []cpx) []cpx {
	switch n := len(v); n {
	case 1:
		return v
	case 2:
		return []cpx{k.plus(v[0], v[1]), k.minus(v[0], v[1])}
	case 4:
		a, b := k.plus(v[0], v[2]), k.minus(v[0], v[2])
		c, d := k.plus(v[1], v[3]), k.byNegI(k.minus(v[1], v[3]))
		return []cpx{k.plus(a, c), k.plus(b, d), k.minus(a, c), k.minus(b, d)}
	case 8:
		return k.composite(v, 2, 4)
	case 16:
		return k.composite(v, 4, 4)
	default:
		return k.odd(v)
	}
}

// composite transforms v of length a·b by transforms of length a, roots, and transforms of length b (Cooley
// and Tukey).
func (k *fftKernel) composite(v []cpx, a, b int) []cpx {
	rows := make([][]cpx, a)
	for j := range rows {
		rows[j] = make([]cpx, b)
	}
	for i := range b {
		column := make([]cpx, a)
		for j := range column {
			column[j] = v[b*j+i]
		}
		for j, x := range k.dft(column) {
			rows[j][i] = k.turned(x, i*j, a*b)
		}
	}
	out := make([]cpx, a*b)
	for j, row := range rows {
		for i, x := range k.dft(row) {
			out[j+a*i] = x
		}
	}
	return out
}

// odd transforms v of an odd length: roots k and n-k are conjugates, so sums and differences of the elements
// that they meet are all that is multiplied.
func (k *fftKernel) odd(v []cpx) []cpx {
	n := len(v)
	half := n / 2
	sums, diffs := make([]cpx, half+1), make([]cpx, half+1)
	out := make([]cpx, n)
	out[0] = v[0]
	for j := 1; j <= half; j++ {
		sums[j], diffs[j] = k.plus(v[j], v[n-j]), k.minus(v[j], v[n-j])
		out[0] = k.plus(out[0], sums[j])
	}
	for m := 1; m <= half; m++ {
		even := v[0]
		var odd cpx
		for j := 1; j <= half; j++ {
			cos, sin := root(j*m, n)
			even = k.plus(even, k.scaled(sums[j], k.f64(cos)))
			if part := k.scaled(diffs[j], k.f64(-sin)); j == 1 {
				odd = part
			} else {
				odd = k.plus(odd, part)
			}
		}
		turned := k.byNegI(odd)
		out[m], out[n-m] = k.plus(even, turned), k.minus(even, turned)
	}
	return out
}
