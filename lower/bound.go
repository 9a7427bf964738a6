package lower

import (
	"fmt"

	"nxvk/graph"
)

// Range is the bytes [lo, hi) of the buffer of indices that Failed wants.
func (b *Bound) Range() (lo, hi int) {
	lo, hi = graph.Reach(b.Shape, b.Layout)
	return lo * b.Type.Size(), hi * b.Type.Size()
}

// Failed is the error of the first index, in row-major order, that is out of range, as Nx.BinaryBackend words it;
// nil if there is none. data are the bytes of Range.
func (b *Bound) Failed(data []byte) error {
	size := b.Type.Size()
	lo, _ := graph.Reach(b.Shape, b.Layout)
	at := make([]int, len(b.Shape))
	for n := range b.Shape.Size() {
		off := b.Offset - lo
		for k, i := range at {
			off += i * b.Strides[k]
		}
		axis := b.Axes[n%len(b.Axes)]
		if v, ok := indexAt(data[off*size:(off+1)*size], b.Type, b.Into[axis]); !ok {
			return fmt.Errorf("index %s is out of bounds for axis %d in shape %v", v, axis, b.Into)
		}
		for k := len(at) - 1; k >= 0; k-- {
			if at[k]++; at[k] < b.Shape[k] {
				break
			}
			at[k] = 0
		}
	}
	return nil
}

// indexAt reads an index and reports whether it is below extent.
func indexAt(raw []byte, t graph.Type, extent int) (string, bool) {
	bits := uint64(0)
	for i, c := range raw {
		bits |= uint64(c) << (8 * i)
	}
	if t.Signed() {
		v := int64(graph.ConvertBits(bits, t, graph.S64))
		return fmt.Sprint(v), v >= 0 && v < int64(extent)
	}
	v := graph.ConvertBits(bits, t, graph.U64)
	return fmt.Sprint(v), v < uint64(extent)
}
