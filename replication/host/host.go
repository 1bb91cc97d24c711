// Package host is all replicas of this broker: it applies what the controller tells, and finds replicas.
//
// The controller's words for different partitions are applied in parallel, those for one partition in
// the order of their epochs: an older one is refused. Looking a replica up takes one read
// lock of a shard.
package host

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/clock"
	"platter/io/keyed"
	"platter/replication/core"
	"platter/replication/replica"
)

// ErrStaleTopic: the word is about another incarnation of the topic than the one that is held.
var ErrStaleTopic = errors.New("topic id is of another incarnation")

// PartitionState is what the controller tells of one partition (Kafka's LeaderAndIsr).
type PartitionState struct {
	TP              store.TP
	TopicID         store.UUID
	ControllerEpoch int32
	Leader          int32
	LeaderEpoch     int32
	ISR             []int32
	Replicas        []int32
	PartitionEpoch  int32 // version of the state znode
	New             bool  // it was just created: no log of it can be anywhere yet
	MinISR          int
	Config          commitlog.Config
}

// logs is what the host uses of *store.Store.
type logs interface {
	Get(store.TP) *commitlog.Log
	TopicID(store.TP) store.UUID
	Create(store.TP, store.UUID, commitlog.Config) (*commitlog.Log, error)
	CreateNew(store.TP, store.UUID, commitlog.Config) (*commitlog.Log, error)
	Delete(store.TP) error
	HighWatermarkCheckpoint(store.TP) int64
}

// Followers fetches for the replicas that follow (*follow.Manager). Its methods must not block.
type Followers interface {
	// Follow fetches for r from now on, from the leader that it has now.
	Follow(store.TP, store.UUID, *replica.Replica)
	// Leave stops fetching for a partition, if it was.
	Leave(store.TP)
}

// Config is what a host needs.
type Config struct {
	Broker int32
	Store  *store.Store
	Clock  clock.Clock
	// LagTimeMaxMs is replica.lag.time.max.ms.
	LagTimeMaxMs int64
	// Followers is nil where nothing is followed.
	Followers Followers
	// Wanted is told when a leader here wants another in-sync set. It must not block; nil: nobody cares.
	Wanted func(store.TP, *replica.Replica)
}

// Host holds the replicas. Safe for concurrent use.
type Host struct {
	cfg    Config
	store  logs
	clock  clock.Clock
	shards [64]shard
	ending chan struct{}
	// applying is held over the disk, by one partition's word at a time: whose disk hangs holds up nobody else.
	applying keyed.Locks[store.TP]
	patience patience

	mu     sync.RWMutex
	topics map[store.UUID]*hosted
}

// shard is the replicas whose names hash alike. mu is never held over the disk.
type shard struct {
	mu       sync.RWMutex
	replicas map[store.TP]*held
}

// held is one replica with what it was made of.
type held struct {
	topicID store.UUID
	*replica.Replica
}

// hosted is one topic with replicas here.
type hosted struct {
	name  string
	count int
}

// New makes a host for the broker over its store. Close ends it.
func New(c Config) *Host { return newHost(c, c.Store) }

func newHost(c Config, s logs) *Host {
	h := &Host{cfg: c, store: s, clock: c.Clock, ending: make(chan struct{}), topics: make(map[store.UUID]*hosted)}
	h.patience = patience{max: patienceMax, running: map[store.TP]int{}, late: map[store.TP]bool{}}
	for i := range h.shards {
		h.shards[i].replicas = make(map[store.TP]*held)
	}
	if c.LagTimeMaxMs > 0 {
		go h.watchLag()
	}
	return h
}

// watchLag looks for followers that lag, twice as often as they may, as Kafka does (ReplicaManager's
// isr-expiration).
func (h *Host) watchLag() {
	every := max(time.Duration(h.cfg.LagTimeMaxMs)*time.Millisecond/2, time.Millisecond)
	for {
		select {
		case <-h.ending:
			return
		case <-h.clock.After(every):
		}
		now := clock.ElapsedMs(h.clock)
		h.All(func(_ store.TP, r *replica.Replica) { r.Tick(now) })
	}
}

// Apply makes this broker leader or follower of each partition; results are in the order given. It
// returns once the replicas serve in their roles, or a disk has not answered for long (ErrHangs). An older leader epoch than the one held is refused
// (replica.ErrStaleEpoch), and so is another topic id (ErrStaleTopic: Stop comes first). Another error is
// the store's: the replica is not served.
func (h *Host) Apply(states []PartitionState) []error {
	tps := make([]store.TP, len(states))
	for i := range states {
		tps[i] = states[i].TP
	}
	states = slices.Clone(states) // a disk that hangs keeps them for longer than the call
	return h.each(tps, func(i int) error { return h.apply(&states[i]) })
}

func (h *Host) apply(s *PartitionState) error {
	defer h.applying.Lock(s.TP)()
	sh := h.shard(s.TP)
	r, err := h.ensure(sh, s)
	if err != nil {
		return fmt.Errorf("%s-%d: %w", s.TP.Topic, s.TP.Partition, err)
	}
	err = r.Assign(core.Assignment{
		ControllerEpoch: s.ControllerEpoch,
		Leader:          s.Leader,
		LeaderEpoch:     s.LeaderEpoch,
		PartitionEpoch:  s.PartitionEpoch,
		ISR:             s.ISR,
		Replicas:        s.Replicas,
	}, clock.ElapsedMs(h.clock))
	if err != nil {
		return fmt.Errorf("%s-%d: %w", s.TP.Topic, s.TP.Partition, err)
	}
	if h.cfg.Followers != nil {
		if _, follows := r.Position(); follows {
			h.cfg.Followers.Follow(s.TP, s.TopicID, r.Replica)
		} else {
			h.cfg.Followers.Leave(s.TP)
		}
	}
	return nil
}

// ensure finds the replica or makes it, with its log. Called with applying held.
func (h *Host) ensure(sh *shard, s *PartitionState) (*held, error) {
	if r := sh.get(s.TP); r != nil {
		if r.topicID != s.TopicID {
			return nil, ErrStaleTopic
		}
		return r, nil
	}
	create := h.store.Create
	if s.New {
		create = h.store.CreateNew
	}
	l, err := create(s.TP, s.TopicID, s.Config)
	if err != nil {
		return nil, err
	}
	l.SetConfig(s.Config) // a log that was there already was opened with what was known then
	c := replica.Config{
		Self:          h.cfg.Broker,
		TopicID:       s.TopicID,
		Log:           l,
		HighWatermark: h.store.HighWatermarkCheckpoint(s.TP),
		MinISR:        s.MinISR,
		LagTimeMaxMs:  h.cfg.LagTimeMaxMs,
	}
	if h.cfg.Wanted != nil {
		tp := s.TP
		c.Wanted = func(r *replica.Replica) { h.cfg.Wanted(tp, r) }
	}
	r := &held{topicID: s.TopicID, Replica: replica.New(c)}
	sh.set(s.TP, r)
	h.count(s.TopicID, s.TP.Topic, 1)
	return r, nil
}

// Stop ends the replicas; with remove their logs are deleted, also those without a replica. A partition
// of which nothing is here is no error. ErrHangs as with Apply.
func (h *Host) Stop(tps []store.TP, remove bool) []error {
	tps = slices.Clone(tps)
	return h.each(tps, func(i int) error { return h.stop(tps[i], remove) })
}

func (h *Host) stop(tp store.TP, remove bool) error {
	defer h.applying.Lock(tp)()
	sh := h.shard(tp)
	if r := sh.get(tp); r != nil {
		sh.set(tp, nil)
		if h.cfg.Followers != nil {
			h.cfg.Followers.Leave(tp)
		}
		r.Stop()
		h.count(r.topicID, tp.Topic, -1)
	}
	if !remove {
		return nil
	}
	return h.store.Delete(tp)
}

// Close stops all replicas: appends and reads are refused from now on. Their logs stay open. Called once.
func (h *Host) Close() {
	close(h.ending)
	var tps []store.TP
	h.All(func(tp store.TP, _ *replica.Replica) { tps = append(tps, tp) })
	h.Stop(tps, false)
}

// Reconfigure gives a topic's replicas their new settings.
func (h *Host) Reconfigure(topic string, c commitlog.Config, minISR int) {
	h.All(func(tp store.TP, r *replica.Replica) {
		if tp.Topic == topic {
			r.SetConfig(c, minISR)
		}
	})
}

// ReconfigureAll gives all replicas their new settings; settings is asked once for each topic.
func (h *Host) ReconfigureAll(settings func(topic string) (commitlog.Config, int)) {
	type topicSettings struct {
		log    commitlog.Config
		minISR int
	}
	known := map[string]topicSettings{}
	h.All(func(tp store.TP, r *replica.Replica) {
		s, ok := known[tp.Topic]
		if !ok {
			s.log, s.minISR = settings(tp.Topic)
			known[tp.Topic] = s
		}
		r.SetConfig(s.log, s.minISR)
	})
}

// Replica finds one; replica.ErrUnknownPartition.
func (h *Host) Replica(tp store.TP) (*replica.Replica, error) {
	r := h.shard(tp).get(tp)
	if r == nil {
		return nil, replica.ErrUnknownPartition
	}
	return r.Replica, nil
}

// TopicName finds the topic's name among this broker's replicas.
func (h *Host) TopicName(id store.UUID) (string, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	t, ok := h.topics[id]
	if !ok {
		return "", false
	}
	return t.name, true
}

// HighWatermark is for the store's retention and checkpoint.
func (h *Host) HighWatermark(tp store.TP) (int64, bool) {
	r, err := h.Replica(tp)
	if err != nil {
		return 0, false
	}
	s, _ := r.State(-1)
	return s.HighWatermark, true
}

// All calls fn for each replica that is here now, in no order.
func (h *Host) All(fn func(store.TP, *replica.Replica)) {
	for i := range h.shards {
		sh := &h.shards[i]
		sh.mu.RLock()
		some := maps.Clone(sh.replicas)
		sh.mu.RUnlock()
		for tp, r := range some {
			fn(tp, r.Replica)
		}
	}
}

func (h *Host) shard(tp store.TP) *shard {
	n := uint32(tp.Partition)
	for i := range len(tp.Topic) {
		n = n*31 + uint32(tp.Topic[i])
	}
	return &h.shards[n%uint32(len(h.shards))]
}

func (sh *shard) get(tp store.TP) *held {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return sh.replicas[tp]
}

// set puts a replica in, or with nil takes it out.
func (sh *shard) set(tp store.TP, r *held) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if r == nil {
		delete(sh.replicas, tp)
		return
	}
	sh.replicas[tp] = r
}

// count keeps the topics' names by id: d replicas of the topic more.
func (h *Host) count(id store.UUID, name string, d int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[id]
	if t == nil {
		t = &hosted{name: name}
		h.topics[id] = t
	}
	if t.count += d; t.count == 0 {
		delete(h.topics, id)
	}
}
