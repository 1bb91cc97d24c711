package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"platter/engine/commitlog"
	"platter/engine/store"
)

// oracle knows what was promised.
type oracle struct {
	acked map[store.TP]map[int64]string // by offset
	seen  map[store.TP]map[int64]string // what consumers were given
}

func newOracle() oracle {
	return oracle{acked: map[store.TP]map[int64]string{}, seen: map[store.TP]map[int64]string{}}
}

func isSequence(err error) bool { return errors.Is(err, commitlog.ErrOutOfOrderSequence) }

// acknowledge notes a promise: nothing else was ever, or will be, promised for the offset.
func (o *oracle) acknowledge(w *World, tp store.TP, offset int64, value string) {
	if o.acked[tp] == nil {
		o.acked[tp] = map[int64]string{}
	}
	if before, ok := o.acked[tp][offset]; ok && before != value {
		w.fail("%s offset %d is acknowledged for %s, and was for %s", tp, offset, value, before)
	}
	o.acked[tp][offset] = value
}

// leads is called when a term begins: the new leader has to have everything that was acknowledged.
func (w *World) leads(b *broker, tp store.TP, h *held) {
	if s := w.zk.states[tp]; s.LeaderEpoch > h.epoch() {
		return // a word that has been overtaken: whoever leads now is looked at
	}
	got, err := h.records(h.log.Ends().Written)
	if err != nil {
		w.fail("%s on broker %d cannot be read: %v", tp, b.id, err)
		return
	}
	w.mustHave(fmt.Sprintf("broker %d, which begins to lead %s", b.id, tp), tp, got)
}

func (h *held) epoch() int32 {
	s, _ := h.State(-1)
	return s.LeaderEpoch
}

func (w *World) mustHave(who string, tp store.TP, got map[int64]string) {
	for _, offset := range slices.Sorted(maps.Keys(w.oracle.acked[tp])) {
		if want := w.oracle.acked[tp][offset]; got[offset] != want {
			w.fail("%s has %q at offset %d, where %s was acknowledged", who, got[offset], offset, want)
			return
		}
	}
}

// check is made after every step: high watermarks lie within the logs; now and then a consumer reads, and is given
// the same records for ever.
func (w *World) check() {
	for _, b := range w.brokers {
		for tp, h := range b.replicas {
			if s, _ := h.State(-1); s.HighWatermark > s.LogEnd || s.HighWatermark < s.LogStart {
				w.fail("broker %d, %s: high watermark %d outside of %d to %d", b.id, tp, s.HighWatermark, s.LogStart, s.LogEnd)
			}
		}
	}
	if w.chance(30) {
		w.consume(w.brokers[w.rng.IntN(brokerCount)], w.partitions()[w.rng.IntN(partitionCount)])
	}
}

// consume reads a replica up to its high watermark, a leader's or a follower's: what is below it is committed, so all
// replicas have the same there, for ever.
func (w *World) consume(b *broker, tp store.TP) {
	h := b.replicas[tp]
	if h == nil || !b.up {
		return
	}
	s, _ := h.State(-1)
	got, err := h.records(s.HighWatermark)
	if err != nil {
		w.fail("%s on broker %d cannot be read: %v", tp, b.id, err)
		return
	}
	if w.oracle.seen[tp] == nil {
		w.oracle.seen[tp] = map[int64]string{}
	}
	for offset, value := range got {
		if before, ok := w.oracle.seen[tp][offset]; ok && before != value {
			w.fail("%s offset %d: a consumer was given %s, and is given %s by broker %d", tp, offset, before, value, b.id)
			return
		}
		w.oracle.seen[tp][offset] = value
	}
}

// settle ends all faults, waits until the cluster is whole, and looks at everything.
func (w *World) settle() {
	if w.err != nil {
		return
	}
	end := w.now + 20_000
	w.run(func() bool { return w.now > w.now-1 && w.whole() || w.now > end })
	for _, p := range w.clients {
		p.stop = true
	}
	quiet := w.now + 2_000
	w.run(func() bool { return w.now > quiet && w.whole() || w.now > end })
	if w.err != nil {
		return
	}
	if !w.whole() {
		w.fail("the cluster is not whole 20 s after the last fault: %+v", w.zk.states)
		return
	}
	for _, tp := range w.partitions() {
		var first map[int64]string
		for _, b := range w.brokers {
			got, err := b.replicas[tp].records(1 << 40)
			if err != nil {
				w.fail("%s on broker %d cannot be read: %v", tp, b.id, err)
				return
			}
			w.mustHave(fmt.Sprintf("at the end broker %d", b.id), tp, got)
			if first == nil {
				first = got
			}
			if !maps.Equal(first, got) {
				w.fail("%s: brokers 0 and %d differ at the end: %d and %d records", tp, b.id, len(first), len(got))
			}
		}
		w.once(tp, first)
	}
}

// once: each record is there once, and a producer's are in order.
func (w *World) once(tp store.TP, got map[int64]string) {
	last := map[int64]int32{}
	for _, offset := range slices.Sorted(maps.Keys(got)) {
		var id int64
		var seq int32
		if _, err := fmt.Sscanf(got[offset], "%d/%d", &id, &seq); err != nil {
			w.fail("%s offset %d is %q", tp, offset, got[offset])
			return
		}
		if before, ok := last[id]; ok && seq != before+1 {
			w.fail("%s offset %d: record %d of producer %d comes after its %d", tp, offset, seq, id, before)
			return
		}
		last[id] = seq
	}
}

// whole says whether all replicas are there, in sync, and equally long.
func (w *World) whole() bool {
	for _, tp := range w.partitions() {
		s := w.zk.states[tp]
		if s.Leader < 0 || len(s.ISR) < brokerCount {
			return false
		}
		end := int64(-1)
		for _, b := range w.brokers {
			h := b.replicas[tp]
			if !b.up || h == nil {
				return false
			}
			st, _ := h.State(-1)
			if st.LeaderEpoch != s.LeaderEpoch || end >= 0 && st.LogEnd != end {
				return false
			}
			end = st.LogEnd
		}
	}
	return true
}
