package shaders

import (
	"fmt"

	"nxvk/graph"
	"nxvk/kernel"
)

// SlotAlign is log2 of the alignment in bytes that every slot's address has. Whoever binds buffers
// to a Program keeps it.
const SlotAlign = 6

// maker builds a kernel and, beside it, the arguments of its launch, so that the two cannot disagree.
type maker struct {
	*kernel.Builder
	args   []Arg
	access []Access
}

func newMaker(name string, t kernel.Target, local int) *maker {
	return &maker{Builder: kernel.NewBuilder(name, t, [3]uint32{uint32(local), 1, 1})}
}

// pointer declares a pointer to tensor o of an index map, at slot. vec elements are moved at a time.
func (m *maker) pointer(name string, mem kernel.Mem, x *IndexMap, o, slot int, t graph.Type, vec int, write bool) kernel.Ptr {
	m.args = append(m.args, x.Addr(slot, o, t))
	m.access = append(m.access, x.Access(slot, o, t, write))
	return m.Pointer(name, mem, write, log2(vec*t.Size()))
}

// scalar declares a scalar argument.
func (m *maker) scalar(name string, t kernel.Type, a Arg) kernel.Value {
	m.args = append(m.args, a)
	return m.ScalarArg(name, t)
}

// index declares an index map.
func (m *maker) index(x *IndexMap) *Index {
	m.args = append(m.args, x.Args()...)
	return x.Declare(m.Builder)
}

// divisor declares a divisor.
func (m *maker) divisor(name string, d int, t kernel.Type) Divisor {
	m.args = append(m.args, DivisorArgs(d, t)...)
	return DeclareDivisor(m.Builder, name, t)
}

// launch ends the kernel.
func (m *maker) launch(grid [3]uint32) Launch {
	k := m.Build()
	if len(k.Args) != len(m.args) {
		panic(fmt.Sprintf("shaders: %s declares %d arguments, its launch has %d", k.Name, len(k.Args), len(m.args)))
	}
	return Launch{Kernel: k, Grid: grid, Args: m.args, Access: m.access}
}

func log2(n int) uint8 {
	k := uint8(0)
	for 1<<k < n {
		k++
	}
	return k
}

// registerBits are the bits of a register that holds the element of t with the given bits.
func registerBits(bits uint64, t graph.Type) uint64 {
	switch {
	case smallFloat(t):
		return graph.ConvertBits(bits, t, graph.F32)
	case t.Signed() && t.Size() < 4:
		return graph.ConvertBits(bits, t, graph.S32)
	}
	return bits
}

// Unsupported is the error for what a device cannot do: the host must.
type Unsupported struct {
	Op   graph.Op
	Type graph.Type
	Why  string
}

func (e *Unsupported) Error() string {
	return fmt.Sprintf("%s of %v: %s", e.Op, e.Type, e.Why)
}

// needMove is needTypes for what only moves elements where all of ts are one type: it need not compute with it.
func needMove(d kernel.Target, op graph.Op, ts ...graph.Type) error {
	for _, t := range ts[1:] {
		if t != ts[0] {
			return needTypes(d, op, ts...)
		}
	}
	if ts[0].Size() > 8 { // no word holds it: its parts are moved, or it is computed
		return needTypes(d, op, ts...)
	}
	if !Has(d, bitsType(ts[0])) {
		return &Unsupported{op, ts[0], "the device lacks the type"}
	}
	return nil
}

// needTypes wants the device to hold all of ts.
func needTypes(d kernel.Target, op graph.Op, ts ...graph.Type) error {
	for _, t := range ts {
		if !Has(d, t) {
			return &Unsupported{op, t, "the device lacks the type"}
		}
	}
	return nil
}
