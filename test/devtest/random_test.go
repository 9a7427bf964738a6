package devtest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"nxvk/kernel/kerneltest"
)

// TestRandomKernels holds the device to the interpreter on random kernels, NXVK_RANDOM of them.
func TestRandomKernels(t *testing.T) {
	d := Open(t)
	count, err := strconv.ParseUint(os.Getenv("NXVK_RANDOM"), 10, 64)
	if err != nil {
		count = 100
	}
	failures := 0
	for seed := range count {
		c := kerneltest.Random(rand.New(rand.NewPCG(seed, 3)), d.Target, 20+int(seed%8)*20)
		ok := t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { Both(t, c.Kernel, c.Grid, c.Args...) })
		if !ok && failures < 3 { // the smallest kernel that shows it is what a person reads
			failures++
			t.Log(c.Kernel.Text())
		}
	}
}
