package lower

// barriers marks the steps that need a barrier before them: those that touch what a step since the last
// barrier touches, one of them to write, and those of the host, which wait for all before them.
func (l *lowering) barriers() {
	steps := l.p.Steps
	open := newAccessSet(len(l.p.Bufs))
	for i := range steps {
		if steps[i].Host != nil || open.conflicts(steps[i].Access) {
			steps[i].Barrier = true
			open.clear()
		}
		open.add(steps[i].Access)
	}
}

// accessSet holds the accesses since a barrier, by buffer.
type accessSet struct {
	byBuf   [][]Access
	touched []int
}

func newAccessSet(bufs int) *accessSet { return &accessSet{byBuf: make([][]Access, bufs)} }

func (s *accessSet) clear() {
	for _, b := range s.touched {
		s.byBuf[b] = s.byBuf[b][:0]
	}
	s.touched = s.touched[:0]
}

func (s *accessSet) add(as []Access) {
	for _, a := range as {
		if len(s.byBuf[a.Buf]) == 0 {
			s.touched = append(s.touched, a.Buf)
		}
		s.byBuf[a.Buf] = append(s.byBuf[a.Buf], a)
	}
}

func (s *accessSet) conflicts(as []Access) bool {
	for _, a := range as {
		for _, o := range s.byBuf[a.Buf] {
			if (a.Write || o.Write) && a.Lo < o.Hi && o.Lo < a.Hi {
				return true
			}
		}
	}
	return false
}
