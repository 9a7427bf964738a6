package shaders

import (
	"nxvk/graph"
	"nxvk/kernel"
)

// matrixKernel is a kernel over a batch of small dense problems. On GPUs a workgroup takes a problem: its matrices
// lie in shared memory, its invocations share the loops over elements (each, each2), and all of them compute what stands
// between these, from the same values. On processors an invocation takes a problem by itself: its matrices lie in a
// temporary, interleaved with those of its neighbours, so that a vector of lanes touches neighbouring words.
//
// Use: declare arrays and numbers, then over(body), then plan. The steps and roundings are those of host/linalg, and
// so are the results, to the last bit.
type matrixKernel struct {
	*maker
	op       graph.Op
	t        kernel.Type // F32 or F64
	mem      kernel.Mem
	solo     bool
	lanes    int
	wide     int // neighbouring columns that invocations of each2 take
	problems int
	groups   int
	slot     int // of the first temporary
	temps    []uint64
	arrays   []*array
	bounds   []Bounds

	lane, problem kernel.Value
}

// soloLanes is the number of invocations of a workgroup that each take a problem.
const soloLanes = 8

// soloGroups bounds the workgroups, and with them the temporaries, of a processor's kernel.
const soloGroups = 64

// newMatrixKernel begins a kernel over problems of about size elements. slot is that of the first temporary.
func newMatrixKernel(name string, d kernel.Target, op graph.Op, t graph.Type, problems, size, wide, slot int) (*matrixKernel, error) {
	if !Has(d, t) || !d.F64 {
		return nil, &Unsupported{op, t, "sums need f64"}
	}
	k := &matrixKernel{op: op, t: RegOf(t), mem: MemOf(t), solo: d.Class == kernel.CPU, problems: problems, slot: slot, wide: wide}
	k.lanes = soloLanes
	k.groups = min((problems+soloLanes-1)/soloLanes, soloGroups)
	if !k.solo {
		k.lanes = 64
		if size >= 1024 && (d.MaxInvocations == 0 || d.MaxInvocations >= 256) {
			k.lanes = 256
		}
		k.groups = min(problems, MaxGroups)
	}
	if k.wide == 0 {
		k.wide = 8
		if k.lanes == 256 {
			k.wide = 16
		}
	}
	k.maker = newMaker(name, d, k.lanes)
	k.lane = k.BuiltinValue(kernel.LocalX)
	return k, nil
}

// number declares an extent.
func (k *matrixKernel) number(name string, n int) kernel.Value {
	return k.scalar(name, kernel.I32, immInt(n))
}

// array is working memory of a problem.
type array struct {
	k      *matrixKernel
	mem    kernel.Mem
	size   int
	shared kernel.Shared
	ptr    kernel.Ptr
	base   kernel.Value // of element 0 of this lane
}

// array declares working memory of size elements.
func (k *matrixKernel) array(mem kernel.Mem, size int) *array {
	a := &array{k: k, mem: mem, size: size}
	k.arrays = append(k.arrays, a)
	return a
}

// capacity is what is reserved for an array of n elements: few sizes, so that shapes share kernels.
func capacity(n int) int {
	if n <= 512 {
		return (n + 31) &^ 31
	}
	return (n + 255) &^ 255
}

// settle gives the arrays their places.
func (k *matrixKernel) settle() error {
	if !k.solo {
		bytes := 0
		for _, a := range k.arrays {
			n := capacity(a.size)
			bytes += n * a.mem.Size()
			a.shared = k.SharedArray(a.mem, n)
		}
		if bytes > k.T.MaxShared {
			return &Unsupported{k.op, 0, "its working memory exceeds what a workgroup shares"}
		}
		return nil
	}
	byMem := map[kernel.Mem]int{}
	ptrs := map[kernel.Mem]kernel.Ptr{}
	group := k.BuiltinValue(kernel.GroupX)
	for _, mem := range []kernel.Mem{kernel.MF32, kernel.MF64, kernel.M32} {
		total := 0
		for _, a := range k.arrays {
			if a.mem == mem {
				total += a.size
			}
		}
		if total == 0 {
			continue
		}
		elements := total * k.lanes * k.groups
		if elements >= wideFrom {
			return &Unsupported{k.op, 0, "its working memory is too large"}
		}
		byMem[mem] = total
		ptrs[mem] = k.dense("work", mem, k.slot+len(k.temps), elements, true)
		k.temps = append(k.temps, uint64(elements*mem.Size()))
	}
	first := map[kernel.Mem]kernel.Value{}
	for _, a := range k.arrays {
		base, ok := first[a.mem]
		if !ok {
			total := k.number("total", byMem[a.mem])
			base = k.Add(k.Mul(group, k.MulI(total, k.lanes)), k.lane)
		}
		a.ptr, a.base = ptrs[a.mem], base
		first[a.mem] = k.Add(base, k.MulI(k.number("size", a.size), k.lanes))
	}
	return nil
}

// dense declares a pointer to the n elements of a slot.
func (k *matrixKernel) dense(name string, mem kernel.Mem, slot, n int, write bool) kernel.Ptr {
	k.args = append(k.args, Arg{Kind: Addr, Slot: slot})
	k.access = append(k.access, Access{Slot: slot, Hi: uint64(n * mem.Size()), Write: write})
	return k.Pointer(name, mem, write, 0)
}

// flag declares a flag that a problem sets for the operand in slot.
func (k *matrixKernel) flag(index int, reason, message string) kernel.Ptr {
	slot := k.slot + len(k.temps)
	k.temps = append(k.temps, 4)
	k.bounds = append(k.bounds, Bounds{Flag: slot, Index: index, Reason: reason, Message: message})
	return k.maker.flag(slot)
}

func (a *array) at(i kernel.Value) kernel.Value { return a.k.Add(a.base, a.k.MulI(i, a.k.lanes)) }

func (a *array) get(i kernel.Value) kernel.Value {
	if a.k.solo {
		return a.k.Load(a.ptr, a.at(i))
	}
	return a.k.SLoad(a.shared, i)
}

func (a *array) set(i, v kernel.Value) {
	if a.k.solo {
		a.k.Store(a.ptr, a.at(i), v)
		return
	}
	a.k.SStore(a.shared, i, v)
}

// over runs body for every problem.
func (k *matrixKernel) over(body func()) {
	n := k.number("problems", k.problems)
	from, step := k.BuiltinValue(kernel.GroupX), k.BuiltinValue(kernel.GroupsX)
	if k.solo {
		from, step = k.Add(k.MulI(from, k.lanes), k.lane), k.MulI(step, k.lanes)
	}
	k.For(from, n, step, func(p kernel.Value) {
		k.problem = p
		body()
		k.sync()
	})
}

func (k *matrixKernel) plan() *Plan {
	return &Plan{Launches: []Launch{k.launch([3]uint32{uint32(k.groups), 1, 1})}, Temps: k.temps, Bounds: k.bounds}
}

// sync makes what all invocations have stored visible to all.
func (k *matrixKernel) sync() {
	if !k.solo {
		k.Barrier()
	}
}

// single runs f once.
func (k *matrixKernel) single(f func()) {
	if k.solo {
		f()
		return
	}
	k.If(k.Cmp(kernel.IEq, k.lane, k.I32(0)), f, nil)
}

// each runs f for from … to-1, in no order.
func (k *matrixKernel) each(from, to kernel.Value, f func(i kernel.Value)) {
	if k.solo {
		k.loop(from, to, f)
		return
	}
	k.For(k.Add(from, k.lane), to, k.I32(k.lanes), f)
}

// each2 is each over rows and columns.
func (k *matrixKernel) each2(r0, r1, c0, c1 kernel.Value, f func(i, j kernel.Value)) {
	if k.solo {
		k.loop(r0, r1, func(i kernel.Value) {
			k.loop(c0, c1, func(j kernel.Value) { f(i, j) })
		})
		return
	}
	row, col := k.ShrUI(k.lane, int(log2(k.wide))), k.And(k.lane, k.I32(k.wide-1))
	k.For(k.Add(r0, row), r1, k.I32(k.lanes/k.wide), func(i kernel.Value) {
		k.For(k.Add(c0, col), c1, k.I32(k.wide), func(j kernel.Value) { f(i, j) })
	})
}

// loop runs f for from … to-1, in order, in every invocation.
func (k *matrixKernel) loop(from, to kernel.Value, f func(i kernel.Value)) {
	k.For(from, to, k.I32(1), f)
}

// f64 widens a number.
func (k *matrixKernel) f64(x kernel.Value) kernel.Value { return k.Conv(kernel.FConv, kernel.F64, x) }

// round brings an F64 to the kernel's type.
func (k *matrixKernel) round(x kernel.Value) kernel.Value {
	if k.t == kernel.F64 {
		return x
	}
	return narrow(k.Builder, x)
}

func (k *matrixKernel) c(v float64) kernel.Value { return k.ConstFloat(k.t, v) }

func (k *matrixKernel) div(x, y kernel.Value) kernel.Value { return Div(k.Builder, x, y) }

func (k *matrixKernel) sqrt(x kernel.Value) kernel.Value { return Sqrt(k.Builder, x) }

func (k *matrixKernel) abs(x kernel.Value) kernel.Value { return k.Un(kernel.FAbs, x) }

// sum64 is the sum over from … to-1 of products in F64.
func (k *matrixKernel) sum64(from, to kernel.Value, f func(i kernel.Value) (x, y kernel.Value)) kernel.Value {
	acc := k.NewVar(k.Zero(kernel.F64))
	k.loop(from, to, func(i kernel.Value) {
		x, y := f(i)
		k.Set(acc, k.Add(k.Get(acc), k.Mul(k.f64(x), k.f64(y))))
	})
	return k.Get(acc)
}

// dot is sum64, rounded.
func (k *matrixKernel) dot(from, to kernel.Value, f func(i kernel.Value) (x, y kernel.Value)) kernel.Value {
	return k.round(k.sum64(from, to, f))
}

// flushed is x, or zero where |x| is at most eps.
func (k *matrixKernel) flushed(x, eps kernel.Value) kernel.Value {
	return k.Select(k.Cmp(kernel.FLe, k.abs(x), eps), k.Zero(k.t), x)
}

// entry is the place of element (i, j) of a row-major matrix of n columns.
func (k *matrixKernel) entry(i, j, n kernel.Value) kernel.Value { return k.Add(k.Mul(i, n), j) }

// operand declares a tensor of size elements a matrix, and yields what reads element i of the matrix that is problem
// number p.
func (k *matrixKernel) operand(slot, count, size int) func(p, i kernel.Value) kernel.Value {
	ptr := k.dense("x", k.mem, slot, count*size, false)
	n := k.number("x.size", size)
	return func(p, i kernel.Value) kernel.Value { return k.Load(ptr, k.Add(k.Mul(p, n), i)) }
}

// result is operand for what is written.
func (k *matrixKernel) result(slot, count, size int) func(p, i, v kernel.Value) {
	ptr := k.dense("to", k.mem, slot, count*size, true)
	n := k.number("to.size", size)
	return func(p, i, v kernel.Value) { k.Store(ptr, k.Add(k.Mul(p, n), i), v) }
}
