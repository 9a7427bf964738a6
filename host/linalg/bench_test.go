package linalg

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func random[F Float](m, n int) []F {
	r := rand.New(rand.NewPCG(uint64(m), uint64(n)))
	out := make([]F, m*n)
	for i := range out {
		out[i] = F(r.NormFloat64())
	}
	return out
}

// definite is a symmetric positive definite {n, n}.
func definite[F Float](n int) []F {
	a := random[F](n, n)
	return gram(a, n, n)
}

// BenchmarkDecompositions shows where one way becomes slower than another.
func BenchmarkDecompositions(b *testing.B) {
	for _, n := range []int{8, 32, 64, 128, 256} {
		a, s := random[float32](n, n), definite[float32](n)
		run := func(name string, f func()) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					f()
				}
			})
		}
		run("cholesky", func() { Cholesky(s, n) })
		run("lu", func() { LU(append([]float32(nil), a...), n) })
		run("solve", func() { Solve[float32, float32](append([]float32(nil), a...), widened(a), n, n) })
		run("triangular", func() { Triangular(a, a, n, n, Solving{}) })
		run("qr", func() { QR(a, n, n, true, QREps) })
		run("eigh", func() { Eigh(s, n, 1000, 1e-4) })
		run("svd-full", func() { SVD(a, n, n, true, 100) })
		run("svd-thin", func() { SVD(a, n, n, false, 100) })
	}
}
