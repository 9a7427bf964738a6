package dispatch

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"nxvk/etf"
)

// recordMagic is the header of a recording.
const recordMagic = "NXVKREC1"

// Direction of a recorded frame.
type Direction byte

const (
	toPort   Direction = 0
	fromPort Direction = 1
)

// recorder writes every frame to a file.
type recorder struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
	buf   []byte
	err   error
	log   func(error)
}

func newRecorder(out io.Writer, log func(error)) *recorder {
	r := &recorder{out: out, start: time.Now(), log: log}
	r.write([]byte(recordMagic))
	return r
}

// frame records the frame that parts make up.
func (r *recorder) frame(dir Direction, parts ...[]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b := append(r.buf[:0], byte(dir))
	b = binary.LittleEndian.AppendUint64(b, uint64(time.Since(r.start).Microseconds()))
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	for _, p := range parts {
		if len(p) > largeFrame {
			r.write(b)
			r.write(p)
			b = b[:0]
			continue
		}
		b = append(b, p...)
	}
	r.write(b)
	r.buf = b
}

func (r *recorder) write(b []byte) {
	if r.err != nil {
		return
	}
	if _, r.err = r.out.Write(b); r.err != nil {
		r.log(fmt.Errorf("the recording ends here: %w", r.err))
	}
}

// recordRequest records a frame; a bulk file becomes part of it, since it will be gone.
func (r *reader) recordRequest(q *request, frame []byte) {
	if q.extra == nil || !q.bulk {
		r.record.frame(toPort, frame)
		return
	}
	data := make([]byte, q.shape.wireBytes())
	if err := readBulk(r.runtimeDir, q.file, data); err != nil {
		q.fail = failf("upload", ReasonBadFile, "%v", err)
		r.record.frame(toPort, frame)
		return
	}
	q.bulk, q.data = false, data
	const piece = 16 << 20
	for at := 0; at < len(data); at += piece {
		part := data[at:min(at+piece, len(data))]
		b := etf.AppendVersion(nil)
		if len(data) <= piece {
			b = r.uploadHead(etf.AppendTuple(b, 5), "upload", q)
		} else {
			b = etf.AppendInt(r.uploadHead(etf.AppendTuple(b, 6), "upload_part", q), int64(at))
		}
		r.record.frame(toPort, etf.AppendBinaryHeader(b, len(part)), part)
	}
}

func (r *reader) uploadHead(b []byte, verb string, q *request) []byte {
	b = etf.AppendAtom(b, verb)
	b = etf.AppendUint(b, q.outs[0].id)
	b = etf.AppendAtom(b, q.shape.Type.String())
	b = etf.AppendTuple(b, len(q.shape.Shape))
	for _, d := range q.shape.Shape {
		b = etf.AppendInt(b, int64(d))
	}
	return b
}

// Recorded is a frame of a recording.
type Recorded struct {
	Dir   Direction
	Time  time.Duration // since the start
	Frame []byte
}

// ToPort reports whether the frame went to the port.
func (r Recorded) ToPort() bool { return r.Dir == toPort }

// ErrTruncated says that a recording ends in the middle of a frame, as that of a port that was killed may.
var ErrTruncated = errors.New("recording: it ends in the middle of a frame")

// ReadRecording calls f with each frame of a recording, in order. One that breaks off in the middle of a frame yields
// ErrTruncated after its last whole frame.
func ReadRecording(in io.Reader, f func(Recorded) error) error {
	b := bufio.NewReaderSize(in, 1<<16)
	head := make([]byte, len(recordMagic))
	if _, err := io.ReadFull(b, head); err != nil || string(head) != recordMagic {
		return fmt.Errorf("no recording: it starts with %q, want %q", head, recordMagic)
	}
	for {
		var h [13]byte
		if _, err := io.ReadFull(b, h[:]); err != nil {
			switch err {
			case io.EOF:
				return nil
			case io.ErrUnexpectedEOF:
				return ErrTruncated
			}
			return err
		}
		n := binary.LittleEndian.Uint32(h[9:])
		r := Recorded{Direction(h[0]), time.Duration(binary.LittleEndian.Uint64(h[1:])) * time.Microsecond, nil}
		if r.Dir > fromPort {
			return fmt.Errorf("recording: direction %d at %v", h[0], r.Time)
		}
		// The length is a claim until the bytes are there.
		var err error
		if r.Frame, err = readClaimed(b, int(n)); err == io.EOF || err == io.ErrUnexpectedEOF {
			return ErrTruncated
		} else if err != nil {
			return err
		}
		if err := f(r); err != nil {
			return err
		}
	}
}

func readClaimed(in io.Reader, n int) ([]byte, error) {
	if n <= 1<<20 {
		b := make([]byte, n)
		_, err := io.ReadFull(in, b)
		return b, err
	}
	b, err := io.ReadAll(io.LimitReader(in, int64(n)))
	if err == nil && len(b) < n {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}
