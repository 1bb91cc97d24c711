package zkclient

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"platter/coord/zk"
)

// gate holds back what a client's connection reads.
type gate struct {
	mu   sync.Mutex
	open chan struct{}
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) lift() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

func (g *gate) dial(ctx context.Context, addr string) (Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	return gatedConn{nc, g}, err
}

type gatedConn struct {
	net.Conn
	g *gate
}

func (c gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.g.mu.Lock()
	open := c.g.open
	c.g.mu.Unlock()
	<-open
	return n, err
}

// waitInFlight waits until so many requests wait for their answers.
func waitInFlight(t *testing.T, c *Client, n int) {
	t.Helper()
	for range 60_000 {
		c.mu.Lock()
		l := c.link
		c.mu.Unlock()
		if l != nil {
			l.mu.Lock()
			have := len(l.calls)
			l.mu.Unlock()
			if have == n {
				return
			}
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("there never were %d requests in flight", n)
}

// watched gives a client behind a gate, another one, a node /n, and what a watch is told.
func watched(t *testing.T, at target) (c, other *Client, g *gate, ch chan Event) {
	g = newGate()
	c = connect(t, at, Config{Dial: g.dial})
	t.Cleanup(g.lift) // before the client ends, whatever failed
	other = connect(t, at, Config{Chroot: c.chroot})
	must(c.Create(within(t), "/n", nil, Persistent))(t)
	return c, other, g, make(chan Event, 20)
}

// TestRemoveBesideNewWatch: a watch that is asked for while another on the path is removed is not removed with it.
func TestRemoveBesideNewWatch(t *testing.T) {
	onBoth(t, func(t *testing.T, at target) {
		c, other, g, ch := watched(t, at)
		ctx := within(t)
		remove := must(c.AddWatch(ctx, "/n", false, func(Event) {}))(t)
		g.shut()
		got, removed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, _, err := c.Get(ctx, "/n", func(e Event) { ch <- e })
			got <- err
		}()
		waitInFlight(t, c, 1)
		go func() { removed <- remove(ctx) }()
		select {
		case err := <-removed: // the path is in use: nothing has to be asked
			removed <- err
		case <-time.After(time.Second): // its request is out; go on to what comes of it
		}
		g.lift()
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		if err := <-removed; err != nil {
			t.Fatal(err)
		}
		must(other.Set(ctx, "/n", nil, -1))(t)
		expect(t, ch, Event{NodeDataChanged, "/n"})
	})
}

// TestWatchBehindRemoval: a watch that is set by the request after a removal stays.
func TestWatchBehindRemoval(t *testing.T) {
	onBoth(t, func(t *testing.T, at target) {
		c, other, g, ch := watched(t, at)
		ctx := within(t)
		must(c.Exists(ctx, "/n", func(Event) {}))(t)
		g.shut()
		removed, got := make(chan error, 1), make(chan error, 1)
		go func() { removed <- c.RemoveWatches(ctx, "/n", DataWatches, false) }()
		waitInFlight(t, c, 1)
		go func() {
			_, _, err := c.Get(ctx, "/n", func(e Event) { ch <- e })
			got <- err
		}()
		waitInFlight(t, c, 2)
		g.lift()
		for _, answer := range []chan error{removed, got} {
			if err := <-answer; err != nil {
				t.Fatal(err)
			}
		}
		must(other.Set(ctx, "/n", nil, -1))(t)
		expect(t, ch, Event{NodeDataChanged, "/n"})
	})
}

// TestAddWatchGivenUp: a watch whose caller did not wait for the answer tells nobody, and does not stay at the server.
func TestAddWatchGivenUp(t *testing.T) {
	onBoth(t, func(t *testing.T, at target) {
		c, other, g, ch := watched(t, at)
		g.shut()
		ctx, cancel := context.WithCancel(within(t))
		added := make(chan error, 1)
		go func() {
			_, err := c.AddWatch(ctx, "/n", false, func(e Event) { ch <- e })
			added <- err
		}()
		waitInFlight(t, c, 1)
		cancel()
		wantErr(t, <-added, context.Canceled)
		g.lift()
		ctx = within(t)
		must(c.Exists(ctx, "/n", nil))(t) // behind the answer
		must(c.Exists(ctx, "/n", nil))(t) // behind the removal that it led to
		must(other.Set(ctx, "/n", nil, -1))(t)
		must(c.Exists(ctx, "/n", func(e Event) { ch <- e }))(t)
		if err := other.Delete(ctx, "/n", -1); err != nil {
			t.Fatal(err)
		}
		expect(t, ch, Event{NodeDeleted, "/n"}) // the first that is told
		q := zk.WatchesRequest{Path: c.full("/n"), Type: zk.WatcherAny}
		wantErr(t, c.do(ctx, request{op: zk.OpRemoveWatches, record: q.Append}), ErrNoWatcher)
	})
}
