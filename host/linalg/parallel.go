package linalg

import (
	"runtime"
	"sync"
)

// worth is how many simple steps repay the start of a goroutine.
const worth = 1 << 16

// split calls f over parts of [0, n), side by side where n times cost, in simple steps, repays it. What f computes must
// not depend on how the parts lie.
func split(n, cost int, f func(lo, hi int)) {
	workers := min(runtime.GOMAXPROCS(0), n*cost/worth, n)
	if workers < 2 {
		f(0, n)
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { f(w*n/workers, (w+1)*n/workers) })
	}
	wg.Wait()
}
