package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"platter/tools/zkwire"
)

const (
	peerCount = 3
	patience  = 60 * time.Second // for a close, an expiry
	silence   = 20 * time.Second // for an answer; well below longMs
)

// target is one server, and how sessions on it are opened.
type target struct {
	addr      string
	longMs    int32 // a timeout that no living session reaches
	shortMs   int32 // the shortest
	ctl       *zkwire.Conn
	worldsRun int
	stamp     int64 // of this target: roots do not meet those of another run on the same server
}

func newTarget(addr string, shortMs, longMs int32) (*target, error) {
	c, err := zkwire.Open(addr, longMs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	return &target{addr: addr, longMs: longMs, shortMs: shortMs, ctl: c, stamp: time.Now().UnixMilli() & 0xfff}, nil
}

func (t *target) close() {
	_, _, _ = t.ctl.Call(zkwire.OpClose, nil)
	t.ctl.NC.Close()
}

// call asks on the controlling session, on a new one where that has been lost.
func (t *target) call(op int32, body zkwire.Body) (zkwire.Reply, error) {
	r, _, err := t.ctl.Call(op, body)
	if err == nil {
		return r, nil
	}
	t.ctl.NC.Close()
	if t.ctl, err = zkwire.Open(t.addr, t.longMs); err != nil {
		return r, err
	}
	r, _, err = t.ctl.Call(op, body)
	return r, err
}

// peer is one session of a world.
type peer struct {
	name string
	*zkwire.Conn
	asked map[int32]*Request
	gone  bool // the server has closed the connection
}

// world is one script's run on one server, below a root of its own.
type world struct {
	t     *target
	root  string
	base  int64
	peers []*peer
	names map[int64]string // of all sessions that were
	lines []string
}

// play runs a script and returns what every peer was told, a line each. An error says that the server could not
// be talked to.
func (t *target) play(steps []Step) ([]string, error) {
	t.worldsRun++
	w := &world{t: t, root: fmt.Sprintf("/%03x%04x", t.stamp, t.worldsRun&0xffff), names: map[int64]string{}}
	if len(w.root) != len(placeholder) {
		return nil, fmt.Errorf("root %s is not as long as %s", w.root, placeholder)
	}
	defer w.end()
	for i := range peerCount {
		p, err := w.open(fmt.Sprint("p", i), t.longMs)
		if err != nil {
			return nil, err
		}
		w.peers = append(w.peers, p)
	}
	r, err := t.call(zkwire.OpCreate, zkwire.Create(w.root, nil, 0))
	if err != nil {
		return nil, err
	}
	if r.Err != 0 {
		return nil, fmt.Errorf("create %s: error %d", w.root, r.Err)
	}
	w.base = r.Zxid
	for i := range steps {
		w.lines = append(w.lines, fmt.Sprint("# ", i))
		if err := w.step(&steps[i]); err != nil {
			return w.lines, fmt.Errorf("step %d: %w", i, err)
		}
	}
	return w.lines, nil
}

// end closes all sessions, or their expiry would take zxids from a later script.
func (w *world) end() {
	for _, p := range w.peers {
		if p.gone {
			if w.attach(p) != nil || p.gone {
				continue
			}
		}
		_, _ = p.Send(zkwire.OpClose, nil)
	}
	for _, p := range w.peers {
		for err := error(nil); err == nil; {
			_, err = p.Recv(patience)
		}
		p.NC.Close()
	}
}

func (w *world) open(name string, timeoutMs int32) (*peer, error) {
	c, err := zkwire.Open(w.t.addr, timeoutMs)
	if err != nil {
		return nil, fmt.Errorf("a session for %s: %w", name, err)
	}
	w.names[c.SessionID] = name
	return &peer{name: name, Conn: c, asked: map[int32]*Request{}}, nil
}

func (w *world) say(p *peer, format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), w.root, "R")
	w.lines = append(w.lines, p.name+" "+text)
}

// attach takes a peer's session to a new connection.
func (w *world) attach(p *peer) error {
	c, err := zkwire.Connect(w.t.addr, zkwire.Hello{TimeoutMs: w.t.longMs, SessionID: p.SessionID, Password: p.Password})
	if err != nil {
		return err
	}
	p.NC.Close()
	if c.SessionID != p.SessionID || !bytes.Equal(c.Password, p.Password) {
		w.say(p, "not re-attached: session given %v, timeout %d", c.SessionID != 0, c.TimeoutMs)
		c.NC.Close()
		p.gone = true
		return nil
	}
	p.Conn, p.gone = c, false
	return nil
}

func (w *world) step(s *Step) error {
	p := w.peers[s.Peer]
	switch s.Kind {
	case "reattach":
		if err := w.reattach(p, s.Bad); err != nil {
			return err
		}
	case "cut":
		p.NC.Close()
		if err := w.attach(p); err != nil {
			return err
		}
	case "ghost":
		return w.ghost(s)
	}
	if err := w.send(p, s.Reqs); err != nil {
		return err
	}
	sorted := false
	if s.Kind == "close" && !p.gone {
		if err := w.closeSession(p, s.Peer); err != nil {
			return err
		}
		sorted = true
	}
	return w.settle(p, sorted)
}

// reattach while the old connection is there: the server closes that one.
func (w *world) reattach(p *peer, bad bool) error {
	if bad {
		c, err := zkwire.Connect(w.t.addr, zkwire.Hello{TimeoutMs: w.t.longMs, SessionID: p.SessionID, Password: make([]byte, 16)})
		if err != nil {
			return err
		}
		w.say(p, "wrong password: session %d, timeout %d", c.SessionID, c.TimeoutMs)
		return c.NC.Close()
	}
	old := p.Conn
	c, err := zkwire.Connect(w.t.addr, zkwire.Hello{TimeoutMs: w.t.longMs, SessionID: p.SessionID, Password: p.Password})
	if err != nil {
		return err
	}
	w.say(p, "re-attached: %v, timeout %d", c.SessionID == p.SessionID, c.TimeoutMs)
	for {
		r, err := old.Recv(patience)
		if zkwire.Closed(err) {
			break
		}
		if err != nil {
			return fmt.Errorf("the old connection of %s: %w", p.name, err)
		}
		w.say(p, "on the old connection: xid %d", r.Xid)
	}
	old.NC.Close()
	p.Conn = c
	return nil
}

// send writes all requests at once, with a ping behind them, and tells what comes up to the ping's answer.
func (w *world) send(p *peer, reqs []Request) error {
	var out []byte
	for i := range reqs {
		xid := reqs[i].xid()
		if xid == 0 {
			xid = p.NextXid()
		}
		p.asked[xid] = &reqs[i]
		out = append(out, reqs[i].Frame(xid, w.base)...)
	}
	out = append(out, zkwire.Request(zkwire.XidPing, zkwire.OpPing, nil)...)
	out = bytes.ReplaceAll(out, []byte(placeholder), []byte(w.root))
	_, _ = p.NC.Write(out) // whether it was closed shows below
	return w.listen(p)
}

// listen tells what comes up to a ping's answer. Behind a reply that a server closes on, it is the close that counts:
// whether a ping is still answered depends.
func (w *world) listen(p *peer) error {
	ends := false
	for {
		r, err := p.Recv(silence)
		switch {
		case zkwire.Closed(err):
			w.say(p, "closed")
			p.gone = true
			return nil
		case zkwire.TimedOut(err):
			w.say(p, "silent")
			p.gone = true
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", p.name, err)
		case r.Xid == zkwire.XidPing && ends:
		case r.Xid == zkwire.XidPing:
			w.say(p, "pong z%s %d", w.zxid(r.Zxid), r.Err)
			return nil
		case r.Xid == zkwire.XidEvent:
			w.say(p, "%s", w.event(r.Event()))
		default:
			w.say(p, "%s", w.describe(p.asked[r.Xid], r))
			ends = ends || endsConnection(p.asked[r.Xid], r.Err)
		}
	}
}

// endsConnection reports whether a server closes behind such a reply: to an operation that nobody knows, to a failed
// authentication.
func endsConnection(r *Request, code int32) bool {
	const unimplemented, authFailed = -6, -115
	return r != nil && (code == unimplemented && r.Op == "raw" || code == authFailed)
}

func (w *world) event(e zkwire.Event) string {
	return fmt.Sprintf("event %d %q state %d err %d", e.Type, e.Path, e.State, e.Err)
}

// closeSession closes a peer's session and gives it another one.
func (w *world) closeSession(p *peer, i int) error {
	r, events, err := p.Call(zkwire.OpClose, nil)
	if err != nil {
		return fmt.Errorf("close of %s: %w", p.name, err)
	}
	from := len(w.lines)
	for _, e := range events {
		w.say(p, "%s", w.event(e))
	}
	slices.Sort(w.lines[from:]) // its nodes go in no particular order
	w.say(p, "closed its session: %d z%s", r.Err, w.zxid(r.Zxid))
	p.NC.Close()
	w.peers[i], err = w.open(p.name, w.t.longMs)
	return err
}

// settle listens to everybody but the peer that has just been heard, all at the same time. When nodes of an
// ended session go, Apache's server takes them in no particular order: sorted.
func (w *world) settle(heard *peer, sorted bool) error {
	var quiet []*peer
	for _, p := range w.peers {
		if p == heard && !p.gone {
			continue
		}
		if p.gone {
			if err := w.attach(p); err != nil {
				return err
			}
			if p.gone {
				next, err := w.open(p.name, w.t.longMs)
				if err != nil {
					return err
				}
				*p = *next
			}
		}
		_, _ = p.NC.Write(zkwire.Request(zkwire.XidPing, zkwire.OpPing, nil))
		quiet = append(quiet, p)
	}
	for _, p := range quiet {
		from := len(w.lines)
		if err := w.listen(p); err != nil {
			return err
		}
		if sorted {
			slices.Sort(w.lines[from:])
		}
	}
	return nil
}

// ghost is a session that ends by expiry. Its end shows at a node beside the root, which no script deletes.
func (w *world) ghost(s *Step) error {
	g, err := w.open("ghost", w.t.shortMs)
	if err != nil {
		return err
	}
	mark := Request{Op: "create", Path: placeholder + "~ghost", N: 1}
	if err := w.send(g, append(slices.Clone(s.Reqs), mark)); err != nil {
		return err
	}
	g.NC.Close()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		r, err := w.t.call(zkwire.OpExists, zkwire.PathWatch(w.root+"~ghost", false))
		if err != nil {
			return err
		}
		if r.Err == zkwire.ErrNoNode {
			break
		}
		if time.Since(began) > patience {
			w.say(g, "does not expire")
			break
		}
	}
	return w.settle(nil, true)
}
