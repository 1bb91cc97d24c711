package core

import "slices"

// Fetch is a follower's fetch as its leader sees it: Offset is the follower's end, so that everything
// below is in its log. Durable is the end that it has synced (equal to Offset where that is not told).
type Fetch struct {
	Broker      int32
	BrokerEpoch int64
	LeaderEpoch int32 // that the follower believes in
	Offset      int64
	Durable     int64
	LogStart    int64
	NowMs       int64
}

// Fetched is a follower's fetch. The offset was checked to be in the log by the driver.
func (c *Core) Fetched(f Fetch) (Work, error) {
	switch {
	case f.LeaderEpoch < c.a.LeaderEpoch:
		return Work{}, ErrFencedEpoch
	case f.LeaderEpoch > c.a.LeaderEpoch:
		return Work{}, ErrUnknownEpoch
	case c.role != Leader:
		return Work{}, ErrNotLeader
	}
	p := c.peer(f.Broker)
	if p == nil {
		return Work{}, ErrNotReplica
	}
	if f.BrokerEpoch < p.brokerEpoch {
		return Work{}, ErrStaleBroker
	}
	end := f.Offset
	if c.cfg.Class == Durable {
		end = min(f.Durable, f.Offset)
	}
	// A follower is caught up as of the moment at which the leader had no more than it has now:
	// now, or, when it fetches behind a busy leader, the time of its fetch before (KIP-16).
	switch {
	case f.Offset >= c.ends.Written:
		p.caughtUpMs = max(p.caughtUpMs, f.NowMs)
	case f.Offset >= p.lastFetchEnd:
		p.caughtUpMs = max(p.caughtUpMs, p.lastFetchMs)
	}
	p.lastFetchMs, p.lastFetchEnd = f.NowMs, c.ends.Written
	p.brokerEpoch, p.end, p.start = f.BrokerEpoch, end, f.LogStart

	w := Work{Moved: c.advance()}
	if c.proposed == nil && c.mayJoin(p) {
		w.Propose = c.propose(append(slices.Clone(c.a.ISR), p.id))
	}
	return w, nil
}

// LowWatermark is the least log start among the leader and its followers on live brokers, as far as they have told in
// this term: what lies below is gone everywhere (KIP-107).
func (c *Core) LowWatermark(live func(broker int32) bool) int64 {
	low := c.ends.Start
	for i := range c.peers {
		if p := &c.peers[i]; live(p.id) {
			low = min(low, p.start)
		}
	}
	return low
}

// Heard tells that a follower had all that the leader had until nowMs, as its fetches then showed without naming the
// partition: nothing had moved in it. It counts only if the follower's last Fetched was at the leader's end.
func (c *Core) Heard(broker int32, brokerEpoch, nowMs int64) {
	p := c.peer(broker)
	if c.role != Leader || p == nil || p.brokerEpoch != brokerEpoch || p.end < 0 || p.end < p.lastFetchEnd {
		return
	}
	p.caughtUpMs, p.lastFetchMs = max(p.caughtUpMs, nowMs), max(p.lastFetchMs, nowMs)
}

// Tick looks for members that have been behind for longer than replica.lag.time.max.ms.
func (c *Core) Tick(nowMs int64) Work {
	if c.role != Leader || c.proposed != nil {
		return Work{}
	}
	isr := slices.DeleteFunc(slices.Clone(c.a.ISR), func(id int32) bool {
		p := c.peer(id)
		return p != nil && p.end < c.ends.Written && nowMs-p.caughtUpMs > c.cfg.LagTimeMaxMs
	})
	if len(isr) == len(c.a.ISR) {
		return Work{}
	}
	return Work{Propose: c.propose(isr)}
}

// Altered is the controller's answer to a proposal: the in-sync set as it stands now, whether it is
// the proposed one or not. An answer to another term, or older than what is held, changes nothing.
func (c *Core) Altered(leaderEpoch, partitionEpoch int32, isr []int32) Work {
	if c.role != Leader || leaderEpoch != c.a.LeaderEpoch || partitionEpoch < c.a.PartitionEpoch {
		return Work{}
	}
	c.proposed = nil
	c.a.ISR, c.a.PartitionEpoch = slices.Clone(isr), partitionEpoch
	c.advance()
	return Work{Moved: true}
}

// Refused is the controller's word that a proposal was not and will not be carried out. For one whose
// fate is unknown there is no event: the larger set must go on counting, and the driver asks again. The epochs are
// those that the proposal was made against: a word that comes late must not be taken for one on the next proposal.
func (c *Core) Refused(leaderEpoch, partitionEpoch int32) Work {
	if c.role != Leader || leaderEpoch != c.a.LeaderEpoch || partitionEpoch != c.a.PartitionEpoch || c.proposed == nil {
		return Work{}
	}
	c.proposed = nil
	return Work{Moved: c.advance()}
}

// Proposed is the in-sync set that the controller was asked for and has not answered; nil: none.
func (c *Core) Proposed() []int32 { return slices.Clone(c.proposed) }

// BrokerEpoch is the registration in which a follower last fetched, -1 unknown.
func (c *Core) BrokerEpoch(id int32) int64 {
	if p := c.peer(id); p != nil {
		return p.brokerEpoch
	}
	return -1
}

// Progress is how far a follower has come, as its leader knows.
type Progress struct {
	Broker int32
	End    int64 // commit end; -1: it has not fetched in this term
	InSync bool
}

// Followers is all of them while leading, by id.
func (c *Core) Followers() []Progress {
	out := make([]Progress, 0, len(c.peers))
	for i := range c.peers {
		p := &c.peers[i]
		out = append(out, Progress{p.id, p.end, slices.Contains(c.a.ISR, p.id)})
	}
	return out
}

// MinISR is how large the in-sync set has to be for acks=all: min.insync.replicas, but not more than there are replicas.
func (c *Core) MinISR() int { return c.effectiveMinISR() }

// mayJoin: a follower joins once it has everything up to the high watermark and up to the start of this
// term. The latter because a new leader's watermark may lag behind what its predecessor acknowledged.
func (c *Core) mayJoin(p *peer) bool {
	return !slices.Contains(c.a.ISR, p.id) && p.end >= max(c.hw, c.termAt)
}

func (c *Core) propose(isr []int32) []int32 {
	c.proposed = isr
	return slices.Clone(isr)
}

// keepPeers makes the followers' table fit the assignment; who stays keeps its progress.
func (c *Core) keepPeers(nowMs int64) {
	var kept []peer
	for _, id := range c.a.Replicas {
		if id == c.cfg.Self {
			continue
		}
		if p := c.peer(id); p != nil {
			kept = append(kept, *p)
			continue
		}
		kept = append(kept, peer{id: id, brokerEpoch: -1, end: -1, start: -1, caughtUpMs: nowMs, lastFetchMs: -1})
	}
	slices.SortFunc(kept, func(a, b peer) int { return int(a.id) - int(b.id) })
	c.peers = kept
}

func (c *Core) peer(id int32) *peer {
	i, ok := slices.BinarySearchFunc(c.peers, id, func(p peer, id int32) int { return int(p.id) - int(id) })
	if !ok {
		return nil
	}
	return &c.peers[i]
}
