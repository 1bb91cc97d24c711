package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"platter/coord/cluster"
	"platter/coord/internal/coordtest"
	"platter/engine/store"
	"platter/io/clock"
)

// listener is a broker that may be away, hang, or refuse.
type listener struct {
	mu    sync.Mutex
	heard []string
	err   error
	fails int           // so many tries fail besides
	hold  chan struct{} // nil: it answers at once
	tries int
}

func (l *listener) hear(ctx context.Context, what string) error {
	l.mu.Lock()
	l.tries++
	err, hold := l.err, l.hold
	if l.tries <= l.fails {
		err = io.EOF
	}
	l.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err == nil {
		l.mu.Lock()
		l.heard = append(l.heard, what)
		l.mu.Unlock()
	}
	return err
}

func (l *listener) LeaderAndISR(ctx context.Context, _ cluster.Broker, r LeaderAndISR) ([]error, error) {
	return make([]error, len(r.Partitions)), l.hear(ctx, fmt.Sprint("lead ", r.Partitions[0].PartitionEpoch))
}

func (l *listener) StopReplica(ctx context.Context, _ cluster.Broker, r StopReplica) ([]error, error) {
	return make([]error, len(r.Partitions)), l.hear(ctx, "stop")
}

func (l *listener) UpdateMetadata(ctx context.Context, _ cluster.Broker, r UpdateMetadata) error {
	return l.hear(ctx, fmt.Sprint("update ", r.Update.ControllerEpoch))
}

func (l *listener) set(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// await waits for so many tries.
func (l *listener) await(t *testing.T, tries int) {
	t.Helper()
	coordtest.Eventually(t, fmt.Sprint(tries, " tries"), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.tries >= tries
	})
}

// speaker is a controller of which only the senders are used.
func speaker(t *testing.T, l *listener) *Controller {
	c := &Controller{cfg: Config{Brokers: l, Clock: clock.Real{}, Log: quiet}, wake: make(chan struct{}, 1), senders: map[int32]*sender{}}
	c.life, c.end = context.WithCancel(context.Background())
	t.Cleanup(c.end)
	return c
}

func update(n int32) *message {
	return &message{update: &UpdateMetadata{Update: cluster.Update{ControllerEpoch: n}}}
}

func awaitDone(t *testing.T, m *message) {
	t.Helper()
	select {
	case <-m.done:
	case <-time.After(time.Minute):
		t.Fatal("a message is neither taken nor given up")
	}
}

func TestSenderKeepsOrder(t *testing.T) {
	l := &listener{}
	c := speaker(t, l)
	s := c.sender(cluster.Broker{ID: 2, Epoch: 5})
	var want []string
	var last *message
	for n := range int32(50) {
		last = update(n)
		if n%2 == 1 {
			last = &message{lead: &LeaderAndISR{Partitions: []PartitionState{{TP: store.TP{Topic: "t"}, PartitionEpoch: n}}}}
			want = append(want, fmt.Sprint("lead ", n))
		} else {
			want = append(want, fmt.Sprint("update ", n))
		}
		s.send(last)
	}
	awaitDone(t, last)
	if fmt.Sprint(l.heard) != fmt.Sprint(want) {
		t.Errorf("heard %v", l.heard)
	}
}

// TestSenderTriesAgain: a broker that is away is late, so that nobody waits for it, and hears everything when it is back.
func TestSenderTriesAgain(t *testing.T) {
	l := &listener{err: errors.New("connection refused")}
	c := speaker(t, l)
	s := c.sender(cluster.Broker{ID: 2, Epoch: 5})
	first := s.send(update(1))
	tm := &term{c: c, ctx: c.life}
	tm.await([]sending{{s, first}}, time.Minute) // ends when the broker is late
	second := update(2)
	if s.send(second) != nil {
		t.Error("a broker that is late is waited for")
	}
	l.set(func() { l.err = nil })
	awaitDone(t, second)
	if fmt.Sprint(l.heard) != "[update 1 update 2]" || first.err != nil {
		t.Errorf("heard %v, %v", l.heard, first.err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		late := s.late
		s.mu.Unlock()
		if !late {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it is late for ever")
		}
	}
}

// TestSenderTriesAtOnce: a broker that has just come back, so that the connection to its former life breaks, is not late.
func TestSenderTriesAtOnce(t *testing.T) {
	l := &listener{fails: 1}
	c := speaker(t, l)
	s := c.sender(cluster.Broker{ID: 2, Epoch: 5})
	c.cfg.Clock = nil // which nobody is to wait for
	m := s.send(update(1))
	awaitDone(t, m)
	if fmt.Sprint(l.heard) != "[update 1]" || m.err != nil || l.tries != 2 {
		t.Errorf("heard %v, %v after %d tries", l.heard, m.err, l.tries)
	}
}

func TestSenderTakesARefusal(t *testing.T) {
	l := &listener{err: fmt.Errorf("%w: 7", ErrStaleController)}
	c := speaker(t, l)
	s := c.sender(cluster.Broker{ID: 2, Epoch: 5})
	m := s.send(update(1))
	awaitDone(t, m)
	if !errors.Is(m.err, ErrStaleController) || l.tries != 1 {
		t.Errorf("%v after %d tries", m.err, l.tries)
	}
}

// TestSenderBeforeTheBrokerKnows: a broker that has not heard of its registration yet refuses what is told to it; it is
// told again until it takes it, or has registered anew.
func TestSenderBeforeTheBrokerKnows(t *testing.T) {
	l := &listener{err: fmt.Errorf("%w: 5, now 4", ErrStaleBroker)}
	c := speaker(t, l)
	s := c.sender(cluster.Broker{ID: 2, Epoch: 5})
	first, second := s.send(update(1)), s.send(update(2))
	l.await(t, 3)
	l.set(func() { l.err = nil })
	awaitDone(t, first)
	awaitDone(t, second)
	if fmt.Sprint(l.heard) != "[update 1 update 2]" || first.err != nil || second.err != nil {
		t.Errorf("heard %v, %v, %v", l.heard, first.err, second.err)
	}

	l.set(func() { l.err = ErrStaleBroker })
	last := s.send(update(3))
	c.sender(cluster.Broker{ID: 2, Epoch: 6})
	if awaitDone(t, last); !errors.Is(last.err, ErrStaleBroker) {
		t.Errorf("a registration that is over: %v", last.err)
	}
}

// TestSenderOverrun: what waits for a broker that hangs is bounded; it is told everything instead when it answers again,
// and nothing before that.
func TestSenderOverrun(t *testing.T) {
	hold := make(chan struct{})
	l := &listener{hold: hold}
	c := speaker(t, l)
	s := c.sender(cluster.Broker{ID: 2, Epoch: 5})
	var all []*message
	for n := range int32(3 * sendQueueMax) {
		m := update(n)
		all = append(all, m)
		s.send(m)
		s.mu.Lock()
		waiting := len(s.queue)
		s.mu.Unlock()
		if waiting > sendQueueMax {
			t.Fatalf("%d wait", waiting)
		}
	}
	s.afresh() // too early
	if s.missed() || s.send(update(-1)) != nil {
		t.Error("it could be told everything while it hangs")
	}
	close(hold)
	for i, m := range all {
		if awaitDone(t, m); (i > 0) != errors.Is(m.err, errOverrun) {
			t.Errorf("message %d: %v", i, m.err)
		}
	}
	coordtest.Eventually(t, "the driver hears of it", func() bool { return c.flags.Load()&missedNews != 0 && s.missed() })
	if c.flags.Load()&reread != 0 {
		t.Error("the whole cluster is read again for one broker")
	}
	s.afresh()
	awaitDone(t, s.send(update(7)))
	if _, unsent := c.Waiting(); fmt.Sprint(l.heard) != "[update 0 update 7]" || s.missed() || unsent != 0 {
		t.Errorf("heard %v, %d wait", l.heard, unsent)
	}
}

// TestSenderStopsOnce: a deletion that waits for a broker is not queued again, unless the replicas may be there anew.
func TestSenderStopsOnce(t *testing.T) {
	l := &listener{hold: make(chan struct{})}
	c := speaker(t, l)
	s := c.sender(cluster.Broker{ID: 2, Epoch: 5})
	parts := stopParts(&topic{name: "t", parts: make([]partition, 2)}, true)
	if s.stopping(parts) != nil {
		t.Error("nothing waits")
	}
	m := &message{stop: &StopReplica{Partitions: parts}}
	s.send(update(1))
	s.send(m)
	s.send(update(2))
	if s.stopping(slices.Clone(parts)) != m || s.stopping(parts[:1]) != nil {
		t.Error("not the message that waits")
	}
	s.send(&message{lead: &LeaderAndISR{Partitions: []PartitionState{{TP: store.TP{Topic: "t"}}}}})
	if s.stopping(parts) != nil {
		t.Error("it was stopped before it is made")
	}
}

// TestSenderEnds: a new registration ends the way to the one before, whatever waits there.
func TestSenderEnds(t *testing.T) {
	l := &listener{hold: make(chan struct{})}
	c := speaker(t, l)
	s := c.sender(cluster.Broker{ID: 2, Epoch: 5})
	first, second := s.send(update(1)), s.send(update(2))
	next := c.sender(cluster.Broker{ID: 2, Epoch: 6})
	if next == s || c.sender(cluster.Broker{ID: 2, Epoch: 6}) != next {
		t.Error("not one way for each registration")
	}
	awaitDone(t, first)
	awaitDone(t, second)
	if first.err == nil || second.err == nil {
		t.Error("what was not heard counts as heard")
	}
	m := next.send(update(3))
	c.hush(map[int32]cluster.Broker{3: {ID: 3}})
	awaitDone(t, m)
	if len(c.senders) != 0 {
		t.Error("a way to a broker that is gone is kept")
	}
}
