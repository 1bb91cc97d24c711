package group

import (
	"container/heap"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"platter/coord/group/core"
	"platter/coord/group/record"
	"platter/engine/store"
	"platter/replication/replica"
)

// shard is the groups of one partition, in one leadership of this broker.
type shard struct {
	c         *Coordinator
	partition int32
	led       leadership

	mu      sync.Mutex
	loaded  bool
	stopped bool
	groups  map[string]*entry
	timers  timers
	armed   int64 // when the alarm goes off; 0: none is set
	disarm  func() bool
	deleted []string // topics that were deleted while the shard was being loaded

	queue   []*item // to be appended, in order
	writing bool    // somebody appends
	flying  []*write
}

// entry is one group in its shard.
type entry struct {
	*core.Group
	at    int64 // its place in the timers
	index int   // … -1: none
	busy  int   // records on their way
	bytes int64 // what it is counted with
}

// leadership is one of a partition; it outlasts the epochs in which this broker leads on.
type leadership struct {
	topic store.UUID
	since int32 // replica.State.LedSince
}

func leadershipOf(st *replica.State) leadership { return leadership{st.TopicID, st.LedSince} }

func newShard(c *Coordinator, partition int32, led leadership) *shard {
	return &shard{c: c, partition: partition, led: led, groups: map[string]*entry{}}
}

func (s *shard) now() int64 { return s.c.cfg.Clock.NowMs() }

func (s *shard) ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loaded
}

// do runs f on the shard's state, then appends what it has queued.
func (s *shard) do(f func(now int64)) error {
	s.mu.Lock()
	if err := s.status(); err != nil {
		s.mu.Unlock()
		return err
	}
	f(s.now())
	s.alarm()
	s.mu.Unlock()
	s.flush()
	return nil
}

// status says whether the shard serves. Called under mu.
func (s *shard) status() error {
	switch {
	case s.stopped:
		return ErrNotCoordinator
	case !s.loaded:
		return ErrLoading
	}
	return nil
}

// group finds a group, or makes it. Called under mu.
func (s *shard) group(id string, now int64) *entry {
	e := s.groups[id]
	if e == nil {
		e = &entry{Group: core.New(&s.c.cfg.Config, id, now), index: -1}
		s.groups[id] = e
		s.weigh(e)
	}
	return e
}

// weigh counts what a group takes. Called under mu.
func (s *shard) weigh(e *entry) {
	n := e.Bytes()
	s.c.bytes.Add(n - e.bytes)
	e.bytes = n
}

// full says that no more memory may be taken by groups.
func (c *Coordinator) full() bool { return c.bytes.Load() > c.cfg.MemoryBytesMax }

// drop forgets a group. Called under mu.
func (s *shard) drop(e *entry) {
	if s.groups[e.ID()] == e {
		delete(s.groups, e.ID())
	}
	s.c.bytes.Add(-e.bytes)
	e.bytes = 0
	if e.index >= 0 {
		heap.Remove(&s.timers, e.index)
	}
}

// act does what follows from an event. Called under mu.
func (s *shard) act(e *entry, w core.Work) {
	for _, r := range w.Joined {
		r.To.(chan core.JoinReply) <- r
	}
	for _, r := range w.Synced {
		r.To.(chan core.SyncReply) <- r
	}
	for _, st := range w.Stores {
		s.store(e, st)
	}
	s.settle(e)
}

// settle sees to a group after an event: its timer, its weight, whether it is still of any use.
func (s *shard) settle(e *entry) {
	if s.groups[e.ID()] != e {
		return
	}
	if e.busy == 0 && e.Idle() {
		s.drop(e)
		return
	}
	s.weigh(e)
	at := e.NextTimer()
	switch {
	case at == 0 && e.index >= 0:
		heap.Remove(&s.timers, e.index)
	case at == 0:
	case e.index < 0:
		e.at = at
		heap.Push(&s.timers, e)
	case at != e.at:
		e.at = at
		heap.Fix(&s.timers, e.index)
	}
}

// alarm sets the alarm for the first timer. Called under mu.
func (s *shard) alarm() {
	if s.stopped || len(s.timers) == 0 {
		return
	}
	at := s.timers[0].at
	if s.armed != 0 && s.armed <= at {
		return
	}
	if s.disarm != nil {
		s.disarm()
	}
	s.armed = at
	wait := time.Duration(max(at-s.now(), 1)) * time.Millisecond
	s.disarm = s.c.cfg.Clock.AfterFunc(wait, s.tick)
}

// suspendedMs is how late an alarm is when this process must have been suspended, or worse.
const suspendedMs = 1000

// tick does what is due. When the alarm comes late, so will members' signs of life: they get as much longer.
func (s *shard) tick() {
	s.mu.Lock()
	at := s.armed
	s.armed = 0
	if s.status() != nil {
		s.mu.Unlock()
		return
	}
	now := s.now()
	if late := now - at; at != 0 && late > suspendedMs {
		s.c.warn("this process stood still; members of groups get longer to be heard of", "ms", late)
		for _, e := range s.groups {
			e.Postpone(now, late)
			s.settle(e)
		}
	}
	for len(s.timers) > 0 && s.timers[0].at <= now {
		e := s.timers[0]
		s.act(e, e.Tick(now))
		if e.index >= 0 && e.at <= now { // a timer in the past must not hold up the others
			e.at = now + 1
			heap.Fix(&s.timers, e.index)
		}
	}
	s.alarm()
	s.mu.Unlock()
	s.flush()
}

// stop ends the shard: everybody who waits gets err.
func (s *shard) stop(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.stopped = true
	if s.disarm != nil {
		s.disarm()
	}
	now := s.now()
	for _, e := range s.groups {
		w := e.End(now, err)
		for _, r := range w.Joined {
			r.To.(chan core.JoinReply) <- r
		}
		for _, r := range w.Synced {
			r.To.(chan core.SyncReply) <- r
		}
		s.c.bytes.Add(-e.bytes)
	}
	clear(s.groups)
	s.timers = nil
	for _, it := range s.queue {
		it.done(err)
	}
	s.queue = nil
}

// store queues a group's state. Called under mu.
func (s *shard) store(e *entry, st *core.Store) {
	key := record.Key{Kind: record.Group, Group: e.ID()}.Append(nil)
	s.push(e, &item{
		records: []rec{{key, record.AppendGroup(nil, &st.Snapshot)}},
		done: func(err error) {
			if err != nil {
				s.c.warn("a group's state could not be stored", "group", e.ID(), "generation", st.Snapshot.Generation, "err", err)
			}
			s.act(e, e.Stored(s.now(), st, stateError(err)))
		},
	})
}

// forget queues the deletion of committed offsets; done, which may be nil, is called under mu when they
// are gone. Called under mu.
func (s *shard) forget(e *entry, tps []store.TP, done func(error)) {
	if len(tps) == 0 && done == nil {
		return
	}
	it := &item{done: func(err error) {
		if err == nil {
			for _, tp := range tps {
				e.Forget(tp)
			}
		} else {
			s.c.warn("offsets could not be deleted", "group", e.ID(), "count", len(tps), "err", err)
		}
		if done != nil {
			done(err)
		}
		s.settle(e)
	}}
	for _, tp := range tps {
		it.records = append(it.records, rec{record.Key{Kind: record.Offset, Group: e.ID(), TP: tp}.Append(nil), nil})
	}
	s.push(e, it)
}

// bury queues the deletion of a group that nobody is in, with all its offsets. Called under mu.
func (s *shard) bury(e *entry, done func(error)) {
	tps := slices.Collect(maps.Keys(e.Offsets()))
	it := &item{done: func(err error) {
		if err == nil {
			for _, tp := range tps {
				e.Forget(tp)
			}
			// Somebody may have come, or committed, meanwhile: then it lives on.
			if e.busy == 0 && e.Forgettable(0) {
				e.End(s.now(), ErrNotAvailable)
				s.drop(e)
			}
		}
		if done != nil {
			done(err)
		}
	}}
	for _, tp := range tps {
		it.records = append(it.records, rec{record.Key{Kind: record.Offset, Group: e.ID(), TP: tp}.Append(nil), nil})
	}
	if e.Generation() > 0 {
		it.records = append(it.records, rec{record.Key{Kind: record.Group, Group: e.ID()}.Append(nil), nil})
	}
	s.push(e, it)
}

func (s *shard) String() string { return fmt.Sprintf("%s-%d", Topic, s.partition) }

// timers is a heap, the next to be due first.
type timers []*entry

func (h timers) Len() int           { return len(h) }
func (h timers) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timers) Push(x any) {
	e := x.(*entry)
	e.index = len(*h)
	*h = append(*h, e)
}
func (h *timers) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	e.index = -1
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
