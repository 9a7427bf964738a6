package linalg

// Eigh is the eigenvalues and eigenvectors of a Hermitian {n, n}: see eigh over the reals.
func (f Field) Eigh(a []complex128, n, maxIter int, eps float64) (w, v []complex128) {
	if n == 1 {
		return []complex128{complex(real(a[0]), 0)}, []complex128{1}
	}
	h := (n + 1) / 2
	j := &hermitian{
		Field: f, half: h, size: 2 * h,
		a: make([]complex128, 4*h*h), v: identityC(2 * h), a2: make([]complex128, 4*h*h), v2: make([]complex128, 4*h*h),
		next: roundRobin(h),
		c:    make([]complex128, h), s: make([]complex128, h), top: make([]complex128, h), low: make([]complex128, h),
	}
	for i := range n {
		copy(j.a[i*j.size:], a[i*n:(i+1)*n])
	}
	limit := f.real(eps * eps)
	for i := 0; i < maxIter; i++ {
		if all, off := j.norms(); !(off > f.real(limit*all)) {
			break
		}
		for range n {
			j.round()
		}
	}
	return j.results(n, eps)
}

type hermitian struct {
	Field
	half, size int
	a, v       []complex128
	a2, v2     []complex128
	next       []int
	c, s       []complex128
	top, low   []complex128
}

func (j *hermitian) norms() (all, off float64) {
	h, n := j.half, j.size
	square := func(r, c int) float64 {
		x := j.real(cabs(j.a[r*n+c]))
		return j.real(x * x)
	}
	sum := func(tl, tr, bl, br float64) float64 {
		return j.real(j.real(j.real(tl+tr)+bl) + br)
	}
	for r := range h {
		for c := range h {
			tl, tr, bl, br := square(r, c), square(r, h+c), square(h+r, c), square(h+r, h+c)
			all += sum(tl, tr, bl, br)
			if r == c {
				tl, br = 0, 0
			}
			off += sum(tl, tr, bl, br)
		}
	}
	return j.real(all), j.real(off)
}

// rotate finds the rotation of pair i.
func (j *hermitian) rotate(i int) {
	h, n := j.half, j.size
	p, t, q := real(j.a[i*n+i]), j.a[i*n+h+i], real(j.a[(h+i)*n+h+i])
	size, turn := j.real(cabs(t)), complex128(1)
	if size != 0 {
		turn = j.rounded(cdiv(conj(t), complex(size, 0)))
	}
	var c, s, top, low float64
	if j.Single {
		c32, s32, top32, low32 := rotation(float32(p), float32(size), float32(q))
		c, s, top, low = float64(c32), float64(s32), float64(top32), float64(low32)
	} else {
		c, s, top, low = rotation(p, size, q)
	}
	j.c[i], j.s[i] = complex(c, 0), j.rounded(cmul(complex(s, 0), turn))
	j.top[i], j.low[i] = complex(top, 0), complex(low, 0)
}

func (j *hermitian) round() {
	h, n := j.half, j.size
	for i := range h {
		j.rotate(i)
	}
	mul := func(x, y complex128) complex128 { return j.rounded(cmul(x, y)) }
	// turn is x·c - y·s' and x·s + y·c.
	turn := func(x, y, c, s, s2 complex128) (complex128, complex128) {
		return j.rounded(mul(x, c) - mul(y, s2)), j.rounded(mul(x, s) + mul(y, c))
	}
	for i := range h {
		c, s := j.c[i], j.s[i]
		for k := range h {
			tl, bl := turn(j.a[i*n+k], j.a[(h+i)*n+k], c, s, conj(s))
			tr, br := turn(j.a[i*n+h+k], j.a[(h+i)*n+h+k], c, s, conj(s))
			tl, tr = turn(tl, tr, j.c[k], conj(j.s[k]), j.s[k])
			bl, br = turn(bl, br, j.c[k], conj(j.s[k]), j.s[k])
			if i == k {
				tl, tr, bl, br = j.top[i], 0, 0, j.low[i]
			}
			up, down, left, right := j.next[i]*n, j.next[h+i]*n, j.next[k], j.next[h+k]
			j.a2[up+left], j.a2[up+right], j.a2[down+left], j.a2[down+right] = tl, tr, bl, br
		}
		for k := range n {
			x, y := turn(j.v[i*n+k], j.v[(h+i)*n+k], c, s, conj(s))
			j.v2[j.next[i]*n+k], j.v2[j.next[h+i]*n+k] = x, y
		}
	}
	j.a, j.a2, j.v, j.v2 = j.a2, j.a, j.v2, j.v
}

func (j *hermitian) results(n int, eps float64) (w, v []complex128) {
	size := make([]float64, n)
	for i := range n {
		size[i] = j.real(cabs(j.a[i*j.size+i]))
	}
	w, v = make([]complex128, n), make([]complex128, n*n)
	for to, from := range byMagnitude(size) {
		w[to] = j.a[from*j.size+from]
		for i := range n {
			v[i*n+to] = conj(j.v[from*j.size+i])
		}
	}
	return j.flushed(w, eps), j.flushed(v, eps)
}
