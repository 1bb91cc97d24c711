package commitlog

import (
	"bytes"
	"errors"
	"fmt"

	"platter/engine/batch"
)

// batch makes a batch for the model and for the log.
func (s *sim) batch(change func(*batch.Builder)) batch.Batch {
	bl := batch.NewBuilder()
	if s.rng.IntN(3) == 0 {
		bl.Codec = batch.Codec(s.rng.IntN(5))
	}
	if change != nil {
		change(bl)
	}
	for range 1 + s.rng.IntN(4) {
		value := make([]byte, s.rng.IntN(100))
		for i := range value {
			value[i] = byte(s.rng.Uint32())
		}
		bl.Add(s.clock.ms-s.rng.Int64N(200), []byte("k"), value)
	}
	b, err := bl.Build()
	if err != nil {
		panic(err)
	}
	return b
}

// idempotent sets a producer's next sequence.
func (s *sim) idempotent(bl *batch.Builder) {
	id := int64(s.rng.IntN(3))
	p := s.sequences[id]
	if p == nil {
		p = &simProducer{}
		s.sequences[id] = p
	}
	if s.rng.IntN(20) == 0 {
		p.epoch++
		p.next = 0
	}
	bl.ProducerID, bl.ProducerEpoch, bl.BaseSequence = id, p.epoch, p.next
}

func simBatchOf(b batch.Batch) simBatch {
	sb := simBatch{
		base: b.BaseOffset(), last: b.LastOffset(), bytes: bytes.Clone(b), producer: b.ProducerID(),
		epoch: b.ProducerEpoch(), sequence: b.BaseSequence(), leader: b.LeaderEpoch(),
	}
	_ = batch.Walk(b, 1<<20, func(r *batch.Record) error {
		sb.times = append(sb.times, b.TimestampOf(r))
		return nil
	})
	return sb
}

// enqueue hands appends to the log as one group, and takes the outcomes into the model.
func (s *sim) enqueue(as []*Append) []Appended {
	results := make([]Appended, len(as))
	for i, a := range as {
		a.LeaderEpoch = s.leaderEpoch
		a.Done = func(r Appended) {
			results[i] = r
			e := s.log.Ends()
			if r.Err == nil && !r.Duplicate {
				s.m.gathered += r.LastOffset - r.BaseOffset + 1
			}
			s.m.gathered = min(s.m.gathered, e.Written-e.Durable)
			if r.Err == nil && s.m.gathered >= s.cfg.FlushMessages && !s.fs.Crashed() {
				s.broken = fmt.Errorf("acknowledged up to %d with %d records not synced, flush.messages is %d: %+v",
					r.LastOffset, s.m.gathered, s.cfg.FlushMessages, e)
			}
		}
	}
	s.log.queue.mu.Lock()
	s.log.queue.busy = len(as) > 1
	s.log.queue.mu.Unlock()
	for _, a := range as {
		s.log.Enqueue(a)
	}
	if len(as) > 1 {
		s.log.drain()
	}
	crashed := s.fs.Crashed()
	for i, a := range as {
		r := results[i]
		s.logf("  %d batches: %+v", len(a.Batches), r)
		if r.Err == nil && r.Duplicate {
			continue
		}
		for _, b := range a.Batches {
			sb := simBatchOf(b)
			switch {
			case r.Err == nil:
				s.m.add(sb)
				s.advanceProducer(sb)
			case crashed && len(s.m.maybe) == 0 || crashed && s.m.maybe[len(s.m.maybe)-1].last < sb.base:
				if sb.base >= s.m.end {
					s.m.maybe = append(s.m.maybe, sb)
				}
			}
		}
	}
	return results
}

func (s *sim) advanceProducer(b simBatch) {
	if p := s.sequences[b.producer]; p != nil && p.epoch == b.epoch {
		p.next, p.lost = b.sequence+int32(b.last-b.base)+1, false
	}
}

// stepRetry sends the last batch of a producer again, or one out of order.
func (s *sim) stepRetry() error {
	for id := range int64(3) {
		w := s.m.producersOf()[id]
		p := s.sequences[id]
		if len(w) == 0 || p == nil || p.epoch != w[0].epoch || w[len(w)-1].base < s.log.view.Load().segs[0].Base {
			continue // the last: only a snapshot can know it, and may be lost
		}
		return s.retry(w[len(w)-1])
	}
	return nil
}

func (s *sim) retry(want simBatch) error {
	r := s.enqueue([]*Append{{Batches: []batch.Batch{s.again(want)}}})[0]
	if s.fs.Crashed() {
		return errSimCrash
	}
	if r.Err != nil || !r.Duplicate || r.BaseOffset != want.base || r.LastOffset != want.last {
		return fmt.Errorf("a retry of producer %d's batch at %d gives %+v", want.producer, want.base, r)
	}
	return nil
}

// again makes the batch that a client would send again.
func (s *sim) again(b simBatch) batch.Batch {
	bl := batch.NewBuilder()
	bl.ProducerID, bl.ProducerEpoch, bl.BaseSequence = b.producer, b.epoch, b.sequence
	for range b.last - b.base + 1 {
		bl.Add(s.clock.ms, []byte("k"), nil)
	}
	out, err := bl.Build()
	if err != nil {
		panic(err)
	}
	return out
}

// checkProducers sends again what is in each producer's window after a recovery, and something out of order.
func (s *sim) checkProducers(clean, forgetful bool) error {
	windows := s.m.producersOf()
	for id := range s.sequences {
		if len(windows[id]) == 0 {
			delete(s.sequences, id)
		}
	}
	for _, p := range s.log.Producers() { // from before a log that was emptied: the client goes on from there
		if len(windows[p.ProducerID]) == 0 {
			s.sequences[p.ProducerID] = &simProducer{epoch: p.Epoch, next: p.LastSequence + 1, lost: true}
		}
	}
	for id, w := range windows {
		p, last := s.sequences[id], w[len(w)-1]
		trimmed := last.base < s.log.view.Load().segs[0].Base
		*p = simProducer{
			epoch: last.epoch, next: last.sequence + int32(last.last-last.base) + 1,
			lost: trimmed && (p.lost || forgetful),
		}
	}
	for id := range int64(3) {
		w, p := windows[id], s.sequences[id]
		if len(w) == 0 {
			continue
		}
		last := w[len(w)-1]
		if p.lost {
			continue
		}
		if clean {
			w = w[len(w)-1:] // a snapshot keeps one
		}
		if s.snapshotBytes < 8<<20 {
			w = w[len(w)-1:]
		}
		for i, b := range w {
			if b.base < s.log.view.Load().segs[0].Base && i < len(w)-1 {
				continue // a snapshot knows the last one
			}
			if err := s.retry(b); err != nil {
				return fmt.Errorf("after recovery: %w", err)
			}
		}
		gap := last
		gap.sequence = p.next + 1
		r := s.enqueue([]*Append{{Batches: []batch.Batch{s.again(gap)}}})[0]
		if s.fs.Crashed() {
			return errSimCrash
		}
		if !errors.Is(r.Err, ErrOutOfOrderSequence) {
			return fmt.Errorf("after recovery: a gap in producer %d's sequence gives %+v", id, r)
		}
	}
	return nil
}
