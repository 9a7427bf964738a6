package shaders

import "nxvk/kernel"

// Div emits x/y, correctly rounded on every device; x and y are both F32 or both F64.
func Div(b *kernel.Builder, x, y kernel.Value) kernel.Value {
	switch {
	case b.TypeOf(x) == kernel.F64 || b.T.Num.DivF32:
		return b.Bin(kernel.FDiv, x, y)
	case b.T.F64:
		// 53 ≥ 2·24+2: the second rounding is innocuous.
		w := func(v kernel.Value) kernel.Value { return b.Conv(kernel.FConv, kernel.F64, v) }
		return narrow(b, b.Bin(kernel.FDiv, w(x), w(y)))
	}
	return b.Bin(kernel.FDiv, x, y)
}

// Sqrt emits √x, correctly rounded on every device; x is F32 or F64.
func Sqrt(b *kernel.Builder, x kernel.Value) kernel.Value {
	switch {
	case b.TypeOf(x) == kernel.F64 || b.T.Num.SqrtF32:
		return b.Un(kernel.FSqrt, x)
	case b.T.F64:
		return narrow(b, b.Un(kernel.FSqrt, b.Conv(kernel.FConv, kernel.F64, x)))
	}
	return b.Un(kernel.FSqrt, x)
}

func (f *fp) sqrt(x val) val { return Sqrt(f.b, x) }

// rsqrt is 1/√x in two rounded steps, as Nx.BinaryBackend computes it.
func (f *fp) rsqrt(x val) val { return Div(f.b, f.c(1), Sqrt(f.b, x)) }
