package core

import "slices"

// Core is the state of one partition.
type Core struct {
	cfg  Config
	role Role
	a    Assignment
	ends Ends
	hw   int64

	peers    []peer  // the other replicas, while leading; sorted by id
	proposed []int32 // the in-sync set that the controller was asked for; nil: none
	termAt   int64   // log end when the term as leader began
}

// peer is what a leader knows of one follower.
type peer struct {
	id          int32
	brokerEpoch int64
	end         int64 // commit end; -1: has not fetched in this term
	start       int64
	// caughtUpMs is the last time at which the follower had all that the leader had; lastFetchMs and
	// lastFetchEnd say what the leader had at the fetch before (Kafka's ReplicaState).
	caughtUpMs   int64
	lastFetchMs  int64
	lastFetchEnd int64
}

// New makes the core of a partition that has no assignment yet. hw is the checkpointed high watermark;
// it is clamped into the log.
func New(cfg Config, ends Ends, hw int64) *Core {
	return &Core{
		cfg:  cfg,
		a:    Assignment{ControllerEpoch: -1, Leader: NoLeader, LeaderEpoch: -1, PartitionEpoch: -1},
		ends: ends,
		hw:   clamp(hw, ends.Start, ends.Written),
	}
}

// Role, Leader, LeaderEpoch, PartitionEpoch, HighWatermark and Ends are the state as it is. Leader may
// be NoLeader. TermStart is the log end at which the newest term as leader began. ISR and Replicas are the core's: read only, until the next event.
func (c *Core) Role() Role            { return c.role }
func (c *Core) Leader() int32         { return c.a.Leader }
func (c *Core) LeaderEpoch() int32    { return c.a.LeaderEpoch }
func (c *Core) PartitionEpoch() int32 { return c.a.PartitionEpoch }
func (c *Core) HighWatermark() int64  { return c.hw }
func (c *Core) TermStart() int64      { return c.termAt }
func (c *Core) Ends() Ends            { return c.ends }
func (c *Core) ISR() []int32          { return c.a.ISR }
func (c *Core) Replicas() []int32     { return c.a.Replicas }

// Assign is the controller's word. nowMs counts from now on for followers that have not fetched yet:
// they get replica.lag.time.max.ms to show up.
func (c *Core) Assign(a Assignment, nowMs int64) (Work, error) {
	if a.LeaderEpoch < c.a.LeaderEpoch ||
		a.LeaderEpoch == c.a.LeaderEpoch && a.PartitionEpoch < c.a.PartitionEpoch {
		return Work{}, ErrStaleEpoch
	}
	newTerm := a.LeaderEpoch > c.a.LeaderEpoch
	was := c.role
	// A leader that is given the next epoch, since a follower went away, still has in its log what it appended before:
	// who waits goes on waiting, as in Kafka. Over a gap between the epochs somebody else may have led.
	keeps := was == Leader && a.Leader == c.cfg.Self && a.LeaderEpoch <= c.a.LeaderEpoch+1
	if newTerm || a.PartitionEpoch > c.a.PartitionEpoch {
		c.proposed = nil // answered, or overtaken; a mere repetition leaves it open
	}
	c.a = a
	c.a.ISR = slices.Clone(a.ISR)
	c.a.Replicas = slices.Clone(a.Replicas)
	switch {
	case a.Leader == c.cfg.Self:
		c.role = Leader
	case a.Leader != NoLeader:
		c.role = Follower
	default:
		c.role = Idle
	}
	w := Work{Lost: was == Leader && !keeps}
	switch {
	case c.role != Leader:
		c.peers, c.proposed = nil, nil
		w.Follow = c.role == Follower && (newTerm || was != Follower)
	case newTerm || was != Leader:
		c.peers = nil
		c.keepPeers(nowMs)
		c.termAt = c.ends.Written
		w.Lead = true
		w.Moved = c.advance()
	default:
		c.keepPeers(nowMs)
		c.advance()
		w.Moved = true
	}
	return w, nil
}

// Appended tells that the log's ends moved: an append, a sync, a trim. While leading, ends never go back.
func (c *Core) Appended(e Ends) Work {
	c.ends = e
	if c.role == Leader {
		return Work{Moved: c.advance()}
	}
	hw := clamp(c.hw, e.Start, e.Written)
	moved := hw > c.hw
	c.hw = hw
	return Work{Moved: moved}
}

// LeaderSaid is a follower's news from its leader's fetch answer: the leader's high watermark, which is
// followed as far as the own log reaches.
func (c *Core) LeaderSaid(hw int64) Work {
	if c.role != Follower {
		return Work{}
	}
	hw = clamp(hw, c.ends.Start, c.ends.Written)
	if hw <= c.hw {
		return Work{}
	}
	c.hw = hw
	return Work{Moved: true}
}

// Enough says whether acks=all may be accepted: ErrNotEnoughReplicas when the in-sync set is smaller
// than the effective min.insync.replicas.
func (c *Core) Enough() error {
	if len(c.a.ISR) < c.effectiveMinISR() {
		return ErrNotEnoughReplicas
	}
	return nil
}

// SetConfig changes what the topic's settings say.
func (c *Core) SetConfig(minISR int, class Class) Work {
	c.cfg.MinISR, c.cfg.Class = minISR, class
	if c.role != Leader {
		return Work{}
	}
	return Work{Moved: c.advance()}
}

// advance raises the leader's high watermark as far as the rules allow.
func (c *Core) advance() bool {
	c.hw = max(c.hw, c.ends.Start)
	if len(c.a.ISR) < c.effectiveMinISR() {
		return false
	}
	hw := c.commitEnd(c.ends)
	for i := range c.peers {
		p := &c.peers[i]
		if c.counts(p.id) && p.end < hw {
			hw = p.end
		}
	}
	if hw <= c.hw {
		return false
	}
	c.hw = hw
	return true
}

// counts says whether a broker holds the high watermark back: a member of the in-sync set, or of the
// one that was proposed.
func (c *Core) counts(id int32) bool {
	return slices.Contains(c.a.ISR, id) || slices.Contains(c.proposed, id)
}

func (c *Core) commitEnd(e Ends) int64 {
	if c.cfg.Class == Durable {
		return e.Durable
	}
	return e.Written
}

func (c *Core) effectiveMinISR() int {
	return min(c.cfg.MinISR, len(c.a.Replicas))
}

func clamp(v, low, high int64) int64 { return max(low, min(v, high)) }
