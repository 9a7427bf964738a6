package dispatch

import (
	"encoding/binary"

	"nxvk/graph"
	"nxvk/vkrt"
)

// shape is what a program must know of a tensor: its type, shape and layout. Results of one program share
// theirs, with the bytes that it adds to a program's key.
type shape struct {
	graph.Spec
	graph.Layout
	key []byte
}

func newShape(s graph.Spec, l graph.Layout) *shape {
	key := append([]byte{'t'}, byte(s.Type), byte(len(s.Shape)))
	for _, d := range s.Shape {
		key = binary.AppendUvarint(key, uint64(d))
	}
	for _, st := range l.Strides {
		key = binary.AppendVarint(key, int64(st))
	}
	key = binary.AppendVarint(key, int64(l.Offset))
	return &shape{s, l, key}
}

// window is the part of s that holds the bytes [offset, offset+length), length > 0, and how many bytes lie before it: a range
// of the outermost axis along which they differ, at one place of the axes outside of that.
func (s *shape) window(offset, length int64) (*shape, int64) {
	size := int64(s.Type.Size())
	first, last := offset/size, (offset+length-1)/size // elements
	l := graph.Layout{Offset: s.Offset, Strides: s.Strides}
	inner, skipped := int64(s.Shape.Size()), int64(0)
	for axis, extent := range s.Shape {
		inner /= int64(extent)
		from, to := first/inner, last/inner
		first, last = first%inner, last%inner
		l.Offset += int(from) * l.Strides[0]
		skipped += from * inner
		if from == to && len(l.Strides) > 1 {
			l.Strides = l.Strides[1:]
			continue
		}
		if axis == 0 && from == 0 && int(to) == extent-1 {
			return s, 0
		}
		dims := append(graph.Shape{int(to-from) + 1}, s.Shape[axis+1:]...)
		return newShape(graph.Spec{Type: s.Type, Shape: dims}, l), skipped * size
	}
	return s, 0 // a scalar
}

// bytes is the size of the tensor on the device.
func (s *shape) bytes() int64 { return int64(s.Shape.Size()) * int64(s.Type.Size()) }

// wireBytes is its size on the wire, where types below 8 bits are packed.
func (s *shape) wireBytes() int64 { return int64(s.Type.PackedSize(s.Shape.Size())) }

// packed reports whether the tensor is packed on the wire.
func (s *shape) packed() bool { return s.Type.Bits() < 8 }

// perByte is how many elements of a packed tensor lie in a byte.
func (s *shape) perByte() int64 { return 8 / int64(s.Type.Bits()) }

// buffer is device memory shared by a tensor and its views. The executor alone counts.
type buffer struct {
	*vkrt.Buffer
	refs int
}

// tensor is an entry of the handle table. The reader makes it, so that later frames may name it; the
// executor fills it when its turn comes, and looks inside.
type tensor struct {
	id uint64

	shape *shape
	buf   *buffer  // nil when it failed
	err   *Failure // the first failure
	freed bool     // the table has let go of it

	doubts []*doubt // what it was computed from, if that may still prove to have failed
}

// set makes t what an operation yielded, and shares buf.
func (t *tensor) set(s *shape, buf *buffer) {
	t.shape, t.buf = s, buf
	buf.refs++
}

// drop gives up a share of a buffer.
func (b *buffer) drop() {
	if b.refs--; b.refs == 0 {
		b.Release()
	}
}

// release lets go of the memory. Work that is on its way keeps its own hold.
func (t *tensor) release() {
	t.freed = true
	if t.buf != nil {
		t.buf.drop()
		t.buf = nil
	}
}
