package dispatch

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"nxvk/etf"
	"nxvk/graph"
)

// Client speaks the wire from the other side, for benchmarks, replays and tests: what an Erlang node
// does, in Go. Its methods may be called from several goroutines.
type Client struct {
	mu      sync.Mutex
	out     io.Writer
	buf     []byte
	next    uint64
	waiting map[uint64]chan etf.Term
	closed  error

	// Event, if set, gets events. It is called by the goroutine that reads.
	Event func(etf.Term)
}

// NewClient makes a client that writes frames to out and reads them from in.
func NewClient(in io.Reader, out io.Writer) *Client {
	c := &Client{out: out, waiting: map[uint64]chan etf.Term{}}
	go c.read(in)
	return c
}

func (c *Client) read(in io.Reader) {
	err := readFrames(in, func(frame []byte) error {
		if len(frame) == 0 {
			return fmt.Errorf("empty frame")
		}
		body := frame[1:]
		if frame[0] == frameEvent {
			t, err := etf.Decode(body, etf.Limits{})
			if err == nil && c.Event != nil {
				c.Event(t)
			}
			return err
		}
		if len(body) < 9 {
			return fmt.Errorf("frame of %d bytes", len(frame))
		}
		t, err := etf.Decode(body[8:], etf.Limits{Size: 1 << 40})
		if err != nil {
			return err
		}
		req := binary.BigEndian.Uint64(body)
		c.mu.Lock()
		ch := c.waiting[req]
		delete(c.waiting, req)
		c.mu.Unlock()
		if ch != nil {
			ch <- t
		}
		return nil
	})
	c.mu.Lock()
	c.closed = fmt.Errorf("the port is gone: %v", err)
	for _, ch := range c.waiting {
		close(ch)
	}
	clear(c.waiting)
	c.mu.Unlock()
}

// readFrames calls f with each frame of in, which has a buffer of its own, until in ends.
func readFrames(in io.Reader, f func([]byte) error) error {
	var head [4]byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		frame := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(in, frame); err != nil {
			return err
		}
		if err := f(frame); err != nil {
			return err
		}
	}
}

// Frame sends an encoded term as it is.
func (c *Client) Frame(term []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.write(term)
}

func (c *Client) write(term []byte) error {
	c.buf = append(binary.BigEndian.AppendUint32(c.buf[:0], uint32(len(term))), term...)
	_, err := c.out.Write(c.buf)
	return err
}

// Cast sends a term.
func (c *Client) Cast(t etf.Term) error {
	b, err := etf.Encode(t)
	if err != nil {
		return err
	}
	return c.Frame(b)
}

// Call sends a request and waits for x of {:ok, x}. {:error, …} comes back as a *Failure.
func (c *Client) Call(t etf.Term) (etf.Term, error) {
	ch := make(chan etf.Term, 1)
	c.mu.Lock()
	err := c.closed
	if err == nil {
		c.next++
		c.waiting[c.next] = ch
		var b []byte
		if b, err = etf.Encode(etf.Tuple{int64(c.next), t}); err == nil {
			err = c.write(b)
		}
	}
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	reply, ok := <-ch
	if !ok {
		return nil, c.closed
	}
	return unwrap(reply)
}

func unwrap(reply etf.Term) (etf.Term, error) {
	t, _ := reply.(etf.Tuple)
	if len(t) == 2 && t[0] == etf.Atom("ok") {
		return t[1], nil
	}
	if len(t) == 2 && t[0] == etf.Atom("error") {
		if m, ok := t[1].(etf.Map); ok {
			op, _ := m.Get("op").(etf.Atom)
			reason, _ := m.Get("reason").(etf.Atom)
			message, _ := m.Get("message").(etf.Binary)
			return nil, &Failure{string(op), Reason(reason), string(message)}
		}
	}
	return nil, fmt.Errorf("a reply that is none: %v", reply)
}

// Hello greets the port.
func (c *Client) Hello(options etf.Map) (etf.Term, error) {
	return c.Call(etf.Tuple{etf.Atom("hello"), Version, options})
}

// Upload makes tensor id.
func (c *Client) Upload(id int, s graph.Spec, data []byte) error {
	return c.Cast(etf.Tuple{etf.Atom("upload"), id, etf.Atom(s.Type.String()), shapeTerm(s.Shape), etf.Binary(data)})
}

// Op runs one operation; ins are ids (int) or {type, bytes} terms.
func (c *Client) Op(op graph.Op, s graph.Spec, attrs etf.Map, ins []etf.Term, outs ...int) error {
	return c.Cast(opTerm(op, s, attrs, ins, outs...))
}

func opTerm(op graph.Op, s graph.Spec, attrs etf.Map, ins []etf.Term, outs ...int) etf.Term {
	var a etf.Term = attrs
	if attrs == nil {
		a = etf.Seq{}
	}
	ids := make(etf.Seq, len(outs))
	for i, id := range outs {
		ids[i] = id
	}
	return etf.Tuple{etf.Atom("op"), etf.Tuple{etf.Atom(op), etf.Atom(s.Type.String()), shapeTerm(s.Shape), a}, etf.Seq(ins), ids}
}

// Free forgets tensors.
func (c *Client) Free(ids ...int) error {
	l := make(etf.Seq, len(ids))
	for i, id := range ids {
		l[i] = id
	}
	return c.Cast(etf.Tuple{etf.Atom("free"), l})
}

// Read yields length bytes of tensor id from offset on.
func (c *Client) Read(id, offset, length int) ([]byte, error) {
	x, err := c.Call(etf.Tuple{etf.Atom("read"), id, offset, length})
	if err != nil {
		return nil, err
	}
	b, ok := x.(etf.Binary)
	if !ok {
		return nil, fmt.Errorf("read: %v", x)
	}
	return b, nil
}

// Sync waits until all before it has run.
func (c *Client) Sync(ids ...int) error {
	l := make(etf.Seq, len(ids))
	for i, id := range ids {
		l[i] = id
	}
	_, err := c.Call(etf.Tuple{etf.Atom("sync"), l})
	return err
}

func shapeTerm(s graph.Shape) etf.Term {
	t := make(etf.Tuple, len(s))
	for i, d := range s {
		t[i] = d
	}
	return t
}

// Local serves a client within this process, over pipes. done ends the server and waits for it.
func Local(cfg Config) (c *Client, done func() error) {
	toPort, fromClient := io.Pipe()
	toClient, fromPort := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := Serve(cfg, toPort, fromPort)
		fromPort.Close()
		ended <- err
	}()
	c = NewClient(toClient, fromClient)
	return c, func() error {
		fromClient.Close()
		return <-ended
	}
}
