package dispatch

import (
	"fmt"

	"nxvk/etf"
	"nxvk/graph"
)

// parseUpload reads {upload, id, type, shape, data}.
func (r *reader) parseUpload(d *etf.Decoder, q *request) error {
	id, err := r.newID(d)
	if err != nil {
		return err
	}
	spec, err := readSpec(d)
	if err != nil {
		return err
	}
	q.extra = &extra{shape: newShape(spec, graph.Contiguous(spec.Shape))}
	want := q.shape.wireBytes()
	at := d.Offset()
	if d.Peek() == etf.KindTuple {
		d.TupleOf(3)
		readChoice(d, "file")
		q.bulk, q.file = true, string(d.Binary())
		if n := d.Int(); d.Err() == nil && n != want {
			d.Fail(at, "file of %d bytes for %v, wants %d", n, spec, want)
		}
	} else if q.data = d.Bitstring(); d.Err() == nil && int64(len(q.data)) != want {
		d.Fail(at, "%d bytes for %v, wants %d", len(q.data), spec, want)
	}
	if d.Err() != nil {
		return d.Err()
	}
	r.addTensor(&tensor{id: id})
	q.outs = r.made(len(r.batch.tensors) - 1)
	return nil
}

// parseUploadPart reads {upload_part, id, type, shape, offset, data}. What is wrong with a piece
// fails the tensor.
func (r *reader) parseUploadPart(d *etf.Decoder, q *request) error {
	start := *d
	id := uint64(d.Int())
	u := r.partial[id]
	if u == nil {
		*d = start
		var err error
		if id, err = r.newID(d); err != nil {
			return err
		}
		u = &upload{t: &tensor{id: id}}
	}
	err := r.parsePiece(d, q, u)
	if err != nil {
		delete(r.partial, id)
		r.tensors[id] = u.t
		// The executor may hold the tensor already, so it is told in its turn: see accept.
		r.batch.tensors = append(r.batch.tensors, u.t)
		q.outs = r.made(len(r.batch.tensors) - 1)
		return err
	}
	return nil
}

func (r *reader) parsePiece(d *etf.Decoder, q *request, u *upload) error {
	spec, err := readSpec(d)
	if err != nil {
		return err
	}
	q.extra = &extra{shape: newShape(spec, graph.Contiguous(spec.Shape))}
	total := q.shape.wireBytes()
	at := d.Offset()
	q.offset = d.Int()
	q.data = d.Bitstring()
	if d.Err() != nil {
		return d.Err()
	}
	if q.offset != u.next {
		return d.Fail(at, "piece at byte %d, wants %d", q.offset, u.next)
	}
	if n := int64(len(q.data)); n == 0 || n > total-q.offset {
		return d.Fail(at, "piece of %d bytes at %d for %v of %d bytes", n, q.offset, spec, total)
	}
	if u.spec.Shape != nil && !(u.spec.Type == spec.Type && u.spec.Shape.Equal(spec.Shape)) {
		return fmt.Errorf("piece of %v in an upload of %v", spec, u.spec)
	}
	u.spec = spec
	u.next += int64(len(q.data))
	q.on = u.next == total
	r.batch.tensors = append(r.batch.tensors, u.t)
	q.outs = r.made(len(r.batch.tensors) - 1)
	if q.on {
		delete(r.partial, u.t.id)
		r.tensors[u.t.id] = u.t
	} else {
		r.partial[u.t.id] = u
	}
	return nil
}
