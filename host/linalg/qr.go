package linalg

// QR is Q {m, inner} and R {inner, n} of a {m, n}, where inner is m when full, else the smaller of m and n.
// Householder's reflections make the diagonal of R positive where they are applied: a column whose squares below the
// diagonal sum to less than eps stays as it is, and so does the last one of a matrix that is not tall.
func QR[F Float](a []F, m, n int, full bool, eps F) (q, r []F) {
	if !full && m >= thinFrom && m >= 4*n {
		return qrThin(a, m, n, eps)
	}
	r = append([]F(nil), a...)
	q = identity[F](m, m)
	v := make([]F, m)
	sums := make([]float64, n)
	for i := range reflections(m, n) {
		scale := reflector(r, v, m, n, i, eps)
		if scale == 0 {
			continue
		}
		// R -= scale·v·(vᵀR), by columns.
		split(n, 2*(m-i), func(lo, hi int) {
			sums := sums[lo:hi]
			clear(sums)
			for k := i; k < m; k++ {
				axpy(sums, float64(v[k]), r[k*n+lo:k*n+hi])
			}
			for k := i; k < m; k++ {
				row := r[k*n+lo : k*n+hi]
				for j, s := range sums {
					row[j] -= F(scale * F(v[k]*F(s)))
				}
			}
		})
		// Q -= scale·(Qv)·vᵀ, by rows.
		split(m, 2*(m-i), func(lo, hi int) {
			dots(q, m, i, lo, hi, v[i:], func(k int, f F) {
				row := q[k*m+i : (k+1)*m]
				for j, x := range v[i:] {
					row[j] -= F(scale * F(f*x))
				}
			})
		})
	}
	if inner := min(m, n); !full && inner < m {
		q, r = columns(q, m, m, inner), r[:inner*n]
	}
	return flushed(q, eps), flushed(r, eps)
}

// reflections is how many columns of {m, n} are reflected.
func reflections(m, n int) int {
	if m > n {
		return n
	}
	return max(0, m-1)
}

// reflector finds the reflection I - scale·v·vᵀ that clears column i of r below its diagonal. v[i] is 1.
func reflector[F Float](r, v []F, m, n, i int, eps F) (scale F) {
	clear(v[:i])
	sum := 0.0
	for k := i; k < m; k++ {
		v[k] = r[k*n+i]
		sum += float64(float64(v[k]) * float64(v[k]))
	}
	square := F(sum)
	norm, x := sqrt(square), v[i]
	below := square - F(x*x)
	if below < eps {
		return 0
	}
	first := x - norm
	if x > 0 {
		first = -below / (x + norm)
	}
	v[i] = first
	for k := i; k < m; k++ {
		v[k] /= first
	}
	return 2 / dot(v[i:], v[i:])
}

// columns are the first k columns of a {m, n}.
func columns[F any](a []F, m, n, k int) []F {
	out := make([]F, 0, m*k)
	for i := range m {
		out = append(out, a[i*n:i*n+k]...)
	}
	return out
}
