package zkserver

import (
	"testing"

	"platter/coord/zk"
	"platter/io/memdisk"
)

// longNode makes a node with nearly as much data as one can hold.
func longNode(t *testing.T, p *peer, path string) {
	t.Helper()
	if h, _ := p.call(t, zk.OpCreate, createBody(path, make([]byte, 1_000_000), 0)); h.Err != zk.OK {
		t.Fatal(h)
	}
}

// TestLongAnswersBehindWrites: a client that reads gets all its answers, in order, however long they are together.
func TestLongAnswersBehindWrites(t *testing.T) {
	s := start(t, Config{FS: memdisk.New(memdisk.Options{}), Dir: "/zk"})
	p := open(t, s, 10_000)
	longNode(t, p, "/long")
	sent := make(chan []byte, 1)
	var requests []byte
	first := p.xid + 1
	for range 2 {
		requests = append(requests, p.frame(zk.OpSetData, setBody("/long", make([]byte, 999_000), -1))...)
		for range 50 {
			requests = append(requests, p.frame(zk.OpGetData, pathBody("/long", false))...)
			requests = append(requests, p.frame(zk.OpGetChildren, pathBody("/", false))...)
		}
	}
	go func() {
		p.nc.Write(requests)
		sent <- requests
	}()
	for xid := first; xid <= p.xid; xid++ {
		if h, _ := p.next(t); h.Xid != xid || h.Err != zk.OK {
			t.Fatalf("%v, want the answer to %d", h, xid)
		}
	}
	<-sent
}

// TestMultiReadBomb: a short multiRead that asks for gigabytes costs its own connection, and little memory.
func TestMultiReadBomb(t *testing.T) {
	s := start(t, Config{FS: memdisk.New(memdisk.Options{}), Dir: "/zk"})
	p := open(t, s, 10_000)
	longNode(t, p, "/l")
	var bomb zk.MultiReadRequest
	for range 40_000 { // forty gigabytes
		bomb.Ops = append(bomb.Ops, zk.MultiReadOp{Op: zk.OpGetData, PathWatchRequest: zk.PathWatchRequest{Path: "/l"}})
	}
	p.nc.Write(p.frame(zk.OpMultiRead, bomb.Append(nil)))
	closed(t, p)
	alive(t, s)
}
