package zkserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"platter/coord/zk"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/faultdisk"
	"platter/io/memdisk"
)

// witness is what clients of a server know for certain: what they were answered before it died.
type witness struct {
	t        *testing.T
	s        *Server
	peers    map[string]*peer
	there    map[string]string // node → whose ephemeral it is, or ""
	suffix   int64             // the highest sequence number given
	zxid     int64             // the highest seen
	sessions map[string]*peer  // that were opened and not closed
	closed   []*peer
}

// errDied: the server did not answer.
var errDied = errors.New("the server died")

// call is peer.call for a server that may die.
func (w *witness) call(who string, op zk.Op, body []byte) (zk.ReplyHeader, *zk.Decoder, error) {
	p := w.peers[who]
	if p == nil {
		return zk.ReplyHeader{}, nil, errDied
	}
	p.nc.Write(p.frame(op, body))
	b, err := p.read()
	if err != nil {
		return zk.ReplyHeader{}, nil, errDied
	}
	d := zk.NewDecoder(b)
	var h zk.ReplyHeader
	h.Decode(&d)
	if h.Err != zk.OK {
		return h, nil, fmt.Errorf("%s: operation %d: %v", who, op, h.Err)
	}
	w.zxid = max(w.zxid, h.Zxid)
	return h, &d, nil
}

// attach connects a peer, to the session of an earlier one (nil: a new session).
func (w *witness) attach(who string, old *peer) error {
	nc, err := net.Dial("tcp", w.s.Addr().String())
	if err != nil {
		return errDied
	}
	nc.Close()
	p := dialPeer(w.t, w.s.Addr())
	q := zk.ConnectRequest{TimeoutMs: 4000, LastZxidSeen: w.zxid}
	if old != nil {
		q.SessionID, q.Password = old.id, old.password
	}
	r, err := p.connect(q)
	switch {
	case err != nil:
		return errDied
	case old != nil && r.SessionID != old.id:
		return fmt.Errorf("%s: session %#x is gone", who, old.id)
	case r.SessionID == 0:
		return fmt.Errorf("%s: no session", who)
	}
	for name, other := range w.sessions {
		if old == nil && other.id == p.id {
			return fmt.Errorf("%s and %s were given one session id", who, name)
		}
	}
	w.peers[who], w.sessions[who] = p, p
	return nil
}

func (w *witness) create(who, path string, flags int32) error {
	_, d, err := w.call(who, zk.OpCreate, createBody(path, []byte(path), flags))
	if err != nil {
		return err
	}
	made := d.String()
	owner := ""
	if flags&zk.FlagEphemeral != 0 {
		owner = who
	}
	w.there[made] = owner
	if flags&zk.FlagSequential != 0 {
		n, err := strconv.ParseInt(strings.TrimPrefix(made, path), 10, 64)
		if err != nil || n <= w.suffix {
			return fmt.Errorf("%s: sequence number %d after %d (%v)", made, n, w.suffix, err)
		}
		w.suffix = n
	}
	return nil
}

func (w *witness) multi(who, path string) error {
	q := zk.MultiRequest{Ops: []zk.MultiOp{
		{Op: zk.OpCreate, Create: zk.CreateRequest{Path: path, ACL: zk.WorldAnyone()}},
		{Op: zk.OpCreate, Create: zk.CreateRequest{Path: path + "/e", ACL: zk.WorldAnyone(), Flags: zk.FlagEphemeral}},
	}}
	_, _, err := w.call(who, zk.OpMulti, q.Append(nil))
	if err == nil {
		w.there[path], w.there[path+"/e"] = "", who
	}
	return err
}

func (w *witness) close(who string) error {
	p := w.sessions[who]
	// Whether an unanswered close was done, nobody knows.
	delete(w.sessions, who)
	for path, owner := range w.there {
		if owner == who {
			delete(w.there, path)
		}
	}
	_, _, err := w.call(who, zk.OpCloseSession, nil)
	if err == nil {
		w.closed = append(w.closed, p)
	}
	return err
}

// life is what the clients do, in this order; an error ends it.
func (w *witness) life(round int) error {
	at := func(s string) string { return fmt.Sprintf("/%s%d", s, round) }
	for _, step := range []func() error{
		func() error { return w.attach("a", w.sessions["a"]) },
		func() error { return w.attach(at("b"), nil) },
		func() error { return w.create("a", at("p"), 0) },
		func() error { return w.create("a", at("e"), zk.FlagEphemeral) },
		func() error { return w.create(at("b"), "/s", zk.FlagSequential) },
		func() error { return w.multi(at("b"), at("m")) },
		func() error { return w.create(at("b"), "/s", zk.FlagSequential|zk.FlagEphemeral) },
		func() error { return w.attach("a", w.sessions["a"]) },
		func() error { return w.create("a", "/s", zk.FlagSequential) },
		func() error { return w.close(at("b")) },
		func() error { return w.multi("a", at("n")) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// check holds a server that came back to what its clients know.
func (w *witness) check() error {
	if err := w.attach("a", w.sessions["a"]); err != nil {
		return err
	}
	for _, p := range w.closed {
		q := dialPeer(w.t, w.s.Addr())
		if r, err := q.connect(zk.ConnectRequest{SessionID: p.id, Password: p.password}); err != nil || r.SessionID != 0 {
			return fmt.Errorf("session %#x was closed and is back (%v)", p.id, err)
		}
	}
	for path, owner := range w.there {
		p := w.peers["a"]
		h, d := p.call(w.t, zk.OpExists, pathBody(path, false))
		if h.Err != zk.OK {
			return fmt.Errorf("%s was acknowledged: %v", path, h.Err)
		}
		var st zk.Stat
		if st.Decode(d); owner != "" && st.EphemeralOwner != w.sessions[owner].id {
			return fmt.Errorf("%s belongs to %#x, not to %s", path, st.EphemeralOwner, owner)
		}
	}
	seen := w.zxid
	if err := w.create("a", "/s", zk.FlagSequential); err != nil {
		return err
	}
	if w.zxid <= seen {
		return fmt.Errorf("zxid %#x after %#x", w.zxid, seen)
	}
	return nil
}

// TestServerCrashes lets the power go at each of the server's operations on the disk, under several sessions;
// then what their clients were answered must be so, and nothing be given twice.
func TestServerCrashes(t *testing.T) {
	step := int64(1)
	if testing.Short() {
		step = 5
	}
	for at := int64(1); ; at += step {
		d := memdisk.New(memdisk.Options{})
		d.CrashAt(at, uint64(at))
		if err := threeLives(t, d, d, at); err != nil {
			t.Fatalf("crash at %d: %v", at, err)
		}
		if d.Count() < at {
			if at < 50 {
				t.Fatalf("only %d operations", d.Count())
			}
			return
		}
	}
}

// TestServerCrashesAreFound: syncs of the log that do nothing must not go unnoticed.
func TestServerCrashesAreFound(t *testing.T) {
	for at := int64(20); at < 60; at++ {
		d := memdisk.New(memdisk.Options{})
		d.CrashAt(at, uint64(at))
		f := faultdisk.New(d, 1, clock.Real{})
		if err := f.Script("sync log.*: lost"); err != nil {
			t.Fatal(err)
		}
		if threeLives(t, d, f, at) != nil {
			return
		}
	}
	t.Error("nothing was found")
}

// threeLives starts the server three times, each time after a crash or an orderly end. An error is a finding.
func threeLives(t *testing.T, d *memdisk.FS, fs disk.FS, seed int64) error {
	w := &witness{t: t, peers: map[string]*peer{}, there: map[string]string{}, sessions: map[string]*peer{}, suffix: -1}
	config := Config{FS: fs, Clock: clock.NewVirtual(time.UnixMilli(1_000_000)), Dir: "/zk", TickMs: 2000}
	for round := range 3 {
		s, err := Start(context.Background(), config)
		switch {
		case err == nil:
			w.s = s
			if w.sessions["a"] != nil {
				err = w.check()
			}
			if err == nil {
				err = w.life(round)
			}
			s.Close()
		case errors.Is(err, memdisk.ErrCrashed):
			err = errDied
		}
		if err != nil && !errors.Is(err, errDied) {
			return fmt.Errorf("start %d: %w", round, err)
		}
		if d.Crashed() {
			d.Crash(uint64(seed))
		}
	}
	return nil
}
