package kernel

import (
	"fmt"
	"slices"
)

// Bind is what a run gives for an argument: the bytes behind a pointer, or the bits of a scalar
// (integers and F32 in the low bits). Element 0 lies at the start of Buf, and a kernel may not leave
// Buf. Buffers of several arguments may be the same memory.
type Bind struct {
	Buf  []byte
	Bits uint64
}

// Machine is the interpreter: a device that does what Num says, and otherwise as IEEE 754 says. It is
// the oracle for generators, for the emitter and for drivers.
//
// It refuses what a device would do silently: an access outside a buffer or a shared array; a barrier
// that part of a workgroup does not reach; two invocations that touch one element of shared memory
// between barriers, or of a buffer at any time, one of them to change it. What the IR leaves undefined
// (a division by zero, a shift by the width, a conversion out of range, shared memory that nobody has
// written) gives a fixed odd pattern.
type Machine struct {
	// Num chooses how Mad and FmaExact round and whether f32 arithmetic flushes subnormals. The
	// interpreter's division and square root are always correctly rounded.
	Num Numerics
	// AllowRaces turns the search for races off.
	AllowRaces bool
	// MaxSteps bounds the instructions run, each for up to a few hundred invocations; 0 is no bound.
	MaxSteps int64
}

// Run runs k over grid workgroups on a Machine that is Exact. args has one Bind for each of k.Args.
func Run(k *Kernel, grid [3]uint32, args []Bind) error {
	return (&Machine{Num: Exact}).Run(k, grid, args)
}

// Run runs k over grid workgroups. args has one Bind for each of k.Args. After an error the buffers
// hold whatever had been stored by then.
func (m *Machine) Run(k *Kernel, grid [3]uint32, args []Bind) error {
	if err := Check(k); err != nil {
		return err
	}
	if len(args) != len(k.Args) {
		return fmt.Errorf("kernel %s: run with %d arguments, it has %d", k.Name, len(args), len(k.Args))
	}
	total := uint64(grid[0]) * uint64(grid[1])
	if total > 1<<31 || total*uint64(grid[2])*uint64(k.Invocations()) >= 1<<32-2 {
		return fmt.Errorf("kernel %s: a grid of %v is too large to interpret", k.Name, grid)
	}
	total *= uint64(grid[2])
	if total == 0 {
		return nil
	}
	r := newRun(m, k, grid, args, int(total))
	for first := 0; first < int(total); first += r.capacity {
		r.start(first, min(r.capacity, int(total)-first))
		if _, err := r.exec(r.code, r.all); err != nil {
			return fmt.Errorf("kernel %s: %w", k.Name, err)
		}
	}
	return nil
}

// lanesWanted is how many invocations step together: enough to hide the cost of decoding an
// instruction, few enough that registers stay in the cache.
const lanesWanted = 256

// poison is what undefined results look like.
const poison = 0xa5a5a5a5a5a5a5a5

// run is the state of one Run. Whole workgroups step together, as lanes: lane l is invocation l % per
// of workgroup first + l / per. Every register is a slice over the lanes.
type run struct {
	*Machine
	k        *Kernel
	grid     [3]uint32
	code     []node
	per      int // invocations of a workgroup
	capacity int // workgroups that step together, at most
	first    int // the first of these now
	groups   int // how many these are now
	lanes    int // groups * per
	all      []int32
	regs     [][]uint64 // by Value
	vars     [][]uint64
	bufs     []buffer // by argument
	scalars  []uint64
	shared   []sharedArray
	epochs   []uint32  // by workgroup of the batch: how many barriers it has passed
	free     [][]int32 // lists of lanes to use again
	steps    int64
}

func newRun(m *Machine, k *Kernel, grid [3]uint32, args []Bind, total int) *run {
	r := &run{Machine: m, k: k, grid: grid, per: k.Invocations()}
	r.capacity = min(max(1, lanesWanted/r.per), total)
	n := r.capacity * r.per
	file := make([]uint64, (k.Values+len(k.Vars))*n)
	for i := range file {
		file[i] = poison
	}
	cut := func(count int) [][]uint64 {
		regs := make([][]uint64, count)
		for i := range regs {
			regs[i], file = file[:n:n], file[n:]
		}
		return regs
	}
	r.regs, r.vars = cut(k.Values), cut(len(k.Vars))
	r.scalars = make([]uint64, len(args))
	for i, a := range args {
		r.scalars[i] = a.Bits
		if k.Args[i].Kind == ArgScalar && k.Args[i].Type.Bits() == 32 {
			r.scalars[i] = uint64(uint32(a.Bits))
		}
	}
	r.bufs = bindBuffers(k, args, m.AllowRaces)
	r.epochs = make([]uint32, r.capacity)
	for _, a := range k.Shared {
		r.shared = append(r.shared, newShared(a, r.capacity))
	}
	types := make([]Type, k.Values)
	walk(k.Body, func(in *Instr) {
		bits := in.Imm
		switch in.Op {
		case Scalar:
			bits = r.scalars[in.Imm]
			fallthrough
		case Const:
			for i := range r.regs[in.Dst] {
				r.regs[in.Dst][i] = bits
			}
		}
		for j := range Value(in.results()) {
			types[in.Dst+j] = in.Type
		}
	})
	r.code = decode(k.Body, types, m.Num)
	return r
}

// start makes the lanes stand for groups workgroups from first on.
func (r *run) start(first, groups int) {
	r.first, r.groups, r.lanes = first, groups, groups*r.per
	if len(r.all) != r.lanes {
		r.all = make([]int32, r.lanes)
		for i := range r.all {
			r.all[i] = int32(i)
		}
	}
	for g := range r.epochs {
		r.epochs[g]++
	}
	for i := range r.shared {
		r.shared[i].reset()
	}
}

// node is a decoded instruction.
type node struct {
	*Instr
	one   func(a, b, c uint64) uint64 // pure operations: for one lane
	many  func(d, a, b, c []uint64)   // pure operations: for all lanes
	body  []node
	other []node
}

func decode(body []Instr, types []Type, num Numerics) []node {
	nodes := make([]node, len(body))
	for i := range body {
		in := &body[i]
		n := node{Instr: in}
		if Pure(in.Op) {
			n.one, n.many = operation(in.Op, types[in.A], types[in.B], in.Type, num)
		}
		n.body = decode(in.Body, types, num)
		n.other = decode(in.Else, types, num)
		nodes[i] = n
	}
	return nodes
}

// exec runs a sequence for the lanes of act, and returns those that did not leave the innermost loop.
// It does not keep act, and the result may be act itself.
func (r *run) exec(code []node, act []int32) ([]int32, error) {
	for i := range code {
		n := &code[i]
		var err error
		switch {
		case n.many != nil:
			r.pure(n, act)
		case n.Op == If:
			act, err = r.branch(n, act)
		case n.Op == Loop:
			err = r.loop(n, act)
		case n.Op == BreakIf:
			act = r.leave(r.regs[n.A], act)
		default:
			err = r.effect(n, act)
		}
		if err != nil {
			return nil, err
		}
		if len(act) == 0 {
			return act, nil
		}
	}
	if r.steps += int64(len(code)); r.MaxSteps > 0 && r.steps > r.MaxSteps {
		return nil, fmt.Errorf("more than %d steps", r.MaxSteps)
	}
	return act, nil
}

// pure computes for all lanes, active or not, where that is faster: registers of inactive lanes are
// never read, since values do not outlive the sequence that defines them.
func (r *run) pure(n *node, act []int32) {
	d, a, b, c := r.regs[n.Dst], r.regs[n.A], r.regs[n.B], r.regs[n.C]
	if w := r.lanes; len(act)*4 >= w {
		n.many(d[:w], a[:w], b[:w], c[:w])
		return
	}
	for _, l := range act {
		d[l] = n.one(a[l], b[l], c[l])
	}
}

// effect runs leaves, memory, variables and barriers.
func (r *run) effect(n *node, act []int32) error {
	switch n.Op {
	case Nop:
	case Const, Scalar: // written once, by newRun
	case Builtin:
		d := r.regs[n.Dst][:r.lanes]
		for l := range d {
			d[l] = uint64(r.builtin(int(n.Imm), l))
		}
	case Load, LoadV:
		return r.load(n, act)
	case Store, StoreV:
		return r.store(n, act)
	case AtomicAdd:
		return r.atomicAdd(n, act)
	case SLoad:
		return r.sharedLoad(n, act)
	case SStore:
		return r.sharedStore(n, act)
	case Get:
		copy(r.regs[n.Dst][:r.lanes], r.vars[n.Imm])
	case Set:
		from, to := r.regs[n.A], r.vars[n.Imm]
		if len(act) == r.lanes {
			copy(to, from[:r.lanes])
			return nil
		}
		for _, l := range act {
			to[l] = from[l]
		}
	case Barrier:
		return r.barrier(act)
	default:
		return fmt.Errorf("%v: not interpreted", n.Op)
	}
	return nil
}

func (r *run) group(g int) [3]int {
	x, y := int(r.grid[0]), int(r.grid[1])
	return [3]int{g % x, g / x % y, g / x / y}
}

func (r *run) local(l int) [3]int {
	x, y := int(r.k.Local[0]), int(r.k.Local[1])
	l %= r.per
	return [3]int{l % x, l / x % y, l / x / y}
}

func (r *run) builtin(which, lane int) int {
	switch {
	case which < LocalX:
		return r.group(r.first + lane/r.per)[which]
	case which < GroupsX:
		return r.local(lane)[which-LocalX]
	}
	return int(r.grid[which-GroupsX])
}

// where names the invocation behind a lane.
func (r *run) where(lane int32) string {
	return fmt.Sprintf("in invocation %v of workgroup %v", r.local(int(lane)), r.group(r.first+int(lane)/r.per))
}

// barrier checks that each workgroup is here as a whole or not at all.
func (r *run) barrier(act []int32) error {
	if len(act) == r.lanes {
		for g := range r.epochs {
			r.epochs[g]++
		}
		return nil
	}
	for i := 0; i < len(act); i += r.per {
		g := int(act[i]) / r.per
		last := i + r.per - 1
		if int(act[i]) != g*r.per || last >= len(act) || int(act[last]) != (g+1)*r.per-1 {
			return fmt.Errorf("barrier: not reached by all of workgroup %v", r.group(r.first+g))
		}
		r.epochs[g]++
	}
	return nil
}

// split parts act by a condition. Both lists are the caller's, to be put back in time.
func (r *run) split(cond []uint64, act []int32) (yes, no []int32) {
	yes, no = r.take(), r.take()
	for _, l := range act {
		if cond[l] != 0 {
			yes = append(yes, l)
		} else {
			no = append(no, l)
		}
	}
	return yes, no
}

func (r *run) take() []int32 {
	if n := len(r.free); n > 0 {
		s := r.free[n-1]
		r.free = r.free[:n-1]
		return s[:0]
	}
	return make([]int32, 0, r.capacity*r.per)
}

func (r *run) put(s []int32) { r.free = append(r.free, s) }

func (r *run) branch(n *node, act []int32) ([]int32, error) {
	yes, no := r.split(r.regs[n.A], act)
	rest := act
	gone := false // some lane left the loop
	for _, arm := range [...]struct {
		code  []node
		lanes *[]int32
	}{{n.body, &yes}, {n.other, &no}} {
		if len(*arm.lanes) == 0 {
			continue
		}
		before := len(*arm.lanes)
		left, err := r.exec(arm.code, *arm.lanes)
		if err != nil {
			return nil, err
		}
		gone = gone || len(left) < before
		*arm.lanes = left
	}
	if gone {
		rest = append(append(r.take(), yes...), no...)
		slices.Sort(rest)
	}
	r.put(yes)
	r.put(no)
	return rest, nil
}

// leave is what remains of act when those leave for which cond holds.
func (r *run) leave(cond []uint64, act []int32) []int32 {
	gone, stay := r.split(cond, act)
	switch {
	case len(gone) == 0:
		r.put(stay)
		stay = act
	case len(stay) == 0:
		r.put(stay)
		stay = nil
	}
	r.put(gone)
	return stay
}

func (r *run) loop(n *node, act []int32) error {
	for len(act) > 0 {
		var err error
		if act, err = r.exec(n.body, act); err != nil {
			return err
		}
	}
	return nil
}
