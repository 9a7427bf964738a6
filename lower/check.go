package lower

import (
	"fmt"

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
		}
		if open.conflicts(s.Access) {
			return fmt.Errorf("program: step %d (%s) conflicts with a step before it and no barrier stands between", i, p.Kernels[s.Kernel].Name)
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
	return checkOuts(p, written)
}

func checkStep(p *Program, s *Step) error {
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
	for _, a := range s.Access {
		if a.Buf < 0 || a.Buf >= len(p.Bufs) {
			return fmt.Errorf("access to buffer %d of %d", a.Buf, len(p.Bufs))
		}
		if a.Lo >= a.Hi || a.Hi > p.Bufs[a.Buf].Bytes {
			return fmt.Errorf("access to bytes %d to %d of buffer %d, which has %d", a.Lo, a.Hi, a.Buf, p.Bufs[a.Buf].Bytes)
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
