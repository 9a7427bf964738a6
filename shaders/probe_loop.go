package shaders

import (
	"encoding/binary"
	"fmt"

	"nxvk/kernel"
)

// loopRounds is how often an invocation goes round its loops, all of them together, where Numerics.ShortLoops: lavapipe of
// Mesa 22.3 leaves a loop then, without a word.
const loopRounds = 1<<16 - 1

// ProbeLoops learns whether loops of many rounds end before their time.
func ProbeLoops(t kernel.Target, run Runner) (short bool, err error) {
	const rounds = loopRounds + 10
	b := kernel.NewBuilder("probe_loops", t, [3]uint32{1, 1, 1})
	out := b.Pointer("out", kernel.M32, true, 0)
	n := b.ScalarArg("rounds", kernel.I32) // not a constant: no driver knows the result beforehand
	sum := b.NewVar(b.I32(0))
	b.For(b.I32(0), n, b.I32(1), func(i kernel.Value) { b.Set(sum, b.Add(b.Get(sum), b.And(i, b.I32(1)))) })
	b.Store(out, b.I32(0), b.Get(sum))
	buf := make([]byte, 4)
	if err := run(b.Build(), t, [3]uint32{1, 1, 1}, []kernel.Bind{{Buf: buf}, {Bits: rounds}}); err != nil {
		return false, fmt.Errorf("loop probe: %w", err)
	}
	return binary.LittleEndian.Uint32(buf) != rounds/2, nil
}

// needRounds wants the device to go round loops as often as each of items, shared out over a launch's invocations, takes.
func needRounds(t kernel.Target, l *Launch, items, rounds int) error {
	if !t.Num.ShortLoops {
		return nil
	}
	lanes := 1
	for i := range l.Grid {
		lanes *= int(l.Grid[i]) * int(l.Kernel.Local[i])
	}
	// Twice, since loops in loops count their own rounds.
	if each := (items + lanes - 1) / lanes; rounds > loopRounds/2/each {
		return fmt.Errorf("%d rounds of a loop, of which this device does %d", each*rounds, loopRounds)
	}
	return nil
}
