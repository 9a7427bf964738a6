package lower

import (
	"fmt"
	"slices"

	"nxvk/graph"
	"nxvk/kernel"
)

// Check proves of a Program what nothing else can see behind device addresses: that a barrier stands
// between any two steps that conflict, that every access lies inside its buffer, that every pointer
// of a step is covered by its accesses, and that steps, arguments and kernels fit one another.
func Check(p *Program) error {
	for i, b := range p.Bufs {
		if b.Kind == BufConst && uint64(len(b.Data)) != b.Bytes {
			return fmt.Errorf("program: buffer %d holds %d bytes of data, it has %d", i, len(b.Data), b.Bytes)
		}
		if b.Kind == BufParam && (b.Index < 0 || b.Index >= len(p.Params)) {
			return fmt.Errorf("program: buffer %d is parameter %d of %d", i, b.Index, len(p.Params))
		}
	}
	written := make([]bool, len(p.Bufs))
	open := newAccessSet(len(p.Bufs))
	for i := range p.Steps {
		s := &p.Steps[i]
		if err := checkStep(p, s); err != nil {
			return fmt.Errorf("program: step %d: %w", i, err)
		}
		if s.Barrier {
			open.clear()
		} else if s.Host != nil {
			return fmt.Errorf("program: step %d (%s) runs before the device is done: no barrier stands before it", i, p.name(s))
		}
		if open.conflicts(s.Access) {
			return fmt.Errorf("program: step %d (%s) conflicts with a step before it and no barrier stands between", i, p.name(s))
		}
		open.add(s.Access)
		for _, a := range s.Access {
			kind := p.Bufs[a.Buf].Kind
			if a.Write && (kind == BufParam || kind == BufConst) {
				return fmt.Errorf("program: step %d writes buffer %d, an input", i, a.Buf)
			}
			if !a.Write && !written[a.Buf] && kind != BufParam && kind != BufConst {
				return fmt.Errorf("program: step %d reads buffer %d, which no step has written", i, a.Buf)
			}
		}
		for _, a := range s.Access {
			written[a.Buf] = written[a.Buf] || a.Write
		}
	}
	for i, b := range p.Bounds {
		if b.Flag < 0 || b.Flag >= len(p.Bufs) || p.Bufs[b.Flag].Kind != BufFlag {
			return fmt.Errorf("program: check %d is told by buffer %d, which is no flag", i, b.Flag)
		}
		if b.Index < 0 || b.Index >= len(p.Bufs) {
			return fmt.Errorf("program: check %d is of buffer %d of %d", i, b.Index, len(p.Bufs))
		}
	}
	return checkOuts(p, written)
}

func checkStep(p *Program, s *Step) error {
	for _, a := range s.Access {
		if a.Buf < 0 || a.Buf >= len(p.Bufs) {
			return fmt.Errorf("access to buffer %d of %d", a.Buf, len(p.Bufs))
		}
		if a.Lo >= a.Hi || a.Hi > p.Bufs[a.Buf].Bytes {
			return fmt.Errorf("access to bytes %d to %d of buffer %d, which has %d", a.Lo, a.Hi, a.Buf, p.Bufs[a.Buf].Bytes)
		}
	}
	if s.Host != nil {
		return checkHost(p, s)
	}
	if s.Kernel < 0 || s.Kernel >= len(p.Kernels) {
		return fmt.Errorf("kernel %d of %d", s.Kernel, len(p.Kernels))
	}
	k := p.Kernels[s.Kernel]
	if len(s.Args) != len(k.Args) {
		return fmt.Errorf("%d arguments for kernel %s, which takes %d", len(s.Args), k.Name, len(k.Args))
	}
	for _, n := range s.Grid {
		if n == 0 {
			return fmt.Errorf("an empty grid %v", s.Grid)
		}
	}
	for i, a := range s.Args {
		ka := &k.Args[i]
		if (a.Kind == ArgAddr) != (ka.Kind == kernel.ArgPtr) {
			return fmt.Errorf("argument %d (%s) of kernel %s is of the wrong kind", i, ka.Name, k.Name)
		}
		switch a.Kind {
		case ArgAddr:
			if err := checkAddr(p, s, a, ka); err != nil {
				return fmt.Errorf("argument %d (%s) of kernel %s: %w", i, ka.Name, k.Name, err)
			}
		case ArgValue:
			if a.Param < 0 || a.Param >= len(p.Params) || !p.Params[a.Param].ByValue {
				return fmt.Errorf("argument %d (%s) of kernel %s is parameter %d, which is not passed by value", i, ka.Name, k.Name, a.Param)
			}
		}
	}
	return nil
}

// checkAddr wants an access of the step that begins where the pointer points, and an aligned address.
func checkAddr(p *Program, s *Step, a Arg, ka *kernel.Arg) error {
	if a.Buf < 0 || a.Buf >= len(p.Bufs) {
		return fmt.Errorf("buffer %d of %d", a.Buf, len(p.Bufs))
	}
	if a.Offset&(1<<ka.Align-1) != 0 {
		return fmt.Errorf("offset %d is not aligned to %d", a.Offset, 1<<ka.Align)
	}
	for _, x := range s.Access {
		if x.Buf == a.Buf && x.Lo <= a.Offset && a.Offset < x.Hi && (x.Write || !ka.Write) {
			return nil
		}
	}
	return fmt.Errorf("no access covers byte %d of buffer %d", a.Offset, a.Buf)
}

func checkOuts(p *Program, written []bool) error {
	for i, o := range p.Outs {
		if o.Buf < 0 || o.Buf >= len(p.Bufs) {
			return fmt.Errorf("program: result %d is in buffer %d of %d", i, o.Buf, len(p.Bufs))
		}
		b := &p.Bufs[o.Buf]
		if b.Kind != BufOut && b.Kind != BufParam {
			return fmt.Errorf("program: result %d is in buffer %d, which does not outlive the run", i, o.Buf)
		}
		if b.Kind == BufOut && !written[o.Buf] {
			return fmt.Errorf("program: result %d is in buffer %d, which no step writes", i, o.Buf)
		}
		if err := checkLayout(o, b.Bytes); err != nil {
			return fmt.Errorf("program: result %d: %w", i, err)
		}
	}
	return nil
}

// checkHost wants every operand and result of a step of the host inside its buffer, and all of it among the accesses.
func checkHost(p *Program, s *Step) error {
	h := s.Host
	if len(s.Args) > 0 || len(h.Out) != 1+len(h.Node.More) {
		return fmt.Errorf("%d arguments, and %d buffers for %d results", len(s.Args), len(h.Out), 1+len(h.Node.More))
	}
	specs := make([]graph.Spec, len(h.In))
	for i := range h.In {
		in := &h.In[i]
		specs[i] = in.Spec
		var err error
		switch {
		case in.Buf >= 0:
			err = checkTensor(p, s, in.Buf, in.Spec, in.Layout, false)
		case in.Param >= 0:
			if in.Param >= len(p.Params) || !p.Params[in.Param].ByValue || p.Params[in.Param].Type != in.Type {
				err = fmt.Errorf("parameter %d is not a number of type %v", in.Param, in.Type)
			}
		case len(in.Data) != in.Type.Size():
			err = fmt.Errorf("%d bytes for a number of type %v", len(in.Data), in.Type)
		}
		if err != nil {
			return fmt.Errorf("operand %d of %s: %w", i, h.Node.Op, err)
		}
	}
	for i, b := range h.Out {
		spec := h.result(i)
		if err := checkTensor(p, s, b, spec, graph.Contiguous(spec.Shape), true); err != nil {
			return fmt.Errorf("result %d of %s: %w", i, h.Node.Op, err)
		}
	}
	return graph.VerifyNode(&h.Node, specs)
}

func checkTensor(p *Program, s *Step, buf int, spec graph.Spec, l graph.Layout, write bool) error {
	if buf < 0 || buf >= len(p.Bufs) {
		return fmt.Errorf("buffer %d of %d", buf, len(p.Bufs))
	}
	if err := graph.CheckLayout(spec.Shape, l, int(p.Bufs[buf].Bytes)/spec.Type.Size()); err != nil {
		return err
	}
	if !slices.Contains(s.Access, reached(buf, spec, l, write)) {
		return fmt.Errorf("no access covers it in buffer %d", buf)
	}
	return nil
}
