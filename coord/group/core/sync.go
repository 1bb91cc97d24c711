package core

// SyncRequest is one SyncGroup.
type SyncRequest struct {
	To           any // who waits for the answer; comes back in SyncReply
	MemberID     string
	InstanceID   *string
	Generation   int32
	ProtocolType *string           // nil: not said (before version 5)
	Protocol     *string           // likewise
	Assignments  map[string][]byte // by member id; from the leader
}

// SyncReply answers a SyncRequest.
type SyncReply struct {
	To           any
	Err          error
	ProtocolType string
	Protocol     string
	Assignment   []byte
}

// Sync takes a SyncGroup: the leader's carries the assignment, all others wait for it.
func (g *Group) Sync(now int64, r *SyncRequest) Work {
	if err := g.sync(now, r); err != nil {
		g.out.Synced = append(g.out.Synced, SyncReply{To: r.To, Err: err})
	}
	return g.take()
}

func (g *Group) sync(now int64, r *SyncRequest) error {
	m, err := g.current(r.MemberID, r.InstanceID, r.Generation)
	switch {
	case err != nil:
		return err
	case r.ProtocolType != nil && *r.ProtocolType != g.protocolType, r.Protocol != nil && *r.Protocol != g.protocol:
		return ErrInconsistentProtocol
	}
	switch g.state {
	case PreparingRebalance:
		return ErrRebalanceInProgress
	case CompletingRebalance:
		g.answerSync(m, SyncReply{Err: ErrRebalanceInProgress}) // one that it has given up
		m.sync, m.unsynced, m.deadline = r.To, false, 0
		if m.id == g.leader && g.storing == nil {
			g.assign(r.Assignments)
		}
	case Stable:
		m.unsynced = false
		m.sync = r.To
		g.tellAssignment(m, now)
	default:
		return ErrUnknownMember
	}
	return nil
}

// current holds a request against the group's members and generation.
func (g *Group) current(id string, instance *string, generation int32) (*member, error) {
	if g.state == Dead {
		return nil, ErrDead
	}
	m, err := g.validate(id, instance)
	if err == nil && generation != g.generation {
		err = ErrIllegalGeneration
	}
	return m, err
}

// assign stores the leader's assignment; members that it leaves out get an empty one.
func (g *Group) assign(assignments map[string][]byte) {
	s := g.Snapshot()
	for i := range s.Members {
		s.Members[i].Assignment = assignments[s.Members[i].ID]
	}
	g.storing = &Store{Snapshot: s, generation: g.generation, assigns: true}
	g.store(g.storing)
}

// assigned goes on once the assignment is stored, or could not be.
func (g *Group) assigned(now int64, s *Store, err error) {
	if g.storing != s || g.state != CompletingRebalance {
		return // another rebalance came first
	}
	g.storing = nil
	if err != nil {
		g.resetAssignment(now, err)
		g.prepare(now)
		return
	}
	for i := range s.Snapshot.Members {
		if m := g.members[s.Snapshot.Members[i].ID]; m != nil {
			g.setAssignment(m, s.Snapshot.Members[i].Assignment)
		}
	}
	g.become(Stable, now)
	for _, m := range g.order {
		g.tellAssignment(m, now)
	}
}

// tellAssignment answers a member's SyncGroup, if it waits.
func (g *Group) tellAssignment(m *member, now int64) {
	if m.sync == nil {
		return
	}
	g.out.Synced = append(g.out.Synced, SyncReply{
		To: m.sync, ProtocolType: g.protocolType, Protocol: g.protocol, Assignment: m.assignment,
	})
	m.sync = nil
	g.heard(m, now)
}

// answerSync answers whoever waits for a member's assignment with an error.
func (g *Group) answerSync(m *member, r SyncReply) {
	if m.sync == nil {
		return
	}
	r.To = m.sync
	m.sync = nil
	g.out.Synced = append(g.out.Synced, r)
}

// Heartbeat takes a sign of life. ErrRebalanceInProgress: the member is alive, and must join again.
func (g *Group) Heartbeat(now int64, id string, instance *string, generation int32) error {
	m, err := g.current(id, instance, generation)
	if err != nil {
		return err
	}
	switch g.state {
	case Empty:
		return ErrUnknownMember
	case PreparingRebalance:
		g.alive(m, now)
		return ErrRebalanceInProgress
	}
	g.alive(m, now)
	return nil
}

// alive resets the session of a member that does not wait for us.
func (g *Group) alive(m *member, now int64) {
	if m.join == nil && m.sync == nil {
		g.heard(m, now)
	}
}
