package dispatch

import (
	"container/list"
	"encoding/binary"

	"nxvk/graph"
	"nxvk/lower"
	"nxvk/vkrt"
)

// program is a lower.Program bound to the device: its kernels are pipelines, its constants lie in
// device memory, and its argument tables are filled but for what differs from run to run.
type program struct {
	key    string
	lru    *list.Element
	params []graph.Param
	bufs   []lower.Buffer
	consts []*vkrt.Buffer // by buffer; nil for others
	steps  []step
	outs   []output
	bounds []lower.Bound
	temps  []int // buffers that are released after each run
}

// step is a dispatch, ready but for its arguments.
type step struct {
	host   *lower.HostStep // what the processor runs: no pipeline, grid or table
	access []lower.Access

	pipe  *vkrt.Pipeline
	grid  [3]uint32
	table []uint64
	fixes []fix
	uses  []use
}

// fix is an entry of the table that is known at the run: an address, or a scalar.
type fix struct {
	slot   int
	buf    int // -1: a by-value parameter
	offset uint64
	param  int
	conv   lower.ValueConv
}

type use struct {
	buf   int
	write bool
	flag  bool // of a word that no other step touches
}

type output struct {
	buf   int
	shape *shape
}

// newProgram binds p, whose kernels have become pipes.
func newProgram(p *lower.Program, pipes []*vkrt.Pipeline) *program {
	b := &program{params: p.Params, bufs: p.Bufs, bounds: p.Bounds, consts: make([]*vkrt.Buffer, len(p.Bufs))}
	for _, o := range p.Outs {
		b.outs = append(b.outs, output{o.Buf, newShape(o.Spec, o.Layout)})
	}
	for i, buf := range p.Bufs {
		if buf.Kind == lower.BufTemp {
			b.temps = append(b.temps, i)
		}
	}
	for _, s := range p.Steps {
		if s.Host != nil {
			b.steps = append(b.steps, step{host: s.Host, access: s.Access})
			continue
		}
		// Entry 0 is the zero that Opaque reads.
		st := step{pipe: pipes[s.Kernel], grid: s.Grid, table: make([]uint64, len(s.Args)+1)}
		for i, a := range s.Args {
			i++
			switch a.Kind {
			case lower.ArgImm:
				st.table[i] = a.Imm
			case lower.ArgAddr:
				st.fixes = append(st.fixes, fix{slot: i, buf: a.Buf, offset: a.Offset})
			case lower.ArgValue:
				st.fixes = append(st.fixes, fix{slot: i, buf: -1, param: a.Param, conv: a.Conv})
			}
		}
		for _, a := range s.Access {
			st.use(a.Buf, a.Write, p.Bufs[a.Buf].Kind == lower.BufFlag)
		}
		b.steps = append(b.steps, st)
	}
	return b
}

// use notes that the step touches buf, once for each buffer.
func (s *step) use(buf int, write, flag bool) {
	for i := range s.uses {
		if s.uses[i].buf == buf {
			s.uses[i].write = s.uses[i].write || write
			return
		}
	}
	s.uses = append(s.uses, use{buf, write, flag})
}

// programs is a bounded cache of bound programs by key, least recently used out first.
type programs struct {
	byKey map[string]*program
	order *list.List
	limit int

	hits, misses uint64
}

func newPrograms(limit int) *programs {
	return &programs{byKey: map[string]*program{}, order: list.New(), limit: limit}
}

func (c *programs) get(key []byte) *program {
	p := c.byKey[string(key)]
	if p == nil {
		c.misses++
		return nil
	}
	c.hits++
	if c.order.Front() != p.lru {
		c.order.MoveToFront(p.lru)
	}
	return p
}

func (c *programs) put(key []byte, p *program) {
	p.key = string(key)
	c.byKey[p.key] = p
	p.lru = c.order.PushFront(p)
	for len(c.byKey) > c.limit {
		c.evict(c.order.Back().Value.(*program))
	}
}

func (c *programs) evict(p *program) {
	c.order.Remove(p.lru)
	delete(c.byKey, p.key)
	for _, b := range p.consts {
		if b != nil {
			b.Release()
		}
	}
}

// programKey is the key of a compiled program: it is run for its operands' layouts.
func programKey(dst []byte, id int64) []byte {
	return binary.AppendUvarint(append(dst, 'p'), uint64(id))
}

// operandsKey appends what of the operands a program depends on: types, shapes and layouts, but
// neither ids nor the values of host scalars.
func operandsKey(dst []byte, ins []operand) []byte {
	for i := range ins {
		if t := ins[i].tensor; t != nil {
			dst = append(dst, t.shape.key...)
		} else {
			dst = append(dst, 'v', byte(ins[i].typ))
		}
	}
	return dst
}
