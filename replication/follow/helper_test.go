package follow

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/clock"
	"platter/io/memdisk"
	"platter/replication/core"
	"platter/replication/replica"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// openStore is the logs of one broker, in memory.
func openStore(t *testing.T, broker int32) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{
		FS: memdisk.New(memdisk.Options{}), Clock: clock.Real{}, Dirs: []string{"/data"}, BrokerID: broker, Log: quiet,
	}, &store.Progress{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(true) })
	return s
}

// rig is brokers 1 and 2, which lead, and 3, which follows.
type rig struct {
	t       *testing.T
	stores  map[int32]*store.Store
	manager *Manager

	mu       sync.Mutex
	leads    map[int32]map[store.TP]*replica.Replica
	away     map[int32]bool
	asked    map[int32]int // fetches
	starts   int           // of questions for a log start
	hungUp   map[int32]int
	hang     bool // fetches wait for their context
	hanging  int
	answered func(*Given) // changes answers
	told     map[lane][]Wanted
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, stores: map[int32]*store.Store{}, leads: map[int32]map[store.TP]*replica.Replica{},
		away: map[int32]bool{}, asked: map[int32]int{}, hungUp: map[int32]int{}, told: map[lane][]Wanted{}}
	for id := int32(1); id <= 3; id++ {
		r.stores[id] = openStore(t, id)
		r.leads[id] = map[store.TP]*replica.Replica{}
	}
	r.manager = New(Config{
		Leaders: r, Clock: clock.Real{}, Log: quiet, Fetchers: 2, Backoff: 2 * time.Millisecond, Timeout: time.Minute,
		MaxWaitMs: 1, MinBytes: 1, PartitionBytesMax: 1 << 20, ResponseBytesMax: 1 << 20,
	})
	t.Cleanup(r.manager.Close)
	return r
}

var topicID = store.UUID{0: 7}

// replica is a broker's replica of a partition, which a broker leads in an epoch.
func (r *rig) replica(broker int32, tp store.TP, leader, epoch int32) *replica.Replica {
	r.t.Helper()
	l, err := r.stores[broker].Create(tp, topicID, commitlog.DefaultConfig())
	if err != nil {
		r.t.Fatal(err)
	}
	p := replica.New(replica.Config{Self: broker, TopicID: topicID, Log: l, MinISR: 1})
	r.assign(p, leader, epoch)
	if leader == broker {
		r.mu.Lock()
		r.leads[broker][tp] = p
		r.mu.Unlock()
	}
	return p
}

func (r *rig) assign(p *replica.Replica, leader, epoch int32) {
	r.t.Helper()
	err := p.Assign(core.Assignment{Leader: leader, LeaderEpoch: epoch, PartitionEpoch: epoch, ISR: []int32{leader}, Replicas: []int32{1, 2, 3}}, 0)
	if err != nil {
		r.t.Fatal(err)
	}
}

// produce appends batches of one record each.
func (r *rig) produce(p *replica.Replica, values ...string) {
	r.t.Helper()
	for _, v := range values {
		bl := batch.NewBuilder()
		bl.Add(1000, nil, []byte(v))
		b, err := bl.Build()
		if err != nil {
			r.t.Fatal(err)
		}
		done := make(chan commitlog.Appended, 1)
		p.Append(&replica.Append{Batches: []batch.Batch{b}, Acks: 1, Done: func(a commitlog.Appended) { done <- a }})
		if a := <-done; a.Err != nil {
			r.t.Fatal(a.Err)
		}
	}
}

// eventually waits for what has to come about, however busy the machine.
func (r *rig) eventually(what string, is func() bool) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("did not come about: %s", what)
		}
	}
}

// same waits until both logs hold the same bytes, epochs and ends.
func (r *rig) same(leader, follower *replica.Replica) {
	r.t.Helper()
	r.eventually("the logs are the same", func() bool {
		a, b := leader.Log().Ends(), follower.Log().Ends()
		return a.Start == b.Start && a.Written == b.Written && content(r.t, leader) == content(r.t, follower)
	})
}

func content(t *testing.T, p *replica.Replica) string {
	e := p.Log().Ends()
	var out []byte
	for at := e.Start; at < e.Written; {
		read, err := p.Log().Read(at, 1<<20, e.Written, true)
		if err != nil || read.SizeBytes == 0 {
			break // it is being changed
		}
		at = read.NextOffset
		out = append(out, bytesOf(t, &read)...)
	}
	return string(out)
}

func bytesOf(t *testing.T, read *commitlog.Read) []byte {
	defer read.Release()
	var out []byte
	for _, rg := range read.Ranges {
		p := make([]byte, rg.Len)
		if _, err := rg.File.ReadAt(p, rg.Pos); err != nil && err != io.EOF {
			t.Error(err)
		}
		out = append(out, p...)
	}
	return out
}

var errAway = errors.New("connection refused")

// remember is what a leader with a session knows: all that it was told at first, then what is said to have changed. It has to
// be what is wanted.
func (r *rig) remember(l lane, q *Request) {
	told := r.told[l]
	if told == nil {
		r.told[l] = slices.Clone(q.Partitions)
		return
	}
	for len(told) < len(q.Partitions) {
		told = append(told, Wanted{})
	}
	for _, n := range q.Changed {
		told[n] = q.Partitions[n]
	}
	if r.told[l] = told; !slices.Equal(told, q.Partitions) {
		r.t.Errorf("changed are %v, but of what was told\n%v\nis wanted now\n%v", q.Changed, told, q.Partitions)
	}
}

// Fetch implements Leaders as net/api does it.
func (r *rig) Fetch(ctx context.Context, leader int32, n int, q *Request) ([]Given, error) {
	r.mu.Lock()
	r.remember(lane{leader, n}, q)
	r.asked[leader]++
	away, hang := r.away[leader], r.hang
	if hang {
		r.hanging++
	}
	r.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if away {
		r.mu.Lock()
		delete(r.told, lane{leader, n})
		r.mu.Unlock()
		return nil, errAway
	}
	var given []Given
	for i := range q.Partitions {
		if q.Partitions[i].TP.Topic == "" {
			continue
		}
		g := r.give(leader, &q.Partitions[i])
		g.Place = i
		r.mu.Lock()
		change := r.answered // after the log was read: what is appended later is surely changed
		r.mu.Unlock()
		if change != nil {
			change(&g)
		}
		given = append(given, g)
	}
	return given, nil
}

func (r *rig) give(leader int32, w *Wanted) Given {
	r.mu.Lock()
	p := r.leads[leader][w.TP]
	r.mu.Unlock()
	if p == nil {
		return Given{Err: replica.ErrUnknownPartition}
	}
	st, err := p.State(w.At.LeaderEpoch)
	if err != nil {
		return Given{Err: err}
	}
	if epoch, end, diverges := p.Diverges(w.At.LastEpoch, w.At.Offset); diverges && epoch >= 0 {
		return Given{Diverges: true, Epoch: epoch, EndOffset: end, HighWatermark: st.HighWatermark, LogStart: st.LogStart}
	}
	read, st, err := p.Read(w.At.Offset, int64(w.MaxBytes), replica.LogEnd, w.At.LeaderEpoch, true)
	if errors.Is(err, commitlog.ErrOffsetOutOfRange) {
		err = ErrOutOfRange
	}
	if err != nil {
		return Given{Err: err}
	}
	return Given{Records: bytesOf(r.t, &read), HighWatermark: st.HighWatermark, LogStart: st.LogStart}
}

// LogStart implements Leaders.
func (r *rig) LogStart(_ context.Context, leader int32, _ int, w Wanted) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starts++
	return r.leads[leader][w.TP].Log().Ends().Start, nil
}

// HangUp implements Leaders.
func (r *rig) HangUp(leader int32, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hungUp[leader]++
	delete(r.told, lane{leader, n})
}

func (r *rig) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}
