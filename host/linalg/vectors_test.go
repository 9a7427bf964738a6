package linalg

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// A vector is a line of testdata/linalg.txt.gz: what Nx.BinaryBackend makes of a matrix.
type vector struct {
	op, typ    string
	m, n       int
	opts       []string
	tensors    [][]byte
	complex    bool
	components int // bytes of a number, or of each half of a complex one
}

func vectors(t *testing.T) []vector {
	f, err := os.Open("testdata/linalg.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var vs []vector
	s := bufio.NewScanner(text)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		w := strings.Fields(s.Text())
		v := vector{op: w[0], typ: w[1], opts: strings.Split(w[4], ",")}
		v.m, _ = strconv.Atoi(w[2])
		v.n, _ = strconv.Atoi(w[3])
		for _, h := range w[5:] {
			b, err := hex.DecodeString(h)
			if err != nil {
				t.Fatal(err)
			}
			v.tensors = append(v.tensors, b)
		}
		v.complex = v.typ[0] == 'c'
		v.components = map[string]int{"f32": 4, "f64": 8, "c64": 4, "c128": 8}[v.typ]
		vs = append(vs, v)
	}
	return vs
}

func (v *vector) opt(i int) string { return v.opts[i] }

// floats reads numbers, the halves of complex ones in turn.
func floats[F Float](b []byte) []F {
	var x F
	size := binary.Size(x)
	out := make([]F, len(b)/size)
	for i := range out {
		if size == 4 {
			out[i] = F(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		} else {
			out[i] = F(math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])))
		}
	}
	return out
}

func (v *vector) complexes(k int) []complex128 {
	var parts []float64
	if v.components == 4 {
		for _, x := range floats[float32](v.tensors[k]) {
			parts = append(parts, float64(x))
		}
	} else {
		parts = floats[float64](v.tensors[k])
	}
	out := make([]complex128, len(parts)/2)
	for i := range out {
		out[i] = complex(parts[2*i], parts[2*i+1])
	}
	return out
}

// bytesOf writes real numbers as v's type, and complex ones likewise.
func (v *vector) bytesOf(x any) []byte {
	var b []byte
	put := func(f float64) {
		if v.components == 4 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(f)))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
		}
	}
	switch x := x.(type) {
	case []float32:
		for _, f := range x {
			put(float64(f))
		}
	case []float64:
		for _, f := range x {
			put(f)
		}
	case []complex128:
		for _, z := range x {
			put(real(z))
			put(imag(z))
		}
	}
	return b
}

// TestNxVectors holds every decomposition to Nx.BinaryBackend's results, bit for bit (but see close).
func TestNxVectors(t *testing.T) {
	bad := map[string]int{}
	count := map[string]int{}
	for line, v := range vectors(t) {
		var got []any
		switch {
		case v.complex:
			got = complexResults(&v)
		case v.components == 4:
			got = realResults[float32](&v)
		default:
			got = realResults[float64](&v)
		}
		key := v.op + " " + v.typ
		count[key]++
		want := v.tensors[len(v.tensors)-len(got):]
		for i, g := range got {
			if b := v.bytesOf(g); string(b) != string(want[i]) && !close(&v, b, want[i]) {
				if bad[key] == 0 {
					t.Errorf("line %d: %s %v {%d, %d}, result %d:\n got %v\nwant %v", line+1, key, v.opts, v.m, v.n, i, g, show(&v, want[i]))
				}
				bad[key]++
				break
			}
		}
	}
	for key, n := range bad {
		t.Errorf("%s: %d of %d differ", key, n, count[key])
	}
}

// close allows qr over c128 what the sines of two libraries may differ by.
func close(v *vector, got, want []byte) bool {
	if v.op != "qr" || v.typ != "c128" {
		return false
	}
	g, w := floats[float64](got), floats[float64](want)
	for i := range g {
		if math.Abs(g[i]-w[i]) > 1e-14*(1+math.Abs(w[i])) {
			return false
		}
	}
	return true
}

func show(v *vector, b []byte) string {
	if v.components == 4 {
		return fmt.Sprint(floats[float32](b))
	}
	return fmt.Sprint(floats[float64](b))
}

func (v *vector) Solving() Solving {
	return Solving{Upper: v.opt(0) == "false", Right: v.opt(1) == "false", Transpose: v.opt(2) == "transpose"}
}

func (v *vector) sweeps() (maxIter int, eps float64) {
	if v.opt(0) == "-" {
		return 1000, 1e-4
	}
	maxIter, _ = strconv.Atoi(v.opt(0))
	eps, _ = strconv.ParseFloat(v.opt(1), 64)
	return maxIter, eps
}

// permutation is P of lu.
func permutation(perm []int) []float64 {
	p := make([]float64, len(perm)*len(perm))
	for i, from := range perm {
		p[from*len(perm)+i] = 1
	}
	return p
}

func realResults[F Float](v *vector) []any {
	a := floats[F](v.tensors[0])
	switch v.op {
	case "cholesky":
		return []any{Cholesky(a, v.n)}
	case "eigh":
		maxIter, eps := v.sweeps()
		w, x := Eigh(a, v.n, maxIter, F(eps))
		return []any{w, x}
	case "lu":
		perm := LU(a, v.n)
		l, u := Split(a, v.n)
		return []any{permutation(perm), l, u}
	case "determinant":
		return []any{[]F{Determinant(a, v.n)}}
	case "solve":
		x, _ := Solve[F, F](a, widened(floats[F](v.tensors[1])), v.m, v.n)
		return []any{x}
	case "triangular_solve":
		x, _ := Triangular(a, floats[F](v.tensors[1]), v.m, v.n, v.Solving())
		return []any{x}
	case "qr":
		q, r := QR(a, v.m, v.n, v.opt(0) == "complete", F(QREps))
		return []any{q, r}
	case "svd":
		u, s, vt := SVD(a, v.m, v.n, v.opt(0) == "true", 100)
		return []any{u, s, vt}
	}
	panic(v.op)
}

func complexResults(v *vector) []any {
	f := Field{v.components == 4}
	a := v.complexes(0)
	switch v.op {
	case "cholesky":
		return []any{f.Cholesky(a, v.n)}
	case "eigh":
		maxIter, eps := v.sweeps()
		w, x := f.Eigh(a, v.n, maxIter, eps)
		if len(v.tensors[1]) == v.n*v.components { // of a single number
			return []any{[]float64{real(w[0])}, x}
		}
		return []any{w, x}
	case "lu":
		perm := f.LU(a, v.n)
		l, u := Split(a, v.n)
		var p []complex128
		for _, x := range permutation(perm) {
			p = append(p, complex(x, 0))
		}
		return []any{p, l, u}
	case "determinant":
		return []any{[]complex128{f.Determinant(a, v.n)}}
	case "solve":
		x, _ := f.Solve(a, v.complexes(1), v.m, v.n)
		return []any{x}
	case "triangular_solve":
		o := v.Solving()
		if v.opt(2) == "conjugate" {
			a = Conjugated(a)
		}
		x, _ := f.Triangular(a, v.complexes(1), v.m, v.n, o)
		return []any{x}
	case "qr":
		q, r := f.QR(a, v.m, v.n, v.opt(0) == "complete", QREps)
		return []any{q, r}
	}
	panic(v.op)
}
