package sim

import (
	"fmt"

	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/replication/replica"
)

// producer is an idempotent client with acks=all: one record at a time in each partition, sent again until it is
// acknowledged.
type producer struct {
	w    *World
	id   int64
	next map[store.TP]int32
	stop bool
}

func newProducer(w *World, id int64) *producer {
	p := &producer{w: w, id: id, next: map[store.TP]int32{}}
	for _, tp := range w.partitions() {
		p.send(tp)
	}
	return p
}

// send sends the partition's next record to whom it takes for the leader.
func (p *producer) send(tp store.TP) {
	w := p.w
	if p.stop {
		return
	}
	seq := p.next[tp]
	to := int(w.zk.states[tp].Leader)
	if to < 0 || w.chance(8) {
		to = w.rng.IntN(brokerCount)
	}
	b := w.brokers[to]
	answered := false
	again := func() {
		if !answered {
			answered = true
			w.after(5+w.rng.Int64N(30), func() { p.send(tp) })
		}
	}
	bl := batch.NewBuilder()
	bl.ProducerID, bl.ProducerEpoch, bl.BaseSequence = p.id, 0, seq
	bl.Add(simClock{w}.NowMs(), nil, fmt.Appendf(nil, "%d/%d", p.id, seq))
	record, err := bl.Build()
	if err != nil {
		panic(err)
	}
	w.after(1+w.rng.Int64N(5), func() {
		h := b.replicas[tp]
		if !b.up || h == nil {
			again()
			return
		}
		life := b.life
		acks := int16(-1)
		if w.plant == AckWritten {
			acks = 1
		}
		h.Append(&replica.Append{Batches: []batch.Batch{record}, Acks: acks, Done: func(a commitlog.Appended) {
			w.after(1+w.rng.Int64N(5), func() {
				if answered || !b.alive(life) || w.chance(60) && !w.calm { // the answer is lost
					return
				}
				answered = true
				w.logf("%s: broker %d answers record %d of producer %d: offset %d, %v", tp, b.id, seq, p.id, a.BaseOffset, a.Err)
				p.outcome(b, tp, seq, a)
			})
		}})
		w.after(150, again) // no answer in time
	})
}

func (p *producer) outcome(b *broker, tp store.TP, seq int32, a commitlog.Appended) {
	switch {
	case a.Err == nil:
		p.w.oracle.acknowledge(p.w, tp, a.BaseOffset, fmt.Sprintf("%d/%d", p.id, seq))
		if p.next[tp] == seq {
			p.next[tp]++
		}
	case isSequence(a.Err) && p.w.rules(b, tp): // who was deposed and does not know may well miss records
		p.w.fail("%s: record %d of producer %d is refused: %v: what was acknowledged before it is gone", tp, seq, p.id, a.Err)
	}
	p.w.after(p.w.rng.Int64N(12), func() { p.send(tp) })
}

// rules says whether a broker is the partition's leader, and in the epoch that it believes in.
func (w *World) rules(b *broker, tp store.TP) bool {
	s, h := w.zk.states[tp], b.replicas[tp]
	return h != nil && int(s.Leader) == b.id && s.LeaderEpoch == h.epoch()
}
