package zkserver

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"

	"platter/coord/tree"
	"platter/io/clock"
)

// session is what the server knows of a session beside what the tree keeps.
type session struct {
	id        int64
	password  []byte
	timeoutMs atomic.Int32
	heardMs   atomic.Int64 // of tracker time: when the client was last heard of
	pending   atomic.Int64 // its writes that are neither applied nor refused yet
	waiting   atomic.Pointer[chan struct{}]
	// The tracker's:
	conn    *conn // attached now, or nil
	closing bool  // its close is proposed
	dueMs   int64 // where it stands in the heap: at or before its deadline
	at      int   // index in the heap, -1: not in it
}

// tracker keeps sessions' leases. Deadlines stand in a heap; a client that is heard of only moves
// heardMs, and the heap catches up when its old deadline comes.
type tracker struct {
	clock  clock.Clock
	start  time.Time
	tickMs int32
	expire func(id int64) bool // proposes the close; false: not now

	mu     sync.Mutex
	byID   map[int64]*session
	due    dueHeap
	lastID int64
	nextMs int64 // when sweep was to be called next

	lostMs atomic.Int64 // time that does not count: this process was not running
}

func newTracker(c clock.Clock, tickMs int, expire func(id int64) bool) *tracker {
	return &tracker{
		clock: c, start: c.Now(), tickMs: int32(tickMs), expire: expire,
		byID: map[int64]*session{},
	}
}

// restore takes the tree's sessions, each with its full timeout.
func (t *tracker) restore(tr *tree.Tree) {
	for id, timeoutMs := range tr.Sessions() {
		_, password, _ := tr.Session(id)
		t.add(id, password, timeoutMs, nil)
	}
	// Session ids start from the time, as ZooKeeper's do, and stay above all that ever were.
	t.lastID = max(tr.LastSession(), int64(uint64(t.clock.NowMs())<<24>>8))
}

// nowMs is tracker time: milliseconds for which this process has run, which no change of the wall clock
// moves.
func (t *tracker) nowMs() int64 { return t.clock.Now().Sub(t.start).Milliseconds() - t.lostMs.Load() }

func (t *tracker) nextID() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastID++
	return t.lastID
}

func (t *tracker) add(id int64, password []byte, timeoutMs int32, c *conn) *session {
	x := &session{id: id, password: password, conn: c}
	x.timeoutMs.Store(timeoutMs)
	x.heardMs.Store(t.nowMs())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[id] = x
	x.dueMs = x.deadlineMs()
	heap.Push(&t.due, x)
	return x
}

// attach gives a session to a new connection, and closes the one that it had: what that one has sent, and nobody has
// taken up yet, is lost with it.
func (t *tracker) attach(id int64, password []byte, timeoutMs int32, c *conn) (*session, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.byID[id]
	if x != nil && x.conn != nil { // before the password is looked at (ZooKeeperServer.processConnectRequest)
		x.conn.close()
		x.conn.abandon()
	}
	if x == nil || x.closing || !samePassword(x.password, password) {
		return nil, false
	}
	x.conn = c
	x.timeoutMs.Store(timeoutMs)
	x.heardMs.Store(t.nowMs())
	if x.dueMs > x.deadlineMs() {
		x.dueMs = x.deadlineMs()
		heap.Fix(&t.due, x.at)
	}
	return x, true
}

// detach tells that c is gone; the session lives on until its deadline.
func (t *tracker) detach(x *session, c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x.conn == c {
		x.conn = nil
	}
}

// touch notes that the client was heard of, and gives the time.
func (t *tracker) touch(x *session) int64 {
	now := t.nowMs()
	x.heardMs.Store(now)
	return now
}

// settled notes that one of its writes is applied or refused.
func (x *session) settled() {
	if x.pending.Add(-1) == 0 && x.waiting.Load() != nil {
		x.wake()
	}
}

func (x *session) wake() {
	if w := x.waiting.Swap(nil); w != nil {
		close(*w)
	}
}

// whenSettled is closed once none of its writes is under way. Its connection of that time is abandoned, so that there
// come no more.
func (x *session) whenSettled() <-chan struct{} {
	done := make(chan struct{})
	for !x.waiting.CompareAndSwap(nil, &done) {
		if w := x.waiting.Load(); w != nil {
			return *w
		}
	}
	if x.pending.Load() == 0 {
		x.wake()
	}
	return done
}

// closes notes that the client has asked for the session's close: nobody can attach to it any more, unless revive
// takes it back.
func (t *tracker) closes(x *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x.at >= 0 {
		heap.Remove(&t.due, x.at)
	}
	x.closing = true
}

// remove forgets a session that the tree has closed. It loses its connection, but for by, which has asked for the close
// and gets a reply first.
func (t *tracker) remove(id int64, by *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.byID[id]
	if x == nil {
		return
	}
	delete(t.byID, id)
	if x.at >= 0 {
		heap.Remove(&t.due, x.at)
	}
	if x.conn != nil && x.conn != by {
		x.conn.close()
	}
}

// revive takes back that a session is closing: its close was refused.
func (t *tracker) revive(id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byID[id]; x != nil && x.closing {
		x.closing = false
		x.dueMs = t.nowMs() + int64(t.tickMs)
		heap.Push(&t.due, x)
	}
}

func (x *session) deadlineMs() int64 {
	timeoutMs := int64(x.timeoutMs.Load())
	return x.heardMs.Load() + timeoutMs + graceMs(timeoutMs)
}

// graceMs is what a session has beyond its timeout. The real server ends one up to a tick late, and clients have come
// to live with it; here it is never more than a tenth of the timeout, less what telling of it may take.
func graceMs(timeoutMs int64) int64 { return max(timeoutMs/10-100, 0) }

// sweep proposes the close of every session whose deadline has passed, and tells how long to wait
// until the next sweep.
//
// A sweep that comes late means that this process did not run in between, and could hear nobody: that
// time does not count. After a long pause every session has its full timeout again.
func (t *tracker) sweep() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.nowMs()
	if late := now - t.nextMs; late > max(t.sweepMs(), lateMs) {
		t.lostMs.Add(late)
		now -= late
		if late > t.pauseMs() {
			for _, x := range t.byID {
				x.heardMs.Store(now)
			}
		}
	}
	for len(t.due) > 0 && t.due[0].dueMs <= now {
		x := t.due[0]
		if x.heardMs.Load() > now { // noted while a pause had not been seen yet
			x.heardMs.Store(now)
		}
		if x.conn != nil && x.conn.unheard() { // a disk that is slow to sync is not the client's silence
			x.heardMs.Store(now)
		}
		if x.dueMs = x.deadlineMs(); x.dueMs > now {
			heap.Fix(&t.due, 0)
			continue
		}
		if !t.expire(x.id) {
			x.dueMs = now + int64(t.tickMs)
			heap.Fix(&t.due, 0)
			continue
		}
		x.closing = true
		heap.Pop(&t.due)
	}
	wait := t.sweepMs()
	if len(t.due) > 0 {
		wait = min(wait, max(t.due[0].dueMs-now, 1))
	}
	t.nextMs = now + wait
	return time.Duration(wait) * time.Millisecond
}

// lateMs is how late a sweep may be on a busy machine. With ticks below a second such delays must not add
// up: a dead session would outlive its timeout by them.
const lateMs = 50

// sweepMs is the longest time between two sweeps: short beside the shortest timeout, two ticks.
func (t *tracker) sweepMs() int64 { return max(int64(t.tickMs)/8, 1) }

// pauseMs is how late a sweep must be to count as a suspension, not as a busy machine.
func (t *tracker) pauseMs() int64 { return max(int64(t.tickMs)/4, 50) }

// dueHeap orders sessions by dueMs (container/heap).
type dueHeap []*session

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].dueMs < h[j].dueMs }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}
func (h *dueHeap) Push(x any) {
	s := x.(*session)
	s.at = len(*h)
	*h = append(*h, s)
}
func (h *dueHeap) Pop() any {
	old := *h
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	s.at = -1
	return s
}
