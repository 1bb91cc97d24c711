package zkclient

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPersistentWatches: they stay, over a reconnect too, until they are removed.
func TestPersistentWatches(t *testing.T) {
	onBoth(t, func(t *testing.T, at target) {
		ctx := within(t)
		states := make(chan State, 20)
		var cut cutter
		c := connect(t, at, Config{Dial: cut.dial, OnState: func(s State) { states <- s }, SessionTimeout: 30 * time.Second})
		other := connect(t, at, Config{Chroot: c.chroot})
		expect(t, states, Connected)
		must(c.Create(ctx, "/p", nil, Persistent))(t)
		tree, twin := make(chan Event, 20), make(chan Event, 20)
		removeTwin := must(c.AddWatch(ctx, "/p", true, func(e Event) { twin <- e }))(t)
		removeTree := must(c.AddWatch(ctx, "/p", true, func(e Event) { tree <- e }))(t)
		for range 2 {
			must(other.Set(ctx, "/p", nil, -1))(t)
			expect(t, tree, Event{NodeDataChanged, "/p"})
		}
		if err := removeTwin(ctx); err != nil { // the other one goes on
			t.Fatal(err)
		}
		must(other.Create(ctx, "/p/q", nil, Persistent))(t)
		expect(t, tree, Event{NodeCreated, "/p/q"})

		cut.set(false, false, true)
		expect(t, states, Disconnected)
		expect(t, states, Reconnected)
		expect(t, tree, Event{Missed, "/p"})
		must(c.Exists(ctx, "/p", nil))(t) // behind SetWatches
		must(other.Set(ctx, "/p/q", nil, -1))(t)
		expect(t, tree, Event{NodeDataChanged, "/p/q"})
		if err := removeTree(ctx); err != nil {
			t.Fatal(err)
		}
		must(other.Set(ctx, "/p/q", nil, -1))(t)
		must(c.Exists(ctx, "/p/q", nil))(t)
		if len(tree) > 0 {
			t.Fatal("an event after the watch was removed:", <-tree)
		}
	})
}

// TestPersistentNode: both data and children, again and again.
func TestPersistentNode(t *testing.T) {
	onBoth(t, func(t *testing.T, at target) {
		ctx := within(t)
		c := connect(t, at, Config{})
		other := connect(t, at, Config{Chroot: c.chroot})
		ch := make(chan Event, 20)
		remove := must(c.AddWatch(ctx, "/n", false, func(e Event) { ch <- e }))(t)
		must(other.Create(ctx, "/n", nil, Persistent))(t)
		expect(t, ch, Event{NodeCreated, "/n"})
		for range 2 {
			must(other.Set(ctx, "/n", nil, -1))(t)
			expect(t, ch, Event{NodeDataChanged, "/n"})
			must(other.Create(ctx, "/n/s-", nil, PersistentSequential))(t)
			expect(t, ch, Event{NodeChildrenChanged, "/n"})
		}
		if err := remove(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSlowCallback: events that no slow callback can wait for are lost, and that is told.
func TestSlowCallback(t *testing.T) {
	at := ours(t)
	ctx := within(t)
	c, other := connect(t, at, Config{}), connect(t, at, Config{})
	other.chroot = c.chroot
	must(c.Create(ctx, "/n", nil, Persistent))(t)
	hold, got := make(chan struct{}), make(chan Event, 3*waitingMax)
	must(c.AddWatch(ctx, "/n", false, func(e Event) {
		<-hold
		got <- e
	}))(t)
	const batch = 500
	for range 2 * waitingMax / batch {
		ops := slices.Repeat([]Op{SetOp("/n", nil, -1)}, batch)
		must(other.Multi(ctx, ops...))(t)
	}
	must(c.Exists(ctx, "/n", nil))(t)
	close(hold)
	n := 0
	for e := range got {
		if e.Type == Missed {
			break
		}
		n++
	}
	if n < waitingMax/2 || n > waitingMax+batch {
		t.Errorf("%d events before it was told that some were lost", n)
	}
	must(other.Set(ctx, "/n", nil, -1))(t)
	expect(t, got, Event{NodeDataChanged, "/n"})
}

func TestAccess(t *testing.T) {
	onBoth(t, func(t *testing.T, at target) {
		ctx := within(t)
		states := make(chan State, 20)
		var cut cutter
		c := connect(t, at, Config{Dial: cut.dial, OnState: func(s State) { states <- s }})
		expect(t, states, Connected)
		other := connect(t, at, Config{Chroot: c.chroot})
		if err := c.AddAuth(ctx, "digest", []byte("ann:secret")); err != nil {
			t.Fatal(err)
		}
		only := []ACL{{Perms: 31}}
		only[0].Scheme, only[0].ID.ID = "auth", ""
		path, st, err := c.CreateWith(ctx, "/mine", []byte("x"), CreateOptions{ACL: only})
		if err != nil || path != "/mine" || st.DataLength != 1 {
			t.Fatal(path, st, err)
		}
		_, _, err = other.Get(ctx, "/mine", nil)
		wantErr(t, err, ErrNoAuth)
		cut.set(false, false, true)
		expect(t, states, Disconnected)
		expect(t, states, Reconnected)
		if b, _, err := c.Get(ctx, "/mine", nil); err != nil || string(b) != "x" {
			t.Fatal("who has authenticated is forgotten after a reconnect:", err)
		}
		acl, _, err := c.GetACL(ctx, "/mine")
		if err != nil || len(acl) != 1 || acl[0].Scheme != "digest" || acl[0].Perms != 31 {
			t.Fatal(acl, err)
		}
		if st := must(c.SetACL(ctx, "/mine", OpenACL(), 0))(t); st.Aversion != 1 {
			t.Fatal(st)
		}
		must(other.Exists(ctx, "/mine", nil))(t)
		if p, _, err := c.CreateWith(ctx, "/box", nil, CreateOptions{Container: true}); err != nil || p != "/box" {
			t.Fatal(p, err)
		}
		_, _, err = c.CreateWith(ctx, "/brief", nil, CreateOptions{TTL: time.Minute})
		wantErr(t, err, ErrUnsupported)
		wantErr(t, other.AddAuth(ctx, "nosuch", nil), ErrAuthFailed)
	})
}

func TestParseConnect(t *testing.T) {
	for in, want := range map[string]string{
		"h":                  "[h:2181]",
		"h:1,[::1]:2, k /a/": "[h:1 [::1]:2 k:2181]/a",
		"h/":                 "[h:2181]",
		"":                   "error",
		"/a":                 "error",
		"h//a":               "error",
	} {
		servers, chroot, err := ParseConnect(in)
		got := fmt.Sprint(servers, chroot)
		if err != nil {
			got = "error"
		}
		if got = strings.ReplaceAll(got, "] /", "]/"); strings.TrimSpace(got) != want {
			t.Errorf("%q: %q, want %q (%v)", in, got, want, err)
		}
	}
}
