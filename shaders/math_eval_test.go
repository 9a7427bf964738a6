package shaders

import (
	"fmt"
	"math"
	"math/bits"

	"nxvk/graph"
	"nxvk/kernel"
)

// compiled is a function of scalars as kernel IR, evaluated here as IEEE 754 says, many times over:
// thousands of points a function are what the ULP tables need.
type compiled struct {
	k    *kernel.Kernel
	typ  kernel.Type
	args []uint64
	out  uint64
	regs []uint64
	vars []uint64
	ts   []kernel.Type // by value
	off  func() int64  // by how many ulp binary32 quotients and roots are off, nil for exact ones
}

// compile builds a kernel of n scalar arguments of type t.
func compile(t kernel.Type, target kernel.Target, n int, f func(b *kernel.Builder, x []kernel.Value) kernel.Value) *compiled {
	b := kernel.NewBuilder("f", target, [3]uint32{1, 1, 1})
	m := kernel.MF64
	if t == kernel.F32 {
		m = kernel.MF32
	}
	p := b.Pointer("out", m, true, 0)
	var xs []kernel.Value
	for i := 0; i < n; i++ {
		xs = append(xs, b.ScalarArg(fmt.Sprint("x", i), t))
	}
	b.Store(p, b.I32(0), f(b, xs))
	k := b.Build()
	return &compiled{k: k, typ: t, args: make([]uint64, n+1), regs: make([]uint64, k.Values), vars: make([]uint64, len(k.Vars)), ts: valueTypes(k)}
}

func compileUnary(op graph.Op, t kernel.Type, target kernel.Target) *compiled {
	return compile(t, target, 1, func(b *kernel.Builder, x []kernel.Value) kernel.Value { return Func(b, op, x[0]) })
}

// eval applies the function to bit patterns.
func (c *compiled) eval(x ...uint64) uint64 {
	copy(c.args[1:], x)
	c.run(c.k.Body)
	return c.out
}

func (c *compiled) f64(x ...float64) float64 {
	var b [2]uint64
	for i, v := range x {
		b[i] = toBits(c.typ, v)
	}
	return fromBits(c.typ, c.eval(b[:len(x)]...))
}

func toBits(t kernel.Type, v float64) uint64 {
	if t == kernel.F32 {
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(v)
}

func fromBits(t kernel.Type, b uint64) float64 {
	if t == kernel.F32 {
		return float64(math.Float32frombits(uint32(b)))
	}
	return math.Float64frombits(b)
}

// count is the number of instructions, nested ones included, leaves excluded.
func (c *compiled) count() int { return countInstrs(c.k.Body) - 1 }

func countInstrs(body []kernel.Instr) int {
	n := 0
	for _, in := range body {
		if in.Op != kernel.Const && in.Op != kernel.Scalar {
			n += 1 + countInstrs(in.Body) + countInstrs(in.Else)
		}
	}
	return n
}

func boolBit(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

// run evaluates a body; true means that a BreakIf left the innermost loop.
func (c *compiled) run(body []kernel.Instr) bool {
	r := c.regs
	for i := range body {
		in := &body[i]
		a, b := r[in.A], r[in.B]
		switch in.Op {
		case kernel.Const:
			r[in.Dst] = in.Imm
		case kernel.Scalar:
			r[in.Dst] = c.args[in.Imm]
		case kernel.Store:
			c.out = b
		case kernel.Get:
			r[in.Dst] = c.vars[in.Imm]
		case kernel.Set:
			c.vars[in.Imm] = a
		case kernel.If:
			if a != 0 {
				if c.run(in.Body) {
					return true
				}
			} else if c.run(in.Else) {
				return true
			}
		case kernel.Loop:
			for !c.run(in.Body) {
			}
		case kernel.BreakIf:
			if a != 0 {
				return true
			}
		case kernel.Select:
			if a != 0 {
				r[in.Dst] = b
			} else {
				r[in.Dst] = r[in.C]
			}
		case kernel.FAdd, kernel.FSub, kernel.FMul, kernel.FDiv, kernel.Mad, kernel.FmaExact:
			x, y, z := fromBits(in.Type, a), fromBits(in.Type, b), 0.0
			var v float64
			if in.Op == kernel.Mad || in.Op == kernel.FmaExact {
				z = fromBits(in.Type, r[in.C])
			}
			f32 := in.Type == kernel.F32
			switch in.Op {
			case kernel.FAdd:
				v = x + y
			case kernel.FSub:
				v = x - y
			case kernel.FMul:
				v = x * y
			case kernel.FDiv:
				v = x / y
				if c.off != nil && v != 0 && v*0 == 0 {
					r[in.Dst] = uint64(int64(toBits(in.Type, v)) + c.off())
					continue
				}
			case kernel.Mad:
				v = x * y
				if f32 {
					v = float64(float32(v))
				}
				v += z
			case kernel.FmaExact:
				v = math.FMA(x, y, z)
			}
			r[in.Dst] = toBits(in.Type, v)
		case kernel.FSqrt:
			r[in.Dst] = toBits(in.Type, math.Sqrt(fromBits(in.Type, a)))
			if v := fromBits(in.Type, r[in.Dst]); c.off != nil && v != 0 && v*0 == 0 {
				r[in.Dst] += uint64(c.off())
			}
		case kernel.FNeg:
			r[in.Dst] = a ^ 1<<(in.Type.Bits()-1)
		case kernel.FAbs:
			r[in.Dst] = a &^ (1 << (in.Type.Bits() - 1))
		case kernel.Floor:
			r[in.Dst] = toBits(in.Type, math.Floor(fromBits(in.Type, a)))
		case kernel.Trunc:
			r[in.Dst] = toBits(in.Type, math.Trunc(fromBits(in.Type, a)))
		case kernel.RoundEven:
			r[in.Dst] = toBits(in.Type, math.RoundToEven(fromBits(in.Type, a)))
		case kernel.FEq, kernel.FNe, kernel.FLt, kernel.FLe:
			t := c.ts[in.A]
			x, y := fromBits(t, a), fromBits(t, b)
			switch in.Op {
			case kernel.FEq:
				r[in.Dst] = boolBit(x == y)
			case kernel.FNe:
				r[in.Dst] = boolBit(x != y)
			case kernel.FLt:
				r[in.Dst] = boolBit(x < y)
			case kernel.FLe:
				r[in.Dst] = boolBit(x <= y)
			}
		case kernel.LAnd:
			r[in.Dst] = a & b
		case kernel.LOr:
			r[in.Dst] = a | b
		case kernel.LNot:
			r[in.Dst] = a ^ 1
		case kernel.SToF:
			r[in.Dst] = toBits(in.Type, float64(signed(c.ts[in.A], a)))
		case kernel.UToF:
			r[in.Dst] = toBits(in.Type, float64(a))
		case kernel.FToS:
			r[in.Dst] = unsigned(in.Type, uint64(int64(fromBits(c.ts[in.A], a))))
		case kernel.FConv:
			r[in.Dst] = toBits(in.Type, fromBits(c.ts[in.A], a))
		case kernel.Bits, kernel.Opaque:
			r[in.Dst] = a
		case kernel.Wrap:
			r[in.Dst] = uint64(uint32(a))
		case kernel.ZExt:
			r[in.Dst] = a
		case kernel.SExt:
			r[in.Dst] = uint64(int64(int32(a)))
		case kernel.IEq:
			r[in.Dst] = boolBit(a == b)
		case kernel.INe:
			r[in.Dst] = boolBit(a != b)
		case kernel.ULt:
			r[in.Dst] = boolBit(a < b)
		case kernel.ULe:
			r[in.Dst] = boolBit(a <= b)
		case kernel.SLt:
			t := c.ts[in.A]
			r[in.Dst] = boolBit(signed(t, a) < signed(t, b))
		case kernel.SLe:
			t := c.ts[in.A]
			r[in.Dst] = boolBit(signed(t, a) <= signed(t, b))
		default:
			r[in.Dst] = unsigned(in.Type, c.integer(in, a, b))
		}
	}
	return false
}

func (c *compiled) integer(in *kernel.Instr, a, b uint64) uint64 {
	switch in.Op {
	case kernel.IAdd:
		return a + b
	case kernel.ISub:
		return a - b
	case kernel.IMul:
		return a * b
	case kernel.UDiv:
		return a / b
	case kernel.SDiv:
		return uint64(signed(in.Type, a) / signed(in.Type, b))
	case kernel.URem:
		return a % b
	case kernel.UMulHi:
		return a * b >> 32
	case kernel.And:
		return a & b
	case kernel.Or:
		return a | b
	case kernel.Xor:
		return a ^ b
	case kernel.Not:
		return ^a
	case kernel.Shl:
		return a << b
	case kernel.ShrU:
		return a >> b
	case kernel.ShrS:
		return uint64(signed(in.Type, a) >> b)
	case kernel.Clz:
		return uint64(bits.LeadingZeros32(uint32(a)))
	}
	panic("eval: " + in.Op.String())
}

func signed(t kernel.Type, a uint64) int64 {
	if t == kernel.I32 {
		return int64(int32(a))
	}
	return int64(a)
}

func unsigned(t kernel.Type, a uint64) uint64 {
	if t == kernel.I32 {
		return uint64(uint32(a))
	}
	return a
}

// valueTypes are the types of a kernel's values.
func valueTypes(k *kernel.Kernel) []kernel.Type {
	ts := make([]kernel.Type, k.Values)
	var walk func(body []kernel.Instr)
	walk = func(body []kernel.Instr) {
		for _, in := range body {
			if in.Dst != 0 {
				ts[in.Dst] = in.Type
			}
			walk(in.Body)
			walk(in.Else)
		}
	}
	walk(k.Body)
	return ts
}
