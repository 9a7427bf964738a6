package linalg

import (
	"runtime"
	"slices"
	"testing"
)

// Results do not depend on how many processors share the work.
func TestProcessorsDoNotShow(t *testing.T) {
	const n = 300
	a, s := random[float32](n, n), definite[float32](n)
	all := func() [][]float32 {
		x := slices.Clone(a)
		LU(x, n)
		q, r := QR(a, n, n, true, QREps)
		w, v := Eigh(s, n, 1000, 1e-4)
		u, sv, vt := SVD(a[:90*n], 90, n, false, 100)
		return [][]float32{x, q, r, Cholesky(s, n), w, v, u, sv, vt}
	}
	before := runtime.GOMAXPROCS(1)
	one := all()
	runtime.GOMAXPROCS(max(4, before))
	many := all()
	runtime.GOMAXPROCS(before)
	for i := range one {
		if !slices.Equal(one[i], many[i]) {
			t.Errorf("result %d differs", i)
		}
	}
}
