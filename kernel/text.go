package kernel

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

var builtinNames = [...]string{
	"group.x", "group.y", "group.z", "local.x", "local.y", "local.z", "groups.x", "groups.y", "groups.z",
}

// Text prints k. Values are numbered in the order of their definition, so that kernels which differ
// in numbering alone print alike.
func (k *Kernel) Text() string {
	p := &printer{k: k, names: make([]int, k.Values)}
	fmt.Fprintf(&p.b, "kernel %s local %d %d %d\n", k.Name, k.Local[0], k.Local[1], k.Local[2])
	for i, a := range k.Args {
		fmt.Fprintf(&p.b, "arg %d %s ", i, a.Name)
		if a.Kind == ArgScalar {
			fmt.Fprintf(&p.b, "%v\n", a.Type)
			continue
		}
		fmt.Fprintf(&p.b, "*%v align %d", a.Mem, 1<<a.Align)
		if a.Write {
			p.b.WriteString(" write")
		}
		p.b.WriteByte('\n')
	}
	for i, a := range k.Shared {
		fmt.Fprintf(&p.b, "shared s%d %v[%d]\n", i, a.Mem, a.Len)
	}
	for i, t := range k.Vars {
		fmt.Fprintf(&p.b, "var x%d %v\n", i, t)
	}
	p.body(k.Body, 1)
	return p.b.String()
}

type printer struct {
	b     strings.Builder
	k     *Kernel
	names []int // by Value; 0 for one that is not defined
	count int
}

func (p *printer) name(v Value) string {
	if v <= 0 || int(v) >= len(p.names) || p.names[v] == 0 {
		return fmt.Sprintf("?%d", v)
	}
	return fmt.Sprintf("v%d", p.names[v])
}

func (p *printer) arg(i uint64) string {
	if i >= uint64(len(p.k.Args)) {
		return fmt.Sprintf("arg?%d", i)
	}
	return fmt.Sprintf("%d:%s", i, p.k.Args[i].Name)
}

func (p *printer) body(body []Instr, depth int) {
	for i := range body {
		in := &body[i]
		p.b.WriteString(strings.Repeat("  ", depth))
		if in.Dst > 0 {
			for j := range Value(in.results()) {
				p.count++
				if int(in.Dst+j) < len(p.names) {
					p.names[in.Dst+j] = p.count
				}
				if j > 0 {
					p.b.WriteString(", ")
				}
				p.b.WriteString(p.name(in.Dst + j))
			}
			p.b.WriteString(" = ")
		}
		p.b.WriteString(in.Op.String())
		if in.Type != Void {
			fmt.Fprintf(&p.b, ".%v", in.Type)
		}
		p.rest(in, depth)
		p.b.WriteByte('\n')
	}
}

// rest prints what follows the name of the operation.
func (p *printer) rest(in *Instr, depth int) {
	switch in.Op {
	case Const:
		p.b.WriteString(" " + constText(in.Type, in.Imm))
	case Scalar:
		p.b.WriteString(" " + p.arg(in.Imm))
	case Builtin:
		if in.Imm < uint64(len(builtinNames)) {
			p.b.WriteString(" " + builtinNames[in.Imm])
		} else {
			fmt.Fprintf(&p.b, " ?%d", in.Imm)
		}
	case Load, Store, LoadV, StoreV, AtomicAdd:
		fmt.Fprintf(&p.b, " %s[", p.arg(in.Imm))
		if in.N != 0 {
			fmt.Fprintf(&p.b, "%d*", in.N)
		}
		p.b.WriteString(p.name(in.A) + "]")
		if in.B != 0 {
			p.b.WriteString(" " + p.name(in.B))
		}
		for _, v := range in.List {
			p.b.WriteString(" " + p.name(v))
		}
	case SLoad, SStore:
		fmt.Fprintf(&p.b, " s%d[%s]", in.Imm, p.name(in.A))
		if in.B != 0 {
			p.b.WriteString(" " + p.name(in.B))
		}
	case Get:
		fmt.Fprintf(&p.b, " x%d", in.Imm)
	case Set:
		fmt.Fprintf(&p.b, " x%d %s", in.Imm, p.name(in.A))
	default:
		for _, v := range [...]Value{in.A, in.B, in.C} {
			if v != 0 {
				p.b.WriteString(" " + p.name(v))
			}
		}
	}
	if in.Op == If || in.Op == Loop {
		close := strings.Repeat("  ", depth) + "}"
		p.b.WriteString(" {\n")
		p.body(in.Body, depth+1)
		p.b.WriteString(close)
		if len(in.Else) > 0 {
			p.b.WriteString(" else {\n")
			p.body(in.Else, depth+1)
			p.b.WriteString(close)
		}
	}
}

// constText prints a constant so that it reads back to the same bits.
func constText(t Type, bits uint64) string {
	switch t {
	case Bool:
		return fmt.Sprint(bits != 0)
	case I32:
		return fmt.Sprint(int32(bits))
	case I64:
		return fmt.Sprint(int64(bits))
	case F32:
		if f := math.Float32frombits(uint32(bits)); f == f {
			return fmt.Sprintf("%x", f)
		}
	case F64:
		if f := math.Float64frombits(bits); f == f {
			return fmt.Sprintf("%x", f)
		}
	}
	return fmt.Sprintf("bits:%#x", bits)
}

// Hash is the identity of k: equal for kernels that differ only in their name, in the names of
// arguments, or in the numbering of values.
func (k *Kernel) Hash() [sha256.Size]byte {
	h := &hasher{names: make([]uint32, k.Values)}
	for _, n := range k.Local {
		h.num(uint64(n))
	}
	h.num(uint64(len(k.Args)))
	for _, a := range k.Args {
		if a.Kind == ArgScalar {
			h.b = append(h.b, byte(a.Kind), byte(a.Type))
			continue
		}
		write := byte(0)
		if a.Write {
			write = 1
		}
		h.b = append(h.b, byte(a.Kind), byte(a.Mem), write, a.Align)
	}
	h.num(uint64(len(k.Shared)))
	for _, a := range k.Shared {
		h.b = append(h.b, byte(a.Mem))
		h.num(uint64(a.Len))
	}
	h.num(uint64(len(k.Vars)))
	for _, t := range k.Vars {
		h.b = append(h.b, byte(t))
	}
	h.body(k.Body)
	return sha256.Sum256(h.b)
}

// hasher writes a kernel as bytes that no other kernel has.
type hasher struct {
	b     []byte
	names []uint32 // by Value, in order of definition
	count uint32
}

func (h *hasher) num(n uint64) { h.b = binary.AppendUvarint(h.b, n) }

func (h *hasher) value(v Value) {
	if v > 0 && int(v) < len(h.names) {
		h.num(uint64(h.names[v]))
		return
	}
	h.num(0)
}

func (h *hasher) body(body []Instr) {
	h.num(uint64(len(body)))
	for i := range body {
		in := &body[i]
		h.b = append(h.b, byte(in.Op), byte(in.Type), in.N)
		h.value(in.A)
		h.value(in.B)
		h.value(in.C)
		h.num(in.Imm)
		for _, v := range in.List {
			h.value(v)
		}
		if in.Dst > 0 {
			for j := range Value(in.results()) {
				h.count++
				if int(in.Dst+j) < len(h.names) {
					h.names[in.Dst+j] = h.count
				}
			}
		}
		if in.Op == If || in.Op == Loop {
			h.body(in.Body)
			h.body(in.Else)
		}
	}
}
