package shaders_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"nxvk/graph"
	"nxvk/kernel"
	"nxvk/shaders"
	"nxvk/test/devtest"
)

// TestLinalgPlaces prints what device and processor take, when NXVK_LINALG_BENCH is set.
func TestLinalgPlaces(t *testing.T) {
	if os.Getenv("NXVK_LINALG_BENCH") == "" {
		t.Skip("SKIPPED: a measurement; set NXVK_LINALG_BENCH")
	}
	d := devtest.Open(t)
	r := rand.New(rand.NewPCG(1, 2))
	for i, op := range append(shaders.LinalgOps, graph.OpSVD) {
		for _, n := range []int{2, 4, 8, 16, 32, 48} {
			for _, batch := range []int{1, 16, 256, 4096} {
				if batch*n*n*n > 1<<25 || d.Target.Class == kernel.CPU && batch*n*n*n > 1<<21 {
					continue
				}
				c := newMatrixCase(op, graph.F32, batch, n, n, 1, graph.Attrs{Eps: 1e-4, MaxIter: 100, Full: i == len(shaders.LinalgOps)})
				plan, err := shaders.Linalg(d.Target, &c.node, c.t, c.in)
				if err != nil {
					t.Logf("%v: %v", c, err)
					continue
				}
				data := c.fill(r, 0)
				var sizes []int
				for _, s := range c.specs() {
					sizes = append(sizes, s.Shape.Size()*4)
				}
				best := func(f func()) time.Duration {
					least := time.Hour
					for range 4 {
						t0 := time.Now()
						f()
						least = min(least, time.Since(t0))
					}
					return least
				}
				dev := best(func() { d.Plan(t, plan, data, sizes...) })
				hst := best(func() { c.onHost(data) })
				fmt.Printf("%-17s n %2d batch %5d  device %10v  host %10v  %.2f\n", op, n, batch, dev, hst, float64(hst)/float64(dev))
			}
		}
	}
}
