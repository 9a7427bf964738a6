package dispatch

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"nxvk/etf"
	"nxvk/graph"
)

// packedOf packs random elements of t, and yields them one by one as well.
func packedOf(r *rand.Rand, t graph.Type, n int) (packed, elems []byte) {
	elems = make([]byte, n)
	for i := range elems {
		elems[i] = byte(graph.ConvertBits(r.Uint64(), graph.U64, t))
	}
	packed = make([]byte, t.PackedSize(n))
	graph.Pack(t, packed, elems)
	return packed, elems
}

// Types below 8 bits are packed on the wire, for any count, by every road: frames, parts, files, scalars, constants,
// parts of reads, and reads of views.
func TestPackedTypes(t *testing.T) {
	c := serve(t, config(t))
	dir := t.TempDir()
	_, err := c.Hello(attrs("runtime_dir", etf.Binary(dir), "bulk_threshold", 400_000))
	must(t, err)
	r := rand.New(rand.NewSource(1))
	id := 0
	for _, ty := range []graph.Type{graph.S2, graph.S4, graph.U2, graph.U4} {
		name := etf.Atom(ty.String())
		for _, n := range []int{1, 2, 3, 5, 8, 9, 4097, 300_001} {
			packed, elems := packedOf(r, ty, n)
			s := spec(ty, n)
			id++
			must(t, c.Upload(id, s, packed))
			whole := id
			wantBytes(t, c, whole, packed)
			for range 20 {
				from := r.Intn(len(packed))
				length := r.Intn(min(len(packed)-from, 200) + 1)
				if got, err := c.Read(whole, from, length); err != nil || !bytes.Equal(got, packed[from:from+length]) {
					t.Fatalf("%v: bytes %d to %d: % x, %v\nwant % x", s, from, from+length, got, err, packed[from:from+length])
				}
			}
			_, err := c.Read(whole, 0, len(packed)+1)
			wantFailure(t, err, "read", ReasonBadRequest)
			// Backwards.
			id++
			must(t, c.Op(graph.OpReverse, s, attrs("axes", axes(0)), []etf.Term{whole}, id))
			back := make([]byte, n)
			for i := range back {
				back[i] = elems[n-1-i]
			}
			want := make([]byte, len(packed))
			graph.Pack(ty, want, back)
			wantBytes(t, c, id, want)
			at := r.Intn(len(want))
			if got, err := c.Read(id, at, len(want)-at); err != nil || !bytes.Equal(got, want[at:]) {
				t.Fatalf("%v backwards: bytes from %d on: %v", s, at, err)
			}
			// As numbers.
			id++
			must(t, c.Op(graph.OpAsType, spec(graph.S8, n), nil, []etf.Term{whole}, id))
			wantBytes(t, c, id, elems)
			// In parts.
			id++
			for at := 0; at < len(packed); {
				k := 1 + r.Intn(min(len(packed)-at, 70_000))
				must(t, c.Cast(etf.Tuple{etf.Atom("upload_part"), id, name, etf.Tuple{n}, at, etf.Binary(packed[at : at+k])}))
				at += k
			}
			wantBytes(t, c, id, packed)
			// By file.
			id++
			file := fmt.Sprint("up", id)
			must(t, os.WriteFile(filepath.Join(dir, file), packed, 0o600))
			must(t, c.Cast(etf.Tuple{etf.Atom("upload"), id, name, etf.Tuple{n}, etf.Tuple{etf.Atom("file"), etf.Binary(file), len(packed)}}))
			wantBytes(t, c, id, packed)
			must(t, c.Free(whole))
		}
		// Scalars and constants, as bitstrings and padded.
		one, elem := packedOf(r, ty, 1)
		id++
		must(t, c.Op(graph.OpConstant, spec(ty, 3), attrs("value", etf.Bits{Data: one, Last: ty.Bits()}), nil, id))
		want := make([]byte, ty.PackedSize(3))
		graph.Pack(ty, want, []byte{elem[0], elem[0], elem[0]})
		wantBytes(t, c, id, want)
		id++
		must(t, c.Op("subtract", spec(graph.S32), nil, []etf.Term{etf.Tuple{etf.Atom("s32"), etf.Binary(make([]byte, 4))}, etf.Tuple{name, etf.Binary(one)}}, id))
		n := int32(graph.ConvertBits(uint64(elem[0]), ty, graph.S32))
		wantBytes(t, c, id, []byte{byte(-n), byte(-n >> 8), byte(-n >> 16), byte(-n >> 24)})
	}
	// A large one comes back by file.
	packed, _ := packedOf(r, graph.U2, 1<<21+1)
	must(t, c.Upload(1000, spec(graph.U2, 1<<21+1), packed))
	x, err := c.Call(etf.Tuple{etf.Atom("read"), 1000, 0, len(packed)})
	must(t, err)
	f, ok := x.(etf.Tuple)
	if !ok || len(f) != 3 || f[2] != int64(len(packed)) {
		t.Fatalf("a large read answers %v", x)
	}
	got, err := os.ReadFile(filepath.Join(dir, string(f[1].(etf.Binary))))
	if err != nil || !bytes.Equal(got, packed) {
		t.Errorf("bulk file: %d bytes, %v", len(got), err)
	}
}
