package zkserver

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"platter/coord/zk"
	"platter/io/buf"
	ioconn "platter/io/conn"
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

// TestLongList: the names of a node's children are given however long they are together, and when nobody reads them they
// cost little but the connection: the room for them is taken once.
func TestLongList(t *testing.T) {
	s := start(t, Config{FS: memdisk.New(memdisk.Options{}), Dir: "/zk"})
	p := open(t, s, 10_000)
	p.frames = ioconn.NewFrameReader(t.Context(), p.nc, ioconn.FrameConfig{Pool: buf.New(64 << 20), BytesMax: 64 << 20})
	const children, nameBytes = 450, 80_000 // 36 MB
	name := strings.Repeat("n", nameBytes)
	call := func(op zk.Op, body []byte) {
		t.Helper()
		if h, _ := p.call(t, op, body); h.Err != zk.OK {
			t.Fatal(h)
		}
	}
	call(zk.OpCreate, createBody("/many", nil, 0))
	for range children / 10 {
		var q zk.MultiRequest
		for range 10 {
			q.Ops = append(q.Ops, zk.MultiOp{Op: zk.OpCreate, Create: zk.CreateRequest{
				Path: "/many/" + name, ACL: zk.WorldAnyone(), Flags: zk.FlagSequential,
			}})
		}
		call(zk.OpMulti, q.Append(nil))
	}
	list := func() {
		h, d := p.call(t, zk.OpGetChildren2, pathBody("/many", false))
		var r zk.GetChildrenResponse
		if r.Decode(d, zk.OpGetChildren2); h.Err != zk.OK || d.Err() != nil || len(r.Names) != children || r.Stat.NumChildren != children {
			t.Fatal(h, d.Err(), len(r.Names))
		}
	}
	list()
	// Behind a write the committer makes it.
	p.nc.Write(append(p.frame(zk.OpSetData, setBody("/many", nil, -1)), p.frame(zk.OpGetChildren, pathBody("/many", false))...))
	for range 2 {
		if h, _ := p.next(t); h.Err != zk.OK {
			t.Fatal(h)
		}
	}
	// Many who ask and do not read: some of them are closed, and the others have their answers.
	idle := make([]*peer, 6)
	for i := range idle {
		idle[i] = open(t, s, 60_000)
		request := idle[i].frame(zk.OpGetChildren, pathBody("/many", false))
		idle[i].nc.Write(append(request, request...))
	}
	eventually(t, func() bool { return s.backlog.Load() > 0 })
	if most := int64(backlogBytesMax + answerBytesMax); s.backlog.Load() > most {
		t.Fatalf("%d bytes wait, %d may", s.backlog.Load(), most)
	}
	alive(t, s)
	for _, x := range idle {
		x.nc.Close()
	}
	eventually(t, func() bool { return s.backlog.Load() == 0 })
	list()
}

// TestUnreadAnswersCount: what a client leaves unread is in the sum of all, also when it is little.
func TestUnreadAnswersCount(t *testing.T) {
	bothWays(t, func(t *testing.T, c Config) {
		s, _ := held(t, c)
		p := open(t, s, 60_000)
		const bytes = 200_000
		if h, _ := p.call(t, zk.OpCreate, createBody("/n", make([]byte, bytes), 0)); h.Err != zk.OK {
			t.Fatal(h)
		}
		deaf := slowPeer(t, s)
		if r, err := deaf.connect(zk.ConnectRequest{TimeoutMs: 40_000}); err != nil || r.SessionID == 0 {
			t.Fatal(r, err)
		}
		var all []byte
		for range longAnswer / bytes {
			all = append(all, deaf.frame(zk.OpGetData, pathBody("/n", false))...)
		}
		deaf.nc.Write(all)
		eventually(t, func() bool { return s.backlog.Load() >= bytes })
		deaf.nc.Close()
		eventually(t, func() bool { return s.backlog.Load() == 0 })
	})
}

// eventually waits until something is so.
func eventually(t *testing.T, so func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come to be within a minute")
		}
	}
}

// TestLongRequests: with a longer jute.maxbuffer a node holds more than a batch of the log, and a restart reads it
// again, from the log and from a snapshot.
func TestLongRequests(t *testing.T) {
	fs := memdisk.New(memdisk.Options{})
	config := Config{FS: fs, Dir: "/zk", FrameBytesMax: 64 << 20}
	long := bytes.Repeat([]byte("0123456789abcdef"), 20<<20/16)
	longReader := func(p *peer) {
		p.frames = ioconn.NewFrameReader(t.Context(), p.nc, ioconn.FrameConfig{Pool: buf.New(64 << 20), BytesMax: 64 << 20})
	}
	s := start(t, config)
	p := open(t, s, 10_000)
	longReader(p)
	if h, _ := p.call(t, zk.OpCreate, createBody("/long", long, 0)); h.Err != zk.OK {
		t.Fatal(h)
	}
	for range 2 {
		p.nc.Close()
		if err := s.Close(); err != nil { // the log is long: this makes a snapshot, which the next start reads
			t.Fatal(err)
		}
		s = start(t, config)
		p = open(t, s, 10_000)
		longReader(p)
		h, d := p.call(t, zk.OpGetData, pathBody("/long", false))
		var r zk.GetDataResponse
		if r.Decode(d); h.Err != zk.OK || !bytes.Equal(r.Data, long) {
			t.Fatal(h, len(r.Data))
		}
	}
}
