package dispatch

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
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
	if err := fits(h); err != nil {
		return err
	}
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
	xs := h.Tensors(func(buf int) []byte { return seen[buf] }, func(param int) []byte { return ins[param].value.AppendBytes(nil, ins[param].typ) })
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

// fits wants the operands of a step, and its results, to fit the machine's memory in the numbers that they are computed
// as: who takes more is killed by the kernel. It is asked where they are large, of systems that tell.
func fits(h *lower.HostStep) error {
	const large, perElement = 1 << 24, 16
	elements := h.Node.Shape.Size()
	for _, s := range h.Node.More {
		elements += s.Shape.Size()
	}
	for _, in := range h.In {
		elements += in.Shape.Size()
	}
	if elements < large {
		return nil
	}
	if free := memoryFree(); free > 0 && uint64(elements) > free/perElement {
		return failf(string(h.Node.Op), ReasonMemory, "out of memory: %d elements on the processor, the machine has %d bytes free", elements, free)
	}
	return nil
}

// memoryFree is how much memory the machine has left, 0 where it does not say.
func memoryFree() uint64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		var kib uint64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
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
