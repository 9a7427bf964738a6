package vkrt

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// validated opens a device with the validation layer, and fails the test on any message.
func validated(t *testing.T, o Options) *Device {
	t.Helper()
	var mu sync.Mutex
	var messages []string
	o.Validation = true
	o.Log = func(level, msg string) {
		mu.Lock()
		defer mu.Unlock()
		messages = append(messages, level+" "+msg)
	}
	if o.CacheDir == "" {
		o.CacheDir = "-"
	}
	d, err := Open(o)
	if err != nil && strings.Contains(err.Error(), "is not installed") {
		fmt.Println("SKIPPED", t.Name(), err)
		t.Skip(err)
	}
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range messages {
			t.Error(m)
		}
	})
	if err != nil {
		d = openTest(t, o) // says why, or skips
	}
	t.Cleanup(func() { must(t, d.Close()) })
	return d
}

// TestValidation does everything that a device can be asked for, under the validation layer with synchronization
// validation: not one message.
func TestValidation(t *testing.T) {
	variants(t, func(t *testing.T, o Options) {
		o.Ring, o.Pipelines, o.CacheDir, o.Limit = 3, 2, t.TempDir(), 256<<20
		d := validated(t, o)
		s, p := d.NewStream(), addPipeline(t, d)
		const n = 5000
		must(t, s.Profile(true))
		for round := range 12 {
			a, b, c := allocTest(t, d, 4*n), allocTest(t, d, 4*n), allocTest(t, d, 20<<20)
			must(t, s.Upload(a, 0, words(n, func(i int) uint32 { return uint32(i) })))
			add(t, s, p, b, a, n, 1)
			expect(t, s, b, n, "first", func(i int) uint32 { return uint32(i) + 1 })
			must(t, s.Kick())
			add(t, s, p, b, b, n, 1) // over a pending read
			must(t, s.Upload(a, 8, words(10, func(i int) uint32 { return 7 })))
			must(t, s.Copy(c, 16<<20, a, 0, 4*n))
			must(t, s.Upload(c, 1, make([]byte, 19<<20)))
			must(t, s.Read(c, 3, 18<<20, func(data []byte, err error) { must(t, err) }))
			expect(t, s, b, n, "second", func(i int) uint32 { return uint32(i) + 2 })
			q, err := d.Pipeline("variant", variant(round))
			must(t, err)
			add(t, s, q, a, b, n, 1)
			for _, x := range []*Buffer{a, b, c} {
				x.Release()
			}
			must(t, s.Submit())
		}
		must(t, s.Profile(false))
		must(t, s.Wait())
		if len(s.Timings()) < 3 {
			t.Errorf("timings: %+v", s.Timings())
		}
		s2 := d.NewStream()
		a := allocTest(t, d, 4*n)
		must(t, s2.Upload(a, 0, make([]byte, 4*n)))
		add(t, s2, p, a, a, n, 1)
		must(t, s2.Submit())
		add(t, s2, p, a, a, n, 1) // closed with work recorded and in flight
	})
}

// TestValidationSees: the messenger works: a module that breaks the rules of the device is told.
func TestValidationSees(t *testing.T) {
	var mu sync.Mutex
	var messages []string
	d, err := Open(Options{Validation: true, CacheDir: "-", Log: func(level, msg string) {
		mu.Lock()
		defer mu.Unlock()
		messages = append(messages, msg)
	}})
	if err != nil {
		fmt.Println("SKIPPED TestValidationSees", err)
		t.Skip(err)
	}
	bad := slices.Clone(addWords)
	at := slices.Index(bad, 0x00060010) // OpExecutionMode LocalSize: a workgroup that is too wide
	if at < 0 {
		t.Fatal("no LocalSize")
	}
	bad[at+3] = 1 << 20
	_, err = d.Pipeline("wide", bad)
	must(t, d.Close())
	mu.Lock()
	defer mu.Unlock()
	if len(messages) == 0 {
		t.Errorf("a workgroup of 2^20 lanes passed (%v)", err)
	}
}
