// Package follow fetches for the replicas of this broker that follow: a few fetchers for each leader, each with
// one request under way, which asks for all its partitions together.
//
// # Rules
//
// A fetch tells the end of the follower's log and the leader epoch of its last record. The leader answers with
// records, or with the point where the two logs part, upon which the follower cuts back and asks again (KIP-595,
// which brought KIP-101's and KIP-279's rules into the fetch). An offset that the leader does not have any more
// makes the follower start over at the leader's log start. A partition that failed rests for a while, alone;
// when the leader cannot be reached, all its partitions do. A leader is believed only in the epoch in which
// the controller named it: what comes for another one changes nothing.
//
// # What may run at once
//
// Follow and Leave never block and may be called from anywhere. A replica is written to by one fetcher at a time.
package follow

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"platter/engine/store"
	"platter/io/clock"
	"platter/replication/replica"
)

// ErrOutOfRange: the leader does not have the offset that was asked for.
var ErrOutOfRange = errors.New("offset is not in the leader's log")

// Request is one fetch of many partitions. Partitions is all that is wanted on the lane, each at a place of its own for as
// long as it is; Changed are the places where something is not as in the lane's request before, in which case a leader that
// keeps a session (KIP-227) is told nothing else. A place without a topic is empty.
type Request struct {
	Partitions []Wanted
	Changed    []int
	Turn       int // where a request that names all of them begins, so that none is always the last
	MaxWaitMs  int32
	MinBytes   int32
	MaxBytes   int32 // for all; the first partition with records gives a batch whatever its size
}

// Wanted is what is asked for of one partition.
type Wanted struct {
	TP       store.TP
	TopicID  store.UUID
	At       replica.Position
	MaxBytes int32
}

// Given is what is new of one partition. Records are whole batches, and borrowed until the next request on the same lane.
type Given struct {
	Place         int   // in Request.Partitions
	Err           error // ErrOutOfRange and errors of package replica are told apart
	HighWatermark int64
	LogStart      int64
	Records       []byte
	Diverges      bool
	Epoch         int32 // where the logs part, with Diverges
	EndOffset     int64
}

// Leaders is the way to the leaders. A lane is one connection of its own; calls on one come one after the other.
type Leaders interface {
	// Fetch gives what is new, each place once at most. The answer is borrowed until the next request on the lane.
	Fetch(ctx context.Context, leader int32, lane int, r *Request) ([]Given, error)
	// LogStart is the leader's log start offset.
	LogStart(ctx context.Context, leader int32, lane int, w Wanted) (int64, error)
	// Hang up: nothing more is asked of the leader on the lane.
	HangUp(leader int32, lane int)
}

// Config is what a Manager needs; names of Kafka's settings beside the fields.
type Config struct {
	Leaders           Leaders
	Clock             clock.Clock
	Log               *slog.Logger
	Fetchers          int           // num.replica.fetchers
	Backoff           time.Duration // replica.fetch.backoff.ms
	Timeout           time.Duration // replica.socket.timeout.ms
	MaxWaitMs         int32         // replica.fetch.wait.max.ms
	MinBytes          int32         // replica.fetch.min.bytes
	PartitionBytesMax int32         // replica.fetch.max.bytes
	ResponseBytesMax  int32         // replica.fetch.response.max.bytes
}

// Manager has the fetchers. Safe for concurrent use.
type Manager struct {
	cfg  Config
	life context.Context
	end  context.CancelFunc
	all  sync.WaitGroup

	counters counters

	mu       sync.Mutex
	closed   bool
	fetchers map[lane]*fetcher
	where    map[store.TP]*fetcher
	dirs     map[string]int // data directories, numbered as they come
}

// lane is one fetcher of a leader.
type lane struct {
	leader int32
	n      int
}

// New makes a manager without anything to fetch.
func New(c Config) *Manager {
	m := &Manager{cfg: c, fetchers: map[lane]*fetcher{}, where: map[store.TP]*fetcher{}, dirs: map[string]int{}}
	m.life, m.end = context.WithCancel(context.Background())
	return m
}

// Follow fetches for r from its leader from now on; what was fetched for the partition before ends.
func (m *Manager) Follow(tp store.TP, id store.UUID, r *replica.Replica) {
	at, ok := r.Position()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !ok || m.closed {
		m.leave(tp)
		return
	}
	l := lane{at.Leader, m.lane(tp, r)}
	f := m.fetchers[l]
	if old := m.where[tp]; old != nil && old != f {
		old.drop(tp)
	}
	if f == nil {
		f = newFetcher(m, l)
		m.fetchers[l] = f
		m.all.Go(f.run)
	}
	m.where[tp] = f
	p := &part{tp: tp, id: id, r: r, epoch: at.LeaderEpoch}
	p.lag.Store(-1)
	f.put(p)
}

// lane is which of a leader's lanes fetches a partition. Each data directory has its own, so that a disk that hangs holds up what is
// written to it alone. mu is held.
func (m *Manager) lane(tp store.TP, r *replica.Replica) int {
	dir := ""
	if log := r.Log(); log != nil {
		dir = filepath.Dir(log.Dir())
	}
	n, known := m.dirs[dir]
	if !known {
		n = len(m.dirs)
		m.dirs[dir] = n
	}
	each := max(m.cfg.Fetchers, 1)
	return n*each + int(hash(tp)%uint32(each))
}

// Leave stops fetching for a partition.
func (m *Manager) Leave(tp store.TP) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leave(tp)
}

func (m *Manager) leave(tp store.TP) {
	if f := m.where[tp]; f != nil {
		f.drop(tp)
		delete(m.where, tp)
	}
}

// Count is how many partitions are followed, and how many of those rest after an error.
func (m *Manager) Count() (followed, resting int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.fetchers {
		a, b := f.count()
		followed, resting = followed+a, resting+b
	}
	return followed, resting
}

// retire ends a fetcher that has nothing to do; false: it has.
func (m *Manager) retire(f *fetcher) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, _ := f.count(); a > 0 && !m.closed {
		return false
	}
	if m.fetchers[f.lane] == f {
		delete(m.fetchers, f.lane)
	}
	return true
}

// Close ends all fetching, and waits for it.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.end()
	m.all.Wait()
}

func hash(tp store.TP) uint32 {
	n := uint32(tp.Partition)
	for i := range len(tp.Topic) {
		n = n*31 + uint32(tp.Topic[i])
	}
	return n
}
