package zkclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"platter/coord/zk"
)

const (
	// backoffMin doubles up to backoffMax, each time when every server was tried in vain or a connection did not settle.
	backoffMin = 5 * time.Millisecond
	backoffMax = 500 * time.Millisecond
	// settledTime is how long a connection must live to be no vain attempt.
	settledTime = time.Second
	// troubleTime lies between two calls of OnTrouble.
	troubleTime = 30 * time.Second
	// setWatchesBytes bounds one SetWatches request, far below jute.maxbuffer.
	setWatchesBytes = 128 << 10
)

// patience is how long to wait after a vain attempt, and when it was last told of.
type patience struct {
	pause time.Duration
	told  time.Time
}

// run reads connection after connection until the client is dead.
func (c *Client) run(l *link, p *patience) {
	defer close(c.gone)
	for state := Connected; ; state = Reconnected {
		if !c.install(l, state) {
			l.fail(ErrClosed)
			return
		}
		since := time.Now()
		err := c.readAll(l)
		c.lose(l)
		if time.Since(since) >= settledTime {
			*p = patience{pause: backoffMin}
		} else {
			c.next++
			err = fmt.Errorf("zookeeper at %s: the connection ended at once: %w", l.addr, err)
			if !c.wait(c.life, p, err) {
				return
			}
		}
		if l, err = c.dial(c.life, p); err != nil {
			c.die(err)
			return
		}
	}
}

// install makes l the connection that requests use; the watches go out first. False: the client died.
func (c *Client) install(l *link, state State) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return false
	}
	c.tell(state)
	if state == Reconnected {
		c.rearm(l)
	}
	c.link = l
	close(c.ready)
	go l.ping(c.timeout)
	go l.send()
	return true
}

// rearm queues who the client is, and SetWatches for all that is watched, in batches.
func (c *Client) rearm(l *link) {
	for _, a := range c.auths {
		refused := func(h zk.ReplyHeader, _ *zk.Decoder) {
			if h.Err != zk.OK {
				l.refused = fmt.Errorf("the authentication by %s is refused now: %w", a.Scheme, sentinel(h.Err))
			}
		}
		l.add(&call{xid: zk.XidAuth, reply: refused, done: make(chan error, 1)}, authFrame(a))
	}
	for _, ws := range c.watches.staying {
		for _, w := range ws {
			c.tellMissed(w)
		}
	}
	batches := c.watches.setWatches(setWatchesBytes)
	c.rearming = len(batches)
	for _, q := range batches {
		q.RelativeZxid = c.zxid
		op := setWatchesOp(&q)
		frame := zk.AppendFrame(nil, func(b []byte) []byte {
			b = zk.RequestHeader{Xid: zk.XidSetWatches, Op: op}.Append(b)
			return q.Append(b, op)
		})
		l.add(&call{xid: zk.XidSetWatches, reply: c.rearmed, done: make(chan error, 1)}, frame)
	}
}

// rearmed counts an answer to SetWatches.
func (c *Client) rearmed(zk.ReplyHeader, *zk.Decoder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rearming--
}

// lose takes l out of use; what was in flight has an unknown outcome.
func (c *Client) lose(l *link) {
	c.mu.Lock()
	if c.link == l {
		c.link = nil
		c.ready = make(chan struct{})
		clear(c.watches.asked)
		c.tell(Disconnected)
	}
	c.mu.Unlock()
	l.fail(ErrConnectionLoss)
}

// wait passes the time after an attempt that was in vain for the cause; false: ctx has ended.
func (c *Client) wait(ctx context.Context, p *patience, cause error) bool {
	if f := c.config.OnTrouble; f != nil && p.pause == backoffMax && (p.told.IsZero() || time.Since(p.told) >= troubleTime) {
		p.told = time.Now()
		f(cause)
	}
	t := time.NewTimer(p.pause/2 + rand.N(p.pause))
	defer t.Stop()
	p.pause = min(2*p.pause, backoffMax)
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// dial tries the servers in turn until one gives the session (or a new one), the session has expired,
// or ctx or the client ends.
func (c *Client) dial(ctx context.Context, p *patience) (*link, error) {
	for {
		var last error
		for range c.config.Servers {
			addr := c.config.Servers[c.next%len(c.config.Servers)]
			l, err := c.dialOne(ctx, addr)
			if err == nil {
				return l, nil
			}
			c.next++
			last = fmt.Errorf("zookeeper at %s: %w", addr, err)
			if errors.Is(err, ErrSessionExpired) {
				return nil, last
			}
		}
		if !c.wait(ctx, p, last) {
			if c.life.Err() != nil {
				return nil, ErrClosed
			}
			return nil, &givenUp{last, ctx.Err()}
		}
	}
}

// givenUp is the last failure, and why there were no more attempts.
type givenUp struct{ last, why error }

func (e *givenUp) Error() string {
	if errors.Is(e.why, context.DeadlineExceeded) {
		return e.last.Error() + " (tried until the time was over)"
	}
	return e.last.Error() + " (" + e.why.Error() + ")"
}

func (e *givenUp) Unwrap() []error { return []error{e.last, e.why} }

// attemptTime bounds one attempt at one server, so that all can be tried while the session lives.
func (c *Client) attemptTime() time.Duration {
	d := c.Timeout() / 3 / time.Duration(len(c.config.Servers))
	return min(max(d, 500*time.Millisecond), 10*time.Second)
}

func (c *Client) dialOne(ctx context.Context, addr string) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, c.attemptTime())
	defer cancel()
	dial := c.config.Dial
	if dial == nil {
		dial = dialTCP
	}
	nc, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	l, err := c.handshake(nc)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	l.addr = addr
	return l, nil
}

func dialTCP(ctx context.Context, addr string) (Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// handshake asks for the session, or a new one, on a fresh connection.
func (c *Client) handshake(nc Conn) (*link, error) {
	if err := nc.SetDeadline(time.Now().Add(c.attemptTime())); err != nil {
		return nil, err
	}
	c.mu.Lock()
	q := zk.ConnectRequest{
		LastZxidSeen: c.zxid, TimeoutMs: int32(c.config.SessionTimeout.Milliseconds()),
		SessionID: c.id, Password: c.password, HasReadOnly: true,
	}
	c.mu.Unlock()
	if len(q.Password) == 0 {
		q.Password = make([]byte, zk.PasswordBytes)
	}
	if _, err := nc.Write(zk.AppendFrame(nil, q.Append)); err != nil {
		return nil, err
	}
	l := newLink(nc)
	body, err := l.read()
	if errors.Is(err, io.EOF) && q.LastZxidSeen > 0 {
		return nil, fmt.Errorf("closed without an answer, as by a server that is behind zxid %#x, which this client has "+
			"seen (its data is older, or another's), or that has no quorum: %w", q.LastZxidSeen, err)
	}
	if err != nil {
		return nil, err
	}
	d := zk.NewDecoder(body)
	var r zk.ConnectResponse
	if r.Decode(&d); d.Err() != nil {
		return nil, fmt.Errorf("connect response: %w", d.Err())
	}
	if r.SessionID == 0 || r.TimeoutMs <= 0 {
		return nil, ErrSessionExpired
	}
	if err := nc.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id, c.password = r.SessionID, slices.Clone(r.Password)
	c.timeout = time.Duration(r.TimeoutMs) * time.Millisecond
	return l, nil
}

// readAll handles frames until the connection ends, and says why it did.
func (c *Client) readAll(l *link) error {
	for {
		body, err := l.read()
		if err != nil {
			return err
		}
		d := zk.NewDecoder(body)
		var h zk.ReplyHeader
		if h.Decode(&d); d.Err() != nil {
			return fmt.Errorf("reply: %w", d.Err())
		}
		switch h.Xid {
		case zk.XidPing:
			c.seen(h.Zxid)
		case zk.XidEvent:
			c.fire(&d)
		default:
			k, err := l.answered(h.Xid)
			if err != nil {
				return err
			}
			c.seen(h.Zxid)
			c.answer(k, h, &d)
			if h.Err == zk.SessionExpired || h.Err == zk.SessionMoved {
				return sentinel(h.Err) // the next handshake tells what is left of the session
			}
		}
		if l.refused != nil {
			return l.refused
		}
	}
}

// seen keeps the highest zxid that a reply has told of. While watches are armed again it stays: should this connection
// go too, those that it has not armed must tell what happened since the one before.
func (c *Client) seen(zxid int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rearming == 0 {
		c.zxid = max(c.zxid, zxid)
	}
}

func (c *Client) answer(k *call, h zk.ReplyHeader, d *zk.Decoder) {
	if k.reply != nil {
		k.reply(h, d)
	}
	if k.watch != "" {
		c.settle(k.watch)
	}
	switch {
	case h.Err != zk.OK:
		k.done <- sentinel(h.Err)
	case d.Err() != nil:
		k.done <- d.Err()
	default:
		k.done <- nil
	}
}
