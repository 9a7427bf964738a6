package shaders

import (
	"math/rand"
	"testing"

	"nxvk/graph"
	"nxvk/kernel"
)

// TestDivisorArgs holds the reciprocal against division, at its edges and at random.
func TestDivisorArgs(t *testing.T) {
	check := func(n, d uint32) {
		a := DivisorArgs(int(d), kernel.I32)
		if q := uint32((a[1].Imm*uint64(n)>>32 + uint64(n)) >> a[2].Imm); q != n/d {
			t.Fatalf("%d/%d: got %d, want %d", n, d, q, n/d)
		}
	}
	r := rand.New(rand.NewSource(1))
	edges := []uint32{1, 2, 3, 5, 7, 10, 641, 65535, 65536, 65537, 1<<30 - 1, 1 << 30, 1<<30 + 1, 1<<31 - 1}
	for i := 0; i < 200000; i++ {
		d := 1 + uint32(r.Int63n(1<<31-1))>>r.Intn(31)
		if i < len(edges) {
			d = edges[i]
		}
		q := uint32(r.Int63n(1<<31)) / d * d
		for _, n := range []uint32{0, d - 1, d, q, q - 1, q + d - 1, 1<<31 - 1, uint32(r.Int63n(1 << 31))} {
			if n < 1<<31 {
				check(n, d)
			}
		}
	}
}

func TestMerge(t *testing.T) {
	contiguous := graph.Contiguous
	tests := []struct {
		name    string
		shape   graph.Shape
		layouts []graph.Layout
		extents []int
		classes []Class
	}{
		{"scalar", graph.Shape{}, []graph.Layout{{}}, nil, []Class{Linear}},
		{"all contiguous", graph.Shape{2, 3, 4}, []graph.Layout{contiguous(graph.Shape{2, 3, 4})}, []int{24}, []Class{Linear}},
		{"ones vanish", graph.Shape{1, 3, 1}, []graph.Layout{{Offset: 0, Strides: []int{9, 1, 7}}}, []int{3}, []Class{Linear}},
		{"row broadcast", graph.Shape{5, 2, 3}, []graph.Layout{contiguous(graph.Shape{5, 2, 3}), {Offset: 0, Strides: []int{0, 3, 1}}}, []int{5, 6}, []Class{Linear, Strided}},
		{"scalar broadcast", graph.Shape{5, 3}, []graph.Layout{contiguous(graph.Shape{5, 3}), {Offset: 4, Strides: []int{0, 0}}}, []int{15}, []Class{Linear, Scalar}},
		{"transposed", graph.Shape{3, 5}, []graph.Layout{{Offset: 0, Strides: []int{1, 3}}}, []int{3, 5}, []Class{Strided}},
		{"reversed", graph.Shape{3, 5}, []graph.Layout{{Offset: 14, Strides: []int{-5, -1}}}, []int{15}, []Class{Strided}},
	}
	for _, c := range tests {
		m := Merge(c.shape, c.layouts...)
		if !graph.Shape(m.Extents).Equal(c.extents) {
			t.Errorf("%s: extents %v, want %v", c.name, m.Extents, c.extents)
		}
		for i, want := range c.classes {
			if m.Maps[i].Class != want {
				t.Errorf("%s: tensor %d is %v, want %v", c.name, i, m.Maps[i].Class, want)
			}
		}
	}
}
