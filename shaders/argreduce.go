package shaders

import (
	"fmt"

	"nxvk/graph"
	"nxvk/kernel"
)

// ArgReduce plans argmax or argmin of x along an axis, or over the flattened tensor (axis -1). Ties go
// to the lowest index, or the highest when high. A NaN is beyond every number, and the last one
// is the one found, as Nx.BinaryBackend has it.
func ArgReduce(t kernel.Target, op graph.Op, x Operand, out graph.Spec, axis int, high bool) (*Plan, error) {
	axes := []int{axis}
	if axis == -1 {
		axes = axes[:0]
		for k := range x.Shape {
			axes = append(axes, k)
		}
	}
	if op != graph.OpArgMax && op != graph.OpArgMin {
		return nil, fmt.Errorf("%s: not an argmax or argmin", op)
	}
	if !out.Type.Int() {
		return nil, fmt.Errorf("%s: the result is of type %v, not an integer", op, out.Type)
	}
	if err := checkReduce(t, op, x, out, axes); err != nil {
		return nil, err
	}
	kept, reduced := splitAxes(x, axes)
	wide := axesSize(reduced) >= 1<<31
	r := reduction{t: t, name: string(op), ins: []Operand{x}, out: out, kept: kept, reduced: reduced}
	at := graph.U32
	if wide {
		at = graph.U64
	}
	r.fold = indexedFold(x.Type, op == graph.OpArgMax, high, wide, func(b *kernel.Builder, acc []kernel.Value) kernel.Value {
		return ResizeInt(b, acc[1], at, RegOf(out.Type))
	})
	return r.plan()
}
