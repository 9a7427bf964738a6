package lower

// share lets temporaries whose lives do not overlap be one buffer. A buffer is taken over only behind a
// barrier that the program has anyway, so sharing adds none and keeps no steps apart.
func (l *lowering) share() {
	p := l.p
	first, last := make([]int, len(p.Bufs)), make([]int, len(p.Bufs))
	for i := range first {
		first[i] = -1
	}
	for i := range p.Steps {
		for _, a := range p.Steps[i].Access {
			if first[a.Buf] < 0 {
				first[a.Buf] = i
			}
			last[a.Buf] = i
		}
	}
	for _, b := range p.Bounds {
		last[b.Index] = len(p.Steps) // looked at after the run
	}
	starts, ends := make([][]int, len(p.Steps)), make([][]int, len(p.Steps)+1)
	for b, f := range first {
		if f >= 0 && p.Bufs[b].Kind == BufTemp {
			starts[f], ends[last[b]] = append(starts[f], b), append(ends[last[b]], b)
		}
	}
	owner := make([]int, len(p.Bufs)) // the buffer that stands for each
	for b := range owner {
		owner[b] = b
	}
	var free, freed []int // owners: free behind the last barrier, and since
	for i := range p.Steps {
		if p.Steps[i].Barrier {
			free, freed = append(free, freed...), freed[:0]
		}
		for _, b := range starts[i] {
			if k := closest(p.Bufs, free, p.Bufs[b].Bytes); k >= 0 {
				owner[b] = free[k]
				free = append(free[:k], free[k+1:]...)
				o := &p.Bufs[owner[b]]
				o.Bytes = max(o.Bytes, p.Bufs[b].Bytes)
			}
		}
		for _, b := range ends[i] {
			freed = append(freed, owner[b])
		}
	}
	l.renumber(owner)
}

// closest is the index in free of the buffer whose size differs least, by ratio, from bytes; -1 if there is none
// within a factor of 8.
func closest(bufs []Buffer, free []int, bytes uint64) int {
	best, at := uint64(8*1024), -1
	for k, b := range free {
		lo, hi := min(bufs[b].Bytes, bytes), max(bufs[b].Bytes, bytes)
		if r := hi * 1024 / max(lo, 1); r < best {
			best, at = r, k
		}
	}
	return at
}

// renumber drops the buffers that another stands for.
func (l *lowering) renumber(owner []int) {
	p := l.p
	number := make([]int, len(p.Bufs))
	kept := p.Bufs[:0:0]
	for b := range p.Bufs {
		if owner[b] == b {
			number[b] = len(kept)
			kept = append(kept, p.Bufs[b])
		}
	}
	to := func(b int) int { return number[owner[b]] }
	for i := range p.Steps {
		s := &p.Steps[i]
		for k := range s.Access {
			s.Access[k].Buf = to(s.Access[k].Buf)
		}
		if s.Host != nil {
			for k := range s.Host.In {
				if in := &s.Host.In[k]; in.Buf >= 0 {
					in.Buf = to(in.Buf)
				}
			}
			for k := range s.Host.Out {
				s.Host.Out[k] = to(s.Host.Out[k])
			}
		}
		for k := range s.Args {
			if s.Args[k].Kind == ArgAddr {
				s.Args[k].Buf = to(s.Args[k].Buf)
			}
		}
	}
	for i := range p.Bounds {
		b := &p.Bounds[i]
		b.Flag, b.Index = to(b.Flag), to(b.Index)
	}
	for i := range p.Outs {
		p.Outs[i].Buf = to(p.Outs[i].Buf)
	}
	p.Bufs = kept
}
