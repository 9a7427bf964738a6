package vkrt

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestAlloc(t *testing.T) {
	d := openTest(t, Options{})
	var all []*Buffer
	ends := map[uint64]uint64{}
	for _, n := range []uint64{0, 1, 255, 256, 257, 4096, 1 << 20, 3 << 20, 40 << 20, 17} {
		b := allocTest(t, d, n)
		if b.Addr()%256 != 0 || b.Size() != n || b.Addr() == 0 {
			t.Errorf("%d bytes: size %d at %#x", n, b.Size(), b.Addr())
		}
		if h := b.Host(); h != nil && len(h) != int(n) {
			t.Errorf("host view of %d bytes has %d", n, len(h))
		}
		for at, end := range ends {
			if b.Addr() < end && at < b.Addr()+n {
				t.Errorf("%#x+%d overlaps %#x", b.Addr(), n, at)
			}
		}
		ends[b.Addr()] = b.Addr() + max(n, 1)
		all = append(all, b)
	}
	for _, b := range all {
		b.Release()
	}
	if m := d.Memory(); m.InUse != 0 || m.Blocks == 0 || m.Reserved == 0 {
		t.Errorf("%+v", m)
	}
	d.Trim(0)
	if m := d.Memory(); m.Reserved != 0 || m.Blocks != 0 {
		t.Errorf("after Trim: %+v", m)
	}
}

// TestLimit: the limit holds, empty blocks make room, and an error says what is used.
func TestLimit(t *testing.T) {
	d := openTest(t, Options{Limit: 64 << 20})
	a := allocTest(t, d, 30<<20)
	b := allocTest(t, d, 30<<20)
	_, err := d.Alloc(10 << 20)
	if !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "10485760 bytes") || !strings.Contains(err.Error(), "62914560 in use") {
		t.Errorf("beyond the limit: %v", err)
	}
	a.Release()
	c := allocTest(t, d, 34<<20) // does not fit beside the empty block: that must go
	if m := d.Memory(); m.Reserved > 64<<20 {
		t.Errorf("%+v", m)
	}
	b.Release()
	c.Release()
	if _, err := d.Alloc(65 << 20); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("one buffer beyond the limit: %v", err)
	}
}

// TestPressure: an allocation waits for work whose buffers were released, be it submitted or still recorded.
func TestPressure(t *testing.T) {
	d := openTest(t, Options{Limit: 32 << 20})
	s, p := d.NewStream(), addPipeline(t, d)
	const n = 2 << 20 // words: 8 MiB
	a := allocTest(t, d, 4*n)
	must(t, s.Upload(a, 0, make([]byte, 4*n)))
	for i := range 40 {
		b, err := s.Alloc(4 * n)
		must(t, err)
		add(t, s, p, b, a, n, uint32(i))
		if i%8 == 0 {
			expect(t, s, b, n, "pressure", func(int) uint32 { return uint32(i) })
		}
		b.Release()
		if i%3 == 0 {
			must(t, s.Submit())
		}
	}
	must(t, s.Wait())
}

// TestIdleTrim: memory that a burst took goes back when nothing happens.
func TestIdleTrim(t *testing.T) {
	d := openTest(t, Options{})
	var bs []*Buffer
	for range 6 {
		bs = append(bs, allocTest(t, d, 40<<20))
	}
	for _, b := range bs {
		b.Release()
	}
	if m := d.Memory(); m.Reserved < 200<<20 {
		t.Errorf("given back at once: %+v", m)
	}
	deadline := time.Now().Add(idleAfter + 5*time.Second)
	for d.Memory().Reserved > keepIdle {
		if time.Now().After(deadline) {
			t.Fatalf("not given back: %+v", d.Memory())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestBackPressure: a loop that drops each large result reuses memory instead of taking ever more.
func TestBackPressure(t *testing.T) {
	d := openTest(t, Options{})
	s, p := d.NewStream(), addPipeline(t, d)
	const n = 4<<20 - 64 // words: just below 16 MiB
	a := allocTest(t, d, 4*n)
	must(t, s.Upload(a, 0, make([]byte, 4*n)))
	for range 24 {
		b, err := s.Alloc(4 * n)
		must(t, err)
		add(t, s, p, b, a, n, 1)
		a.Release()
		a = b
		must(t, s.Kick())
	}
	expect(t, s, a, n, "chain", func(int) uint32 { return 24 })
	must(t, s.Wait())
	if m := d.Memory(); m.Reserved > 10*4*n {
		t.Errorf("%+v", m)
	}
}

// TestElsewhere: buffers are allocated and released by other goroutines while a stream works.
func TestElsewhere(t *testing.T) {
	d := openTest(t, Options{Limit: 64 << 20})
	s, p := d.NewStream(), addPipeline(t, d)
	in, out := make(chan *Buffer, 4), make(chan *Buffer, 4)
	var wg sync.WaitGroup
	const rounds, n = 300, 50000
	for range 2 {
		wg.Add(2)
		go func() {
			defer wg.Done()
			for range rounds {
				b, err := d.Alloc(4 * n)
				if err != nil {
					t.Error(err)
				}
				in <- b
			}
		}()
		go func() {
			defer wg.Done()
			for range rounds {
				(<-out).Release()
			}
		}()
	}
	zero := allocTest(t, d, 4*n)
	must(t, s.Upload(zero, 0, make([]byte, 4*n)))
	for i := range 2 * rounds {
		b := <-in
		add(t, s, p, b, zero, n, uint32(i))
		if i%10 == 0 {
			expect(t, s, b, n, "elsewhere", func(int) uint32 { return uint32(i) })
		}
		out <- b
		must(t, s.Kick())
		must(t, s.Poll())
	}
	wg.Wait()
	must(t, s.Wait())
	zero.Release()
	if m := d.Memory(); m.InUse != 0 || d.mem.deferred.Load() != 0 {
		t.Errorf("%+v, %d bytes deferred", m, d.mem.deferred.Load())
	}
}
