package dispatch

import (
	"encoding/binary"
	"math"
	"testing"

	"nxvk/etf"
	"nxvk/graph"
)

// withoutF64 is a server on a device that does not compute in f64.
func withoutF64(t *testing.T) Config {
	cfg := config(t)
	cfg.Target.F64 = false
	return cfg
}

func hostCalls(t *testing.T, c *Client) (sum int64, byOp etf.Map) {
	t.Helper()
	x, err := c.Call(etf.Atom("stats"))
	must(t, err)
	for _, p := range x.(etf.Map) {
		switch p.Key {
		case etf.Atom("host_ops"):
			sum = int64(number(p.Value))
		case etf.Atom("host"):
			byOp = p.Value.(etf.Map)
		}
	}
	return sum, byOp
}

func number(t etf.Term) uint64 {
	switch n := t.(type) {
	case int64:
		return uint64(n)
	case int:
		return uint64(n)
	case uint64:
		return n
	}
	return math.MaxUint64
}

func f64s(xs ...float64) []byte {
	var b []byte
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// What the device lacks a type for runs on the processor, between work of the device, views and scalars, and is counted.
func TestHostOps(t *testing.T) {
	c := serve(t, withoutF64(t))
	f32, f64 := spec(graph.F32, 2, 2), spec(graph.F64, 2, 2)
	must(t, c.Upload(1, f32, f32s(1, 2, 3, 4)))
	must(t, c.Op("add", f32, nil, []etf.Term{1, scalar(1)}, 2))
	must(t, c.Op("as_type", f64, nil, []etf.Term{2}, 3))
	must(t, c.Op("transpose", f64, attrs("axes", axes(1, 0)), []etf.Term{3}, 4))
	must(t, c.Op("multiply", f64, nil, []etf.Term{4, etf.Tuple{etf.Atom("f64"), etf.Binary(f64s(0.1))}}, 5))
	must(t, c.Free(2, 3, 4))
	must(t, c.Op("as_type", f32, nil, []etf.Term{5}, 6))
	must(t, c.Op("negate", f32, nil, []etf.Term{6}, 7))
	ten := 0.1 // not a constant: its products are rounded
	wantBytes(t, c, 5, f64s(2*ten, 4*ten, 3*ten, 5*ten))
	wantBytes(t, c, 7, f32s(-float32(2*ten), -float32(4*ten), -float32(3*ten), -float32(5*ten)))
	sum, byOp := hostCalls(t, c)
	if sum != 3 || len(byOp) != 2 || byOp[0].Key != etf.Atom("as_type") || number(byOp[0].Value) != 2 {
		t.Errorf("%d operations on the host: %v", sum, byOp)
	}
	// A view is made contiguous by the processor when it is read.
	must(t, c.Op("transpose", f64, attrs("axes", axes(1, 0)), []etf.Term{5}, 8))
	wantBytes(t, c, 8, f64s(2*ten, 3*ten, 4*ten, 5*ten))
	x, err := c.Call(etf.Tuple{etf.Atom("plan"), etf.Tuple{etf.Atom("exp"), etf.Atom("f64"), etf.Tuple{2}, etf.Seq{}}, etf.Seq{etf.Tuple{etf.Atom("f64"), etf.Tuple{2}}}})
	if err != nil || x != etf.Atom("host") {
		t.Errorf("the plan is %v, %v", x, err)
	}
}

// A compiled program keeps on the device what the device can do, and lists what it cannot.
func TestHostOpsCompiled(t *testing.T) {
	c := serve(t, withoutF64(t))
	node := func(op, typ string, refs ...int) etf.Term {
		return etf.Tuple{etf.Atom(op), etf.Atom(typ), etf.Tuple{2}, etf.Seq{}, axes(refs...)}
	}
	x, err := c.Call(etf.Tuple{etf.Atom("compile"), etf.Tuple{
		etf.Seq{etf.Tuple{etf.Atom("f32"), etf.Tuple{2}}},
		etf.Seq{node("negate", "f32", 0), node("as_type", "f64", 1), node("abs", "f64", 2), node("as_type", "f32", 3), node("add", "f32", 4, 1), node("add", "f32", 5, 0)},
		axes(6, 3),
	}})
	must(t, err)
	info := map[etf.Term]etf.Term{}
	for _, p := range x.(etf.Tuple)[1].(etf.Map) {
		info[p.Key] = p.Value
	}
	if host := info[etf.Atom("host")].(etf.Seq); len(host) != 3 || host[1] != etf.Atom("abs") || number(info[etf.Atom("steps")]) != 6 {
		t.Errorf("compile tells %v", info)
	}
	must(t, c.Upload(1, spec(graph.F32, 2), f32s(3, -5)))
	for i := range 20 {
		must(t, c.Cast(etf.Tuple{etf.Atom("run"), x.(etf.Tuple)[0], etf.Seq{1}, axes(10+2*i, 11+2*i)}))
		wantBytes(t, c, 10+2*i, f32s(3, 5))
		wantBytes(t, c, 11+2*i, f64s(3, 5))
	}
	if sum, _ := hostCalls(t, c); sum != 60 {
		t.Errorf("%d operations on the host", sum)
	}
}

// An operation that fails for the values of its operands fails its results, names itself, and lets go of its memory; so
// does a program in whose middle it stands.
func TestHostOpFails(t *testing.T) {
	cfg := config(t)
	cfg.HostOnly = true
	c := serve(t, cfg)
	x, idx := spec(graph.F32, 4), spec(graph.S32, 2)
	must(t, c.Upload(1, x, f32s(1, 2, 3, 4)))
	must(t, c.Upload(2, idx, s32s(3, 0)))
	must(t, c.Upload(3, idx, s32s(1, 4)))
	two := spec(graph.F32, 2)
	must(t, c.Op("take", two, attrs("axis", 0), []etf.Term{1, 2}, 4))
	must(t, c.Op("take", two, attrs("axis", 0), []etf.Term{1, 3}, 5))
	must(t, c.Op("negate", two, nil, []etf.Term{5}, 6))
	wantBytes(t, c, 4, f32s(4, 1))
	for _, id := range []int{5, 6} {
		_, err := c.Read(id, 0, 8)
		wantFailure(t, err, "take", ReasonOutOfRange, "index 4 is out of bounds for axis 0 in shape {4}")
	}
	node := func(op string, at etf.Term, refs ...int) etf.Term {
		return etf.Tuple{etf.Atom(op), etf.Atom("f32"), etf.Tuple{2}, at, axes(refs...)}
	}
	program, err := c.Call(etf.Tuple{etf.Atom("compile"), etf.Tuple{
		etf.Seq{etf.Tuple{etf.Atom("f32"), etf.Tuple{4}}, etf.Tuple{etf.Atom("s32"), etf.Tuple{2}}},
		etf.Seq{etf.Tuple{etf.Atom("negate"), etf.Atom("f32"), etf.Tuple{4}, etf.Seq{}, axes(0)}, node("take", attrs("axis", 0), 2, 1), node("exp", etf.Seq{}, 3)},
		axes(2, 4),
	}})
	must(t, err)
	for i, indices := range []int{3, 2, 3} {
		must(t, c.Cast(etf.Tuple{etf.Atom("run"), program.(etf.Tuple)[0], etf.Seq{1, indices}, axes(20+2*i, 21+2*i)}))
	}
	for _, id := range []int{20, 21, 24, 25} {
		wantFailure(t, c.Sync(id), "take", ReasonOutOfRange, "index 4")
	}
	wantBytes(t, c, 22, f32s(-1, -2, -3, -4))
}

// Reads, frees and operations of both kinds, many in flight: answers are those of their place in the order.
func TestHostOpsInOrder(t *testing.T) {
	c := serve(t, withoutF64(t))
	f32, f64 := spec(graph.F32, 1000), spec(graph.F64, 1000)
	must(t, c.Upload(1, f32, make([]byte, 4000)))
	last := 1
	for i := range 200 {
		id := 10 + 3*i
		must(t, c.Op("add", f32, nil, []etf.Term{last, scalar(1)}, id))
		must(t, c.Op("as_type", f64, nil, []etf.Term{id}, id+1))
		must(t, c.Op("as_type", f32, nil, []etf.Term{id + 1}, id+2))
		must(t, c.Free(last, id, id+1))
		last = id + 2
		if i%50 == 0 {
			got, err := c.Read(last, 3996, 4)
			if err != nil || string(got) != string(f32s(float32(i+1))) {
				t.Fatalf("after %d rounds: %v, %v", i+1, got, err)
			}
		}
	}
	got, err := c.Read(last, 0, 4)
	if err != nil || string(got) != string(f32s(200)) {
		t.Fatalf("%v, %v", got, err)
	}
}

// The profile tells what the processor ran.
func TestHostOpsProfiled(t *testing.T) {
	c := serve(t, withoutF64(t))
	f32, f64 := spec(graph.F32, 2), spec(graph.F64, 2)
	must(t, c.Upload(1, f32, f32s(1, 2)))
	_, err := c.Call(etf.Tuple{etf.Atom("profile"), etf.Atom("true")})
	must(t, err)
	must(t, c.Op("as_type", f64, nil, []etf.Term{1}, 2))
	must(t, c.Sync(2))
	x, err := c.Call(etf.Tuple{etf.Atom("profile"), etf.Atom("false")})
	must(t, err)
	for _, line := range x.(etf.Seq) {
		if l := line.(etf.Tuple); string(l[0].(etf.Binary)) == "host as_type" && number(l[1]) == 1 && number(l[2]) > 0 {
			return
		}
	}
	t.Errorf("the profile is %v", x)
}
