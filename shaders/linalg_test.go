package shaders_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"nxvk/graph"
	"nxvk/host"
	"nxvk/kernel"
	"nxvk/shaders"
	"nxvk/test/devtest"
)

// matrixCase is an operation over a batch of matrices.
type matrixCase struct {
	node graph.Node
	t    graph.Type
	in   []graph.Shape
	slow bool // a software driver takes seconds for the kernel: it is interpreted alone
}

func (c *matrixCase) String() string {
	return fmt.Sprintf("%s of %v over %v, %+v", c.node.Op, c.t, c.in, c.node.Attrs)
}

// newMatrixCase is op over batch matrices {m, n}; systems have cols right sides, none for a vector.
func newMatrixCase(op graph.Op, t graph.Type, batch, m, n, cols int, at graph.Attrs) *matrixCase {
	s := func(dims ...int) graph.Spec { return graph.Spec{Type: t, Shape: append(graph.Shape{batch}, dims...)} }
	c := &matrixCase{node: graph.Node{Op: op, Spec: s(m, n), Attrs: at}, t: t, in: []graph.Shape{s(m, n).Shape}}
	k := min(m, n)
	switch op {
	case graph.OpLU:
		c.node.More = []graph.Spec{s(m, n), s(m, n)}
	case graph.OpDeterminant:
		c.node.Spec = s()
	case graph.OpEigh:
		c.node.Spec, c.node.More = s(n), []graph.Spec{s(n, n)}
	case graph.OpQR:
		inner := k
		if at.Full {
			inner = m
		}
		c.node.Spec, c.node.More = s(m, inner), []graph.Spec{s(inner, n)}
	case graph.OpSVD:
		rows, cols := k, k
		if at.Full {
			rows, cols = m, n
		}
		c.node.Spec, c.node.More = s(m, rows), []graph.Spec{s(k), s(cols, n)}
	case graph.OpSolve, graph.OpTriangularSolve:
		c.node.Spec = s(n, cols)
		if at.Solve.Right {
			c.node.Spec = s(cols, n)
		}
		if cols == 0 {
			c.node.Spec = s(n)
		}
		c.in = append(c.in, c.node.Shape)
	}
	return c
}

// fill makes matrices of some kind: 0 random, 1 of lower rank, 2 zero, 3 with anything in it, else symmetric and definite.
func (c *matrixCase) fill(r *rand.Rand, kind int) [][]byte {
	var data [][]byte
	for k, s := range c.in {
		x := make([]float64, s.Size())
		for i := range x {
			x[i] = math.Round(r.NormFloat64()*64) / 16
			if kind == 0 {
				x[i] = r.NormFloat64()
			}
		}
		if k == 0 {
			c.shape(x, s, r, kind)
		}
		var b []byte
		for _, v := range x {
			if c.t == graph.F32 {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
			} else {
				b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
			}
		}
		data = append(data, b)
	}
	return data
}

func (c *matrixCase) shape(x []float64, s graph.Shape, r *rand.Rand, kind int) {
	m, n := s[1], s[2]
	for b := range s[0] {
		a := x[b*m*n : (b+1)*m*n]
		switch {
		case kind == 1:
			for i := range m {
				a[i*n+n-1] = a[i*n]
			}
		case kind == 2:
			clear(a)
		case kind == 3:
			odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 1e12, 1e-12}
			a[r.IntN(len(a))] = odd[r.IntN(len(odd))]
		}
		symmetric := c.node.Op == graph.OpEigh || c.node.Op == graph.OpCholesky
		if m == n && symmetric && kind != 3 {
			for i := range n {
				for j := range i {
					a[i*n+j] = a[j*n+i]
				}
				if c.node.Op == graph.OpCholesky && kind != 2 {
					a[i*n+i] = float64(4*n) + math.Abs(a[i*n+i])
				}
			}
		}
	}
}

func (c *matrixCase) specs() []graph.Spec { return append([]graph.Spec{c.node.Spec}, c.node.More...) }

// onHost is what the processor makes of it. A singular system yields nothing.
func (c *matrixCase) onHost(data [][]byte) ([]host.Tensor, error) {
	var in []host.Tensor
	for i, s := range c.in {
		in = append(in, host.Tensor{Spec: graph.Spec{Type: c.t, Shape: s}, Data: data[i]})
	}
	return host.Run(&c.node, in)
}

// Matrices that take the largest workgroups, and many right sides.
func TestLargerLinalg(t *testing.T) {
	d := devtest.Open(t)
	target := d.Target
	target.Class = kernel.Discrete
	r := rand.New(rand.NewPCG(2, 0))
	for _, op := range shaders.LinalgOps {
		for _, typ := range []graph.Type{graph.F32, graph.F64} {
			n := 30
			if typ == graph.F32 {
				n = 48
			}
			at := graph.Attrs{Eps: 1e-4, MaxIter: 100, Solve: graph.Solve{Right: op == graph.OpTriangularSolve, Transform: graph.Transpose}}
			c := newMatrixCase(op, typ, 2, n, n, 35, at)
			plan, err := shaders.Linalg(target, &c.node, c.t, c.in)
			if c.refused(t, target, err) {
				continue
			}
			if err != nil {
				t.Fatalf("%v: %v", c, err)
			}
			c.check(t, plan, r, 0, c.String())
		}
	}
}

// refused reports whether a device without f64 leaves c to the processor, as it must.
func (c *matrixCase) refused(t *testing.T, target kernel.Target, err error) bool {
	t.Helper()
	var u *shaders.Unsupported
	if errors.As(err, &u) == target.F64 {
		t.Fatalf("%v: %v; with f64: %v", c, err, target.F64)
	}
	return !target.F64
}

// TestLinalg holds device, interpreter and host to one another, bit for bit, on both kinds of device.
func TestLinalg(t *testing.T) {
	d := devtest.Open(t)
	type sized struct{ m, n, cols int }
	square := []sized{{1, 1, 1}, {2, 2, 2}, {3, 3, 0}, {5, 5, 3}, {6, 6, 19}, {9, 9, 1}}
	any := []sized{{1, 1, 0}, {1, 3, 0}, {3, 1, 0}, {2, 2, 0}, {5, 5, 0}, {7, 4, 0}, {4, 7, 0}}
	for _, class := range []kernel.Class{kernel.CPU, kernel.Discrete} {
		target := d.Target
		target.Class = class
		for _, typ := range []graph.Type{graph.F32, graph.F64} {
			r := rand.New(rand.NewPCG(1, uint64(class)))
			run := func(c *matrixCase) {
				t.Helper()
				plan, err := shaders.Linalg(target, &c.node, c.t, c.in)
				if c.refused(t, target, err) {
					return
				}
				if err != nil {
					t.Fatalf("%v: %v", c, err)
				}
				for kind := range 4 {
					c.check(t, plan, r, kind, fmt.Sprintf("%v, %v, kind %d", class, c, kind))
				}
			}
			for i, s := range square {
				batch := []int{1, 3, 11}[i%3]
				for _, op := range []graph.Op{graph.OpCholesky, graph.OpLU, graph.OpDeterminant, graph.OpSolve} {
					run(newMatrixCase(op, typ, batch, s.n, s.n, s.cols, graph.Attrs{}))
				}
				run(newMatrixCase(graph.OpEigh, typ, batch, s.n, s.n, 0, graph.Attrs{Eps: 1e-4, MaxIter: 1000}))
			}
			for mode := range 12 {
				s := square[mode%len(square)]
				at := graph.Attrs{Solve: graph.Solve{Upper: mode&1 != 0, Right: mode&2 != 0, Transform: graph.Transform(mode / 4)}}
				run(newMatrixCase(graph.OpTriangularSolve, typ, 1+mode, s.n, s.n, s.cols, at))
			}
			for i, s := range any {
				batch := []int{1, 3, 11}[i%3]
				run(newMatrixCase(graph.OpQR, typ, batch, s.m, s.n, 0, graph.Attrs{Eps: 1e-10}))
				run(newMatrixCase(graph.OpQR, typ, batch, s.m, s.n, 0, graph.Attrs{Eps: 1e-10, Full: true}))
				run(newMatrixCase(graph.OpSVD, typ, batch, s.m, s.n, 0, graph.Attrs{MaxIter: 100}))
				c := newMatrixCase(graph.OpSVD, typ, batch, s.m, s.n, 0, graph.Attrs{MaxIter: 100, Full: true})
				c.slow = class != kernel.CPU && d.Target.Class == kernel.CPU && i != 5
				run(c)
			}
		}
	}
}

func (c *matrixCase) check(t *testing.T, plan *shaders.Plan, r *rand.Rand, kind int, what string) {
	t.Helper()
	data := c.fill(r, kind)
	var got [][]byte
	if c.slow {
		var sizes []int
		for _, s := range c.specs() {
			sizes = append(sizes, s.Shape.Size()*s.Type.Size())
		}
		var err error
		if got, err = devtest.Interpret(devtest.Open(t).Machine(), plan, data, sizes...); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	} else {
		got = devtest.Agree(t, plan, data, c.specs()...)
	}
	want, err := c.onHost(data)
	var bad *host.ValueError
	if errors.As(err, &bad) {
		return // the flag tells: see TestLinalgFlagsSingularSystems
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for i, s := range c.specs() {
		if err := devtest.SameAs(s.Type, got[i], want[i].Data); err != nil {
			t.Errorf("%s: result %d: %v", what, i, err)
		}
	}
}
