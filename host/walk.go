package host

import (
	"runtime"
	"sync"

	"nxvk/graph"
)

// strided is a tensor's elements in row-major order. Axes that follow one another evenly are merged, so that the
// innermost one is the longest run of elements that lie evenly spaced.
type strided struct {
	shape, strides []int // at least one axis
	off            int
}

func stridedOf(s graph.Shape, l graph.Layout) strided {
	v := strided{off: l.Offset}
	for i := len(s) - 1; i >= 0; i-- {
		d, st := s[i], l.Strides[i]
		if d == 1 {
			continue
		}
		if k := len(v.shape) - 1; k >= 0 && st == v.strides[k]*v.shape[k] {
			v.shape[k] *= d
			continue
		}
		v.shape, v.strides = append(v.shape, d), append(v.strides, st)
	}
	if len(v.shape) == 0 {
		v.shape, v.strides = []int{1}, []int{1}
	}
	for i, j := 0, len(v.shape)-1; i < j; i, j = i+1, j-1 {
		v.shape[i], v.shape[j] = v.shape[j], v.shape[i]
		v.strides[i], v.strides[j] = v.strides[j], v.strides[i]
	}
	return v
}

// step is the distance of elements in a run.
func (v *strided) step() int { return v.strides[len(v.strides)-1] }

// runs calls f for the runs that elements [lo, hi) consist of: n elements, which are the k-th and following of
// these, lie from off on, step() apart.
func (v *strided) runs(lo, hi int, f func(k, off, n int)) {
	last := len(v.shape) - 1
	ext, step := v.shape[last], v.strides[last]
	var at [graph.MaxRank]int
	i, rest, off := lo%ext, lo/ext, v.off
	for a := last - 1; a >= 0; a-- {
		at[a] = rest % v.shape[a]
		rest /= v.shape[a]
		off += at[a] * v.strides[a]
	}
	for k := lo; k < hi; {
		n := min(ext-i, hi-k)
		f(k-lo, off+i*step, n)
		k += n
		i = 0
		for a := last - 1; a >= 0; a-- {
			at[a]++
			off += v.strides[a]
			if at[a] < v.shape[a] {
				break
			}
			off -= v.shape[a] * v.strides[a]
			at[a] = 0
		}
	}
}

// odometer counts through the indices of a shape in row-major order. It reports whether it has come round.
func odometer(at []int, s graph.Shape) bool {
	for a := len(s) - 1; a >= 0; a-- {
		if at[a]++; at[a] < s[a] {
			return false
		}
		at[a] = 0
	}
	return true
}

// indexOf is the multi-index of the k-th element of a shape.
func indexOf(at []int, s graph.Shape, k int) {
	for a := len(s) - 1; a >= 0; a-- {
		at[a] = k % s[a]
		k /= s[a]
	}
}

// grain is about how many simple steps are worth a goroutine.
const grain = 1 << 15

// parallel calls f over parts of [0, n), side by side where n times cost, in simple steps, is worth it. A panic in f
// becomes the caller's.
func parallel(n, cost int, f func(lo, hi int)) {
	workers := runtime.GOMAXPROCS(0)
	part := max(1, grain/max(cost, 1))
	if workers == 1 || n <= part {
		f(0, n)
		return
	}
	part = max(part, (n+4*workers-1)/(4*workers))
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed any
	next := 0
	for range min(workers, (n+part-1)/part) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() {
				if r := recover(); r != nil {
					mu.Lock()
					failed, next = r, n
					mu.Unlock()
				}
			}()
			for {
				mu.Lock()
				lo := next
				next = min(n, next+part)
				hi := next
				mu.Unlock()
				if lo >= hi {
					return
				}
				f(lo, hi)
			}
		}()
	}
	wg.Wait()
	if failed != nil {
		panic(failed)
	}
}
