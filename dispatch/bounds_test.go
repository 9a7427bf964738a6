package dispatch

import (
	"encoding/binary"
	"testing"

	"nxvk/etf"
	"nxvk/graph"
)

func s32s(xs ...int32) []byte {
	var b []byte
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

// An index out of range fails the operation and all that was computed from it, whether or not the device
// had come to it by then; what is in range works on, with the same programs.
func TestIndexOutOfRange(t *testing.T) {
	c := serve(t, config(t))
	x, idx := spec(graph.F32, 2, 2), spec(graph.S32, 2, 1)
	must(t, c.Upload(1, x, f32s(1, 2, 3, 4)))
	must(t, c.Upload(2, idx, s32s(1, 0)))
	must(t, c.Upload(3, idx, s32s(1, -3)))
	at := attrs("axes", axes(0))
	for round := range 3 {
		id := 100 * (round + 1)
		must(t, c.Op("gather", x, at, []etf.Term{1, 2}, id))
		must(t, c.Op("gather", x, at, []etf.Term{1, 3}, id+1))
		must(t, c.Op("negate", x, nil, []etf.Term{id + 1}, id+2))
		must(t, c.Op("transpose", x, attrs("axes", axes(1, 0)), []etf.Term{id + 2}, id+3))
		must(t, c.Op("gather", x, at, []etf.Term{id + 3, 2}, id+4))
		must(t, c.Op("add", x, nil, []etf.Term{id, id + 4}, id+5))
		for k := 1; k <= 5; k++ {
			_, err := c.Read(id+k, 0, 16)
			wantFailure(t, err, "gather", ReasonOutOfRange, "index -3 is out of bounds for axis 0 in shape {2, 2}")
			wantFailure(t, c.Sync(1, id+k), "gather", ReasonOutOfRange, "index -3")
		}
		wantBytes(t, c, id, f32s(3, 4, 1, 2))
		// Computed when the failure is known.
		must(t, c.Op("exp", x, nil, []etf.Term{id + 5}, id+6))
		wantFailure(t, c.Sync(id+6), "gather", ReasonOutOfRange, "index -3")
		must(t, c.Sync(id))
	}
	// Operands may be freed while the check is on its way.
	must(t, c.Op("gather", x, at, []etf.Term{1, 3}, 50))
	must(t, c.Free(3))
	wantFailure(t, c.Sync(50), "gather", ReasonOutOfRange, "index -3")
}

// A system without a solution fails, on the processor as on the device, and the others of the batch with it.
func TestSingularSystem(t *testing.T) {
	c := serve(t, config(t))
	for i, batch := range []int{1, 300} { // few go to the processor, where the device is one
		a, b := spec(graph.F32, batch, 2, 2), spec(graph.F32, batch, 2)
		var good, bad, right []byte
		for k := range batch {
			good = append(good, f32s(2, 0, 1, 4)...)
			right = append(right, f32s(2, 5)...)
			if k == batch-1 {
				bad = append(bad, f32s(0, 0, 0, 0)...)
			} else {
				bad = append(bad, f32s(2, 0, 1, 4)...)
			}
		}
		id := 100 * (i + 1)
		must(t, c.Upload(id, a, good))
		must(t, c.Upload(id+1, a, bad))
		must(t, c.Upload(id+2, b, right))
		for k, op := range []string{"triangular_solve", "solve"} {
			at := id + 10*(k+1)
			must(t, c.Op(graph.Op(op), b, nil, []etf.Term{id, id + 2}, at))
			must(t, c.Op(graph.Op(op), b, nil, []etf.Term{id + 1, id + 2}, at+1))
			must(t, c.Op("negate", b, nil, []etf.Term{at + 1}, at+2))
			for bad := at + 1; bad <= at+2; bad++ {
				_, err := c.Read(bad, 0, 8)
				wantFailure(t, err, op, ReasonSingular, "can't solve for singular matrix")
			}
			_, err := c.Read(at, 0, 8)
			must(t, err)
		}
	}
}

// More checks than there are words.
func TestManyChecks(t *testing.T) {
	c := serve(t, config(t))
	x, idx := spec(graph.F32, 4), spec(graph.U8, 4)
	must(t, c.Upload(1, x, f32s(1, 2, 3, 4)))
	must(t, c.Upload(2, idx, []byte{1, 2, 3, 0}))
	last := 1
	for i := range flagWords + 100 {
		must(t, c.Op("take", x, attrs("axis", 0), []etf.Term{last, 2}, 10+i))
		if last > 1 {
			must(t, c.Free(last))
		}
		last = 10 + i
	}
	wantBytes(t, c, last, f32s(1, 2, 3, 4))
}

// A compiled graph whose indices are computed in it, and looked at twice.
func TestIndexOutOfRangeCompiled(t *testing.T) {
	c := serve(t, config(t))
	x, idx := spec(graph.F32, 4), spec(graph.S32, 2)
	f32, s32 := etf.Atom("f32"), etf.Atom("s32")
	node := func(op string, typ, at etf.Term, refs ...int) etf.Term {
		return etf.Tuple{etf.Atom(op), typ, etf.Tuple{2}, at, axes(refs...)}
	}
	take := attrs("axis", 0)
	compiled, err := c.Call(etf.Tuple{etf.Atom("compile"), etf.Tuple{
		etf.Seq{etf.Tuple{f32, etf.Tuple{4}}, etf.Tuple{s32, etf.Tuple{2}}},
		etf.Seq{node("add", s32, etf.Seq{}, 1, 1), node("take", f32, take, 0, 2), node("take", f32, take, 0, 2), node("add", f32, etf.Seq{}, 3, 4)},
		axes(5),
	}})
	must(t, err)
	run := func(indices, out int) {
		must(t, c.Cast(etf.Tuple{etf.Atom("run"), compiled.(etf.Tuple)[0], etf.Seq{1, indices}, axes(out)}))
	}
	must(t, c.Upload(1, x, f32s(1, 2, 3, 4)))
	must(t, c.Upload(2, idx, s32s(1, 0)))
	must(t, c.Upload(3, idx, s32s(1, 2)))
	run(2, 10)
	run(3, 11)
	wantBytes(t, c, 10, f32s(6, 2))
	wantFailure(t, c.Sync(11), "take", ReasonOutOfRange, "index 4 is out of bounds for axis 0 in shape {4}")
}
