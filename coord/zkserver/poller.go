package zkserver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"

	"platter/coord/zk"
	ioconn "platter/io/conn"
)

const (
	// pollerReadBytes is what a poller reads of a connection at once. Who has more to say gets a goroutine.
	pollerReadBytes = 64 << 10
	// promptBytesMax is how long the answer may be that a poller makes: others wait meanwhile.
	promptBytesMax = 64 << 10
	// aloneTurns is after how many turns of the same one connection a poller takes it for the only busy one.
	aloneTurns = 16
)

// poller reads many connections on one goroutine. It never waits for one of them: what would have to wait, and what
// is long, it hands to a goroutine, which gives the connection back when it has read all.
type poller struct {
	s      *Server
	loop   *ioconn.Loop
	buf    []byte
	writes []*proposal // of this turn, not queued yet
	last   *conn       // who was served last
	alone  int         // turns in which nobody else was

	// commitMs is since when it commits, and hears nothing of its clients (tracker time); 0: it does not; relieved:
	// somebody else has taken the loop over from it.
	commitMs atomic.Int64
}

// relieved is commitMs of a poller whose commit took too long.
const relieved = -1

// relieveMs is how long a poller may commit, about, before another goroutine serves its connections: the disk was quick,
// and hangs now.
const relieveMs = 100

// relieve is called now and then.
func (s *Server) relievePollers() {
	for _, p := range s.pollers {
		since := p.commitMs.Load()
		if since > 0 && s.sessions.nowMs()-since > relieveMs && p.commitMs.CompareAndSwap(since, relieved) {
			go p.loop.Run(p.turned)
		}
	}
}

// startPollers starts as many as are wished for; without any, each connection has its own goroutine.
func (s *Server) startPollers() {
	for range s.config.Pollers {
		loop, err := ioconn.NewLoop()
		if err != nil {
			s.log.Debug("coordinator: a goroutine for each connection", "because", err)
			return
		}
		p := &poller{s: s, loop: loop, buf: make([]byte, pollerReadBytes)}
		s.pollers = append(s.pollers, p)
		go loop.Run(p.turned)
	}
}

func (s *Server) endPollers() {
	for _, p := range s.pollers {
		p.loop.End()
	}
}

// pollerOf gives each new connection the next poller in turn.
func (s *Server) pollerOf() *poller {
	if len(s.pollers) == 0 {
		return nil
	}
	return s.pollers[int(s.stats.requests.Load())%len(s.pollers)]
}

// adopt takes a connection, which has a session now, over from the runtime. The caller is still its reader. Where that
// cannot be, it goes on as it was.
func (p *poller) adopt(c *conn, nc net.Conn) {
	c.omu.Lock()
	defer c.omu.Unlock()
	for c.flushing {
		c.taken.Wait()
	}
	if c.closed {
		return
	}
	sock, err := p.loop.Take(nc, func(ended bool) { p.ready(c, ended) })
	if err != nil {
		p.s.log.Debug("coordinator: a connection keeps its goroutine", "peer", c.peer, "err", err)
		return
	}
	c.sock, c.nc, c.try = sock, sock, sock.TryWrite
}

// free gives the connection's descriptor back, once nobody uses it.
func (c *conn) free() {
	if c.sock == nil {
		return
	}
	c.omu.Lock()
	defer c.omu.Unlock()
	for c.flushing {
		c.taken.Wait()
	}
	c.sock.Free()
}

// unheard reports whether the connection's reader is busy with a commit.
func (c *conn) unheard() bool {
	return c.committing.Load() || c.poller != nil && c.poller.commitMs.Load() > 0
}

// ready reads what has come of a connection; ended: and no more will.
func (p *poller) ready(c *conn, ended bool) {
	if p.last != c {
		p.last, p.alone = c, 0
	}
	for {
		n, err := c.sock.TryRead(p.buf)
		if n == 0 && err == nil {
			break
		}
		var rest []byte
		if err == nil {
			rest, err = p.take(c, p.buf[:n])
		}
		if err != nil {
			p.handOver(c, func() { p.s.leave(c, err) })
			return
		}
		if len(rest) > 0 || n == len(p.buf) {
			first := bytes.Clone(rest)
			p.handOver(c, func() {
				c.flushFull() // what is out is not to grow beyond what it may be by what comes next
				p.s.serveFrames(c, p.s.newFrameReader(c, first))
			})
			return
		}
		if !ended {
			break
		}
	}
	c.sendNow()
}

// handOver makes a goroutine the connection's reader. Its writes up to now come first.
func (p *poller) handOver(c *conn, read func()) {
	p.propose(false)
	c.sock.Disarm()
	go read()
}

// take takes whole frames from b, and gives the rest: an unfinished frame, or what it would have to wait for.
func (p *poller) take(c *conn, b []byte) (rest []byte, err error) {
	for len(b) >= 4 {
		size := int(binary.BigEndian.Uint32(b))
		if size > len(b)-4 { // or more than is allowed
			break
		}
		frame := b[4 : 4+size]
		if !p.prompt(c, frame) {
			break
		}
		if err := p.s.dispatch(c, frame, nil); errors.Is(err, errBusy) {
			break
		} else if err != nil {
			return nil, err
		}
		p.s.heard(c, frame)
		b = b[4+size:]
	}
	return b, nil
}

// prompt reports whether a request can be answered without waiting, and soon.
func (p *poller) prompt(c *conn, frame []byte) bool {
	if len(frame) < 8 || len(frame) > p.s.config.FrameBytesMax {
		return false
	}
	q := request{RequestHeader: zk.RequestHeader{Op: zk.Op(binary.BigEndian.Uint32(frame[4:]))}, body: frame[8:]}
	if q.Op != zk.OpPing && c.outIsFull() {
		return false
	}
	switch q.Op {
	case zk.OpMultiRead, zk.OpGetEphemerals, zk.OpSetWatches, zk.OpSetWatches2, zk.OpSASL:
		return false
	case zk.OpGetChildren, zk.OpGetChildren2:
		return p.s.answerBytes(&q) <= promptBytesMax
	}
	return !isWrite(&q) || !p.s.queue.full()
}

func (c *conn) outIsFull() bool {
	c.omu.Lock()
	defer c.omu.Unlock()
	return len(c.out) >= outBytesSoft
}

// turned ends a turn of the loop: the writes that have come in it leave together. False: the loop is somebody else's
// now.
func (p *poller) turned(sockets int) bool {
	if p.alone++; sockets > 1 {
		p.alone = 0
	}
	return p.propose(p.alone > aloneTurns && p.s.store.quick.Load() || len(p.s.pollers) == 1 && p.s.store.swift())
}

// propose queues the writes. With lead the poller commits them itself, if nobody else is at it: that costs no change of
// goroutines, and while the disk is at work the clients whose answers have left ask again. False: another one has
// relieved it meanwhile.
func (p *poller) propose(lead bool) bool {
	if len(p.writes) == 0 && !p.s.queue.handedBack.Load() {
		return true
	}
	leads := p.s.queue.addAll(p.writes, lead)
	clear(p.writes)
	p.writes = p.writes[:0]
	if !leads {
		return true
	}
	since := max(p.s.sessions.nowMs(), 1)
	p.commitMs.Store(since)
	ok := p.s.commit(nil)
	mine := p.commitMs.CompareAndSwap(since, 0)
	if !mine {
		p.commitMs.Store(0) // before anybody can lead again
	}
	if ok {
		p.s.queue.passOn()
	}
	return mine
}
