//go:build unix

package zkhostile

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"platter/tools/zkwire"
)

// descriptors skips the test where so many connections cannot be had.
func descriptors(t *testing.T, n uint64) {
	t.Helper()
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || uint64(l.Cur) < n {
		t.Skipf("needs %d file descriptors, there are %d (%v)", n, l.Cur, err)
	}
}

// TestIdleConnections: 5,000 sessions at once.
func TestIdleConnections(t *testing.T) {
	const sessions, atOnce = 5000, 50
	descriptors(t, sessions+500)
	v := start(t)
	var all sync.WaitGroup
	conns := make([]*zkwire.Conn, sessions)
	for w := range atOnce {
		all.Go(func() {
			for i := w; i < sessions; i += atOnce {
				c, err := zkwire.Open(v.Addr, timeoutMs)
				if err != nil {
					t.Error(err)
					return
				}
				conns[i] = c
			}
		})
	}
	all.Wait()
	v.stillServes(fmt.Sprintf("%d idle sessions", sessions), 250)
	for _, c := range conns {
		if c != nil {
			c.NC.Close()
		}
	}
}

// TestMillionWatches: ten sessions with 100,000 watches each, on paths that all differ.
func TestMillionWatches(t *testing.T) {
	v := start(t)
	const sessions, each, atOnce = 10, 100_000, 20_000
	for s := range sessions {
		c := v.open(timeoutMs)
		for from := 0; from < each; from += atOnce {
			var paths []string
			for i := range atOnce {
				paths = append(paths, fmt.Sprintf("/watched/%d/%d", s, from+i))
			}
			r, _, err := c.CallXid(zkwire.XidSetWatches, zkwire.OpSetWatches, func(e *zkwire.Enc) {
				e.I64(1 << 40)
				e.Strs(nil)
				e.Strs(paths) // for what is not there yet
				e.Strs(nil)
			})
			if err != nil || r.Err != 0 {
				t.Fatal(r.Err, err)
			}
		}
	}
	v.stillServes("a million watches", 700)
	c := v.open(timeoutMs)
	v.create(c, "/watched", nil, 0)
	v.create(c, "/watched/7", nil, 0)
	v.create(c, "/watched/7/99999", nil, 0)
}

// multiCreate makes nodes below parent by one multi.
func multiCreate(parent string, from, n int) zkwire.Body {
	return func(e *zkwire.Enc) {
		for i := range n {
			e.MultiHeader(zkwire.OpCreate, false)
			zkwire.Create(fmt.Sprintf("%s/child-%06d", parent, from+i), nil, 0)(e)
		}
		e.MultiHeader(-1, true)
	}
}

// TestManyChildren: 100,000 nodes under one. The list of them is longer than jute.maxbuffer, and is sent all the same, as
// by Apache's server: the bound is the client's to set.
func TestManyChildren(t *testing.T) {
	v := start(t)
	const children, atOnce = 100_000, 2000
	v.create(v.witness, "/parent", nil, 0)
	for from := 0; from < children; from += atOnce {
		if r := v.call(v.witness, zkwire.OpMulti, multiCreate("/parent", from, atOnce)); r.Err != 0 {
			t.Fatal(r.Err)
		}
	}
	for _, op := range []int32{zkwire.OpGetChildren, zkwire.OpGetChildren2} {
		r := v.call(v.witness, op, zkwire.PathWatch("/parent", false))
		d := zkwire.Dec{B: r.Body}
		if n := len(d.Strs()); n != children || len(r.Body) < frameBytesMax {
			t.Errorf("%d names in %d bytes", n, len(r.Body))
		}
	}
	v.stillServes("100,000 children", 200)
}

// TestHugeMultis: as many operations as a frame can hold, which all are done, or none since the last one fails.
func TestHugeMultis(t *testing.T) {
	v := start(t)
	v.create(v.witness, "/multi", nil, 0)
	const checks = 40_000 // of 22 bytes each
	body := func(last string) zkwire.Body {
		return func(e *zkwire.Enc) {
			for range checks {
				e.MultiHeader(zkwire.OpCheck, false)
				zkwire.PathInt("/multi", -1)(e)
			}
			e.MultiHeader(zkwire.OpDelete, false)
			zkwire.PathInt(last, -1)(e)
			e.MultiHeader(-1, true)
		}
	}
	for range 5 {
		if r := v.call(v.witness, zkwire.OpMulti, body("/none")); r.Err != 0 || len(r.Body) < checks*13 {
			t.Fatalf("error %d, %d bytes", r.Err, len(r.Body))
		}
	}
	if r := v.call(v.witness, zkwire.OpMulti, body("/multi")); r.Err != 0 {
		t.Fatal(r.Err)
	}
	if r := v.call(v.witness, zkwire.OpExists, zkwire.PathWatch("/multi", false)); r.Err != zkwire.ErrNoNode {
		t.Errorf("the last operation was not done: %d", r.Err)
	}
	v.stillServes("huge multis", 200)
}

// TestDeepPaths: a path of half a million names, and a tree that is 2,000 nodes deep under a recursive watch.
func TestDeepPaths(t *testing.T) {
	v := start(t)
	abyss := strings.Repeat("/a", 500_000)
	for _, op := range []int32{zkwire.OpExists, zkwire.OpGetData, zkwire.OpGetChildren} {
		if r := v.call(v.witness, op, zkwire.PathWatch(abyss, op == zkwire.OpExists)); r.Err != zkwire.ErrNoNode {
			t.Errorf("operation %d: error %d", op, r.Err)
		}
	}
	if r := v.call(v.witness, zkwire.OpCreate, zkwire.Create(abyss, nil, 0)); r.Err != zkwire.ErrNoNode {
		t.Errorf("create: error %d", r.Err)
	}
	if r := v.call(v.witness, zkwire.OpAddWatch, zkwire.PathInt(abyss, 1)); r.Err != 0 {
		t.Errorf("addWatch: error %d", r.Err)
	}
	c := v.open(timeoutMs)
	if r := v.call(c, zkwire.OpAddWatch, zkwire.PathInt("/", 1)); r.Err != 0 {
		t.Fatal(r.Err)
	}
	const deep = 2000
	path := ""
	for range deep {
		path += "/d"
		v.create(c, path, nil, 0)
	}
	v.stillServes("deep paths", 200)
}

// TestUnreadReplies: clients that ask for a large node again and again, and read nothing, are held back: their requests
// wait in their own sockets.
func TestUnreadReplies(t *testing.T) {
	v := start(t, "tickTime=300")
	v.create(v.witness, "/large", make([]byte, 1<<20-1000), 0)
	const clients, requests = 20, 500
	var all sync.WaitGroup
	for range clients {
		c := v.open(3000)
		all.Go(func() {
			// Once the server does not take more, writing would wait for ever.
			c.NC.SetWriteDeadline(time.Now().Add(3 * time.Second))
			for range requests {
				if _, err := c.Send(zkwire.OpGetData, zkwire.PathWatch("/large", false)); err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	v.stillServes(fmt.Sprintf("%d clients that read none of %d large replies", clients, requests), 300)
}

// TestDeafWatchers: clients that watch everything and read nothing lose their connections; until then what they are owed
// is bounded.
func TestDeafWatchers(t *testing.T) {
	v := start(t)
	const clients, changes, atOnce = 20, 100_000, 1000
	deaf := make([]*zkwire.Conn, clients)
	for i := range deaf {
		deaf[i] = v.open(timeoutMs)
		if r := v.call(deaf[i], zkwire.OpAddWatch, zkwire.PathInt("/", 1)); r.Err != 0 {
			t.Fatal(r.Err)
		}
	}
	parent := "/" + strings.Repeat("long", 100)
	v.create(v.witness, parent, nil, 0)
	c := v.open(timeoutMs)
	for range changes / atOnce {
		r := v.call(c, zkwire.OpMulti, func(e *zkwire.Enc) {
			for range atOnce {
				e.MultiHeader(zkwire.OpSetData, false)
				zkwire.Set(parent, nil, -1)(e)
			}
			e.MultiHeader(-1, true)
		})
		if r.Err != 0 {
			t.Fatal(r.Err)
		}
	}
	v.stillServes(fmt.Sprintf("%d watchers that read none of %d events", clients, changes), 600)
	for _, c := range deaf {
		v.closed(c)
	}
	v.stillServes("and then", 600)
	v.logged("more answers than its client reads")
}
