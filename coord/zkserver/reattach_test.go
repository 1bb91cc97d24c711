package zkserver

import (
	"fmt"
	"testing"

	"platter/coord/zk"
	"platter/io/clock"
	"platter/io/faultdisk"
	"platter/io/memdisk"
)

// bothWays runs a test with a poller, and with a goroutine for each connection.
func bothWays(t *testing.T, test func(t *testing.T, c Config)) {
	for name, pollers := range map[string]int{"poller": 1, "goroutines": -1} {
		t.Run(name, func(t *testing.T) { test(t, Config{Dir: "/zk", Pollers: pollers}) })
	}
}

// held is a server whose log can be held: script "sync log.*: hang", and "" lets it go on.
func held(t *testing.T, c Config) (*Server, *faultdisk.FS) {
	t.Helper()
	d := faultdisk.New(memdisk.New(memdisk.Options{}), 1, clock.Real{})
	c.FS = d
	s := start(t, c)
	t.Cleanup(func() { d.Script("") }) // a server that hangs does not end
	return s, d
}

func script1(t *testing.T, d *faultdisk.FS, text string) {
	t.Helper()
	if err := d.Script(text); err != nil {
		t.Fatal(err)
	}
}

// comeBack sends what attaches p's session to a new connection, and requests right behind it.
func comeBack(t *testing.T, s *Server, p *peer, requests ...[]byte) *peer {
	t.Helper()
	again := dialPeer(t, s.Addr())
	again.id, again.password = p.id, p.password
	b := zk.AppendFrame(nil, zk.ConnectRequest{TimeoutMs: 60_000, SessionID: p.id, Password: p.password}.Append)
	for _, r := range requests {
		b = append(b, r...)
	}
	again.nc.Write(b)
	return again
}

// welcomed reads the answer to comeBack: the session, 0 when it is refused.
func welcomed(t *testing.T, p *peer) int64 {
	t.Helper()
	b, err := p.read()
	if err != nil {
		t.Fatal(err)
	}
	d := zk.NewDecoder(b)
	var r zk.ConnectResponse
	if r.Decode(&d); d.Err() != nil {
		t.Fatal(d.Err())
	}
	return r.SessionID
}

// attachedAnew waits until the session has another connection than that of before.
func attachedAnew(t *testing.T, s *Server, id int64, before *conn) {
	t.Helper()
	eventually(t, func() bool {
		now := connOf(s, id)
		return now != nil && now != before
	})
}

func connOf(s *Server, id int64) *conn {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	if x := s.sessions.byID[id]; x != nil {
		return x.conn
	}
	return nil
}

// TestWhoComesBackSeesItsWrites: a write of the connection before is over when the new one is answered.
func TestWhoComesBackSeesItsWrites(t *testing.T) {
	bothWays(t, func(t *testing.T, c Config) {
		s, d := held(t, c)
		p := open(t, s, 60_000)
		before := connOf(s, p.id)
		script1(t, d, "sync log.*: hang")
		p.nc.Write(p.frame(zk.OpCreate, createBody("/x", nil, 0)))
		eventually(t, func() bool { return outstanding(s) == 1 })
		p.nc.Close()
		again := comeBack(t, s, p, p.frame(zk.OpExists, pathBody("/x", false)))
		attachedAnew(t, s, p.id, before)
		script1(t, d, "")
		if id := welcomed(t, again); id != p.id {
			t.Fatalf("session %#x", id)
		}
		if h, _ := again.next(t); h.Err != zk.OK {
			t.Fatal(h)
		}
	})
}

// TestWhatNobodyTookUpIsLost: requests that the server has not taken up are gone with their connection.
func TestWhatNobodyTookUpIsLost(t *testing.T) {
	bothWays(t, func(t *testing.T, c Config) {
		s, d := held(t, c)
		p := open(t, s, 60_000)
		p.call(t, zk.OpCreate, createBody("/many", nil, 0))
		before := connOf(s, p.id)
		script1(t, d, "sync log.*: hang")
		var all []byte
		for i := range 3 * outstandingMax {
			all = append(all, p.frame(zk.OpCreate, createBody(fmt.Sprintf("/many/%d", i), nil, 0))...)
		}
		go p.nc.Write(all)
		eventually(t, func() bool { return outstanding(s) > 0 })
		again := comeBack(t, s, p)
		attachedAnew(t, s, p.id, before)
		taken := before.attached.Load().pending.Load()
		script1(t, d, "")
		if id := welcomed(t, again); id != p.id {
			t.Fatalf("session %#x", id)
		}
		for range 3 {
			again.call(t, zk.OpSync, zk.PathRecord{Path: "/"}.Append(nil))
			again.call(t, zk.OpSetData, setBody("/many", nil, -1))
			h, r := again.call(t, zk.OpGetAllChildrenNumber, zk.PathRecord{Path: "/many"}.Append(nil))
			if n := r.Int32(); h.Err != zk.OK || int64(n) != taken || taken > outstandingMax {
				t.Fatalf("%v: %d nodes, %d requests were taken up", h, n, taken)
			}
		}
	})
}

// TestNobodyAttachesToWhatCloses: a session whose close is under way is refused, and one whose close was refused lives.
func TestNobodyAttachesToWhatCloses(t *testing.T) {
	bothWays(t, func(t *testing.T, c Config) {
		s, d := held(t, c)
		p := open(t, s, 60_000)
		script1(t, d, "sync log.*: hang")
		p.nc.Write(p.frame(zk.OpCloseSession, nil))
		eventually(t, func() bool { return outstanding(s) == 1 })
		again := comeBack(t, s, p)
		if id := welcomed(t, again); id != 0 {
			t.Fatalf("session %#x", id)
		}
		closed(t, again)
		script1(t, d, "")
		eventually(t, func() bool { return s.sessions.count() == 0 })

		p = open(t, s, 60_000)
		script1(t, d, "write log.*: ENOSPC")
		if h, _ := p.call(t, zk.OpCloseSession, nil); h.Err != zk.SystemError {
			t.Fatal(h)
		}
		closed(t, p)
		script1(t, d, "")
		if id := welcomed(t, comeBack(t, s, p)); id != p.id {
			t.Fatalf("session %#x", id)
		}
	})
}

// TestNothingBehindAFailedAuth: what a client has sent behind it is not done.
func TestNothingBehindAFailedAuth(t *testing.T) {
	bothWays(t, func(t *testing.T, c Config) {
		s, _ := held(t, c)
		p, other := open(t, s, 60_000), open(t, s, 60_000)
		p.nc.Write(append(p.frame(zk.OpAuth, zk.AuthRequest{Scheme: "none", Auth: []byte("x")}.Append(nil)),
			p.frame(zk.OpCreate, createBody("/x", nil, 0))...))
		if h, _ := p.next(t); h.Err != zk.AuthFailed {
			t.Fatal(h)
		}
		closed(t, p)
		if h, _ := other.call(t, zk.OpCreate, createBody("/x", nil, 0)); h.Err != zk.OK {
			t.Fatal(h)
		}
	})
}
