package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"platter/tools/zkwire"
)

// probe is one run against one server.
type probe struct {
	addr string
	root string
	w    io.Writer
	a    *session
}

// session is a connection and the zxid of its last reply.
type session struct {
	*zkwire.Conn
	zxid int64
}

// failure is carried by panic from the depth of a probe to Probe.
type failure struct{ err error }

// Probe runs every case against the server at addr and writes a line for each. An error means that the server
// could not be talked to at all; what it does wrong stands in the lines.
func Probe(addr string, w io.Writer) (err error) {
	defer func() {
		if f, ok := recover().(failure); ok {
			err = f.err
		}
	}()
	p := &probe{addr: addr, root: fmt.Sprintf("/probe%05d", time.Now().UnixMicro()%1e5), w: w}
	p.handshakes()
	p.firstWatches()
	p.counters()
	p.createErrors()
	p.otherErrors()
	p.oddities()
	p.multis()
	p.persistentWatches()
	p.setWatches()
	p.endings()
	p.words()
	p.remove(p.root)
	return nil
}

func must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func (p *probe) out(name, format string, args ...any) {
	fmt.Fprintf(p.w, "%-34s %s\n", name, p.tidy(fmt.Sprintf(format, args...)))
}

func (p *probe) tidy(s string) string { return strings.ReplaceAll(s, p.root, "R") }

func (p *probe) connect(h zkwire.Hello) *session {
	c, err := zkwire.Connect(p.addr, h)
	must(err)
	return &session{Conn: c}
}

var noPassword = make([]byte, 16)

func (p *probe) open() *session {
	return p.connect(zkwire.Hello{TimeoutMs: 10_000, Password: noPassword})
}

// call sends a request; events that came before the reply are returned in words. Err 9999: no reply.
func (s *session) call(op int32, body zkwire.Body) (zkwire.Reply, string) {
	return s.callXid(60*time.Second, s.NextXid(), op, body)
}

func (s *session) callXid(limit time.Duration, xid, op int32, body zkwire.Body) (zkwire.Reply, string) {
	r, events, err := s.CallWithin(limit, xid, op, body)
	var told []string
	for _, e := range events {
		zxid := "real"
		if e.Zxid == -1 {
			zxid = "-1"
		}
		told = append(told, fmt.Sprintf("event(type=%d state=%d %s hdrzxid=%s err=%d)", e.Type, e.State, e.Path, zxid, e.Err))
	}
	if err != nil {
		return zkwire.Reply{Err: 9999}, strings.Join(append(told, "closed/timeout: "+word(err)), " ")
	}
	s.zxid = r.Zxid
	return r, strings.Join(told, " ")
}

func word(err error) string {
	switch {
	case zkwire.TimedOut(err):
		return "timeout"
	case zkwire.Closed(err):
		return "closed"
	}
	return err.Error()
}

// told is what has come without being asked for, up to the answer to a ping, or to the connection's end.
func (s *session) told() []string {
	told := []string{}
	s.NC.Write(zkwire.Request(zkwire.XidPing, zkwire.OpPing, nil))
	for {
		r, err := s.Recv(60 * time.Second)
		switch {
		case err != nil:
			return append(told, word(err))
		case r.Xid == zkwire.XidPing:
			return told
		case r.Xid == zkwire.XidEvent:
			e := r.Event()
			told = append(told, fmt.Sprintf("%d:%s", e.Type, e.Path))
		default:
			told = append(told, fmt.Sprintf("reply xid %d", r.Xid))
		}
	}
}

// ended is what has come up to the connection's end, without a ping: a server answers one that it still gets.
func (s *session) ended() []string {
	for {
		if _, err := s.Recv(60 * time.Second); err != nil {
			return []string{word(err)}
		}
	}
}

// stat of a path; Version is -999 when there is no such node.
func (s *session) stat(path string) zkwire.Stat {
	r, _ := s.call(zkwire.OpExists, zkwire.PathWatch(path, false))
	if r.Err != 0 {
		return zkwire.Stat{Version: -999}
	}
	d := zkwire.Dec{B: r.Body}
	return d.Stat()
}

func (s *session) create(path string, flags int32) (string, int32) {
	r, _ := s.call(zkwire.OpCreate, zkwire.Create(path, []byte("x"), flags))
	d := zkwire.Dec{B: r.Body}
	if r.Err != 0 {
		return "", r.Err
	}
	return d.Str(), 0
}

func (s *session) del(path string) { s.call(zkwire.OpDelete, zkwire.PathInt(path, -1)) }

func (p *probe) remove(path string) {
	r, _ := p.a.call(zkwire.OpGetChildren, zkwire.PathWatch(path, false))
	d := zkwire.Dec{B: r.Body}
	for _, name := range d.Strs() {
		p.remove(path + "/" + name)
	}
	p.a.del(path)
}
