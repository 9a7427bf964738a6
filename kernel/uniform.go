package kernel

import "fmt"

// checkUniform refuses a Barrier that part of a workgroup may not reach.
//
// A value is uniform when all invocations of a workgroup that compute it get the same: it derives
// from constants, scalars, workgroup ids, and loads at uniform indices from memory that nobody writes
// meanwhile (arguments that the kernel does not write; shared memory, where a race is an error of its
// own: see Run). A variable is uniform while every Set of it is of a uniform value in uniform control
// flow. Control flow diverges in an If on another condition and in a Loop that such a condition, or a
// break in diverged flow, may leave early; it is uniform again after it.
func checkUniform(k *Kernel) error {
	if !hasBarrier(k.Body) {
		return nil
	}
	u := &uniformity{
		k:      k,
		values: make([]bool, k.Values),
		vars:   make([]bool, len(k.Vars)),
		loops:  map[*Instr]bool{},
	}
	// Start from "all uniform" and take back until nothing changes: each round takes back at least one.
	for u.changed = true; u.changed; {
		u.changed = false
		u.body(k.Body, false, nil)
	}
	return u.barriers(k.Body, false)
}

func hasBarrier(body []Instr) bool {
	found := false
	walk(body, func(in *Instr) { found = found || in.Op == Barrier })
	return found
}

// uniformity holds what is known to vary within a workgroup.
type uniformity struct {
	k       *Kernel
	values  []bool
	vars    []bool
	loops   map[*Instr]bool // some invocations may leave this loop before others
	changed bool
}

func (u *uniformity) mark(flag *bool) {
	if !*flag {
		*flag, u.changed = true, true
	}
}

func (u *uniformity) varies(in *Instr) bool {
	switch in.Op {
	case Builtin:
		return in.Imm >= LocalX && in.Imm <= LocalZ && u.k.Local[in.Imm-LocalX] > 1
	case Load, LoadV:
		return u.k.Args[in.Imm].Write || u.values[in.A]
	case AtomicAdd:
		return true
	case Get:
		return u.vars[in.Imm]
	}
	return u.values[in.A] || u.values[in.B] || u.values[in.C]
}

// body walks a sequence in control flow that is diverged or not, inside loop (or nil).
func (u *uniformity) body(body []Instr, diverged bool, loop *Instr) {
	for i := range body {
		in := &body[i]
		switch in.Op {
		case Set:
			if diverged || u.values[in.A] {
				u.mark(&u.vars[in.Imm])
			}
		case If:
			d := diverged || u.values[in.A]
			u.body(in.Body, d, loop)
			u.body(in.Else, d, loop)
		case Loop:
			u.body(in.Body, diverged || u.loops[in], in)
		case BreakIf:
			if (diverged || u.values[in.A]) && !u.loops[loop] {
				u.loops[loop], u.changed = true, true
			}
		default:
			if in.Dst != 0 && u.varies(in) {
				for j := range Value(in.results()) {
					u.mark(&u.values[in.Dst+j])
				}
			}
		}
	}
}

func (u *uniformity) barriers(body []Instr, diverged bool) error {
	for i := range body {
		in := &body[i]
		d := diverged
		switch in.Op {
		case Barrier:
			if diverged {
				return fmt.Errorf("a barrier in control flow that differs within a workgroup")
			}
		case If:
			d = d || u.values[in.A]
		case Loop:
			d = d || u.loops[in]
		}
		if err := u.barriers(in.Body, d); err != nil {
			return err
		}
		if err := u.barriers(in.Else, d); err != nil {
			return err
		}
	}
	return nil
}
