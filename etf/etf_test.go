package etf

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// Tags that no living node writes, and the errors, by hand.
func TestDecodeTable(t *testing.T) {
	node := []byte{100, 0, 1, 'n'}
	join := func(parts ...any) []byte {
		b := []byte{131}
		for _, p := range parts {
			switch p := p.(type) {
			case int:
				b = append(b, byte(p))
			case []byte:
				b = append(b, p...)
			case string:
				b = append(b, p...)
			}
		}
		return b
	}
	opaque := func(k Kind, frame []byte) Opaque { return Opaque{k, frame[1:]} }
	pid := join(103, node, []byte{0, 0, 0, 1, 0, 0, 0, 2, 3})
	port := join(102, node, []byte{0, 0, 0, 1, 2})
	newPort := join(89, node, []byte{0, 0, 0, 1, 0, 0, 0, 2})
	ref := join(101, node, []byte{0, 0, 0, 1, 2})
	newRef := join(114, 0, 2, node, 1, []byte{0, 0, 0, 1, 0, 0, 0, 2})
	oldFun := join(117, []byte{0, 0, 0, 1}, pid[1:], 97, 1, []byte{100, 0, 1, 'm'}, 97, 1, 97, 2)
	local := join(121, []byte{1, 2, 3, 4}, 104, 1, 88, 106, make([]byte, 12))
	for _, c := range []struct {
		name  string
		frame []byte
		want  Term
	}{
		{"latin1 atom", join(115, 1, 0xe9), Atom("é")},
		{"long latin1 atom", join(100, 0, 1, 0xe9), Atom("é")},
		{"float text", join(99, "1.50000000000000000000e+00\x00\x00\x00\x00\x00"), 1.5},
		{"pid", pid, opaque(KindPid, pid)},
		{"port", port, opaque(KindPort, port)},
		{"new port", newPort, opaque(KindPort, newPort)},
		{"ref", ref, opaque(KindRef, ref)},
		{"new ref", newRef, opaque(KindRef, newRef)},
		{"old fun", oldFun, opaque(KindFun, oldFun)},
		{"local", local, opaque(KindLocal, local)},
		{"large big of few digits", join(111, 0, 0, 0, 1, 1, 7), int64(-7)},
		{"min int64", join(110, 8, 1, 0, 0, 0, 0, 0, 0, 0, 128), int64(-1 << 63)},
		{"whole bitstring", join(77, 0, 0, 0, 1, 8, 9), Binary{9}},
		{"list continued", join(108, 0, 0, 0, 1, 97, 1, 107, 0, 1, 2), Seq{int64(1), int64(2)}},
		{"empty list with tail", join(108, 0, 0, 0, 0, 97, 5), int64(5)},
	} {
		got, err := Decode(c.frame, Limits{})
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %#v, %v, want %#v", c.name, got, err, c.want)
		}
	}

	deep := append([]byte{131}, bytes.Repeat([]byte{104, 1}, 300)...)
	deep = append(deep, 106)
	for _, c := range []struct {
		name   string
		frame  []byte
		offset int
		text   string
	}{
		{"empty", nil, 0, "empty"},
		{"version", []byte{130, 106}, 0, "version 130"},
		{"nothing", []byte{131}, 1, "cut off"},
		{"unknown tag", join(104, 2, 97, 1, 66), 5, "unknown tag 66"},
		{"cut tuple", join(104, 3, 97, 1), 1, "cut off"},
		{"cut list", join(108, 255, 255, 255, 255, 97, 1), 1, "cut off"},
		{"cut map", join(116, 0, 0, 0, 3, 97, 1, 97, 2), 1, "cut off"},
		{"cut binary", join(104, 1, 109, 0, 0, 0, 9, 1), 3, "cut off"},
		{"cut big", join(111, 255, 255, 255, 255, 0), 1, "cut off"},
		{"deep", deep, 513, "nested too deeply"},
		{"bits", join(77, 0, 0, 0, 1, 9, 1), 1, "9 bits"},
		{"no utf8", join(119, 1, 0xff), 1, "not UTF-8"},
		{"trailing", join(106, 106), 2, "1 bytes follow"},
		{"float text", join(99, strings.Repeat("x", 31)), 1, "invalid syntax"},
		{"bad node", join(103, 97, 1, make([]byte, 20)), 1, "cut off"},
		{"bad zlib", join(80, 0, 0, 0, 1, 1, 2, 3), 6, "compressed"},
	} {
		_, err := Decode(c.frame, Limits{})
		var e *Error
		if !errors.As(err, &e) || e.Offset != c.offset || !strings.Contains(e.Message, c.text) {
			t.Errorf("%s: got %v, want %q at byte %d", c.name, err, c.text, c.offset)
		}
	}
}

func deflate(payload []byte, claim int) []byte {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	w.Write(payload)
	w.Close()
	return append(binary.BigEndian.AppendUint32([]byte{131, 80}, uint32(claim)), z.Bytes()...)
}

func TestLimits(t *testing.T) {
	zeros := append(AppendBinaryHeader(nil, 1<<20), make([]byte, 1<<20)...)
	for _, c := range []struct {
		name  string
		frame []byte
		lim   Limits
		text  string
	}{
		{"inflated", deflate(zeros, len(zeros)), Limits{Inflated: 1 << 19}, "over the limit"},
		{"lying small", deflate(zeros, 100), Limits{}, "holds others"},
		{"lying big", deflate(zeros, 1<<25), Limits{}, "holds others"},
		{"size", make([]byte, 101), Limits{Size: 100}, "over the limit of 100"},
		{"count", []byte{131, 107, 0, 3, 1, 2, 3}, Limits{Count: 3}, "too many"},
		{"inflated error", deflate([]byte{104, 1, 66}, 3), Limits{}, "inflated byte 2: unknown tag"},
	} {
		if _, err := Decode(c.frame, c.lim); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.text)
		}
	}
	if got, err := Decode(deflate(zeros, len(zeros)), Limits{}); err != nil || len(got.(Binary)) != 1<<20 {
		t.Errorf("compressed binary: %v", err)
	}
}

func TestDecoder(t *testing.T) {
	frame, err := Encode(Tuple{Atom("op"), Seq{int64(1), int64(2)}, Seq{int64(1), int64(1000)}, Binary("bytes"),
		Map{{Atom("axes"), Seq{}}}, 2.5, int64(-1)})
	if err != nil {
		t.Fatal(err)
	}
	// Erlang writes [1, 2] as a string.
	frame = bytes.Replace(frame, []byte{108, 0, 0, 0, 2, 97, 1, 97, 2, 106}, []byte{107, 0, 2, 1, 2}, 1)
	var d Decoder
	if err := d.Reset(frame, Limits{}); err != nil {
		t.Fatal(err)
	}
	if !d.TupleOf(7) || string(d.Atom()) != "op" {
		t.Fatal(d.Err())
	}
	if got := d.Ints(nil); !reflect.DeepEqual(got, []int64{1, 2}) {
		t.Errorf("string: %v, %v", got, d.Err())
	}
	if got := d.Ints(nil); !reflect.DeepEqual(got, []int64{1, 1000}) {
		t.Errorf("list: %v, %v", got, d.Err())
	}
	if got := d.Binary(); string(got) != "bytes" || &got[0] != &frame[bytes.Index(frame, []byte("bytes"))] {
		t.Errorf("binary %q is a copy, or wrong: %v", got, d.Err())
	}
	if n := d.Map(); n != 1 || string(d.Atom()) != "axes" || d.List().N != 0 {
		t.Errorf("map: %v", d.Err())
	}
	if d.Float() != 2.5 || d.Int() != -1 || d.End() != nil {
		t.Errorf("end: %v", d.Err())
	}

	d.Reset(frame, Limits{})
	d.Tuple()
	if d.Int() != 0 || d.Err() == nil || d.Err().Error() != "etf: byte 3: want an integer, got an atom" {
		t.Errorf("wrong kind: %v", d.Err())
	}
	if d.Atom() != nil || d.Tuple() != 0 || d.Binary() != nil || d.Skip() != nil {
		t.Error("an error does not stick")
	}
}

// A string's elements are integers to every method.
func TestStringElements(t *testing.T) {
	var d Decoder
	d.Reset([]byte{131, 107, 0, 3, 104, 1, 97}, Limits{})
	l := d.List()
	if l.N != 3 || d.Peek() != KindInt || d.Int() != 104 || len(d.Skip()) != 1 || d.Tuple() != 0 || d.Err() == nil {
		t.Errorf("%v", d.Err())
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range [][]byte{
		opFrame(), {131, 106}, {131, 107, 0, 2, 1, 2}, {131, 116, 0, 0, 0, 1, 97, 1, 106},
		{131, 110, 8, 1, 1, 2, 3, 4, 5, 6, 7, 8}, {131, 77, 0, 0, 0, 1, 3, 64}, deflate([]byte{104, 1, 106}, 3),
		{131, 88, 119, 1, 'n', 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3}, {131, 121, 1, 2, 3, 4, 106},
		{131, 90, 0, 1, 119, 1, 'n', 0, 0, 0, 1, 0, 0, 0, 2}, {131, 113, 119, 1, 'm', 119, 1, 'f', 97, 2},
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		lim := Limits{Inflated: 1 << 20, Count: 1 << 16}
		term, err := Decode(frame, lim)
		if err != nil {
			return
		}
		var d Decoder
		d.Reset(frame, lim)
		if d.Skip(); d.End() != nil {
			t.Fatalf("Decode takes what Skip refuses: %v", d.Err())
		}
		// What was decoded is encoded and decoded to itself.
		b, err := Encode(term)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(b, lim)
		if err != nil {
			t.Fatalf("own encoding: %v", err)
		}
		c, _ := Encode(again)
		if !bytes.Equal(b, c) {
			t.Fatalf("%x decodes to another term than %x", b, c)
		}
	})
}

// opFrame is {op, {add, f32, {32, 128}, []}, [1234567, {f32, <<…>>}], [1234569]}.
func opFrame() []byte {
	b, err := Encode(Tuple{Atom("op"), Tuple{Atom("add"), Atom("f32"), Tuple{int64(32), int64(128)}, Seq{}},
		Seq{int64(1234567), Tuple{Atom("f32"), Binary{0, 0, 128, 63}}}, Seq{int64(1234569)}})
	if err != nil {
		panic(err)
	}
	return b
}

func readOp(d *Decoder, frame []byte) (sum int64) {
	d.Reset(frame, Limits{})
	d.TupleOf(4)
	d.Atom()
	d.Skip()
	for range 2 {
		l := d.List()
		for range l.N {
			if d.Peek() == KindTuple {
				d.TupleOf(2)
				d.Atom()
				d.Binary()
			} else {
				sum += d.Int()
			}
		}
		d.EndList(l)
	}
	if d.End() != nil {
		return -1
	}
	return sum
}

func TestOpFrameAllocatesNothing(t *testing.T) {
	frame := opFrame()
	var d Decoder
	if got := readOp(&d, frame); got != 1234567+1234569 {
		t.Fatalf("%d, %v", got, d.Err())
	}
	if n := testing.AllocsPerRun(100, func() { readOp(&d, frame) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkOpFrame(b *testing.B) {
	frame := opFrame()
	var d Decoder
	b.ReportAllocs()
	for b.Loop() {
		readOp(&d, frame)
	}
}

func BenchmarkBinary16MiB(b *testing.B) {
	frame, _ := Encode(Tuple{Atom("upload"), int64(7), Atom("f32"), Tuple{int64(4 << 20)}, Binary(make([]byte, 16<<20))})
	var d Decoder
	b.ReportAllocs()
	for b.Loop() {
		d.Reset(frame, Limits{})
		d.Tuple()
		d.Atom()
		d.Int()
		d.Atom()
		d.Skip()
		if len(d.Binary()) != 16<<20 || d.End() != nil {
			b.Fatal(d.Err())
		}
	}
}

func BenchmarkTerm(b *testing.B) {
	frame := opFrame()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(frame, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeReply(b *testing.B) {
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendTuple(AppendVersion(buf[:0]), 2)
		buf = AppendBinary(AppendAtom(buf, "ok"), make([]byte, 64))
	}
}
