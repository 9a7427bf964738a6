package kernel

import "fmt"

// Limits of a checked kernel. Devices may have lower ones: see Fits.
const (
	maxLocal  = 1024    // invocations of a workgroup
	maxShared = 1 << 16 // bytes of shared arrays
	maxValues = 1 << 20
	maxDepth  = 64 // of nested Ifs and Loops
)

// Check verifies k: that types and indices are right, that every value is defined once and before its
// uses, in an enclosing sequence; that every Loop can end; that a vector access is covered by the
// alignment of its argument; and that barriers stand where a whole workgroup comes or none of it does.
// A checked kernel is safe to emit and to run, though its indices are only known to the run.
func Check(k *Kernel) error {
	c := &checker{k: k}
	if err := c.header(); err != nil {
		return c.named(err)
	}
	c.types = make([]Type, k.Values)
	c.scoped = make([]bool, k.Values)
	if _, err := c.body(k.Body, 0, false); err != nil {
		return c.named(err)
	}
	if err := checkUniform(k); err != nil {
		return c.named(err)
	}
	return nil
}

// Fits verifies that a device t can run k.
func Fits(k *Kernel, t Target) error {
	if what := Lacks(k, t); what != "" {
		return fmt.Errorf("kernel %s: the device has no %s", k.Name, what)
	}
	if n := k.Invocations(); n > t.MaxInvocations {
		return fmt.Errorf("kernel %s: %d invocations in a workgroup, the device has %d", k.Name, n, t.MaxInvocations)
	}
	if n := k.SharedBytes(); n > t.MaxShared {
		return fmt.Errorf("kernel %s: %d bytes of shared memory, the device has %d", k.Name, n, t.MaxShared)
	}
	return nil
}

// Lacks names the registers or memory that k takes and t has not: "f64", "i64", or nothing.
func Lacks(k *Kernel, t Target) string {
	what := ""
	reg := func(r Type) {
		switch {
		case r == F64 && !t.F64:
			what = "f64"
		case r == I64 && !t.I64:
			what = "i64"
		}
	}
	if t.F64 && t.I64 {
		return what
	}
	for _, a := range k.Args {
		if a.Kind == ArgPtr {
			reg(a.Mem.Reg())
		} else {
			reg(a.Type)
		}
	}
	for _, a := range k.Shared {
		reg(a.Mem.Reg())
	}
	for _, v := range k.Vars {
		reg(v)
	}
	walk(k.Body, func(in *Instr) { reg(in.Type) })
	return what
}

// Invocations is the number of invocations in a workgroup.
func (k *Kernel) Invocations() int {
	return int(k.Local[0]) * int(k.Local[1]) * int(k.Local[2])
}

// SharedBytes is the size of all shared arrays.
func (k *Kernel) SharedBytes() int {
	n := 0
	for _, a := range k.Shared {
		n += a.Len * a.Mem.Size()
	}
	return n
}

// walk visits every instruction, an If or Loop before what it holds.
func walk(body []Instr, visit func(*Instr)) {
	for i := range body {
		visit(&body[i])
		walk(body[i].Body, visit)
		walk(body[i].Else, visit)
	}
}

type checker struct {
	k      *Kernel
	types  []Type // of each defined value; Void: not defined yet
	scoped []bool // in scope here
}

func (c *checker) named(err error) error { return fmt.Errorf("kernel %s: %w", c.k.Name, err) }

func (c *checker) header() error {
	k := c.k
	for _, n := range k.Local {
		if n == 0 || n > maxLocal {
			return fmt.Errorf("workgroup size %v", k.Local)
		}
	}
	if n := k.Invocations(); n > maxLocal {
		return fmt.Errorf("%d invocations in a workgroup, at most %d", n, maxLocal)
	}
	if k.Values < 1 || k.Values > maxValues {
		return fmt.Errorf("%d values", k.Values)
	}
	for i, a := range k.Args {
		switch a.Kind {
		case ArgPtr:
			if a.Mem > MF64 {
				return fmt.Errorf("argument %d: element type %d", i, a.Mem)
			}
			if a.Align > 12 || 1<<a.Align < a.Mem.Size() {
				return fmt.Errorf("argument %d: alignment of %d bytes for %v", i, 1<<a.Align, a.Mem)
			}
		case ArgScalar:
			if !a.Type.Int() && !a.Type.Float() {
				return fmt.Errorf("argument %d: a scalar of type %v", i, a.Type)
			}
		default:
			return fmt.Errorf("argument %d: kind %d", i, a.Kind)
		}
	}
	for i, a := range k.Shared {
		if a.Mem < M32 || a.Mem > MF64 {
			return fmt.Errorf("shared array %d: element type %d", i, a.Mem)
		}
		if a.Len < 1 || a.Len > maxShared {
			return fmt.Errorf("shared array %d: %d elements", i, a.Len)
		}
	}
	if n := k.SharedBytes(); n > maxShared {
		return fmt.Errorf("%d bytes of shared memory, at most %d", n, maxShared)
	}
	for i, t := range k.Vars {
		if t == Void || t > F64 {
			return fmt.Errorf("variable %d: type %v", i, t)
		}
	}
	return nil
}

// body checks a sequence and reports whether a BreakIf in it leaves the enclosing loop.
func (c *checker) body(body []Instr, depth int, inLoop bool) (breaks bool, err error) {
	if depth > maxDepth {
		return false, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	var mine []Value
	for i := range body {
		in := &body[i]
		if err := c.instr(in, inLoop); err != nil {
			return false, fmt.Errorf("%s: %w", describe(in), err)
		}
		for j := range Value(in.results()) {
			v := in.Dst + j
			c.types[v], c.scoped[v] = in.Type, true
			mine = append(mine, v)
		}
		switch in.Op {
		case BreakIf:
			breaks = true
		case If:
			then, err := c.body(in.Body, depth+1, inLoop)
			if err != nil {
				return false, err
			}
			els, err := c.body(in.Else, depth+1, inLoop)
			if err != nil {
				return false, err
			}
			breaks = breaks || then || els
		case Loop:
			ends, err := c.body(in.Body, depth+1, true)
			if err != nil {
				return false, err
			}
			if !ends {
				return false, fmt.Errorf("a loop has no break_if")
			}
		}
	}
	for _, v := range mine {
		c.scoped[v] = false
	}
	return breaks, nil
}

// results is the number of values that in defines, from Dst on.
func (in *Instr) results() int {
	switch {
	case in.Dst == 0:
		return 0
	case in.Op == LoadV:
		return int(in.N)
	}
	return 1
}

// describe names an instruction in an error.
func describe(in *Instr) string {
	if in.Dst != 0 {
		return fmt.Sprintf("v%d = %v", in.Dst, in.Op)
	}
	return in.Op.String()
}

// typeOf is the type of an operand, which must be in scope; Void for no operand.
func (c *checker) typeOf(v Value) (Type, error) {
	if v == 0 {
		return Void, nil
	}
	if v < 0 || int(v) >= len(c.types) {
		return Void, fmt.Errorf("v%d of %d values", v, len(c.types))
	}
	if !c.scoped[v] {
		return Void, fmt.Errorf("v%d is not defined here", v)
	}
	return c.types[v], nil
}

// shape says which parts of an instruction an operation has, beside its operands.
type shape struct {
	operands, result, list, bodies bool
}

func (in *Instr) has() shape {
	return shape{
		operands: in.A != 0 || in.B != 0 || in.C != 0,
		result:   in.Dst != 0,
		list:     in.List != nil || in.N != 0,
		bodies:   in.Body != nil || in.Else != nil,
	}
}

func (c *checker) instr(in *Instr, inLoop bool) error {
	if in.Op >= opCount {
		return fmt.Errorf("no such operation")
	}
	if err := c.result(in); err != nil {
		return err
	}
	var t [3]Type
	for j, v := range [...]Value{in.A, in.B, in.C} {
		var err error
		if t[j], err = c.typeOf(v); err != nil {
			return err
		}
	}
	h := in.has()
	if h.list && in.Op != LoadV && in.Op != StoreV || h.bodies && in.Op != If && in.Op != Loop || in.Op == Loop && in.Else != nil {
		return fmt.Errorf("it has parts of another operation")
	}
	if Pure(in.Op) {
		if !rules[in.Op].fits(in.Op, t, in.Type) {
			return fmt.Errorf("operands %v %v %v, result %v", t[0], t[1], t[2], in.Type)
		}
		return nil
	}
	return c.effect(in, t, inLoop)
}

// result checks that in defines new values, if it has a result.
func (c *checker) result(in *Instr) error {
	if (in.Dst != 0) != (in.Type != Void) || in.Type > F64 {
		return fmt.Errorf("result v%d of type %v", in.Dst, in.Type)
	}
	if in.Dst < 0 {
		return fmt.Errorf("result v%d", in.Dst)
	}
	for j := range Value(in.results()) {
		v := in.Dst + j
		if int(v) >= len(c.types) {
			return fmt.Errorf("v%d of %d values", v, len(c.types))
		}
		if c.types[v] != Void {
			return fmt.Errorf("v%d is defined twice", v)
		}
	}
	return nil
}

// effect checks leaves, memory and control flow. want are the types of A, B, C and the result.
func (c *checker) effect(in *Instr, t [3]Type, inLoop bool) error {
	want := func(a, b Type, out Type) error {
		if t != [3]Type{a, b} || in.Type != out {
			return fmt.Errorf("operands %v %v %v, result %v", t[0], t[1], t[2], in.Type)
		}
		return nil
	}
	k := c.k
	switch in.Op {
	case Nop, Barrier, Loop:
		return want(Void, Void, Void)
	case Const:
		if in.Type == Bool && in.Imm > 1 || in.Type.Bits() == 32 && in.Imm>>32 != 0 || in.Type == Void {
			return fmt.Errorf("%#x is no %v", in.Imm, in.Type)
		}
		return want(Void, Void, in.Type)
	case Scalar:
		if in.Imm >= uint64(len(k.Args)) || k.Args[in.Imm].Kind != ArgScalar {
			return fmt.Errorf("argument %d is no scalar", in.Imm)
		}
		return want(Void, Void, k.Args[in.Imm].Type)
	case Builtin:
		if in.Imm > GroupsZ {
			return fmt.Errorf("no builtin %d", in.Imm)
		}
		return want(Void, Void, I32)
	case Load, Store, LoadV, StoreV, AtomicAdd:
		return c.memory(in, t)
	case SLoad, SStore:
		if in.Imm >= uint64(len(k.Shared)) {
			return fmt.Errorf("shared array %d of %d", in.Imm, len(k.Shared))
		}
		if reg := k.Shared[in.Imm].Mem.Reg(); in.Op == SLoad {
			return want(I32, Void, reg)
		} else {
			return want(I32, reg, Void)
		}
	case Get, Set:
		if in.Imm >= uint64(len(k.Vars)) {
			return fmt.Errorf("variable %d of %d", in.Imm, len(k.Vars))
		}
		if in.Op == Get {
			return want(Void, Void, k.Vars[in.Imm])
		}
		return want(k.Vars[in.Imm], Void, Void)
	case BreakIf:
		if !inLoop {
			return fmt.Errorf("outside a loop")
		}
		return want(Bool, Void, Void)
	case If:
		return want(Bool, Void, Void)
	}
	return fmt.Errorf("no such operation")
}

// memory checks an access to a buffer.
func (c *checker) memory(in *Instr, t [3]Type) error {
	if in.Imm >= uint64(len(c.k.Args)) || c.k.Args[in.Imm].Kind != ArgPtr {
		return fmt.Errorf("argument %d is no pointer", in.Imm)
	}
	a := c.k.Args[in.Imm]
	reg := a.Mem.Reg()
	if !t[0].Int() || t[2] != Void {
		return fmt.Errorf("index of type %v", t[0])
	}
	if in.Op != Load && in.Op != LoadV && !a.Write {
		return fmt.Errorf("argument %d is not to be written", in.Imm)
	}
	b, out := Void, Void
	switch in.Op {
	case Load, LoadV:
		out = reg
	case Store:
		b = reg
	case AtomicAdd:
		if a.Mem != M32 {
			return fmt.Errorf("argument %d has elements %v, not m32", in.Imm, a.Mem)
		}
		b, out = I32, I32
	}
	if t[1] != b || in.Type != out {
		return fmt.Errorf("value %v, result %v, elements %v", t[1], in.Type, a.Mem)
	}
	if in.Op != LoadV && in.Op != StoreV {
		return nil
	}
	if in.N != 2 && in.N != 4 {
		return fmt.Errorf("%d elements", in.N)
	}
	if bytes := int(in.N) * a.Mem.Size(); 1<<a.Align < bytes {
		return fmt.Errorf("argument %d is aligned to %d bytes, the access to %d", in.Imm, 1<<a.Align, bytes)
	}
	if in.Op == StoreV && len(in.List) != int(in.N) || in.Op == LoadV && in.List != nil {
		return fmt.Errorf("%d values for %d elements", len(in.List), in.N)
	}
	for _, v := range in.List {
		if vt, err := c.typeOf(v); err != nil {
			return err
		} else if vt != reg {
			return fmt.Errorf("value v%d of type %v, elements %v", v, vt, a.Mem)
		}
	}
	return nil
}
