package devtest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
	"nxvk/shaders"
	"nxvk/spirv"
	"nxvk/vkrt"
)

// unwritten fills results and temporaries before a run, so that an element that a plan forgets shows.
const unwritten = 0xa5

// RunPlan runs a plan on the device and in the interpreter, and yields the results of both. operands
// are the bytes of each operand's buffer (of a by-value operand: of its one number); results are the
// sizes in bytes of the results' buffers. The interpreter gives each launch only the bytes that its
// Access lists, up to their ends, so that a range that the plan understates is an error.
//
// It fails the test where either cannot run the plan; comparing is the caller's: see Agree.
func RunPlan(tb testing.TB, plan *shaders.Plan, operands [][]byte, results ...int) (dev, interp [][]byte) {
	tb.Helper()
	d := Open(tb)
	interp, err := Interpret(d.Machine(), plan, operands, results...)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range plan.Launches {
		d.Validate(tb, plan.Launches[i].Kernel)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if dev, err = d.runPlan(plan, operands, results); err != nil {
		tb.Fatal(err)
	}
	d.listen(tb)
	return dev, interp
}

// Agree is RunPlan for results of the given types and shapes, dense from their buffers' starts. It
// fails the test unless both give the same, bit for bit, but that any NaN equals any NaN; and yields
// what the device gave.
func Agree(tb testing.TB, plan *shaders.Plan, operands [][]byte, results ...graph.Spec) [][]byte {
	tb.Helper()
	sizes := make([]int, len(results))
	for i, s := range results {
		sizes[i] = s.Shape.Size() * s.Type.Size()
	}
	dev, interp := RunPlan(tb, plan, operands, sizes...)
	for i, s := range results {
		if err := SameAs(s.Type, dev[i], interp[i]); err != nil {
			tb.Errorf("result %d, %v: device and interpreter differ: %v", i, s, err)
		}
	}
	return dev
}

// Plan runs a plan on the device alone, for what is too large to interpret.
func (d *Device) Plan(tb testing.TB, plan *shaders.Plan, operands [][]byte, results ...int) [][]byte {
	tb.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	out, err := d.runPlan(plan, operands, results)
	if err != nil {
		tb.Fatal(err)
	}
	d.listen(tb)
	return out
}

// Interpret runs a plan in the interpreter and yields its results. It needs no device.
func Interpret(m *kernel.Machine, plan *shaders.Plan, operands [][]byte, results ...int) ([][]byte, error) {
	slots := fillSlots(plan, operands, results)
	for i := range plan.Launches {
		l := &plan.Launches[i]
		if len(l.Args) != len(l.Kernel.Args) {
			return nil, fmt.Errorf("launch %d: %d arguments, kernel %s has %d", i, len(l.Args), l.Kernel.Name, len(l.Kernel.Args))
		}
		binds := make([]kernel.Bind, len(l.Args))
		for j, a := range l.Args {
			if (a.Kind == shaders.Addr) != (l.Kernel.Args[j].Kind == kernel.ArgPtr) {
				return nil, fmt.Errorf("launch %d: argument %d of kernel %s is of the other kind", i, j, l.Kernel.Name)
			}
			if a.Kind != shaders.Addr {
				binds[j].Bits = word(a, l.Kernel.Args[j].Type, operands)
				continue
			}
			hi := uint64(0)
			for _, acc := range l.Access {
				if acc.Slot == a.Slot && (acc.Write || !l.Kernel.Args[j].Write) {
					hi = max(hi, acc.Hi)
				}
			}
			if n := uint64(len(slots[a.Slot])); hi > n || a.Offset > n {
				return nil, fmt.Errorf("launch %d: slot %d has %d bytes, access to %d, offset %d", i, a.Slot, n, hi, a.Offset)
			}
			binds[j].Buf = slots[a.Slot][min(a.Offset, hi):hi]
		}
		if err := m.Run(l.Kernel, l.Grid, binds); err != nil {
			return nil, fmt.Errorf("launch %d: %w", i, err)
		}
	}
	return slots[len(operands) : len(operands)+len(results)], nil
}

// fillSlots makes the buffers of a plan: copies of the operands, results, temporaries and tables.
func fillSlots(plan *shaders.Plan, operands [][]byte, results []int) [][]byte {
	var slots [][]byte
	for _, o := range operands {
		slots = append(slots, slices.Clone(o))
	}
	for _, n := range results {
		slots = append(slots, slices.Repeat([]byte{unwritten}, n))
	}
	for _, n := range plan.Temps {
		slots = append(slots, slices.Repeat([]byte{unwritten}, int(n)))
	}
	for _, b := range plan.Bounds {
		clear(slots[b.Flag])
	}
	return append(slots, plan.Consts...)
}

// runPlan runs a plan on the device.
func (d *Device) runPlan(plan *shaders.Plan, operands [][]byte, results []int) ([][]byte, error) {
	slots := fillSlots(plan, operands, results)
	bufs := make([]*vkrt.Buffer, len(slots))
	defer func() {
		for _, b := range bufs {
			if b != nil {
				b.Release()
			}
		}
	}()
	for i, bytes := range slots {
		var err error
		if bufs[i], err = d.Dev.Alloc(uint64(max(1, len(bytes)))); err != nil {
			return nil, fmt.Errorf("slot %d: %w", i, err)
		}
		if err := d.stream.Upload(bufs[i], 0, bytes); err != nil {
			return nil, fmt.Errorf("slot %d: %w", i, err)
		}
	}
	for i := range plan.Launches {
		l := &plan.Launches[i]
		words, err := spirv.Emit(l.Kernel, d.Target)
		if err != nil {
			return nil, err
		}
		p, err := d.Dev.Pipeline(l.Kernel.Name, words)
		if err != nil {
			return nil, fmt.Errorf("launch %d, kernel %s: %w", i, l.Kernel.Name, err)
		}
		table := []uint64{0}
		for j, a := range l.Args {
			if a.Kind == shaders.Addr {
				table = append(table, bufs[a.Slot].Addr()+a.Offset)
			} else {
				table = append(table, word(a, l.Kernel.Args[j].Type, operands))
			}
		}
		var uses []vkrt.Use
		for _, acc := range l.Access {
			uses = append(uses, vkrt.Use{Buf: bufs[acc.Slot], Write: acc.Write})
		}
		if err := d.stream.Dispatch(p, l.Grid, table, uses); err != nil {
			return nil, fmt.Errorf("launch %d, kernel %s: %w", i, l.Kernel.Name, err)
		}
	}
	out := slots[len(operands) : len(operands)+len(results)]
	var failed error
	for i := range out {
		err := d.stream.Read(bufs[len(operands)+i], 0, uint64(len(out[i])), func(data []byte, err error) {
			if copy(out[i], data); err != nil && failed == nil {
				failed = err
			}
		})
		if err != nil {
			return nil, fmt.Errorf("result %d: %w", i, err)
		}
	}
	if err := d.stream.Wait(); err != nil {
		return nil, err
	}
	return out, failed
}

// word is what an argument that is no address puts into the table, for a register of type t.
func word(a shaders.Arg, t kernel.Type, operands [][]byte) uint64 {
	if a.Kind == shaders.Imm {
		return a.Imm
	}
	var raw [8]byte
	copy(raw[:], operands[a.Slot][:a.From.Size()])
	bits := a.Number(binary.LittleEndian.Uint64(raw[:]))
	switch {
	case t == kernel.F64 && a.To.Float():
		return math.Float64bits(graph.ToFloat(bits, a.To))
	case a.To.Float() && a.To.Size() < 4:
		return uint64(math.Float32bits(float32(graph.ToFloat(bits, a.To))))
	case a.To.Signed():
		shift := 64 - 8*a.To.Size()
		bits = uint64(int64(bits<<shift) >> shift)
	}
	if t.Bits() == 32 {
		bits &= math.MaxUint32
	}
	return bits
}

// SameAs compares two buffers of elements of type t, bit for bit, but that any NaN equals any NaN.
func SameAs(t graph.Type, got, want []byte) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d bytes, want %d", len(got), len(want))
	}
	n := t.Size()
	count, first := 0, ""
	for at := 0; at+n <= len(want); at += n {
		g, w := number(got[at:at+n]), number(want[at:at+n])
		if g == w || t.Float() && math.IsNaN(graph.ToFloat(g, t)) && math.IsNaN(graph.ToFloat(w, t)) {
			continue
		}
		if count == 0 {
			first = fmt.Sprintf("element %d is %s, want %s", at/n, show(t, g), show(t, w))
		}
		count++
	}
	if count > 0 {
		return fmt.Errorf("%s (%d of %d differ)", first, count, len(want)/n)
	}
	return nil
}

func number(b []byte) uint64 {
	var raw [8]byte
	copy(raw[:], b)
	return binary.LittleEndian.Uint64(raw[:])
}

func show(t graph.Type, bits uint64) string {
	if t.Float() {
		return fmt.Sprintf("%g (%#x)", graph.ToFloat(bits, t), bits)
	}
	return fmt.Sprintf("%#x", bits)
}
