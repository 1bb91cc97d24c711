package core

import "slices"

// prepare begins a rebalance, unless one is under way. A first one waits a while for more members.
func (g *Group) prepare(now int64) {
	switch g.state {
	case Empty:
		g.initial, g.newcomers = true, false
		g.joinBy = now + g.delayMs
		g.extendMs = max(g.rebalanceMs()-g.delayMs, 0)
	case CompletingRebalance:
		g.resetAssignment(now, ErrRebalanceInProgress)
		fallthrough
	case Stable:
		g.initial = false
		g.joinBy = now + g.rebalanceMs()
	default:
		return
	}
	g.syncBy, g.storing = 0, nil
	for _, m := range g.order {
		m.unsynced = false
	}
	g.become(PreparingRebalance, now)
	g.arm(g.joinBy)
}

// rebalanceMs is how long the slowest member may take.
func (g *Group) rebalanceMs() int64 {
	ms := int32(0)
	for _, m := range g.order {
		ms = max(ms, m.rebalanceMs)
	}
	return int64(ms)
}

// tryComplete ends the rebalance when everybody has joined, or its time is up.
func (g *Group) tryComplete(now int64) {
	switch {
	case g.state != PreparingRebalance:
	case g.initial && now < g.joinBy:
	case g.initial && g.newcomers && g.extendMs > 0:
		d := min(g.delayMs, g.extendMs)
		g.newcomers = false
		g.extendMs -= d
		g.joinBy = now + d
		g.arm(g.joinBy)
	case g.initial, now >= g.joinBy, g.waiting == len(g.members) && len(g.pending) == 0:
		g.initial = false
		g.complete(now)
	}
}

// complete makes the next generation of those who have joined.
func (g *Group) complete(now int64) {
	for _, m := range slices.Clone(g.order) {
		if !m.joined && (m.instance == nil || len(g.members) > g.cfg.SizeMax) {
			g.remove(m)
		}
	}
	if len(g.members) > 0 && !g.electLeader() {
		// Only static members, and none of them is here: until their sessions expire.
		g.joinBy = now + g.rebalanceMs()
		g.arm(g.joinBy)
		return
	}
	g.generation++
	if len(g.members) == 0 {
		g.protocol, g.leader = "", ""
		g.become(Empty, now)
		g.topics = g.subscribed()
		g.store(&Store{Snapshot: g.Snapshot(), generation: g.generation})
		return
	}
	g.protocol = g.selectProtocol()
	g.become(CompletingRebalance, now)
	g.topics = g.subscribed()
	for _, m := range g.order {
		m.unsynced = m.joined
		g.setJoined(m, false)
		if m.join != nil {
			g.tell(m, m.join, false)
			m.join = nil
			g.heard(m, now)
		}
	}
	g.syncBy = now + g.rebalanceMs()
	g.arm(g.syncBy)
}

// electLeader makes sure that the leader is one that has joined, and waits to be told so where any does.
func (g *Group) electLeader() bool {
	if l := g.members[g.leader]; l != nil && l.join != nil {
		return true
	}
	best := (*member)(nil)
	for _, m := range g.order {
		if m.joined && (best == nil || best.join == nil && m.join != nil) {
			best = m
		}
	}
	if best == nil {
		return false
	}
	g.leader = best.id
	return true
}

// selectProtocol lets each member vote for the first of its protocols that all support; of equal ones that
// which the first voter prefers.
func (g *Group) selectProtocol() string {
	count := map[string]int{}
	best := ""
	for _, m := range g.order {
		for _, p := range m.protocols {
			if g.votes[p.Name] == len(g.members) {
				count[p.Name]++
				break
			}
		}
	}
	for _, m := range g.order {
		for _, p := range m.protocols {
			if count[p.Name] > count[best] {
				best = p.Name
			}
		}
	}
	return best
}

// resetAssignment takes back what was assigned, and tells those who wait for it.
func (g *Group) resetAssignment(now int64, err error) {
	for _, m := range g.order {
		g.setAssignment(m, nil)
		if m.sync != nil {
			g.heard(m, now)
		}
		g.answerSync(m, SyncReply{Err: err})
	}
}
