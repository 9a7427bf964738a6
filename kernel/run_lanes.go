package kernel

import "math"

// laneOp is a loop over all lanes for the operations that kernels are full of; nil for the others,
// which go lane by lane through scalarOp. It gives what scalarOp gives (a test holds it to that). Each
// loop first cuts its operands to the length of d, which spares it bounds checks.
func laneOp(op Op, t, out Type) func(d, a, b, c []uint64) {
	switch op {
	case Select:
		return func(d, a, b, c []uint64) {
			a, b, c = a[:len(d)], b[:len(d)], c[:len(d)]
			for i := range d {
				if a[i] != 0 {
					d[i] = b[i]
				} else {
					d[i] = c[i]
				}
			}
		}
	case LAnd, And:
		return func(d, a, b, _ []uint64) {
			a, b = a[:len(d)], b[:len(d)]
			for i := range d {
				d[i] = a[i] & b[i]
			}
		}
	case LOr, Or:
		return func(d, a, b, _ []uint64) {
			a, b = a[:len(d)], b[:len(d)]
			for i := range d {
				d[i] = a[i] | b[i]
			}
		}
	case Xor:
		return func(d, a, b, _ []uint64) {
			a, b = a[:len(d)], b[:len(d)]
			for i := range d {
				d[i] = a[i] ^ b[i]
			}
		}
	case LNot:
		return func(d, a, _, _ []uint64) {
			a = a[:len(d)]
			for i := range d {
				d[i] = a[i] ^ 1
			}
		}
	case ZExt, Bits, Opaque:
		return func(d, a, _, _ []uint64) { copy(d, a) }
	case Wrap:
		return func(d, a, _, _ []uint64) {
			a = a[:len(d)]
			for i := range d {
				d[i] = uint64(uint32(a[i]))
			}
		}
	case IEq:
		return func(d, a, b, _ []uint64) {
			a, b = a[:len(d)], b[:len(d)]
			for i := range d {
				d[i] = truth(a[i] == b[i])
			}
		}
	case ULt:
		return func(d, a, b, _ []uint64) {
			a, b = a[:len(d)], b[:len(d)]
			for i := range d {
				d[i] = truth(a[i] < b[i])
			}
		}
	}
	switch t {
	case I32:
		return laneInt(op, math.MaxUint32)
	case I64:
		return laneInt(op, math.MaxUint64)
	case F32:
		return laneF32(op)
	case F64:
		return laneF64(op)
	}
	return nil
}

func laneInt(op Op, mask uint64) func(d, a, b, c []uint64) {
	switch op {
	case IAdd:
		return func(d, a, b, _ []uint64) {
			a, b = a[:len(d)], b[:len(d)]
			for i := range d {
				d[i] = (a[i] + b[i]) & mask
			}
		}
	case ISub:
		return func(d, a, b, _ []uint64) {
			a, b = a[:len(d)], b[:len(d)]
			for i := range d {
				d[i] = (a[i] - b[i]) & mask
			}
		}
	case IMul:
		return func(d, a, b, _ []uint64) {
			a, b = a[:len(d)], b[:len(d)]
			for i := range d {
				d[i] = (a[i] * b[i]) & mask
			}
		}
	case Shl:
		width := uint64(64)
		if mask == math.MaxUint32 {
			width = 32
		}
		return func(d, a, b, _ []uint64) {
			a, b = a[:len(d)], b[:len(d)]
			for i := range d {
				if b[i] >= width {
					d[i] = poison & mask
				} else {
					d[i] = a[i] << (b[i] & 63) & mask
				}
			}
		}
	}
	return nil
}

func laneF32(op Op) func(d, a, b, c []uint64) {
	switch op {
	case FAdd:
		return func(d, a, b, _ []uint64) {
			a, b = a[:len(d)], b[:len(d)]
			for i := range d {
				d[i] = of32(f32(a[i]) + f32(b[i]))
			}
		}
	case FSub:
		return func(d, a, b, _ []uint64) {
			a, b = a[:len(d)], b[:len(d)]
			for i := range d {
				d[i] = of32(f32(a[i]) - f32(b[i]))
			}
		}
	case FMul:
		return func(d, a, b, _ []uint64) {
			a, b = a[:len(d)], b[:len(d)]
			for i := range d {
				d[i] = of32(f32(a[i]) * f32(b[i]))
			}
		}
	case FConv:
		return func(d, a, _, _ []uint64) {
			a = a[:len(d)]
			for i := range d {
				d[i] = of64(float64(f32(a[i])))
			}
		}
	case FLt:
		return func(d, a, b, _ []uint64) {
			a, b = a[:len(d)], b[:len(d)]
			for i := range d {
				d[i] = truth(f32(a[i]) < f32(b[i]))
			}
		}
	}
	return nil
}

func laneF64(op Op) func(d, a, b, c []uint64) {
	switch op {
	case FAdd:
		return func(d, a, b, _ []uint64) {
			a, b = a[:len(d)], b[:len(d)]
			for i := range d {
				d[i] = of64(f64(a[i]) + f64(b[i]))
			}
		}
	case FSub:
		return func(d, a, b, _ []uint64) {
			a, b = a[:len(d)], b[:len(d)]
			for i := range d {
				d[i] = of64(f64(a[i]) - f64(b[i]))
			}
		}
	case FMul:
		return func(d, a, b, _ []uint64) {
			a, b = a[:len(d)], b[:len(d)]
			for i := range d {
				d[i] = of64(f64(a[i]) * f64(b[i]))
			}
		}
	case FConv:
		return func(d, a, _, _ []uint64) {
			a = a[:len(d)]
			for i := range d {
				d[i] = of32(float32(f64(a[i])))
			}
		}
	}
	return nil
}
