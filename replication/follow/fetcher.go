package follow

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/replication/replica"
)

// idleMax is how long a fetcher without partitions lives on.
const idleMax = 10 * time.Second

// fetcher fetches from one leader on one lane.
type fetcher struct {
	m    *Manager
	lane lane
	wake chan struct{}

	mu    sync.Mutex
	parts map[store.TP]*part
	turn  int // where the next request starts: none is always the last

	// The goroutine's own.
	list    []*part
	req     Request
	batches []batch.Batch
	failing bool // the leader could not be reached
}

// part is one partition that is fetched.
type part struct {
	tp    store.TP
	id    store.UUID
	r     *replica.Replica
	epoch int32
	rest  time.Time // it is left alone until then
	warns int
}

func newFetcher(m *Manager, l lane) *fetcher {
	return &fetcher{m: m, lane: l, wake: make(chan struct{}, 1), parts: map[store.TP]*part{}}
}

func (f *fetcher) put(p *part) {
	f.mu.Lock()
	f.parts[p.tp] = p
	f.mu.Unlock()
	f.nudge()
}

func (f *fetcher) drop(tp store.TP) {
	f.mu.Lock()
	delete(f.parts, tp)
	f.mu.Unlock()
}

// dropPart drops a partition unless it was put anew meanwhile.
func (f *fetcher) dropPart(p *part) {
	f.mu.Lock()
	if f.parts[p.tp] == p {
		delete(f.parts, p.tp)
	}
	f.mu.Unlock()
}

func (f *fetcher) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *fetcher) count() (all, resting int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.m.cfg.Clock.Now()
	for _, p := range f.parts {
		if p.rest.After(now) {
			resting++
		}
	}
	return len(f.parts), resting
}

func (f *fetcher) run() {
	defer f.m.cfg.Leaders.HangUp(f.lane.leader, f.lane.n)
	for f.m.life.Err() == nil {
		wait := f.due()
		if len(f.list) == 0 {
			if wait < 0 {
				wait = idleMax
			}
			select {
			case <-f.wake:
			case <-f.m.cfg.Clock.After(wait):
				if f.m.retire(f) {
					return
				}
			case <-f.m.life.Done():
			}
			continue
		}
		if err := f.round(); err != nil && f.m.life.Err() == nil {
			f.unreachable(err)
		}
	}
	f.m.retire(f)
}

// due gathers what is to be asked for now, in turn; else it gives the time until something is, -1: nothing.
func (f *fetcher) due() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = f.list[:0]
	now := f.m.cfg.Clock.Now()
	next := time.Duration(-1)
	for _, p := range f.parts {
		if d := p.rest.Sub(now); d > 0 {
			if next < 0 || d < next {
				next = d
			}
			continue
		}
		f.list = append(f.list, p)
	}
	if len(f.list) == 0 {
		return next
	}
	slices.SortFunc(f.list, func(a, b *part) int {
		return cmp.Or(strings.Compare(a.tp.Topic, b.tp.Topic), cmp.Compare(a.tp.Partition, b.tp.Partition))
	})
	f.turn = (f.turn + 1) % len(f.list)
	f.list = append(slices.Clone(f.list[f.turn:]), f.list[:f.turn]...)
	return 0
}

// round is one fetch with all that follows from it.
func (f *fetcher) round() error {
	c := &f.m.cfg
	f.req = Request{Partitions: f.req.Partitions[:0], MaxWaitMs: c.MaxWaitMs, MinBytes: c.MinBytes, MaxBytes: c.ResponseBytesMax}
	asked := f.list[:0]
	for _, p := range f.list {
		at, ok := p.r.Position()
		if !ok || at.LeaderEpoch != p.epoch {
			f.dropPart(p)
			continue
		}
		asked = append(asked, p)
		f.req.Partitions = append(f.req.Partitions, Wanted{p.tp, p.id, at, c.PartitionBytesMax})
	}
	f.list = asked
	if len(asked) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(f.m.life, c.Timeout+time.Duration(c.MaxWaitMs)*time.Millisecond)
	defer cancel()
	given, err := c.Leaders.Fetch(ctx, f.lane.leader, f.lane.n, &f.req)
	if err != nil {
		return err
	}
	if f.failing {
		f.failing = false
		c.Log.Info("the leader answers again", "leader", f.lane.leader)
	}
	for i, p := range asked {
		f.settle(ctx, p, &f.req.Partitions[i], &given[i])
	}
	return nil
}

// settle does what one partition's answer asks for.
func (f *fetcher) settle(ctx context.Context, p *part, w *Wanted, g *Given) {
	err := f.take(ctx, p, w, g)
	switch {
	case err == nil:
		p.warns = 0
	case errors.Is(err, replica.ErrFencedEpoch) && g.Err == nil:
		if at, follows := p.r.Position(); !follows || at.LeaderEpoch != p.epoch {
			f.dropPart(p) // the controller has said something else meanwhile
		}
	default:
		f.pause(p, err)
	}
}

func (f *fetcher) take(ctx context.Context, p *part, w *Wanted, g *Given) error {
	switch log := f.m.cfg.Log; {
	case errors.Is(g.Err, ErrOutOfRange):
		log.Warn("the leader does not have this replica's log end; starting over", "topic", p.tp.Topic, "partition", p.tp.Partition, "end", w.At.Offset)
	case g.Diverges:
		log.Info("cutting back to where the leader's log parts", "topic", p.tp.Topic, "partition", p.tp.Partition,
			"end", w.At.Offset, "epoch", g.Epoch, "leaderEnd", g.EndOffset)
	}
	var err error
	f.batches, err = Apply(p.r, w.At, g, f.batches, func() (int64, error) {
		return f.m.cfg.Leaders.LogStart(ctx, f.lane.leader, f.lane.n, *w)
	})
	return err
}

// Apply does what the answer to a follower's fetch at a position asks for: append, cut back, or start over where
// logStart says that the leader's log starts. batches is memory to be used again, and comes back. The errors are those
// of the answer, of the replica, and of records that are none.
func Apply(r *replica.Replica, at replica.Position, g *Given, batches []batch.Batch, logStart func() (int64, error)) ([]batch.Batch, error) {
	switch {
	case g.Unchanged:
		return batches, nil
	case errors.Is(g.Err, ErrOutOfRange):
		start, err := logStart()
		if err != nil {
			return batches, err
		}
		return batches, r.StartOver(at, start)
	case g.Err != nil:
		return batches, g.Err
	case g.Diverges:
		return batches, r.CutBack(at, g.Epoch, g.EndOffset)
	}
	batches, err := batch.Split(batches[:0], g.Records)
	if err != nil && (len(batches) == 0 || !errors.Is(err, batch.ErrTruncated)) {
		return batches, err
	}
	return batches, r.AppendFetched(at, replica.Fetched{Batches: batches, HighWatermark: g.HighWatermark, LogStart: g.LogStart})
}

// pause lets a partition rest. Only the first of a row of errors is said aloud: a leader that does not know its
// part yet is usual when roles change.
func (f *fetcher) pause(p *part, err error) {
	f.mu.Lock()
	p.rest = f.m.cfg.Clock.Now().Add(f.m.cfg.Backoff)
	p.warns++
	warns := p.warns
	f.mu.Unlock()
	const quiet = 2
	if warns == quiet || errors.Is(err, commitlog.ErrOffline) && warns == 1 {
		f.m.cfg.Log.Warn("a partition cannot be followed; will try again", "topic", p.tp.Topic, "partition", p.tp.Partition,
			"leader", f.lane.leader, "err", err)
	}
}

// unreachable lets all partitions rest.
func (f *fetcher) unreachable(err error) {
	if !f.failing {
		f.failing = true
		f.m.cfg.Log.Warn("the leader cannot be reached; will try again", "leader", f.lane.leader, "err", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	rest := f.m.cfg.Clock.Now().Add(f.m.cfg.Backoff)
	for _, p := range f.parts {
		p.rest = rest
	}
}
