package test

import (
	"compress/gzip"
	"os"
	"strings"
	"testing"

	"nxvk/dispatch"
	"nxvk/test/devtest"
)

// A hundred steps of training on digits, as a BEAM once sent them, on this machine's device: every loss is
// within 1e-5 of the one that Nx.BinaryBackend had in that step.
func TestSession(t *testing.T) {
	f, err := os.Open("sessions/mnist.rec.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	recording, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	d := devtest.Open(t)
	s, err := dispatch.Replay(dispatch.Config{Device: d.Dev, Target: d.Target}, recording, 1e-5, func(x dispatch.Difference) {
		if strings.HasPrefix(x.Request, "plan,") && len(d.Dev.Info().Disabled) > 0 {
			return // a lesser device leaves more to the processor: f32 by u32 where there is no f64
		}
		t.Errorf("%s: relative difference %.3g", x.Request, x.Relative)
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Compared < 100 {
		t.Errorf("%d answers compared, want at least the 100 losses", s.Compared)
	}
	t.Logf("%d frames in %v", s.Frames, s.Took)
}
