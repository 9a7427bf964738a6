package shaders_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"

	"nxvk/graph"
	"nxvk/kernel"
	"nxvk/shaders"
)

// tensor is an operand with its buffer and, in logical order, the bits of its elements.
type tensor struct {
	shaders.Operand
	buf   []byte
	elems []uint64
}

// targets are the device classes that choose kernel shapes and accumulators.
var targets = map[string]kernel.Target{
	"cpu":      {Class: kernel.CPU, F64: true, I64: true, Mem8: true, Mem16: true},
	"discrete": {Class: kernel.Discrete, F64: true, I64: true, Mem8: true, Mem16: true},
	"slow f64": {Class: kernel.Discrete, F64: true, SlowF64: true, I64: true, Mem8: true, Mem16: true},
	"no f64":   {Class: kernel.Integrated, I64: true, Mem8: true, Mem16: true},
}

func init() {
	for name, t := range targets {
		t.Num, t.MaxShared, t.MaxInvocations, t.MaxGroups = kernel.Exact, 32768, 256, [3]uint32{65535, 65535, 65535}
		targets[name] = t
	}
}

func putElem(buf []byte, i int, t graph.Type, bits uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	copy(buf[i*t.Size():(i+1)*t.Size()], b[:])
}

func elemAt(buf []byte, i int, t graph.Type) uint64 {
	var b [8]byte
	copy(b[:], buf[i*t.Size():(i+1)*t.Size()])
	return binary.LittleEndian.Uint64(b[:])
}

// randomLayout lays a shape out: axes in any order, some reversed, some broadcast, gaps between.
func randomLayout(rng *rand.Rand, shape graph.Shape) graph.Layout {
	l := graph.Layout{Strides: make([]int, len(shape))}
	n := 1
	order := rng.Perm(len(shape))
	plain := rng.IntN(3) == 0
	for i := range order {
		k := order[i]
		if plain {
			k = len(shape) - 1 - i
		}
		switch r := rng.IntN(8); {
		case r == 0 && !plain:
			continue // broadcast
		case r == 1 && !plain:
			l.Strides[k] = -n
			l.Offset += n * (shape[k] - 1)
		default:
			l.Strides[k] = n
		}
		n *= shape[k]
		if !plain && rng.IntN(4) == 0 {
			n += rng.IntN(5)
		}
	}
	if rng.IntN(2) == 0 {
		l.Offset += rng.IntN(4) * (1 + 3*rng.IntN(2))
	}
	return l
}

// canonical makes an element of the low bits of v.
func canonical(v uint64, t graph.Type) uint64 {
	if t.Int() {
		return graph.ConvertBits(v, graph.U64, t)
	}
	return v
}

func newTensor(t graph.Type, shape graph.Shape, l graph.Layout, value func() uint64) tensor {
	_, hi := graph.Reach(shape, l)
	x := tensor{Operand: shaders.Operand{Spec: graph.Spec{Type: t, Shape: shape}, Layout: l}, buf: make([]byte, hi*t.Size())}
	for i := range hi {
		putElem(x.buf, i, t, canonical(value(), t))
	}
	for i := range shape.Size() {
		off := l.Offset
		for k, rest := len(shape)-1, i; k >= 0; k-- {
			off += rest % shape[k] * l.Strides[k]
			rest /= shape[k]
		}
		x.elems = append(x.elems, elemAt(x.buf, off, t))
	}
	return x
}

// someValue yields numbers of moderate size, and with hard also the extremes of t.
func someValue(rng *rand.Rand, t graph.Type, hard bool) func() uint64 {
	return func() uint64 {
		if hard && rng.IntN(16) == 0 {
			if t.Float() {
				vs := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, math.MaxFloat32, 1e-40, -1e-45, 65504}
				return graph.FromFloat(vs[rng.IntN(len(vs))], t)
			}
			return []uint64{0, ^uint64(0), 1 << 63, 1<<63 - 1, 1 << (t.Bits() - 1), 1<<(t.Bits()-1) - 1}[rng.IntN(6)]
		}
		switch {
		case t.Float() && rng.IntN(4) == 0:
			return graph.FromFloat(float64(rng.IntN(5)-2), t)
		case t.Float():
			return graph.FromFloat((rng.Float64()-0.5)*math.Exp2(float64(rng.IntN(8)-4)), t)
		case rng.IntN(3) == 0:
			return rng.Uint64()
		}
		return uint64(rng.IntN(7) - 3)
	}
}

// interpret runs a plan. Each launch sees of each slot only what its access list names.
func interpret(p *shaders.Plan, outBytes int, ins ...tensor) ([]byte, error) {
	var slots [][]byte
	for _, x := range ins {
		slots = append(slots, x.buf)
	}
	out := make([]byte, outBytes)
	slots = append(slots, out)
	for _, n := range p.Temps {
		slots = append(slots, make([]byte, n))
	}
	slots = append(slots, p.Consts...)
	for _, l := range p.Launches {
		if len(l.Args) != len(l.Kernel.Args) {
			return nil, fmt.Errorf("%d arguments for the %d of %s", len(l.Args), len(l.Kernel.Args), l.Kernel.Name)
		}
		binds := make([]kernel.Bind, len(l.Args))
		for i, a := range l.Args {
			switch a.Kind {
			case shaders.Imm:
				binds[i].Bits = a.Imm
			case shaders.Value:
				bits := a.Number(ins[a.Slot].elems[0])
				binds[i].Bits = widen(bits, a.To)
			case shaders.Addr:
				found := false
				for _, acc := range l.Access {
					if acc.Slot == a.Slot && acc.Write == l.Kernel.Args[i].Write {
						if acc.Lo != a.Offset || acc.Hi > uint64(len(slots[a.Slot])) {
							return nil, fmt.Errorf("%s: slot %d of %d bytes is accessed at [%d, %d), its address is at %d", l.Kernel.Name, a.Slot, len(slots[a.Slot]), acc.Lo, acc.Hi, a.Offset)
						}
						binds[i].Buf = slots[a.Slot][acc.Lo:acc.Hi:acc.Hi]
						found = true
					}
				}
				if !found {
					return nil, fmt.Errorf("%s: no access for argument %d", l.Kernel.Name, i)
				}
				if al := uint64(1) << l.Kernel.Args[i].Align; a.Offset%al != 0 {
					return nil, fmt.Errorf("%s: argument %d at byte %d is said to be aligned to %d", l.Kernel.Name, i, a.Offset, al)
				}
			}
		}
		if err := kernel.Run(l.Kernel, l.Grid, binds); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// widen yields what the argument table holds for a by-value number.
func widen(bits uint64, t graph.Type) uint64 {
	switch {
	case t.Float() && t.Size() < 4:
		return uint64(math.Float32bits(float32(graph.ToFloat(bits, t))))
	case t.Signed():
		sh := 64 - 8*t.Size()
		return uint64(int64(bits<<sh) >> sh)
	}
	return bits
}

// number is an element as a float64 (exact but for 64-bit integers).
func number(bits uint64, t graph.Type) float64 {
	return graph.ToFloat(graph.ConvertBits(bits, t, graph.F64), graph.F64)
}

// exact is an element of a finite value, exactly.
func exact(bits uint64, t graph.Type) *big.Float {
	x := new(big.Float).SetPrec(320)
	switch {
	case t.Float():
		return x.SetFloat64(graph.ToFloat(bits, t))
	case t.Signed():
		return x.SetInt64(int64(widen(bits, t)))
	}
	return x.SetUint64(bits)
}

// within reports whether got, of type t, is what some number within slack of want rounds to.
func within(got uint64, t graph.Type, want, slack *big.Float) bool {
	round := func(x *big.Float) float64 {
		f, _ := x.Float64()
		return graph.ToFloat(graph.FromFloat(f, t), t)
	}
	g := graph.ToFloat(got, t)
	lo := round(new(big.Float).SetPrec(320).Sub(want, slack))
	hi := round(new(big.Float).SetPrec(320).Add(want, slack))
	return lo <= g && g <= hi
}
