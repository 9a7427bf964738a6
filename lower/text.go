package lower

import (
	"fmt"
	"strings"

	"nxvk/graph"
)

func (k BufKind) String() string { return [...]string{"param", "out", "temp", "const", "flag"}[k] }

// checkLayout wants a result inside its buffer.
func checkLayout(o Out, bytes uint64) error {
	return graph.CheckLayout(o.Spec.Shape, o.Layout, int(bytes)/o.Spec.Type.Size())
}

// String prints a Program: buffers, steps with their arguments, results.
func (p *Program) String() string {
	var b strings.Builder
	for i, f := range p.Bufs {
		fmt.Fprintf(&b, "buffer %d: %v", i, f.Kind)
		if f.Kind == BufParam {
			fmt.Fprintf(&b, " %d", f.Index)
		}
		fmt.Fprintf(&b, ", %d bytes\n", f.Bytes)
	}
	for i, s := range p.Steps {
		if s.Barrier {
			b.WriteString("barrier\n")
		}
		if s.Host != nil {
			fmt.Fprintf(&b, "step %d: %s (%s)", i, p.name(&s), s.Host.text())
		} else {
			fmt.Fprintf(&b, "step %d: %s over %d×%d×%d (", i, p.name(&s), s.Grid[0], s.Grid[1], s.Grid[2])
			for j, a := range s.Args {
				if j > 0 {
					b.WriteString(", ")
				}
				b.WriteString(p.Kernels[s.Kernel].Args[j].Name + "=" + a.text())
			}
			b.WriteString(")")
		}
		for _, a := range s.Access {
			verb := "reads"
			if a.Write {
				verb = "writes"
			}
			fmt.Fprintf(&b, " %s %d[%d:%d]", verb, a.Buf, a.Lo, a.Hi)
		}
		b.WriteByte('\n')
	}
	for i, o := range p.Outs {
		fmt.Fprintf(&b, "result %d: %v in buffer %d", i, o.Spec, o.Buf)
		if o.Layout.Offset != 0 || !o.Layout.IsContiguous(o.Spec.Shape) {
			fmt.Fprintf(&b, " at %d by %v", o.Layout.Offset, o.Layout.Strides)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// text names the operands and the results of a step of the host: types, and buffers or numbers.
func (h *HostStep) text() string {
	var parts []string
	for _, in := range h.In {
		at := fmt.Sprintf("&%d", in.Buf)
		switch {
		case in.Buf < 0 && in.Param >= 0:
			at = fmt.Sprintf("param %d", in.Param)
		case in.Buf < 0:
			at = fmt.Sprintf("%#x", in.Data)
		}
		parts = append(parts, fmt.Sprintf("%v=%s", in.Spec, at))
	}
	for i, b := range h.Out {
		parts = append(parts, fmt.Sprintf("%v=&%d", h.result(i), b))
	}
	return strings.Join(parts, ", ")
}

func (a Arg) text() string {
	switch a.Kind {
	case ArgAddr:
		if a.Offset == 0 {
			return fmt.Sprintf("&%d", a.Buf)
		}
		return fmt.Sprintf("&%d+%d", a.Buf, a.Offset)
	case ArgValue:
		return fmt.Sprintf("param %d as %v", a.Param, a.Conv.To)
	}
	return fmt.Sprintf("%#x", a.Imm)
}
