package zkclient

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"platter/coord/realzk"
	"platter/coord/zkserver"
	"platter/io/clock"
	"platter/io/memdisk"
)

// target is a server under test.
type target struct {
	addr    string
	restart func(t *testing.T) // nil: it cannot
}

// startOurs runs our server on a disk in memory.
func startOurs(t *testing.T, addr string, d *memdisk.FS) *zkserver.Server {
	t.Helper()
	s, err := zkserver.Start(context.Background(), zkserver.Config{
		FS: d, Clock: clock.Real{}, Dir: "/zk", Addr: addr, TickMs: realzk.TickMs, MaxSessionMs: realzk.MaxSessionMs,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ours(t *testing.T) target {
	d := memdisk.New(memdisk.Options{})
	s := startOurs(t, "", d)
	t.Cleanup(func() { s.Close() })
	return target{addr: s.Addr().String(), restart: func(t *testing.T) {
		addr := s.Addr().String()
		s.Close()
		s = startOurs(t, addr, d)
	}}
}

func TestMain(m *testing.M) { realzk.Main(m) }

// onBoth runs a test against our server and against the real one.
func onBoth(t *testing.T, f func(t *testing.T, at target)) {
	t.Run("ours", func(t *testing.T) { f(t, ours(t)) })
	t.Run("apache", func(t *testing.T) { f(t, target{addr: realzk.Addr(t)}) })
}

// within is a context for a test that must not hang.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// cutter dials for a client, and lets a test cut its connection or keep it from coming back.
type cutter struct {
	mu     sync.Mutex
	conn   net.Conn
	barred bool
	deaf   bool // what is written goes nowhere
}

type cutConn struct {
	net.Conn
	c *cutter
}

func (c cutConn) Write(b []byte) (int, error) {
	c.c.mu.Lock()
	deaf := c.c.deaf
	c.c.mu.Unlock()
	if deaf {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *cutter) dial(ctx context.Context, addr string) (Conn, error) {
	c.mu.Lock()
	barred := c.barred
	c.mu.Unlock()
	if barred {
		return nil, net.ErrClosed
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = nc
	return cutConn{nc, c}, nil
}

// set bars the client from dialling, makes its connection deaf, cuts it.
func (c *cutter) set(bar, deaf, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.barred, c.deaf = bar, deaf
	if cut && c.conn != nil {
		c.conn.Close()
	}
}
