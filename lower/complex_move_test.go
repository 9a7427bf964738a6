package lower

import (
	"math/rand"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
)

var complexTypes = []graph.Type{graph.C64, graph.C128}

// bitMask covers the bits of an element of real type t.
func bitMask(t graph.Type) uint64 { return ^uint64(0) >> (64 - 8*t.Size()) }

// twofold makes a complex tensor of a real one: the imaginary part is the complement of the real part's bits.
func twofold(x tensor, t graph.Type) tensor {
	z := tensor{Spec: graph.Spec{Type: t, Shape: x.Shape}}
	for _, b := range x.bits {
		z.bits = append(z.bits, b, ^b&bitMask(x.Type))
	}
	return z
}

// twofoldTrial makes a trial of complex numbers of one of their parts. ok is false for a trial that converts.
func twofoldTrial(c trial, t graph.Type) (trial, bool) {
	part := t.Part()
	if c.want.Type != part {
		return c, false
	}
	c.want = twofold(c.want, t)
	c.n.Spec.Type = t
	if c.n.Op == graph.OpConstant {
		v := c.want.first()
		c.n.Attrs.Value, c.n.Attrs.Upper = v.Lo, v.Hi
	}
	if c.n.Op == graph.OpIota || c.n.Op == graph.OpEye {
		for i := range c.want.bits {
			if i&1 == 1 {
				c.want.bits[i] = 0
			}
		}
	}
	c.in = append([]tensor(nil), c.in...)
	for i, x := range c.in {
		switch {
		case x.Type == part:
			c.in[i] = twofold(x, t)
		case c.n.Op != graph.OpSlice && c.n.Op != graph.OpPutSlice || i == 0 || i == 1 && c.n.Op == graph.OpPutSlice:
			return c, false
		}
	}
	return c, true
}

// TestComplexMoves holds everything that moves elements to its definition, for elements of two parts.
func TestComplexMoves(t *testing.T) {
	narrow := testTargets["discrete"]
	narrow.I64, narrow.F64 = false, false
	machines := []machine{interpreted(testTargets["cpu"]), interpreted(testTargets["discrete"]), interpreted(narrow)}
	complexMoves(t, machines, 12)
}

// TestComplexMovesOnDevice runs the kernels of the device's own class, and those for GPUs.
func TestComplexMovesOnDevice(t *testing.T) {
	m := onDevice(t)
	gpu := m
	gpu.Class = kernel.Discrete
	complexMoves(t, []machine{m, gpu}, 2)
}

func complexMoves(t *testing.T, machines []machine, rounds int) {
	for op, make := range moveTrials {
		if op == graph.OpBitcast {
			continue
		}
		r := rand.New(rand.NewSource(61))
		t.Run(string(op), func(t *testing.T) {
			for _, ty := range complexTypes {
				// What has no trial of two parts (indices, which both parts share) is not drawn for long.
				for k, tries := 0, 0; k < rounds && tries < 200; tries++ {
					c, ok := twofoldTrial(make(r, ty.Part()), ty)
					if !ok {
						continue
					}
					m := machines[k%len(machines)]
					if ty == graph.C64 || m.I64 {
						moveOnce(t, r, c, m)
					}
					k++
				}
			}
		})
	}
}

// TestParts holds the views of complex tensors: parts, planes, and tensors made of them.
func TestParts(t *testing.T) {
	r := rand.New(rand.NewSource(62))
	for _, ty := range complexTypes {
		for _, kind := range layoutKinds {
			for rank := range 5 {
				part := ty.Part()
				x := random(r, graph.Spec{Type: part, Shape: randomShape(r, rank, 5)})
				z := twofold(x, ty)
				wide := graph.Spec{Type: part, Shape: append(append(graph.Shape{}, x.Shape...), 2)}
				g := &graph.Graph{
					Params: []graph.Param{{Spec: z.Spec}},
					Nodes: []graph.Node{
						{Op: "real", In: []graph.Ref{0}, Spec: x.Spec},
						{Op: "imag", In: []graph.Ref{0}, Spec: x.Spec},
						{Op: graph.OpParts, In: []graph.Ref{0}, Spec: wide},
						{Op: graph.OpFromParts, In: []graph.Ref{3}, Spec: z.Spec},
						{Op: graph.OpComplex, In: []graph.Ref{1, 2}, Spec: z.Spec},
						{Op: graph.OpReverse, In: []graph.Ref{3}, Spec: wide, Attrs: graph.Attrs{Axes: []int{rank}}},
						{Op: graph.OpFromParts, In: []graph.Ref{6}, Spec: z.Spec},
					},
					Outs: []graph.Ref{1, 2, 3, 4, 5, 7},
				}
				im, swapped := tensor{Spec: x.Spec}, tensor{Spec: z.Spec}
				for i := 0; i < len(z.bits); i += 2 {
					im.bits = append(im.bits, z.bits[i+1])
					swapped.bits = append(swapped.bits, z.bits[i+1], z.bits[i])
				}
				want := []tensor{x, im, {Spec: wide, bits: z.bits}, z, z, swapped}
				in := []laidOut{layOut(z, layoutOf(kind, z.Shape))}
				for i, got := range runGraph(t, interpreted(testTargets["cpu"]), g, in) {
					same(t, g.String(), got, want[i])
				}
				g.Params[0].Layout = graph.Layout{}
				g.Outs = []graph.Ref{1, 2, 3, 4}
				if p, err := Lower(g, testTargets["cpu"]); kind == "contiguous" && (err != nil || len(p.Steps) > 0) {
					t.Errorf("views of %v take %d steps (%v)", z.Spec, len(p.Steps), err)
				}
			}
		}
	}
}
