package shaders

import (
	"encoding/binary"
	"math"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
)

// An epilogue sees every result once, at its flat index, in each form of kernel.
func TestEpilogue(t *testing.T) {
	relu := func(b *kernel.Builder, v, at kernel.Value) kernel.Value {
		if b.TypeOf(at) == kernel.I64 {
			at = b.Conv(kernel.Wrap, kernel.I32, at)
		}
		v = b.Add(v, b.Conv(kernel.SToF, kernel.F32, at))
		return b.Select(b.Cmp(kernel.FLt, v, b.Zero(kernel.F32)), b.Zero(kernel.F32), v)
	}
	for _, class := range []kernel.Class{kernel.CPU, kernel.Discrete} {
		for _, s := range [][3]int{{6, 20, 12}, {9, 7, 9}, {1, 1, 5000}, {3, 40, 3}, {8, 8, 700}, {40, 1, 20}} {
			m, n, k := s[0], s[1], s[2]
			target := kernel.Target{Class: class, F64: true, I64: true, MaxShared: 32768, MaxInvocations: 256, Num: kernel.Exact}
			bufs := [][]byte{make([]byte, 4*m*k), make([]byte, 4*k*n), make([]byte, 4*m*n)}
			value := func(slot, i int) float32 { return float32((i*7+slot*3)%11 - 5) }
			for slot := range 2 {
				for i := range len(bufs[slot]) / 4 {
					binary.LittleEndian.PutUint32(bufs[slot][4*i:], math.Float32bits(value(slot, i)))
				}
			}
			f32 := func(s ...int) Operand {
				return Operand{Spec: graph.Spec{Type: graph.F32, Shape: s}, Layout: graph.Contiguous(s)}
			}
			out := graph.Spec{Type: graph.F32, Shape: graph.Shape{m, n}}
			p, err := dot(target, f32(m, k), f32(k, n), out, graph.Attrs{ContractA: []int{1}, ContractB: []int{0}}, relu)
			if err != nil {
				t.Fatal(err)
			}
			for _, bytes := range p.Temps {
				bufs = append(bufs, make([]byte, bytes))
			}
			for _, l := range p.Launches {
				binds := make([]kernel.Bind, len(l.Args))
				for i, a := range l.Args {
					binds[i].Bits = a.Imm
					if a.Kind == Addr {
						binds[i].Buf = bufs[a.Slot][a.Offset:]
					}
				}
				if err := kernel.Run(l.Kernel, l.Grid, binds); err != nil {
					t.Fatalf("%v %v: %v", class, s, err)
				}
			}
			for o := range m * n {
				want := float32(o)
				for i := range k {
					want += value(0, o/n*k+i) * value(1, i*n+o%n)
				}
				want = max(want, 0)
				if got := math.Float32frombits(binary.LittleEndian.Uint32(bufs[2][4*o:])); got != want {
					t.Fatalf("%v %v: element %d: got %v, want %v", class, s, o, got, want)
				}
			}
		}
	}
}
