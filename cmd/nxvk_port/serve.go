package main

import (
	"flag"
	"io"
	"os"
	"os/signal"
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

	l := logger()
	var record io.Writer
	if path := os.Getenv("NXVK_RECORD"); path != "" {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		record = f
	}
	log := logTo(l)
	p, err := open(l, log)
	if err != nil {
		return err
	}
	i := p.device.Info()
	l.Info().Str("device", i.Name).Stringer("class", i.Class).Str("driver", i.Driver).Msg("serving")
	return dispatch.Serve(dispatch.Config{
		Device: p.device, Target: p.target, Log: log, Record: record,
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
