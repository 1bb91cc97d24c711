// Package core is one group of the classic protocol as a pure state machine: no clock, socket or
// goroutine inside. Events come in with the time; what is to be done comes out as Work: answers to
// members that waited, and state that must be stored before the group goes on.
//
//	          first member joins
//	Empty ─────────────────────────▶ PreparingRebalance ◀──────────┐
//	  ▲                               │ all have joined,           │ a member joins, leaves,
//	  │ nobody has joined             │ or its time is up          │ dies, or does not sync
//	  └───────────────────────────────┤                            │
//	                                  ▼                            │
//	                            CompletingRebalance ───────────────┤
//	                                  │ the leader's assignment    │
//	                                  ▼ is stored                  │
//	                                Stable ────────────────────────┘
//
// Dead is a group that was deleted, or that another broker coordinates now.
//
// The rules are those of Kafka's classic GroupCoordinator (KIP-62, KIP-134, KIP-345, KIP-394, KIP-814),
// with two differences, both in favour of members: a member whose connection is gone while it waits for
// a rebalance expires by its session like any other, instead of being counted on; and a static
// member that is away during a rebalance is kept until its session expires.
//
// A Group is for one goroutine at a time. Slices that are given in, it keeps.
package core

import (
	"errors"
	"slices"

	"platter/engine/store"
)

// What a request may be refused with.
var (
	// ErrUnknownMember: the member id is not of this group.
	ErrUnknownMember = errors.New("unknown member id")
	// ErrMemberIDRequired: the answer carries the id with which to join (KIP-394).
	ErrMemberIDRequired = errors.New("member id is required to join")
	// ErrFencedInstance: another member has taken over the static instance id (KIP-345).
	ErrFencedInstance = errors.New("static member was replaced by another of its instance id")
	// ErrIllegalGeneration: the request is of another generation.
	ErrIllegalGeneration = errors.New("illegal generation")
	// ErrInconsistentProtocol: no protocol that all members support, or another protocol type.
	ErrInconsistentProtocol = errors.New("protocols are inconsistent with the group's")
	// ErrRebalanceInProgress: the member must join again.
	ErrRebalanceInProgress = errors.New("rebalance is in progress")
	// ErrSessionTimeout: outside of group.min.session.timeout.ms to group.max.session.timeout.ms.
	ErrSessionTimeout = errors.New("session timeout is out of range")
	// ErrGroupFull: group.max.size is reached.
	ErrGroupFull = errors.New("group has its maximum size")
	// ErrNonEmpty: the group has members.
	ErrNonEmpty = errors.New("group is not empty")
	// ErrNoGroup: there is no such group.
	ErrNoGroup = errors.New("group does not exist")
	// ErrSubscribed: members are subscribed to the topic whose offsets are to be deleted.
	ErrSubscribed = errors.New("group is subscribed to the topic")
	// ErrDead: the group is gone from here; the client looks for its coordinator again.
	ErrDead = errors.New("group is gone")
)

// State of a group.
type State int8

// States.
const (
	Empty State = iota
	PreparingRebalance
	CompletingRebalance
	Stable
	Dead
)

// States lists all states.
func States() []State {
	return []State{Empty, PreparingRebalance, CompletingRebalance, Stable, Dead}
}

// String is the state's name in Kafka.
func (s State) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}[s]
}

// newMemberMs is how long a new member may wait in its first JoinGroup, as in Kafka: until it has its
// answer it does not know its id, and cannot send heartbeats.
const newMemberMs = 5 * 60 * 1000

// Config is the settings that groups go by.
type Config struct {
	SessionMinMs int32 // group.min.session.timeout.ms
	SessionMaxMs int32 // group.max.session.timeout.ms
	SizeMax      int   // group.max.size
}

// Protocol is one assignment strategy that a member supports, with what it says for it.
type Protocol struct {
	Name     string
	Metadata []byte
}

// Work is what follows from an event.
type Work struct {
	Joined []JoinReply
	Synced []SyncReply
	Stores []*Store
}

// Group is one group. Times are Unix milliseconds.
type Group struct {
	cfg *Config
	id  string

	state        State
	since        int64 // when the state began
	protocolType string
	protocol     string // chosen, from CompletingRebalance on
	generation   int32
	leader       string

	members map[string]*member
	order   []*member         // as they came
	static  map[string]string // instance id to member id
	pending map[string]int64  // ids given out and not joined with yet (KIP-394), and when they expire
	votes   map[string]int    // how many members support a protocol
	waiting int               // members that have joined the coming generation

	topics map[string]bool // that consumers are subscribed to; nil: not known

	joinBy    int64 // when PreparingRebalance ends
	initial   bool  // … and it is the first one: it waits for more members
	delayMs   int64 // … for so long each time
	extendMs  int64 // … for at most so much longer in all
	newcomers bool  // … because some came
	syncBy    int64 // when members that have not synced are removed; 0: all have
	storing   *Store
	next      int64 // no timer is due before; 0: there is none

	offsets map[store.TP]Offset // nil: there never was one
	bytes   int64               // what members and offsets take, roughly
	out     Work
}

// member is one member of a group.
type member struct {
	id          string
	instance    *string // group.instance.id
	client      string
	host        string
	rebalanceMs int32
	sessionMs   int32
	protocols   []Protocol
	assignment  []byte

	joined   bool  // for the coming generation
	join     any   // who waits for the answer to its JoinGroup; nil: nobody
	sync     any   // … to its SyncGroup
	unsynced bool  // it was told the generation, and has not asked for its assignment
	deadline int64 // when it is dead unless it is heard of; 0: it waits for us
}

// New makes an empty group.
func New(cfg *Config, id string, now int64) *Group {
	return &Group{
		cfg: cfg, id: id, since: now,
		members: map[string]*member{}, votes: map[string]int{},
	}
}

// ID is the group's name.
func (g *Group) ID() string { return g.id }

// State is the group's state.
func (g *Group) State() State { return g.state }

// Generation counts rebalances; 0: there was none.
func (g *Group) Generation() int32 { return g.generation }

// Size is the number of members.
func (g *Group) Size() int { return len(g.members) }

// ProtocolType is what the members said of themselves ("consumer"); "": there never was one.
func (g *Group) ProtocolType() string { return g.protocolType }

// Idle says that nothing is lost when the group is forgotten: no member was or is about to be here, and
// no offset. One whose offsets were deleted is kept until they are looked through next, as in Kafka, so that
// whoever has emptied a group finds it empty, and can delete it.
func (g *Group) Idle() bool {
	return g.state == Empty && len(g.members) == 0 && len(g.pending) == 0 && g.offsets == nil && g.generation == 0
}

// What things take beside their text, roughly.
const (
	groupBytes   = 512
	memberBytes  = 512
	pendingBytes = 128
	offsetBytes  = 160
)

// Bytes is what the group takes in memory, roughly.
func (g *Group) Bytes() int64 {
	return g.bytes + groupBytes + int64(len(g.id)) + pendingBytes*int64(len(g.pending))
}

// take hands out the work that has gathered.
func (g *Group) take() Work {
	w := g.out
	g.out = Work{}
	return w
}

func (g *Group) become(s State, now int64) { g.state, g.since = s, now }

// validate holds a member's claim to who it is against the group (KIP-345).
func (g *Group) validate(id string, instance *string) (*member, error) {
	if instance != nil {
		switch known, ok := g.static[*instance]; {
		case !ok:
			return nil, ErrUnknownMember
		case known != id:
			return nil, ErrFencedInstance
		}
	}
	m := g.members[id]
	if m == nil {
		return nil, ErrUnknownMember
	}
	return m, nil
}

// add takes in a new member.
func (g *Group) add(m *member) {
	if len(g.members) == 0 {
		g.leader = m.id
	}
	g.members[m.id] = m
	g.order = append(g.order, m)
	if m.instance != nil {
		if g.static == nil {
			g.static = map[string]string{}
		}
		g.static[*m.instance] = m.id
	}
	g.vote(m, 1)
	delete(g.pending, m.id)
}

// remove drops a member; whoever waits on its behalf is told that it is unknown.
func (g *Group) remove(m *member) {
	g.answerJoin(m, JoinReply{Err: ErrUnknownMember})
	g.answerSync(m, SyncReply{Err: ErrUnknownMember})
	g.setJoined(m, false)
	g.setAssignment(m, nil)
	g.vote(m, -1)
	delete(g.members, m.id)
	g.order = slices.DeleteFunc(g.order, func(o *member) bool { return o == m })
	if m.instance != nil && g.static[*m.instance] == m.id {
		delete(g.static, *m.instance)
	}
	if g.leader == m.id {
		g.leader = ""
		if len(g.order) > 0 {
			g.leader = g.order[0].id
		}
	}
}

// vote counts a member's protocols in (1) or out (-1).
func (g *Group) vote(m *member, d int) {
	size := memberBytes + len(m.client) + len(m.host)
	for i, p := range m.protocols {
		size += len(p.Name) + len(p.Metadata)
		if slices.ContainsFunc(m.protocols[:i], func(o Protocol) bool { return o.Name == p.Name }) {
			continue
		}
		if g.votes[p.Name] += d; g.votes[p.Name] == 0 {
			delete(g.votes, p.Name)
		}
	}
	g.bytes += int64(d * size)
}

func (g *Group) setAssignment(m *member, p []byte) {
	g.bytes += int64(len(p) - len(m.assignment))
	m.assignment = p
}

func (g *Group) setJoined(m *member, joined bool) {
	if m.joined == joined {
		return
	}
	m.joined = joined
	if joined {
		g.waiting++
	} else {
		g.waiting--
	}
}

// heard resets a member's session.
func (g *Group) heard(m *member, now int64) { g.expect(m, now+int64(m.sessionMs)) }

func (g *Group) expect(m *member, by int64) {
	m.deadline = by
	g.arm(by)
}

// arm notes that a timer is due then.
func (g *Group) arm(at int64) {
	if g.next == 0 || at < g.next {
		g.next = at
	}
}

// metadata is what the member says for a protocol.
func (m *member) metadata(protocol string) []byte {
	for _, p := range m.protocols {
		if p.Name == protocol {
			return p.Metadata
		}
	}
	return nil
}
