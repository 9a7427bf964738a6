package shaders

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
)

// runPlan runs a plan on the interpreter: slots are the operands, the result, then temporaries.
func runPlan(t *testing.T, p *Plan, operands [][]byte, result int) []byte {
	t.Helper()
	slots := append(append([][]byte(nil), operands...), make([]byte, result))
	for _, n := range p.Temps {
		slots = append(slots, make([]byte, n))
	}
	for _, l := range p.Launches {
		args := make([]kernel.Bind, len(l.Args))
		for i, a := range l.Args {
			switch a.Kind {
			case Addr:
				args[i].Buf = slots[a.Slot][a.Offset:]
			case Imm:
				args[i].Bits = a.Imm
			default:
				t.Fatal("a by-value operand")
			}
		}
		if err := kernel.Run(l.Kernel, l.Grid, args); err != nil {
			t.Fatalf("%v\n%s", err, l.Kernel.Text())
		}
	}
	return slots[len(operands)]
}

// TestWide runs each family of kernels with 64-bit indices on tensors that need none: the results must be
// those of 32-bit indices.
func TestWide(t *testing.T) {
	target := kernel.Target{Class: kernel.CPU, F64: true, I64: true, Mem8: true, Mem16: true, MaxShared: 32 << 10, MaxInvocations: 1024, MaxGroups: [3]uint32{65535, 65535, 65535}, Num: kernel.Exact}
	spec := func(dims ...int) graph.Spec { return graph.Spec{Type: graph.U32, Shape: dims} }
	data := make([]byte, 4*256)
	for i := 0; i < 256; i++ {
		binary.LittleEndian.PutUint32(data[4*i:], uint32(i*i+1))
	}
	start := make([]byte, 4)
	start[0] = 2
	x := Operand{Spec: spec(5, 7, 3), Layout: graph.Layout{Offset: 104, Strides: []int{-21, 1, -7}}}
	y := Operand{Spec: spec(7, 3), Layout: graph.Layout{Offset: 1, Strides: []int{4, 1}}}
	s := Leaf{Operand: Operand{Spec: spec()}}
	x.Layout.Offset = 4*21 + 2*7
	cases := map[string]func() (*Plan, error){
		"add": func() (*Plan, error) {
			return Elementwise(target, &Region{Shape: x.Shape, In: []Leaf{{Operand: x}, {Operand: y}}, Nodes: []RegionNode{{Op: "add", In: []int{0, 1}, Type: graph.U32}}, Outs: []int{2}})
		},
		"add, in order": func() (*Plan, error) {
			z := Operand{Spec: x.Spec, Layout: graph.Contiguous(x.Shape)}
			return Elementwise(target, &Region{Shape: x.Shape, In: []Leaf{{Operand: z}, {Operand: z}}, Nodes: []RegionNode{{Op: "multiply", In: []int{0, 1}, Type: graph.U32}}, Outs: []int{2}})
		},
		"slice": func() (*Plan, error) {
			return Slice(target, x, []Leaf{s, s, s}, spec(2, 3, 3), []int{3, 5, 3}, []int{2, 2, 1})
		},
		"pad": func() (*Plan, error) {
			return Pad(target, x, s, spec(8, 7, 5), []graph.PadDim{{Lo: -1, Hi: 0, Interior: 1}, {}, {Lo: 1, Hi: 1}})
		},
		"put_slice": func() (*Plan, error) {
			u := Operand{Spec: spec(2, 7, 2), Layout: graph.Contiguous(graph.Shape{2, 7, 2})}
			return PutSlice(target, x, u, []Leaf{s, s, s}, spec(5, 7, 3))
		},
		"concatenate": func() (*Plan, error) { return Concat(target, []Operand{x, x}, spec(5, 14, 3), 1) },
		"iota":        func() (*Plan, error) { return Iota(target, spec(5, 7, 3), 1) },
		"gather": func() (*Plan, error) {
			return Gather(target, x, Operand{Spec: spec(3, 2), Layout: graph.Layout{Strides: []int{0, 0}}}, spec(3, 7), []int{0, 2})
		},
		"take_along_axis": func() (*Plan, error) {
			return TakeAlongAxis(target, x, Operand{Spec: spec(5, 2, 3), Layout: graph.Layout{Strides: []int{0, 0, 0}}}, spec(5, 2, 3), 1)
		},
		"indexed_add": func() (*Plan, error) {
			u := Operand{Spec: spec(20, 5, 3), Layout: graph.Contiguous(graph.Shape{20, 5, 3})}
			return IndexedAdd(target, x, Operand{Spec: spec(20, 1), Layout: graph.Layout{Strides: []int{0, 0}}}, u, spec(5, 7, 3), []int{1})
		},
		"eye": func() (*Plan, error) { return Eye(target, spec(5, 7, 3)) },
	}
	slots := map[string]int{"add": 2, "add, in order": 2, "slice": 4, "pad": 2, "put_slice": 5, "concatenate": 2, "gather": 2, "take_along_axis": 2, "indexed_add": 3}
	for name, make := range cases {
		operands := [][]byte{data, data, start, start, start}[:slots[name]]
		if name == "slice" {
			operands = [][]byte{data, start, start, start}
		}
		switch name {
		case "gather", "take_along_axis":
			operands = [][]byte{data, start}
		case "indexed_add":
			operands = [][]byte{data, start, slices.Repeat(data, 2)}
		}
		var results [2][]byte
		for i, from := range []int{1 << 31, 2} {
			saved := wideFrom
			wideFrom = from
			p, err := make()
			wideFrom = saved
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := p.Launches[0].Kernel.Args[0].Type == kernel.I64; got != (i == 1) {
				t.Fatalf("%s: indices of 64 bits: %v", name, got)
			}
			results[i] = runPlan(t, p, operands, 4*300)
		}
		if !bytes.Equal(results[0], results[1]) {
			t.Errorf("%s: results differ with 64-bit indices", name)
		}
	}
}
