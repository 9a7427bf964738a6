package dispatch

import (
	"fmt"
	"runtime/debug"
	"time"

	"nxvk/etf"
	"nxvk/graph"
	"nxvk/host"
	"nxvk/lower"
	"nxvk/vkrt"
)

// hostTime is what the operations of one name took on the processor, their transfers included.
type hostTime struct {
	count  uint64
	before uint64 // of count, when the profile began
	total  time.Duration
}

// readPiece is how much is read of a device's memory at a time.
const readPiece = 8 << 20

// onHost runs a step on the processor: once the device is done with all before it, on its operands' bytes.
func (e *executor) onHost(s *step, ins []operand) error {
	h := s.host
	began := time.Now()
	if err := e.stream.Wait(); err != nil {
		return err
	}
	seen := map[int][]byte{}
	for _, a := range s.access {
		if a.Write {
			continue
		}
		data, err := e.bytesOf(e.bufs[a.Buf], int(a.Lo), int(a.Hi), seen[a.Buf])
		if err != nil {
			return err
		}
		seen[a.Buf] = data
	}
	xs := h.Tensors(func(buf int) []byte { return seen[buf] }, func(param int) []byte { return scalarBytes(&ins[param]) })
	outs, err := e.compute(&h.Node, xs)
	if err != nil {
		return err
	}
	for i, b := range h.Out {
		if err := e.stream.Upload(e.bufs[b], 0, outs[i].Data); err != nil {
			return err
		}
	}
	t := e.hostOps[string(h.Node.Op)]
	if t == nil {
		t = &hostTime{}
		e.hostOps[string(h.Node.Op)] = t
	}
	t.count++
	if e.timing {
		t.total += time.Since(began)
	}
	return nil
}

// compute is host.Run. A bug in it fails the operation, not the port.
func (e *executor) compute(n *graph.Node, in []host.Tensor) (out []host.Tensor, err error) {
	defer func() {
		if r := recover(); r != nil {
			e.log("error", fmt.Sprintf("%s on the host: %v\n%s", n.Op, r, debug.Stack()))
			err = failf(string(n.Op), ReasonInternal, "%v", r)
		}
	}()
	return host.Run(n, in)
}

// bytesOf are bytes [0, hi) of b, of which [lo, hi) are as the device left them: its own memory where the processor reads that
// as fast as its own, else a copy. have is what an earlier call yielded for b.
func (e *executor) bytesOf(b *vkrt.Buffer, lo, hi int, have []byte) ([]byte, error) {
	if m := b.Cached(); m != nil {
		return m, nil
	}
	if len(have) < hi {
		have = append(have, make([]byte, hi-len(have))...)
	}
	for at := lo; at < hi; at += readPiece {
		n := min(readPiece, hi-at)
		var failed error
		err := e.stream.Read(b, uint64(at), uint64(n), func(data []byte, err error) {
			copy(have[at:at+n], data)
			failed = err
		})
		if err == nil {
			err = e.stream.Wait()
		}
		if err == nil {
			err = failed
		}
		if err != nil {
			return nil, err
		}
	}
	return have, nil
}

// scalarBytes are the bytes of a host scalar.
func scalarBytes(in *operand) []byte {
	b := make([]byte, in.typ.Size())
	for i := range b {
		b[i] = byte(in.bits >> (8 * i))
	}
	return b
}

// hostCounts are how often each operation has run on the processor, and the sum.
func (e *executor) hostCounts() (etf.Map, uint64) {
	m, sum := etf.Map{}, uint64(0)
	for _, op := range sortedKeys(e.hostOps) {
		n := e.hostOps[op].count
		m = append(m, etf.Pair{Key: etf.Atom(op), Value: n})
		sum += n
	}
	return m, sum
}

// lower lowers a graph for the device, or for the processor alone.
func (e *executor) lower(g *graph.Graph) (*lower.Program, error) {
	if e.config.HostOnly {
		return lower.LowerToHost(g, e.target)
	}
	return lower.Lower(g, e.target)
}
