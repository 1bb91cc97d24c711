package follow

import (
	"cmp"
	"slices"
	"sync/atomic"

	"platter/engine/store"
)

// Stats is what a Manager has done, and where its fetchers stand.
type Stats struct {
	Requests, Failures int64 // fetches, and those without an answer
	Bytes              int64 // of record batches that were appended
	Fetchers           []FetcherStats
}

// FetcherStats is one fetcher.
type FetcherStats struct {
	Leader, Lane int  // broker id, and which of the fetchers from it
	Failing      bool // the leader did not answer last time
	Partitions   []PartitionStats
}

// PartitionStats is one partition that is followed.
type PartitionStats struct {
	TP store.TP
	// Lag is how many records the replica lacked below the leader's high watermark at the last answer, as Kafka counts
	// it (FetcherLagMetrics); -1: there was none yet.
	Lag int64
	// Failed: it rests after an error of its own.
	Failed bool
}

// counters are the manager's, of all its fetchers.
type counters struct{ requests, failures, bytes atomic.Int64 }

// Stats looks at all fetchers.
func (m *Manager) Stats() Stats {
	out := Stats{Requests: m.counters.requests.Load(), Failures: m.counters.failures.Load(), Bytes: m.counters.bytes.Load()}
	m.mu.Lock()
	fetchers := make([]*fetcher, 0, len(m.fetchers))
	for _, f := range m.fetchers {
		fetchers = append(fetchers, f)
	}
	m.mu.Unlock()
	for _, f := range fetchers {
		out.Fetchers = append(out.Fetchers, f.stats())
	}
	slices.SortFunc(out.Fetchers, func(a, b FetcherStats) int { return cmp.Or(a.Leader-b.Leader, a.Lane-b.Lane) })
	return out
}

func (f *fetcher) stats() FetcherStats {
	s := FetcherStats{Leader: int(f.lane.leader), Lane: f.lane.n, Failing: f.failing.Load()}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.parts {
		s.Partitions = append(s.Partitions, PartitionStats{TP: p.tp, Lag: p.lag.Load(), Failed: p.warns > 0})
	}
	return s
}

// answered notes what an answer without an error said.
func (p *part) answered(m *Manager, w *Wanted, g *Given) {
	if g.Diverges || g.Err != nil {
		return
	}
	m.counters.bytes.Add(int64(len(g.Records)))
	end := w.At.Offset
	if at, follows := p.r.Position(); follows {
		end = at.Offset
	}
	p.lag.Store(max(g.HighWatermark-end, 0))
}
