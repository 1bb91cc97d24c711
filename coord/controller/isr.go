package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"platter/engine/store"
)

// Why a broker's wish for another in-sync set is not granted (AlterPartitionManager's error codes).
var (
	// ErrFencedLeader: the broker leads in another epoch, or does not lead.
	ErrFencedLeader = errors.New("leader epoch is fenced")
	// ErrInvalidUpdate: the partition's state has changed since the broker last heard of it.
	ErrInvalidUpdate = errors.New("the partition epoch is not the current one")
	// ErrIneligible: a broker of the set is not registered so, or is shutting down.
	ErrIneligible = errors.New("a replica of the set is not eligible")
	// ErrInvalidISR: the set is empty, lacks the leader, or names a broker that is no replica.
	ErrInvalidISR = errors.New("not a possible in-sync set")
)

// ISRChange is a leader's wish. A member's Epoch is the registration in which it fetched, -1 unknown.
type ISRChange struct {
	TP             store.TP
	TopicID        store.UUID
	LeaderEpoch    int32
	PartitionEpoch int32
	ISR            []ISRMember
}

// ISRMember is one broker of a set.
type ISRMember struct {
	Broker int32
	Epoch  int64
}

// ISRAnswer is the outcome: the state as it is now, or why nothing was changed.
type ISRAnswer struct {
	Leader         int32
	LeaderEpoch    int32
	PartitionEpoch int32
	ISR            []int32
	Err            error
}

// AlterPartition changes the in-sync sets of partitions that the broker leads (KIP-497), in the order given.
// ErrNotController; ErrStaleBroker: the broker has registered anew, or is not registered.
func (c *Controller) AlterPartition(ctx context.Context, broker int32, epoch int64, changes []ISRChange) ([]ISRAnswer, error) {
	type result struct {
		answers []ISRAnswer
		err     error
	}
	r, err := ask(ctx, c, func(t *term) result {
		answers, err := t.alterISRs(broker, epoch, changes)
		return result{answers, err}
	})
	if err != nil {
		return nil, err
	}
	return r.answers, r.err
}

func (t *term) alterISRs(broker int32, epoch int64, wanted []ISRChange) ([]ISRAnswer, error) {
	if b, live := t.core.brokers[broker]; !live || b.Epoch != epoch {
		return nil, fmt.Errorf("%w: broker %d has %d, not %d", ErrStaleBroker, broker, b.Epoch, epoch)
	}
	out := make([]ISRAnswer, len(wanted))
	var changes []change
	var at []int
	for i := range wanted {
		w := &wanted[i]
		isr, err := t.core.judge(broker, w)
		if err != nil {
			out[i].Err = err
			continue
		}
		p := t.core.partition(w.TP)
		if slices.Equal(isr, p.state.ISR) {
			out[i] = answerOf(p)
			continue
		}
		s := p.state
		s.ISR = isr
		if len(isr) > 1 {
			s.Recovering = false
		}
		changes, at = append(changes, change{tp: w.TP, state: s}), append(at, i)
	}
	if len(changes) == 0 {
		return out, nil
	}
	err := t.writeStates(changes)
	if err == nil {
		err = t.settle()
	}
	if err != nil {
		t.unknown(err)
		return nil, fmt.Errorf("%w: %v", ErrNotController, err)
	}
	for k, ch := range changes {
		if p := t.core.partition(ch.tp); p != nil {
			out[at[k]] = answerOf(p)
		} else {
			out[at[k]].Err = ErrUnknownTopicID
		}
	}
	return out, nil
}

func answerOf(p *partition) ISRAnswer {
	return ISRAnswer{Leader: p.state.Leader, LeaderEpoch: p.state.LeaderEpoch, PartitionEpoch: p.state.ZkVersion, ISR: slices.Clone(p.state.ISR)}
}

// judge gives the in-sync set that a wish comes to, in the order of the assignment.
func (c *core) judge(broker int32, w *ISRChange) ([]int32, error) {
	t := c.topics[w.TP.Topic]
	p := c.partition(w.TP)
	switch {
	case p == nil, t.deleting, t.id != w.TopicID, !p.exists:
		return nil, fmt.Errorf("%w: %s", ErrUnknownTopicID, w.TP)
	case p.state.Leader != broker || p.state.LeaderEpoch != w.LeaderEpoch:
		return nil, fmt.Errorf("%w: broker %d, epoch %d; broker %d leads in %d", ErrFencedLeader, broker, w.LeaderEpoch, p.state.Leader, p.state.LeaderEpoch)
	case p.state.ZkVersion != w.PartitionEpoch:
		return nil, fmt.Errorf("%w: %d, now %d", ErrInvalidUpdate, w.PartitionEpoch, p.state.ZkVersion)
	}
	wanted := map[int32]bool{}
	for _, m := range w.ISR {
		if !slices.Contains(p.replicas, m.Broker) {
			return nil, fmt.Errorf("%w: broker %d is no replica of %s", ErrInvalidISR, m.Broker, w.TP)
		}
		b, live := c.brokers[m.Broker]
		joins := !slices.Contains(p.state.ISR, m.Broker)
		if joins && (!live || m.Epoch >= 0 && m.Epoch != b.Epoch || c.isLeaving(m.Broker) || slices.Contains(p.offline, m.Broker)) {
			return nil, fmt.Errorf("%w: broker %d for %s", ErrIneligible, m.Broker, w.TP)
		}
		wanted[m.Broker] = true
	}
	if !wanted[broker] {
		return nil, fmt.Errorf("%w: without its leader %d", ErrInvalidISR, broker)
	}
	var isr []int32
	for _, id := range p.replicas {
		if wanted[id] {
			isr = append(isr, id)
		}
	}
	return isr, nil
}

// ControlledShutdown moves leaderships away from a broker that is about to stop, and takes it out of the in-sync
// sets. What it still leads afterwards nobody else could take over. A broker that registers anew is no longer
// leaving.
func (c *Controller) ControlledShutdown(ctx context.Context, broker int32, epoch int64) (remaining []store.TP, err error) {
	type result struct {
		remaining []store.TP
		err       error
	}
	r, err := ask(ctx, c, func(t *term) result {
		remaining, err := t.release(broker, epoch)
		return result{remaining, err}
	})
	if err != nil {
		return nil, err
	}
	return r.remaining, r.err
}

func (t *term) release(broker int32, epoch int64) ([]store.TP, error) {
	b, live := t.core.brokers[broker]
	if !live || epoch >= 0 && b.Epoch != epoch {
		return nil, fmt.Errorf("%w: broker %d has %d, not %d", ErrStaleBroker, broker, b.Epoch, epoch)
	}
	t.core.leave(broker)
	if err := t.settle(); err != nil {
		t.unknown(err)
		return nil, fmt.Errorf("%w: %v", ErrNotController, err)
	}
	var remaining []store.TP
	for _, tp := range t.core.allPartitions() {
		p := t.core.partition(tp)
		if p.exists && p.state.Leader == broker && len(p.replicas) > 1 {
			remaining = append(remaining, tp)
		}
	}
	return remaining, nil
}

// leave notes that a broker shuts down.
func (c *core) leave(broker int32) {
	c.leaving[broker] = c.brokers[broker].Epoch
	for _, t := range c.topics {
		for i := range t.parts {
			if slices.Contains(t.parts[i].state.ISR, broker) {
				c.due[t.name] = true
			}
		}
	}
}

func (c *core) isLeaving(broker int32) bool {
	epoch, ok := c.leaving[broker]
	return ok && c.brokers[broker].Epoch == epoch
}

// othersInSync says whether somebody stays in a partition's in-sync set when a broker leaves it.
func (c *core) othersInSync(p *partition, broker int32) bool {
	return slices.ContainsFunc(p.state.ISR, func(id int32) bool {
		b, live := c.brokers[id]
		return id != broker && live && !c.isLeaving(id) && !slices.Contains(p.offline, id) && p.state.Known >= b.Epoch
	})
}

// othersStay says whether a partition has a replica elsewhere when a broker leaves.
func (c *core) othersStay(p *partition, broker int32) bool {
	return slices.ContainsFunc(p.replicas, func(id int32) bool {
		_, live := c.brokers[id]
		return id != broker && live && !c.isLeaving(id) && !slices.Contains(p.offline, id)
	})
}
