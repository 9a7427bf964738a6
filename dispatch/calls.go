package dispatch

import (
	"encoding/json"
	"errors"
	"fmt"

	"nxvk/etf"
	"nxvk/graph"
	"nxvk/kernel"
	"nxvk/lower"
)

// hello agrees on the version and takes the options.
func (e *executor) hello(q *request) *Failure {
	if q.n != Version {
		older, newer := "the nx_vulkan package", "nxvk_port"
		if q.n > Version {
			older, newer = newer, older
		}
		return failf("hello", ReasonVersion, "the caller speaks version %d of the wire, this port version %d: upgrade %s to match %s",
			q.n, Version, older, newer)
	}
	e.options = q.hello
	if e.config.inline {
		e.options.runtimeDir = ""
	}
	epoch := q.hello.epoch
	if epoch == nil {
		epoch = etf.Atom("nil")
	}
	e.writer.reply(q.req, etf.Map{
		{Key: etf.Atom("version"), Value: Version},
		{Key: etf.Atom("device"), Value: toTerm(e.dev.Info())},
		{Key: etf.Atom("epoch"), Value: epoch},
	})
	return nil
}

// info describes the device.
func (e *executor) info(q *request) *Failure {
	e.writer.reply(q.req, etf.Map{
		{Key: etf.Atom("version"), Value: Version},
		{Key: etf.Atom("device"), Value: toTerm(e.dev.Info())},
		{Key: etf.Atom("numerics"), Value: toTerm(NumericsOf(e.target))},
		{Key: etf.Atom("memory"), Value: toTerm(e.dev.Memory())},
	})
	return nil
}

// NumericsOf is what the probe saw of a device, under the names that info shows.
func NumericsOf(t kernel.Target) map[string]bool {
	n := t.Num
	return map[string]bool{
		"flush_f32": n.FlushF32, "flush_f64": n.FlushF64, // subnormals become zero
		"fuse_f32": n.FuseF32, "fuse_f64": n.FuseF64, // a fused multiply-add rounds once
		"div_f32": n.DivF32, "div_f64": n.DivF64, // division is correctly rounded
		"sqrt_f32": n.SqrtF32, "sqrt_f64": n.SqrtF64, // and so is the square root
		"short_loops": n.ShortLoops, // loops end after 65,535 rounds: what takes more runs on the processor
		"slow_f64":    t.SlowF64,    // f64 far below half of f32's rate
	}
}

// stats reports the counters.
func (e *executor) stats(q *request) *Failure {
	m := etf.Map{}
	add := func(key string, n uint64) { m = append(m, etf.Pair{Key: etf.Atom(key), Value: n}) }
	c := &e.counts
	add("requests", c.Requests)
	add("ops", c.Ops)
	add("runs", c.Runs)
	add("uploads", c.Uploads)
	add("reads", c.Reads)
	add("frees", c.Frees)
	add("failed", c.Failed)
	add("views", c.Views)
	add("dispatches", c.Dispatches)
	add("bytes_up", c.BytesUp)
	add("bytes_down", c.BytesDown)
	add("tensors", uint64(c.Tensors))
	add("programs", uint64(len(e.programs.byKey)))
	add("program_hits", e.programs.hits)
	add("program_misses", e.programs.misses)
	add("compiled", uint64(len(e.compiled)))
	pipes := e.dev.PipelineStats()
	add("pipelines", pipes.Made)
	add("pipeline_hits", pipes.Hits)
	add("pipelines_live", uint64(pipes.Live))
	add("pipeline_us", uint64(pipes.Time.Microseconds()))
	mem := e.dev.Memory()
	add("memory_in_use", mem.InUse)
	add("memory_reserved", mem.Reserved)
	add("memory_peak", mem.Peak)
	add("memory_limit", mem.Limit)
	byOp, hostOps := e.hostCounts()
	add("host_ops", hostOps)
	m = append(m, etf.Pair{Key: etf.Atom("host"), Value: byOp})
	e.writer.reply(q.req, m)
	return nil
}

// compiled is a graph that compile took. It is bound when it runs, for the layouts of what it runs
// on, and bound again should the cache have let it go.
type compiled struct{ graph *graph.Graph }

// compile verifies a graph and lowers it. Equal graphs are one program.
func (e *executor) compile(q *request) *Failure {
	var d etf.Decoder
	d.ResetRaw(q.node)
	g, err := readGraph(&d)
	if err != nil {
		return badNode("compile", err)
	}
	if err := graph.Verify(g); err != nil {
		return badNode("compile", err)
	}
	low, err := e.lower(g)
	if err == nil {
		err = lower.Check(low)
	}
	if err != nil {
		return lowerFailure("compile", err)
	}
	key := string(graph.AppendKey(nil, g))
	id, ok := e.byGraph[key]
	if !ok {
		if _, err := e.pipelines(low.Kernels); err != nil {
			return asFailure("compile", err)
		}
		e.compiled = append(e.compiled, &compiled{graph: g})
		id = int64(len(e.compiled))
		e.byGraph[key] = id
	}
	e.writer.reply(q.req, etf.Tuple{id, etf.Map{
		{Key: etf.Atom("kernels"), Value: len(low.Kernels)},
		{Key: etf.Atom("steps"), Value: len(low.Steps)},
		{Key: etf.Atom("host"), Value: opAtoms(low.HostOps())},
	}})
	return nil
}

func opAtoms(ops []graph.Op) etf.Seq {
	s := make(etf.Seq, len(ops))
	for i, op := range ops {
		s[i] = etf.Atom(op)
	}
	return s
}

// runCompiled runs a compiled program on operands of any layout.
func (e *executor) runCompiled(q *request) *Failure {
	e.counts.Runs++
	if q.n < 1 || q.n > int64(len(e.compiled)) {
		return failf("run", ReasonUnknownID, "program %d was never compiled here", q.n)
	}
	if f := firstFailure(q.ins); f != nil {
		return f
	}
	e.key = operandsKey(programKey(e.key[:0], q.n), q.ins)
	p := e.programs.get(e.key)
	if p == nil {
		g := *e.compiled[q.n-1].graph
		params := paramsOf(q.ins)
		if len(params) != len(g.Params) {
			return failf("run", ReasonBadRequest, "program %d takes %d operands, got %d", q.n, len(g.Params), len(params))
		}
		for i, p := range params {
			want := g.Params[i]
			if p.Type != want.Type || !p.Shape.Equal(want.Shape) || p.ByValue && !want.ByValue {
				return failf("run", ReasonBadRequest, "operand %d of program %d is %v, wants %v", i, q.n, p.Spec, want.Spec)
			}
			if !p.ByValue && want.ByValue {
				return failf("run", ReasonBadRequest, "operand %d of program %d is a tensor, wants a host scalar", i, q.n)
			}
		}
		g.Params = params
		var f *Failure
		if p, f = e.bind("run", &g); f != nil {
			return f
		}
		e.programs.put(e.key, p)
	}
	return e.runProgram(p, q.ins, q.outs, func() string { return "run" })
}

// plan says where an operation would run. A pure question: nothing is made.
func (e *executor) plan(q *request) *Failure {
	where, err := e.planned(q)
	if err != nil {
		return asFailure("plan", err)
	}
	e.writer.reply(q.req, etf.Atom(where))
	return nil
}

func (e *executor) planned(q *request) (string, error) {
	var unknown *errUnknown
	var d etf.Decoder
	d.ResetRaw(q.data)
	params, err := readParams(&d)
	if errors.As(err, &unknown) {
		return "none", nil
	} else if err != nil {
		return "", err
	}
	var n graph.Node
	d.ResetRaw(q.node)
	if err := readNode(&d, &n, false, 0); errors.As(err, &unknown) {
		return "none", nil
	} else if err != nil {
		return "", err
	}
	for i := range params {
		n.In = append(n.In, graph.Ref(i))
	}
	g := &graph.Graph{Params: params}
	g.Nodes, g.Outs = graph.One(n, len(params))
	if err := graph.Verify(g); err != nil {
		return "", err
	}
	switch low, err := e.lower(g); {
	case err != nil:
		return lower.None.String(), nil
	case len(low.HostOps()) > 0:
		return lower.Host.String(), nil
	}
	return lower.Device.String(), nil
}

// sync answers when all before it has run.
func (e *executor) sync(q *request) *Failure {
	if f := firstFailure(q.ins); f != nil {
		return f
	}
	req, doubts := q.req, doubtsOf(q.ins)
	e.awaited++
	e.stream.After(func(err error) {
		e.awaited--
		if err != nil {
			e.check(err)
			e.writer.fail(req, asFailure("sync", err))
			return
		}
		settle(doubts, func(f *Failure) {
			if f != nil {
				e.writer.fail(req, f)
				return
			}
			e.writer.send(outgoing{head: etf.AppendAtom(replyOK(req), "ok")})
		})
	})
	e.check(e.stream.Submit())
	return nil
}

// toTerm turns what marshals to JSON into a term with atoms for keys.
func toTerm(v any) etf.Term {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(err)
	}
	var x any
	if err := json.Unmarshal(b, &x); err != nil {
		return fmt.Sprint(err)
	}
	return jsonTerm(x)
}

func jsonTerm(x any) etf.Term {
	switch x := x.(type) {
	case map[string]any:
		m := etf.Map{}
		for _, k := range sortedKeys(x) {
			m = append(m, etf.Pair{Key: etf.Atom(k), Value: jsonTerm(x[k])})
		}
		return m
	case []any:
		s := make(etf.Seq, len(x))
		for i := range x {
			s[i] = jsonTerm(x[i])
		}
		return s
	case float64:
		if n := int64(x); float64(n) == x {
			return n
		}
		return x
	case bool:
		return x
	case string:
		return x
	}
	return etf.Atom("nil")
}
