package etf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"testing"
)

// A real Erlang makes terms, this package decodes and encodes them, and Erlang finds them unchanged;
// then the other way round.
func TestErlang(t *testing.T) {
	if _, err := exec.LookPath("escript"); err != nil {
		fmt.Println("SKIPPED etf TestErlang: no escript on PATH")
		t.SkipNow()
	}
	n := 100_000
	if testing.Short() {
		n = 5_000
	}
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	script := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("escript", append([]string{"testdata/terms.escript"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("escript %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}

	script("make", fmt.Sprint(n), file("made"))
	made := readFrames(t, file("made"))
	if len(made) != n {
		t.Fatalf("erlang made %d terms, want %d", len(made), n)
	}
	tags := map[byte]int{}
	back := make([][]byte, n)
	for i, f := range made {
		term, err := Decode(f, Limits{})
		if err != nil {
			t.Fatalf("term %d: %v\n% x", i, err, f)
		}
		var d Decoder
		if err := d.Reset(f, Limits{}); err != nil {
			t.Fatal(err)
		}
		tags[f[1]]++
		if d.Skip(); d.End() != nil {
			t.Fatalf("term %d: skip: %v\n% x", i, d.Err(), f)
		}
		if back[i], err = Encode(term); err != nil {
			t.Fatalf("term %d: %v", i, err)
		}
	}
	t.Logf("outermost tags: %v", tags)
	writeFrames(t, file("back"), back)
	if out := script("same", file("made"), file("back")); out != fmt.Sprintf("{ok,%d}", n) {
		t.Fatalf("erlang finds: %.2000s", out)
	}

	rng := rand.New(rand.NewPCG(7, 8))
	ours := make([]Term, n)
	enc := make([][]byte, n)
	for i := range ours {
		ours[i] = randomTerm(rng, rng.IntN(5))
		enc[i], _ = Encode(ours[i])
	}
	writeFrames(t, file("ours"), enc)
	script("echo", file("ours"), file("echo"))
	echoed := readFrames(t, file("echo"))
	if len(echoed) != n {
		t.Fatalf("erlang echoed %d terms, want %d", len(echoed), n)
	}
	for i, f := range echoed {
		got, err := Decode(f, Limits{})
		if err != nil {
			t.Fatalf("term %d: %v", i, err)
		}
		if got, want := canonical(got), canonical(ours[i]); !reflect.DeepEqual(got, want) {
			t.Fatalf("term %d came back as\n%#v\nwant\n%#v", i, got, want)
		}
	}
}

func readFrames(t *testing.T, name string) (frames [][]byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for len(b) > 0 {
		n := binary.BigEndian.Uint32(b)
		frames = append(frames, b[4:4+n])
		b = b[4+n:]
	}
	return frames
}

func writeFrames(t *testing.T, name string, frames [][]byte) {
	t.Helper()
	var b bytes.Buffer
	for _, f := range frames {
		b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(f))))
		b.Write(f)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// canonical orders maps and makes equal terms equal for reflect.
func canonical(t Term) Term {
	list := func(ts []Term) []Term {
		out := make([]Term, len(ts))
		for i, x := range ts {
			out[i] = canonical(x)
		}
		return out
	}
	switch t := t.(type) {
	case Tuple:
		return Tuple(list(t))
	case Seq:
		return Seq(list(t))
	case Improper:
		return Improper{list(t.Elems), canonical(t.Tail)}
	case Map:
		out := make(Map, len(t))
		for i, p := range t {
			out[i] = Pair{canonical(p.Key), canonical(p.Value)}
		}
		sort.Slice(out, func(i, j int) bool {
			a, _ := AppendTerm(nil, out[i].Key)
			b, _ := AppendTerm(nil, out[j].Key)
			return bytes.Compare(a, b) < 0
		})
		return out
	case Binary:
		return Binary(append([]byte{}, t...))
	}
	return t
}

func randomTerm(r *rand.Rand, depth int) Term {
	many := func(n int) []Term {
		ts := make([]Term, r.IntN(n))
		for i := range ts {
			ts[i] = randomTerm(r, depth-1)
		}
		return ts
	}
	if depth > 0 {
		switch r.IntN(8) {
		case 0:
			return Tuple(many(6))
		case 1:
			return Seq(many(6))
		case 2:
			m := Map{}
			for i := range r.IntN(5) {
				m = append(m, Pair{Tuple{int64(i), Atom("key")}, randomTerm(r, depth-1)})
			}
			return m
		case 3:
			return Improper{append(many(4), int64(1)), Atom("tail")}
		case 4:
			ts := make([]Term, 1+r.IntN(300))
			for i := range ts {
				ts[i] = int64(r.IntN(256))
			}
			return Seq(ts)
		case 5:
			ts := make([]Term, 250+r.IntN(20))
			for i := range ts {
				ts[i] = int64(i)
			}
			return Tuple(ts)
		}
	}
	bytes := func(n int) []byte {
		b := make([]byte, r.IntN(n))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	switch r.IntN(9) {
	case 0:
		return int64(r.IntN(256))
	case 1:
		return int64(r.Uint64()) >> r.IntN(64)
	case 2:
		n := new(big.Int).SetBytes(append([]byte{1}, bytes(400)...))
		n.Lsh(n, 64)
		if r.IntN(2) == 0 {
			n.Neg(n)
		}
		return n
	case 3:
		for {
			if f := math.Float64frombits(r.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
				return f
			}
		}
	case 4:
		return Atom(strings.Repeat([]string{"a", "é", "中", "😀"}[r.IntN(4)], r.IntN(255)))
	case 5:
		return Binary(bytes(100))
	case 6:
		b := append(bytes(20), 0)
		bits := 1 + r.IntN(7)
		b[len(b)-1] = byte(r.Uint32()) << (8 - bits)
		return Bits{b, bits}
	case 7:
		return Seq{}
	}
	return Map{}
}
