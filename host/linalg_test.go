package host

import (
	"errors"
	"math"
	"math/rand"
	"testing"

	"nxvk/graph"
)

// near wants every number of got within tol of want.
func near(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tol) {
			t.Errorf("%s: element %d is %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

// mul is the product of matrices {m, k} and {k, n}.
func mul(a, b []float64, m, k, n int) []float64 {
	out := make([]float64, m*n)
	for i := range m {
		for j := range n {
			for p := range k {
				out[i*n+j] += a[i*k+p] * b[p*n+j]
			}
		}
	}
	return out
}

func transposedMatrix(a []float64, m, n int) []float64 {
	out := make([]float64, len(a))
	for i := range m {
		for j := range n {
			out[j*m+i] = a[i*n+j]
		}
	}
	return out
}

func eyeMatrix(n int) []float64 {
	out := make([]float64, n*n)
	for i := range n {
		out[i*n+i] = 1
	}
	return out
}

// linalgNode is a node over operand a, with the results that its rule wants.
func linalgNode(op graph.Op, t graph.Type, a graph.Shape, full bool) graph.Node {
	lead := len(a) - 2
	m, n := a[lead], a[lead+1]
	k := min(m, n)
	s := func(dims ...int) graph.Spec {
		return graph.Spec{Type: t, Shape: append(append(graph.Shape{}, a[:lead]...), dims...)}
	}
	node := graph.Node{Op: op, Spec: s(m, n), Attrs: graph.Attrs{Full: full}}
	switch op {
	case graph.OpLU:
		node.More = []graph.Spec{s(m, n), s(m, n)}
	case graph.OpQR:
		node.Attrs.Eps = 1e-10
		inner := k
		if full {
			inner = m
		}
		node.Spec, node.More = s(m, inner), []graph.Spec{s(inner, n)}
	case graph.OpSVD:
		node.Attrs.MaxIter = 100
		rows, cols := k, k
		if full {
			rows, cols = m, n
		}
		node.Spec, node.More = s(m, rows), []graph.Spec{s(k), s(cols, n)}
	case graph.OpEigh:
		node.Attrs.MaxIter, node.Attrs.Eps = 1000, 1e-4
		node.Spec, node.More = s(n), []graph.Spec{s(m, n)}
	case graph.OpDeterminant:
		node.Spec = s()
	}
	return node
}

// The factors of random batches, in every float type, multiply to the matrix again.
func TestFactorsMultiplyBack(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for _, typ := range []graph.Type{graph.F32, graph.F64, graph.BF16, graph.F16} {
		tol := map[graph.Type]float64{graph.F32: 2e-5, graph.F64: 1e-11, graph.BF16: 0.3, graph.F16: 0.05}[typ]
		for _, d := range [][2]int{{1, 1}, {2, 2}, {3, 3}, {7, 7}, {5, 2}, {2, 5}, {130, 20}, {110, 110}} {
			if d[0] > 10 && typ != graph.F32 && typ != graph.F64 {
				continue
			}
			m, n := d[0], d[1]
			k := min(m, n)
			x := make([]float64, 2*m*n)
			for i := range x {
				x[i] = r.NormFloat64()
			}
			// The batch is the last axis in memory.
			a := permuted(of(typ, graph.Shape{m, n, 2}, x...), []int{2, 0, 1})
			each := func(node graph.Node, f func(a []float64, out [][]float64)) {
				out := run(t, node, a)
				for b := range 2 {
					var parts [][]float64
					for _, o := range out {
						v := floats(o)
						parts = append(parts, v[b*len(v)/2:(b+1)*len(v)/2])
					}
					f(floats(a)[b*m*n:(b+1)*m*n], parts)
				}
			}
			scale := tol * math.Sqrt(float64(m*n))
			for _, full := range []bool{false, true} {
				each(linalgNode(graph.OpQR, typ, a.Shape, full), func(a []float64, out [][]float64) {
					inner := len(out[0]) / m
					near(t, "QR", mul(out[0], out[1], m, inner, n), a, scale)
					near(t, "QᵀQ", mul(transposedMatrix(out[0], m, inner), out[0], inner, m, inner), eyeMatrix(inner), scale)
				})
				each(linalgNode(graph.OpSVD, typ, a.Shape, full), func(a []float64, out [][]float64) {
					rows, cols := len(out[0])/m, len(out[2])/n
					s := make([]float64, rows*cols)
					for i := range k {
						s[i*cols+i] = out[1][i]
						if i > 0 && out[1][i] > out[1][i-1] {
							t.Errorf("singular values %v are not in descending order", out[1])
						}
					}
					// The iterations stop where off-diagonal squares are 1e-8 of all.
					near(t, "USVᵀ", mul(mul(out[0], s, m, rows, cols), out[2], m, cols, n), a, scale+1e-3)
				})
			}
			if m != n {
				continue
			}
			each(linalgNode(graph.OpLU, typ, a.Shape, false), func(a []float64, out [][]float64) {
				near(t, "PLU", mul(mul(out[0], out[1], n, n, n), out[2], n, n, n), a, scale)
			})
		}
	}
}

// Symmetric matrices of large extent go to LAPACK, small ones do not: both give orthogonal eigenvectors, ordered by magnitude.
func TestEighOrdersAndReconstructs(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for _, n := range []int{1, 2, 3, 8, 33, 120} {
		x := make([]float64, n*n)
		for i := range n {
			for j := range i + 1 {
				x[i*n+j] = r.NormFloat64()
				x[j*n+i] = x[i*n+j]
			}
		}
		a := of(graph.F64, graph.Shape{n, n}, x...)
		node := linalgNode(graph.OpEigh, graph.F64, a.Shape, false)
		node.Attrs.Eps = 1e-9
		out := run(t, node, a)
		w, v := floats(out[0]), floats(out[1])
		d := make([]float64, n*n)
		for i := range n {
			d[i*n+i] = w[i]
			if i > 0 && math.Abs(w[i]) > math.Abs(w[i-1]) {
				t.Errorf("eigenvalues %v are not ordered by magnitude", w)
			}
		}
		vt := transposedMatrix(v, n, n)
		near(t, "VWVᵀ", mul(mul(v, d, n, n, n), vt, n, n, n), x, 1e-5*float64(n))
		near(t, "VᵀV", mul(vt, v, n, n, n), eyeMatrix(n), 1e-9*float64(n))
	}
}

func TestSystems(t *testing.T) {
	for _, typ := range []graph.Type{graph.S32, graph.F32, graph.F64, graph.C64} {
		out := typ
		if typ.Int() {
			out = graph.F32
		}
		a := of(typ, graph.Shape{3, 3}, 1, 0, 1, 1, 1, 0, 0, 1, 1)
		b := of(typ, graph.Shape{3, 3}, 2, 2, 3, 2, 2, 4, 2, 0, 1)
		want(t, run(t, graph.Node{Op: graph.OpSolve, Spec: spec(out, 3, 3)}, a, b)[0], 1, 2, 3, 1, 0, 1, 1, 0, 0)
		l := of(typ, graph.Shape{3, 3}, 1, 9, 9, 1, 1, 9, 1, 2, 1) // what stands above the diagonal is not read
		b = of(typ, graph.Shape{2, 3}, 0, 1, 3, 2, 1, 3)
		right := graph.Attrs{Solve: graph.Solve{Right: true}}
		want(t, run(t, graph.Node{Op: graph.OpTriangularSolve, Spec: spec(out, 2, 3), Attrs: right}, l, b)[0], 2, -5, 3, 4, -5, 3)
	}
	var bad *ValueError
	zero := of(graph.F32, graph.Shape{2, 2, 2}, 1, 0, 0, 1, 0, 0, 0, 0)
	for _, op := range []graph.Op{graph.OpSolve, graph.OpTriangularSolve} {
		_, err := Run(&graph.Node{Op: op, Spec: spec(graph.F32, 2, 2)}, []Tensor{zero, of(graph.F32, graph.Shape{2, 2}, 1, 2, 3, 4)})
		if !errors.As(err, &bad) || bad.Reason != Singular {
			t.Errorf("%s of a singular matrix: %v", op, err)
		}
	}
}

func TestDeterminantOfIntegersIsExact(t *testing.T) {
	a := of(graph.S32, graph.Shape{2, 2}, 5001, 5000, 5000, 4999)
	want(t, run(t, linalgNode(graph.OpDeterminant, graph.F32, a.Shape, false), a)[0], -1)
}

// Whatever is in a matrix, every decomposition ends.
func TestNonFiniteMatricesEnd(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, n := range []int{2, 5, 101} {
		for _, v := range []float64{inf, -inf, nan, math.MaxFloat32, math.SmallestNonzeroFloat64} {
			x := make([]float64, n*n)
			for i := range x {
				x[i] = float64(i % 3)
			}
			x[n], x[1] = v, v
			for _, typ := range []graph.Type{graph.F32, graph.F64} {
				a := of(typ, graph.Shape{n, n}, x...)
				for _, op := range []graph.Op{graph.OpCholesky, graph.OpLU, graph.OpQR, graph.OpSVD, graph.OpEigh, graph.OpDeterminant} {
					run(t, linalgNode(op, typ, a.Shape, false), a)
					run(t, linalgNode(op, typ, a.Shape, true), a)
				}
			}
		}
	}
}
