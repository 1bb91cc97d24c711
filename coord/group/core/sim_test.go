package core

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// sim is a group and clients that join, leave, die, pause and lose their connections, in virtual time; all
// chance comes from one seed.
type sim struct {
	t   *testing.T
	rnd *rand.Rand
	cfg Config
	g   *Group
	now int64

	clients []*client
	made    int
	stores  []*Store
	stored  *Snapshot // what a restart finds
	calm    bool      // nothing goes wrong any more
	tickets map[int]*client
	lost    map[int]bool // tickets that nobody waits for

	assigned map[int32]map[string]string // generation to partition to client
	stable   int
}

// client is one member as a well-behaved consumer would be, while it runs.
type client struct {
	n        int
	instance *string
	old      bool // a client from before member ids were required
	id       string
	gen      int32
	phase    phase
	ticket   int
	has      string
	nextBeat int64
	paused   int64 // until when
	dead     bool
}

type phase int

const (
	idle phase = iota
	joining
	syncing
	owning
)

func TestRandom(t *testing.T) {
	stable := 0
	for seed := range uint64(400) {
		s := &sim{
			t: t, rnd: rand.New(rand.NewPCG(seed, 7)), cfg: Config{SessionMinMs: 1000, SessionMaxMs: 60000, SizeMax: 1 + rand.New(rand.NewPCG(seed, 8)).IntN(12)},
			tickets: map[int]*client{}, lost: map[int]bool{}, assigned: map[int32]map[string]string{},
		}
		s.g = New(&s.cfg, "g", 0)
		s.run()
		stable += s.stable
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if stable < 1000 {
		t.Errorf("only %d generations became stable: the clients do not do much", stable)
	}
}

func (s *sim) run() {
	for range 400 {
		s.step()
		if s.t.Failed() {
			return
		}
	}
	s.calm = true
	for _, c := range s.clients {
		c.paused = 0
	}
	for end := s.now + 200_000; s.now < end && !s.t.Failed(); {
		s.advance(200)
		s.drain()
	}
	s.settled()
}

func (s *sim) step() {
	if s.rnd.IntN(3) == 0 {
		s.advance(int64(s.rnd.IntN(2500)))
	}
	switch n := s.rnd.IntN(100); {
	case n < 12 && len(s.clients) < 14:
		s.start()
	case n < 15:
		if c := s.any(); c != nil {
			c.dead = true
			s.abandon(c)
		}
	case n < 18:
		if c := s.any(); c != nil {
			c.paused = s.now + int64(s.rnd.IntN(30000))
		}
	case n < 21:
		if c := s.any(); c != nil {
			s.abandon(c)
		}
	case n < 24:
		if c := s.any(); c != nil && c.id != "" && c.phase != joining {
			c.dead = true
			_, w := s.g.Leave(s.now, []Leaving{{c.id, c.instance}})
			s.work(w)
		}
	case n < 25:
		s.restart()
	case n < 50:
		s.finishStore(s.rnd.IntN(8) == 0)
	default:
		s.act(s.any())
	}
	s.check()
}

func (s *sim) any() *client {
	if len(s.clients) == 0 {
		return nil
	}
	return s.clients[s.rnd.IntN(len(s.clients))]
}

// start starts a client, sometimes in the place of a static one that is dead.
func (s *sim) start() {
	c := &client{n: len(s.clients), old: s.rnd.IntN(4) == 0}
	if s.rnd.IntN(3) == 0 {
		id := fmt.Sprintf("i%d", s.rnd.IntN(4))
		for _, o := range s.clients {
			if o.instance != nil && *o.instance == id && !o.dead {
				return
			}
		}
		c.instance = &id
	}
	s.made++
	c.n = s.made
	s.clients = slices.DeleteFunc(s.clients, func(o *client) bool { return o.dead })
	s.clients = append(s.clients, c)
}

func (s *sim) advance(ms int64) {
	end := s.now + ms
	for next := s.g.NextTimer(); next != 0 && next <= end; next = s.g.NextTimer() {
		s.now = max(s.now, next)
		s.work(s.g.Tick(s.now))
		if n := s.g.NextTimer(); n != 0 && n <= s.now {
			s.t.Errorf("a timer at %d is still due at %d", n, s.now)
			return
		}
	}
	s.now = end
}

// drain lets everybody do what it would.
func (s *sim) drain() {
	for range 4 {
		for len(s.stores) > 0 {
			s.finishStore(false)
		}
		for _, c := range s.clients {
			s.act(c)
		}
	}
	s.check()
}

func (s *sim) finishStore(fails bool) {
	if len(s.stores) == 0 {
		return
	}
	st := s.stores[0]
	s.stores = s.stores[1:]
	var err error
	if fails {
		err = errors.New("store failed")
	} else {
		s.stored = &st.Snapshot
	}
	s.work(s.g.Stored(s.now, st, err))
}

// restart is a coordinator that comes back with what was stored.
func (s *sim) restart() {
	s.work(s.g.End(s.now, ErrDead))
	s.stores = nil
	s.g = New(&s.cfg, "g", s.now)
	if s.stored != nil {
		s.g = Restore(&s.cfg, "g", s.stored, s.now)
		// What had not been stored may happen again, under the same numbers.
		for gen := range s.assigned {
			if gen > s.stored.Generation {
				delete(s.assigned, gen)
			}
		}
	} else {
		clear(s.assigned)
	}
}

func (s *sim) abandon(c *client) {
	if c.phase != joining && c.phase != syncing {
		return
	}
	delete(s.tickets, c.ticket)
	s.lost[c.ticket] = true
	s.work(s.g.Abandon(s.now, c.ticket))
	if c.phase == joining && c.old && c.instance == nil {
		c.id = ""
	}
	c.phase, c.has = idle, ""
}

func (s *sim) wait(c *client, p phase) int {
	s.made++
	c.phase, c.ticket = p, s.made
	s.tickets[s.made] = c
	return s.made
}

// act is what a client does next.
func (s *sim) act(c *client) {
	if c == nil || c.dead || c.paused > s.now {
		return
	}
	switch c.phase {
	case idle:
		s.made++
		s.work(s.g.Join(s.now, &JoinRequest{
			MemberID: c.id, InstanceID: c.instance, NewID: fmt.Sprintf("m%d", s.made), IDRequired: !c.old, SkipsAssignment: !c.old,
			To: s.wait(c, joining), SessionTimeoutMs: 6000, RebalanceTimeoutMs: 8000, ProtocolType: "consumer",
			Protocols: []Protocol{{"range", []byte{byte(s.rnd.IntN(2))}}}, InitialDelayMs: int64(s.rnd.IntN(2) * 1000),
		}))
	case owning:
		if s.now < c.nextBeat {
			return
		}
		c.nextBeat = s.now + 1500
		if err := s.g.Heartbeat(s.now, c.id, c.instance, c.gen); err != nil {
			s.refused(c, err)
		}
	}
}

// refused is what a client makes of an error.
func (s *sim) refused(c *client, err error) {
	c.phase, c.has = idle, ""
	switch err {
	case ErrUnknownMember, ErrIllegalGeneration:
		c.id = ""
	case ErrFencedInstance:
		c.dead = true
	}
}

func (s *sim) work(w Work) {
	s.stores = append(s.stores, w.Stores...)
	for _, r := range w.Synced {
		if c := s.answered(r.To); c != nil {
			s.synced(c, r)
		}
	}
	for _, r := range w.Joined {
		if c := s.answered(r.To); c != nil {
			s.joined(c, r)
		}
	}
}

// answered checks that each request has one answer.
func (s *sim) answered(to any) *client {
	n := to.(int)
	c := s.tickets[n]
	if c == nil && !s.lost[n] {
		s.t.Errorf("request %d was answered twice", n)
	}
	delete(s.tickets, n)
	return c
}

func (s *sim) joined(c *client, r JoinReply) {
	switch r.Err {
	case nil:
	case ErrMemberIDRequired:
		c.id, c.phase = r.MemberID, idle
		return
	default:
		s.refused(c, r.Err)
		return
	}
	c.id, c.gen = r.MemberID, r.Generation
	req := &SyncRequest{MemberID: c.id, InstanceID: c.instance, Generation: c.gen}
	if r.Leader == c.id && !r.SkipAssignment {
		req.Assignments = map[string][]byte{}
		for i, m := range r.Members {
			req.Assignments[m.ID] = fmt.Appendf(nil, "p%d", i)
		}
	}
	req.To = s.wait(c, syncing)
	s.work(s.g.Sync(s.now, req))
}

func (s *sim) synced(c *client, r SyncReply) {
	if r.Err != nil {
		s.refused(c, r.Err)
		return
	}
	c.phase, c.has, c.nextBeat = owning, string(r.Assignment), s.now+1500
	if c.has == "" {
		return
	}
	owners := s.assigned[c.gen]
	if owners == nil {
		owners = map[string]string{}
		s.assigned[c.gen] = owners
		s.stable++
	}
	who := fmt.Sprint(c.n)
	if c.instance != nil {
		who = *c.instance
	}
	if o := owners[c.has]; o != "" && o != who {
		s.t.Errorf("generation %d: %s is of %s and of %s", c.gen, c.has, o, who)
	}
	owners[c.has] = who
}

// check holds the group's counters against what they count.
func (s *sim) check() {
	g := s.g
	waiting, votes := 0, 0
	for _, m := range g.order {
		if m.joined {
			waiting++
		}
		votes += len(m.protocols)
		if g.members[m.id] != m {
			s.t.Errorf("member %s is not known by its id", m.id)
		}
		if m.deadline != 0 && (g.next == 0 || g.next > m.deadline) {
			s.t.Errorf("member %s dies at %d, the timer is at %d", m.id, m.deadline, g.next)
		}
		if m.deadline == 0 && m.join == nil && m.sync == nil {
			s.t.Errorf("member %s never dies", m.id)
		}
	}
	total := 0
	for _, n := range g.votes {
		total += n
	}
	if waiting != g.waiting || total != votes || len(g.order) != len(g.members) {
		s.t.Errorf("%d wait, counted %d; %d votes, counted %d; %d members, listed %d", waiting, g.waiting, votes, total, len(g.members), len(g.order))
	}
	if len(g.members) == 0 && g.bytes != 0 {
		s.t.Errorf("an empty group takes %d bytes", g.bytes)
	}
	if len(g.members) > s.cfg.SizeMax && g.state != PreparingRebalance {
		s.t.Errorf("%d members of at most %d", len(g.members), s.cfg.SizeMax)
	}
}

// settled: once nothing goes wrong any more, everybody that lives has its share.
func (s *sim) settled() {
	live := 0
	shares := map[string]bool{}
	for _, c := range s.clients {
		if c.dead {
			continue
		}
		live++
		if c.phase == owning && c.gen == s.g.Generation() && c.has != "" {
			if shares[c.has] {
				s.t.Errorf("%s is owned twice in the end", c.has)
			}
			shares[c.has] = true
		}
	}
	want := min(live, s.cfg.SizeMax)
	switch {
	case want == 0 && s.g.State() == Empty:
	case s.g.State() != Stable || len(shares) != want || len(s.g.members) != want:
		s.t.Errorf("in the end: %v, %d members, %d of %d clients have a share (at most %d)", s.g.State(), len(s.g.members), len(shares), live, s.cfg.SizeMax)
	}
	for n, c := range s.tickets {
		if s.g.State() == Stable {
			s.t.Errorf("client %d still waits for the answer to %d", c.n, n)
		}
	}
}
