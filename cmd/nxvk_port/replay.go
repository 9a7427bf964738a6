package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"nxvk/dispatch"
	"nxvk/etf"
)

// replay runs a recording on this machine's device. The exit status is 1 where an answer differs.
func replay(args []string) error {
	f := flag.NewFlagSet("replay", flag.ContinueOnError)
	rel := f.Float64("rel", 0, "largest relative `difference` of floats that still counts as equal")
	most := f.Int("show", 10, "`differences` to show")
	asJSON := f.Bool("json", false, "print the summary as JSON")
	if err := flags(f, args, 1, "replay [--rel X] [--show N] [--json] FILE"); err != nil {
		return err
	}
	var in io.Reader = os.Stdin
	if path := f.Arg(0); path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	l := logger()
	p, err := open(l, logTo(l))
	if err != nil {
		return err
	}
	defer p.device.Close()
	shown := 0
	s, err := dispatch.Replay(dispatch.Config{Device: p.device, Target: p.target, Log: logTo(l)}, in, *rel, func(d dispatch.Difference) {
		if shown++; shown <= *most {
			fmt.Fprintf(os.Stderr, "%s: relative difference %.3g\n  want %s\n  got  %s\n", d.Request, d.Relative, show(d.Want), show(d.Got))
		}
	})
	if err != nil {
		return err
	}
	if *asJSON {
		if err := json.NewEncoder(os.Stdout).Encode(map[string]any{
			"frames": s.Frames, "calls": s.Calls, "compared": s.Compared, "different": s.Different, "truncated": s.Truncated,
			"recorded_s": s.Recorded.Seconds(), "took_s": s.Took.Seconds(), "device": p.device.Info().Name,
		}); err != nil {
			return err
		}
	} else {
		fmt.Printf("%s: %d frames, %d calls, %d answers compared, %d differ; %v where it took %v when recorded\n",
			p.device.Info().Name, s.Frames, s.Calls, s.Compared, s.Different, s.Took.Round(1e5), s.Recorded.Round(1e5))
	}
	if s.Truncated {
		fmt.Fprintln(os.Stderr, "nxvk_port: the recording was cut off in the middle of a frame; all before it was run")
	}
	if s.Different > 0 {
		return errors.New("the answers differ")
	}
	return nil
}

// show prints a term, shortened.
func show(t etf.Term) string {
	s := fmt.Sprintf("%v", t)
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return s
}
