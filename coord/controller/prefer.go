package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"platter/coord/cluster"
	"platter/engine/store"
)

// Outcomes of an election that was asked for.
var (
	ErrElectionNotNeeded = errors.New("leader election is not needed")
	ErrPreferredAway     = errors.New("the preferred leader is not available")
	ErrNoEligibleLeader  = errors.New("no eligible leader is available")
)

// Elected is the outcome for one partition.
type Elected struct {
	TP  store.TP
	Err error
}

// ElectLeaders makes the preferred replicas lead (KIP-183), or with unclean any live replica where nobody
// of the in-sync set is left (KIP-460). tps nil: all partitions of the cluster, of which only those are
// told that needed an election. One that is named twice is answered once.
func (c *Controller) ElectLeaders(ctx context.Context, unclean bool, tps []store.TP) ([]Elected, error) {
	return ask(ctx, c, func(t *term) []Elected { return t.electLeaders(unclean, tps) })
}

func (t *term) electLeaders(unclean bool, tps []store.TP) []Elected {
	all := tps == nil
	if all {
		tps = t.core.allPartitions()
	}
	out := make([]Elected, 0, len(tps))
	var changes []change
	var at []int
	seen := map[store.TP]bool{}
	for _, tp := range tps {
		if seen[tp] {
			continue
		}
		seen[tp] = true
		s, err := t.core.electAsked(tp, unclean)
		if all && errors.Is(err, ErrElectionNotNeeded) {
			continue
		}
		if err == nil {
			changes, at = append(changes, change{tp: tp, state: s}), append(at, len(out))
		}
		out = append(out, Elected{tp, err})
	}
	if len(changes) == 0 {
		return out
	}
	err := t.writeStates(changes)
	if err == nil {
		err = t.settle()
	}
	if err != nil {
		t.unknown(err)
	}
	for k, ch := range changes {
		if p := t.core.partition(ch.tp); p == nil || p.state.Leader != ch.state.Leader {
			out[at[k]].Err = fmt.Errorf("%w: the partition's state changed meanwhile", ErrNotController)
		}
	}
	return out
}

// electAsked decides an election that somebody asked for.
func (c *core) electAsked(tp store.TP, unclean bool) (cluster.State, error) {
	p := c.partition(tp)
	if p == nil {
		return cluster.State{}, fmt.Errorf("%w: the partition does not exist", ErrUnknownTopic)
	}
	if c.topics[tp.Topic].deleting {
		return cluster.State{}, fmt.Errorf("%w: the topic is being deleted", ErrInvalidTopic)
	}
	live := func(id int32) bool { return c.standingFor(p)(id) != dead && !slices.Contains(p.offline, id) }
	s := p.state
	switch {
	case unclean && p.exists && live(s.Leader), !unclean && p.exists && s.Leader == p.replicas[0] && live(s.Leader):
		return s, fmt.Errorf("%w for the partition", ErrElectionNotNeeded)
	case unclean:
		s, changed := p.elect(c.standingFor(p), true)
		if !p.exists || !changed || s.Leader < 0 {
			return s, fmt.Errorf("%w for the partition", ErrNoEligibleLeader)
		}
		return s, nil
	case !p.exists || !live(p.replicas[0]) || c.standingFor(p)(p.replicas[0]) != fresh || !slices.Contains(s.ISR, p.replicas[0]):
		return s, fmt.Errorf("%w: replica %d of the partition", ErrPreferredAway, p.replicas[0])
	}
	s.Leader = p.replicas[0]
	s.LeaderEpoch++
	return s, nil
}

// Reassignment is a partition whose replicas are being moved.
type Reassignment struct {
	TP                         store.TP
	Replicas, Adding, Removing []int32
}

// Reassignments lists the partitions whose replicas are being moved, by topic and partition.
func (c *Controller) Reassignments(ctx context.Context) ([]Reassignment, error) {
	return ask(ctx, c, func(t *term) (out []Reassignment) {
		for _, tp := range t.core.allPartitions() {
			if p := t.core.partition(tp); len(p.adding)+len(p.removing) > 0 {
				out = append(out, Reassignment{tp, p.replicas, p.adding, p.removing})
			}
		}
		return out
	})
}
