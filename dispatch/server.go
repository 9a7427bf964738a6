// Package dispatch turns frames from an Erlang node into work on a device, and answers. It holds the
// handle table, keeps the order of requests, and passes failures on: docs/WIRE.md is what it speaks.
// It must not know SPIR-V or Vulkan.
//
// Three goroutines: the reader (reader.go) reads frames and resolves ids, in the order of the stream;
// the executor (executor.go) runs requests and owns the device's stream; the writer (writer.go) sends
// answers. A queue of bounded size lies between the first two, and frames that are no requests go
// through it as failures, so that answers keep their order.
//
// Start reading at server.go, then reader.go and executor.go.
package dispatch

import (
	"errors"
	"io"
	"maps"
	"os"
	"slices"

	"nxvk/kernel"
	"nxvk/vkrt"
)

// MaxReply bounds the bytes of a tensor that one frame carries.
const MaxReply = 16 << 20

// logFunc takes a line of log: level debug, info, warning or error.
type logFunc func(level, message string)

// Config is what a server needs.
type Config struct {
	Device *vkrt.Device
	Target kernel.Target
	// Log takes the server's own lines; the caller gets them as events, but for those of level debug. It may be called from any goroutine.
	Log func(level, message string)
	// Attach, if not nil, is called once with what sends a log event, for lines that others write: the
	// driver's, say.
	Attach func(event func(level, message string))
	// Record, if any, gets every frame: docs/WIRE.md has the format.
	Record io.Writer
	// Gone reports whether the caller has closed its end. It is asked while the server does not read, and
	// may be nil.
	Gone func() bool
	// Exit is called at once when the caller is gone, if not nil; Serve need not have ended its work.
	Exit func(error)
	// Programs bounds the cache of bound programs; 0 is 4096.
	Programs int
	// Queue bounds the bytes of frames that wait; 0 is 64 MiB.
	Queue int
	// HostOnly runs every operation on the processor: what there is to hold a device to.
	HostOnly bool

	inline bool // a replay: no bulk files, and replies of any size
	pid    int
	stop   chan struct{}
}

// Serve speaks the wire over in and out until in ends. It then ends at once, whatever still runs: who must not wait
// even for that sets Exit.
func Serve(c Config, in io.Reader, out io.Writer) error {
	if c.Log == nil {
		c.Log = func(string, string) {}
	}
	if c.Programs == 0 {
		c.Programs = 4096
	}
	if c.Queue == 0 {
		c.Queue = 64 << 20
	}
	if c.Exit == nil {
		c.Exit = func(error) {}
	}
	if c.Gone == nil {
		c.Gone = func() bool { return false }
	}
	c.HostOnly = c.HostOnly || slices.Contains(c.Device.Info().Disabled, vkrt.Kernels)
	c.pid = os.Getpid()
	c.stop = make(chan struct{})

	stream := c.Device.NewStream()
	var rec *recorder
	if c.Record != nil {
		rec = newRecorder(c.Record, func(err error) { c.Log("error", err.Error()) })
	}
	broken := make(chan error, 1)
	w := newWriter(out, rec, func(err error) {
		select {
		case broken <- err:
		default:
		}
		c.Exit(err)
	})
	log := func(level, message string) {
		c.Log(level, message)
		if level != "debug" {
			w.log(level, message)
		}
	}
	if c.Attach != nil {
		c.Attach(w.log)
	}
	q := newQueue(c.Queue)
	r := &reader{
		in: in, queue: q, record: rec, events: log, tensors: map[uint64]*tensor{}, partial: map[uint64]*upload{},
		gone: func() bool {
			if c.Gone() {
				c.Exit(nil)
				return true
			}
			return false
		},
	}
	e := &executor{
		dev: c.Device, stream: stream, target: c.Target, queue: q, writer: w, log: log, config: &c,
		programs: newPrograms(c.Programs), byGraph: map[string]int64{}, hostOps: map[string]*hostTime{},
	}
	written, executed := make(chan struct{}), make(chan struct{})
	go func() { w.run(); close(written) }()
	go func() { e.run(); close(executed) }()

	err := r.run()
	c.Exit(err)
	close(c.stop)
	q.close()
	<-executed
	e.close(r.tensors, r.partial)
	w.close()
	<-written
	select {
	case werr := <-broken:
		err = errors.Join(err, werr)
	default:
	}
	return err
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
