package vkrt

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// variant is addWords, made distinct by a constant that nothing reads (in an OpString).
func variant(i int) []uint32 {
	w := slices.Clone(addWords)
	at := slices.Index(w, 0x0003000e) // OpMemoryModel; debug strings may follow the entry point's modes
	at += 3
	for w[at]&0xffff == 15 || w[at]&0xffff == 16 { // OpEntryPoint, OpExecutionMode
		at += int(w[at] >> 16)
	}
	id := w[3]
	w[3]++
	return slices.Insert(w, at, 0x00040007, id, 0x30303030+uint32(i), 0)
}

// TestPipelineConcurrent: many callers, few modules: each is made once.
func TestPipelineConcurrent(t *testing.T) {
	d := openTest(t, Options{})
	var wg sync.WaitGroup
	got := make([]*Pipeline, 64)
	for i := range got {
		wg.Add(1)
		go func() {
			defer wg.Done()
			p, err := d.Pipeline("add", variant(i%8))
			if err != nil {
				t.Error(err)
			}
			got[i] = p
		}()
	}
	wg.Wait()
	for i := range got {
		if got[i] != got[i%8] {
			t.Errorf("module %d has two pipelines", i%8)
		}
	}
	if s := d.PipelineStats(); s.Made != 8 || s.Hits != 56 || s.Live != 8 {
		t.Errorf("%+v", s)
	}
	s := d.NewStream()
	a, b := allocTest(t, d, 400), allocTest(t, d, 400)
	must(t, s.Upload(a, 0, make([]byte, 400)))
	for i := range 8 {
		add(t, s, got[i], b, a, 100, 1)
		add(t, s, got[i], a, b, 100, 1)
	}
	expect(t, s, a, 100, "sum", func(int) uint32 { return 16 })
	must(t, s.Wait())
}

// TestPipelineBound: the table drops the least recently used, holders keep theirs, and what nobody holds is destroyed.
func TestPipelineBound(t *testing.T) {
	d := openTest(t, Options{Pipelines: 4})
	first, err := d.Pipeline("first", variant(0))
	must(t, err)
	for i := 1; i < 12; i++ {
		_, err := d.Pipeline("more", variant(i))
		must(t, err)
	}
	if s := d.PipelineStats(); s.Made != 12 || s.Dropped != 8 {
		t.Errorf("%+v", s)
	}
	for deadline := time.Now().Add(10 * time.Second); d.PipelineStats().Live > 5; {
		if time.Now().After(deadline) {
			t.Fatalf("not destroyed: %+v", d.PipelineStats())
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	s := d.NewStream()
	a := allocTest(t, d, 400)
	must(t, s.Upload(a, 0, make([]byte, 400)))
	add(t, s, first, a, a, 100, 3)
	expect(t, s, a, 100, "held", func(int) uint32 { return 3 })
	must(t, s.Wait())
	again, err := d.Pipeline("first", variant(0))
	must(t, err)
	if again == first {
		t.Error("the dropped pipeline is still in the table")
	}
	runtime.KeepAlive(first)
}

// TestPipelineError: a module that the driver refuses is an error for all who asked, and is not kept.
func TestPipelineError(t *testing.T) {
	d := openTest(t, Options{})
	for range 2 {
		if _, err := d.Pipeline("short", []uint32{0x07230203, 0x00010500}); err == nil || !strings.Contains(err.Error(), "short") {
			t.Errorf("%v", err)
		}
	}
	if s := d.PipelineStats(); s.Made != 0 {
		t.Errorf("%+v", s)
	}
}

// TestCacheFile: written on close, used by the next, and discarded with a log line whenever it is not sound.
func TestCacheFile(t *testing.T) {
	dir := t.TempDir()
	// run opens a device with the cache, makes one pipeline, and yields what was logged.
	run := func() (logged []string, path string) {
		var mu sync.Mutex
		d := openTest(t, Options{CacheDir: dir, Log: func(level, msg string) {
			mu.Lock()
			defer mu.Unlock()
			logged = append(logged, level+" "+msg)
		}})
		_, err := d.Pipeline("add", addWords)
		must(t, err)
		path = d.pipes.store.path
		must(t, d.Close())
		return logged, path
	}
	logged, path := run()
	if len(logged) != 0 {
		t.Errorf("first run: %v", logged)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		fmt.Println("SKIPPED TestCacheFile: the driver has no pipeline cache data")
		t.Skip(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".pipelines-*")); len(left) > 0 {
		t.Errorf("temporary files stay: %v", left)
	}
	if logged, _ := run(); len(logged) != 0 {
		t.Errorf("second run: %v", logged)
	}
	foreign := func(at int) []byte { // sound as a file, but its data has another vendor header
		data := slices.Clone(good[cacheHeader:])
		data[at] ^= 1
		other := filepath.Join(dir, "other")
		must(t, writeCache(other, data))
		b, err := os.ReadFile(other)
		must(t, err)
		return b
	}
	flip := func(at int) []byte {
		b := slices.Clone(good)
		b[at] ^= 0x40
		return b
	}
	for name, bad := range map[string][]byte{
		"empty": {}, "truncated": good[:len(good)-1], "longer": append(slices.Clone(good), 0), "magic": flip(0),
		"length": flip(len(cacheMagic)), "checksum": flip(len(cacheMagic) + 8), "data": flip(len(good) - 1),
		"version": foreign(4), "vendor": foreign(8), "device": foreign(12), "build": foreign(16), "no header": good[:cacheHeader],
	} {
		must(t, os.WriteFile(path, bad, 0o600))
		logged, _ := run()
		if len(logged) != 1 || !strings.Contains(logged[0], "discarded") || !strings.HasPrefix(logged[0], "warning ") {
			t.Errorf("%s: logged %q", name, logged)
		}
		if logged, _ := run(); len(logged) != 0 {
			t.Errorf("%s: the file was not replaced by a sound one: %q", name, logged)
		}
	}
	// A folder that cannot be made: no cache, and a line that says so.
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	dir = filepath.Join(file, "sub")
	if logged, _ := run(); len(logged) != 1 || !strings.Contains(logged[0], "no pipeline cache on disk") {
		t.Errorf("no folder: %q", logged)
	}
}

// TestCacheMerge: what another process wrote between is kept.
func TestCacheMerge(t *testing.T) {
	dir := t.TempDir()
	open := func() *Device { return openTest(t, Options{CacheDir: dir}) }
	size := func() int64 {
		files, _ := filepath.Glob(filepath.Join(dir, "pipelines-*"))
		if len(files) != 1 {
			fmt.Println("SKIPPED TestCacheMerge: the driver has no pipeline cache data")
			t.Skip()
		}
		st, err := os.Stat(files[0])
		must(t, err)
		return st.Size()
	}
	make := func(d *Device, from, to int) {
		for i := from; i < to; i++ {
			_, err := d.Pipeline("add", variant(i))
			must(t, err)
		}
	}
	a, b := open(), open()
	make(a, 0, 3)
	make(b, 3, 6)
	must(t, a.Close())
	one := size()
	must(t, b.Close())
	both := size()
	c := open()
	data, err := c.cacheData()
	must(t, err)
	if len(data) <= 32 {
		fmt.Println("SKIPPED TestCacheMerge, contents: the driver's cache is a bare header")
		return
	}
	if both <= one || len(data)+cacheHeader < int(both) {
		t.Errorf("one's file has %d bytes, both's %d, read back %d", one, both, len(data))
	}
}
