package zkwire

import (
	"bufio"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Client is a session under load: requests are pipelined, one goroutine reads, callbacks run on it. OnEvent must be
// set before the first watch is. Its methods may be called from any goroutine.
type Client struct {
	*Conn
	OnEvent func(Event)
	Dead    chan struct{} // closed when the connection has ended; Err tells why
	Err     error
	w       *bufio.Writer
	mu      sync.Mutex
	waiting []func(Reply) // in the order of the requests, from head
	head    int
}

const clientBufferBytes = 64 << 10

// DialClient opens a session; hello is how long the handshake may take.
func DialClient(addr string, timeout, hello time.Duration) (*Client, error) {
	return DialClientAs(addr, Hello{TimeoutMs: int32(timeout.Milliseconds()), Password: make([]byte, 16)}, hello)
}

// DialClientAs is DialClient with a connect request of the caller's.
func DialClientAs(addr string, h Hello, hello time.Duration) (*Client, error) {
	c, err := Dial(addr)
	if err != nil {
		return nil, err
	}
	_ = c.NC.SetDeadline(time.Now().Add(hello))
	if err = c.greetWithin(h, hello); err == nil && c.SessionID == 0 {
		err = errors.New("no session was given")
	}
	if err != nil {
		c.NC.Close()
		return nil, err
	}
	_ = c.NC.SetDeadline(time.Time{})
	x := &Client{Conn: c, Dead: make(chan struct{}), w: bufio.NewWriterSize(c.NC, clientBufferBytes)}
	c.r = bufio.NewReaderSize(c.NC, clientBufferBytes)
	go x.read()
	return x, nil
}

func (c *Client) read() {
	defer close(c.Dead)
	for {
		p, err := ReadFrame(c.r)
		if err != nil {
			c.Err = err
			return
		}
		r, err := ParseReply(p)
		if err != nil {
			c.Err = err
			return
		}
		switch r.Xid {
		case XidEvent:
			if c.OnEvent != nil {
				c.OnEvent(r.Event())
			}
		case XidPing:
		default:
			done, err := c.next(r.Xid)
			if err != nil {
				c.Err = err
				return
			}
			done(r)
		}
	}
}

func (c *Client) next(xid int32) (func(Reply), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.head >= len(c.waiting) {
		return nil, fmt.Errorf("a reply to nothing, xid %d", xid)
	}
	done := c.waiting[c.head]
	c.head++
	if c.head > 4096 && c.head*2 > len(c.waiting) {
		c.waiting = append(c.waiting[:0], c.waiting[c.head:]...)
		c.head = 0
	}
	return done, nil
}

// KeepAlive pings until the connection ends.
func (c *Client) KeepAlive() {
	go func() {
		t := time.NewTicker(time.Duration(c.TimeoutMs) * time.Millisecond / 3)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				c.mu.Lock()
				_, _ = c.w.Write(Request(XidPing, OpPing, nil))
				_ = c.w.Flush()
				c.mu.Unlock()
			case <-c.Dead:
				return
			}
		}
	}()
}

// Queue queues a request for the next Flush; done gets its reply.
func (c *Client) Queue(op int32, body Body, done func(Reply)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	xid := c.NextXid()
	if op == OpAuth {
		xid = XidAuth
	}
	c.waiting = append(c.waiting, done)
	_, _ = c.w.Write(Request(xid, op, body)) // an error shows at the reader
}

// Flush sends what is queued.
func (c *Client) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.w.Flush()
}

// Do sends one request and waits for its reply.
func (c *Client) Do(op int32, body Body) (Reply, error) {
	ch := make(chan Reply, 1)
	c.Queue(op, body, func(r Reply) { ch <- r })
	c.Flush()
	select {
	case r := <-ch:
		return r, nil
	case <-c.Dead:
		return Reply{}, fmt.Errorf("connection lost: %w", c.Err)
	case <-time.After(callTime):
		return Reply{}, errors.New("no reply in time")
	}
}

// End closes the session.
func (c *Client) End() {
	_, _ = c.Do(OpClose, nil)
	c.NC.Close()
}
