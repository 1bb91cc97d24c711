package server

import (
	"context"
	"sync"
	"time"

	"platter/io/buf"
	"platter/net/frame"
	"platter/net/wire"
)

// Request is one request. Its bytes are the frame's, valid until it is answered.
type Request struct {
	wire.Header
	Conn     *Conn
	Body     []byte // behind the header
	Received time.Time

	c          *conn
	frame      *buf.Buffer
	produce    bool // goes to Handler.Produce
	done       bool // answered; reply and err are set
	handedOver bool // the handler was called
	orphan     bool // the connection is over: whoever answers gives everything back
	reply      *frame.Reply
	err        error
}

var requests = sync.Pool{New: func() any { return new(Request) }}

// Gone ends when nobody waits for the answer any more. Unlike the context of Handler.Serve it outlasts
// the broker's wish to stop, so that a produce under way can still be acknowledged. A request that came by no
// connection is always waited for.
func (r *Request) Gone() context.Context {
	if r.c == nil {
		return context.Background()
	}
	return r.c.gone
}

// Answer answers a produce: reply nil sends nothing (acks=0), err closes the connection. The request is
// not to be touched after it.
func (r *Request) Answer(reply *frame.Reply, err error) {
	c := r.c
	c.mu.Lock()
	if r.orphan {
		c.mu.Unlock()
		r.reply = reply
		r.free()
		return
	}
	r.reply, r.err, r.done = reply, err, true
	if c.inline != r && c.queue[0] == r {
		c.ready.Signal()
	}
	c.mu.Unlock()
}

// free gives the frame and an unsent reply back.
func (r *Request) free() {
	if r.reply != nil {
		r.reply.Release()
	}
	r.frame.Release()
	*r = Request{}
	requests.Put(r)
}
