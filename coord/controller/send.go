package controller

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"platter/coord/cluster"
	"platter/engine/store"
)

const (
	// createWait and pushWait are how long the driver waits for brokers to take what it tells them: of new partitions,
	// which whoever creates them wants to use at once, and of others, where the next election must not wait for a host
	// that is silent. A broker that takes longer hears it all the same, but is not waited for so long again until it has
	// caught up.
	createWait = 5 * time.Second
	pushWait   = 300 * time.Millisecond
	// The pauses between two tries to reach a broker.
	sendDelayMin = 50 * time.Millisecond
	sendDelayMax = time.Second
	// sendQueueMax bounds what waits for a broker; beyond it the broker is told everything instead, when it can be reached.
	sendQueueMax = 64
)

// message is one push on its way to a broker.
type message struct {
	lead   *LeaderAndISR
	stop   *StopReplica
	update *UpdateMetadata
	asks   bool // lead names replicas that the broker could not serve before

	errs []error // by partition
	err  error   // it was not taken at all
	done chan struct{}
}

// sender tells one broker, in one of its registrations, what the controller decides: in order, again and again
// until it was taken or refused.
type sender struct {
	c   *Controller
	to  cluster.Broker
	ctx context.Context
	end context.CancelFunc

	mu    sync.Mutex
	queue []*message
	busy  bool
	slow  bool // it is waited for with createWait only
	late  bool // it is not waited for
	lost  bool // something was not told, and nothing is until it can be told everything
}

// sender finds the one for a broker, or makes it. Only the driver calls it.
func (c *Controller) sender(to cluster.Broker) *sender {
	s := c.senders[to.ID]
	if s != nil && s.to.Epoch == to.Epoch {
		return s
	}
	if s != nil {
		s.end()
	}
	s = &sender{c: c, to: to}
	s.ctx, s.end = context.WithCancel(c.life)
	c.senders[to.ID] = s
	return s
}

// hush ends the senders to brokers that are not among live; nil: all of them.
func (c *Controller) hush(live map[int32]cluster.Broker) {
	for id, s := range c.senders {
		if b, ok := live[id]; !ok || b.Epoch != s.to.Epoch {
			s.end()
			delete(c.senders, id)
		}
	}
}

// send queues a message. The result is nil when the broker is late: nobody should wait for it.
func (s *sender) send(m *message) *message {
	m.done = make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) >= sendQueueMax {
		s.lost = true
		for _, old := range s.queue[1:] { // the first is under way
			old.drop()
		}
		s.c.unsent.Add(1 - int64(len(s.queue)))
		s.queue = s.queue[:1]
	}
	if s.lost {
		m.drop()
		return nil
	}
	s.queue = append(s.queue, m)
	s.c.unsent.Add(1)
	if !s.busy {
		s.busy = true
		go s.run()
	}
	if s.late {
		return nil
	}
	return m
}

func (m *message) drop() {
	m.err = errOverrun
	close(m.done)
}

// missed says whether the broker has missed something and can be told everything now.
func (s *sender) missed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost && !s.busy
}

// afresh lets messages through again, of which the first tells everything.
func (s *sender) afresh() {
	s.mu.Lock()
	s.lost = s.lost && s.busy
	s.mu.Unlock()
}

// stopping finds a message by which the broker is told already to delete replicas; nil: none waits.
func (s *sender) stopping(parts []StopPartition) *message {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range slices.Backward(s.queue) {
		switch {
		case m.stop != nil && slices.Equal(m.stop.Partitions, parts):
			return m
		case m.lead != nil && slices.ContainsFunc(m.lead.Partitions, func(p PartitionState) bool { return p.TP.Topic == parts[0].TP.Topic }):
			return nil // they may have been made anew
		}
	}
	return nil
}

var errOverrun = errors.New("too many changes wait for the broker")

func (s *sender) setLate() {
	s.mu.Lock()
	s.late = true
	s.mu.Unlock()
}

// tookLonger notes that a message was not taken within a time.
func (s *sender) tookLonger(wait time.Duration) {
	s.mu.Lock()
	s.slow = true
	s.late = s.late || wait > pushWait
	s.mu.Unlock()
}

// waitedFor says whether the broker is worth waiting for so long.
func (s *sender) waitedFor(wait time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.late && (!s.slow || wait > pushWait)
}

func (s *sender) run() {
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.busy, s.slow, s.late = false, false, false
			lost := s.lost
			s.mu.Unlock()
			if lost {
				s.c.raise(missedNews)
			}
			return
		}
		m := s.queue[0]
		s.mu.Unlock()
		s.deliver(m)
		s.mu.Lock()
		s.queue = s.queue[1:]
		s.mu.Unlock()
		s.c.unsent.Add(-1)
		close(m.done)
	}
}

// deliver tries until the message is taken, refused, or of no interest any more. ErrStaleBroker is no refusal: the broker
// has not heard of its registration yet, or the controller not of the next one, which ends s.
func (s *sender) deliver(m *message) {
	delay := sendDelayMin
	for said, again := false, true; ; delay = min(2*delay, sendDelayMax) {
		err := s.try(m)
		switch {
		case err == nil:
			return
		case s.ctx.Err() != nil, errors.Is(err, ErrStaleController):
			m.err = err
			return
		case again: // the connection may have been to the broker's former life
			again = false
			continue
		}
		s.setLate()
		if !said {
			said = true
			s.c.cfg.Log.Warn("a broker does not take what it is told; will try again", "broker", s.to.ID, "err", err)
		}
		select {
		case <-s.c.cfg.Clock.After(delay):
		case <-s.ctx.Done():
		}
	}
}

func (s *sender) try(m *message) (err error) {
	b := s.c.cfg.Brokers
	switch {
	case m.lead != nil:
		m.errs, err = b.LeaderAndISR(s.ctx, s.to, *m.lead)
		if err == nil {
			s.c.answered(answer{s.to, m.lead.Partitions, m.errs}, m.asks)
		}
	case m.stop != nil:
		m.errs, err = b.StopReplica(s.ctx, s.to, *m.stop)
	default:
		err = b.UpdateMetadata(s.ctx, s.to, *m.update)
	}
	return err
}

// push tells the brokers what they have to hear, and waits for those that are not late. It returns whether that
// brought news (replicas that a broker could not serve), so that there may be more to elect.
func (t *term) push() (again bool) {
	t.c.hush(t.core.brokers)
	var sent []sending
	wait := pushWait
	for _, p := range t.core.pushes() {
		h := t.header(p.to)
		s := t.c.sender(p.to)
		p.update.Header = h
		p.update.Update.ControllerID, p.update.Update.ControllerEpoch = h.ControllerID, h.ControllerEpoch
		words := []*message{{update: p.update}}
		if p.lead != nil && p.lead.Full {
			s.afresh()
		}
		if p.lead != nil {
			p.lead.Header = h
			if slices.ContainsFunc(p.lead.Partitions, func(s PartitionState) bool { return s.New }) {
				wait = createWait
			}
			words = append(words, &message{lead: p.lead, asks: p.asks})
			if !p.lead.Full { // else a broker that has just come would not know where the leaders are that it follows
				slices.Reverse(words)
			}
		}
		for _, m := range words {
			sent = append(sent, sending{s, s.send(m)})
		}
	}
	t.await(sent, wait)
	return t.readAnswers()
}

// retell has brokers that have missed something told everything; true: there are some.
func (t *term) retell() (any bool) {
	for id, s := range t.c.senders {
		if t.core.brokers[id].Epoch == s.to.Epoch && s.missed() {
			t.core.recheck(id)
			any = true
		}
	}
	return any
}

func (t *term) header(to cluster.Broker) Header {
	return Header{ControllerID: t.c.cfg.BrokerID, ControllerEpoch: t.epoch, BrokerEpoch: to.Epoch}
}

// sending is a message with its sender; nil: it is not waited for.
type sending struct {
	s *sender
	m *message
}

// await waits until all messages were taken or refused, but not for longer than wait.
func (t *term) await(sent []sending, wait time.Duration) {
	over := t.c.cfg.Clock.After(wait)
	for _, x := range sent {
		for waiting := x.m != nil && x.s.waitedFor(wait); waiting; {
			select {
			case <-x.m.done:
				waiting = false
			case <-t.c.cfg.Clock.After(lateCheck):
				waiting = x.s.waitedFor(wait)
			case <-over:
				x.s.tookLonger(wait)
				return
			case <-t.ctx.Done():
				return
			}
		}
	}
}

// lateCheck is how often a broker that is waited for is looked at: whether it could be reached at all.
const lateCheck = 10 * time.Millisecond

// stop makes a broker end replicas, and waits for it: nil when all did.
func (t *term) stop(to cluster.Broker, parts []StopPartition) error {
	s := t.c.sender(to)
	m := s.stopping(parts)
	if m == nil {
		m = s.send(&message{stop: &StopReplica{Header: t.header(to), Partitions: parts}})
	}
	if m == nil {
		return errLate
	}
	t.await([]sending{{s, m}}, createWait)
	select {
	case <-m.done:
		return errors.Join(append(m.errs, m.err)...)
	default:
		return errLate
	}
}

var errLate = errors.New("the broker cannot be reached now")

// stopParts are all partitions of a topic, to be stopped.
func stopParts(topic *topic, remove bool) []StopPartition {
	var parts []StopPartition
	for i := range topic.parts {
		parts = append(parts, StopPartition{TP: store.TP{Topic: topic.name, Partition: int32(i)}, LeaderEpoch: LeaderEpochDeleted, Delete: remove})
	}
	return parts
}
