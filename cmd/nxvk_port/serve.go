package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"nxvk/dispatch"
)

// serve speaks the wire on stdin and stdout. When stdin ends it is over, at once, whatever the device is at.
func serve(args []string) error {
	if err := flags(flag.NewFlagSet("serve", flag.ContinueOnError), args, 0, "serve"); err != nil {
		return err
	}
	// Drivers print. What they print must not land among the frames, so those get a descriptor of their
	// own and descriptor 1 becomes stderr. Being neither 1 nor 2, it also reports a closed pipe as an error
	// instead of a signal; stderr may be closed without harm.
	out, err := protocolOut()
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE)
	if err := serveOn(out); err != nil {
		// The node may be where nobody sees stderr.
		return errors.Join(err, dispatch.RefuseToServe(out, err))
	}
	return nil
}

// newRecording makes path, or path.1, path.2 … where that exists: each life of a port has a recording of its
// own, so that the one that ended in a crash is still there when the next port has started.
func newRecording(path string) (*os.File, error) {
	name := path
	for n := 1; ; n++ {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) || n > 9999 {
			return f, err
		}
		name = fmt.Sprintf("%s.%d", path, n)
	}
}

// serveOn serves the node whose frames come on stdin; an error says why that could not begin.
func serveOn(out *os.File) error {
	l := logger()
	var record io.Writer
	if path := os.Getenv("NXVK_RECORD"); path != "" {
		f, err := newRecording(path)
		if err != nil {
			return fmt.Errorf("NXVK_RECORD: %w", err)
		}
		record = f
	}
	log := logTo(l)
	var events relay
	p, err := open(l, func(level, message string) {
		log(level, message)
		events.log(level, message)
	})
	if err != nil {
		return err
	}
	i := p.device.Info()
	l.Info().Str("device", i.Name).Stringer("class", i.Class).Str("driver", i.Driver).Msg("serving")
	return dispatch.Serve(dispatch.Config{
		Device: p.device, Target: p.target, Log: log, Record: record, Attach: events.attach,
		Gone: func() bool { return hungUp(os.Stdin.Fd()) },
		Exit: func(err error) {
			if err != nil {
				l.Error().Err(err).Msg("the node is gone")
				os.Exit(1)
			}
			os.Exit(0)
		},
	}, os.Stdin, out)
}

// relay passes lines of log on as events, and keeps those that come before there is somebody to tell.
type relay struct {
	mu    sync.Mutex
	event func(level, message string)
	early [][2]string
}

func (r *relay) log(level, message string) {
	if level == "debug" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.event != nil:
		r.event(level, message)
	case len(r.early) < 100:
		r.early = append(r.early, [2]string{level, message})
	}
}

func (r *relay) attach(event func(level, message string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event = event
	for _, l := range r.early {
		event(l[0], l[1])
	}
	r.early = nil
}

// protocolOut moves stdout to another descriptor and puts stderr in its place.
func protocolOut() (*os.File, error) {
	fd, err := syscall.Dup(1)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	syscall.CloseOnExec(fd)
	if err := dup2(2, 1); err != nil {
		return nil, os.NewSyscallError("dup2", err)
	}
	return os.NewFile(uintptr(fd), "protocol"), nil
}
