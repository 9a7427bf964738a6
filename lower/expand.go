package lower

import (
	"errors"
	"fmt"

	"nxvk/graph"
	"nxvk/host"
	"nxvk/kernel"
	"nxvk/shaders"
)

// An expander writes a node in terms of simpler ones. in are n's operands in the new graph. It yields one
// reference for each result of n, or none where n stays as it is on this device.
type expander func(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error)

// expanders is the table of ops that are not primitive. What an expander adds is expanded in turn.
var expanders map[graph.Op]expander

func init() {
	expanders = map[graph.Op]expander{
		graph.OpLogicalNot: expandLogicalNot,
		graph.OpPhase:      expandPhase,
		graph.OpAllClose:   expandAllClose,
		graph.OpFFT2:       expandFFT2,
		graph.OpIFFT2:      expandFFT2,
	}
}

// expansion is a graph while its nodes are being rewritten.
type expansion struct {
	t     kernel.Target
	g     *graph.Graph
	depth int
	more  map[graph.Ref][]graph.Ref // the results, the first included, of nodes that were rewritten and have several
}

// maxExpansion bounds how deep expansions nest; the table is meant to have no cycles.
const maxExpansion = 16

// expand rewrites the nodes of g that are not primitive. A graph without any is returned as it is.
func expand(g *graph.Graph, t kernel.Target) (*graph.Graph, error) {
	if !expands(g) {
		return g, nil
	}
	x := &expansion{t: t, g: &graph.Graph{Params: g.Params}, more: map[graph.Ref][]graph.Ref{}}
	at := make([]graph.Ref, 0, len(g.Params)+len(g.Nodes))
	for i := range g.Params {
		at = append(at, graph.Ref(i))
	}
	for i := range g.Nodes {
		n := g.Nodes[i]
		in := make([]graph.Ref, len(n.In))
		for k, r := range n.In {
			in[k] = at[r]
		}
		r, err := x.node(&n, in)
		if err != nil {
			return nil, err
		}
		at = append(at, r)
	}
	for _, r := range g.Outs {
		x.g.Outs = append(x.g.Outs, at[r])
	}
	return x.g, nil
}

func expands(g *graph.Graph) bool {
	for i := range g.Nodes {
		if n := &g.Nodes[i]; expanderOf(g, n, n.In) != nil {
			return true
		}
	}
	return false
}

// node adds a node, or what it expands to, and yields its first result.
func (x *expansion) node(n *graph.Node, in []graph.Ref) (graph.Ref, error) {
	if n.Op == graph.OpElem {
		if all, ok := x.more[in[0]]; ok {
			return all[n.Attrs.Index], nil
		}
	}
	if e := expanderOf(x.g, n, in); e != nil && !x.staysWhole(n, in) {
		if x.depth++; x.depth > maxExpansion {
			return 0, fmt.Errorf("lower: %s expands into itself", n.Op)
		}
		out, err := e(x, n, in)
		x.depth--
		var u *shaders.Unsupported
		if errors.As(err, &u) && host.Has(n.Op) {
			out, err = nil, nil
		}
		if err != nil {
			return 0, wrap(n, err)
		}
		if len(out) > 0 {
			if len(out) > 1 {
				x.more[out[0]] = out
			}
			return out[0], nil
		}
	}
	return x.append(n, in), nil
}

// append adds a node as it is.
func (x *expansion) append(n *graph.Node, in []graph.Ref) graph.Ref {
	m := *n
	m.In = in
	x.g.Nodes = append(x.g.Nodes, m)
	return graph.Ref(len(x.g.Params) + len(x.g.Nodes) - 1)
}

// staysWhole reports whether n is better run by the host than in terms of other operations.
func (x *expansion) staysWhole(n *graph.Node, in []graph.Ref) bool {
	if !host.Has(n.Op) {
		return false
	}
	specs := make([]graph.Spec, len(in))
	for i, r := range in {
		specs[i] = x.g.SpecOf(r)
	}
	if preferHost(n, specs, x.t) {
		return true
	}
	return lacks(n, specs, x.t) && !(n.Type.Complex() && movedByParts[n.Op])
}

// add appends an operation, checked by its rule, expanded where it is not primitive.
func (x *expansion) add(op graph.Op, s graph.Spec, at graph.Attrs, in ...graph.Ref) (graph.Ref, error) {
	n := graph.Node{Op: op, Spec: s, Attrs: at}
	specs := make([]graph.Spec, len(in))
	for i, r := range in {
		specs[i] = x.g.SpecOf(r)
	}
	if err := graph.VerifyNode(&n, specs); err != nil {
		return 0, err
	}
	return x.node(&n, in)
}

// constant appends a tensor of spec whose every element has the given bits.
func (x *expansion) constant(s graph.Spec, bits uint64) (graph.Ref, error) {
	return x.add(graph.OpConstant, s, graph.Attrs{Value: bits})
}

func expandLogicalNot(x *expansion, n *graph.Node, in []graph.Ref) ([]graph.Ref, error) {
	zero, err := x.constant(graph.Spec{Type: x.g.SpecOf(in[0]).Type, Shape: graph.Shape{}}, 0)
	if err != nil {
		return nil, err
	}
	r, err := x.add("equal", n.Spec, graph.Attrs{}, in[0], zero)
	return []graph.Ref{r}, err
}
