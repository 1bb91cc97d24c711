package zkclient

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"platter/coord/zk"
)

// told waits for one call of OnTrouble.
func told(t *testing.T, trouble <-chan error) error {
	t.Helper()
	select {
	case err := <-trouble:
		return err
	case <-time.After(60 * time.Second):
		t.Fatal("nobody told of it")
		return nil
	}
}

// TestCutAfterHandshake: a server that takes the session up again and again and drops it each time is asked ever more
// seldom, another one meanwhile, and the client's owner hears of it.
func TestCutAfterHandshake(t *testing.T) {
	trouble := make(chan error, 20)
	s := &script{serve: func(int, *scriptConn) {}}
	asked := make(chan string, 1000)
	c, err := Connect(within(t), Config{
		Servers: []string{"one:1", "two:1"},
		Dial: func(ctx context.Context, addr string) (Conn, error) {
			asked <- addr
			return s.dial(ctx, addr)
		},
		OnTrouble: func(err error) { trouble <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Drop()
	if err := told(t, trouble); !strings.Contains(err.Error(), "ended at once") || !strings.Contains(err.Error(), ":1") {
		t.Error(err)
	}
	if n := s.dials(); n > 100 {
		t.Errorf("%d connections before anybody was told", n)
	}
	var addrs []string
	for len(asked) > 0 {
		addrs = append(addrs, <-asked)
	}
	if !slices.Contains(addrs, "one:1") || !slices.Contains(addrs, "two:1") {
		t.Error("asked", addrs)
	}
}

// TestExpiryByAnswer: who hears of the expiry by an answer is told of it as ever, also when the server keeps the
// connection.
func TestExpiryByAnswer(t *testing.T) {
	states := make(chan State, 20)
	c := connectTo(t, &script{expired: 2, serve: func(_ int, nc *scriptConn) {
		for {
			q, _, err := nc.next()
			if err != nil {
				return
			}
			nc.reply(q.Xid, 1, zk.SessionExpired, nil)
		}
	}}, Config{OnState: func(s State) { states <- s }})
	_, err := c.Set(within(t), "/n", nil, -1)
	wantErr(t, err, ErrSessionExpired)
	for _, s := range []State{Connected, Disconnected, Expired} {
		expect(t, states, s)
	}
}

// TestAuthRefusedLater: when who the client was is not taken on a new connection, that is what its owner is told.
func TestAuthRefusedLater(t *testing.T) {
	trouble := make(chan error, 20)
	c := connectTo(t, &script{serve: func(n int, nc *scriptConn) {
		q, _, err := nc.next()
		switch {
		case err != nil:
		case n > 1:
			nc.reply(q.Xid, 0, zk.AuthFailed, nil)
			nc.next()
		default:
			nc.reply(q.Xid, 0, zk.OK, nil)
		}
	}}, Config{OnTrouble: func(err error) { trouble <- err }})
	if err := c.AddAuth(within(t), "digest", []byte("ann:secret")); err != nil {
		t.Fatal(err)
	}
	wantErr(t, told(t, trouble), ErrAuthFailed)
}
