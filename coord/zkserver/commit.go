package zkserver

import (
	"errors"
	"fmt"
	"sync"

	"platter/coord/tree"
	"platter/coord/zk"
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

func (p *proposal) bytes() int { return proposalBytes + len(p.entry.Body) }

// proposals is the queue of writes that wait for the committer.
type proposals struct {
	mu      sync.Mutex
	some    sync.Cond // there is something, or the end
	room    sync.Cond // bytes fell below the limit, or the end
	waiting []*proposal
	bytes   int
	closed  bool
}

func (q *proposals) init() { q.some.L, q.room.L = &q.mu, &q.mu }

// add queues p; false: the server ends. A connection's write waits while the queue is full; the
// server's own, which are few, do not.
func (q *proposals) add(p *proposal) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for p.conn != nil && q.bytes >= queueBytesMax && !q.closed {
		q.room.Wait()
	}
	if q.closed {
		return false
	}
	q.waiting = append(q.waiting, p)
	q.bytes += p.bytes()
	q.some.Signal()
	return true
}

// take gives the next batch, all that wait up to the bounds; nil at the end. batch is reused.
func (q *proposals) take(batch []*proposal) []*proposal {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.closed {
		q.some.Wait()
	}
	n, bytes := 0, 0
	for n < len(q.waiting) && n < batchCountMax && bytes < batchBytesMax {
		bytes += q.waiting[n].bytes()
		n++
	}
	batch = append(batch[:0], q.waiting[:n]...)
	rest := copy(q.waiting, q.waiting[n:])
	clear(q.waiting[rest:])
	q.waiting = q.waiting[:rest]
	q.bytes -= bytes
	q.room.Broadcast()
	return batch
}

func (q *proposals) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

func (q *proposals) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.some.Broadcast()
	q.room.Broadcast()
}

// commitLoop is the one writer: of the log, and of the tree. It ends when the queue is closed and
// empty, or with the first failure of the log.
func (s *Server) commitLoop() {
	defer s.running.Done()
	var batch []*proposal
	var touched []*conn
	for {
		if batch = s.queue.take(batch); len(batch) == 0 {
			return
		}
		s.stamp(batch)
		switch err := s.store.append(batch); {
		case err == nil:
			touched = s.applyBatch(batch, touched[:0])
		case errors.Is(err, errFull):
			s.log.Error("coordinator: writes are refused", "count", len(batch), "err", err)
			touched = s.refuseBatch(batch, touched[:0])
		default:
			s.log.Error("coordinator: stopped, its log failed", "err", err)
			s.end(fmt.Errorf("coordinator: log: %w", err))
			return
		}
		for _, c := range touched {
			c.touched = false
			c.wake()
		}
		clear(batch)
		clear(touched)
		s.snapshotIfDue()
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
	}
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
			s.watches.Fire(c, func(who *conn, typ zk.EventType, path string) {
				who.event(typ, path)
				touched.add(who)
			})
		}
		if p.entry.Op == zk.OpCloseSession {
			s.sessions.remove(p.entry.Session)
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
		s.stats.took(s.sessions.nowMs() - p.atMs)
		p.conn.committed(s, p, r)
		touched.add(p.conn)
	}
}
