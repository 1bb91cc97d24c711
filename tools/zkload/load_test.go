package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"platter/coord/zkserver"
	ioconn "platter/io/conn"
	"platter/tools/zktest"
)

// TestMeasures: every kind of load gets its answers, from our server and from the bare loop.
func TestMeasures(t *testing.T) {
	addr := zktest.Ours(t, zkserver.Config{})
	load(t, addr, "create", "get", "set", "exists", "children", "delete")
	f, err := os.Create(filepath.Join(t.TempDir(), "bare.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		log := &bareLog{f: f}
		for nc, err := ln.Accept(); err == nil; nc, err = ln.Accept() {
			go log.answer(nc)
		}
	}()
	load(t, ln.Addr().String(), "create", "set")
}

func laneOf(t *testing.T) *lane {
	l, err := newLane()
	if errors.Is(err, ioconn.ErrNoLoop) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return l
}

func load(t *testing.T, addr string, ops ...string) {
	b, err := newBed(laneOf(t), addr, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	for _, op := range ops {
		out, err := b.run(cell{op, 4, 8}, 30*time.Millisecond)
		if err != nil || out.Count == 0 || out.Errors > 0 {
			t.Errorf("%s: %+v, %v", op, out, err)
		}
	}
}

// TestCrowd: all watchers of a node are told, and the times are in order.
func TestCrowd(t *testing.T) {
	c, err := newCrowd(laneOf(t), zktest.Ours(t, zkserver.Config{}), 50)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for range 2 {
		r, err := c.measure()
		if err != nil || r.First <= 0 || r.First > r.Middle || r.Middle > r.Last {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// TestWipe: what is there goes, but for ZooKeeper's own.
func TestWipe(t *testing.T) {
	addr := zktest.Ours(t, zkserver.Config{})
	load(t, addr, "create")
	if err := wipe(&options{addr: addr}); err != nil {
		t.Fatal(err)
	}
	c, err := open(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.End()
	if n, err := removeBelow(c, "/"); n != 0 || err != nil {
		t.Errorf("%d nodes were left, %v", n, err)
	}
}
