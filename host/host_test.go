package host

import (
	"math"
	"math/rand"
	"slices"
	"testing"

	"nxvk/graph"
)

// everyType are all types of the IR.
var everyType = []graph.Type{
	graph.U8, graph.U16, graph.U32, graph.U64, graph.S8, graph.S16, graph.S32, graph.S64, graph.F16, graph.BF16, graph.F32, graph.F64,
	graph.F8, graph.F8E4M3FN, graph.S2, graph.S4, graph.U2, graph.U4, graph.C64, graph.C128,
}

func spec(t graph.Type, dims ...int) graph.Spec {
	return graph.Spec{Type: t, Shape: append(graph.Shape{}, dims...)}
}

// of is a tensor of numbers.
func of(t graph.Type, shape graph.Shape, v ...float64) Tensor {
	return tensor(graph.Spec{Type: t, Shape: shape}, v, false)
}

func run(t *testing.T, n graph.Node, in ...Tensor) []Tensor {
	t.Helper()
	out, err := Run(&n, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func want(t *testing.T, got Tensor, v ...float64) {
	t.Helper()
	if !slices.EqualFunc(floats(got), v, func(a, b float64) bool { return a == b || a != a && b != b }) {
		t.Errorf("got %v, want %v", floats(got), v)
	}
}

// Every operation of the IR is there.
func TestEveryOperationIsThere(t *testing.T) {
	for _, op := range slices.Concat(graph.Binary, graph.Unary, []graph.Op{
		graph.OpConstant, graph.OpIota, graph.OpEye, graph.OpAsType, graph.OpBitcast, graph.OpReshape, graph.OpSqueeze, graph.OpBroadcast, graph.OpTranspose,
		graph.OpReverse, graph.OpPad, graph.OpSlice, graph.OpPutSlice, graph.OpConcat, graph.OpStack, graph.OpSelect, graph.OpClip, graph.OpSum, graph.OpProduct,
		graph.OpReduceMax, graph.OpReduceMin, graph.OpAll, graph.OpAny, graph.OpArgMax, graph.OpArgMin, graph.OpDot, graph.OpConv, graph.OpGather, graph.OpIndexedAdd,
		graph.OpIndexedPut, graph.OpTake, graph.OpTakeAlongAxis, graph.OpReduce, graph.OpWindowReduce, graph.OpWindowSum, graph.OpWindowProduct, graph.OpWindowMax,
		graph.OpWindowMin, graph.OpWindowScatterMax, graph.OpWindowScatterMin, graph.OpSort, graph.OpArgSort, graph.OpTopK, graph.OpCumulativeSum,
		graph.OpCumulativeProduct, graph.OpCumulativeMax, graph.OpCumulativeMin, graph.OpFFT, graph.OpIFFT, graph.OpFFT2, graph.OpIFFT2, graph.OpRFFT, graph.OpIRFFT,
		graph.OpLogicalNot, graph.OpPhase, graph.OpAllClose, graph.OpTriangularSolve, graph.OpCholesky, graph.OpSolve, graph.OpLU, graph.OpQR, graph.OpSVD,
		graph.OpEigh, graph.OpDeterminant,
	}) {
		if !Has(op) {
			t.Errorf("no %s", op)
		}
	}
}

// Conversions between all real types are graph.ConvertBits's, on all bits of narrow types and random ones of wide.
func TestConversions(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for _, from := range graph.Types {
		if from.Complex() {
			continue
		}
		var in Tensor
		if from.Size() <= 2 {
			in = New(spec(from, 1<<(8*from.Size())))
			for i := range in.Shape[0] {
				for b := range from.Size() {
					in.Data[i*from.Size()+b] = byte(i >> (8 * b))
				}
			}
		} else {
			in = New(spec(from, 2000))
			r.Read(in.Data)
			if from.Float() { // moderate ones too
				for i := range 1000 {
					storeFloats(in.Data, from, i, []float64{math.Ldexp(r.NormFloat64(), r.Intn(140)-70)})
				}
			}
		}
		for _, to := range graph.Types {
			if to.Complex() {
				continue
			}
			out := run(t, graph.Node{Op: graph.OpAsType, Spec: graph.Spec{Type: to, Shape: in.Shape}}, in)[0]
			for i := range in.Shape[0] {
				b, got := bitsAt(in, i), bitsAt(out, i)
				w := graph.ConvertBits(b, from, to)
				if got != w && !(to.Float() && nan(got, to) && nan(w, to)) {
					t.Fatalf("%v %#x to %v is %#x, want %#x", from, b, to, got, w)
				}
			}
		}
	}
}

func nan(b uint64, t graph.Type) bool { return math.IsNaN(graph.ToFloat(b, t)) }

func bitsAt(x Tensor, i int) uint64 {
	var b [8]byte
	copy(b[:], x.Data[i*x.Type.Size():(i+1)*x.Type.Size()])
	return le.Uint64(b[:])
}

func TestIntegersWrapAndCompareByValue(t *testing.T) {
	u := New(spec(graph.U64, 2))
	storeInts(u.Data, graph.U64, 0, []int64{-1, 1 << 53}, true)
	s := New(spec(graph.S64, 2))
	storeInts(s.Data, graph.S64, 0, []int64{-1, 1<<53 + 1}, false)
	want(t, run(t, graph.Node{Op: "greater", Spec: spec(graph.U8, 2)}, u, s)[0], 1, 0)
	want(t, run(t, graph.Node{Op: "equal", Spec: spec(graph.U8, 2)}, s, of(graph.F64, graph.Shape{2}, -1, 1<<53))[0], 1, 0)
	want(t, run(t, graph.Node{Op: "less", Spec: spec(graph.U8, 2)}, of(graph.F64, graph.Shape{2}, -1, 1<<53), s)[0], 0, 1)
	want(t, run(t, graph.Node{Op: "add", Spec: spec(graph.U8, 2)}, of(graph.U8, graph.Shape{2}, 200, 100), of(graph.U8, graph.Shape{}, 100))[0], 44, 200)
	want(t, run(t, graph.Node{Op: "quotient", Spec: spec(graph.S32, 4)}, of(graph.S32, graph.Shape{4}, -7, 7, 1, -7), of(graph.S32, graph.Shape{4}, 2, -2, 0, -2))[0], -3, -3, 0, 3)
	want(t, run(t, graph.Node{Op: "remainder", Spec: spec(graph.S32, 4)}, of(graph.S32, graph.Shape{4}, -7, 7, 1, -7), of(graph.S32, graph.Shape{4}, 2, -2, 0, -2))[0], -1, 1, 0, -1)
	want(t, run(t, graph.Node{Op: "count_leading_zeros", Spec: spec(graph.U4, 3)}, of(graph.U4, graph.Shape{3}, 0, 1, 8))[0], 4, 3, 0)
}

func TestFamilies(t *testing.T) {
	x := of(graph.F32, graph.Shape{2, 3}, 3, 1, 2, 9, 7, 8)
	ones := []int{1, 1}
	i32 := func(v ...float64) Tensor { return of(graph.S32, graph.Shape{len(v)}, v...) }
	want(t, run(t, graph.Node{Op: graph.OpSort, Spec: x.Spec, Attrs: graph.Attrs{Axis: 0, Desc: true}}, x)[0], 9, 7, 8, 3, 1, 2)
	want(t, run(t, graph.Node{Op: graph.OpArgSort, Spec: spec(graph.S32, 2, 3), Attrs: graph.Attrs{Axis: 1}}, x)[0], 1, 2, 0, 1, 2, 0)
	top := run(t, graph.Node{Op: graph.OpTopK, Spec: spec(graph.F32, 2, 2), More: []graph.Spec{spec(graph.S32, 2, 2)}}, x)
	want(t, top[0], 3, 2, 9, 8)
	want(t, top[1], 0, 2, 0, 2)
	want(t, run(t, graph.Node{Op: graph.OpCumulativeSum, Spec: x.Spec, Attrs: graph.Attrs{Axis: 1, Reverse: true}}, x)[0], 6, 3, 2, 24, 15, 8)
	want(t, run(t, graph.Node{Op: graph.OpTake, Spec: spec(graph.F32, 2, 2), Attrs: graph.Attrs{Axis: 1}}, x, i32(2, 0))[0], 2, 3, 8, 9)
	want(t, run(t, graph.Node{Op: graph.OpTakeAlongAxis, Spec: spec(graph.F32, 1, 3), Attrs: graph.Attrs{Axis: 0}}, x, of(graph.S32, graph.Shape{1, 3}, 1, 0, 1))[0], 9, 1, 8)
	want(t, run(t, graph.Node{Op: graph.OpGather, Spec: spec(graph.F32, 2), Attrs: graph.Attrs{Axes: []int{0, 1}}}, x, of(graph.S32, graph.Shape{2, 2}, 1, 2, 0, 0))[0], 8, 3)
	want(t, run(t, graph.Node{Op: graph.OpIndexedAdd, Spec: x.Spec, Attrs: graph.Attrs{Axes: []int{1}}}, x, of(graph.S32, graph.Shape{2, 1}, 1, 1), of(graph.F32, graph.Shape{2, 2}, 10, 20, 100, 200))[0],
		3, 111, 2, 9, 227, 8)
	want(t, run(t, graph.Node{Op: graph.OpIndexedPut, Spec: x.Spec, Attrs: graph.Attrs{Axes: []int{0}}}, x, of(graph.S32, graph.Shape{2, 1}, 1, 1), of(graph.F32, graph.Shape{2, 3}, 1, 2, 3, 4, 5, 6))[0],
		3, 1, 2, 4, 5, 6)
	pad := []graph.PadDim{{}, {Lo: 1}}
	win := graph.Attrs{Window: []int{2, 2}, Strides: ones, Dilation: ones, Pad: pad}
	want(t, run(t, graph.Node{Op: graph.OpWindowSum, Spec: spec(graph.F32, 1, 3), Attrs: win}, x)[0], 12, 20, 18)
	want(t, run(t, graph.Node{Op: graph.OpWindowMax, Spec: spec(graph.F32, 1, 3), Attrs: win}, x)[0], 9, 9, 8)
	scatter := graph.Attrs{Window: []int{2, 1}, Strides: ones, Pad: []graph.PadDim{{}, {}}}
	want(t, run(t, graph.Node{Op: graph.OpWindowScatterMax, Spec: x.Spec, Attrs: scatter}, x, of(graph.F32, graph.Shape{1, 3}, 1, 2, 3), of(graph.F32, graph.Shape{}, 10))[0], 10, 10, 10, 11, 12, 13)
	f := &graph.Graph{Params: []graph.Param{{Spec: spec(graph.F32)}, {Spec: spec(graph.F32)}},
		Nodes: []graph.Node{{Op: "multiply", In: []graph.Ref{1, 1}, Spec: spec(graph.F32)}, {Op: "subtract", In: []graph.Ref{0, 2}, Spec: spec(graph.F32)}}, Outs: []graph.Ref{3}}
	want(t, run(t, graph.Node{Op: graph.OpReduce, Spec: spec(graph.F32, 2), Attrs: graph.Attrs{Axes: []int{1}, Fun: f}}, x, of(graph.F32, graph.Shape{}, 1))[0], 2-9, 8-(7-64.)*(7-64))
	want(t, run(t, graph.Node{Op: graph.OpDot, Spec: spec(graph.F32, 2, 2), Attrs: graph.Attrs{ContractA: []int{1}, ContractB: []int{1}}}, x, x)[0], 14, 50, 50, 194)
	cv := &graph.Conv{InputDilation: []int{1}, KernelDilation: []int{2}, FeatureGroups: 1, BatchGroups: 1, InputPerm: []int{0, 1, 2}, KernelPerm: []int{0, 1, 2}, OutputPerm: []int{0, 1, 2}}
	want(t, run(t, graph.Node{Op: graph.OpConv, Spec: spec(graph.F32, 1, 1, 4), Attrs: graph.Attrs{Strides: []int{1}, Pad: []graph.PadDim{{Lo: 1}}, Conv: cv}},
		of(graph.F32, graph.Shape{1, 1, 5}, 1, 2, 3, 4, 5), of(graph.F32, graph.Shape{1, 1, 2}, 1, 10))[0], 20, 31, 42, 53)
	want(t, run(t, graph.Node{Op: graph.OpPad, Spec: spec(graph.F32, 2, 6), Attrs: graph.Attrs{Pad: []graph.PadDim{{}, {Lo: -1, Hi: 2, Interior: 1}}}}, x, of(graph.S32, graph.Shape{}, 5))[0],
		5, 1, 5, 2, 5, 5, 5, 7, 5, 8, 5, 5)
	want(t, run(t, graph.Node{Op: graph.OpArgMax, Spec: spec(graph.S32), Attrs: graph.Attrs{Axis: -1}}, of(graph.F32, graph.Shape{4}, 1, math.NaN(), math.NaN(), 3))[0], 2)
	want(t, run(t, graph.Node{Op: graph.OpAllClose, Spec: spec(graph.U8), Attrs: graph.Attrs{RTol: 1e-5, ATol: 1e-8}}, x, x)[0], 1)
	_, err := Run(&graph.Node{Op: graph.OpTake, Spec: spec(graph.F32, 2, 1), Attrs: graph.Attrs{Axis: 1}}, []Tensor{x, i32(3)})
	if v, ok := err.(*ValueError); !ok || v.Reason != OutOfRange {
		t.Errorf("an index out of bounds: %v", err)
	}
}

// Transforms of all lengths against their definition, and back.
func TestFFT(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 30, 61, 67, 97, 128, 134, 211, 256, 1000} {
		x := make([]complex128, n)
		for i := range x {
			x[i] = complex(r.NormFloat64(), r.NormFloat64())
		}
		in := tensor(spec(graph.C128, n), x, false)
		node := graph.Node{Op: graph.OpFFT, Spec: in.Spec, Attrs: graph.Attrs{Length: n}}
		got := run(t, node, in)[0]
		for k, z := range complexes(got) {
			var sum complex128
			for i, v := range x {
				sum += mulComplex(v, root(i*k, n))
			}
			if absComplex(z-sum) > 1e-13*float64(n) {
				t.Fatalf("length %d: element %d is %v, want %v", n, k, z, sum)
			}
		}
		node.Op = graph.OpIFFT
		for k, z := range complexes(run(t, node, got)[0]) {
			if absComplex(z-x[k]) > 1e-14*float64(1+n) {
				t.Fatalf("length %d, back: element %d is %v, want %v", n, k, z, x[k])
			}
		}
		half := run(t, graph.Node{Op: graph.OpRFFT, Spec: spec(graph.C128, n/2+1), Attrs: graph.Attrs{Length: n}}, tensor(spec(graph.F64, n), x, false))[0]
		back := run(t, graph.Node{Op: graph.OpIRFFT, Spec: spec(graph.F64, n), Attrs: graph.Attrs{Length: n}}, half)[0]
		for k, v := range floats(back) {
			if math.Abs(v-real(x[k])) > 1e-14*float64(1+n) {
				t.Fatalf("length %d, half: element %d is %v, want %v", n, k, v, real(x[k]))
			}
		}
	}
}

// Operations that move elements, over layouts of all kinds, against an element-by-element walk.
func TestLayouts(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for range 300 {
		s := make(graph.Shape, r.Intn(5))
		l := graph.Layout{Offset: 3, Strides: make([]int, len(s))}
		n := 1
		for _, a := range r.Perm(len(s)) {
			s[a] = 1 + r.Intn(5)
			l.Strides[a] = n
			n *= s[a] + r.Intn(2)
			switch r.Intn(4) {
			case 0:
				l.Offset += (s[a] - 1) * l.Strides[a]
				l.Strides[a] = -l.Strides[a]
			case 1:
				l.Strides[a] = 0
			}
		}
		typ := everyType[r.Intn(len(everyType))]
		x := Tensor{Spec: graph.Spec{Type: typ, Shape: s}, Layout: l, Data: make([]byte, (n+5)*typ.Size())}
		r.Read(x.Data)
		perm := r.Perm(len(s))
		to := graph.Spec{Type: typ}
		for _, a := range perm {
			to.Shape = append(to.Shape, s[a])
		}
		out := run(t, graph.Node{Op: graph.OpTranspose, Spec: to, Attrs: graph.Attrs{Axes: perm}}, x)[0]
		at := make([]int, len(s))
		for k := range to.Shape.Size() {
			indexOf(at, to.Shape, k)
			off := l.Offset
			for i, a := range perm {
				off += at[i] * l.Strides[a]
			}
			size := typ.Size()
			if !slices.Equal(out.Data[k*size:(k+1)*size], x.Data[off*size:(off+1)*size]) {
				t.Fatalf("%v %v by %v: element %d differs", x.Spec, l, perm, k)
			}
		}
	}
}
