package zkclient

import (
	"context"
	"slices"
	"testing"
	"time"

	"platter/coord/zk"
)

// TestClose: who ends a session is told that it is closed and nothing else, whether the server's answer comes or is
// lost; and a connection that goes at that very moment is no reason to leave the session to its timeout.
func TestClose(t *testing.T) {
	for name, s := range map[string]*script{
		"answered": {serve: func(_ int, nc *scriptConn) {
			if q, _, err := nc.next(); err == nil {
				nc.reply(q.Xid, 1, zk.OK, nil)
			}
		}, expired: 2},
		"answer lost":    {serve: func(_ int, nc *scriptConn) { nc.next() }, expired: 2},
		"request lost":   {serve: func(n int, nc *scriptConn) { closeOn(2, n, nc) }},
		"lost and again": {serve: func(n int, nc *scriptConn) { closeOn(4, n, nc) }},
	} {
		t.Run(name, func(t *testing.T) {
			states := make(chan State, 1000)
			c := connectTo(t, s, Config{OnState: func(s State) { states <- s }})
			lost := make(chan Event, 1)
			c.watch(dataWatch, "/n", watcher{"/n", func(e Event) { lost <- e }})
			if err := c.close(within(t)); err != nil {
				t.Error(err)
			}
			expect(t, lost, Event{SessionLost, "/n"}) // the last that is told
			for len(states) > 0 {
				if got := <-states; got == Expired || len(states) == 0 && got != Closed {
					t.Error("told", got)
				}
			}
		})
	}
}

// closeOn answers on one connection until the session is closed, and drops the others.
func closeOn(want, n int, nc *scriptConn) {
	for {
		q, _, err := nc.next()
		if err != nil || n != want {
			return
		}
		nc.reply(q.Xid, 1, zk.OK, nil)
		if q.Op == zk.OpCloseSession {
			return
		}
	}
}

// TestConnectGivenUp: whoever gives Connect up while it looks for the chroot does not wait for more answers.
func TestConnectGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(within(t))
	asked := make(chan []zk.Op, 1)
	s := &script{serve: func(_ int, nc *scriptConn) {
		var ops []zk.Op
		for {
			q, _, err := nc.next()
			if err != nil {
				asked <- ops
				return
			}
			ops = append(ops, q.Op)
			cancel()
		}
	}}
	_, err := Connect(ctx, Config{Servers: []string{"scripted"}, Chroot: "/c", ChrootMustExist: true, Dial: s.dial})
	wantErr(t, err, context.Canceled)
	if ops := <-asked; !slices.Equal(ops, []zk.Op{zk.OpExists}) {
		t.Error("asked", ops)
	}
}

// TestAttemptWithinSession: no server is waited for longer than the session lives, by the timeout that was agreed to.
func TestAttemptWithinSession(t *testing.T) {
	s := &script{firstMs: 3000, serve: func(n int, nc *scriptConn) {
		if n > 1 {
			nc.behave(1)
		}
	}}
	left := make(chan time.Duration, 20)
	c, err := Connect(within(t), Config{
		Servers: []string{"scripted"}, SessionTimeout: 60 * time.Second,
		Dial: func(ctx context.Context, addr string) (Conn, error) {
			at, _ := ctx.Deadline()
			left <- time.Until(at)
			return s.dial(ctx, addr)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Drop()
	<-left
	if d := <-left; d > time.Second {
		t.Error("an attempt may last", d)
	}
}
