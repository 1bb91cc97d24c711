package replica

import (
	"fmt"

	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/replication/core"
)

// Position is where a follower stands: what it asks its leader for next.
type Position struct {
	Leader      int32
	LeaderEpoch int32
	Offset      int64 // the log's end
	LastEpoch   int32 // leader epoch of the last record, -1 of an empty log (KIP-595)
	LogStart    int64
}

// Position is where this replica stands as a follower; false: it does not follow anybody.
func (r *Replica) Position() (Position, bool) {
	v := r.view.Load()
	if !r.follows(v) {
		return Position{}, false
	}
	e := r.log.Ends()
	last := int32(-1)
	if e.Written > e.Start {
		last = r.log.EpochAt(e.Written - 1)
	}
	return Position{Leader: v.leader, LeaderEpoch: v.epoch, Offset: e.Written, LastEpoch: last, LogStart: e.Start}, true
}

// follows is false for a leader that serves nothing, since its log refused the epoch.
func (r *Replica) follows(v *view) bool {
	return !v.stopped && v.term == nil && v.leader >= 0 && v.leader != r.self
}

// Fetched is what a leader gave to a fetch at Position.
type Fetched struct {
	Batches       []batch.Batch // borrowed until AppendFetched returns
	HighWatermark int64
	LogStart      int64
}

// AppendFetched appends what the leader gave to a fetch at a position, and takes its high watermark and log start over.
// The batches are checked by their CRC and offsets, not by their records. ErrFencedEpoch: this replica does not
// follow in that epoch any more, or is not at that position: the answer is overtaken, and nothing was done. Another
// error is the log's.
func (r *Replica) AppendFetched(at Position, f Fetched) error {
	return r.following(at, func() error {
		if err := r.appendFollowed(at.LeaderEpoch, f.Batches); err != nil {
			return err
		}
		if e := r.log.Ends(); f.LogStart > e.Start && f.LogStart <= e.Written {
			if err := r.log.TrimTo(f.LogStart); err != nil {
				return err
			}
		}
		r.mu.Lock()
		r.settle(r.core.Appended(r.ends()))
		r.settle(r.core.LeaderSaid(f.HighWatermark))
		r.mu.Unlock()
		return nil
	})
}

func (r *Replica) appendFollowed(epoch int32, bs []batch.Batch) error {
	if len(bs) == 0 {
		return nil
	}
	written := make(chan error, 1)
	r.log.Enqueue(&commitlog.Append{
		Batches: bs, Origin: commitlog.Follower, LeaderEpoch: epoch,
		Done: func(a commitlog.Appended) { written <- a.Err },
	})
	return <-written
}

// CutBack drops what the leader does not have: its log knows leader epoch divergingEpoch as its largest one not above
// that of the position, and that ends at endOffset (KIP-101, KIP-595). The next fetch may find more to drop.
// Errors as AppendFetched.
func (r *Replica) CutBack(at Position, divergingEpoch int32, endOffset int64) error {
	return r.following(at, func() error {
		to := endOffset
		if _, own := r.log.EndOffsetForEpoch(divergingEpoch); own >= 0 {
			to = min(to, own)
		}
		if e := r.log.Ends(); to >= e.Written {
			return fmt.Errorf("the leader parts from this log at epoch %d, offset %d, and the log ends at %d", divergingEpoch, endOffset, e.Written)
		}
		if err := r.log.TruncateTo(max(to, 0)); err != nil {
			return err
		}
		return r.resettle()
	})
}

// StartOver empties the log and begins at offset, the leader's log start: what follows ours is gone there.
// Errors as AppendFetched.
func (r *Replica) StartOver(at Position, offset int64) error {
	return r.following(at, func() error {
		if err := r.log.TruncateFully(offset); err != nil {
			return err
		}
		return r.resettle()
	})
}

func (r *Replica) resettle() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle(r.core.Appended(r.ends()))
	return nil
}

// following runs f while this replica follows in the position's epoch and is still there: no change of roles comes in
// between, and an answer that comes twice, or late, makes no hole.
func (r *Replica) following(at Position, f func() error) error {
	r.assigning.Lock()
	v := r.view.Load()
	if end := r.log.Ends().Written; !r.follows(v) || v.epoch != at.LeaderEpoch || end != at.Offset {
		r.assigning.Unlock()
		return fmt.Errorf("%w: fetched in %d at offset %d, now in %d at %d", ErrFencedEpoch, at.LeaderEpoch, at.Offset, v.epoch, end)
	}
	err := f()
	r.assigning.Unlock()
	r.signal(false)
	return err
}

// Diverges says where a follower's log, which ends at offset in lastEpoch, parts from this leader's; known is
// false when it does not (KIP-595).
func (r *Replica) Diverges(lastEpoch int32, offset int64) (epoch int32, endOffset int64, known bool) {
	if lastEpoch < 0 {
		return 0, 0, false
	}
	e, end := r.log.EndOffsetForEpoch(lastEpoch)
	if e == lastEpoch && end >= offset {
		return 0, 0, false
	}
	return e, end, true
}

// FollowerFetched notes a follower's fetch: the high watermark may rise, the in-sync set may have to change.
// ErrFencedEpoch, ErrUnknownEpoch, ErrNotLeader; core.ErrNotReplica, core.ErrStaleBroker.
func (r *Replica) FollowerFetched(f core.Fetch) error {
	v := r.view.Load()
	if err := v.check(f.LeaderEpoch); err != nil {
		return err
	}
	if v.term == nil {
		return ErrNotLeader
	}
	r.mu.Lock()
	w, err := r.core.Fetched(f)
	ready := r.settle(w)
	r.mu.Unlock()
	r.propose(w)
	finish(ready)
	if w.Moved {
		r.signal(true)
	}
	return err
}

// Tick looks for followers that lag for longer than replica.lag.time.max.ms.
func (r *Replica) Tick(nowMs int64) {
	r.heard(r.listening())
	r.mu.Lock()
	w := r.core.Tick(nowMs)
	r.mu.Unlock()
	r.propose(w)
}

// Proposal is an in-sync set that a leader wants.
type Proposal struct {
	LeaderEpoch    int32
	PartitionEpoch int32
	ISR            []Member
}

// Member is one broker of an in-sync set. Epoch is the registration in which it fetched, -1 unknown.
type Member struct {
	Broker int32
	Epoch  int64
}

func (r *Replica) propose(w core.Work) {
	if w.Propose != nil && r.wanted != nil {
		r.wanted(r)
	}
}

// Proposal is the in-sync set that is waiting for the controller's word; false: none is.
func (r *Replica) Proposal() (Proposal, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	isr := r.core.Proposed()
	if isr == nil || r.core.Role() != core.Leader {
		return Proposal{}, false
	}
	p := Proposal{LeaderEpoch: r.core.LeaderEpoch(), PartitionEpoch: r.core.PartitionEpoch()}
	for _, id := range isr {
		p.ISR = append(p.ISR, Member{id, r.core.BrokerEpoch(id)})
	}
	return p, true
}

// Altered is the controller's answer: the in-sync set is this one now, whoever asked for it.
func (r *Replica) Altered(leaderEpoch, partitionEpoch int32, isr []int32) {
	r.answer(func() core.Work { return r.core.Altered(leaderEpoch, partitionEpoch, isr) })
}

// Refused is the controller's word that the proposal against these epochs was not, and will not be, carried out.
func (r *Replica) Refused(leaderEpoch, partitionEpoch int32) {
	r.answer(func() core.Work { return r.core.Refused(leaderEpoch, partitionEpoch) })
}

func (r *Replica) answer(event func() core.Work) {
	r.assigning.Lock()
	r.mu.Lock()
	ready := r.settle(event())
	v := *r.view.Load()
	v.underMin = r.core.Enough() != nil
	r.view.Store(&v)
	r.mu.Unlock()
	r.assigning.Unlock()
	finish(ready)
	r.signal(false)
}

// Leadership is what a leader knows of its partition.
type Leadership struct {
	ISR, Replicas int // how many
	MinISR        int // how many have to be in sync for acks=all
	Preferred     bool
	Followers     []core.Progress
}

// Leadership is of this moment; false: this replica does not lead.
func (r *Replica) Leadership() (Leadership, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.core
	if c.Role() != core.Leader {
		return Leadership{}, false
	}
	return Leadership{
		ISR: len(c.ISR()), Replicas: len(c.Replicas()), MinISR: c.MinISR(),
		Preferred: len(c.Replicas()) > 0 && c.Replicas()[0] == r.self, Followers: c.Followers(),
	}, true
}

// InSync is the replica's place in the cluster: in-sync set and all replicas, as last told.
func (r *Replica) InSync() (isr, replicas []int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]int32(nil), r.core.ISR()...), append([]int32(nil), r.core.Replicas()...)
}
