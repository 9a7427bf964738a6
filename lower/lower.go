package lower

import (
	"errors"
	"fmt"
	"slices"

	"nxvk/graph"
	"nxvk/host"
	"nxvk/kernel"
	"nxvk/shaders"
)

// Lower turns a verified graph into a Program for a device. What only moves axes about (reshape, squeeze,
// broadcast, transpose, reverse, bitcast, slices with constant starts) costs nothing: it changes the layout through
// which later kernels read. Nodes that no result needs are dropped. What the device has no kernel for, or lacks a type
// for, becomes a step of the processor; the error is a *shaders.Unsupported where that has no such operation either.
func Lower(g *graph.Graph, t kernel.Target) (*Program, error) { return lowerFor(g, t, false) }

// LowerToHost is Lower where every step is the processor's: what there is to hold a device to.
func LowerToHost(g *graph.Graph, t kernel.Target) (*Program, error) { return lowerFor(g, t, true) }

func lowerFor(g *graph.Graph, t kernel.Target, hostOnly bool) (*Program, error) {
	if !hostOnly {
		var err error
		if g, err = expand(g, t); err != nil {
			return nil, err
		}
	}
	l := &lowering{g: g, t: t, hostOnly: hostOnly, p: &Program{Params: g.Params}, kernels: map[[32]byte]int{}, more: map[graph.Ref][]place{}}
	l.start()
	live := l.live()
	for i := range g.Nodes {
		if !live[len(g.Params)+i] {
			continue
		}
		if err := l.node(i); err != nil {
			return nil, err
		}
	}
	for _, r := range g.Outs {
		if err := l.out(r); err != nil {
			return nil, err
		}
	}
	l.barriers()
	l.share()
	return l.p, nil
}

// Tier says who can run an operation.
type Tier uint8

const (
	Device Tier = iota // kernels of this device
	Host               // the processor, at least in part
	None               // nobody in this process: the caller must
)

func (t Tier) String() string { return [...]string{"device", "host", "none"}[t] }

// TierOf says where a node over operands of the given specs runs: a pure function of op, types, shapes,
// attributes and device.
func TierOf(t kernel.Target, n graph.Node, in []graph.Param) Tier {
	n.In = make([]graph.Ref, len(in))
	for i := range in {
		n.In[i] = graph.Ref(i)
	}
	g := &graph.Graph{Params: in}
	g.Nodes, g.Outs = graph.One(n, len(in))
	if graph.Verify(g) != nil {
		return None
	}
	p, err := Lower(g, t)
	switch {
	case err != nil:
		return None
	case len(p.HostOps()) > 0:
		return Host
	}
	return Device
}

// place is where a value of the graph is: a tensor in a buffer, or a number that every element shares.
type place struct {
	spec   graph.Spec
	buf    int // tensors: -1 for a shared number
	layout graph.Layout
	param  int         // a by-value parameter, or -1
	value  graph.Value // else the constant, in spec.Type
}

func (p *place) tensor() bool   { return p.buf >= 0 }
func (p *place) constant() bool { return p.buf < 0 && p.param < 0 }

type lowering struct {
	g       *graph.Graph
	t       kernel.Target
	p       *Program
	at      []place               // by Ref; the first result of nodes that have several
	more    map[graph.Ref][]place // the further results of such nodes
	kernels map[[32]byte]int

	hostOnly bool
}

// start places the parameters. Those that a Program does not use have a buffer all the same, so that
// callers bind by position.
func (l *lowering) start() {
	l.at = make([]place, len(l.g.Params)+len(l.g.Nodes))
	for i, p := range l.g.Params {
		if p.ByValue {
			l.at[i] = place{spec: p.Spec, buf: -1, param: i}
			continue
		}
		layout := p.Layout
		if layout.Strides == nil {
			layout = graph.Layout{Offset: layout.Offset, Strides: p.Shape.Strides()}
		}
		_, hi := graph.Reach(p.Shape, layout)
		l.at[i] = place{spec: p.Spec, buf: len(l.p.Bufs), layout: layout, param: -1}
		l.p.Bufs = append(l.p.Bufs, Buffer{Kind: BufParam, Index: i, Bytes: uint64(hi * p.Type.Size())})
	}
}

// live marks the values that the results need.
func (l *lowering) live() []bool {
	live := make([]bool, len(l.at))
	for _, r := range l.g.Outs {
		live[r] = true
	}
	for i := len(l.g.Nodes) - 1; i >= 0; i-- {
		if live[len(l.g.Params)+i] {
			for _, r := range l.g.Nodes[i].In {
				live[r] = true
			}
		}
	}
	return live
}

// temp adds a buffer for a result of spec.
func (l *lowering) temp(s graph.Spec) int {
	l.p.Bufs = append(l.p.Bufs, Buffer{Kind: BufTemp, Bytes: uint64(s.Shape.Size() * s.Type.Size())})
	return len(l.p.Bufs) - 1
}

func (l *lowering) node(i int) error {
	n := &l.g.Nodes[i]
	ref := len(l.g.Params) + i
	if v, ok := l.view(n); ok {
		l.at[ref] = v
		return nil
	}
	in := make([]place, len(n.In))
	for k, r := range n.In {
		in[k] = l.at[r]
	}
	results, err := l.compute(n, in)
	if err != nil {
		return wrap(n, err)
	}
	l.at[ref], l.more[graph.Ref(ref)] = results[0], results[1:]
	return nil
}

// compute adds the steps that run n, and yields its results.
func (l *lowering) compute(n *graph.Node, in []place) ([]place, error) {
	specs := make([]graph.Spec, len(in))
	for k := range in {
		specs[k] = in[k].spec
	}
	if l.hostOnly && host.Has(n.Op) || preferHost(n, specs, l.t) {
		return l.onHost(n, in), nil
	}
	bufs, steps, bounds := len(l.p.Bufs), len(l.p.Steps), len(l.p.Bounds)
	results, err := l.onDevice(n, slices.Clone(in))
	if err != nil {
		var u *shaders.Unsupported
		if !errors.As(err, &u) || !host.Has(n.Op) {
			return nil, err
		}
		// Without numbers and conversions that were put into memory for a kernel.
		l.p.Bufs, l.p.Steps, l.p.Bounds = l.p.Bufs[:bufs], l.p.Steps[:steps], l.p.Bounds[:bounds]
		return l.onHost(n, in), nil
	}
	return results, nil
}

// composites are the operations whose kernels want their operands in a form that takes steps of its own.
var composites = map[graph.Op]func(l *lowering, n *graph.Node, in []place) ([]place, error){}

// onDevice adds the dispatches that run n, and yields its results.
func (l *lowering) onDevice(n *graph.Node, in []place) ([]place, error) {
	if f := composites[n.Op]; f != nil {
		return f(l, n, in)
	}
	plan, used, err := l.plan(n, in)
	if err != nil {
		return nil, err
	}
	results := []place{l.result(n.Spec)}
	for _, s := range n.More {
		results = append(results, l.result(s))
	}
	l.emit(n.Op, plan, used, results...)
	return results, nil
}

// copied is p in a buffer of its own, row-major.
func (l *lowering) copied(p place) (place, error) {
	n := graph.Node{Op: graph.OpAsType, Spec: p.spec}
	out, err := l.compute(&n, []place{p})
	if err != nil {
		return p, wrap(&n, err)
	}
	return out[0], nil
}

// result is a new buffer for a value of spec.
func (l *lowering) result(s graph.Spec) place {
	return place{spec: s, buf: l.temp(s), layout: graph.Contiguous(s.Shape), param: -1}
}

func wrap(n *graph.Node, err error) error {
	var u *shaders.Unsupported
	if errors.As(err, &u) {
		return err
	}
	return fmt.Errorf("lower: %s: %w", n.Op, err)
}

// plan asks the generators. used are the places behind the plan's operand slots.
func (l *lowering) plan(n *graph.Node, in []place) (*shaders.Plan, []place, error) {
	if !complexKernels[n.Op] && touchesComplex(l.g, n, n.In) && !(movedByParts[n.Op] && movesWhole(l.t, n.Type)) {
		return nil, nil, &shaders.Unsupported{Op: n.Op, Type: n.Type, Why: "there is no kernel for complex numbers"}
	}
	t, at := l.t, &n.Attrs
	tensors := func(k int) shaders.Operand { return l.operand(&in[k]) }
	var plan *shaders.Plan
	var err error
	switch n.Op {
	case graph.OpIota:
		plan, err = shaders.Iota(t, n.Spec, at.Axis)
	case graph.OpEye:
		plan, err = shaders.Eye(t, n.Spec)
	case graph.OpReshape, graph.OpAsType, graph.OpBroadcast, graph.OpFromParts:
		x := l.leaf(&in[0], "", 0)
		if n.Op == graph.OpFromParts {
			plan, err = shaders.Copy(t, shaders.Leaf{Operand: tensors(0)}, in[0].spec)
			break
		}
		if n.Op == graph.OpReshape && in[0].tensor() {
			// A copy in the operand's own shape has the elements in the result's order.
			plan, err = shaders.Copy(t, x, graph.Spec{Type: n.Type, Shape: in[0].spec.Shape})
			break
		}
		plan, err = shaders.Copy(t, x, n.Spec)
	case graph.OpPad:
		v := in[1]
		plan, err = shaders.Pad(t, tensors(0), l.leaf(&v, n.Op, n.Type), n.Spec, at.Pad)
	case graph.OpSlice:
		plan, err = shaders.Slice(t, tensors(0), l.leaves(in[1:]), n.Spec, at.Lengths, at.Strides)
	case graph.OpPutSlice:
		plan, err = shaders.PutSlice(t, tensors(0), tensors(1), l.leaves(in[2:]), n.Spec)
	case graph.OpConcat, graph.OpStack:
		xs := make([]shaders.Operand, len(in))
		for k := range in {
			xs[k] = tensors(k)
		}
		if n.Op == graph.OpConcat {
			plan, err = shaders.Concat(t, xs, n.Spec, at.Axis)
		} else {
			plan, err = shaders.Stack(t, xs, n.Spec, at.Axis)
		}
	case graph.OpSum, graph.OpProduct, graph.OpReduceMax, graph.OpReduceMin, graph.OpAll, graph.OpAny:
		plan, err = shaders.Reduce(t, n.Op, tensors(0), n.Spec, at.Axes, at.Acc)
	case graph.OpArgMax, graph.OpArgMin:
		plan, err = shaders.ArgReduce(t, n.Op, tensors(0), n.Spec, at.Axis, at.High)
	case graph.OpCumulativeSum, graph.OpCumulativeProduct, graph.OpCumulativeMax, graph.OpCumulativeMin:
		plan, err = shaders.Scan(t, n.Op, tensors(0), n.Spec, at.Axis, at.Reverse, at.Acc)
	case graph.OpSort:
		plan, err = shaders.Sort(t, tensors(0), n.Spec, at.Axis, at.Desc)
	case graph.OpArgSort:
		plan, err = shaders.ArgSort(t, tensors(0), n.Spec, at.Axis, at.Desc)
	case graph.OpTopK:
		plan, err = shaders.TopK(t, tensors(0), n.Spec, n.More[0])
	case graph.OpWindowSum, graph.OpWindowProduct, graph.OpWindowMax, graph.OpWindowMin:
		plan, err = shaders.Window(t, n.Op, tensors(0), n.Spec, at)
	case graph.OpReduce, graph.OpWindowReduce:
		plan, err = l.reduction(n, in)
	case graph.OpWindowScatterMax, graph.OpWindowScatterMin:
		plan, err = shaders.WindowScatter(t, n.Op, tensors(0), tensors(1), l.leaf(&in[2], n.Op, n.Type), n.Spec, at)
	case graph.OpFFT, graph.OpIFFT, graph.OpRFFT, graph.OpIRFFT:
		plan, err = shaders.FFT(t, n.Op, tensors(0), n.Spec, at.Axis, at.Length, at.Eps)
	case graph.OpDot:
		plan, err = shaders.Dot(t, tensors(0), tensors(1), n.Spec, *at)
	case graph.OpConv:
		plan, err = shaders.Conv(t, tensors(0), tensors(1), n.Spec, *at)
	case graph.OpIndexedAdd:
		plan, err = shaders.IndexedAdd(t, tensors(0), tensors(1), tensors(2), n.Spec, at.Axes)
	case graph.OpIndexedPut:
		plan, err = shaders.IndexedPut(t, tensors(0), tensors(1), tensors(2), n.Spec, at.Axes)
	case graph.OpGather:
		plan, err = shaders.Gather(t, tensors(0), tensors(1), n.Spec, at.Axes)
	case graph.OpTake:
		plan, err = shaders.Take(t, tensors(0), tensors(1), n.Spec, at.Axis)
	case graph.OpTakeAlongAxis:
		plan, err = shaders.TakeAlongAxis(t, tensors(0), tensors(1), n.Spec, at.Axis)
	default:
		if !shaders.ElementwiseOp(n.Op) {
			return nil, nil, &shaders.Unsupported{Op: n.Op, Type: n.Type, Why: "there is no kernel for it"}
		}
		plan, err = l.elementwise(n, in)
	}
	if err == nil {
		err = l.lacks(n.Op, n.Type, plan)
	}
	return plan, in, err
}

// lacks refuses a plan whose kernels take registers that the device has not: 64-bit indices, say, which depend on shapes.
func (l *lowering) lacks(op graph.Op, t graph.Type, plan *shaders.Plan) error {
	for i := range plan.Launches {
		if what := kernel.Lacks(plan.Launches[i].Kernel, l.t); what != "" {
			return &shaders.Unsupported{Op: op, Type: t, Why: "its kernel takes " + what + ", which the device lacks"}
		}
	}
	return nil
}

// elementwise makes a region of one node.
func (l *lowering) elementwise(n *graph.Node, in []place) (*shaders.Plan, error) {
	r := &shaders.Region{Shape: n.Shape, Outs: []int{len(in)}}
	node := shaders.RegionNode{Op: n.Op, Type: n.Type}
	for k := range in {
		r.In = append(r.In, l.leaf(&in[k], n.Op, n.Type))
		node.In = append(node.In, k)
	}
	r.Nodes = []shaders.RegionNode{node}
	return shaders.Elementwise(l.t, r)
}

// leaf is a place as an operand of a kernel that reads numbers from its argument table. A constant that
// op only values gets the narrowest type that holds it.
func (l *lowering) leaf(p *place, op graph.Op, out graph.Type) shaders.Leaf {
	f := shaders.Leaf{Operand: shaders.Operand{Spec: p.spec, Layout: p.layout}}
	switch {
	case p.tensor():
	case p.constant():
		f.Const, f.Bits, f.Upper = true, p.value.Lo, p.value.Hi
		f.Type, f.Bits = NarrowValue(op, out, f.Type, f.Bits)
		if f.Type.Size() == 8 && !l.t.I64 { // no register holds it, but memory does
			return shaders.Leaf{Operand: l.operand(p)}
		}
	default:
		f.ByValue = true
	}
	return f
}

func (l *lowering) leaves(in []place) []shaders.Leaf {
	out := make([]shaders.Leaf, len(in))
	for k := range in {
		if p := &in[k]; p.constant() {
			out[k] = shaders.Leaf{Operand: shaders.Operand{Spec: p.spec}, Const: true, Bits: p.value.Lo, Upper: p.value.Hi}
		} else {
			out[k] = l.leaf(p, "", 0)
		}
	}
	return out
}

// operand is a place as a tensor in memory. A shared number is put into a buffer of one element, which
// every element of the tensor is read from.
func (l *lowering) operand(p *place) shaders.Operand {
	if !p.tensor() {
		l.materialize(p)
	}
	return shaders.Operand{Spec: p.spec, Layout: p.layout}
}

func (l *lowering) materialize(p *place) {
	if p.constant() {
		data := p.value.AppendBytes(nil, p.spec.Type)
		l.p.Bufs = append(l.p.Bufs, Buffer{Kind: BufConst, Bytes: uint64(len(data)), Data: data})
		p.buf = len(l.p.Bufs) - 1
	} else {
		src := *p
		src.spec.Shape = graph.Shape{}
		dst, err := l.copied(src)
		if err != nil {
			panic("lower: copying a number: " + err.Error()) // the device or the host can
		}
		p.buf = dst.buf
	}
	p.param = -1
	p.layout = graph.Layout{Strides: make([]int, len(p.spec.Shape))}
}

// emit adds a plan's launches. Slots are the operands in, then the results, then temporaries, then tables.
func (l *lowering) emit(op graph.Op, plan *shaders.Plan, in []place, outs ...place) {
	slots := make([]int, 0, len(in)+len(outs)+len(plan.Temps))
	for _, p := range in {
		slots = append(slots, p.buf)
	}
	for _, p := range outs {
		slots = append(slots, p.buf)
	}
	for _, bytes := range plan.Temps {
		l.p.Bufs = append(l.p.Bufs, Buffer{Kind: BufTemp, Bytes: bytes})
		slots = append(slots, len(l.p.Bufs)-1)
	}
	for _, b := range plan.Bounds {
		idx := in[b.Index]
		l.p.Bufs[slots[b.Flag]].Kind = BufFlag
		l.p.Bounds = append(l.p.Bounds, Bound{
			Op: op, Flag: slots[b.Flag], Index: idx.buf, Spec: idx.spec, Layout: idx.layout, Axes: b.Axes, Into: b.Shape,
			Reason: b.Reason, Message: b.Message,
		})
	}
	for _, data := range plan.Consts {
		l.p.Bufs = append(l.p.Bufs, Buffer{Kind: BufConst, Bytes: uint64(len(data)), Data: data})
		slots = append(slots, len(l.p.Bufs)-1)
	}
	for _, launch := range plan.Launches {
		s := Step{Kernel: l.intern(launch.Kernel), Grid: launch.Grid}
		for _, a := range launch.Args {
			arg := Arg{Imm: a.Imm}
			switch a.Kind {
			case shaders.Addr:
				arg.Kind, arg.Buf, arg.Offset = ArgAddr, slots[a.Slot], a.Offset
			case shaders.Imm:
				arg.Kind = ArgImm
			case shaders.Value:
				arg.Kind, arg.Param = ArgValue, in[a.Slot].param
				arg.Conv = ValueConv{From: a.From, To: a.To, Part: a.Part, Clamp: a.Clamp}
			}
			s.Args = append(s.Args, arg)
		}
		for _, a := range launch.Access {
			s.Access = append(s.Access, Access{Buf: slots[a.Slot], Lo: a.Lo, Hi: a.Hi, Write: a.Write})
		}
		l.p.Steps = append(l.p.Steps, s)
	}
}

// intern keeps one of equal kernels.
func (l *lowering) intern(k *kernel.Kernel) int {
	h := k.Hash()
	if i, ok := l.kernels[h]; ok {
		return i
	}
	l.kernels[h] = len(l.p.Kernels)
	l.p.Kernels = append(l.p.Kernels, k)
	return len(l.p.Kernels) - 1
}

// out makes a value a result. A number is spread over a tensor; a view that leaves most of its buffer
// unused is copied, so that it does not keep the buffer alive.
func (l *lowering) out(r graph.Ref) error {
	p := l.at[r]
	lo, hi := 0, 0
	if p.tensor() {
		lo, hi = graph.Reach(p.spec.Shape, p.layout)
	}
	kind := BufConst
	if p.tensor() {
		kind = l.p.Bufs[p.buf].Kind
	}
	waste := p.tensor() && uint64((hi-lo)*p.spec.Type.Size()) < l.p.Bufs[p.buf].Bytes/2
	if kind == BufConst || waste {
		var err error
		if p, err = l.copied(p); err != nil {
			return err
		}
		l.at[r] = p
	}
	if b := &l.p.Bufs[p.buf]; b.Kind == BufTemp {
		b.Kind = BufOut
	}
	l.p.Outs = append(l.p.Outs, Out{Buf: p.buf, Layout: p.layout, Spec: p.spec})
	return nil
}

// NarrowValue finds the narrowest type that holds a number exactly, for an operation that takes its
// operands by value and not by representation: a kernel for f32 then need not compute in f64 because the
// literal 2 arrived as an s32. For other operations it yields what it was given.
func NarrowValue(op graph.Op, out, t graph.Type, bits uint64) (graph.Type, uint64) {
	out = out.Part()
	if _, ok := byValueOps[op]; !ok || t == out || t.Complex() {
		return t, bits
	}
	candidates := []graph.Type{graph.S16}
	if out.Float() {
		candidates = []graph.Type{out, graph.S8, graph.S16, graph.F32}
	}
	if t.Float() {
		candidates = []graph.Type{out, graph.F16, graph.F32}
	}
	for _, c := range candidates {
		if c.Size() > t.Size() || c == t || t.Float() && !c.Float() {
			continue
		}
		n := graph.ConvertBits(bits, t, c)
		// Wrapping takes negative numbers to large unsigned ones and back.
		wrapped := c.Signed() && !t.Signed() && t.Int() && int64(graph.ConvertBits(n, c, graph.S64)) < 0
		if graph.ConvertBits(n, c, t) == bits && !wrapped {
			return c, n
		}
	}
	return t, bits
}

// NarrowInt is NarrowValue for whole numbers that arrive with a call, where the result's type is not
// at hand: a number that s16 holds becomes one. f32 * 2 then stays in f32, where an s32 would take f64.
func NarrowInt(op graph.Op, t graph.Type, bits uint64) (graph.Type, uint64) {
	if _, ok := byValueOps[op]; !ok || !t.Int() || t.Size() <= 2 {
		return t, bits
	}
	return NarrowValue(op, graph.S16, t, bits)
}

var byValueOps = func() map[graph.Op]struct{} {
	m := map[graph.Op]struct{}{graph.OpSelect: {}, graph.OpClip: {}, graph.OpPad: {}, graph.OpWindowScatterMax: {}, graph.OpWindowScatterMin: {}}
	for _, op := range graph.Binary {
		m[op] = struct{}{}
	}
	return m
}()
