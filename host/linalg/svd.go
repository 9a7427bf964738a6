package linalg

import "math"

// svdEps is the unit of roundoff of f32, in which Nx measures singular values and the convergence of its iterations.
const svdEps = 1.1920929e-07

// eighEps is the eps of eigh where it serves svd.
const eighEps = 1e-4

// SVD is U {m, rows}, S {k}, and Vᵀ {cols, n} of a {m, n}, k the smaller of m and n; rows and cols are m and n when
// full, else k. Full matrices come from the polar decomposition (QDWH) and the eigenvectors of its
// Hermitian part; others from the eigenvectors of aᵀa.
func SVD[F Float](a []F, m, n int, full bool, maxIter int) (u, s, vt []F) {
	if !nonzero(a) {
		k := min(m, n)
		rows, cols := k, k
		if full {
			rows, cols = m, n
		}
		return identity[F](m, rows), make([]F, k), identity[F](cols, n)
	}
	if min(m, n) > jacobiMax {
		return svdLapack(a, m, n, full)
	}
	wide := m < n
	if wide {
		a = transposed(a, m, n)
		m, n = n, m
	}
	var v []F
	cols := n // of u
	switch {
	case !full:
		u, s, v = svdGram(a, m, n, maxIter)
	case m > n:
		q, r := QR(a, m, n, true, F(QREps))
		var inner []F
		inner, s, v = svdSquare(r[:n*n], n, maxIter)
		inner = matmul(columns(q, m, m, n), inner, m, n, n)
		u, cols = q, m
		for i := range m {
			copy(u[i*m:], inner[i*n:(i+1)*n])
		}
	default:
		u, s, v = svdSquare(a, n, maxIter)
	}
	if wide {
		return v, s, transposed(u, m, cols)
	}
	return u, s, transposed(v, n, n)
}

// QREps is the eps of qr unless it is given.
const QREps = 1e-10

func nonzero[F Float](a []F) bool {
	for _, v := range a {
		if v != 0 {
			return true
		}
	}
	return false
}

// svdGram is U {m, n}, S and V {n, n} by the eigenvectors of aᵀa. Columns of U for singular values that are
// zero to f32's precision are zero.
func svdGram[F Float](a []F, m, n, maxIter int) (u, s, v []F) {
	s, v = Eigh(gram(a, m, n), n, maxIter, F(eighEps))
	for i, x := range s {
		if x <= 0 { // NaN stays
			x = 0
		}
		s[i] = sqrt(x)
	}
	s, v = sortColumns(s, v, n)
	u = matmul(a, v, m, n, n)
	least := F(F(float64(n)*svdEps) * s[0])
	for j, x := range s {
		inv := F(0)
		if x > least {
			inv = 1 / x
		}
		for i := range m {
			u[i*n+j] *= inv
		}
	}
	return u, s, v
}

// gram is aᵀa.
func gram[F Float](a []F, m, n int) []F {
	sums := make([]float64, n*n)
	split(n, m*n, func(lo, hi int) {
		for k := range m {
			row := a[k*n : (k+1)*n]
			for i := lo; i < hi; i++ {
				axpy(sums[i*n:(i+1)*n], float64(row[i]), row)
			}
		}
	})
	out := make([]F, n*n)
	for i, x := range sums {
		out[i] = F(x)
	}
	return out
}

// sortColumns puts the largest of s first, and the columns of v {n, n} likewise.
func sortColumns[F Float](s, v []F, n int) (s2, v2 []F) {
	s2, v2 = make([]F, n), make([]F, n*n)
	for to, from := range byMagnitude(s) {
		s2[to] = s[from]
		for i := range n {
			v2[i*n+to] = v[i*n+from]
		}
	}
	return s2, v2
}

// svdSquare is U, S and V of a {n, n}.
func svdSquare[F Float](a []F, n, maxIter int) (u, s, v []F) {
	u, h := polar(a, n, maxIter)
	s, v = Eigh(symmetric(h, n), n, maxIter, F(eighEps))
	for j, x := range s {
		if x < 0 {
			s[j] = -x
			for i := range n {
				v[i*n+j] = -v[i*n+j]
			}
		}
	}
	s, v = sortColumns(s, v, n)
	return matmul(u, v, n, n, n), s, v
}

// symmetric is (h + hᵀ)/2.
func symmetric[F Float](h []F, n int) []F {
	out := make([]F, n*n)
	for i := range n {
		for j := range n {
			out[i*n+j] = (h[i*n+j] + h[j*n+i]) / 2
		}
	}
	return out
}

// polar is a = u·h, u orthogonal and h symmetric, by Halley's iteration with weights that adapt to a bound of the least
// singular value (QDWH: Nakatsukasa, Bai and Gygi, 2010). The bound and the weights are of f32 in any case.
func polar[F Float](a []F, n, maxIter int) (u, h []F) {
	rows, cols := make([]float64, n), make([]float64, n)
	for i := range n {
		for j := range n {
			x := math.Abs(float64(a[i*n+j]))
			rows[i] += x
			cols[j] += x
		}
	}
	alpha := F(sqrt(most[F](cols)) * sqrt(most[F](rows)))
	u = make([]F, n*n)
	for i, x := range a {
		u[i] = x / alpha
	}
	eps := float32(svdEps)
	tolL, tolU := float32(5*svdEps), F(cbrt(float32(5*svdEps)))
	l := eps
	for i := 1; ; i++ {
		w := halley(&l, eps)
		before := u
		if w.c > 100 {
			u = polarQR(u, n, w)
		} else {
			u = polarCholesky(u, n, w)
		}
		more := float32(math.Abs(float64(1-l))) > tolL || distance(u, before) > tolU
		if !more || i >= maxIter {
			break
		}
	}
	// One step of Newton and Schulz.
	t := matmul(u, matmul(transposed(u, n, n), u, n, n, n), n, n, n)
	for i, x := range u {
		u[i] = F(1.5*x) - F(0.5*t[i])
	}
	return u, symmetric(matmul(transposed(u, n, n), a, n, n, n), n)
}

func most[F Float](sums []float64) F {
	m := F(sums[0])
	for _, s := range sums[1:] {
		m = F(math.Max(float64(m), float64(F(s))))
	}
	return m
}

func cbrt(x float32) float32 {
	if x < 0 {
		return -cbrt(-x)
	}
	return float32(math.Pow(float64(x), 1.0/3))
}

// weights of one step of Halley's iteration.
type weights struct{ a, b, c float32 }

// halley chooses the weights for bound l, and moves the bound on.
func halley(l *float32, eps float32) weights {
	l2 := float32(*l * *l)
	if l2 < eps {
		l2 = eps
	}
	dd := cbrt(float32(4*(1/l2-1)) / l2)
	root := sqrt(1 + dd)
	a := root + sqrt(8-float32(4*dd)+float32(8*(2-l2))/float32(l2*root))/2
	b := float32((a-1)*(a-1)) / 4
	c := a + b - 1
	*l = float32(*l*(a+float32(b*l2))) / (1 + float32(c*l2))
	return weights{a, b, c}
}

func polarQR[F Float](u []F, n int, w weights) []F {
	y := make([]F, 2*n*n)
	root := F(sqrt(w.c))
	for i, x := range u {
		y[i] = F(root * x)
	}
	for i := range n {
		y[(n+i)*n+i] = 1
	}
	q, _ := QR(y, 2*n, n, false, F(QREps))
	e := w.b / w.c
	return mixed(u, matmul(q[:n*n], transposed(q[n*n:], n, n), n, n, n), F(e), F((w.a-e)/sqrt(w.c)))
}

func polarCholesky[F Float](u []F, n int, w weights) []F {
	ut := transposed(u, n, n)
	x := matmul(ut, u, n, n, n)
	for i := range x {
		x[i] *= F(w.c)
	}
	for i := range n {
		x[i*n+i]++
	}
	y := Cholesky(x, n)
	z, _ := Triangular(y, ut, n, n, Solving{})
	z, _ = Triangular(transposed(y, n, n), z, n, n, Solving{Upper: true})
	e := w.b / w.c
	return mixed(u, transposed(z, n, n), F(e), F(w.a-e))
}

// mixed is e·u + f·z.
func mixed[F Float](u, z []F, e, f F) []F {
	out := make([]F, len(u))
	for i, x := range u {
		out[i] = F(e*x) + F(f*z[i])
	}
	return out
}

// distance is the Frobenius norm of x - y.
func distance[F Float](x, y []F) F {
	d := make([]F, len(x))
	largest := F(0)
	for i := range x {
		d[i] = abs(x[i] - y[i])
		largest = F(math.Max(float64(largest), float64(d[i])))
	}
	if !(largest > 0) {
		largest = 1
	}
	sum := 0.0
	for _, v := range d {
		v /= largest
		sum += float64(F(v * v))
	}
	return F(sqrt(F(sum)) * largest)
}
