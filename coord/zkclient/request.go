package zkclient

import (
	"context"
	"fmt"

	"platter/coord/zk"
)

// request is one operation: what to send, and what becomes of the reply.
type request struct {
	op     zk.Op
	record func([]byte) []byte                   // appends the record; nil: there is none
	reply  func(h zk.ReplyHeader, d *zk.Decoder) // on the reader's goroutine; nil: nothing to keep
	watch  string                                // the full path that the reply may leave a watch on; "": none
}

// start sends q, after it has waited for a connection; the outcome comes on done, which has room.
func (c *Client) start(ctx context.Context, q request, done chan error) error {
	for {
		c.mu.Lock()
		if c.err != nil {
			err := c.err
			c.mu.Unlock()
			return err
		}
		if l := c.link; l != nil {
			defer c.mu.Unlock()
			return c.enqueue(l, q, done)
		}
		ready := c.ready
		c.mu.Unlock()
		select {
		case <-ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// enqueue is called with mu held: xids and frames have one order.
func (c *Client) enqueue(l *link, q request, done chan error) error {
	xid := c.xid%(1<<30) + 1
	if q.op == zk.OpAuth {
		xid = zk.XidAuth
	}
	frame := zk.AppendFrame(nil, func(b []byte) []byte {
		b = zk.RequestHeader{Xid: xid, Op: q.op}.Append(b)
		if q.record != nil {
			b = q.record(b)
		}
		return b
	})
	if len(frame)-4 > zk.MaxFrameBytes {
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, len(frame)-4)
	}
	if q.op != zk.OpAuth {
		c.xid = xid
	}
	if q.watch != "" {
		c.watches.asked[q.watch]++
	}
	l.add(&call{xid: xid, reply: q.reply, watch: q.watch, done: done}, frame)
	return nil
}

// do sends q and waits for its outcome, or the end of ctx. What q.reply writes may be read only when
// do has given nil or a server's error.
func (c *Client) do(ctx context.Context, q request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	if err := c.start(ctx, q, done); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sentinel is the error of a code.
func sentinel(code zk.Code) error {
	switch code {
	case zk.OK:
		return nil
	case zk.NoNode:
		return ErrNoNode
	case zk.NodeExists:
		return ErrNodeExists
	case zk.BadVersion:
		return ErrBadVersion
	case zk.NotEmpty:
		return ErrNotEmpty
	case zk.SessionExpired:
		return ErrSessionExpired
	case zk.ConnectionLoss:
		return ErrConnectionLoss
	case zk.NoAuth:
		return ErrNoAuth
	case zk.NoWatcher:
		return ErrNoWatcher
	case zk.AuthFailed:
		return ErrAuthFailed
	case zk.Unimplemented:
		return ErrUnsupported
	}
	return code
}

func wrap(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("zookeeper: %s %s: %w", op, path, err)
}
