package controller

import (
	"slices"

	"platter/coord/cluster"
)

// partition is what the controller knows of one partition.
type partition struct {
	replicas []int32 // preferred leader first
	adding   []int32
	removing []int32
	exists   bool // the state znode does
	state    cluster.State
	offline  []int32 // replicas whose log directory failed
}

// standing says what a replica's broker is good for.
type standing int

const (
	dead     standing = iota // not registered, or the replica's directory is offline
	rejoined                 // registered anew since the state was decided: it has left in between
	fresh
)

// elect says which state a partition should have, and whether that differs from what it has. A
// broker that came back has left and joined, however fast it was, since it may have lost its page
// cache: it is out of the in-sync set until it has caught up. Only when nobody else of the set is
// there does it lead again; the set's last members stay in it meanwhile, without a leader.
//
// A change of leader or set is a new leader epoch. unclean allows a leader from outside the set when
// nobody of the set is there.
func (p *partition) elect(of func(broker int32) standing, unclean bool) (cluster.State, bool) {
	at := func(id int32, least standing) bool {
		return !slices.Contains(p.offline, id) && of(id) >= least
	}
	if !p.exists {
		return p.first(at)
	}
	s := p.state
	asItShould := func() bool {
		for _, id := range s.ISR {
			if !at(id, fresh) {
				return false
			}
		}
		return slices.Contains(s.ISR, s.Leader)
	}
	if asItShould() {
		return s, false
	}
	inSync := slices.DeleteFunc(slices.Clone(s.ISR), func(id int32) bool { return !at(id, fresh) })
	switch leader := firstOf(p.replicas, inSync); {
	case s.Leader >= 0 && slices.Contains(inSync, s.Leader):
		s.ISR = inSync
	case leader >= 0:
		s.Leader, s.ISR = leader, inSync
	default:
		back := slices.DeleteFunc(slices.Clone(s.ISR), func(id int32) bool { return !at(id, rejoined) })
		leader = firstOf(p.replicas, back)
		if leader < 0 && unclean {
			for _, id := range p.replicas {
				if at(id, rejoined) {
					leader = id
					s.Recovering = true
					break
				}
			}
		}
		switch {
		case leader >= 0:
			s.Leader, s.ISR = leader, []int32{leader}
		case s.Leader < 0:
			return s, false
		default:
			s.Leader = -1
		}
	}
	s.LeaderEpoch++
	return s, true
}

// first is a new partition's state: the first live replica leads, all live ones are in sync.
func (p *partition) first(at func(int32, standing) bool) (cluster.State, bool) {
	var isr []int32
	for _, id := range p.replicas {
		if at(id, rejoined) {
			isr = append(isr, id)
		}
	}
	if len(isr) == 0 {
		return cluster.State{}, false
	}
	return cluster.State{Leader: isr[0], ISR: isr}, true
}

// firstOf is the first of order that is in set; a member that is not in order (an assignment changed
// behind our back) comes last. -1: none.
func firstOf(order, set []int32) int32 {
	for _, id := range order {
		if slices.Contains(set, id) {
			return id
		}
	}
	if len(set) > 0 {
		return set[0]
	}
	return -1
}
