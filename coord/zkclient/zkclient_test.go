package zkclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"platter/io/memdisk"
)

var roots atomic.Int64

// connect gives a client with a chroot of its own; servers are shared.
func connect(t *testing.T, at target, c Config) *Client {
	t.Helper()
	c.Servers = []string{at.addr}
	if c.Chroot == "" && c.SessionID == 0 {
		c.Chroot = fmt.Sprintf("/test-%d/%s", roots.Add(1), strings.ReplaceAll(t.Name(), "/", "-"))
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = 30 * time.Second // no busy machine makes a living session miss it
	}
	cl, err := Connect(within(t), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Drop)
	return cl
}

// must fails the test on an error.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// expect waits for one callback.
func expect[T comparable](t *testing.T, ch <-chan T, want T) {
	t.Helper()
	select {
	case got := <-ch:
		if got != want {
			t.Fatalf("got %v, want %v", got, want)
		}
	case <-time.After(60 * time.Second):
		t.Fatalf("no %v came", want)
	}
}

func TestNodes(t *testing.T) {
	onBoth(t, func(t *testing.T, at target) {
		c, ctx := connect(t, at, Config{}), within(t)
		if p := must(c.Create(ctx, "/a", []byte("x"), Persistent))(t); p != "/a" {
			t.Fatal(p)
		}
		_, err := c.Create(ctx, "/a", nil, Persistent)
		wantErr(t, err, ErrNodeExists)
		_, err = c.Create(ctx, "/no/where", nil, Persistent)
		wantErr(t, err, ErrNoNode)
		p1 := must(c.Create(ctx, "/a/s-", nil, PersistentSequential))(t)
		p2 := must(c.Create(ctx, "/a/s-", nil, EphemeralSequential))(t)
		if p1 != "/a/s-0000000000" || p2 != "/a/s-0000000001" {
			t.Fatal(p1, p2)
		}
		id, _ := c.Session()
		if st := must(c.Exists(ctx, p2, nil))(t); st.EphemeralOwner != id {
			t.Fatal(st)
		}
		if names, st, err := c.Children(ctx, "/a", nil); err != nil || st.Cversion != 2 ||
			!slices.Equal(names, []string{"s-0000000000", "s-0000000001"}) {
			t.Fatal(names, st, err)
		}
		if names, _, err := c.Children(ctx, "/", nil); err != nil || !slices.Equal(names, []string{"a"}) {
			t.Fatal(names, err)
		}
		if st := must(c.Set(ctx, "/a", []byte("yy"), 0))(t); st.Version != 1 || st.DataLength != 2 {
			t.Fatal(st)
		}
		_, err = c.Set(ctx, "/a", nil, 0)
		wantErr(t, err, ErrBadVersion)
		wantErr(t, c.Delete(ctx, "/a", -1), ErrNotEmpty)
		if err := errors.Join(c.Delete(ctx, p1, 0), c.Delete(ctx, p2, -1), c.Sync(ctx, "/a")); err != nil {
			t.Fatal(err)
		}
		if b, st, err := c.Get(ctx, "/a", nil); err != nil || string(b) != "yy" || st.NumChildren != 0 {
			t.Fatal(b, st, err)
		}
		wantErr(t, c.Delete(ctx, "/b", -1), ErrNoNode)
		if err := errors.Join(c.Ensure(ctx, "/e/f/g", []byte("z")), c.Ensure(ctx, "/e/f/g", nil)); err != nil {
			t.Fatal(err)
		}
		if b, _, err := c.Get(ctx, "/e/f/g", nil); err != nil || string(b) != "z" {
			t.Fatal(b, err)
		}
		_, err = c.Set(ctx, "/a", make([]byte, 2<<20), -1)
		wantErr(t, err, ErrTooLarge)
	})
}

func TestMulti(t *testing.T) {
	onBoth(t, func(t *testing.T, at target) {
		c, ctx := connect(t, at, Config{}), within(t)
		rs := must(c.Multi(ctx, CreateOp("/m", nil, Ephemeral), SetOp("/m", []byte("d"), 0), CheckOp("/m", 1)))(t)
		if len(rs) != 3 || rs[0].Path != "/m" || rs[1].Stat.Version != 1 {
			t.Fatal(rs)
		}
		rs, err := c.Multi(ctx, CreateOp("/n", nil, Persistent), CheckOp("/m", 7), DeleteOp("/m", -1))
		wantErr(t, err, ErrBadVersion)
		if len(rs) != 3 || rs[0].Err != nil || rs[1].Err != ErrBadVersion || rs[2].Err == nil {
			t.Fatal(rs)
		}
		_, err = c.Exists(ctx, "/n", nil)
		wantErr(t, err, ErrNoNode)
		if rs, err := c.Multi(ctx); err != nil || len(rs) != 0 {
			t.Fatal(rs, err)
		}
	})
}

func TestGetMany(t *testing.T) {
	onBoth(t, func(t *testing.T, at target) {
		c, ctx := connect(t, at, Config{}), within(t)
		var ops []Op
		paths := []string{"/missing"}
		for i := range 1000 {
			p := fmt.Sprint("/n", i)
			ops, paths = append(ops, CreateOp(p, []byte(p), Persistent)), append(paths, p)
		}
		must(c.Multi(ctx, ops...))(t)
		nodes := must(c.GetMany(ctx, paths))(t)
		wantErr(t, nodes[0].Err, ErrNoNode)
		for i, n := range nodes[1:] {
			if n.Err != nil || n.Path != paths[i+1] || string(n.Data) != n.Path || n.Stat.Version != 0 {
				t.Fatal(n)
			}
		}
		if nodes := must(c.GetMany(ctx, nil))(t); len(nodes) != 0 {
			t.Fatal(nodes)
		}
	})
}

func TestWatches(t *testing.T) {
	onBoth(t, func(t *testing.T, at target) {
		c, ctx := connect(t, at, Config{}), within(t)
		ch := make(chan Event, 10)
		watch := func(e Event) { ch <- e }
		_, err := c.Exists(ctx, "/a", watch)
		wantErr(t, err, ErrNoNode)
		must(c.Create(ctx, "/a", nil, Persistent))(t)
		expect(t, ch, Event{NodeCreated, "/a"})
		must(c.Exists(ctx, "/a", watch))(t)
		must(c.Set(ctx, "/a", nil, -1))(t)
		expect(t, ch, Event{NodeDataChanged, "/a"})
		if _, _, err := c.Children(ctx, "/a", watch); err != nil {
			t.Fatal(err)
		}
		must(c.Create(ctx, "/a/b", nil, Persistent))(t)
		expect(t, ch, Event{NodeChildrenChanged, "/a"})
		if _, _, err := c.Get(ctx, "/a/b", watch); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(ctx, "/a/b", -1); err != nil {
			t.Fatal(err)
		}
		expect(t, ch, Event{NodeDeleted, "/a/b"})
		if _, _, err := c.Get(ctx, "/a", watch); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		expect(t, ch, Event{SessionLost, "/a"})
		_, err = c.Set(ctx, "/a", nil, -1)
		wantErr(t, err, ErrClosed)
	})
}

// TestConnectionLoss: the session comes back by itself, and watches tell what was missed.
func TestConnectionLoss(t *testing.T) {
	onBoth(t, func(t *testing.T, at target) {
		ctx := within(t)
		states := make(chan State, 20)
		var cut cutter
		c := connect(t, at, Config{Dial: cut.dial, OnState: func(s State) { states <- s }, SessionTimeout: 30 * time.Second})
		other := connect(t, at, Config{Chroot: c.chroot})
		expect(t, states, Connected)
		must(c.Create(ctx, "/e", nil, Ephemeral))(t)
		must(c.Create(ctx, "/d", nil, Persistent))(t)
		must(c.Create(ctx, "/quiet", nil, Persistent))(t)
		ch := make(chan Event, 10)
		watch := func(e Event) { ch <- e }
		c.Get(ctx, "/d", watch)
		c.Get(ctx, "/quiet", watch)
		c.Children(ctx, "/quiet", watch)
		c.Exists(ctx, "/later", watch)
		id, _ := c.Session()

		cut.set(true, true, false)
		inFlight := make(chan error)
		go func() {
			_, err := c.Set(ctx, "/d", nil, -1)
			inFlight <- err
		}()
		waitInFlight(t, c, 1)
		cut.set(true, false, true)
		wantErr(t, <-inFlight, ErrConnectionLoss)
		expect(t, states, Disconnected)
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		_, err := c.Exists(short, "/d", nil)
		wantErr(t, err, context.DeadlineExceeded)
		must(other.Set(ctx, "/d", []byte("missed"), -1))(t)
		must(other.Create(ctx, "/later", nil, Persistent))(t)

		waiting := make(chan error)
		go func() {
			_, _, err := c.Get(ctx, "/d", nil)
			waiting <- err
		}()
		cut.set(false, false, false)
		expect(t, states, Reconnected)
		if err := <-waiting; err != nil {
			t.Fatal("a request did not wait for the connection:", err)
		}
		expect(t, ch, Event{NodeDataChanged, "/d"})
		expect(t, ch, Event{NodeCreated, "/later"})
		if again, _ := c.Session(); again != id {
			t.Fatal("another session")
		}
		must(other.Exists(ctx, "/e", nil))(t)
		must(other.Create(ctx, "/quiet/x", nil, Persistent))(t)
		expect(t, ch, Event{NodeChildrenChanged, "/quiet"})
		must(other.Set(ctx, "/quiet", nil, -1))(t)
		expect(t, ch, Event{NodeDataChanged, "/quiet"})
	})
}

// TestManyWatches re-arms more than one SetWatches may hold.
func TestManyWatches(t *testing.T) {
	at := ours(t)
	ctx := within(t)
	states := make(chan State, 20)
	var cut cutter
	c := connect(t, at, Config{Dial: cut.dial, OnState: func(s State) { states <- s }})
	expect(t, states, Connected)
	const n = 3000
	long := strings.Repeat("x", 400)
	ch := make(chan Event, n)
	for i := range n {
		_, err := c.Exists(ctx, fmt.Sprintf("/%s%d", long, i), func(e Event) { ch <- e })
		wantErr(t, err, ErrNoNode)
	}
	cut.set(false, false, true)
	expect(t, states, Disconnected)
	expect(t, states, Reconnected)
	for i := range n {
		if i%500 == 0 || i == n-1 {
			p := fmt.Sprintf("/%s%d", long, i)
			must(c.Create(ctx, p, nil, Persistent))(t)
			expect(t, ch, Event{NodeCreated, p})
		}
	}
}

// TestExpiry: a client that was away for too long is told so, and is dead.
func TestExpiry(t *testing.T) {
	onBoth(t, func(t *testing.T, at target) {
		ctx := within(t)
		states := make(chan State, 20)
		var cut cutter
		c := connect(t, at, Config{Dial: cut.dial, OnState: func(s State) { states <- s }, SessionTimeout: 8 * time.Second})
		other := connect(t, at, Config{Chroot: c.chroot})
		must(c.Create(ctx, "/e", nil, Ephemeral))(t)
		lost, gone := make(chan Event, 1), make(chan Event, 1)
		c.Get(ctx, "/e", func(e Event) { lost <- e })
		must(other.Exists(ctx, "/e", func(e Event) { gone <- e }))(t)
		cut.set(true, false, true)
		expect(t, gone, Event{NodeDeleted, "/e"})
		cut.set(false, false, false)
		for _, s := range []State{Connected, Disconnected, Expired} {
			expect(t, states, s)
		}
		expect(t, lost, Event{SessionLost, "/e"})
		_, err := c.Exists(ctx, "/e", nil)
		wantErr(t, err, ErrSessionExpired)
		id, password := c.Session()
		_, err = Connect(ctx, Config{Servers: []string{at.addr}, SessionID: id, Password: password})
		wantErr(t, err, ErrSessionExpired)
	})
}

// TestReattach: a restarted process takes its old session up again, and can close it.
func TestReattach(t *testing.T) {
	onBoth(t, func(t *testing.T, at target) {
		ctx := within(t)
		c := connect(t, at, Config{})
		must(c.Create(ctx, "/e", nil, Ephemeral))(t)
		id, password := c.Session()
		c.Drop()
		again := connect(t, at, Config{Chroot: c.chroot, SessionID: id, Password: password})
		if st := must(again.Exists(ctx, "/e", nil))(t); st.EphemeralOwner != id {
			t.Fatal(st)
		}
		other := connect(t, at, Config{Chroot: c.chroot})
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := other.Exists(ctx, "/e", nil)
		wantErr(t, err, ErrNoNode)
	})
}

// TestServerRestart: sessions, ephemerals and watches live through it.
func TestServerRestart(t *testing.T) {
	at := ours(t)
	ctx := within(t)
	states := make(chan State, 20)
	c := connect(t, at, Config{OnState: func(s State) { states <- s }})
	expect(t, states, Connected)
	must(c.Create(ctx, "/e", nil, Ephemeral))(t)
	ch := make(chan Event, 1)
	must(c.Exists(ctx, "/e", func(e Event) { ch <- e }))(t)
	at.restart(t)
	expect(t, states, Disconnected)
	expect(t, states, Reconnected)
	must(c.Set(ctx, "/e", nil, 0))(t)
	expect(t, ch, Event{NodeDataChanged, "/e"})
}

// TestSilentServer: a connection on which nothing comes any more is given up.
func TestSilentServer(t *testing.T) {
	at := ours(t)
	states := make(chan State, 20)
	var cut cutter
	c := connect(t, at, Config{Dial: cut.dial, OnState: func(s State) { states <- s }, SessionTimeout: 10 * time.Second})
	expect(t, states, Connected)
	cut.set(false, true, false)
	expect(t, states, Disconnected)
	cut.set(false, false, false)
	expect(t, states, Reconnected)
	must(c.Exists(within(t), "/", nil))(t)
}

// TestCallbacksMayCall: a callback that asks the server does not hang the client.
func TestCallbacksMayCall(t *testing.T) {
	at := ours(t)
	c, ctx := connect(t, at, Config{}), within(t)
	must(c.Create(ctx, "/a", []byte("1"), Persistent))(t)
	ch := make(chan string, 1)
	c.Get(ctx, "/a", func(Event) {
		b, _, err := c.Get(ctx, "/a", nil)
		ch <- fmt.Sprint(string(b), err)
	})
	must(c.Set(ctx, "/a", []byte("2"), -1))(t)
	expect(t, ch, "2<nil>")
}

func TestConnectFails(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := Connect(ctx, Config{Servers: []string{"127.0.0.1:1", "127.0.0.1:2"}})
	wantErr(t, err, context.DeadlineExceeded)
	if _, err := Connect(ctx, Config{}); err == nil {
		t.Fatal("connected to nobody")
	}
	if _, err := Connect(ctx, Config{Servers: []string{"127.0.0.1:1"}, Chroot: "kafka"}); err == nil {
		t.Fatal("a chroot without a slash")
	}
}

// TestTrouble: a server that came back without its data is named as what keeps the session away, and the session is
// there again with the data.
func TestTrouble(t *testing.T) {
	with, without := memdisk.New(memdisk.Options{}), memdisk.New(memdisk.Options{})
	s := startOurs(t, "", with)
	addr := s.Addr().String()
	states, trouble := make(chan State, 20), make(chan error, 20)
	c := connect(t, target{addr: addr}, Config{
		SessionTimeout: 30 * time.Second,
		OnState:        func(s State) { states <- s },
		OnTrouble:      func(err error) { trouble <- err },
	})
	must(c.Create(within(t), "/n", nil, Persistent))(t)
	s.Close()
	s = startOurs(t, addr, without)
	select {
	case err := <-trouble:
		if !strings.Contains(err.Error(), "zxid") || !strings.Contains(err.Error(), addr) {
			t.Fatal(err)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("nobody told of it")
	}
	s.Close()
	s = startOurs(t, addr, with)
	t.Cleanup(func() { s.Close() })
	for _, want := range []State{Connected, Disconnected, Reconnected} {
		expect(t, states, want)
	}
	must(c.Exists(within(t), "/n", nil))(t)
}
