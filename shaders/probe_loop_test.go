package shaders

import (
	"encoding/binary"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
)

// The probe tells a device that goes round a loop as often as it should from one that does not.
func TestProbeLoops(t *testing.T) {
	target := kernel.Target{F64: true, I64: true, Num: kernel.Exact}
	if short, err := ProbeLoops(target, interpret(kernel.Exact)); err != nil || short {
		t.Errorf("the interpreter: %v, %v", short, err)
	}
	cut := func(k *kernel.Kernel, _ kernel.Target, _ [3]uint32, args []kernel.Bind) error {
		binary.LittleEndian.PutUint32(args[0].Buf, loopRounds/2)
		return nil
	}
	if short, err := ProbeLoops(target, cut); err != nil || !short {
		t.Errorf("a device that leaves after %d rounds: %v, %v", loopRounds, short, err)
	}
}

// A function of more elements than such a device goes round is none of its kernels'.
func TestShortLoopsAreLeftAlone(t *testing.T) {
	target := kernel.Target{Class: kernel.CPU, F64: true, I64: true, Mem8: true, Mem16: true, Num: kernel.Exact, MaxGroups: [3]uint32{65535, 65535, 65535}}
	plan := func(n int) error {
		x := Operand{Spec: graph.Spec{Type: graph.S32, Shape: graph.Shape{n}}, Layout: graph.Contiguous(graph.Shape{n})}
		init := Leaf{Operand: Operand{Spec: graph.Spec{Type: graph.S32}}, Const: true}
		f := &Region{
			Shape: graph.Shape{}, Outs: []int{2}, In: []Leaf{{Operand: Operand{Spec: graph.Spec{Type: graph.S32}}}, {Operand: Operand{Spec: graph.Spec{Type: graph.S32}}}},
			Nodes: []RegionNode{{Op: "add", Type: graph.S32, In: []int{0, 1}}},
		}
		_, err := ReduceFun(target, x, init, graph.Spec{Type: graph.S32, Shape: graph.Shape{}}, []int{0}, f)
		return err
	}
	if err := plan(100_000); err != nil {
		t.Error(err)
	}
	target.Num.ShortLoops = true
	if err := plan(10_000); err != nil {
		t.Error(err)
	}
	if err := plan(100_000); err == nil {
		t.Error("100,000 rounds are planned for a device that does 65,535")
	}
}
