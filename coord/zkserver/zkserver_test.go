package zkserver

import (
	"context"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"platter/io/clock"
	"platter/io/portable"
)

// start runs a server on a free port until the test ends. It has a poller; servers that tests start without this one
// have none.
func start(t *testing.T, c Config) *Server {
	t.Helper()
	if c.Pollers == 0 {
		c.Pollers = 1
	}
	if c.Clock == nil {
		c.Clock = clock.Real{}
	}
	if c.FS == nil {
		c.FS = portable.New()
	}
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	s, err := Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestGoZookeeper(t *testing.T) {
	s := start(t, Config{})
	c, _, err := gozk.Connect([]string{s.Addr().String()}, 5*time.Second, gozk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	world := gozk.WorldACL(gozk.PermAll)
	if p, err := c.Create("/a", []byte("x"), 0, world); err != nil || p != "/a" {
		t.Fatal(p, err)
	}
	_, _, ch, err := c.ChildrenW("/a")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := c.Create("/a/s-", nil, gozk.FlagSequence|gozk.FlagEphemeral, world); err != nil || p != "/a/s-0000000000" {
		t.Fatal(p, err)
	}
	if e := <-ch; e.Type != gozk.EventNodeChildrenChanged || e.Path != "/a" {
		t.Fatal(e)
	}
	if _, err := c.Set("/a", []byte("y"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Set("/a", []byte("y"), 0); err != gozk.ErrBadVersion {
		t.Fatal(err)
	}
	b, st, err := c.Get("/a")
	if err != nil || string(b) != "y" || st.NumChildren != 1 || st.Version != 1 {
		t.Fatal(string(b), st, err)
	}
	if _, err := c.Multi(&gozk.CreateRequest{Path: "/m", Acl: world}, &gozk.CheckVersionRequest{Path: "/a", Version: 9}); err != gozk.ErrBadVersion {
		t.Fatal(err)
	}
	if ok, _, err := c.Exists("/m"); ok || err != nil {
		t.Fatal(ok, err)
	}
}

func TestRestart(t *testing.T) {
	dir := t.TempDir()
	s, err := Start(context.Background(), Config{FS: portable.New(), Clock: clock.Real{}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := gozk.Connect([]string{s.Addr().String()}, 5*time.Second, gozk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	world := gozk.WorldACL(gozk.PermAll)
	for i := range 100 {
		if _, err := c.Create("/n-", []byte{byte(i)}, gozk.FlagSequence, world); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Create("/eph", nil, gozk.FlagEphemeral, world); err != nil {
		t.Fatal(err)
	}
	addr := s.Addr().String()
	s.Close()
	start(t, Config{Dir: dir, Addr: addr})
	for {
		p, err := c.Create("/n-", nil, gozk.FlagSequence, world)
		if err == gozk.ErrConnectionClosed || err == gozk.ErrNoServer {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if err != nil || p != "/n-0000000101" {
			t.Fatal(p, err)
		}
		break
	}
	if ok, st, err := c.Exists("/eph"); !ok || err != nil || st.EphemeralOwner != c.SessionID() {
		t.Fatal(ok, st, err)
	}
	c.Close()
}
