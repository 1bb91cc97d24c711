package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// The simulation runs the cores of three brokers against a controller with late, repeated and lost words,
// and a dumb twin of what replication is for: a list of what was committed. Whatever any leader's high
// watermark has passed must be in the log of every member of the controller's in-sync set, unchanged,
// for ever.

const simBrokers = 3

type entry struct {
	epoch int32
	id    int
}

type simBroker struct {
	core *Core
	log  []entry
	cut  bool         // has followed since, and not yet compared logs with its leader
	mail []Assignment // the controller's words that are under way, in order
}

type sim struct {
	rng     *rand.Rand
	brokers [simBrokers + 1]*simBroker // by id, from 1
	truth   Assignment
	nextID  int
	now     int64
	asked   []int32 // a proposal under way to the controller, of askedOf
	askedOf int32
	askedAt [2]int32 // leader epoch and version it was made against

	committed []entry
	// giveUp plants the bug: a leader forgets a proposal whose answer was lost.
	giveUp bool
}

func newSim(seed uint64) *sim {
	s := &sim{rng: rand.New(rand.NewPCG(seed, 0))}
	all := []int32{1, 2, 3}
	s.truth = Assignment{Leader: 1, LeaderEpoch: 0, PartitionEpoch: 0, ISR: all, Replicas: all}
	for id := int32(1); id <= simBrokers; id++ {
		s.brokers[id] = &simBroker{core: New(Config{Self: id, MinISR: 1, LagTimeMaxMs: 10}, Ends{}, 0)}
		s.assign(id, s.truth)
	}
	return s
}

func (s *sim) assign(id int32, a Assignment) {
	b := s.brokers[id]
	w, err := b.core.Assign(a, s.now)
	if err == nil && w.Follow {
		b.cut = true
	}
}

func (s *sim) ends(b *simBroker) Ends {
	n := int64(len(b.log))
	return Ends{Written: n, Durable: n}
}

// step does one thing at random.
func (s *sim) step() error {
	s.now++
	id := int32(1 + s.rng.IntN(simBrokers))
	b := s.brokers[id]
	switch s.rng.IntN(12) {
	case 0, 1, 2:
		if b.core.Role() == Leader {
			s.nextID++
			b.log = append(b.log, entry{b.core.LeaderEpoch(), s.nextID})
			b.core.Appended(s.ends(b))
		}
	case 3, 4, 5, 6:
		s.fetch(id)
	case 7:
		if len(b.mail) > 0 {
			s.assign(id, b.mail[0])
			b.mail = b.mail[1:]
		}
	case 8:
		s.propose(id, b.core.Tick(s.now).Propose)
	case 9, 10:
		s.decide()
	case 11:
		if s.rng.IntN(4) == 0 {
			s.elect()
		}
	}
	return s.check()
}

// fetch is one fetch of a follower from the broker that it takes for the leader, and its answer.
func (s *sim) fetch(id int32) {
	b := s.brokers[id]
	if b.core.Role() != Follower {
		return
	}
	l := s.brokers[b.core.Leader()]
	if l.core.Role() != Leader || l.core.LeaderEpoch() != b.core.LeaderEpoch() {
		return
	}
	if b.cut { // what leader epochs tell: where the logs part
		n := 0
		for n < len(b.log) && n < len(l.log) && b.log[n] == l.log[n] {
			n++
		}
		b.log = b.log[:n]
		b.cut = false
		b.core.Appended(s.ends(b))
	}
	w, err := l.core.Fetched(Fetch{Broker: id, LeaderEpoch: b.core.LeaderEpoch(), Offset: int64(len(b.log)), NowMs: s.now})
	if err != nil {
		return
	}
	s.propose(b.core.Leader(), w.Propose)
	if s.rng.IntN(4) == 0 {
		return // the answer is lost
	}
	n := min(len(l.log), len(b.log)+s.rng.IntN(3))
	b.log = append(slices.Clone(b.log), l.log[len(b.log):n]...)
	b.core.Appended(s.ends(b))
	b.core.LeaderSaid(l.core.HighWatermark())
}

// propose sends a leader's wish to the controller; one that is lost is sent again by decide.
func (s *sim) propose(of int32, isr []int32) {
	if isr != nil {
		c := s.brokers[of].core
		s.asked, s.askedOf, s.askedAt = isr, of, [2]int32{c.LeaderEpoch(), c.PartitionEpoch()}
	}
}

// decide is the controller's answer, which may get lost on its way; then the leader asks again.
func (s *sim) decide() {
	if s.asked == nil {
		for id := int32(1); id <= simBrokers; id++ {
			s.propose(id, s.brokers[id].core.Proposed())
		}
		return
	}
	isr, of := s.asked, s.askedOf
	s.asked = nil
	c := s.brokers[of].core
	switch {
	case s.askedAt[0] != s.truth.LeaderEpoch:
		return // it will hear of its successor
	case s.askedAt[1] != s.truth.PartitionEpoch:
		s.assign(of, s.truth) // a repetition of what was decided
		return
	case s.rng.IntN(8) == 0:
		c.Refused(s.truth.LeaderEpoch, s.truth.PartitionEpoch)
		return
	}
	s.truth.ISR = isr
	s.truth.PartitionEpoch++
	if s.rng.IntN(2) == 0 {
		c.Altered(s.truth.LeaderEpoch, s.truth.PartitionEpoch, isr)
	} else if s.giveUp {
		c.Refused(s.truth.LeaderEpoch, c.PartitionEpoch())
	}
}

// elect makes some member of the in-sync set leader, and may drop others from it.
func (s *sim) elect() {
	leader := s.truth.ISR[s.rng.IntN(len(s.truth.ISR))]
	isr := slices.DeleteFunc(slices.Clone(s.truth.ISR), func(id int32) bool { return id != leader && s.rng.IntN(3) == 0 })
	s.truth.Leader, s.truth.ISR = leader, isr
	s.truth.LeaderEpoch++
	s.truth.PartitionEpoch++
	for _, b := range s.brokers[1:] {
		b.mail = append(b.mail, s.truth)
	}
}

// check compares with the twin.
func (s *sim) check() error {
	for id, b := range s.brokers[1:] {
		hw := int(b.core.HighWatermark())
		if hw > len(b.log) {
			return fmt.Errorf("broker %d: high watermark %d beyond the log's end %d", id+1, hw, len(b.log))
		}
		if b.core.Role() == Leader && hw > len(s.committed) {
			s.committed = append(s.committed, b.log[len(s.committed):hw]...)
		}
		if n := min(hw, len(s.committed)); !slices.Equal(b.log[:n], s.committed[:n]) {
			return fmt.Errorf("broker %d: shows %v as committed, it was %v", id+1, b.log[:n], s.committed[:n])
		}
	}
	for _, id := range s.truth.ISR {
		log := s.brokers[id].log
		if len(log) < len(s.committed) || !slices.Equal(log[:len(s.committed)], s.committed) {
			return fmt.Errorf("broker %d is in sync, and lacks what was committed: has %v, committed %v", id, log, s.committed)
		}
	}
	return nil
}

func runSim(seed uint64, steps int, giveUp bool) (committed int, err error) {
	s := newSim(seed)
	s.giveUp = giveUp
	for i := range steps {
		if err := s.step(); err != nil {
			return 0, fmt.Errorf("seed %d, step %d: %w", seed, i, err)
		}
	}
	return len(s.committed), nil
}

func TestCommittedStays(t *testing.T) {
	total := 0
	for seed := range uint64(400) {
		n, err := runSim(seed, 600, false)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	if total < 400*10 {
		t.Errorf("only %d records were committed: the simulation does too little", total)
	}
}

// TestPlantedBug: the simulation is able to find one.
func TestPlantedBug(t *testing.T) {
	for seed := range uint64(400) {
		if _, err := runSim(seed, 600, true); err != nil {
			t.Log(err)
			return
		}
	}
	t.Fatal("a leader that forgets what it asked for was not found out")
}
