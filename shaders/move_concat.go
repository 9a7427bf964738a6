package shaders

import (
	"fmt"

	"nxvk/graph"
	"nxvk/kernel"
)

// concatMost is how many operands one kernel joins; more take several launches.
const concatMost = 8

// Concat joins tensors along an axis, each converted to out's type. Slots: the operands, the result.
func Concat(t kernel.Target, xs []Operand, out graph.Spec, axis int) (*Plan, error) {
	for _, x := range xs {
		if err := needMove(t, graph.OpConcat, x.Type, out.Type); err != nil {
			return nil, err
		}
	}
	p := &Plan{}
	at := 0
	for first := 0; first < len(xs); first += concatMost {
		last := min(first+concatMost, len(xs))
		n := 0
		for _, x := range xs[first:last] {
			n += x.Shape[axis]
		}
		p.Launches = append(p.Launches, concatSome(t, xs[first:last], first, len(xs), out, axis, at, n))
		at += n
	}
	return p, nil
}

// Stack joins tensors along a new axis.
func Stack(t kernel.Target, xs []Operand, out graph.Spec, axis int) (*Plan, error) {
	rows := make([]Operand, len(xs))
	for i, x := range xs {
		rows[i] = x
		rows[i].Shape = insert(x.Shape, axis, 1)
		rows[i].Layout.Strides = insert(x.Layout.Strides, axis, 0)
	}
	return Concat(t, rows, out, axis)
}

func insert(s []int, at, v int) []int {
	r := append([]int(nil), s[:at]...)
	r = append(r, v)
	return append(r, s[at:]...)
}

// concatSome fills [at, at+n) of the axis from some of the operands.
func concatSome(t kernel.Target, xs []Operand, slot, slots int, out graph.Spec, axis, at, n int) Launch {
	same := true
	for _, x := range xs {
		same = same && x.Type == out.Type
	}
	to := out.Type
	if same {
		to = bitsType(to)
	}
	// The region to fill as a tensor of its own, in the result's layout.
	part := append(graph.Shape(nil), out.Shape...)
	part[axis] = n
	dst := graph.Contiguous(out.Shape)
	dst.Offset = at * dst.Strides[axis]
	axes, joined, scale := mergeConcat(part, dst, xs, axis)

	tune := flatTuning(t)
	f := &flat{maker: newMaker("concatenate."+out.Type.String(), t, tune.local), out: out, tune: tune, count: part.Size()}
	lo, hi := graph.Reach(part, dst)
	f.wide = hi-lo >= wideFrom
	for _, x := range xs {
		f.wide = f.wide || wideReach(x.Shape, x.Layout)
	}
	r := f.indexType()
	f.n = f.scalar("n", r, immInt(f.count))
	f.ptr = f.pointer("out", MemOf(to), &IndexMap{Maps: []Mapped{{Lo: lo, Hi: hi}}}, 0, slots, to, 1, true)
	div := make([]Divisor, len(axes))
	dstStr := make([]kernel.Value, len(axes))
	for k, a := range axes {
		if k > 0 {
			div[k] = f.divisor(fmt.Sprintf("d%d", k), a.n, r)
		}
		dstStr[k] = f.scalar(fmt.Sprintf("o%d", k), r, immInt(a.strides[0]))
	}
	type source struct {
		p         kernel.Ptr
		from      graph.Type
		end, bias kernel.Value
		str       []kernel.Value
	}
	src := make([]source, len(xs))
	pos := 0
	for j, x := range xs {
		s := source{from: x.Type}
		if same {
			s.from = to
		}
		xlo, xhi := graph.Reach(x.Shape, x.Layout)
		s.p = f.pointer(fmt.Sprintf("in%d", j), MemOf(s.from), &IndexMap{Maps: []Mapped{{Lo: xlo, Hi: xhi}}}, 0, slot+j, s.from, 1, false)
		// An operand's coordinate along the axis counts from where it begins.
		s.bias = f.scalar(fmt.Sprintf("bias%d", j), r, immInt(x.Layout.Offset-xlo-pos*scale*axes[joined].strides[1+j]))
		pos += x.Shape[axis]
		s.end = f.scalar(fmt.Sprintf("end%d", j), r, immInt(pos*scale))
		for k, a := range axes {
			s.str = append(s.str, f.scalar(fmt.Sprintf("s%d.%d", j, k), r, immInt(a.strides[1+j])))
		}
		src[j] = s
	}
	b := f.Builder
	GridStride(b, tune.local, f.n, func(i kernel.Value) {
		c := make([]kernel.Value, len(axes))
		rest := i
		for k := len(axes) - 1; k > 0; k-- {
			rest, c[k] = div[k].DivMod(b, rest)
		}
		c[0] = rest
		v := b.NewVar(b.Zero(MemOf(to).Reg()))
		var take func(j int)
		take = func(j int) {
			read := func() {
				o := src[j].bias
				for k := range c {
					o = b.Add(o, b.Mul(c[k], src[j].str[k]))
				}
				b.Set(v, f.stored(b.Load(src[j].p, o), src[j].from, to))
			}
			if j == len(src)-1 {
				read()
				return
			}
			b.If(b.Cmp(kernel.ULt, c[joined], src[j].end), read, func() { take(j + 1) })
		}
		take(0)
		o := b.Zero(r)
		for k := range c {
			o = b.Add(o, b.Mul(c[k], dstStr[k]))
		}
		b.Store(f.ptr, o, b.Get(v))
	})
	grid := Groups(f.count, tune.local, tune.units)
	grid[0] = min(grid[0], uint32(tune.most))
	return f.launch(grid)
}

// concatAxis is an axis of the region; strides are the result's, then each operand's.
type concatAxis struct {
	n       int
	strides []int
}

// mergeConcat merges axes; nothing merges into the joined axis from outside, and what merges into it from
// inside scales positions along it. It yields where the joined axis ended up.
func mergeConcat(part graph.Shape, dst graph.Layout, xs []Operand, axis int) (axes []concatAxis, joined, scale int) {
	scale = 1
	joinedAt := -1 // in the reversed list
	for i := len(part) - 1; i >= 0; i-- {
		if part[i] == 1 && i != axis {
			continue
		}
		a := concatAxis{n: part[i], strides: []int{dst.Strides[i]}}
		for _, x := range xs {
			a.strides = append(a.strides, x.Layout.Strides[i])
		}
		if n := len(axes); n > 0 && joinedAt != n-1 {
			in := &axes[n-1]
			ok := true
			for j := range a.strides {
				// Along the joined axis an operand of extent 1 has no stride of its own.
				free := i == axis && j > 0 && xs[j-1].Shape[axis] == 1
				ok = ok && (free || a.strides[j] == in.strides[j]*in.n)
			}
			if ok {
				if i == axis {
					joinedAt, scale = n-1, in.n
				}
				in.n *= a.n
				continue
			}
		}
		if i == axis {
			joinedAt = len(axes)
		}
		axes = append(axes, a)
	}
	for i, j := 0, len(axes)-1; i < j; i, j = i+1, j-1 {
		axes[i], axes[j] = axes[j], axes[i]
	}
	return axes, len(axes) - 1 - joinedAt, scale
}
