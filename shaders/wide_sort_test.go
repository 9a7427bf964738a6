package shaders

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
)

// TestWideRows runs scans, sorts and transforms with 64-bit indices on tensors that need none.
func TestWideRows(t *testing.T) {
	defer func(n int) { wideFrom = n }(wideFrom)
	const n = 2300
	shape := graph.Shape{n, 2}
	x := Operand{Spec: graph.Spec{Type: graph.F32, Shape: shape}, Layout: graph.Layout{Offset: 2*n - 2, Strides: []int{-2, 1}}}
	data := make([]byte, 8*n)
	for i := range 2 * n {
		binary.LittleEndian.PutUint32(data[4*i:], uint32(graph.FromFloat(float64(i*i%1009)-400, graph.F32)))
	}
	of := func(ty graph.Type) graph.Spec { return graph.Spec{Type: ty, Shape: shape} }
	for _, class := range []kernel.Class{kernel.CPU, kernel.Discrete} {
		target := kernel.Target{Class: class, F64: true, I64: true, Mem8: true, Mem16: true, MaxShared: 32 << 10, MaxInvocations: 256, MaxGroups: [3]uint32{65535, 65535, 65535}, Num: kernel.Exact}
		cases := map[string]struct {
			bytes int
			plan  func() (*Plan, error)
		}{
			"scan":          {8 * n, func() (*Plan, error) { return Scan(target, graph.OpCumulativeSum, x, of(graph.F32), 0, true, 0) }},
			"sort":          {8 * n, func() (*Plan, error) { return Sort(target, x, of(graph.F32), 0, false) }},
			"sort of pairs": {8 * n, func() (*Plan, error) { return Sort(target, x, of(graph.F32), 1, true) }},
			"argsort":       {16 * n, func() (*Plan, error) { return ArgSort(target, x, of(graph.S64), 0, true) }},
			"fft":           {16 * n, func() (*Plan, error) { return FFT(target, graph.OpFFT, x, of(graph.C64), 0, n, 1e-10) }},
			"fft of a prime": {16 * 67, func() (*Plan, error) {
				return FFT(target, graph.OpIFFT, x, graph.Spec{Type: graph.C64, Shape: graph.Shape{67, 2}}, 0, 67, 1e-10)
			}},
			"top_k": {4 * n * 1, func() (*Plan, error) {
				spec := graph.Spec{Type: graph.F32, Shape: graph.Shape{n, 1}}
				p, err := TopK(target, x, spec, graph.Spec{Type: graph.S32, Shape: spec.Shape})
				return p, err
			}},
		}
		for name, c := range cases {
			t.Run(fmt.Sprint(class, " ", name), func(t *testing.T) {
				run := func() []byte {
					p, err := c.plan()
					if err != nil {
						t.Fatal(err)
					}
					p.Temps = append([]uint64(nil), p.Temps...)
					slots := [][]byte{data, make([]byte, c.bytes)}
					if name == "top_k" {
						slots = append(slots, make([]byte, c.bytes))
					}
					for _, b := range p.Temps {
						slots = append(slots, make([]byte, b))
					}
					slots = append(slots, p.Consts...)
					for _, l := range p.Launches {
						args := make([]kernel.Bind, len(l.Args))
						for i, a := range l.Args {
							args[i].Bits = a.Imm
							if a.Kind == Addr {
								args[i].Buf = slots[a.Slot][a.Offset:]
							}
						}
						if err := kernel.Run(l.Kernel, l.Grid, args); err != nil {
							t.Fatalf("%v\n%s", err, l.Kernel.Text())
						}
					}
					return slots[1]
				}
				wideFrom = 1 << 31
				narrow := run()
				wideFrom = 1
				if wide := run(); !bytes.Equal(wide, narrow) {
					t.Error("other results with 64-bit indices")
				}
			})
		}
	}
}
