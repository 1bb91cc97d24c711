package zkserver

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"platter/coord/tree"
	"platter/coord/zk"
	ioconn "platter/io/conn"
)

const (
	// batchCountMax and batchBytesMax bound what one sync covers, and so how long the tree is locked.
	batchCountMax = 2000
	batchBytesMax = 8 << 20
	// queueBytesMax bounds the memory of waiting writes; connections wait for room beyond it.
	queueBytesMax = 64 << 20
	// proposalBytes is what a proposal costs beside its body.
	proposalBytes = 256
)

// proposal is one write on its way. The committer stamps zxid and time.
type proposal struct {
	entry tree.Entry
	conn  *conn // whose queue holds it; nil for the server's own
	xid   int32
	atMs  int64 // tracker time of its arrival
	// done, when set, is called by the committer with the tree locked; it must not block.
	done func(tree.Result)
}

func (p *proposal) bytes() int {
	return proposalBytes + len(p.entry.Body) + identityBytes(p.entry.Auth)
}

// proposals is the queue of writes, and who commits them. There is at most one committer at a time: a
// connection's goroutine or a poller that found nobody at it, for one batch (which costs no change of
// goroutines), or the loop, for as long as there are more, or until it hands back.
type proposals struct {
	mu      sync.Mutex
	some    sync.Cond // the loop is to commit, or the end
	room    sync.Cond // bytes fell below the limit, or the end
	waiting []*proposal
	bytes   int
	leader  committer
	closed  bool

	handedBack atomic.Bool // by the loop, to the poller: what waits is its to commit
}

// committer says who commits.
type committer uint8

const (
	nobody     committer = iota
	connection           // a reader, be it a connection's goroutine or a poller: one batch
	loop                 // commitLoop
)

func (q *proposals) init() { q.some.L, q.room.L = &q.mu, &q.mu }

// add queues p; !ok: the server ends. A connection's write waits while the queue is full; the server's
// own, which are few, do not. With lead the caller may be made the committer: it must then commit one
// batch and call passOn.
func (q *proposals) add(p *proposal, lead bool) (ok, leads bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for p.conn != nil && q.bytes >= queueBytesMax && !q.closed {
		q.room.Wait()
	}
	if q.closed {
		return false, false
	}
	q.waiting = append(q.waiting, p)
	q.bytes += p.bytes()
	if q.leader != nobody {
		return true, false
	}
	if lead {
		q.leader = connection
		return true, true
	}
	q.toLoop()
	return true, false
}

// addAll queues several, which does not wait. With lead the caller may be made the committer, as add has it.
func (q *proposals) addAll(all []*proposal, lead bool) (leads bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false // their connections end
	}
	q.waiting = append(q.waiting, all...)
	for _, p := range all {
		q.bytes += p.bytes()
	}
	q.handedBack.Store(false)
	switch {
	case q.leader != nobody || len(q.waiting) == 0:
	case lead:
		q.leader = connection
		return true
	default:
		q.toLoop()
	}
	return false
}

// full reports whether a connection that adds must wait.
func (q *proposals) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes >= queueBytesMax
}

func (q *proposals) toLoop() {
	q.leader = loop
	q.some.Signal()
}

// passOn ends a reader's turn: what was queued meanwhile is the loop's.
func (q *proposals) passOn() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.leader = nobody; len(q.waiting) > 0 || q.closed {
		q.toLoop()
	}
}

// handBack is the loop's: if more waits, it is another one's to commit from now on, who must be woken.
func (q *proposals) handBack() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting) == 0 {
		return false
	}
	q.leader = nobody
	q.handedBack.Store(true)
	return true
}

// await is the loop's: it waits until there is something for it to commit; false: the end, and nothing
// is left.
func (q *proposals) await() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.leader == loop && len(q.waiting) == 0 {
		q.leader = nobody
	}
	for q.leader != loop && !(q.closed && q.leader == nobody) {
		q.some.Wait()
	}
	return len(q.waiting) > 0
}

// take gives the next batch, all that wait up to the bounds. batch is reused.
func (q *proposals) take(batch []*proposal) []*proposal {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.waiting) && n < batchCountMax && bytes < batchBytesMax {
		bytes += q.waiting[n].bytes()
		n++
	}
	batch = append(batch[:0], q.waiting[:n]...)
	rest := copy(q.waiting, q.waiting[n:])
	clear(q.waiting[rest:])
	q.waiting = q.waiting[:rest]
	if q.bytes >= queueBytesMax {
		q.room.Broadcast()
	}
	q.bytes -= bytes
	return batch
}

func (q *proposals) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// abandon ends the queue with its committer: what waits is never done.
func (q *proposals) abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting, q.bytes, q.leader, q.closed = nil, 0, nobody, true
	q.some.Broadcast()
	q.room.Broadcast()
}

func (q *proposals) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.some.Broadcast()
	q.room.Broadcast()
}

// commitLoop commits what comes while it is the committer. It ends when the queue is closed and empty,
// or with the first failure of the log.
func (s *Server) commitLoop() {
	defer s.running.Done()
	var turn ioconn.Turn
	for s.queue.await() {
		if len(s.pollers) > 0 {
			turn.End()
		} else {
			runtime.Gosched() // who is about to ask, or to be answered, comes first: the batch grows by what they bring
		}
		if !s.commit(nil) {
			return
		}
		if len(s.pollers) == 1 && s.store.swift() && s.queue.handBack() {
			s.pollers[0].loop.Wake()
		}
	}
}

// commit is the one writer, of the log and of the tree: one batch. Only the committer calls it. The
// answers leave on goroutines of their connections, but for own's, which its caller sends. False: the
// log has failed, and the server ends.
func (s *Server) commit(own *conn) bool {
	s.batch = s.queue.take(s.batch)
	s.stamp(s.batch)
	began := s.sessions.nowMs()
	switch err := s.store.append(s.batch); {
	case err == nil:
		s.synced(len(s.batch), s.sessions.nowMs()-began)
		s.roomAgain()
		s.touched = s.applyBatch(s.batch, s.touched[:0])
	case errors.Is(err, errFull):
		s.full(len(s.batch), err)
		s.touched = s.refuseBatch(s.batch, s.touched[:0])
	default:
		s.log.Error("coordinator: stopped, its log failed", "err", err)
		s.end(fmt.Errorf("coordinator: log: %w", err))
		s.queue.abandon()
		return false
	}
	others := s.touched[:0]
	for _, c := range s.touched {
		c.touched = false
		if c != own {
			others = append(others, c)
		}
	}
	sendAll(others)
	clear(s.batch)
	clear(s.touched)
	s.store.growAhead()
	s.snapshotIfDue()
	return true
}

// fullSayMs is how often refused writes are told of at most: a log on the full disk makes it no better.
const fullSayMs = 1000

func (s *Server) full(count int, err error) {
	s.refusedWrites += count
	if now := s.sessions.nowMs(); s.fullSaidMs == 0 || now-s.fullSaidMs >= fullSayMs {
		s.fullSaidMs = max(now, 1)
		s.log.Error("coordinator: writes are refused", "count", s.refusedWrites, "err", err)
	}
}

func (s *Server) roomAgain() {
	if s.refusedWrites > 0 && s.sessions.nowMs()-s.fullSaidMs >= fullSayMs {
		s.log.Info("coordinator: there is room for writes", "refused", s.refusedWrites)
		s.refusedWrites, s.fullSaidMs = 0, 0
	}
}

// snapshotIfDue starts a snapshot in the background.
func (s *Server) snapshotIfDue() {
	if !s.store.snapshotDue() || !s.snapshotting.CompareAndSwap(false, true) {
		return
	}
	s.store.roll()
	capture := s.tree.Capture()
	s.running.Go(func() {
		defer s.snapshotting.Store(false)
		s.saveSnapshot(capture)
	})
}

// saveSnapshot writes one; without it the logs stay, so a failure costs only room and start-up time.
func (s *Server) saveSnapshot(c *tree.Capture) {
	if err := s.store.saveSnapshot(c); err != nil {
		s.log.Warn("coordinator: snapshot", "zxid", fmt.Sprintf("%#x", c.Zxid()), "err", err)
		return
	}
	s.stats.snapshots.Add(1)
	s.snapZxid.Store(c.Zxid())
	s.snapAtMs.Store(s.config.Clock.NowMs())
}

// stamp gives a batch its zxids and time.
func (s *Server) stamp(batch []*proposal) {
	zxid, now := s.tree.Zxid(), s.config.Clock.NowMs()
	for i, p := range batch {
		p.entry.Zxid = zxid + 1 + int64(i)
		p.entry.TimeMs = now
	}
}

// toucher collects connections that have something to send.
type toucher []*conn

func (t *toucher) add(c *conn) {
	if !c.touched {
		c.touched = true
		*t = append(*t, c)
	}
}

// applyBatch applies what is durable, and puts events and replies into the connections' buffers. It
// gives the connections that have something to send.
func (s *Server) applyBatch(batch []*proposal, touched toucher) []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range batch {
		r, changes := s.tree.Apply(&p.entry)
		for _, c := range changes {
			s.stats.namespaces.wrote(c.Path, c.Bytes)
			s.watches.Fire(c, func(who *conn, typ zk.EventType, path string) {
				who.event(typ, path)
				touched.add(who)
			})
		}
		if p.entry.Op == zk.OpCloseSession {
			s.sessions.remove(p.entry.Session, p.conn)
		}
		s.settle(p, r, &touched)
	}
	return touched
}

// refuseBatch answers a batch that is not durable and never will be. Its zxids are taken back.
func (s *Server) refuseBatch(batch []*proposal, touched toucher) []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range batch {
		p.entry.Zxid = s.tree.Zxid()
		s.settle(p, tree.Result{Err: zk.SystemError}, &touched)
	}
	return touched
}

func (s *Server) settle(p *proposal, r tree.Result, touched *toucher) {
	if p.done != nil {
		p.done(r)
	}
	if p.conn != nil {
		p.conn.committed(s, p, r)
		touched.add(p.conn)
	}
}
