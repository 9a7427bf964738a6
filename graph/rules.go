package graph

import "fmt"

// AttrSet says which fields of Attrs an op takes.
type AttrSet uint32

const (
	AttrAxes AttrSet = 1 << iota
	AttrAxis
	AttrKeep
	AttrTie
	AttrLengths // and Strides
	AttrPad
	AttrDot
	AttrAcc
	AttrValue
	AttrIndex
	AttrDesc
	AttrReverse
	AttrWindow // with Strides and Pad
	AttrDilation
	AttrConv // with Strides and Pad
	AttrLength
	AttrExtents // Lengths alone
	AttrEps
	AttrTol // RTol, ATol, EqualNaN
	AttrSolve
	AttrFull
	AttrIter
	AttrFun
	AttrMore // the node has further results
)

// Info is what the verifier knows of an op.
type Info struct {
	Min, Max int // number of operands; Max -1: any number
	Attrs    AttrSet
	check    func(n *Node, in []Spec) error
}

// rules is the table of ops. A new op is one line here, its rule, and its name in ops.go.
var rules map[Op]Info

// It is filled in init, since rules of ops that take functions verify these by the table.
func init() {
	rules = map[Op]Info{
		OpConstant: {0, 0, AttrValue, anyResult},
		OpIota:     {0, 0, AttrAxis, checkIota},
		OpEye:      {0, 0, 0, checkEye},

		OpAsType:  {1, 1, 0, sameShape},
		OpBitcast: {1, 1, 0, checkBitcast},

		OpReshape:   {1, 1, 0, checkReshape},
		OpSqueeze:   {1, 1, AttrAxes, checkSqueeze},
		OpBroadcast: {1, 1, AttrAxes, checkBroadcast},
		OpTranspose: {1, 1, AttrAxes, checkTranspose},
		OpReverse:   {1, 1, AttrAxes, checkReverse},
		OpPad:       {2, 2, AttrPad, checkPad},
		OpSlice:     {1, 1 + MaxRank, AttrLengths, checkSlice},
		OpPutSlice:  {2, 2 + MaxRank, 0, checkPutSlice},
		OpConcat:    {1, -1, AttrAxis, checkConcat},
		OpStack:     {1, -1, AttrAxis, checkStack},

		OpSelect: {3, 3, 0, checkBroadcasting},
		OpClip:   {3, 3, 0, checkClip},

		OpSum:       {1, 1, AttrAxes | AttrKeep | AttrAcc, checkReduce},
		OpProduct:   {1, 1, AttrAxes | AttrKeep, checkReduce},
		OpReduceMax: {1, 1, AttrAxes | AttrKeep, checkReduceSame},
		OpReduceMin: {1, 1, AttrAxes | AttrKeep, checkReduceSame},
		OpAll:       {1, 1, AttrAxes | AttrKeep, checkReduceBool},
		OpAny:       {1, 1, AttrAxes | AttrKeep, checkReduceBool},
		OpArgMax:    {1, 1, AttrAxis | AttrKeep | AttrTie, checkArg},
		OpArgMin:    {1, 1, AttrAxis | AttrKeep | AttrTie, checkArg},

		OpDot:  {2, 2, AttrDot | AttrAcc, checkDot},
		OpConv: {2, 2, AttrConv | AttrAcc, checkConv},

		OpComplex:   {2, 2, 0, checkComplex},
		OpParts:     {1, 1, 0, checkParts},
		OpFromParts: {1, 1, 0, checkFromParts},

		OpElem: {1, 1, AttrIndex, anyResult}, // Verify checks it against the node that it names

		OpGather:        {2, 2, AttrAxes, checkGather},
		OpIndexedAdd:    {3, 3, AttrAxes, checkIndexed},
		OpIndexedPut:    {3, 3, AttrAxes, checkIndexed},
		OpTake:          {2, 2, AttrAxis, checkTake},
		OpTakeAlongAxis: {2, 2, AttrAxis, checkTakeAlong},

		OpReduce:           {2, 2, AttrAxes | AttrKeep | AttrFun, checkReduceFun},
		OpWindowReduce:     {2, 2, AttrWindow | AttrDilation | AttrFun, checkWindowReduce},
		OpWindowSum:        {1, 1, AttrWindow | AttrDilation, checkWindow},
		OpWindowProduct:    {1, 1, AttrWindow | AttrDilation, checkWindow},
		OpWindowMax:        {1, 1, AttrWindow | AttrDilation, checkWindow},
		OpWindowMin:        {1, 1, AttrWindow | AttrDilation, checkWindow},
		OpWindowScatterMax: {3, 3, AttrWindow, checkWindowScatter},
		OpWindowScatterMin: {3, 3, AttrWindow, checkWindowScatter},

		OpSort:              {1, 1, AttrAxis | AttrDesc, checkSort},
		OpArgSort:           {1, 1, AttrAxis | AttrDesc, checkArgSort},
		OpTopK:              {1, 1, AttrMore, checkTopK},
		OpCumulativeSum:     {1, 1, AttrAxis | AttrReverse | AttrAcc, checkCumulative},
		OpCumulativeProduct: {1, 1, AttrAxis | AttrReverse, checkCumulative},
		OpCumulativeMax:     {1, 1, AttrAxis | AttrReverse, checkCumulative},
		OpCumulativeMin:     {1, 1, AttrAxis | AttrReverse, checkCumulative},

		OpFFT:   {1, 1, AttrAxis | AttrLength | AttrEps, checkFFT},
		OpIFFT:  {1, 1, AttrAxis | AttrLength | AttrEps, checkFFT},
		OpFFT2:  {1, 1, AttrAxes | AttrExtents | AttrEps, checkFFT2},
		OpIFFT2: {1, 1, AttrAxes | AttrExtents | AttrEps, checkFFT2},
		OpRFFT:  {1, 1, AttrAxis | AttrLength | AttrEps, checkFFT},
		OpIRFFT: {1, 1, AttrAxis | AttrLength | AttrEps, checkFFT},

		OpTriangularSolve: {2, 2, AttrSolve, checkTriangularSolve},
		OpCholesky:        {1, 1, 0, checkCholesky},
		OpSolve:           {2, 2, 0, checkSolve},
		OpLU:              {1, 1, AttrEps | AttrMore, checkLU},
		OpQR:              {1, 1, AttrFull | AttrEps | AttrMore, checkQR},
		OpSVD:             {1, 1, AttrFull | AttrIter | AttrMore, checkSVD},
		OpEigh:            {1, 1, AttrIter | AttrEps | AttrMore, checkEigh},
		OpDeterminant:     {1, 1, 0, checkDeterminant},

		OpLogicalNot: {1, 1, 0, checkLogicalNot},
		OpPhase:      {1, 1, 0, checkPhase},
		OpAllClose:   {2, 2, AttrTol, checkAllClose},
	}
	addElementwise()
}

// resultKind says which types an elementwise op may yield and take.
type elementwise struct{ in, out func(Type) bool }

func isInt(t Type) bool   { return t.Int() }
func isFloat(t Type) bool { return t.Float() || t.Complex() }
func isU8(t Type) bool    { return t == U8 }
func isAny(t Type) bool   { return t != Invalid }

func addElementwise() {
	groups := []struct {
		kind elementwise
		ops  []Op
	}{
		{elementwise{isAny, isAny}, []Op{"add", "subtract", "multiply", "pow", "remainder", "min", "max", "abs", "negate", "sign", "ceil", "floor", "round", "real", "conjugate"}},
		{elementwise{isAny, isFloat}, []Op{
			"divide", "atan2", "exp", "expm1", "log", "log1p", "sigmoid", "cos", "sin", "tan", "cosh", "sinh", "tanh", "acos", "asin", "atan",
			"acosh", "asinh", "atanh", "sqrt", "rsqrt", "cbrt", "erf", "erfc", "erf_inv", "imag",
		}},
		{elementwise{isInt, isInt}, []Op{"quotient", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "bitwise_not", "count_leading_zeros", "population_count"}},
		{elementwise{isAny, isU8}, []Op{"equal", "not_equal", "greater", "less", "greater_equal", "less_equal", "logical_and", "logical_or", "logical_xor", "is_nan", "is_infinity"}},
	}
	kinds := map[Op]elementwise{}
	for _, g := range groups {
		for _, op := range g.ops {
			kinds[op] = g.kind
		}
	}
	add := func(ops []Op, arity int) {
		for _, op := range ops {
			kind, ok := kinds[op]
			if !ok {
				panic("graph: no rule for " + op)
			}
			rules[op] = Info{arity, arity, 0, func(n *Node, in []Spec) error { return kind.check(n, in) }}
		}
	}
	add(Binary, 2)
	add(Unary, 1)
}

func (e elementwise) check(n *Node, in []Spec) error {
	for _, s := range in {
		if !e.in(s.Type) {
			return fmt.Errorf("cannot take operands of type %v", s.Type)
		}
	}
	if !e.out(n.Type) {
		return fmt.Errorf("cannot yield type %v", n.Type)
	}
	return checkBroadcasting(n, in)
}

// Lookup yields what is known of op.
func Lookup(op Op) (Info, bool) {
	info, ok := rules[op]
	return info, ok
}

// Elementwise reports whether op is one of Binary or Unary.
func Elementwise(op Op) bool {
	_, ok := elementwiseOps[op]
	return ok
}

var elementwiseOps = func() map[Op]struct{} {
	m := map[Op]struct{}{}
	for _, op := range Binary {
		m[op] = struct{}{}
	}
	for _, op := range Unary {
		m[op] = struct{}{}
	}
	return m
}()

// BroadcastsTo reports whether a tensor of shape s stretches to shape to: axes are matched from the
// last on, and an axis of extent 1, or one that is missing, repeats.
func (s Shape) BroadcastsTo(to Shape) bool {
	if len(s) > len(to) {
		return false
	}
	for i, d := range s {
		if d != 1 && d != to[len(to)-len(s)+i] {
			return false
		}
	}
	return true
}

// Broadcast is the shape that both a and b stretch to.
func Broadcast(a, b Shape) (Shape, bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := append(Shape(nil), a...)
	lead := len(a) - len(b)
	for i, d := range b {
		switch e := out[lead+i]; {
		case e == 1:
			out[lead+i] = d
		case d != 1 && d != e:
			return nil, false
		}
	}
	return out, true
}

func anyResult(*Node, []Spec) error { return nil }

// checkBroadcasting wants the result's shape to be the broadcast of the operands' shapes, or larger
// where every operand stretches (a host scalar stands for a constant tensor of any shape).
func checkBroadcasting(n *Node, in []Spec) error {
	for i, s := range in {
		if !s.Shape.BroadcastsTo(n.Shape) {
			return fmt.Errorf("operand %d of shape %v does not broadcast to %v", i, s.Shape, n.Shape)
		}
	}
	return nil
}

func sameShape(n *Node, in []Spec) error { return wantShape(n, in[0].Shape) }

func wantShape(n *Node, want Shape) error {
	if !n.Shape.Equal(want) {
		return fmt.Errorf("the result has shape %v, got %v", want, n.Shape)
	}
	return nil
}

func wantType(n *Node, want Type) error {
	if n.Type != want {
		return fmt.Errorf("the result has type %v, got %v", want, n.Type)
	}
	return nil
}

func same(n *Node, in Spec, want Shape) error {
	if err := wantType(n, in.Type); err != nil {
		return err
	}
	return wantShape(n, want)
}

func checkIota(n *Node, _ []Spec) error {
	if n.Attrs.Axis < -1 || n.Attrs.Axis >= len(n.Shape) {
		return fmt.Errorf("axis %d is out of range for rank %d", n.Attrs.Axis, len(n.Shape))
	}
	return nil
}

func checkEye(n *Node, _ []Spec) error {
	if len(n.Shape) < 2 {
		return fmt.Errorf("wants at least two axes, got shape %v", n.Shape)
	}
	return nil
}

func checkBitcast(n *Node, in []Spec) error {
	if n.Type.Bits() != in[0].Type.Bits() {
		return fmt.Errorf("types %v and %v differ in width", in[0].Type, n.Type)
	}
	return wantShape(n, in[0].Shape)
}

func checkReshape(n *Node, in []Spec) error {
	if err := wantType(n, in[0].Type); err != nil {
		return err
	}
	if n.Shape.Size() != in[0].Shape.Size() {
		return fmt.Errorf("%v has %d elements, %v has %d", in[0].Shape, in[0].Shape.Size(), n.Shape, n.Shape.Size())
	}
	return nil
}

// ascending wants distinct axes of a rank in ascending order.
func ascending(axes []int, rank int) error {
	for i, a := range axes {
		if a < 0 || a >= rank {
			return fmt.Errorf("axis %d is out of range for rank %d", a, rank)
		}
		if i > 0 && axes[i-1] >= a {
			return fmt.Errorf("axes %v are not ascending", axes)
		}
	}
	return nil
}

func checkSqueeze(n *Node, in []Spec) error {
	axes, s := n.Attrs.Axes, in[0].Shape
	if err := ascending(axes, len(s)); err != nil {
		return err
	}
	for _, a := range axes {
		if s[a] != 1 {
			return fmt.Errorf("axis %d has extent %d, only extent 1 can go", a, s[a])
		}
	}
	return same(n, in[0], dropAxes(s, axes))
}

func dropAxes(s Shape, axes []int) Shape {
	out := make(Shape, 0, len(s))
	for i, d := range s {
		if len(axes) > 0 && axes[0] == i {
			axes = axes[1:]
			continue
		}
		out = append(out, d)
	}
	return out
}

func checkBroadcast(n *Node, in []Spec) error {
	axes, s := n.Attrs.Axes, in[0].Shape
	if err := wantType(n, in[0].Type); err != nil {
		return err
	}
	if len(axes) != len(s) {
		return fmt.Errorf("%d axes for an operand of rank %d", len(axes), len(s))
	}
	if err := ascending(axes, len(n.Shape)); err != nil {
		return err
	}
	for i, a := range axes {
		if s[i] != 1 && s[i] != n.Shape[a] {
			return fmt.Errorf("operand axis %d of extent %d does not stretch to axis %d of %v", i, s[i], a, n.Shape)
		}
	}
	return nil
}

func checkTranspose(n *Node, in []Spec) error {
	axes, s := n.Attrs.Axes, in[0].Shape
	if len(axes) != len(s) {
		return fmt.Errorf("permutation %v for rank %d", axes, len(s))
	}
	want := make(Shape, len(s))
	seen := make([]bool, len(s))
	for i, a := range axes {
		if a < 0 || a >= len(s) || seen[a] {
			return fmt.Errorf("%v is no permutation of %d axes", axes, len(s))
		}
		seen[a] = true
		want[i] = s[a]
	}
	return same(n, in[0], want)
}

func checkReverse(n *Node, in []Spec) error {
	if err := ascending(n.Attrs.Axes, len(in[0].Shape)); err != nil {
		return err
	}
	return same(n, in[0], in[0].Shape)
}

func checkPad(n *Node, in []Spec) error {
	s := in[0].Shape
	if len(n.Attrs.Pad) != len(s) {
		return fmt.Errorf("padding of %d axes for rank %d", len(n.Attrs.Pad), len(s))
	}
	if len(in[1].Shape) != 0 {
		return fmt.Errorf("the pad value is a scalar, got shape %v", in[1].Shape)
	}
	want := make(Shape, len(s))
	for i, p := range n.Attrs.Pad {
		if p.Interior < 0 {
			return fmt.Errorf("negative interior padding %d of axis %d", p.Interior, i)
		}
		for _, v := range []int{p.Lo, p.Hi, p.Interior} {
			if v > MaxElements || v < -MaxElements {
				return fmt.Errorf("padding %d of axis %d is too large", v, i)
			}
		}
		if s[i] > 1 && p.Interior > MaxElements/(s[i]-1) {
			return fmt.Errorf("interior padding %d of axis %d is too large", p.Interior, i)
		}
		want[i] = p.Lo + s[i] + (s[i]-1)*p.Interior + p.Hi
	}
	return wantShape(n, want)
}

func checkStarts(starts []Spec) error {
	for i, s := range starts {
		if len(s.Shape) != 0 || !s.Type.Int() {
			return fmt.Errorf("start %d is an integer scalar, got %v", i, s)
		}
	}
	return nil
}

func checkSlice(n *Node, in []Spec) error {
	s, at := in[0].Shape, &n.Attrs
	if len(in) != 1+len(s) || len(at.Lengths) != len(s) || len(at.Strides) != len(s) {
		return fmt.Errorf("wants a start, a length and a stride for each of %d axes, got %d, %d and %d", len(s), len(in)-1, len(at.Lengths), len(at.Strides))
	}
	want := make(Shape, len(s))
	for i, l := range at.Lengths {
		if l < 1 || l > s[i] || at.Strides[i] < 1 {
			return fmt.Errorf("length %d and stride %d do not fit axis %d of extent %d", l, at.Strides[i], i, s[i])
		}
		want[i] = (l + at.Strides[i] - 1) / at.Strides[i]
		if at.Strides[i] > MaxElements {
			return fmt.Errorf("stride %d of axis %d is too large", at.Strides[i], i)
		}
	}
	if err := checkStarts(in[1:]); err != nil {
		return err
	}
	return same(n, in[0], want)
}

func checkPutSlice(n *Node, in []Spec) error {
	s, u := in[0].Shape, in[1].Shape
	if len(in) != 2+len(s) || len(u) != len(s) {
		return fmt.Errorf("wants a start and an update axis for each of %d axes, got %d and %d", len(s), len(in)-2, len(u))
	}
	for i := range s {
		if u[i] > s[i] {
			return fmt.Errorf("update of shape %v does not fit into %v", u, s)
		}
	}
	if err := checkStarts(in[2:]); err != nil {
		return err
	}
	return wantShape(n, s)
}

func checkConcat(n *Node, in []Spec) error {
	axis, first := n.Attrs.Axis, in[0].Shape
	if axis < 0 || axis >= len(first) {
		return fmt.Errorf("axis %d is out of range for rank %d", axis, len(first))
	}
	want := append(Shape(nil), first...)
	for i, s := range in[1:] {
		if len(s.Shape) != len(first) {
			return fmt.Errorf("operand %d has rank %d, operand 0 has %d", i+1, len(s.Shape), len(first))
		}
		for a, d := range s.Shape {
			if a != axis && d != first[a] {
				return fmt.Errorf("operand %d of shape %v does not match %v outside axis %d", i+1, s.Shape, first, axis)
			}
		}
		want[axis] += s.Shape[axis]
	}
	return wantShape(n, want)
}

func checkStack(n *Node, in []Spec) error {
	axis, first := n.Attrs.Axis, in[0].Shape
	if axis < 0 || axis > len(first) {
		return fmt.Errorf("axis %d is out of range for rank %d", axis, len(first)+1)
	}
	for i, s := range in[1:] {
		if !s.Shape.Equal(first) {
			return fmt.Errorf("operand %d has shape %v, operand 0 has %v", i+1, s.Shape, first)
		}
	}
	want := append(Shape(nil), first[:axis]...)
	want = append(want, len(in))
	return wantShape(n, append(want, first[axis:]...))
}

func checkClip(n *Node, in []Spec) error {
	if len(in[1].Shape)+len(in[2].Shape) != 0 {
		return fmt.Errorf("the bounds are scalars, got shapes %v and %v", in[1].Shape, in[2].Shape)
	}
	return sameShape(n, in)
}

func reduced(s Shape, axes []int, keep bool) Shape {
	if !keep {
		return dropAxes(s, axes)
	}
	out := append(Shape(nil), s...)
	for _, a := range axes {
		out[a] = 1
	}
	return out
}

func checkReduce(n *Node, in []Spec) error {
	if err := ascending(n.Attrs.Axes, len(in[0].Shape)); err != nil {
		return err
	}
	return wantShape(n, reduced(in[0].Shape, n.Attrs.Axes, n.Attrs.Keep))
}

func checkReduceSame(n *Node, in []Spec) error {
	if err := wantType(n, in[0].Type); err != nil {
		return err
	}
	return checkReduce(n, in)
}

func checkReduceBool(n *Node, in []Spec) error {
	if err := wantType(n, U8); err != nil {
		return err
	}
	return checkReduce(n, in)
}

func checkArg(n *Node, in []Spec) error {
	if !n.Type.Int() {
		return fmt.Errorf("yields integers, got type %v", n.Type)
	}
	s := in[0].Shape
	if n.Attrs.Axis < -1 || n.Attrs.Axis >= len(s) {
		return fmt.Errorf("axis %d is out of range for rank %d", n.Attrs.Axis, len(s))
	}
	axes := []int{n.Attrs.Axis}
	if n.Attrs.Axis == -1 {
		axes = axes[:0]
		for i := range s {
			axes = append(axes, i)
		}
	}
	return wantShape(n, reduced(s, axes, n.Attrs.Keep))
}

func checkDot(n *Node, in []Spec) error {
	at, a, b := &n.Attrs, in[0].Shape, in[1].Shape
	if len(at.ContractA) != len(at.ContractB) || len(at.BatchA) != len(at.BatchB) {
		return fmt.Errorf("contraction axes %v and %v, batch axes %v and %v do not pair", at.ContractA, at.ContractB, at.BatchA, at.BatchB)
	}
	freeA, err := freeAxes(a, at.ContractA, at.BatchA)
	if err != nil {
		return err
	}
	freeB, err := freeAxes(b, at.ContractB, at.BatchB)
	if err != nil {
		return err
	}
	var want Shape
	for i, x := range at.BatchA {
		if y := at.BatchB[i]; a[x] != b[y] {
			return fmt.Errorf("batch size %d of %v does not match %d of %v", a[x], a, b[y], b)
		}
		want = append(want, a[x])
	}
	for i, x := range at.ContractA {
		if y := at.ContractB[i]; a[x] != b[y] {
			return fmt.Errorf("contraction size %d of %v does not match %d of %v", a[x], a, b[y], b)
		}
	}
	for _, x := range freeA {
		want = append(want, a[x])
	}
	for _, y := range freeB {
		want = append(want, b[y])
	}
	return wantShape(n, want)
}

// freeAxes lists the axes of s that are neither contracted nor batched.
func freeAxes(s Shape, contract, batch []int) ([]int, error) {
	used := make([]bool, len(s))
	for _, axes := range [][]int{batch, contract} {
		for _, a := range axes {
			if a < 0 || a >= len(s) {
				return nil, fmt.Errorf("axis %d is out of range for shape %v", a, s)
			}
			if used[a] {
				return nil, fmt.Errorf("axis %d of %v is named twice", a, s)
			}
			used[a] = true
		}
	}
	var free []int
	for a := range s {
		if !used[a] {
			free = append(free, a)
		}
	}
	return free, nil
}
