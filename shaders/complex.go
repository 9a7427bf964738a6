package shaders

import (
	"nxvk/graph"
	"nxvk/kernel"
)

// Complex numbers
//
// In memory the parts of a complex number lie side by side, the real one first. In a kernel it is a value
// with two parts, each a value of the part's type. Operations on parts follow the Complex library, which
// Nx.BinaryBackend computes with: in binary64 where the device has it, rounded once at the end, else in
// binary32.

// paired is a complex value of the given parts.
func paired(t graph.Type, re, im value) value { return value{t: t, parts: &[2]value{re, im}} }

// loadElement reads the element at offset off of a pointer to elements of t; see elementMem.
func (m *maker) loadElement(p kernel.Ptr, off kernel.Value, t graph.Type) value {
	if !t.Complex() {
		return value{t: t, raw: m.Load(p, off)}
	}
	part := t.Part()
	if p.Mem == kernel.M64 && part == graph.F32 {
		// Processors gather, so that a load costs by the lane: both parts come in one integer.
		v := m.Load(p, off)
		half := func(v kernel.Value) value {
			return value{t: part, raw: m.BitsTo(kernel.F32, m.Conv(kernel.Wrap, kernel.I32, v))}
		}
		return paired(t, half(v), half(m.ShrUI(v, 32)))
	}
	vs := m.LoadV(p, off, 2)
	return paired(t, value{t: part, raw: vs[0]}, value{t: part, raw: vs[1]})
}

// storeElement writes v at offset off of a pointer to elements of its type.
func (m *maker) storeElement(p kernel.Ptr, off kernel.Value, v *value) {
	e := &eval{m.Builder}
	if v.parts == nil {
		m.Store(p, off, e.raw(v))
		return
	}
	re, im := e.raw(&v.parts[0]), e.raw(&v.parts[1])
	if p.Mem == kernel.M64 && v.t == graph.C64 {
		bits := func(v kernel.Value) kernel.Value {
			return m.Conv(kernel.ZExt, kernel.I64, m.BitsTo(kernel.I32, v))
		}
		m.Store(p, off, m.Or(bits(re), m.ShlI(bits(im), 32)))
		return
	}
	m.StoreV(p, off, []kernel.Value{re, im})
}

// elementMem is the memory type of a pointer to elements of t that loadElement and storeElement take.
func elementMem(d kernel.Target, t graph.Type) kernel.Mem {
	if t == graph.C64 && d.Class == kernel.CPU && d.I64 {
		return kernel.M64
	}
	return MemOf(t)
}

// scalarElement declares an element of t that travels in the argument table, by value or as a constant.
func (m *maker) scalarElement(name string, slot int, l Leaf) value {
	one := func(name string, part int, bits uint64) value {
		t := l.Type.Part()
		a := Arg{Kind: Value, Slot: slot, From: l.Type, To: t, Part: part}
		if l.Const {
			a = Arg{Kind: Imm, Imm: registerBits(bits, t)}
		}
		return value{t: t, reg: m.scalar(name, RegOf(t), a)}
	}
	if !l.Type.Complex() {
		return one(name, 0, l.Bits)
	}
	re, im := graph.Value{Lo: l.Bits, Hi: l.Upper}.Parts(l.Type)
	return paired(l.Type, one(name+".re", 0, re), one(name+".im", 1, im))
}

// complexOp says how an operation on complex numbers is computed. out is the result's type, complex or not.
type complexOp func(c *complexEval, op graph.Op, in []*value, out graph.Type) value

// complexTable lists the operations that take or yield complex numbers.
var complexTable map[graph.Op]complexOp

// init, since operations refer to one another through the table's functions.
func init() {
	complexTable = map[graph.Op]complexOp{
		graph.OpComplex: (*complexEval).join, graph.OpSelect: (*complexEval).selects, graph.OpAsType: (*complexEval).asType,
		"real": (*complexEval).part, "imag": (*complexEval).part, "conjugate": (*complexEval).conjugate,
		"negate": (*complexEval).negate, "abs": (*complexEval).abs, "sign": (*complexEval).sign,
		"equal": (*complexEval).equal, "not_equal": (*complexEval).equal,
		"logical_and": (*complexEval).logical, "logical_or": (*complexEval).logical, "logical_xor": (*complexEval).logical,
		"is_nan": (*complexEval).isSpecial, "is_infinity": (*complexEval).isSpecial,
	}
	for op, f := range complexFuncs() {
		complexTable[op] = func(c *complexEval, _ graph.Op, in []*value, out graph.Type) value {
			args := make([]cplx, len(in))
			for i, x := range in {
				args[i] = c.read(x)
			}
			return c.write(f(c, args), out)
		}
	}
}

// complexEval emits operations on complex numbers in float register r.
type complexEval struct {
	*eval
	f *fp
}

// cplx is a complex number in registers.
type cplx struct{ re, im kernel.Value }

// ofComplex reports whether an operation has complex operands or a complex result.
func ofComplex(in []*value, out graph.Type) bool {
	for _, x := range in {
		if x.t.Complex() {
			return true
		}
	}
	return out.Complex()
}

// complex computes an operation on complex numbers.
func (e *eval) complex(op graph.Op, in []*value, out graph.Type) value {
	c := &complexEval{e, newFP(e.Builder, e.wide())}
	return complexTable[op](c, op, in, out)
}

// complexOps wants op to be defined for complex numbers where it has any. What takes several rounded steps takes them in
// f64: in f32 the results would not be Nx's.
func complexOps(d kernel.Target, op graph.Op, types ...graph.Type) error {
	for _, t := range types {
		if !t.Complex() {
			continue
		}
		if complexTable[op] == nil {
			return &Unsupported{op, t, "the operation is not defined for complex numbers"}
		}
		if _, steps := complexSteps[op]; steps && !d.F64 {
			return &Unsupported{op, t, "the device lacks f64"}
		}
	}
	return nil
}

// complexSteps are the operations of several rounded steps: all functions but those of one, or of products whose errors
// are made good.
var complexSteps = func() map[graph.Op]struct{} {
	m := map[graph.Op]struct{}{"abs": {}}
	for op := range complexFuncs() {
		m[op] = struct{}{}
	}
	for _, op := range []graph.Op{"add", "subtract", "multiply"} {
		delete(m, op)
	}
	return m
}()

// imaginary is the imaginary part of v: of a real number it is 0.
func (c *complexEval) imaginary(v *value) *value {
	if v.parts != nil {
		return &v.parts[1]
	}
	zero := value{t: graph.F32, reg: c.Zero(kernel.F32)}
	return &zero
}

func (c *complexEval) real(v *value) *value {
	if v.parts != nil {
		return &v.parts[0]
	}
	return v
}

// read brings v to registers.
func (c *complexEval) read(v *value) cplx {
	if v.parts == nil {
		return cplx{c.float(v, c.f.t), c.f.c(0)}
	}
	return cplx{c.float(&v.parts[0], c.f.t), c.float(&v.parts[1], c.f.t)}
}

// write makes a value of what was computed.
func (c *complexEval) write(z cplx, out graph.Type) value {
	return paired(out, c.written(z.re, out.Part()), c.written(z.im, out.Part()))
}

// written makes a value of real type out.
func (c *complexEval) written(v kernel.Value, out graph.Type) value {
	return value{t: out, open: CanonNaN(c.Builder, out, c.fromFloat(v, out)), narrowed: true}
}

func (c *complexEval) join(_ graph.Op, in []*value, out graph.Type) value {
	return paired(out, c.eval.asType(in[0], out.Part()), c.eval.asType(in[1], out.Part()))
}

func (c *complexEval) asType(_ graph.Op, in []*value, out graph.Type) value {
	re, im := c.real(in[0]), c.imaginary(in[0])
	if !out.Complex() {
		return c.eval.asType(re, out)
	}
	return paired(out, c.eval.asType(re, out.Part()), c.eval.asType(im, out.Part()))
}

func (c *complexEval) selects(_ graph.Op, in []*value, out graph.Type) value {
	pred := c.boolean(c.nonzero(in[0]), graph.U8)
	x, y := c.asType("", in[1:2], out), c.asType("", in[2:3], out)
	pick := func(x, y *value) value {
		return c.eval.selects([]*value{{t: graph.U8, reg: pred}, x, y}, out.Part())
	}
	if !out.Complex() {
		return pick(&x, &y)
	}
	return paired(out, pick(&x.parts[0], &y.parts[0]), pick(&x.parts[1], &y.parts[1]))
}

func (c *complexEval) part(op graph.Op, in []*value, out graph.Type) value {
	v := c.real(in[0])
	if op == "imag" {
		v = c.imaginary(in[0])
	}
	if out.Complex() {
		return c.asType("", []*value{v}, out)
	}
	return c.eval.asType(v, out)
}

// conjugate of a finite real number has the imaginary part -0.
func (c *complexEval) conjugate(_ graph.Op, in []*value, out graph.Type) value {
	z := c.read(in[0])
	im := c.f.neg(z.im)
	if in[0].parts == nil {
		im = c.f.sel(c.finite(z.re), im, z.im)
	}
	return c.write(cplx{z.re, im}, out)
}

func (c *complexEval) negate(_ graph.Op, in []*value, out graph.Type) value {
	z := c.read(in[0])
	return c.write(cplx{c.f.neg(z.re), c.f.neg(z.im)}, out)
}

func (c *complexEval) abs(_ graph.Op, in []*value, out graph.Type) value {
	v := c.magnitudeOf(c.read(in[0]))
	if out.Complex() {
		return c.write(cplx{v, c.f.c(0)}, out)
	}
	return c.written(v, out)
}

// sign is 1 for every complex number: Nx orders them all above 0.
func (c *complexEval) sign(_ graph.Op, _ []*value, out graph.Type) value {
	one := value{t: graph.U8, reg: c.I32(1)}
	return c.asType("", []*value{&one}, out)
}

// nonzero is whether v is not zero; a NaN is not.
func (c *complexEval) nonzero(v *value) kernel.Value {
	if v.parts == nil {
		return c.truth(v)
	}
	return c.Or(c.truth(&v.parts[0]), c.truth(&v.parts[1]))
}

func (c *complexEval) logical(op graph.Op, in []*value, out graph.Type) value {
	flags := make([]*value, len(in))
	for i, x := range in {
		flags[i] = &value{t: graph.U8, reg: c.boolean(c.nonzero(x), graph.U8)}
	}
	return value{t: out, open: c.eval.logical(op, flags, out)}
}

// equal compares part by part. Nx compares the terms in which it holds complex numbers: two NaN parts are
// equal, and an infinite real number equals no complex one.
func (c *complexEval) equal(op graph.Op, in []*value, out graph.Type) value {
	same := c.ConstBool(true)
	bothComplex := in[0].parts != nil && in[1].parts != nil
	pairs := [][2]*value{{c.real(in[0]), c.real(in[1])}, {c.imaginary(in[0]), c.imaginary(in[1])}}
	for _, p := range pairs {
		eq := c.order(p[0], p[1]).equal
		if bothComplex {
			eq = c.Or(eq, c.And(c.isNaN(c.reg(p[0])), c.isNaN(c.reg(p[1]))))
		}
		same = c.And(same, eq)
	}
	for _, x := range in {
		if !bothComplex && x.t.Float() {
			same = c.And(same, c.finite(c.reg(x)))
		}
	}
	if op == "not_equal" {
		same = c.Not(same)
	}
	return value{t: out, open: c.boolean(same, out)}
}

func (c *complexEval) isSpecial(op graph.Op, in []*value, out graph.Type) value {
	any := c.ConstBool(false)
	for i := range in[0].parts {
		v := c.reg(&in[0].parts[i])
		if op == "is_nan" {
			any = c.Or(any, c.isNaN(v))
		} else {
			any = c.Or(any, c.Cmp(kernel.IEq, c.magnitude(v), c.infinityBits(c.TypeOf(v))))
		}
	}
	return value{t: out, open: c.boolean(any, out)}
}

// finite is whether a float is neither infinite nor NaN.
func (c *complexEval) finite(v kernel.Value) kernel.Value {
	return c.Cmp(kernel.ULt, c.magnitude(v), c.infinityBits(c.TypeOf(v)))
}
