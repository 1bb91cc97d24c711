package core

import (
	"maps"
	"slices"
)

// Leaving is one member of a LeaveGroup. MemberID "" with an instance id is an administrator's removal of a
// static member.
type Leaving struct {
	MemberID   string
	InstanceID *string
}

// Leave removes members; the errors are in the order given.
func (g *Group) Leave(now int64, leaving []Leaving) ([]error, Work) {
	out := make([]error, len(leaving))
	for i, l := range leaving {
		out[i] = g.leave(now, l)
	}
	g.tryComplete(now)
	return out, g.take()
}

func (g *Group) leave(now int64, l Leaving) error {
	if g.state == Dead {
		return ErrDead
	}
	id := l.MemberID
	if id == "" {
		known, ok := "", false
		if l.InstanceID != nil {
			known, ok = g.static[*l.InstanceID]
		}
		if !ok {
			return ErrUnknownMember
		}
		id = known
	}
	if _, ok := g.pending[id]; ok {
		delete(g.pending, id)
		return nil
	}
	m, err := g.validate(id, l.InstanceID)
	if err != nil {
		return err
	}
	g.remove(m)
	g.prepare(now)
	return nil
}

// Abandon says that nobody waits for an answer any more: the connection is gone. The member may come back
// within its session.
func (g *Group) Abandon(now int64, to any) Work {
	for _, m := range g.order {
		if m.join == to {
			m.join = nil
			g.heard(m, now)
		}
		if m.sync == to {
			m.sync = nil
			g.heard(m, now)
		}
	}
	return g.take()
}

// NextTimer is when Tick is due; 0: never. It may be too early, never too late.
func (g *Group) NextTimer() int64 { return g.next }

// Tick does what is due.
func (g *Group) Tick(now int64) Work {
	if g.next == 0 || now < g.next {
		return g.take()
	}
	maps.DeleteFunc(g.pending, func(_ string, by int64) bool { return by <= now })
	var lost []*member
	late := g.syncBy != 0 && g.syncBy <= now
	for _, m := range g.order {
		if m.deadline != 0 && m.deadline <= now || late && m.unsynced {
			lost = append(lost, m)
		}
	}
	if late {
		g.syncBy = 0
	}
	for _, m := range lost {
		g.remove(m)
	}
	if len(lost) > 0 {
		g.prepare(now)
	}
	g.tryComplete(now)
	g.rearm()
	return g.take()
}

// Postpone moves all timers, since this process stood still for that long and heard of nobody. Members
// have a whole session from now.
func (g *Group) Postpone(now, ms int64) {
	for id := range g.pending {
		g.pending[id] += ms
	}
	for _, m := range g.order {
		if m.deadline != 0 {
			m.deadline = max(m.deadline, now+int64(m.sessionMs))
		}
	}
	if g.syncBy != 0 {
		g.syncBy += ms
	}
	g.joinBy += ms
	g.rearm()
}

// rearm finds the next timer.
func (g *Group) rearm() {
	g.next = 0
	for _, by := range g.pending {
		g.arm(by)
	}
	for _, m := range g.order {
		if m.deadline != 0 {
			g.arm(m.deadline)
		}
	}
	if g.state == PreparingRebalance {
		g.arm(g.joinBy)
	}
	if g.syncBy != 0 && slices.ContainsFunc(g.order, func(m *member) bool { return m.unsynced }) {
		g.arm(g.syncBy)
	}
}

// End makes the group Dead, and answers all who wait with err.
func (g *Group) End(now int64, err error) Work {
	for _, m := range g.order {
		g.answerJoin(m, JoinReply{Err: err, MemberID: m.id})
		g.answerSync(m, SyncReply{Err: err})
	}
	g.become(Dead, now)
	g.next = 0
	return g.take()
}
