package sim

import (
	"slices"

	"platter/engine/store"
)

// fault does one of the things that happen to clusters, and plans the next one.
func (w *World) fault(left int) {
	if left == 0 {
		w.heal()
		return
	}
	if w.unnoticed() {
		w.after(20, func() { w.fault(left) })
		return
	}
	b := w.brokers[w.rng.IntN(brokerCount)]
	pause := 10 + w.rng.Int64N(400)
	switch w.rng.IntN(13) {
	case 0, 1:
		w.die(b, false, pause)
	case 2:
		w.die(b, false, pause+2*sessionMs)
	case 3, 4:
		if w.synced || w.safeWithout(b) {
			w.die(b, true, pause)
		}
	case 5, 6:
		c := w.rng.IntN(brokerCount)
		link := [2]int{min(b.id, c), max(b.id, c)}
		w.logf("link %v is cut", link)
		w.cut[link] = true
		w.after(3*pause, func() { delete(w.cut, link) })
	case 7:
		w.logf("broker %d does not reach the coordinator", b.id)
		w.zkCut[b.id] = true
		epoch := w.zk.registered[b.id]
		w.after(sessionMs, func() {
			if w.zkCut[b.id] {
				w.expire(b, epoch)
			}
		})
		w.after(3*pause, func() { w.reach(b) })
	case 9, 10:
		w.lightsOut(pause)
	case 11:
		w.logf("the coordinator is away")
		w.away = true
		w.after(3*pause, func() { w.back() })
	case 12:
		w.logf("link from %d to %d is cut", b.id, (b.id+1)%brokerCount)
		way := [2]int{b.id, (b.id + 1) % brokerCount}
		w.oneWay[way] = true
		w.after(3*pause, func() { delete(w.oneWay, way) })
	case 8:
		if c := w.control; c != nil && c.rules() && c.loaded {
			w.logf("broker %d shuts down", b.id)
			c.model.Leave(int32(b.id))
			c.settle()
			w.after(60, func() {
				if b.up {
					w.die(b, false, pause)
				}
			})
		}
	}
	w.after(20+w.rng.Int64N(500), func() { w.fault(left - 1) })
}

// reach lets a broker reach the coordinator again: who is the controller reads everything anew.
func (w *World) reach(b *broker) {
	delete(w.zkCut, b.id)
	w.brokersChanged()
}

// back brings the coordinator back.
func (w *World) back() {
	if w.away {
		w.away = false
		w.logf("the coordinator is back")
		w.brokersChanged()
	}
}

// lightsOut cuts the power of several brokers, often of all, at one time. They come back in any order. Records that are
// synced before they are acknowledged survive it.
func (w *World) lightsOut(pause int64) {
	if !w.synced {
		return
	}
	for _, b := range w.brokers {
		if !w.chance(4) {
			w.die(b, true, 1+w.rng.Int64N(pause+2*sessionMs))
		}
	}
}

// die kills a broker, and starts it again after a while.
func (w *World) die(b *broker, powerCut bool, pause int64) {
	if !b.up {
		return
	}
	b.kill(powerCut)
	w.after(pause, func() {
		if !b.up {
			b.start()
		}
	})
}

// safeWithout says whether a broker may lose its unsynced records: in the class pagecache an acknowledged record
// survives a power cut as long as another member of the in-sync set lives on with it.
func (w *World) safeWithout(b *broker) bool {
	for _, tp := range w.partitions() {
		if !w.othersHave(b, tp) {
			return false
		}
	}
	return true
}

func (w *World) othersHave(b *broker, tp store.TP) bool {
	s := w.zk.states[tp]
	if r := b.replicas[tp]; r != nil {
		if _, open := r.Proposal(); open {
			return false // it may be on its way to be the only one
		}
	}
	for _, id := range s.ISR {
		o := w.brokers[id]
		if int(id) != b.id && o.up && !w.noCoordinator(o) && o.member && s.Known >= w.zk.registered[int(id)] {
			return true
		}
	}
	return false
}

// unnoticed says whether a broker has lost its memory and the controller does not know yet. Whoever else leaves the
// in-sync set in this time leaves it to somebody who has nothing: in the class pagecache that is a second fault too
// many, as it is in Kafka.
func (w *World) unnoticed() bool {
	for _, b := range w.brokers {
		if b.lost == 0 {
			continue
		}
		now := w.zk.registered[b.id]
		if now == b.lost {
			return true
		}
		if w.plant == TrustRejoined {
			continue // it is never noticed
		}
		for _, s := range w.zk.states {
			if slices.Contains(s.ISR, int32(b.id)) && len(s.ISR) > 1 && (now == 0 || s.Known < now) {
				return true
			}
		}
	}
	return false
}

// heal mends everything.
func (w *World) heal() {
	w.logf("no more faults")
	w.calm = true
	clear(w.cut)
	clear(w.oneWay)
	w.back()
	for _, b := range w.brokers {
		w.reach(b)
		if !b.up {
			b.start()
		}
	}
}
