package api

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"platter/engine/store"
	"platter/net/wire"
	"platter/replication/replica"
)

// session is one fetcher's partitions. What a fetch costs goes by what has moved in them, not by how many they are:
// each partition that the fetcher knows all of has its replica tell of the next move, and only those that are told of,
// that the request names, or that were not done with stand in line.
type session struct {
	id        int32
	follower  bool // it may evict consumers' sessions
	byID      bool // its topics are named by id
	createdMs int64

	// These belong to sessions.mu.
	epoch  int32
	usedMs int64
	weight int // of all partitions
	count  int

	turn  chan struct{} // holds a token while no request is under way
	newer atomic.Int32  // requests that wait for it
	over  atomic.Bool   // the session is no more: whoever has the turn clears up
	wake  chan struct{} // has room for one; for the request that waits
	from  atomic.Pointer[replica.Follower]

	// These belong to who has the turn.
	at     map[sessionKey]*sessionPart
	served []*sessionPart // who got records with the last answer: they go behind who has moved
	named  []*sessionPart // what the request says anew

	mu    sync.Mutex
	moved []*sessionPart
}

type sessionKey struct {
	topic     string
	id        store.UUID
	partition int32
}

// weight is what a partition counts for. Names come from anybody, and those of topics that are not there are kept too.
func (k *sessionKey) weight() int { return 1 + len(k.topic)/nameBytesPerPart }

// nameBytesPerPart is as much as one partition takes beside its name.
const nameBytesPerPart = 128

// sessionPart is one partition, with what the fetcher was told last.
type sessionPart struct {
	of    *session
	key   sessionKey
	want  wire.FetchPartition
	hw    int64
	start int64
	gone  bool // the fetcher has forgotten it

	replica Partition // that was listened to last; nil: none
	hand    int       // its place among the parts of the request under way, from 1; 0: it is not looked at

	// These belong to the session's mu.
	inLine    bool // in one of the session's lists, or in hand
	listening bool
}

var _ replica.Listener = (*sessionPart)(nil)

func newSession(follower, byID bool) *session {
	ss := &session{follower: follower, byID: byID, at: map[sessionKey]*sessionPart{}, turn: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
	ss.turn <- struct{}{}
	return ss
}

// enter waits until no other request of the session is under way, and ends one that waits for records: its fetcher has
// come back by another connection. false: ctx ended.
func (ss *session) enter(ctx context.Context) bool {
	ss.newer.Add(1)
	defer ss.newer.Add(-1)
	ss.nudge()
	select {
	case <-ss.turn:
		return true
	case <-ctx.Done():
		return false
	}
}

// leave lets the next request in.
func (ss *session) leave() {
	ss.turn <- struct{}{}
	if ss.over.Load() {
		ss.end()
	}
}

// end lets go of the replicas, now or once the request under way is over.
func (ss *session) end() {
	ss.over.Store(true)
	select {
	case <-ss.turn:
	default:
		return // leave will look
	}
	for _, p := range ss.at {
		p.let()
	}
	clear(ss.at)
	ss.turn <- struct{}{}
}

func (ss *session) nudge() {
	select {
	case ss.wake <- struct{}{}:
	default:
	}
}

// change takes over what a request says anew, and what it forgets; d is how much more the partitions weigh.
func (ss *session) change(req *wire.FetchRequest) (d int) {
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := range t.Partitions {
			d += ss.put(sessionKey{t.Name, t.ID, t.Partitions[j].Partition}, &t.Partitions[j])
		}
	}
	for i := range req.Forgotten {
		t := &req.Forgotten[i]
		for _, n := range t.Partitions {
			k := sessionKey{t.Name, t.ID, n}
			if p := ss.at[k]; p != nil {
				delete(ss.at, k)
				p.gone = true
				p.let()
				d -= k.weight()
			}
		}
	}
	ss.count = len(ss.at)
	return d
}

// put takes a partition over, and has it looked at.
func (ss *session) put(k sessionKey, want *wire.FetchPartition) (weight int) {
	p := ss.at[k]
	if p == nil {
		p = &sessionPart{of: ss, key: k, hw: -1, start: -1}
		ss.at[k] = p
		weight = k.weight()
	}
	p.want = *want
	if p.line() {
		ss.named = append(ss.named, p)
	}
	return weight
}

// line says whether the partition is to be put into a list: in none it is.
func (p *sessionPart) line() bool {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	was := p.inLine
	p.inLine = true
	return !was
}

// heard notes who fetches, and that it is alive. A follower that has registered anew has to be noted everywhere.
func (ss *session) heard(req *wire.FetchRequest, nowMs int64) {
	if !ss.follower {
		return
	}
	f := ss.from.Load()
	if f == nil || f.Broker != req.ReplicaID || f.Epoch != req.ReplicaEpoch {
		f = &replica.Follower{Broker: req.ReplicaID, Epoch: req.ReplicaEpoch}
		ss.from.Store(f)
		for _, p := range ss.at {
			if p.line() {
				ss.named = append(ss.named, p)
			}
		}
	}
	f.HeardMs.Store(nowMs)
}

// due appends who is to be looked at: who has moved, then who got records before, then what the request names.
func (ss *session) due(to []*sessionPart) []*sessionPart {
	ss.mu.Lock()
	to = append(to, ss.moved...)
	clear(ss.moved)
	ss.moved = ss.moved[:0]
	ss.mu.Unlock()
	to = append(append(to, ss.served...), ss.named...)
	clear(ss.served)
	clear(ss.named)
	ss.served, ss.named = ss.served[:0], ss.named[:0]
	return to
}

// Moved implements replica.Listener. A follower waits for records, not for the high watermark: that is news for its next
// answer.
func (p *sessionPart) Moved(watermark bool) (more bool) {
	ss := p.of
	more = ss.follower && watermark
	ss.mu.Lock()
	p.listening = more
	if !p.inLine {
		p.inLine = true
		ss.moved = append(ss.moved, p)
	}
	ss.mu.Unlock()
	if !more {
		ss.nudge()
	}
	return more
}

// Follower implements replica.Listener.
func (p *sessionPart) Follower() *replica.Follower { return p.of.from.Load() }

// listen has the replica tell of what comes after now; nil: there is none, and the partition is looked at each time.
func (p *sessionPart) listen(to Partition) {
	if p.replica != nil && p.replica != to {
		p.let()
	}
	p.replica = to
	p.of.mu.Lock()
	p.inLine = false // in hand; a move from now on is for the next look
	was := p.listening
	p.listening = to != nil
	p.of.mu.Unlock()
	if to != nil && !was {
		to.Listen(p)
	}
}

// let lets go of the replica.
func (p *sessionPart) let() {
	if p.replica == nil {
		return
	}
	p.replica.Unlisten(p)
	p.replica = nil
	p.of.mu.Lock()
	p.listening = false
	p.of.mu.Unlock()
}

// again puts partitions in line for the next request, before all that have moved meanwhile.
func (ss *session) again(ps []*sessionPart) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	n := 0
	for _, p := range ps {
		if !p.inLine {
			p.inLine = true
			ps[n] = p
			n++
		}
	}
	ss.moved = slices.Insert(ss.moved, 0, ps[:n]...)
}

// behind puts a partition behind all that have moved.
func (ss *session) behind(p *sessionPart) {
	if p.line() {
		ss.served = append(ss.served, p)
	}
}
