package dispatch

import (
	"fmt"
	"unicode/utf8"

	"nxvk/etf"
	"nxvk/graph"
)

// typeByName is a table, since looking up string(bytes) in one allocates nothing.
var typeByName = func() map[string]graph.Type {
	m := map[string]graph.Type{}
	for _, t := range graph.Types {
		m[t.String()] = t
	}
	return m
}()

// errUnknown marks a type or op that this port does not know: for plan that is an answer.
type errUnknown struct{ what string }

func (e *errUnknown) Error() string { return e.what }

// readType reads a type's atom. An unknown type fails the decoder, and is told apart by the second
// result.
func readType(d *etf.Decoder) (graph.Type, error) {
	at := d.Offset()
	name := d.Atom()
	if d.Err() != nil {
		return graph.Invalid, d.Err()
	}
	t, ok := typeByName[string(name)]
	if !ok {
		d.Fail(at, "unknown type %s", printable(name))
		return graph.Invalid, &errUnknown{"unknown type " + printable(name)}
	}
	return t, nil
}

func readShape(d *etf.Decoder) (graph.Shape, error) {
	at := d.Offset()
	n := d.Tuple()
	if n > graph.MaxRank {
		return nil, d.Fail(at, "shape of rank %d, at most %d", n, graph.MaxRank)
	}
	s := make(graph.Shape, n)
	for i := range s {
		s[i] = int(d.Int())
	}
	if d.Err() != nil {
		return nil, d.Err()
	}
	if err := graph.CheckShape(s); err != nil {
		return nil, d.Fail(at, "%v", err)
	}
	return s, nil
}

func readSpec(d *etf.Decoder) (graph.Spec, error) {
	t, err := readType(d)
	if err != nil {
		return graph.Spec{}, err
	}
	s, err := readShape(d)
	return graph.Spec{Type: t, Shape: s}, err
}

// readValue reads a binary that holds one element of t.
func readValue(d *etf.Decoder, t graph.Type) graph.Value {
	at := d.Offset()
	data := d.Bitstring()
	if d.Err() != nil {
		return graph.Value{}
	}
	if len(data) != t.PackedSize(1) {
		d.Fail(at, "scalar of type %v has %d bytes, wants %d", t, len(data), t.PackedSize(1))
		return graph.Value{}
	}
	if t.Bits() < 8 {
		var b [1]byte
		graph.Unpack(t, b[:], data)
		return graph.Real(uint64(b[0]))
	}
	return graph.ReadValue(data)
}

// readResults reads the further results of a node: a list of {type, shape}.
func readResults(d *etf.Decoder, n *graph.Node) {
	at := d.Offset()
	l := d.List()
	if l.N > maxResults {
		d.Fail(at, "%d further results, at most %d", l.N, maxResults)
		return
	}
	for i := 0; i < l.N && d.TupleOf(2); i++ {
		s, err := readSpec(d)
		if err != nil {
			return
		}
		n.More = append(n.More, s)
	}
	d.EndList(l)
}

const maxResults = 8

// readNode reads {op, type, shape, attrs}, or with refs {op, type, shape, attrs, refs}.
func readNode(d *etf.Decoder, n *graph.Node, refs bool, depth int) error {
	arity := 4
	if refs {
		arity = 5
	}
	if !d.TupleOf(arity) {
		return d.Err()
	}
	op := d.Atom()
	if d.Err() != nil {
		return d.Err()
	}
	if _, ok := graph.Lookup(graph.Op(op)); !ok {
		return &errUnknown{"unknown operation " + printable(op)}
	}
	n.Op = graph.Op(op)
	var err error
	if n.Spec, err = readSpec(d); err != nil {
		return err
	}
	if err := readAttrs(d, n, depth); err != nil {
		return err
	}
	if refs {
		n.In = readRefs(d)
	}
	return d.Err()
}

func readRefs(d *etf.Decoder) []graph.Ref {
	l := d.List()
	refs := make([]graph.Ref, 0, min(l.N, 1<<16))
	for i := 0; i < l.N && d.Err() == nil; i++ {
		at := d.Offset()
		r := d.Int()
		if r < 0 || r >= graph.MaxNodes {
			d.Fail(at, "reference %d", r)
		}
		refs = append(refs, graph.Ref(r))
	}
	d.EndList(l)
	return refs
}

// fun reads the function of a reduction. It stands apart from attrTable, which readGraph reads by.
func readFun(d *etf.Decoder, n *graph.Node) error {
	f, err := readGraphAt(d, 1)
	n.Attrs.Fun = f
	return err
}

// attr is a key of the attribute map: the ops that take it, and how it is read.
type attr struct {
	set  graph.AttrSet
	read func(d *etf.Decoder, n *graph.Node)
}

var attrTable = map[string]attr{
	"axes":       {graph.AttrAxes, func(d *etf.Decoder, n *graph.Node) { n.Attrs.Axes = readInts(d) }},
	"axis":       {graph.AttrAxis, readAxis},
	"keep_axes":  {graph.AttrKeep, func(d *etf.Decoder, n *graph.Node) { n.Attrs.Keep = readChoice(d, "false", "true") == 1 }},
	"tie_break":  {graph.AttrTie, func(d *etf.Decoder, n *graph.Node) { n.Attrs.High = readChoice(d, "low", "high") == 1 }},
	"lengths":    {graph.AttrLengths | graph.AttrExtents, func(d *etf.Decoder, n *graph.Node) { n.Attrs.Lengths = readInts(d) }},
	"strides":    {graph.AttrLengths | graph.AttrWindow | graph.AttrConv, func(d *etf.Decoder, n *graph.Node) { n.Attrs.Strides = readInts(d) }},
	"config":     {graph.AttrPad, readPad},
	"contract_a": {graph.AttrDot, func(d *etf.Decoder, n *graph.Node) { n.Attrs.ContractA = readInts(d) }},
	"batch_a":    {graph.AttrDot, func(d *etf.Decoder, n *graph.Node) { n.Attrs.BatchA = readInts(d) }},
	"contract_b": {graph.AttrDot, func(d *etf.Decoder, n *graph.Node) { n.Attrs.ContractB = readInts(d) }},
	"batch_b":    {graph.AttrDot, func(d *etf.Decoder, n *graph.Node) { n.Attrs.BatchB = readInts(d) }},
	"accumulator": {graph.AttrAcc, func(d *etf.Decoder, n *graph.Node) {
		n.Attrs.Acc = graph.Acc(readChoice(d, "compensated", "f32", "f64"))
	}},
	"index":              {graph.AttrIndex, func(d *etf.Decoder, n *graph.Node) { n.Attrs.Index = readSmall(d) }},
	"results":            {graph.AttrMore, readResults},
	"direction":          {graph.AttrDesc, func(d *etf.Decoder, n *graph.Node) { n.Attrs.Desc = readChoice(d, "asc", "desc") == 1 }},
	"reverse":            {graph.AttrReverse, func(d *etf.Decoder, n *graph.Node) { n.Attrs.Reverse = readChoice(d, "false", "true") == 1 }},
	"window":             {graph.AttrWindow, func(d *etf.Decoder, n *graph.Node) { n.Attrs.Window = readInts(d) }},
	"window_dilations":   {graph.AttrDilation, func(d *etf.Decoder, n *graph.Node) { n.Attrs.Dilation = readInts(d) }},
	"padding":            {graph.AttrWindow | graph.AttrConv, readPadding},
	"input_dilation":     {graph.AttrConv, func(d *etf.Decoder, n *graph.Node) { conv(n).InputDilation = readInts(d) }},
	"kernel_dilation":    {graph.AttrConv, func(d *etf.Decoder, n *graph.Node) { conv(n).KernelDilation = readInts(d) }},
	"feature_group_size": {graph.AttrConv, func(d *etf.Decoder, n *graph.Node) { conv(n).FeatureGroups = readSmall(d) }},
	"batch_group_size":   {graph.AttrConv, func(d *etf.Decoder, n *graph.Node) { conv(n).BatchGroups = readSmall(d) }},
	"input_permutation":  {graph.AttrConv, func(d *etf.Decoder, n *graph.Node) { conv(n).InputPerm = readInts(d) }},
	"kernel_permutation": {graph.AttrConv, func(d *etf.Decoder, n *graph.Node) { conv(n).KernelPerm = readInts(d) }},
	"output_permutation": {graph.AttrConv, func(d *etf.Decoder, n *graph.Node) { conv(n).OutputPerm = readInts(d) }},
	"length":             {graph.AttrLength, func(d *etf.Decoder, n *graph.Node) { n.Attrs.Length = readSmall(d) }},
	"eps":                {graph.AttrEps, func(d *etf.Decoder, n *graph.Node) { n.Attrs.Eps = d.Float() }},
	"rtol":               {graph.AttrTol, func(d *etf.Decoder, n *graph.Node) { n.Attrs.RTol = d.Float() }},
	"atol":               {graph.AttrTol, func(d *etf.Decoder, n *graph.Node) { n.Attrs.ATol = d.Float() }},
	"equal_nan":          {graph.AttrTol, func(d *etf.Decoder, n *graph.Node) { n.Attrs.EqualNaN = readChoice(d, "false", "true") == 1 }},
	"lower":              {graph.AttrSolve, func(d *etf.Decoder, n *graph.Node) { n.Attrs.Solve.Upper = readChoice(d, "false", "true") == 0 }},
	"left_side":          {graph.AttrSolve, func(d *etf.Decoder, n *graph.Node) { n.Attrs.Solve.Right = readChoice(d, "false", "true") == 0 }},
	"transform_a": {graph.AttrSolve, func(d *etf.Decoder, n *graph.Node) {
		n.Attrs.Solve.Transform = graph.Transform(readChoice(d, "none", "transpose", "conjugate"))
	}},
	"full":     {graph.AttrFull, func(d *etf.Decoder, n *graph.Node) { n.Attrs.Full = readChoice(d, "false", "true") == 1 }},
	"max_iter": {graph.AttrIter, func(d *etf.Decoder, n *graph.Node) { n.Attrs.MaxIter = readSmall(d) }},
	"value": {graph.AttrValue, func(d *etf.Decoder, n *graph.Node) {
		v := readValue(d, n.Type)
		n.Attrs.Value, n.Attrs.Upper = v.Lo, v.Hi
	}},
}

// readAttrs reads the attribute map of n, whose Op and Spec are known. [] stands for no attributes.
func readAttrs(d *etf.Decoder, n *graph.Node, depth int) error {
	info, _ := graph.Lookup(n.Op)
	if info.Attrs&graph.AttrAxis != 0 && n.Op != graph.OpConcat && n.Op != graph.OpStack {
		n.Attrs.Axis = -1
	}
	if d.Peek() == etf.KindList {
		if at := d.Offset(); d.List().N != 0 {
			d.Fail(at, "attributes are a map, or []")
		}
		return d.Err()
	}
	for range d.Map() {
		at := d.Offset()
		key := d.Atom()
		if d.Err() != nil {
			return d.Err()
		}
		if string(key) == "fun" && info.Attrs&graph.AttrFun != 0 && depth == 0 {
			if err := readFun(d, n); err != nil {
				return err
			}
			continue
		}
		a, ok := attrTable[string(key)]
		if !ok || a.set&info.Attrs == 0 {
			return d.Fail(at, "%s takes no attribute %s", n.Op, printable(key))
		}
		if a.read(d, n); d.Err() != nil {
			return d.Err()
		}
	}
	return d.Err()
}

func readAxis(d *etf.Decoder, n *graph.Node) {
	at := d.Offset()
	if d.Peek() == etf.KindAtom {
		if name := d.Atom(); string(name) != "nil" || n.Op == graph.OpConcat || n.Op == graph.OpStack {
			d.Fail(at, "axis of %s is %s", n.Op, printable(name))
		}
		n.Attrs.Axis = -1
		return
	}
	axis := d.Int()
	if d.Err() == nil && (axis < 0 || axis > graph.MaxRank) {
		d.Fail(at, "axis %d", axis)
	}
	n.Attrs.Axis = int(axis)
}

// conv is where a node's convolution is read into. The defaults are those of a plain one.
func conv(n *graph.Node) *graph.Conv {
	if n.Attrs.Conv == nil {
		n.Attrs.Conv = &graph.Conv{FeatureGroups: 1, BatchGroups: 1}
	}
	return n.Attrs.Conv
}

// readPadding reads a list of {lo, hi}.
func readPadding(d *etf.Decoder, n *graph.Node) {
	at := d.Offset()
	l := d.List()
	if l.N > graph.MaxRank {
		d.Fail(at, "padding of %d axes", l.N)
		return
	}
	pad := make([]graph.PadDim, 0, l.N)
	for i := 0; i < l.N && d.TupleOf(2); i++ {
		pad = append(pad, graph.PadDim{Lo: readSmall(d), Hi: readSmall(d)})
	}
	d.EndList(l)
	n.Attrs.Pad = pad
}

func readPad(d *etf.Decoder, n *graph.Node) {
	at := d.Offset()
	l := d.List()
	if l.N > graph.MaxRank {
		d.Fail(at, "padding of %d axes", l.N)
		return
	}
	pad := make([]graph.PadDim, 0, l.N)
	for i := 0; i < l.N && d.TupleOf(3); i++ {
		pad = append(pad, graph.PadDim{Lo: readSmall(d), Hi: readSmall(d), Interior: readSmall(d)})
	}
	d.EndList(l)
	n.Attrs.Pad = pad
}

// readSmall reads an integer whose sums and products with extents do not overflow.
func readSmall(d *etf.Decoder) int {
	at := d.Offset()
	v := d.Int()
	if d.Err() == nil && (v > graph.MaxElements || v < -graph.MaxElements) {
		d.Fail(at, "%d is out of range", v)
		return 0
	}
	return int(v)
}

func readInts(d *etf.Decoder) []int {
	at := d.Offset()
	l := d.List()
	if l.N > graph.MaxRank {
		d.Fail(at, "list of %d, at most %d", l.N, graph.MaxRank)
		return nil
	}
	ns := make([]int, 0, l.N)
	for i := 0; i < l.N && d.Err() == nil; i++ {
		ns = append(ns, readSmall(d))
	}
	d.EndList(l)
	return ns
}

func readChoice(d *etf.Decoder, names ...string) int {
	at := d.Offset()
	got := d.Atom()
	if d.Err() != nil {
		return 0
	}
	for i, name := range names {
		if string(got) == name {
			return i
		}
	}
	d.Fail(at, "want one of %v, got %s", names, printable(got))
	return 0
}

// readGraph reads {params, nodes, outs}.
func readGraph(d *etf.Decoder) (*graph.Graph, error) { return readGraphAt(d, 0) }

// readGraphAt reads a graph that stands inside depth others.
func readGraphAt(d *etf.Decoder, depth int) (*graph.Graph, error) {
	if !d.TupleOf(3) {
		return nil, d.Err()
	}
	g := &graph.Graph{}
	var err error
	if g.Params, err = readParams(d); err != nil {
		return nil, err
	}
	at := d.Offset()
	l := d.List()
	if l.N > graph.MaxNodes {
		return nil, d.Fail(at, "%d nodes, at most %d", l.N, graph.MaxNodes)
	}
	g.Nodes = make([]graph.Node, 0, min(l.N, 1<<10))
	for i := 0; i < l.N && d.Err() == nil; i++ {
		var n graph.Node
		if err := readNode(d, &n, true, depth); err != nil {
			return nil, fmt.Errorf("node %d: %w", i, err)
		}
		g.Nodes = append(g.Nodes, n)
	}
	d.EndList(l)
	g.Outs = readRefs(d)
	return g, d.Err()
}

// readParams reads a list of {type, shape} and {type, :value}.
func readParams(d *etf.Decoder) ([]graph.Param, error) {
	l := d.List()
	ps := make([]graph.Param, 0, min(l.N, 1<<10))
	for i := 0; i < l.N && d.Err() == nil; i++ {
		if !d.TupleOf(2) {
			return nil, d.Err()
		}
		t, err := readType(d)
		if err != nil {
			return nil, err
		}
		p := graph.Param{Spec: graph.Spec{Type: t}}
		if d.Peek() == etf.KindAtom {
			readChoice(d, "value")
			p.Shape, p.ByValue = graph.Shape{}, true
		} else if p.Shape, err = readShape(d); err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
	d.EndList(l)
	return ps, d.Err()
}

// printable is text from a frame, fit for a message.
func printable(b []byte) string {
	const most = 60
	if len(b) > most {
		b = b[:most]
	}
	if utf8.Valid(b) {
		return string(b)
	}
	return fmt.Sprintf("%q", b)
}
