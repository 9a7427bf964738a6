package devtest

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"nxvk/device"
	"nxvk/graph"
	"nxvk/kernel"
	"nxvk/shaders"
)

// scaleTwice is a plan of two launches by way of a temporary: r = (x*s)*s for 100 numbers and a
// by-value s of type f64, rounded to f32.
func scaleTwice(t kernel.Target) *shaders.Plan {
	b := kernel.NewBuilder("scale", t, [3]uint32{8, 1, 1})
	x, y := b.Pointer("x", kernel.MF32, false, 0), b.Pointer("y", kernel.MF32, true, 0)
	s, n := b.ScalarArg("s", kernel.F32), b.ScalarArg("n", kernel.I32)
	i := b.Add(b.MulI(b.BuiltinValue(kernel.GroupX), 8), b.BuiltinValue(kernel.LocalX))
	b.If(b.Cmp(kernel.ULt, i, n), func() { b.Store(y, i, b.Mul(b.Load(x, i), s)) }, nil)
	k := b.Build()
	launch := func(from int, off uint64, to int) shaders.Launch {
		return shaders.Launch{Kernel: k, Grid: [3]uint32{13, 1, 1}, Args: []shaders.Arg{
			{Kind: shaders.Addr, Slot: from, Offset: off}, {Kind: shaders.Addr, Slot: to},
			{Kind: shaders.Value, Slot: 1, From: graph.F64, To: graph.F32}, {Kind: shaders.Imm, Imm: 100},
		}, Access: []shaders.Access{{Slot: from, Lo: off, Hi: off + 400}, {Slot: to, Hi: 400, Write: true}}}
	}
	return &shaders.Plan{Launches: []shaders.Launch{launch(0, 8, 3), launch(3, 0, 2)}, Temps: []uint64{400}}
}

func TestRunPlan(t *testing.T) {
	d := Open(t)
	var x []byte
	for i := range 102 {
		x = binary.LittleEndian.AppendUint32(x, math.Float32bits(float32(i)))
	}
	s := binary.LittleEndian.AppendUint64(nil, math.Float64bits(1.1))
	plan := scaleTwice(d.Target)
	got := Agree(t, plan, [][]byte{x, s}, graph.Spec{Type: graph.F32, Shape: graph.Shape{100}})[0]
	for i := range 100 {
		want := float32(i+2) * float32(1.1) * float32(1.1)
		if v := math.Float32frombits(binary.LittleEndian.Uint32(got[4*i:])); v != want {
			t.Errorf("element %d: %v, want %v", i, v, want)
		}
	}

	for what, spoil := range map[string]func(p *shaders.Plan){
		"read range too short":   func(p *shaders.Plan) { p.Launches[0].Access[0].Hi -= 4 },
		"write range too short":  func(p *shaders.Plan) { p.Launches[1].Access[1].Hi = 0 },
		"range beyond the slot":  func(p *shaders.Plan) { p.Launches[1].Access[0].Hi = 404 },
		"written but not listed": func(p *shaders.Plan) { p.Launches[0].Access[1].Write = false },
		"an argument too few":    func(p *shaders.Plan) { p.Launches[0].Args = p.Launches[0].Args[:3] },
	} {
		plan := scaleTwice(d.Target)
		spoil(plan)
		if _, err := Interpret(d.Machine(), plan, [][]byte{x, s}, 400); err == nil || !strings.Contains(err.Error(), "launch ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWordsOfByValueOperands(t *testing.T) {
	for _, c := range []struct {
		from, to graph.Type
		reg      kernel.Type
		in       uint64
		want     uint64
	}{
		{graph.S64, graph.S8, kernel.I32, ^uint64(0), 0xffffffff},
		{graph.S64, graph.U8, kernel.I32, 511, 255},
		{graph.S32, graph.S64, kernel.I64, 0xfffffffe, 0xfffffffffffffffe},
		{graph.F64, graph.F32, kernel.F32, math.Float64bits(0.1), uint64(math.Float32bits(0.1))},
		{graph.F64, graph.BF16, kernel.F32, math.Float64bits(1.5), uint64(math.Float32bits(1.5))},
		{graph.F32, graph.F64, kernel.F64, uint64(math.Float32bits(-2)), math.Float64bits(-2)},
		{graph.U64, graph.F16, kernel.F32, 3, uint64(math.Float32bits(3))},
	} {
		a := shaders.Arg{Kind: shaders.Value, From: c.from, To: c.to}
		if got := word(a, c.reg, [][]byte{binary.LittleEndian.AppendUint64(nil, c.in)}); got != c.want {
			t.Errorf("%v %#x to %v in %v: %#x, want %#x", c.from, c.in, c.to, c.reg, got, c.want)
		}
	}
}

// TestProbeIsStable probes again and expects the same, quickly.
func TestProbeIsStable(t *testing.T) {
	d := Open(t)
	start := time.Now()
	again, err := device.Probe(d.Dev)
	if err != nil || again != d.Target {
		t.Errorf("probe: %+v, %v; before: %+v", again, err, d.Target)
	}
	t.Logf("a second probe takes %v", time.Since(start))
}
