package core

import (
	"bytes"
	"math"
	"slices"
)

// JoinRequest is one JoinGroup.
type JoinRequest struct {
	To         any     // who waits for the answer; comes back in JoinReply
	MemberID   string  // "": the member has none yet
	InstanceID *string // group.instance.id; nil: a dynamic member
	NewID      string  // the id that a member without one gets; nobody else may ever get it
	// IDRequired: a new dynamic member gets its id first, and joins with it again (KIP-394, version 4).
	IDRequired bool
	// SkipsAssignment: the client can be told that it leads and need not assign (KIP-814, version 9).
	SkipsAssignment    bool
	ClientID           string
	ClientHost         string
	RebalanceTimeoutMs int32
	SessionTimeoutMs   int32
	ProtocolType       string
	Protocols          []Protocol // by preference
	InitialDelayMs     int64      // how long an empty group waits for more members
}

// JoinReply answers a JoinRequest.
type JoinReply struct {
	To             any
	Err            error
	MemberID       string
	Generation     int32 // -1 with an error
	ProtocolType   string
	Protocol       string
	Leader         string
	SkipAssignment bool
	Members        []JoinMember // for the leader
}

// JoinMember is one member as the leader sees it.
type JoinMember struct {
	ID         string
	InstanceID *string
	Metadata   []byte
}

// Join takes a JoinGroup. The answer is in this Work or in a later one.
func (g *Group) Join(now int64, r *JoinRequest) Work {
	if err := g.join(now, r); err != nil {
		id := r.MemberID
		if err == ErrMemberIDRequired {
			id = r.NewID
		}
		g.out.Joined = append(g.out.Joined, JoinReply{To: r.To, Err: err, MemberID: id, Generation: -1})
	}
	g.tryComplete(now)
	return g.take()
}

func (g *Group) join(now int64, r *JoinRequest) error {
	m := g.members[r.MemberID]
	switch {
	case r.SessionTimeoutMs < g.cfg.SessionMinMs || r.SessionTimeoutMs > g.cfg.SessionMaxMs:
		return ErrSessionTimeout
	case g.state == Dead:
		return ErrDead
	case !g.accepts(m):
		if m != nil {
			g.remove(m)
		}
		return ErrGroupFull
	case !storable(r), !g.supports(r):
		return ErrInconsistentProtocol
	case r.MemberID == "":
		return g.joinNew(now, r)
	}
	if _, ok := g.pending[r.MemberID]; ok {
		if r.InstanceID != nil {
			return ErrUnknownMember // a static member was never told to wait
		}
		g.joinAs(now, r.MemberID, r)
		return nil
	}
	m, err := g.validate(r.MemberID, r.InstanceID)
	if err != nil {
		return err
	}
	return g.joinAgain(now, m, r)
}

// accepts: group.max.size bounds members, and those that wait in a rebalance. Ids given out are
// bounded too, or they would cost memory for nothing.
func (g *Group) accepts(m *member) bool {
	switch g.state {
	case Empty:
		return len(g.pending) < pendingMax
	case PreparingRebalance:
		return m != nil && m.joined || g.waiting < g.cfg.SizeMax && len(g.pending) < pendingMax
	}
	return m != nil || len(g.members) < g.cfg.SizeMax && len(g.pending) < pendingMax
}

const (
	// protocolsMax bounds the protocols of one member: they are compared with each other.
	protocolsMax = 256
	// textMax is the longest string that a stored group can have, though newer requests may say more.
	textMax = math.MaxInt16
)

// storable: what the member says of itself can be stored.
func storable(r *JoinRequest) bool {
	return len(r.Protocols) <= protocolsMax && len(r.ProtocolType) <= textMax &&
		(r.InstanceID == nil || len(*r.InstanceID) <= textMax) &&
		!slices.ContainsFunc(r.Protocols, func(p Protocol) bool { return len(p.Name) > textMax })
}

// pendingMax bounds the member ids that were given out and not used yet.
const pendingMax = 10_000

// supports: the member must share a protocol with all others, and the protocol type.
func (g *Group) supports(r *JoinRequest) bool {
	if g.state == Empty && len(g.members) == 0 {
		return r.ProtocolType != "" && len(r.Protocols) > 0
	}
	return r.ProtocolType == g.protocolType && slices.ContainsFunc(r.Protocols, func(p Protocol) bool {
		return g.votes[p.Name] == len(g.members)
	})
}

func (g *Group) joinNew(now int64, r *JoinRequest) error {
	if r.InstanceID != nil {
		if old, ok := g.static[*r.InstanceID]; ok {
			g.replaceStatic(now, g.members[old], r)
			return nil
		}
	} else if r.IDRequired {
		if g.pending == nil {
			g.pending = map[string]int64{}
		}
		g.pending[r.NewID] = now + int64(r.SessionTimeoutMs)
		g.arm(g.pending[r.NewID])
		return ErrMemberIDRequired
	}
	g.joinAs(now, r.NewID, r)
	return nil
}

// joinAs makes a member of the request.
func (g *Group) joinAs(now int64, id string, r *JoinRequest) {
	if g.state == Empty {
		g.delayMs = r.InitialDelayMs
	}
	if g.state == PreparingRebalance && g.generation == 0 {
		g.newcomers = true
	}
	m := &member{id: id, instance: r.InstanceID, client: r.ClientID, host: r.ClientHost}
	m.update(r)
	if len(g.members) == 0 {
		g.protocolType = r.ProtocolType
	}
	g.add(m)
	g.await(m, r.To)
	g.expect(m, now+newMemberMs)
	g.prepare(now)
}

func (m *member) update(r *JoinRequest) {
	m.rebalanceMs, m.sessionMs, m.protocols = r.RebalanceTimeoutMs, r.SessionTimeoutMs, r.Protocols
	if m.rebalanceMs < 0 {
		m.rebalanceMs = m.sessionMs
	}
}

// await notes who waits for the member's answer; who did before is superseded.
func (g *Group) await(m *member, to any) {
	g.answerJoin(m, JoinReply{Err: ErrRebalanceInProgress, MemberID: m.id})
	m.join = to
	g.setJoined(m, true)
	m.deadline = 0
}

// joinAgain is a member that is known already.
func (g *Group) joinAgain(now int64, m *member, r *JoinRequest) error {
	same := slices.EqualFunc(m.protocols, r.Protocols, func(a, b Protocol) bool {
		return a.Name == b.Name && bytes.Equal(a.Metadata, b.Metadata)
	})
	switch g.state {
	case PreparingRebalance:
	case CompletingRebalance:
		if same { // it may have missed the answer
			g.tell(m, r.To, false)
			g.heard(m, now)
			return nil
		}
	case Stable:
		if same && g.leader != m.id { // the leader joins to say that the topics have changed
			g.tell(m, r.To, false)
			g.heard(m, now)
			return nil
		}
	default:
		return ErrUnknownMember
	}
	g.rejoin(now, m, r)
	return nil
}

// rejoin lets a known member into the coming generation, and makes one come.
func (g *Group) rejoin(now int64, m *member, r *JoinRequest) {
	g.vote(m, -1)
	m.update(r)
	g.vote(m, 1)
	g.await(m, r.To)
	g.prepare(now)
}

// tell answers a join with the current generation.
func (g *Group) tell(m *member, to any, skip bool) {
	r := JoinReply{
		To: to, MemberID: m.id, Generation: g.generation, ProtocolType: g.protocolType, Protocol: g.protocol,
		Leader: g.leader, SkipAssignment: skip,
	}
	if g.leader == m.id {
		r.Members = g.roster()
	}
	g.out.Joined = append(g.out.Joined, r)
}

// roster is all members as the leader sees them.
func (g *Group) roster() []JoinMember {
	out := make([]JoinMember, len(g.order))
	for i, m := range g.order {
		out[i] = JoinMember{ID: m.id, InstanceID: m.instance, Metadata: m.metadata(g.protocol)}
	}
	return out
}

// answerJoin answers whoever waits for a member's join with an error.
func (g *Group) answerJoin(m *member, r JoinReply) {
	if m.join == nil {
		return
	}
	r.To, r.Generation = m.join, -1
	m.join = nil
	g.out.Joined = append(g.out.Joined, r)
}

// replaceStatic lets a static member that has restarted take its former place, without a rebalance when
// the group is stable and its choice of protocol stays (KIP-345).
func (g *Group) replaceStatic(now int64, m *member, r *JoinRequest) {
	old := replaced{member: m, id: m.id, leader: g.leader, protocols: m.protocols, rebalanceMs: m.rebalanceMs, sessionMs: m.sessionMs}
	g.answerJoin(m, JoinReply{Err: ErrFencedInstance, MemberID: m.id})
	g.answerSync(m, SyncReply{Err: ErrFencedInstance})
	g.rename(m, r.NewID)
	g.vote(m, -1)
	m.client, m.host = r.ClientID, r.ClientHost
	m.update(r)
	g.vote(m, 1)
	g.heard(m, now)
	if g.state == Stable && g.selectProtocol() == g.protocol {
		old.to, old.as, old.skips = r.To, r.NewID, r.SkipsAssignment
		g.store(&Store{Snapshot: g.Snapshot(), generation: g.generation, replaced: &old})
		return
	}
	g.await(m, r.To)
	g.prepare(now)
}

func (g *Group) rename(m *member, id string) {
	delete(g.members, m.id)
	if g.leader == m.id {
		g.leader = id
	}
	m.id = id
	g.members[id] = m
	g.static[*m.instance] = id
}

// replaced is what a static member was before it was replaced.
type replaced struct {
	member      *member
	id          string
	leader      string // of the group
	protocols   []Protocol
	rebalanceMs int32
	sessionMs   int32
	to          any
	as          string // the new id
	skips       bool
}

// replacedStored goes on once the new member id is stored, or could not be.
func (g *Group) replacedStored(now int64, old *replaced, err error) {
	m := old.member
	if g.members[old.as] != m { // it has left, or was replaced in turn
		g.out.Joined = append(g.out.Joined, JoinReply{To: old.to, Err: ErrFencedInstance, MemberID: old.as, Generation: -1})
		return
	}
	if err != nil {
		g.vote(m, -1)
		m.protocols, m.rebalanceMs, m.sessionMs = old.protocols, old.rebalanceMs, old.sessionMs
		g.vote(m, 1)
		g.out.Joined = append(g.out.Joined, JoinReply{To: old.to, Err: err, Generation: -1})
		g.rename(m, old.id)
		g.heard(m, now)
		return
	}
	if g.state != Stable { // a rebalance has begun meanwhile: it waits for that
		if g.state == PreparingRebalance && !m.joined {
			g.await(m, old.to)
		} else {
			g.out.Joined = append(g.out.Joined, JoinReply{To: old.to, Err: ErrRebalanceInProgress, MemberID: m.id, Generation: -1})
		}
		return
	}
	if old.skips {
		g.tell(m, old.to, g.leader == m.id)
		return
	}
	// Before version 9 a leader cannot be told to leave the assignment alone: it is not told that it leads.
	g.out.Joined = append(g.out.Joined, JoinReply{
		To: old.to, MemberID: m.id, Generation: g.generation, ProtocolType: g.protocolType, Protocol: g.protocol, Leader: old.leader,
	})
}

// Disinvite takes back all ids that nobody has joined with yet: who does then is told to ask for another.
func (g *Group) Disinvite() { clear(g.pending) }

// IsPending says that the id was given out, and nobody has joined with it yet.
func (g *Group) IsPending(id string) bool {
	_, ok := g.pending[id]
	return ok
}
