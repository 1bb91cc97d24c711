package follow

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
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
	news  []store.TP // who was put or dropped, for the goroutine

	// The goroutine's own.
	places  places
	req     Request
	batches []batch.Batch

	failing atomic.Bool // the leader could not be reached
}

// part is one partition that is fetched.
type part struct {
	tp    store.TP
	id    store.UUID
	r     *replica.Replica
	epoch int32
	lag   atomic.Int64 // -1: no answer yet
	// Under the fetcher's mu.
	rest  time.Time // it is left alone until then
	warns int       // errors in a row
}

func newFetcher(m *Manager, l lane) *fetcher {
	return &fetcher{m: m, lane: l, wake: make(chan struct{}, 1), parts: map[store.TP]*part{}, places: newPlaces(m.cfg.PartitionBytesMax)}
}

func (f *fetcher) put(p *part) {
	f.mu.Lock()
	f.parts[p.tp] = p
	f.news = append(f.news, p.tp)
	f.mu.Unlock()
	f.nudge()
}

func (f *fetcher) drop(tp store.TP) {
	f.mu.Lock()
	delete(f.parts, tp)
	f.news = append(f.news, tp)
	f.mu.Unlock()
}

// dropPart drops a partition unless it was put anew meanwhile.
func (f *fetcher) dropPart(p *part) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parts[p.tp] == p {
		delete(f.parts, p.tp)
		f.places.remove(p.tp)
	}
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
		if f.places.count == 0 {
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

// due brings the places up to date; where all are empty it gives the time until somebody has rested, -1: nobody rests.
func (f *fetcher) due() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.places
	for _, tp := range f.news {
		if p := f.parts[tp]; p != nil {
			f.place(p)
		} else {
			s.remove(tp)
		}
	}
	clear(f.news)
	f.news = f.news[:0]
	now := f.m.cfg.Clock.Now()
	next := time.Duration(-1)
	resting := s.resting
	s.resting = s.resting[:0]
	for _, p := range resting {
		switch d := p.rest.Sub(now); {
		case f.parts[p.tp] != p: // dropped, or put anew
		case d > 0 && d <= f.m.cfg.Backoff: // longer: the clock was set back
			s.resting = append(s.resting, p)
			if next < 0 || d < next {
				next = d
			}
		default:
			f.place(p)
		}
	}
	clear(resting[len(s.resting):])
	if now.After(s.refresh) {
		s.refresh = now.Add(refreshEvery)
		for _, p := range s.parts {
			if p != nil {
				f.place(p)
			}
		}
	}
	return next
}

// place has a partition asked for, from where it stands. mu is held.
func (f *fetcher) place(p *part) {
	if !f.places.put(p) && f.parts[p.tp] == p {
		delete(f.parts, p.tp)
	}
}

// round is one fetch with all that follows from it.
func (f *fetcher) round() error {
	c, s := &f.m.cfg, &f.places
	f.req = Request{Partitions: s.wanted, Changed: s.changed, Turn: s.turn, MaxWaitMs: c.MaxWaitMs, MinBytes: c.MinBytes, MaxBytes: c.ResponseBytesMax}
	ctx, cancel := context.WithTimeout(f.m.life, c.Timeout+time.Duration(c.MaxWaitMs)*time.Millisecond)
	defer cancel()
	f.m.counters.requests.Add(1)
	given, err := c.Leaders.Fetch(ctx, f.lane.leader, f.lane.n, &f.req)
	s.asked() // after an error the leader is told everything anew
	if err != nil {
		return err
	}
	if f.failing.Swap(false) {
		c.Log.Info("the leader answers again", "leader", f.lane.leader)
	}
	for i := range given {
		if g := &given[i]; s.parts[g.Place] != nil {
			f.settle(ctx, s.parts[g.Place], s.wanted[g.Place], g)
		}
	}
	return nil
}

// settle does what one partition's answer asks for.
func (f *fetcher) settle(ctx context.Context, p *part, w Wanted, g *Given) {
	err := f.take(ctx, p, &w, g)
	switch {
	case err == nil:
		p.answered(f.m, &w, g)
		f.well(p)
	case errors.Is(err, replica.ErrFencedEpoch) && g.Err == nil: // the controller has said something else meanwhile, perhaps
	default:
		f.pause(p, err)
		return
	}
	if !f.places.put(p) {
		f.dropPart(p)
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
	f.places.rest(p)
	f.mu.Unlock()
	const quiet = 2
	if warns == quiet || errors.Is(err, commitlog.ErrOffline) && warns == 1 {
		f.m.cfg.Log.Warn("a partition cannot be followed; will try again", "topic", p.tp.Topic, "partition", p.tp.Partition,
			"leader", f.lane.leader, "err", err)
	}
}

// well ends a row of errors.
func (f *fetcher) well(p *part) {
	if p.warns == 0 { // only this goroutine writes it
		return
	}
	f.mu.Lock()
	p.warns = 0
	f.mu.Unlock()
}

// unreachable lets all partitions rest.
func (f *fetcher) unreachable(err error) {
	f.m.counters.failures.Add(1)
	if !f.failing.Swap(true) {
		f.m.cfg.Log.Warn("the leader cannot be reached; will try again", "leader", f.lane.leader, "err", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	rest := f.m.cfg.Clock.Now().Add(f.m.cfg.Backoff)
	for _, p := range f.places.parts {
		if p != nil {
			p.rest = rest
			f.places.rest(p)
		}
	}
}
