package kernel_test

import (
	"math/rand/v2"
	"testing"

	"nxvk/kernel"
	"nxvk/kernel/kerneltest"
)

var anyTarget = kernel.Target{F64: true, I64: true, Mem8: true, Mem16: true, MaxShared: 32 << 10, MaxInvocations: 1024, Num: kernel.Exact}

// TestRandomKernelsRun checks and runs random kernels, and that running again gives the same.
func TestRandomKernelsRun(t *testing.T) {
	for seed := range uint64(300) {
		c := kerneltest.Random(rand.New(rand.NewPCG(seed, 1)), anyTarget, 60)
		if err := kernel.Check(c.Kernel); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		a, b := c.Clone(), c.Clone()
		if err := kernel.Run(c.Kernel, c.Grid, a); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, c.Kernel.Text())
		}
		if err := kernel.Run(c.Kernel, c.Grid, b); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := kerneltest.Same(c.Kernel, a, b); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// FuzzCheckRun mutates valid kernels: Check and Run may refuse, but never panic or hang, and a checked
// kernel prints and hashes.
func FuzzCheckRun(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, []byte{1, 2, 3, 4, 5, 6, 7, 8, byte(seed)})
	}
	f.Fuzz(func(t *testing.T, seed uint64, edits []byte) {
		c := kerneltest.Random(rand.New(rand.NewPCG(seed, 1)), anyTarget, 20)
		kerneltest.Mutate(c.Kernel, edits)
		c.Kernel.Text()
		c.Kernel.Hash()
		if kernel.Check(c.Kernel) != nil {
			return
		}
		m := kernel.Machine{Num: kernel.Exact, MaxSteps: 20000}
		_ = m.Run(c.Kernel, c.Grid, c.Args) // an error is as good as none
	})
}
