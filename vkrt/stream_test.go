package vkrt

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"nxvk/vkrt/vk"
)

// TestRoundTrip: upload, two dependent dispatches, copy, read.
func TestRoundTrip(t *testing.T) {
	variants(t, func(t *testing.T, o Options) {
		d := openTest(t, o)
		s, p := d.NewStream(), addPipeline(t, d)
		for _, n := range []int{1, 63, 64, 1000, 1 << 18} {
			a, b, c := allocTest(t, d, uint64(4*n)), allocTest(t, d, uint64(4*n)), allocTest(t, d, uint64(4*n))
			if o.staging != (a.Host() == nil) && d.Info().Class == ClassCPU {
				t.Fatalf("staging %v, but the host's view is %d bytes", o.staging, len(a.Host()))
			}
			must(t, s.Upload(a, 0, words(n, func(i int) uint32 { return uint32(i) })))
			add(t, s, p, b, a, n, 5)
			add(t, s, p, c, b, n, 7)
			must(t, s.Copy(a, 0, c, 0, uint64(4*n)))
			seen := expect(t, s, a, n, fmt.Sprint(n, " words"), func(i int) uint32 { return uint32(i) + 12 })
			must(t, s.Wait())
			if !*seen || !s.Idle() {
				t.Fatal("the read did not come")
			}
			for _, x := range []*Buffer{a, b, c} {
				x.Release()
			}
		}
		if m := d.Memory(); m.InUse != 0 || m.Peak == 0 {
			t.Errorf("after all releases: %+v", m)
		}
	})
}

// TestOrder runs a random program of dispatches, copies, uploads, reads and releases in one stream and compares every
// read with what a machine that does one thing after another would have read.
func TestOrder(t *testing.T) {
	variants(t, func(t *testing.T, o Options) {
		o.Ring = 3
		d := openTest(t, o)
		s, p := d.NewStream(), addPipeline(t, d)
		r := rand.New(rand.NewPCG(1, 2))
		const n, count = 300, 6
		type cell struct {
			buf  *Buffer
			want []uint32
		}
		fresh := func() cell { return cell{allocTest(t, d, 4*n), make([]uint32, n)} }
		cells := make([]cell, count)
		for i := range cells {
			cells[i] = fresh()
			must(t, s.Upload(cells[i].buf, 0, make([]byte, 4*n)))
		}
		reads, pending := 0, 0
		for range 3000 {
			a, b := r.IntN(count), r.IntN(count)
			switch op := r.IntN(12); {
			case op < 5:
				k := uint32(r.IntN(100))
				add(t, s, p, cells[b].buf, cells[a].buf, n, k)
				for i := range n {
					cells[b].want[i] = cells[a].want[i] + k
				}
			case op < 6 && a != b:
				lo, m := r.IntN(n/2), r.IntN(n/2)
				must(t, s.Copy(cells[b].buf, uint64(4*lo), cells[a].buf, uint64(4*lo), uint64(4*m)))
				copy(cells[b].want[lo:lo+m], cells[a].want[lo:lo+m])
			case op < 7:
				v := r.Uint32()
				must(t, s.Upload(cells[a].buf, 0, words(n, func(i int) uint32 { return v })))
				for i := range n {
					cells[a].want[i] = v
				}
			case op < 9:
				want := append([]uint32(nil), cells[a].want...)
				pending++
				must(t, s.Read(cells[a].buf, 8, 4*(n-2), func(data []byte, err error) {
					pending--
					reads++
					if err != nil || !bytes.Equal(data, words(n-2, func(i int) uint32 { return want[i+2] })) {
						t.Errorf("read %d differs (%v)", reads, err)
					}
				}))
			case op < 10: // a new buffer, perhaps in memory that work in flight still uses
				cells[a].buf.Release()
				cells[a] = fresh()
				must(t, s.Upload(cells[a].buf, 0, make([]byte, 4*n)))
			case op < 11:
				must(t, s.Kick())
			default:
				must(t, s.Poll())
			}
			if t.Failed() {
				t.FailNow()
			}
		}
		must(t, s.Wait())
		if pending != 0 || reads < 100 {
			t.Errorf("%d reads came, %d did not", reads, pending)
		}
		for _, c := range cells {
			c.buf.Release()
		}
		if m := d.Memory(); m.InUse != 0 {
			t.Errorf("after all releases: %+v", m)
		}
	})
}

// TestReuseAfterCompletion: released memory is not handed out while submitted or recorded work uses it.
func TestReuseAfterCompletion(t *testing.T) {
	d := openTest(t, Options{})
	s, p := d.NewStream(), addPipeline(t, d)
	const n = 1 << 20
	a, b := allocTest(t, d, 4*n), allocTest(t, d, 4*n)
	must(t, s.Upload(a, 0, make([]byte, 4*n)))
	add(t, s, p, b, a, n, 1)
	addr := b.Addr()
	b.Release()
	b.Release() // harmless
	if m := d.Memory(); m.InUse < 8*n {
		t.Errorf("freed while recorded: %+v", m)
	}
	c := allocTest(t, d, 4*n)
	if c.Addr() == addr {
		t.Error("memory of a recorded dispatch was handed out")
	}
	must(t, s.Submit())
	must(t, s.Wait())
	if m := d.Memory(); m.InUse != 8*n {
		t.Errorf("not freed when finished: %+v", m)
	}
	e := allocTest(t, d, 4*n)
	if e.Addr() != addr {
		t.Errorf("free memory at %#x was passed over for %#x", addr, e.Addr())
	}
	if err := s.Dispatch(p, [3]uint32{1, 1, 1}, nil, []Use{{b, true}}); err == nil || !strings.Contains(err.Error(), "released") {
		t.Errorf("dispatch on a released buffer: %v", err)
	}
}

// TestReadOutlivesRelease: a read's buffer may be released, and its memory written by others, before the callback runs.
func TestReadOutlivesRelease(t *testing.T) {
	variants(t, func(t *testing.T, o Options) {
		d := openTest(t, o)
		s, p := d.NewStream(), addPipeline(t, d)
		const n = 1 << 16
		for round := range 20 {
			a, b := allocTest(t, d, 4*n), allocTest(t, d, 4*n)
			must(t, s.Upload(a, 0, make([]byte, 4*n)))
			add(t, s, p, b, a, n, uint32(round))
			expect(t, s, b, n, "released", func(int) uint32 { return uint32(round) })
			b.Release()
			c := allocTest(t, d, 4*n)
			add(t, s, p, c, a, n, 99)
			c.Release()
			a.Release()
		}
		must(t, s.Wait())
		if m := d.Memory(); m.InUse != 0 {
			t.Errorf("%+v", m)
		}
	})
}

// TestCallbacks: order, reentry, Completed.
func TestCallbacks(t *testing.T) {
	d := openTest(t, Options{Ring: 2})
	s, p := d.NewStream(), addPipeline(t, d)
	const n = 1 << 16
	a, b := allocTest(t, d, 4*n), allocTest(t, d, 4*n)
	must(t, s.Upload(a, 0, make([]byte, 4*n)))
	must(t, s.Wait()) // with staging, the upload is work too
	var got []int
	s.After(func(err error) { got = append(got, 0) }) // nothing in flight: at once
	if len(got) != 1 {
		t.Error("After on an idle stream did not run")
	}
	for i := 1; i <= 5; i++ {
		add(t, s, p, b, a, n, 1)
		s.After(func(err error) {
			got = append(got, i)
			if err != nil {
				t.Error(err)
			}
			if i == 2 { // a callback may go on with the stream
				add(t, s, p, a, b, n, 1)
				must(t, s.Submit())
			}
		})
		must(t, s.Submit())
	}
	deadline := time.After(20 * time.Second)
	for !s.Idle() {
		select {
		case <-s.Completed():
			must(t, s.Poll())
		case <-deadline:
			t.Fatal("Completed did not tell")
		}
	}
	if fmt.Sprint(got) != "[0 1 2 3 4 5]" {
		t.Errorf("callbacks ran as %v", got)
	}
}

// TestLarge moves a tensor of more than 128 MiB.
func TestLarge(t *testing.T) {
	if testing.Short() {
		fmt.Println("SKIPPED TestLarge: -short")
		t.Skip()
	}
	variants(t, func(t *testing.T, o Options) {
		d := openTest(t, o)
		s, p := d.NewStream(), addPipeline(t, d)
		const n = 36 << 20 // words: 144 MiB
		a := allocTest(t, d, 4*n)
		b := allocTest(t, d, 4*n)
		piece := words(1<<20, func(i int) uint32 { return uint32(i) })
		for i := range uint64(36) {
			must(t, s.Upload(a, i*4<<20, piece))
		}
		must(t, s.Dispatch(p, [3]uint32{65535, 1, 1}, []uint64{0, a.Addr() + 4*(n-65535*64), b.Addr() + 4*(n-65535*64), 65535 * 64, 3}, []Use{{a, false}, {b, true}}))
		for _, at := range []uint64{n - 65535*64, n - 1<<20, n - 5} {
			must(t, s.Read(b, 4*at, 20, func(data []byte, err error) {
				must(t, err)
				if want := words(5, func(i int) uint32 { return uint32((at+uint64(i))%(1<<20)) + 3 }); !bytes.Equal(data, want) {
					t.Errorf("at word %d: %v, want %v", at, data, want)
				}
			}))
		}
		must(t, s.Wait())
		a.Release()
		b.Release()
		d.Trim(0)
		if m := d.Memory(); m.Reserved != 0 {
			t.Errorf("after Trim: %+v", m)
		}
	})
}

// TestGiant: one buffer of 3 GiB works (lavapipe promises 2), and one of 5 where the driver has them.
func TestGiant(t *testing.T) {
	if testing.Short() {
		fmt.Println("SKIPPED TestGiant: -short")
		t.Skip()
	}
	d := openTest(t, Options{})
	s, p := d.NewStream(), addPipeline(t, d)
	if d.Memory().Limit < 8<<30 {
		fmt.Println("SKIPPED TestGiant: the device has less than 8 GiB")
		t.Skip()
	}
	for _, size := range []uint64{3 << 30, 5 << 30} {
		a, err := d.Alloc(size)
		if errors.Is(err, ErrOutOfMemory) && size > 4<<30 {
			fmt.Println("SKIPPED TestGiant, 5 GiB:", err)
			continue
		}
		must(t, err)
		for _, at := range []uint64{0, 1<<31 - 128, min(size-256, 1<<32-128), size - 256} { // across 2 and 4 GiB
			must(t, s.Upload(a, at, words(64, func(i int) uint32 { return uint32(i) })))
			must(t, s.Dispatch(p, [3]uint32{1, 1, 1}, []uint64{0, a.Addr() + at, a.Addr() + at, 64, 9}, []Use{{a, true}}))
			must(t, s.Read(a, at, 256, func(data []byte, err error) {
				if want := words(64, func(i int) uint32 { return uint32(i) + 9 }); err != nil || !bytes.Equal(data, want) {
					t.Errorf("at %#x: %v (%v)", at, data, err)
				}
			}))
			must(t, s.Wait())
		}
		a.Release()
	}
}

func TestProfile(t *testing.T) {
	d := openTest(t, Options{})
	if !d.Info().Timestamps {
		fmt.Println("SKIPPED TestProfile: no timestamps")
		t.Skip()
	}
	s, p := d.NewStream(), addPipeline(t, d)
	const n = 1 << 20
	a, b := allocTest(t, d, 4*n), allocTest(t, d, 4*n)
	must(t, s.Upload(a, 0, make([]byte, 4*n)))
	must(t, s.Profile(true))
	for range 3000 { // more than a submission has timestamps
		add(t, s, p, b, a, 64, 1)
	}
	for range 20 {
		add(t, s, p, b, a, n, 1)
	}
	must(t, s.Wait())
	must(t, s.Profile(false))
	add(t, s, p, b, a, n, 1)
	must(t, s.Wait())
	ts := s.Timings()
	if len(ts) != 1 || ts[0].Name != "add" || ts[0].Count != 3020 || ts[0].Total <= 0 || ts[0].Total > time.Minute {
		t.Errorf("%+v", ts)
	}
	s.ResetTimings()
	if len(s.Timings()) != 0 {
		t.Error("timings stay")
	}
}

// TestMisuse: each wrong call says what was wrong and leaves the stream working.
func TestMisuse(t *testing.T) {
	d := openTest(t, Options{})
	s, p := d.NewStream(), addPipeline(t, d)
	a := allocTest(t, d, 100)
	none := func([]byte, error) { t.Error("callback of a refused read") }
	for _, c := range []struct {
		err  error
		want string
	}{
		{s.Upload(a, 90, make([]byte, 11)), "upload: 11 bytes from 90 of a buffer of 100"},
		{s.Upload(a, ^uint64(0), make([]byte, 2)), "upload: 2 bytes from"},
		{s.Read(a, 101, 0, none), "read: 0 bytes from 101"},
		{s.Copy(a, 0, a, 10, 20), "overlap"},
		{s.Copy(a, 0, nil, 10, 20), "no buffer"},
		{s.Dispatch(p, [3]uint32{0xffffffff, 1, 1 << 31}, nil, nil), "grid"},
		{s.Dispatch(p, [3]uint32{1, 1, 1}, nil, []Use{{nil, true}}), "no buffer"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %q", c.err, c.want)
		}
	}
	must(t, s.Dispatch(p, [3]uint32{0, 1, 1}, nil, nil))
	if _, err := d.Pipeline("junk", []uint32{1, 2, 3, 4, 5, 6}); err == nil {
		t.Error("junk made a pipeline")
	}
	must(t, s.Upload(a, 0, make([]byte, 100)))
	must(t, s.Wait())
}

// TestTwoStreams: work of one stream that was submitted is seen by what the other submits later; memory
// waits for both.
func TestTwoStreams(t *testing.T) {
	d := openTest(t, Options{})
	s1, s2, p := d.NewStream(), d.NewStream(), addPipeline(t, d)
	const n = 1 << 16
	a, b, c := allocTest(t, d, 4*n), allocTest(t, d, 4*n), allocTest(t, d, 4*n)
	must(t, s1.Upload(a, 0, make([]byte, 4*n)))
	for i := range 50 {
		add(t, s1, p, b, a, n, 1)
		must(t, s1.Submit())
		add(t, s2, p, c, b, n, 1)
		must(t, s2.Submit())
		add(t, s1, p, a, c, n, 1)
		expect(t, s1, a, n, "streams", func(int) uint32 { return uint32(3 * (i + 1)) })
		must(t, s1.Submit())
	}
	must(t, s1.Submit())
	for _, x := range []*Buffer{a, b, c} {
		x.Release()
	}
	must(t, s1.Wait())
	must(t, s2.Wait())
	if m := d.Memory(); m.InUse != 0 {
		t.Errorf("%+v", m)
	}
}

// TestFailure: when the device is lost every waiting callback is told once, every later call says so, other streams and
// Close go on.
func TestFailure(t *testing.T) {
	variants(t, func(t *testing.T, o Options) {
		o.Log = func(level, msg string) {
			if level != "error" || !strings.Contains(msg, "VK_ERROR_DEVICE_LOST") {
				t.Errorf("%s: %s", level, msg)
			}
		}
		d := openTest(t, o)
		s, p := d.NewStream(), addPipeline(t, d)
		const n = 1 << 18
		a, b := allocTest(t, d, 4*n), allocTest(t, d, 4*n)
		must(t, s.Upload(a, 0, make([]byte, 4*n)))
		told := 0
		lost := func(err error) {
			told++
			if !errors.Is(err, ErrDeviceLost) || err.Error() != "vulkan: vkQueueSubmit: VK_ERROR_DEVICE_LOST" {
				t.Errorf("callback got %v", err)
			}
		}
		for range 3 {
			add(t, s, p, b, a, n, 1)
			must(t, s.Read(b, 0, 4*n, func(data []byte, err error) { lost(err) }))
			s.After(lost)
			if s.next < 3 {
				must(t, s.Submit())
			}
		}
		b.Release()
		s.fail(check("vkQueueSubmit", vk.ErrorDeviceLost))
		if told != 6 {
			t.Errorf("%d callbacks of 6", told)
		}
		s.After(lost)
		for _, err := range []error{s.Submit(), s.Poll(), s.Wait(), s.WaitOne(), s.Kick(), s.Upload(a, 0, []byte{1}), s.Copy(a, 0, a, 4, 4),
			s.Read(a, 0, 4, nil), s.Dispatch(p, [3]uint32{1, 1, 1}, nil, nil), s.Profile(true)} {
			if told++; !errors.Is(err, ErrDeviceLost) {
				t.Errorf("later call: %v", err)
			}
		}
		if told != 17 || !s.Idle() {
			t.Errorf("%d, idle %v", told, s.Idle())
		}
		a.Release()
		if m := d.Memory(); m.InUse != 0 {
			t.Errorf("%+v", m)
		}
		select {
		case <-s.Completed():
		default:
		}
	})
}

// TestClose: work that was submitted ends as ever; what was only recorded is told; later calls say that the device is closed.
func TestClose(t *testing.T) {
	variants(t, func(t *testing.T, o Options) {
		d := openTest(t, o)
		s, p := d.NewStream(), addPipeline(t, d)
		const n = 1 << 18
		a, b := allocTest(t, d, 4*n), allocTest(t, d, 4*n)
		must(t, s.Upload(a, 0, make([]byte, 4*n)))
		add(t, s, p, b, a, n, 6)
		submitted := expect(t, s, b, n, "submitted", func(int) uint32 { return 6 })
		must(t, s.Submit())
		<-s.Completed()
		s.Completed() // nobody listens
		add(t, s, p, a, b, n, 1)
		var recorded error
		must(t, s.Read(a, 0, 4, func(data []byte, err error) { recorded = err }))
		must(t, d.Close())
		if !*submitted || recorded != ErrClosed {
			t.Errorf("submitted read came: %v; recorded read: %v", *submitted, recorded)
		}
		_, err := d.Alloc(1)
		_, perr := d.Pipeline("late", addWords)
		for _, err := range []error{err, perr, s.Wait(), s.Kick(), s.Poll(), s.Upload(a, 0, []byte{1}), s.Dispatch(p, [3]uint32{1, 1, 1}, nil, nil), d.NewStream().Submit()} {
			if err != ErrClosed {
				t.Errorf("after Close: %v", err)
			}
		}
		if a.Host() != nil {
			t.Error("memory is still mapped")
		}
		a.Release()
		b.Release()
		must(t, d.Close())
	})
}
