package sim

import (
	"errors"
	"slices"

	"platter/coord/cluster"
	"platter/coord/controller"
	"platter/engine/store"
)

// control is one term of the controller, on one broker.
type control struct {
	w     *World
	at    *broker
	life  int
	epoch int32
	model *controller.Model
	lines map[int]*line
	// loaded: it has read everything; before, it acts on no news.
	loaded bool
}

// line is what waits for one broker, in order: again and again until it was taken.
type line struct {
	epoch int64 // of the broker's registration
	queue []*controller.LeaderAndISR
	busy  bool
}

func (w *World) partitions() []store.TP {
	var out []store.TP
	for p := range int32(partitionCount) {
		out = append(out, store.TP{Topic: topicName, Partition: p})
	}
	return out
}

func (w *World) assignment() cluster.Assignment {
	a := cluster.Assignment{ID: w.topicID}
	for p := range partitionCount {
		var replicas []int32
		for j := range brokerCount {
			replicas = append(replicas, int32((p+j)%brokerCount))
		}
		a.Replicas = append(a.Replicas, replicas)
	}
	return a
}

// createTopic has the first controller make the partitions.
func (w *World) createTopic() {
	w.run(func() bool { return w.control != nil })
	w.control.settle()
}

// register is a broker's session, registration and candidacy; while it does not reach the coordinator it tries on. A
// broker that registers anew at run time may hear of that after the controller has; one that starts serves nobody before.
func (w *World) register(b *broker) {
	life := b.life
	if w.noCoordinator(b) {
		w.after(50, func() {
			if b.alive(life) && !b.member {
				w.register(b)
			}
		})
		return
	}
	// A process that comes back ends its former session at once.
	w.expire(b, w.zk.registered[b.id])
	w.zk.zxid++
	epoch := w.zk.zxid
	w.zk.registered[b.id], b.member = epoch, true
	w.logf("broker %d registers as %d", b.id, epoch)
	if b.epoch == 0 {
		b.epoch = epoch
	} else {
		w.after(w.rng.Int64N(60), func() {
			if b.alive(life) {
				b.epoch = max(b.epoch, epoch)
			}
		})
	}
	w.elect()
	w.brokersChanged()
}

// expire ends the session of a registration.
func (w *World) expire(b *broker, epoch int64) {
	if epoch == 0 || w.zk.registered[b.id] != epoch {
		return
	}
	if w.away { // sessions do not expire while nobody counts, and who is heard of afterwards keeps its own
		w.after(sessionMs, func() {
			if !b.up || !b.member || w.noCoordinator(b) {
				w.expire(b, epoch)
			}
		})
		return
	}
	w.logf("session of broker %d expires", b.id)
	delete(w.zk.registered, b.id)
	if w.zk.controller == b.id {
		w.zk.controller = -1
		w.control = nil
	}
	if b.up && b.member {
		b.member = false
		w.register(b)
	}
	w.elect()
	w.brokersChanged()
}

// elect makes some registered broker the controller when there is none.
func (w *World) elect() {
	if w.zk.controller >= 0 || len(w.zk.registered) == 0 {
		return
	}
	var ids []int
	for id := range w.zk.registered {
		if w.brokers[id].up {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	b := w.brokers[ids[w.rng.IntN(len(ids))]]
	w.zk.controller = b.id
	w.zk.epoch++
	w.logf("broker %d is the controller in epoch %d", b.id, w.zk.epoch)
	c := &control{w: w, at: b, life: b.life, epoch: w.zk.epoch, model: controller.NewModel(), lines: map[int]*line{}}
	w.control = c
	c.load()
}

// load reads everything, after a moment; while the coordinator is not reached it tries on.
func (c *control) load() {
	w := c.w
	w.after(5+w.rng.Int64N(30), func() {
		switch {
		case w.control != c || !c.at.alive(c.life):
			return
		case !c.rules():
			c.load()
			return
		}
		c.model.SetBrokers(w.live())
		c.model.SetTopic(topicName, w.assignment(), false)
		for _, tp := range w.partitions() {
			if s, ok := w.zk.states[tp]; ok {
				c.model.SetState(tp, s)
			}
		}
		c.loaded = true
		c.settle()
	})
}

func (c *control) rules() bool {
	return c.w.control == c && c.at.alive(c.life) && !c.w.noCoordinator(c.at)
}

func (w *World) live() []cluster.Broker {
	var out []cluster.Broker
	for id, b := range w.brokers {
		if epoch, ok := w.zk.registered[id]; ok {
			_ = b
			out = append(out, cluster.Broker{ID: int32(id), Epoch: epoch})
		}
	}
	return out
}

// brokersChanged lets the controller know, after a moment.
func (w *World) brokersChanged() {
	w.after(2+w.rng.Int64N(20), func() {
		if c := w.control; c != nil && c.rules() && c.loaded {
			live := w.live()
			c.model.SetBrokers(live)
			c.settle()
		}
	})
}

// settle writes what is due and tells the brokers.
func (c *control) settle() {
	if !c.rules() {
		return
	}
	for _, ch := range c.model.Elections() {
		c.write(ch)
	}
	for _, p := range c.model.Pushes() {
		if p.Lead == nil {
			continue
		}
		l := *p.Lead
		id := int(p.To.ID)
		epoch := c.w.zk.registered[id]
		l.ControllerID, l.ControllerEpoch, l.BrokerEpoch = int32(c.at.id), c.epoch, epoch
		q := c.lines[id]
		if q == nil || q.epoch != epoch {
			q = &line{epoch: epoch}
			c.lines[id] = q
		}
		q.queue = append(q.queue, &l)
		c.deliver(id, q)
	}
}

// write is a conditional write under the controller's fence: nobody else can have written.
func (c *control) write(ch controller.StateChange) {
	s := ch.State
	c.w.zk.zxid++
	s.ControllerEpoch = c.epoch
	s.ZkVersion = c.w.zk.states[ch.TP].ZkVersion + 1
	c.w.logf("%s: leader %d epoch %d isr %v", ch.TP, s.Leader, s.LeaderEpoch, s.ISR)
	c.model.Commit(ch, c.epoch, s.ZkVersion)
	s.Known = c.model.State(ch.TP).Known
	c.w.zk.states[ch.TP] = s
	if c.w.plant == TrustRejoined { // no registration is ever seen to be newer than what was decided
		s.Known = 1 << 60
		c.model.SetState(ch.TP, s)
	}
}

// deliver brings a broker what waits for it, one after the other. A controller that was deposed goes on telling what
// it had to tell, until it notices: the fences have to keep that out.
func (c *control) deliver(id int, q *line) {
	if q.busy || len(q.queue) == 0 || !c.at.alive(c.life) || c.lines[id] != q {
		return
	}
	q.busy = true
	b := c.w.brokers[id]
	done := func(taken bool) func() {
		return func() {
			q.busy = false
			if taken {
				q.queue = q.queue[1:]
			}
			c.deliver(id, q)
		}
	}
	c.w.send(c.at.id, id, func() {
		if b.told(q.queue[0]) {
			done(true)()
		} else {
			c.w.after(30, done(false))
		}
	}, func() { c.w.after(30, done(false)) })
}

// wish brings a leader's wish to the controller, as coord/node's proposer does.
func (b *broker) wish(life int, tp store.TP) {
	w := b.w
	again := func() {
		if b.alive(life) {
			b.wish(life, tp)
		}
	}
	w.after(1, func() {
		h := b.replicas[tp]
		if !b.alive(life) || h == nil {
			return
		}
		want, ok := h.Proposal()
		if !ok {
			return
		}
		c := w.control
		if c == nil {
			w.after(100, again)
			return
		}
		ch := controller.ISRChange{TP: tp, TopicID: w.topicID, LeaderEpoch: want.LeaderEpoch, PartitionEpoch: want.PartitionEpoch}
		for _, m := range want.ISR {
			ch.ISR = append(ch.ISR, controller.ISRMember{Broker: m.Broker, Epoch: m.Epoch})
		}
		epoch := b.epoch
		w.send(b.id, c.at.id, func() {
			answer, ok := c.alter(b.id, epoch, &ch)
			w.send(c.at.id, b.id, func() {
				if b.alive(life) && !b.answered(h, &ch, answer, ok) {
					w.after(100, again)
				}
			}, again)
		}, again)
	})
}

// alter is the controller's answer to a wish; false: it is not one.
func (c *control) alter(broker int, epoch int64, ch *controller.ISRChange) (controller.ISRAnswer, bool) {
	if !c.rules() || !c.loaded || c.w.zk.registered[broker] != epoch {
		return controller.ISRAnswer{}, false
	}
	change, err := c.model.Judge(int32(broker), ch)
	if err != nil {
		return controller.ISRAnswer{Err: err}, true
	}
	c.write(change)
	c.settle()
	s := c.model.State(ch.TP)
	return controller.ISRAnswer{Leader: s.Leader, LeaderEpoch: s.LeaderEpoch, PartitionEpoch: s.ZkVersion, ISR: slices.Clone(s.ISR)}, true
}

// answered does what an answer asks for; false: ask again.
func (b *broker) answered(h *held, ch *controller.ISRChange, a controller.ISRAnswer, ok bool) bool {
	switch {
	case !ok:
		return false
	case a.Err == nil:
		h.Altered(a.LeaderEpoch, a.PartitionEpoch, a.ISR)
		return true
	case errors.Is(a.Err, controller.ErrIneligible), errors.Is(a.Err, controller.ErrInvalidISR):
		b.w.after(200, func() { h.Refused(ch.LeaderEpoch, ch.PartitionEpoch) })
		return true
	}
	return false
}
