package core

// Description is a group as tools see it.
type Description struct {
	State        State
	ProtocolType string
	Protocol     string // "" unless the group is Stable
	Members      []SnapshotMember
}

// Describe shows the group; metadata and assignments only when it is Stable.
func (g *Group) Describe() Description {
	s := g.Snapshot()
	d := Description{State: g.state, ProtocolType: g.protocolType, Members: s.Members}
	if g.state == Stable {
		d.Protocol = g.protocol
		return d
	}
	for i := range d.Members {
		d.Members[i].Metadata, d.Members[i].Assignment = nil, nil
	}
	return d
}
