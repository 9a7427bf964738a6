package dispatch

import (
	"errors"
	"fmt"
	"strings"

	"nxvk/etf"
	"nxvk/graph"
	"nxvk/host"
	"nxvk/vkrt"
)

// Failure is what went wrong, as the caller sees it: {:error, %{op:, reason:, message:}}. A failed
// tensor carries the one that failed first, and so does all that is computed from it.
type Failure struct {
	Op      string // the operation or request; an atom on the wire
	Reason  Reason
	Message string
}

// Reason says what kind of failure it is; an atom on the wire.
type Reason string

// The reasons.
const (
	ReasonBadFrame    Reason = "bad_frame"     // no term, or over a limit
	ReasonBadRequest  Reason = "bad_request"   // a term, but no request
	ReasonBadOp       Reason = "bad_op"        // an operation that its rule refuses: unknown, wrong shapes, types or attributes
	ReasonOutOfRange  Reason = "out_of_range"  // an index that leads out of its tensor
	ReasonSingular    Reason = "singular"      // the matrix of a system of equations
	ReasonUnsupported Reason = "unsupported"   // right, but not on this device
	ReasonUnknownID   Reason = "unknown_id"    // a tensor or program that was freed or never made
	ReasonDuplicateID Reason = "duplicate_id"  // a result under an id that is in use
	ReasonTooLarge    Reason = "too_large"     // over what a frame or the port holds
	ReasonBadFile     Reason = "bad_file"      // a bulk file that is missing, or not what was promised
	ReasonVersion     Reason = "version"       // the two sides speak different versions
	ReasonMemory      Reason = "out_of_memory" // of the device
	ReasonDeviceLost  Reason = "device_lost"   //
	ReasonStart       Reason = "start"         // there is no server: no driver, no such device
	ReasonBusy        Reason = "busy"          // too many reads wait for a caller that does not read
	ReasonInternal    Reason = "internal"      // a bug in the port
)

func (f *Failure) Error() string { return f.Message }

func failf(op string, reason Reason, format string, args ...any) *Failure {
	return &Failure{op, reason, op + ": " + fmt.Sprintf(format, args...)}
}

// append appends {:error, %{op:, reason:, message:}}.
func (f *Failure) append(b []byte) []byte {
	b = etf.AppendAtom(etf.AppendTuple(b, 2), "error")
	b = etf.AppendMap(b, 3)
	b = etf.AppendAtom(etf.AppendAtom(b, "op"), f.Op)
	b = etf.AppendAtom(etf.AppendAtom(b, "reason"), string(f.Reason))
	return etf.AppendString(etf.AppendAtom(b, "message"), f.Message)
}

// asFailure makes a Failure of an error of graph, lower or vkrt.
func asFailure(op string, err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		if f.Op == "" {
			return failf(op, f.Reason, "%s", f.Message)
		}
		return f
	}
	var g *graph.Error
	if errors.As(err, &g) {
		if g.Op != "" {
			op = opAtom([]byte(g.Op))
		}
		return &Failure{op, ReasonBadOp, err.Error()}
	}
	var v *host.ValueError
	if errors.As(err, &v) {
		return &Failure{string(v.Op), Reason(v.Reason), v.Message}
	}
	var e *etf.Error
	if errors.As(err, &e) {
		return failf(op, ReasonBadRequest, "%v", err)
	}
	reason := ReasonInternal
	switch {
	case errors.Is(err, vkrt.ErrOutOfMemory):
		reason = ReasonMemory
	case errors.Is(err, vkrt.ErrDeviceLost), errors.Is(err, vkrt.ErrClosed):
		reason = ReasonDeviceLost
	}
	return failf(op, reason, "%v", err)
}

// badNode is the refusal of a node or a graph that could not be read. Where in the frame it stands helps nobody.
func badNode(op string, err error) *Failure {
	text := err.Error()
	var e *etf.Error
	if errors.As(err, &e) {
		text = strings.Replace(text, e.Error(), e.Message, 1)
	}
	return failf(op, ReasonBadOp, "%s", text)
}

// opAtom is name where it is an operation or request that this port knows, else "request": the BEAM
// never collects atoms, so none is made from what a frame happened to hold.
func opAtom(name []byte) string {
	if _, ok := graph.Lookup(graph.Op(name)); ok {
		return string(name)
	}
	if k, ok := verbs[string(name)]; ok {
		return k.String()
	}
	return "request"
}
