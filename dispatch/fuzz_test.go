package dispatch

import (
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"nxvk/etf"
	"nxvk/graph"
	"nxvk/vkrt"
)

// fuzzDevice has little memory, so that a frame which asks for much gets a failure instead.
func fuzzDevice(t testing.TB) Config {
	cfg := config(t)
	d, err := vkrt.Open(vkrt.Options{CacheDir: "-", Limit: 64 << 20})
	must(t, err)
	t.Cleanup(func() {
		if n := d.Memory().InUse; n != 0 {
			t.Errorf("%d bytes of device memory are still in use", n)
		}
		d.Close()
	})
	cfg.Device = d
	return cfg
}

// goodFrames are requests of every kind over tensors 1 to 9.
func goodFrames(t testing.TB) [][]byte {
	var frames [][]byte
	add := func(x etf.Term) {
		b, err := etf.Encode(x)
		must(t, err)
		frames = append(frames, b)
	}
	s, f32 := spec(graph.F32, 2, 3), etf.Atom("f32")
	axis := func(kv ...any) etf.Map { return attrs(kv...) }
	add(etf.Tuple{etf.Atom("upload"), 1, f32, etf.Tuple{2, 3}, etf.Binary(f32s(1, 2, 3, 4, 5, 6))})
	add(etf.Tuple{etf.Atom("upload"), 2, etf.Atom("s32"), etf.Tuple{2}, etf.Binary(make([]byte, 8))})
	add(etf.Tuple{etf.Atom("upload_part"), 3, f32, etf.Tuple{2}, 0, etf.Binary(f32s(1))})
	add(etf.Tuple{etf.Atom("upload_part"), 3, f32, etf.Tuple{2}, 4, etf.Binary(f32s(2))})
	add(opTerm("add", s, nil, []etf.Term{1, scalar(2)}, 4))
	add(opTerm("transpose", spec(graph.F32, 3, 2), axis("axes", axes(1, 0)), []etf.Term{1}, 5))
	add(opTerm("sum", spec(graph.F32, 3), axis("axes", axes(0)), []etf.Term{1}, 6))
	add(opTerm("dot", spec(graph.F32, 2, 2), axis("contract_a", axes(1), "batch_a", axes(), "contract_b", axes(0), "batch_b", axes()), []etf.Term{4, 5}, 7))
	add(opTerm("slice", spec(graph.F32, 1, 2), axis("lengths", axes(1, 2), "strides", axes(1, 1)),
		[]etf.Term{1, etf.Tuple{etf.Atom("s64"), etf.Binary(make([]byte, 8))}, 2}, 8))
	add(opTerm("pad", spec(graph.F32, 3, 4), axis("config", etf.Seq{etf.Tuple{0, 1, 0}, etf.Tuple{1, 0, 0}}), []etf.Term{1, scalar(0)}, 9))
	add(opTerm("concatenate", spec(graph.F32, 4, 3), axis("axis", 0), []etf.Term{1, 4}, 8))
	add(opTerm("select", s, nil, []etf.Term{1, 4, scalar(0)}, 9))
	add(opTerm("argmax", spec(graph.S32), axis("axis", etf.Atom("nil"), "tie_break", etf.Atom("low"), "keep_axes", etf.Atom("false")), []etf.Term{1}, 2))
	add(opTerm("broadcast", spec(graph.F32, 2, 2, 3), axis("axes", axes(1, 2)), []etf.Term{1}, 8))
	add(opTerm("as_type", spec(graph.U8, 2, 3), nil, []etf.Term{8}, 6))
	add(opTerm("constant", s, axis("value", etf.Binary(f32s(3))), nil, 7))
	add(opTerm("exp", s, nil, []etf.Term{4}, 5))
	add(etf.Tuple{etf.Atom("free"), axes(1, 2, 3, 4, 5)})
	add(etf.Tuple{etf.Atom("free"), axes(6, 7, 8, 9, 1000)})
	add(etf.Tuple{1, etf.Tuple{etf.Atom("read"), 1, 0, 24}})
	add(etf.Tuple{2, etf.Tuple{etf.Atom("read"), 5, 4, 8}})
	add(etf.Tuple{3, etf.Tuple{etf.Atom("sync"), axes(1, 4)}})
	add(etf.Tuple{4, etf.Atom("stats")})
	add(etf.Tuple{5, etf.Atom("info")})
	add(etf.Tuple{6, etf.Tuple{etf.Atom("profile"), etf.Atom("true")}})
	add(etf.Tuple{7, etf.Tuple{etf.Atom("profile"), etf.Atom("false")}})
	add(etf.Tuple{8, etf.Tuple{etf.Atom("hello"), 1, attrs("epoch", 3)}})
	node := etf.Tuple{etf.Atom("add"), f32, etf.Tuple{2, 3}, etf.Seq{}}
	add(etf.Tuple{9, etf.Tuple{etf.Atom("plan"), node, etf.Seq{etf.Tuple{f32, etf.Tuple{2, 3}}, etf.Tuple{f32, etf.Atom("value")}}}})
	g := etf.Tuple{etf.Seq{etf.Tuple{f32, etf.Tuple{2, 3}}, etf.Tuple{f32, etf.Atom("value")}},
		etf.Seq{append(node, axes(0, 1)), etf.Tuple{etf.Atom("negate"), f32, etf.Tuple{2, 3}, etf.Seq{}, axes(2)}}, axes(3, 0)}
	add(etf.Tuple{10, etf.Tuple{etf.Atom("compile"), g}})
	add(etf.Tuple{etf.Atom("run"), 1, etf.Seq{1, scalar(1)}, axes(6, 7)})
	return frames
}

// mutate changes a frame in one to four places, as line noise or a buggy caller would.
func mutate(r *rand.Rand, frames [][]byte) []byte {
	f := append([]byte(nil), frames[r.IntN(len(frames))]...)
	for range 1 + r.IntN(4) {
		if len(f) == 0 {
			return f
		}
		at := r.IntN(len(f))
		switch r.IntN(9) {
		case 0:
			f[at] ^= 1 << r.IntN(8)
		case 1:
			f[at] = byte(r.Uint32())
		case 2: // a number becomes another
			f[at] = [...]byte{0, 1, 2, 3, 9, 127, 128, 255}[r.IntN(8)]
		case 3: // one tag becomes another
			f[at] = [...]byte{97, 98, 99, 70, 104, 105, 106, 107, 108, 109, 110, 111, 116, 118, 119, 77, 80, 88, 112, 131}[r.IntN(20)]
		case 4:
			f = f[:at]
		case 5: // a piece of another frame
			g := frames[r.IntN(len(frames))]
			from := r.IntN(len(g))
			n := min(r.IntN(20), len(g)-from)
			f = append(f[:at:at], append(append([]byte(nil), g[from:from+n]...), f[at:]...)...)
		case 6: // a piece is lost
			n := min(r.IntN(8), len(f)-at)
			f = append(f[:at], f[at+n:]...)
		case 7: // an integer becomes a large one
			for i := at; i+1 < len(f); i++ {
				if f[i] == 97 {
					big := [][]byte{{98, 0, 0, 1, 0}, {98, 255, 255, 255, 255}, {110, 8, 0, 255, 255, 255, 255, 255, 255, 255, 127}, {110, 6, 0, 0, 0, 0, 0, 0, 1}}
					f = append(f[:i:i], append(append([]byte(nil), big[r.IntN(len(big))]...), f[i+2:]...)...)
					break
				}
			}
		case 8: // unchanged: keeps the table filled
		}
	}
	return f
}

// Mutated frames neither kill nor hang the port, and its memory returns to where it was. NXVK_FUZZ_FRAMES
// says how many; 1,000,000 is what a release is held to.
func TestMutatedFrames(t *testing.T) {
	n := 30_000
	if testing.Short() {
		n = 3_000
	}
	if v, err := strconv.Atoi(os.Getenv("NXVK_FUZZ_FRAMES")); err == nil {
		n = v
	}
	cfg := fuzzDevice(t)
	cfg.Queue = 1 << 20
	c, done := Local(cfg)
	c.next = 1 << 50 // out of reach of the numbers in frames
	r := rand.New(rand.NewPCG(1, 2))
	good := goodFrames(t)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse
	}
	var sent atomic.Int64
	alive := make(chan struct{})
	go func() { // says what it was at, should it hang
		last, stuck := int64(-1), 0
		for {
			select {
			case <-alive:
				return
			case <-time.After(10 * time.Second):
			}
			if s := sent.Load(); s != last {
				last, stuck = s, 0
			} else if stuck++; stuck == 12 {
				buf := make([]byte, 1<<20)
				panic("the port hangs after " + strconv.FormatInt(last, 10) + " frames\n" + string(buf[:runtime.Stack(buf, true)]))
			}
		}
	}()
	var first uint64
	for i := range n {
		must(t, c.Frame(mutate(r, good)))
		sent.Add(1)
		if i%1000 == 999 {
			must(t, c.Frame(good[17]))
			must(t, c.Frame(good[18]))
			must(t, c.Sync())
			if i == 9_999 {
				first = heap()
			}
		}
	}
	must(t, c.Sync())
	if last := heap(); n >= 50_000 && last > first+(64<<20) {
		t.Errorf("%d MiB of heap after 10,000 frames, %d MiB after %d", first>>20, last>>20, n)
	}
	close(alive)
	must(t, done())
}

// FuzzFrame sends arbitrary frames to one port.
func FuzzFrame(f *testing.F) {
	for _, b := range goodFrames(f) {
		f.Add(b)
	}
	cfg := fuzzDevice(f)
	c, done := Local(cfg)
	c.next = 1 << 50 // out of reach of the numbers in frames
	f.Cleanup(func() {
		if err := done(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, frame []byte) {
		must(t, c.Frame(frame))
		must(t, c.Sync())
	})
}
