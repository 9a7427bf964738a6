package lower

import (
	"math"
	"math/rand"
	"strings"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
	"nxvk/shaders"
)

// linalgTrial is a graph of one operation over batch matrices, with small numbers in some layout.
func linalgTrial(r *rand.Rand, op graph.Op, t graph.Type, batch, n int) (*graph.Graph, []laidOut) {
	m := n
	if op == graph.OpQR || op == graph.OpSVD {
		m = 1 + r.Intn(4)
	}
	out := t
	if t.Int() {
		out = graph.F32
	}
	s := func(t graph.Type, dims ...int) graph.Spec {
		return graph.Spec{Type: t, Shape: append(graph.Shape{batch}, dims...)}
	}
	a := s(t, m, n)
	node := graph.Node{Op: op, In: []graph.Ref{0}, Spec: s(out, m, n)}
	specs := []graph.Spec{a}
	switch op {
	case graph.OpSolve, graph.OpTriangularSolve:
		cols := 1 + r.Intn(4)
		node.In = []graph.Ref{0, 1}
		node.Attrs.Solve = graph.Solve{Upper: r.Intn(2) == 0, Right: op == graph.OpTriangularSolve && r.Intn(2) == 0}
		node.Spec = s(out, n, cols)
		if node.Attrs.Solve.Right {
			node.Spec = s(out, cols, n)
		}
		if op == graph.OpSolve {
			node.Attrs.Solve = graph.Solve{}
		}
		specs = append(specs, graph.Spec{Type: t, Shape: node.Shape})
	case graph.OpLU:
		node.Spec, node.More = a, []graph.Spec{s(out, n, n), s(out, n, n)}
	case graph.OpDeterminant:
		node.Spec = s(out)
	case graph.OpQR:
		k := min(m, n)
		node.Attrs.Eps = 1e-10
		node.Spec, node.More = s(out, m, k), []graph.Spec{s(out, k, n)}
	case graph.OpSVD:
		k := min(m, n)
		node.Attrs.MaxIter = 100
		node.Spec, node.More = s(out, m, k), []graph.Spec{s(out, k), s(out, k, n)}
	case graph.OpEigh:
		node.Attrs.Eps, node.Attrs.MaxIter = 1e-4, 100
		node.Spec, node.More = s(out, n), []graph.Spec{s(out, n, n)}
	}
	g := &graph.Graph{}
	var in []laidOut
	for _, spec := range specs {
		x := tensor{Spec: spec}
		for i := range spec.Shape.Size() {
			v := float64(r.Intn(13) - 4)
			if row := i / n % m; len(in) == 0 && i%n == row {
				v = float64(10 + r.Intn(9)) // no system is singular
			}
			x.bits = append(x.bits, graph.ConvertBits(math.Float64bits(math.Abs(v)), graph.F64, spec.Type.Part()))
			if spec.Type.Complex() {
				x.bits = append(x.bits, 0)
			}
		}
		l := layOut(x, layoutOf(layoutKinds[r.Intn(len(layoutKinds))], spec.Shape))
		in = append(in, l)
		g.Params = append(g.Params, graph.Param{Spec: spec})
	}
	g.Nodes, g.Outs = graph.One(node, len(in))
	return g, in
}

var linalgTypes = []graph.Type{graph.U8, graph.S32, graph.BF16, graph.F16, graph.F32, graph.F64}

// Every operation on kernels gives what it gives on the processor, from operands of any type and layout.
func TestLinalgOnKernels(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for _, op := range shaders.LinalgOps {
		for i, ty := range linalgTypes {
			m, batch := interpreted(testTargets["discrete"]), 1+r.Intn(3)
			if i%3 == 0 { // enough matrices for a processor's vectors
				m, batch = interpreted(testTargets["cpu"]), 256
			}
			g, in := linalgTrial(r, op, ty, batch, 1+r.Intn(4))
			got := runGraph(t, m, g, in)
			agree(t, g, got, hostEval(t, g, in))
			p, _ := Lower(g, m.Target)
			if len(p.Steps) == 0 || len(p.HostOps()) > 0 {
				t.Errorf("%s of %v on %v: %v runs on the processor", op, ty, m.Class, p.HostOps())
			}
		}
	}
}

func TestLinalgOnDevice(t *testing.T) {
	m := onDevice(t)
	r := rand.New(rand.NewSource(2))
	for _, op := range shaders.LinalgOps {
		g, in := linalgTrial(r, op, graph.F32, 256, 3)
		agree(t, g, runGraph(t, m, g, in), hostEval(t, g, in))
	}
}

// Where few matrices, large ones or complex ones go to the processor, they do; and what goes wrong there leaves nothing behind.
func TestLinalgPlaces(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	for _, c := range []struct {
		class    kernel.Class
		ty       graph.Type
		batch, n int
		want     Tier
	}{
		{kernel.CPU, graph.F32, 1, 4, Host},
		{kernel.CPU, graph.F32, 300, 4, Device},
		{kernel.CPU, graph.F32, 300, 40, Host},
		{kernel.Discrete, graph.F32, 1, 4, Device},
		{kernel.Discrete, graph.F64, 1, 300, Host},
		{kernel.Discrete, graph.C64, 1, 4, Host},
	} {
		g, _ := linalgTrial(r, graph.OpLU, c.ty, c.batch, c.n)
		if got := TierOf(target(c.class), g.Nodes[0], g.Params); got != c.want {
			t.Errorf("%+v runs on %v", c, got)
		}
		p, err := Lower(g, target(c.class))
		if err == nil {
			err = Check(p)
		}
		if err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if c.want == Host && (len(p.Steps) != 1 || len(p.Bufs) != 4) {
			t.Errorf("%+v leaves more than its step: %v", c, p)
		}
	}
}

// A system without a solution fails on kernels as on the processor.
func TestSingularSystemsFail(t *testing.T) {
	r := rand.New(rand.NewSource(4))
	for _, op := range []graph.Op{graph.OpSolve, graph.OpTriangularSolve} {
		for _, class := range []kernel.Class{kernel.CPU, kernel.Discrete} {
			g, in := linalgTrial(r, op, graph.F32, 256, 3)
			in[0] = layOut(in[0].tensor, graph.Contiguous(in[0].Shape))
			for i := range 9 {
				put(in[0].buf, graph.F32, 77*9+i, 0)
			}
			for i := range in {
				g.Params[i].Layout = in[i].layout
			}
			p, err := Lower(g, target(class))
			if err != nil {
				t.Fatal(err)
			}
			_, err = execute(t, interpreted(target(class)), p, in)
			if err == nil || !strings.Contains(err.Error(), "can't solve for singular matrix") {
				t.Errorf("%s on %v: %v", op, class, err)
			}
		}
	}
}

// A matrix in blocks has the factor that it has as a whole, but for rounding.
func TestBlockedCholesky(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	const n = 150
	for _, ty := range []graph.Type{graph.F32, graph.F64} {
		m := onDevice(t)
		m.Class = kernel.Discrete
		spec := graph.Spec{Type: ty, Shape: graph.Shape{2, n, n}}
		x := tensor{Spec: spec, bits: make([]uint64, spec.Shape.Size())}
		for b := range 2 {
			for i := range n {
				for j := range i + 1 {
					v := r.NormFloat64()
					if i == j {
						v = 2 * n
					}
					bits := graph.FromFloat(v, ty)
					x.bits[b*n*n+i*n+j], x.bits[b*n*n+j*n+i] = bits, bits
				}
			}
		}
		in := []laidOut{layOut(x, graph.Contiguous(spec.Shape))}
		g := &graph.Graph{Params: []graph.Param{{Spec: spec}}}
		g.Nodes, g.Outs = graph.One(graph.Node{Op: graph.OpCholesky, In: []graph.Ref{0}, Spec: spec}, 1)
		p, err := Lower(g, m.Target)
		if err != nil || (len(p.HostOps()) == 0) != m.F64 {
			t.Fatalf("%v, on the processor: %v; f64: %v", err, p.HostOps(), m.F64)
		}
		got, want := runGraph(t, m, g, in)[0], hostEval(t, g, in)[0]
		tol := map[graph.Type]float64{graph.F32: 1e-5, graph.F64: 1e-13}[ty]
		for i := range want.bits {
			a, b := graph.ToFloat(got.bits[i], ty), graph.ToFloat(want.bits[i], ty)
			if !(math.Abs(a-b) <= tol*math.Sqrt(2*n)) {
				t.Fatalf("%v: element %d is %g, want %g", ty, i, a, b)
			}
		}
	}
}
