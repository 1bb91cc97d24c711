package zkclient

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"platter/coord/zkserver"
	"platter/io/clock"
	"platter/io/psync"
)

func server(t *testing.T) *zkserver.Server {
	t.Helper()
	s, err := zkserver.Start(context.Background(), zkserver.Config{FS: psync.New(), Clock: clock.Real{}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestBasics(t *testing.T) {
	s := server(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := Connect(ctx, Config{Servers: []string{s.Addr().String()}, Chroot: "/kafka/x", SessionTimeout: 6 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ensure(ctx, "/a/b/c", []byte("x")); err != nil {
		t.Fatal(err)
	}
	ch := make(chan Event, 10)
	watch := func(e Event) { ch <- e }
	if _, _, err := c.Children(ctx, "/a", watch); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exists(ctx, "/a/e-0000000001", watch); !errors.Is(err, ErrNoNode) {
		t.Fatal(err)
	}
	if p, err := c.Create(ctx, "/a/e-", nil, EphemeralSequential); err != nil || p != "/a/e-0000000001" {
		t.Fatal(p, err)
	}
	if e := <-ch; e != (Event{NodeCreated, "/a/e-0000000001"}) {
		t.Fatal(e)
	}
	if e := <-ch; e != (Event{NodeChildrenChanged, "/a"}) {
		t.Fatal(e)
	}
	rs, err := c.Multi(ctx, SetOp("/a/b", []byte("1"), 0), CheckOp("/a/b", 0))
	if !errors.Is(err, ErrBadVersion) || rs[0].Err != nil || rs[1].Err != ErrBadVersion {
		t.Fatal(rs, err)
	}
	if b, st, err := c.Get(ctx, "/a/b", watch); err != nil || st.Version != 0 {
		t.Fatal(b, st, err)
	}
	var ops []Op
	var paths []string
	for i := range 1000 {
		p := fmt.Sprintf("/a/n%d", i)
		ops, paths = append(ops, CreateOp(p, []byte(p), Persistent)), append(paths, p)
	}
	if _, err := c.Multi(ctx, ops...); err != nil {
		t.Fatal(err)
	}
	paths = append(paths, "/none")
	ns, err := c.GetMany(ctx, paths)
	if err != nil || len(ns) != 1001 || string(ns[999].Data) != "/a/n999" || !errors.Is(ns[1000].Err, ErrNoNode) {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if e := <-ch; e != (Event{SessionLost, "/a/b"}) {
		t.Fatal(e)
	}
}
