package core

// Store is state that must be stored; then Stored is called with the outcome.
type Store struct {
	Snapshot Snapshot

	generation int32
	assigns    bool      // it is the leader's assignment
	replaced   *replaced // it is a static member's new id
}

// Snapshot is a group's state as it is stored, in Kafka's GroupMetadataValue.
type Snapshot struct {
	ProtocolType string
	Generation   int32
	Protocol     *string // nil: none
	Leader       *string // nil: none
	StateMs      int64   // when the state began; -1: not known
	Members      []SnapshotMember
}

// SnapshotMember is one member of a Snapshot.
type SnapshotMember struct {
	ID          string
	InstanceID  *string
	ClientID    string
	ClientHost  string
	RebalanceMs int32
	SessionMs   int32
	Metadata    []byte // for the chosen protocol
	Assignment  []byte
}

func (g *Group) store(s *Store) { g.out.Stores = append(g.out.Stores, s) }

// Stored goes on once a Store is stored, or could not be.
func (g *Group) Stored(now int64, s *Store, err error) Work {
	switch {
	case s.assigns:
		g.assigned(now, s, err)
	case s.replaced != nil:
		g.replacedStored(now, s.replaced, err)
	}
	g.tryComplete(now)
	return g.take()
}

// Snapshot is the state now.
func (g *Group) Snapshot() Snapshot {
	s := Snapshot{ProtocolType: g.protocolType, Generation: g.generation, StateMs: g.since}
	if g.protocol != "" {
		p := g.protocol
		s.Protocol = &p
	}
	if g.leader != "" {
		l := g.leader
		s.Leader = &l
	}
	s.Members = make([]SnapshotMember, len(g.order))
	for i, m := range g.order {
		s.Members[i] = SnapshotMember{
			ID: m.id, InstanceID: m.instance, ClientID: m.client, ClientHost: m.host,
			RebalanceMs: m.rebalanceMs, SessionMs: m.sessionMs,
			Metadata: m.metadata(g.protocol), Assignment: m.assignment,
		}
	}
	return s
}

// Restore makes a group of what was stored. Members have a whole session to be heard of.
func Restore(cfg *Config, id string, s *Snapshot, now int64) *Group {
	g := New(cfg, id, s.StateMs)
	g.protocolType, g.generation = s.ProtocolType, s.Generation
	if s.Protocol != nil {
		g.protocol = *s.Protocol
	}
	for i := range s.Members {
		sm := &s.Members[i]
		if g.members[sm.ID] != nil {
			continue
		}
		m := &member{
			id: sm.ID, instance: sm.InstanceID, client: sm.ClientID, host: sm.ClientHost,
			rebalanceMs: sm.RebalanceMs, sessionMs: sm.SessionMs,
			protocols: []Protocol{{g.protocol, sm.Metadata}},
		}
		if m.rebalanceMs < 0 {
			m.rebalanceMs = m.sessionMs
		}
		g.add(m)
		g.setAssignment(m, sm.Assignment)
		g.heard(m, now)
	}
	if len(g.members) == 0 {
		g.topics = g.subscribed()
		return g
	}
	if s.Leader != nil && g.members[*s.Leader] != nil {
		g.leader = *s.Leader
	}
	g.state = Stable
	g.topics = g.subscribed()
	if len(g.members) > g.cfg.SizeMax {
		g.prepare(now)
	}
	return g
}
