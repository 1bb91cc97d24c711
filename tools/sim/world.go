// Package sim runs a whole cluster in virtual time, on one goroutine and from one seed: real logs over in-memory disks
// that lose power, real replicas and the real deciding part of the controller, over a network that delays, loses and
// is cut. What was acknowledged is looked for whenever a leader begins its term, and everything at the end; a failure
// is replayed, step by step, from its seed.
//
// # What is modelled
//
// The coordinator is a table of states with versions, and sessions that expire; the wire is messages that carry Go
// values; a follower's fetches, the controller's pushes and a leader's wishes follow the order and the fencing of
// replication/follow, coord/controller and coord/node, whose timers are events here.
package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"platter/coord/cluster"
	"platter/engine/store"
	"platter/io/clock"
)

// Plant is a bug that a run can have, to show that it would be found.
type Plant int

// The bugs.
const (
	NoBug         Plant = iota
	AckWritten          // a leader acknowledges what only it has
	KeepTail            // a follower does not cut back what its leader does not have
	TrustRejoined       // a broker that lost its memory stays in sync
	DropEarly           // what a broker is told before it knows of its registration is lost
)

const (
	brokerCount    = 3
	partitionCount = 2
	topicName      = "t"
	lagMaxMs       = 400
	sessionMs      = 600
)

// World is one run.
type World struct {
	rng   *rand.Rand
	plant Plant
	now   int64 // virtual milliseconds
	next  int
	queue events
	trace func(string) // nil: nobody listens

	topicID store.UUID
	brokers []*broker
	cut     map[[2]int]bool // links that are cut, both ways
	oneWay  map[[2]int]bool // from and to: what is cut one way
	zkCut   map[int]bool    // brokers that do not reach the coordinator
	away    bool            // the coordinator is
	synced  bool            // the topic's class: records are synced before they are acknowledged
	slow    int64           // the most milliseconds that a late message takes
	calm    bool            // nothing is broken any more

	zk      znodes
	control *control
	oracle  oracle
	clients []*producer
	err     error // the first broken promise
	steps   int
}

// znodes is what the coordinator holds.
type znodes struct {
	zxid       int64
	registered map[int]int64 // broker epoch, by broker
	states     map[store.TP]cluster.State
	epoch      int32 // of the controller
	controller int   // -1: none
}

// event is something that happens at a time; those of one time in the order in which they were planned.
type event struct {
	at  int64
	seq int
	do  func()
}

type events []event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(event)) }
func (h *events) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}

// after plans f.
func (w *World) after(ms int64, f func()) {
	w.next++
	heap.Push(&w.queue, event{w.now + ms, w.next, f})
}

func (w *World) logf(format string, args ...any) {
	if w.trace != nil {
		w.trace(fmt.Sprintf("%6d ms  ", w.now) + fmt.Sprintf(format, args...))
	}
}

// fail notes a broken promise; the first one counts.
func (w *World) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("at %d ms: "+format, append([]any{w.now}, args...)...)
		w.logf("BROKEN: %v", w.err)
	}
}

// chance is true once in n.
func (w *World) chance(n int) bool { return w.rng.IntN(n) == 0 }

// send delivers a message from one broker to another after a while, unless the link is cut or the message is lost:
// then lost happens, later.
func (w *World) send(from, to int, deliver, lost func()) {
	delay := 1 + w.rng.Int64N(6)
	if w.chance(40) && !w.calm {
		delay += w.rng.Int64N(w.slow)
	}
	w.after(delay, func() {
		if w.linkCut(from, to) || !w.brokers[to].up || w.chance(200) && !w.calm {
			w.after(20+w.rng.Int64N(60), lost)
			return
		}
		deliver()
	})
}

// noCoordinator says whether a broker does not reach the coordinator.
func (w *World) noCoordinator(b *broker) bool { return w.away || w.zkCut[b.id] }

func (w *World) linkCut(a, b int) bool {
	return a != b && (w.cut[[2]int{min(a, b), max(a, b)}] || w.oneWay[[2]int{a, b}])
}

// Run goes through one seed; the error is the first promise that was broken. faults is how many things happen to the
// cluster, plant the bug that it has, trace is told of every step.
func Run(seed uint64, faults int, plant Plant, trace func(string)) error {
	w := &World{
		rng: rand.New(rand.NewPCG(seed, 6)), plant: plant, trace: trace,
		topicID: store.UUID{0: 1}, cut: map[[2]int]bool{}, oneWay: map[[2]int]bool{}, zkCut: map[int]bool{},
		zk:     znodes{registered: map[int]int64{}, states: map[store.TP]cluster.State{}, controller: -1},
		oracle: newOracle(),
	}
	w.synced, w.slow = w.chance(2), 150
	if w.chance(3) {
		w.slow = 1500
	}
	for i := range brokerCount {
		w.brokers = append(w.brokers, newBroker(w, i))
	}
	for _, b := range w.brokers {
		b.start()
	}
	w.createTopic()
	for p := range 2 {
		w.clients = append(w.clients, newProducer(w, int64(p)))
	}
	w.after(50, func() { w.fault(faults) })
	w.run(func() bool { return w.calm })
	w.settle()
	return w.err
}

// run takes events until done says so, or a promise is broken.
func (w *World) run(done func() bool) {
	const stepsMax = 400_000
	for w.err == nil && !done() && w.queue.Len() > 0 {
		e := heap.Pop(&w.queue).(event)
		w.now = max(w.now, e.at)
		e.do()
		w.check()
		if w.steps++; w.steps > stepsMax {
			w.fail("it does not come to rest")
		}
	}
}

// simClock is the world's time.
type simClock struct{ w *World }

func (c simClock) Now() time.Time                       { return time.UnixMilli(c.NowMs()) }
func (c simClock) NowMs() int64                         { return 1_000_000 + c.w.now }
func (c simClock) After(time.Duration) <-chan time.Time { return nil }
func (c simClock) AfterFunc(d time.Duration, f func()) func() bool {
	live := true
	c.w.after(d.Milliseconds(), func() {
		if live {
			f()
		}
	})
	return func() bool { was := live; live = false; return was }
}

var _ clock.Clock = simClock{}
