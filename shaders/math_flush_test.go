package shaders_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"nxvk/kernel"
	"nxvk/shaders"
)

// On a device that flushes binary32 subnormals, results that are normal are the same: no step on the
// way needs a subnormal.
func TestMathWithoutSubnormals(t *testing.T) {
	const groups = 64
	x := bytesOf(rand.New(rand.NewPCG(4, 4)), kernel.F32, groups*64, true)
	word := binary.LittleEndian.Uint32
	for _, slow := range []bool{false, true} {
		for _, op := range mathOps {
			var out [2][]byte
			for i, flush := range []bool{false, true} {
				num := kernel.Exact
				num.FlushF32 = flush
				target := kernel.Target{F64: true, I64: true, SlowF64: slow, Num: num}
				k := mapKernel(string(op), target, kernel.F32, 1, func(b *kernel.Builder, x []kernel.Value) kernel.Value { return shaders.Func(b, op, x[0]) })
				out[i] = make([]byte, len(x))
				m := kernel.Machine{Num: num}
				if err := m.Run(k, [3]uint32{groups, 1, 1}, []kernel.Bind{{Buf: out[i]}, {Buf: x}}); err != nil {
					t.Fatal(err)
				}
			}
			for i := 0; i < len(x); i += 4 {
				keeps, flushes := word(out[0][i:]), word(out[1][i:])
				subnormal, nan := keeps&0x7f800000 == 0, keeps&0x7fffffff > 0x7f800000
				if keeps != flushes && !subnormal && !nan {
					t.Errorf("%s(%v), slow f64 %v: %v, on a device that flushes %v", op, math.Float32frombits(word(x[i:])), slow,
						math.Float32frombits(keeps), math.Float32frombits(flushes))
					break
				}
			}
		}
	}
}
