package host_test

import (
	"encoding/binary"
	"math"
	"math/rand"
	"testing"

	"nxvk/graph"
	"nxvk/host"
	"nxvk/kernel"
	"nxvk/shaders"
)

var le = binary.LittleEndian

// kernelOf evaluates an elementwise operation of f64 by its kernel, in the interpreter: algorithms that share nothing
// with this package's, and are held to 300 bits in their own tests.
func kernelOf(t *testing.T, op graph.Op, xs ...[]byte) []byte {
	t.Helper()
	n := len(xs[0]) / 8
	s := graph.Spec{Type: graph.F64, Shape: graph.Shape{n}}
	target := kernel.Target{Class: kernel.CPU, F64: true, I64: true, Mem8: true, Mem16: true, MaxShared: 32 << 10, MaxInvocations: 1024,
		MaxGroups: [3]uint32{65535, 65535, 65535}, Subgroup: 8, Num: kernel.Exact}
	r := &shaders.Region{Shape: s.Shape, Outs: []int{len(xs)}}
	node := shaders.RegionNode{Op: op, Type: graph.F64}
	for i := range xs {
		r.In = append(r.In, shaders.Leaf{Operand: shaders.Operand{Spec: s, Layout: graph.Contiguous(s.Shape)}})
		node.In = append(node.In, i)
	}
	r.Nodes = []shaders.RegionNode{node}
	plan, err := shaders.Elementwise(target, r)
	if err != nil {
		t.Fatal(err)
	}
	bufs := append(append([][]byte{}, xs...), make([]byte, 8*n))
	for _, l := range plan.Launches {
		args := make([]kernel.Bind, len(l.Args))
		for i, a := range l.Args {
			if a.Kind == shaders.Addr {
				args[i].Buf = bufs[a.Slot][a.Offset:]
			} else {
				args[i].Bits = a.Imm
			}
		}
		if err := kernel.Run(l.Kernel, l.Grid, args); err != nil {
			t.Fatal(err)
		}
	}
	return bufs[len(xs)]
}

func ordinal(b uint64) int64 {
	if b>>63 == 1 {
		return -int64(b &^ (1 << 63))
	}
	return int64(b)
}

// f64 results of the functions agree with the kernels', which are held to an oracle: mostly bit for bit, and by
// more than a unit only where either takes rounded steps. mostly is the least share of equal bits.
func TestMathAgainstKernels(t *testing.T) {
	tests := map[graph.Op]struct {
		ulps   int64
		mostly float64
	}{
		"exp": {1, 0.99}, "expm1": {2, 0.99}, "log": {1, 0.99}, "log1p": {1, 0.99}, "sin": {1, 0.99}, "cos": {1, 0.99}, "tan": {1, 0.99}, "asin": {1, 0.99},
		"acos": {1, 0.99}, "atan": {1, 0.99}, "sinh": {2, 0.99}, "cosh": {1, 0.99}, "tanh": {2, 0.99}, "asinh": {1, 0.99}, "acosh": {2, 0.99}, "atanh": {2, 0.98},
		"cbrt": {1, 0.99}, "sigmoid": {2, 0.99}, "rsqrt": {0, 1}, "sqrt": {0, 1}, "erf": {1, 0.9}, "erfc": {3, 0.85}, "erf_inv": {2, 0.99}, "atan2": {1, 0.99}, "pow": {1, 0.99},
	}
	const n = 3000
	for op, test := range tests {
		r := rand.New(rand.NewSource(3)) // the same numbers for each, in whatever order they come
		var xs [2][]byte
		for k := range xs {
			for i := range n {
				var x float64
				switch i % 4 {
				case 0:
					x = math.Ldexp(1+r.Float64(), r.Intn(2098)-1074) // every exponent
				case 1:
					x = r.NormFloat64() * 10
				case 2:
					x = r.Float64()
				default:
					x = math.Ldexp(1+r.Float64(), r.Intn(24)-12)
				}
				if r.Intn(2) == 0 {
					x = -x
				}
				if i < len(special) {
					x = special[i]
					if k == 1 {
						x = special[len(special)-1-i]
					}
				}
				xs[k] = le.AppendUint64(xs[k], math.Float64bits(x))
			}
		}
		info, _ := graph.Lookup(op)
		in := xs[:info.Min]
		want := kernelOf(t, op, in...)
		s := graph.Spec{Type: graph.F64, Shape: graph.Shape{n}}
		var ts []host.Tensor
		for _, b := range in {
			ts = append(ts, host.Tensor{Spec: s, Data: b})
		}
		out, err := host.Run(&graph.Node{Op: op, Spec: s}, ts)
		if err != nil {
			t.Fatal(err)
		}
		equal, bad := 0, 0
		for i := range n {
			g, w := le.Uint64(out[0].Data[8*i:]), le.Uint64(want[8*i:])
			gf, wf := math.Float64frombits(g), math.Float64frombits(w)
			switch d := ordinal(g) - ordinal(w); {
			case g == w || gf != gf && wf != wf:
				equal++
			case gf != gf || wf != wf || d > test.ulps || d < -test.ulps || gf == wf:
				if bad++; bad <= 3 {
					x, y := math.Float64frombits(le.Uint64(xs[0][8*i:])), math.Float64frombits(le.Uint64(xs[1][8*i:]))
					t.Errorf("%s(%v %v) is %v (%#x), the kernel has %v (%#x)", op, x, y, gf, g, wf, w)
				}
			}
		}
		if share := float64(equal) / n; share < test.mostly {
			t.Errorf("%s: only %.3f are equal", op, share)
		} else {
			t.Logf("%s: %.4f are equal", op, share)
		}
	}
}

var special = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2, -2, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, -math.MaxFloat64, 5e-324, -5e-324, 2.2250738585072014e-308,
	709.78, 709.79, -745.1, -745.2, -708.5, 22, 0.25, -0.25, math.Pi / 2, math.Pi, 6381956970095103 * 0x1p797, 1e22, 3, -3, 1e300, -1e-300, 1 - 0x1p-53, 1 + 0x1p-52, 0.75, 1.5}
