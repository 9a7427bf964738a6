package vkrt

import (
	"math/rand/v2"
	"sort"
	"testing"
)

// audit checks the arena's invariants over the given blocks: spans tile each block, no two free ones
// touch, and the counts agree with what is there.
func audit(t *testing.T, a *arena, blocks []*block) {
	t.Helper()
	var used, empty, total uint64
	for _, b := range blocks {
		var off, live uint64
		var before *span
		for s := b.first; s != nil; s = s.next {
			if s.off != off || s.block != b || s.prev != before || s.size == 0 || s.size%unit != 0 {
				t.Fatalf("span %+v after %+v: wanted offset %d", s, before, off)
			}
			if before != nil && before.free && s.free {
				t.Fatalf("free spans at %d and %d were not joined", before.off, s.off)
			}
			if s.free {
				l, st := class(s.size)
				found := false
				for f := a.lists[l][st]; f != nil; f = f.down {
					found = found || f == s
				}
				if !found {
					t.Fatalf("free span of %d bytes is not in its list", s.size)
				}
			} else {
				live += s.size
			}
			off += s.size
			before = s
		}
		if off != b.size || live != b.used {
			t.Fatalf("block of %d: spans cover %d, live %d, counted %d", b.size, off, live, b.used)
		}
		if live == 0 {
			empty += b.size
		}
		used += live
		total += b.size
	}
	if a.used != used || a.empty != empty || a.total != total || a.blocks != len(blocks) {
		t.Fatalf("arena counts %d used, %d empty, %d in %d blocks; there are %d, %d, %d in %d", a.used, a.empty, a.total, a.blocks, used, empty, total, len(blocks))
	}
}

// TestArenaRandom allocates and frees at random: no overlap, sizes as asked, and all joined again at the end.
func TestArenaRandom(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var a arena
		var blocks []*block
		var live []*span
		for step := range 4000 {
			if r.IntN(100) < 55 {
				n := uint64(r.IntN(1 << (4 + r.IntN(18))))
				s := a.alloc(n)
				if s == nil {
					blocks = append(blocks, a.addBlock(roundUp(max(n, 1<<20), unit), nil))
					s = a.alloc(n)
				}
				if s == nil || s.size < n || s.size > roundUp(max(n, 1), unit) || s.off%unit != 0 || s.free {
					t.Fatalf("alloc %d: %+v", n, s)
				}
				live = append(live, s)
			} else if len(live) > 0 {
				i := r.IntN(len(live))
				a.release(live[i])
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
			}
			if step%500 == 0 {
				audit(t, &a, blocks)
				at := map[*block][]*span{}
				for _, s := range live {
					at[s.block] = append(at[s.block], s)
				}
				for _, ss := range at {
					sort.Slice(ss, func(i, j int) bool { return ss[i].off < ss[j].off })
					for i := 1; i < len(ss); i++ {
						if ss[i-1].off+ss[i-1].size > ss[i].off {
							t.Fatalf("spans %+v and %+v overlap", ss[i-1], ss[i])
						}
					}
				}
			}
		}
		for _, s := range live {
			a.release(s)
		}
		audit(t, &a, blocks)
		for _, b := range blocks {
			if b.first.next != nil || !b.first.free {
				t.Fatal("a block did not join to one free span")
			}
			a.removeBlock(b)
		}
		audit(t, &a, nil)
		if a.first != 0 {
			t.Fatal("free lists are left")
		}
	}
}

// TestArenaFits: any free span that is large enough is found, however the classes fall.
func TestArenaFits(t *testing.T) {
	for size := uint64(unit); size < 1<<20; size += 3 * unit {
		var a arena
		a.addBlock(size, nil)
		s := a.alloc(size)
		if s == nil {
			t.Fatalf("a free span of %d does not serve %d", size, size)
		}
		a.release(s)
		if s := a.alloc(size + 1); s != nil {
			t.Fatalf("%d bytes from a block of %d", size+1, size)
		}
	}
}

func BenchmarkArena(b *testing.B) {
	var a arena
	a.addBlock(1<<30, nil)
	var ring [64]*span
	b.ReportAllocs()
	for i := range b.N {
		k := i & 63
		if ring[k] != nil {
			a.release(ring[k])
		}
		ring[k] = a.alloc(uint64(i*7919) & 0xfffff)
	}
}
