package zkserver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"platter/coord/tree"
	"platter/coord/zk"
	ioconn "platter/io/conn"
	"platter/io/memdisk"
)

// alive fails the test unless a new client is served.
func alive(t *testing.T, s *Server) {
	t.Helper()
	p := open(t, s, 10_000)
	if h, _ := p.call(t, zk.OpGetData, pathBody("/", false)); h.Err != zk.OK {
		t.Fatal(h)
	}
}

// closed waits until the server has closed the connection.
func closed(t *testing.T, p *peer) {
	t.Helper()
	for {
		if _, err := p.read(); err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				t.Fatal("the connection stays open")
			}
			return
		}
	}
}

// TestHostileFrames: each costs its own connection at most.
func TestHostileFrames(t *testing.T) {
	s := start(t, Config{FS: memdisk.New(memdisk.Options{}), Dir: "/zk"})
	length := func(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	for name, b := range map[string][]byte{
		"negative length": length(-1),
		"huge length":     length(1<<31 - 1),
		"one too many":    length(zk.MaxFrameBytes + 1),
		"http":            []byte("GET / HTTP/1.1\r\n\r\n"),
		"tls hello":       {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3},
		"short connect":   append(length(4), 0, 0, 0, 0),
		"lying password":  append(length(28), append(make([]byte, 24), 0x7f, 0xff, 0xff, 0xff)...),
	} {
		t.Run("first/"+name, func(t *testing.T) {
			p := dialPeer(t, s.Addr())
			p.nc.Write(b)
			closed(t, p)
		})
		if name == "lying password" {
			continue // behind the handshake it is a request header like any other
		}
		t.Run("later/"+name, func(t *testing.T) {
			p := open(t, s, 10_000)
			p.nc.Write(b)
			closed(t, p)
		})
	}
	alive(t, s)
}

// TestGarbageRecords: random bodies under every operation number get a reply or cost the connection.
func TestGarbageRecords(t *testing.T) {
	s := start(t, Config{FS: memdisk.New(memdisk.Options{}), Dir: "/zk"})
	r := rand.New(rand.NewPCG(1, 1))
	for op := int32(-12); op < 120; op++ {
		for range 4 {
			body := make([]byte, r.IntN(60))
			for i := range body {
				body[i] = byte(r.IntN(3) * r.IntN(256))
			}
			p := open(t, s, 10_000)
			p.nc.Write(p.frame(zk.Op(op), body))
			p.nc.(*net.TCPConn).CloseWrite()
			closed(t, p)
		}
	}
	alive(t, s)
}

// TestSilentPeers: announcing a frame takes no memory for it.
func TestSilentPeers(t *testing.T) {
	s := start(t, Config{FS: memdisk.New(memdisk.Options{}), Dir: "/zk"})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	announced := binary.BigEndian.AppendUint32(nil, zk.MaxFrameBytes)
	for range 300 {
		nc, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.Write(append(announced, 0))
	}
	alive(t, s)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 100<<20 {
		t.Fatalf("300 silent peers take %d MiB", grown>>20)
	}
}

// TestDeafPeer: a client that asks for much and reads nothing loses its connection, nobody else waits.
func TestDeafPeer(t *testing.T) {
	s := start(t, Config{FS: memdisk.New(memdisk.Options{}), Dir: "/zk", TickMs: 500})
	p := open(t, s, 1500)
	if h, _ := p.call(t, zk.OpCreate, createBody("/big", make([]byte, 900<<10), 0)); h.Err != zk.OK {
		t.Fatal(h)
	}
	go func() {
		for p.nc != nil {
			if _, err := p.nc.Write(p.frame(zk.OpGetData, pathBody("/big", false))); err != nil {
				return
			}
		}
	}()
	w := open(t, s, 10_000)
	for range 50 {
		w.call(t, zk.OpCreate, createBody("/s-", nil, 2))
	}
	deadline := time.Now().Add(60 * time.Second)
	for s.conns.count() > 1 {
		if time.Now().After(deadline) {
			t.Fatal("the deaf peer is still connected")
		}
		w.call(t, zk.OpPing, nil)
		time.Sleep(10 * time.Millisecond)
	}
}

func TestConnectionLimits(t *testing.T) {
	s := start(t, Config{FS: memdisk.New(memdisk.Options{}), Dir: "/zk", MaxClientCnxns: 3})
	var peers []*peer
	for range 3 {
		peers = append(peers, open(t, s, 10_000))
	}
	closed(t, dialPeer(t, s.Addr()))
	peers[0].call(t, zk.OpCloseSession, nil)
	closed(t, peers[0])
	for began := time.Now(); s.conns.count() > 2 && time.Since(began) < 60*time.Second; {
		time.Sleep(time.Millisecond)
	}
	alive(t, s)
}

// TestConnectionsWithinDescriptors: there are never more connections than the process may have descriptors for.
func TestConnectionsWithinDescriptors(t *testing.T) {
	most := max(ioconn.DescriptorLimit()-descriptorsSpare, 1)
	for asked, want := range map[int]int{0: min(maxCnxnsDefault, most), 1: 1, most: most, most + 1: most} {
		if got := withDefaults(Config{MaxCnxns: asked}).MaxCnxns; got != want {
			t.Errorf("%d asked for: %d, want %d", asked, got, want)
		}
	}
}

// TestBigNode: a long list of children is sent whole.
func TestBigNode(t *testing.T) {
	s := start(t, Config{FS: memdisk.New(memdisk.Options{}), Dir: "/zk"})
	p := open(t, s, 10_000)
	const n = 20_000
	for from := 0; from < n; from += 2000 {
		var q zk.MultiRequest
		for i := range 2000 {
			q.Ops = append(q.Ops, zk.MultiOp{Op: zk.OpCreate, Create: zk.CreateRequest{
				Path: fmt.Sprintf("/%050d", from+i), ACL: zk.WorldAnyone(),
			}})
		}
		if h, _ := p.call(t, zk.OpMulti, q.Append(nil)); h.Err != zk.OK {
			t.Fatal(h)
		}
	}
	p.nc.Write(p.frame(zk.OpGetChildren, pathBody("/", false)))
	var head [4]byte
	p.nc.Read(head[:])
	want := int(binary.BigEndian.Uint32(head[:]))
	if want < n*50 {
		t.Fatal(want)
	}
	var got bytes.Buffer
	buf := make([]byte, 1<<16)
	for got.Len() < want {
		n, err := p.nc.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(buf[:n])
	}
	alive(t, s)
}

// TestManyWatches: watches without end cost their connection, and are gone with it.
func TestManyWatches(t *testing.T) {
	s := start(t, Config{FS: memdisk.New(memdisk.Options{}), Dir: "/zk"})
	p := open(t, s, 10_000)
	go func() {
		long := bytes.Repeat([]byte("x"), 900<<10)
		for i := range 100 {
			if _, err := p.nc.Write(p.frame(zk.OpExists, pathBody(fmt.Sprint("/", string(long), i), true))); err != nil {
				return
			}
		}
	}()
	closed(t, p)
	alive(t, s)
	for began := time.Now(); s.conns.count() > 1; time.Sleep(time.Millisecond) {
		if time.Since(began) > 60*time.Second {
			t.Fatal("the connection stays")
		}
	}
	if _, all := s.watches.Add(tree.WatchData, tree.OneShot, "/", nil); all > 1000 {
		t.Fatalf("%d bytes of watches are left", all)
	}
}

// TestTooManyIdentities: a client that proves to be ever more people is let go, and what it writes stays bounded.
func TestTooManyIdentities(t *testing.T) {
	s := start(t, Config{FS: memdisk.New(memdisk.Options{}), Dir: "/zk"})
	for _, user := range []string{"u", strings.Repeat("u", 20_000)} {
		p := open(t, s, 10_000)
		failed := false
		for i := range 2 * identitiesMax {
			h, _ := p.call(t, zk.OpAuth, zk.AuthRequest{Scheme: "digest", Auth: fmt.Appendf(nil, "%s%d:p", user, i)}.Append(nil))
			if failed = h.Err == zk.AuthFailed; failed {
				break
			}
			if h, _ := p.call(t, zk.OpSetData, setBody("/", nil, -1)); h.Err != zk.OK {
				t.Fatal(h.Err)
			}
		}
		if !failed {
			t.Errorf("%d identities of %d bytes", 2*identitiesMax, len(user))
		}
		closed(t, p)
	}
	alive(t, s)
}

// TestInventedNamespaces: what clients ask for in vain is in no figures, and keeps nobody else out of them.
func TestInventedNamespaces(t *testing.T) {
	s := start(t, Config{FS: memdisk.New(memdisk.Options{}), Dir: "/zk", FourLetterWords: []string{"mntr"}})
	p := open(t, s, 10_000)
	for i := range namespacesMax + 1 {
		path := fmt.Sprintf("/invented%d\nzk_forged\t1\n", i)
		for _, op := range []zk.Op{zk.OpExists, zk.OpGetData, zk.OpGetChildren} {
			if h, _ := p.call(t, op, pathBody(path, false)); h.Err == zk.OK {
				t.Fatal(h)
			}
		}
	}
	for _, path := range []string{"/real", "/" + strings.Repeat("x", namespaceBytesMax+1)} {
		if h, _ := p.call(t, zk.OpCreate, createBody(path, nil, 0)); h.Err != zk.OK {
			t.Fatal(h)
		}
		if h, _ := p.call(t, zk.OpExists, pathBody(path, false)); h.Err != zk.OK {
			t.Fatal(h)
		}
	}
	text := s.mntrWord()
	for _, x := range []struct {
		what  string
		there bool
	}{{"zk_cnt_real_read_per_namespace\t1\n", true}, {"zk_cnt_real_write_per_namespace\t1\n", true}, {"invented", false}, {"forged", false}, {"xxxx", false}} {
		if strings.Contains(text, x.what) != x.there {
			t.Errorf("%q is there: %v", x.what, !x.there)
		}
	}
}

// TestLongReadsBehindWrites: the reads of many clients that wait for writes take bounded memory, and are answered.
func TestLongReadsBehindWrites(t *testing.T) {
	bothWays(t, func(t *testing.T, c Config) {
		s, d := held(t, c)
		const reads, bodyBytes = 2, 1_000_000 // one of them is what a connection may hold
		peers := make([]*peer, heldBodiesMax/bodyBytes+8)
		for i := range peers {
			peers[i] = open(t, s, 60_000)
		}
		script1(t, d, "sync log.*: hang")
		for _, p := range peers {
			b := p.frame(zk.OpCreate, createBody("/n-", nil, zk.FlagSequential))
			for range reads {
				b = append(b, p.frame(zk.OpExists, pathBody("/"+strings.Repeat("x", bodyBytes), false))...)
			}
			go p.nc.Write(b)
		}
		eventually(t, func() bool { return outstanding(s) >= len(peers) })
		// What is queued beside one write of each is held.
		eventually(t, func() bool { return outstanding(s)-len(peers) >= heldBodiesMax/bodyBytes*3/4 })
		if n := outstanding(s) - len(peers); n > heldBodiesMax/bodyBytes {
			t.Fatalf("%d reads of %d bytes wait", n, bodyBytes)
		}
		script1(t, d, "")
		for _, p := range peers {
			for i := range 1 + reads {
				if h, _ := p.next(t); h.Xid != int32(1+i) || (h.Err == zk.OK) != (i == 0) {
					t.Fatal(h)
				}
			}
		}
		eventually(t, func() bool { return s.heldBodies.Load() == 0 })
	})
}
