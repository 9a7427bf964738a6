package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"nxvk/dispatch"
	"nxvk/etf"
	"nxvk/graph"
	"nxvk/vkrt"
)

// bench measures the port from a client's side, over pipes within this process.
func bench(args []string) error {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := f.Bool("quick", false, "a tenth of the work")
	if err := flags(f, args, 0, "bench [--quick]"); err != nil {
		return err
	}
	l := logger()
	p, err := open(l, logTo(l))
	if err != nil {
		return err
	}
	defer p.device.Close()
	c, done := dispatch.Local(dispatch.Config{Device: p.device, Target: p.target, Log: logTo(l)})
	b := &benchmark{c: c, out: json.NewEncoder(os.Stdout), device: p.device.Info().Name, class: p.device.Info().Class, scale: 1}
	if *quick {
		b.scale = 10
	}
	for _, run := range []func() error{b.roundTrip, b.ops, b.chain, b.bandwidth, b.matmul} {
		if err := run(); err != nil {
			return err
		}
	}
	return done()
}

type benchmark struct {
	c      *dispatch.Client
	out    *json.Encoder
	device string
	class  vkrt.Class
	scale  int
	id     int
}

func (b *benchmark) line(name string, value float64, unit string) error {
	return b.out.Encode(map[string]any{"bench": name, "value": value, "unit": unit, "device": b.device})
}

func (b *benchmark) next() int { b.id++; return b.id }

// tensor makes one of a constant value.
func (b *benchmark) tensor(shape graph.Shape) (int, error) {
	id := b.next()
	attrs := etf.Map{{Key: etf.Atom("value"), Value: etf.Binary{0, 0, 0x80, 0x3f}}}
	return id, b.c.Op(graph.OpConstant, graph.Spec{Type: graph.F32, Shape: shape}, attrs, nil, id)
}

// add adds x to itself n times, each sum from the one before where chained.
func (b *benchmark) add(shape graph.Shape, n int, chained bool) (time.Duration, error) {
	spec := graph.Spec{Type: graph.F32, Shape: shape}
	x, err := b.tensor(shape)
	if err != nil {
		return 0, err
	}
	once := func(from int) (int, error) {
		to := b.next()
		return to, b.c.Op("add", spec, nil, []etf.Term{from, x}, to)
	}
	if _, err := once(x); err != nil {
		return 0, err
	}
	if err := b.c.Sync(); err != nil {
		return 0, err
	}
	start := time.Now()
	from := x
	for range n {
		to, err := once(from)
		if err != nil {
			return 0, err
		}
		if !chained {
			err = b.c.Free(to)
		} else if from != x {
			err = b.c.Free(from)
		}
		if err != nil {
			return 0, err
		}
		if chained {
			from = to
		}
	}
	err = b.c.Sync()
	return time.Since(start), err
}

func (b *benchmark) roundTrip() error {
	n := 10_000 / b.scale
	start := time.Now()
	for range n {
		if err := b.c.Sync(); err != nil {
			return err
		}
	}
	if err := b.line("round_trip", us(time.Since(start), n), "us"); err != nil {
		return err
	}
	// An op and a read of its result.
	spec := graph.Spec{Type: graph.F32, Shape: graph.Shape{16}}
	x, err := b.tensor(spec.Shape)
	if err != nil {
		return err
	}
	n /= 10
	start = time.Now()
	for range n {
		to := b.next()
		if err := b.c.Op("add", spec, nil, []etf.Term{x, x}, to); err != nil {
			return err
		}
		if _, err := b.c.Read(to, 0, 64); err != nil {
			return err
		}
	}
	return b.line("op_and_read", us(time.Since(start), n), "us")
}

func (b *benchmark) ops() error {
	n := 20_000 / b.scale
	d, err := b.add(graph.Shape{16}, n, false)
	if err != nil {
		return err
	}
	return b.line("independent_op", us(d, n), "us")
}

func (b *benchmark) chain() error {
	n := 10_000 / b.scale
	d, err := b.add(graph.Shape{16}, n, true)
	if err != nil {
		return err
	}
	return b.line("chained_op", us(d, n), "us")
}

func (b *benchmark) bandwidth() error {
	size, n := 16<<20, 50/min(b.scale, 10)
	// The first round also takes the memory from the driver.
	if _, err := b.add(graph.Shape{size}, n, false); err != nil {
		return err
	}
	d, err := b.add(graph.Shape{size}, n, false)
	if err != nil {
		return err
	}
	// Both operands are one tensor: a cache may serve the second, memory sees two of the three.
	return b.line("add_16M_f32", 8*float64(size)*float64(n)/d.Seconds()/1e9, "GB/s")
}

func (b *benchmark) matmul() error {
	sizes := []int{256, 1024}
	if b.class != vkrt.ClassCPU {
		sizes = append(sizes, 4096)
	}
	for _, size := range sizes {
		shape := graph.Shape{size, size}
		x, err := b.tensor(shape)
		if err != nil {
			return err
		}
		spec := graph.Spec{Type: graph.F32, Shape: shape}
		for _, acc := range []string{"compensated", "f32"} {
			attrs := etf.Map{
				{Key: etf.Atom("contract_a"), Value: etf.Seq{1}}, {Key: etf.Atom("contract_b"), Value: etf.Seq{0}},
				{Key: etf.Atom("batch_a"), Value: etf.Seq{}}, {Key: etf.Atom("batch_b"), Value: etf.Seq{}},
				{Key: etf.Atom("accumulator"), Value: etf.Atom(acc)},
			}
			dots := func(n int) error {
				for range n {
					to := b.next()
					if err := b.c.Op(graph.OpDot, spec, attrs, []etf.Term{x, x}, to); err != nil {
						return err
					}
					if err := b.c.Free(to); err != nil {
						return err
					}
				}
				return b.c.Sync()
			}
			if err := dots(2); err != nil {
				return err
			}
			n := max(1, 20/b.scale)
			start := time.Now()
			if err := dots(n); err != nil {
				return err
			}
			flops := 2 * float64(size) * float64(size) * float64(size) * float64(n)
			if err := b.line(fmt.Sprintf("matmul_%d_%s", size, acc), flops/time.Since(start).Seconds()/1e9, "GFLOP/s"); err != nil {
				return err
			}
		}
	}
	return nil
}

func us(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(n) }
