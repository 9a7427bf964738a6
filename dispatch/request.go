package dispatch

import (
	"nxvk/etf"
	"nxvk/graph"
)

// verb is what a request asks for.
type verb uint8

const (
	verbNone verb = iota
	verbUpload
	verbUploadPart
	verbOp
	verbRun
	verbFree
	verbHello
	verbCompile
	verbPlan
	verbRead
	verbSync
	verbInfo
	verbStats
	verbProfile
)

var verbNames = [...]string{"request", "upload", "upload_part", "op", "run", "free", "hello", "compile", "plan",
	"read", "sync", "info", "stats", "profile"}

func (v verb) String() string { return verbNames[v] }

var verbs = func() map[string]verb {
	m := map[string]verb{}
	for v, name := range verbNames[1:] {
		m[name] = verb(v + 1)
	}
	return m
}()

// isCall says which verbs are answered.
func (v verb) isCall() bool { return v >= verbHello }

// operand is an input of op or run: a tensor, or a host scalar.
type operand struct {
	tensor *tensor // nil: a host scalar
	typ    graph.Type
	value  graph.Value
}

// request is a frame, read and with its ids resolved, on its way to the executor. Bytes are part of
// the frame.
type request struct {
	verb verb
	call bool   // answer req
	on   bool   // profile; upload_part: the last one
	req  uint64 //

	fail *Failure // do nothing but answer with it

	node []byte    // op, plan: the encoded node; compile: the encoded graph
	ins  []operand // op, run; sync, read: the tensors
	outs []*tensor // op, run, uploads: the results; free: the tensors
	data []byte    // uploads: the bytes; plan: the encoded specs

	n      int64 // run: the program; hello: the version
	offset int64 // upload_part, read: in bytes
	length int64 // read: in bytes

	*extra // uploads, hello

	recycle []byte // a large frame's buffer, given back when the request is done
}

// extra is what few requests have.
type extra struct {
	shape *shape // uploads: what the tensor will be
	bulk  bool   // upload: the bytes are in file, not in data
	file  string //
	hello options
}

// options are those of hello.
type options struct {
	runtimeDir    string
	bulkThreshold int64
	epoch         etf.Term // echoed
}

// batch is what the reader hands over at once.
type batch struct {
	reqs []request
	size int // bytes of frames

	// Arenas of the requests, so that a frame allocates no slices of its own.
	operands []operand
	tensors  []*tensor
}

func (b *batch) reset() {
	clear(b.reqs)
	clear(b.operands)
	clear(b.tensors)
	b.reqs, b.operands, b.tensors, b.size = b.reqs[:0], b.operands[:0], b.tensors[:0], 0
}
