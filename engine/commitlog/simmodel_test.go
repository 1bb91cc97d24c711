package commitlog

import (
	"bytes"
	"errors"
	"fmt"

	"platter/engine/batch"
)

// simBatch is one batch as it was handed to the log, with the offsets that it got.
type simBatch struct {
	base, last int64
	bytes      []byte
	times      []int64 // of its records
	producer   int64
	epoch      int16
	sequence   int32
	leader     int32
}

// simModel is the dumb twin of a log: every batch since the beginning of its history.
type simModel struct {
	hist  []simBatch
	start int64
	end   int64
	// promised: the log said that everything below is durable. startLow: the log start that its owner has
	// on disk, below which a crash may not throw it back.
	promised, startLow int64
	gathered           int64 // records acknowledged since the durable end was the log end

	// What was going on when the crash came.
	maybe    []simBatch // an append: any prefix of it may be there
	lowEnd   int64      // a truncation: the end may be anywhere from here, -1: none
	newStart int64      // a trim or retention: the start may be up to here, -1: none
	emptied  int64      // a full truncation to this offset, -1: none
}

func newSimModel() *simModel { return &simModel{lowEnd: -1, newStart: -1, emptied: -1} }

func (m *simModel) add(bs ...simBatch) {
	m.hist = append(m.hist, bs...)
	m.end = bs[len(bs)-1].last + 1
}

// cut drops what ends at or above offset.
func (m *simModel) cut(offset int64) {
	for len(m.hist) > 0 && m.hist[len(m.hist)-1].last >= offset {
		m.hist = m.hist[:len(m.hist)-1]
	}
}

// below is where the log ends when it is cut at offset.
func (m *simModel) below(offset int64) int64 {
	end := int64(-1)
	for _, b := range m.hist {
		if b.last < offset {
			end = b.last + 1
		}
	}
	return end
}

// adopt checks that a log which was recovered is one that may be there, and takes it over.
func (m *simModel) adopt(l *Log, powerCut bool, checkpointed int64) error {
	e := l.Ends()
	got, err := simReadAll(l)
	if err != nil {
		return err
	}
	possible := append(append([]simBatch(nil), m.hist...), m.maybe...)
	if m.emptied >= 0 && len(got) == 0 && (e.Written == m.emptied || e.Written == checkpointed) {
		m.hist, m.start, m.end = nil, e.Start, e.Written
		m.settle(e)
		return nil
	}
	required := m.end
	if powerCut {
		required = m.promised
	}
	if m.lowEnd >= 0 {
		required = min(required, m.lowEnd)
	}
	if m.emptied >= 0 {
		required = 0
	}
	startHigh := max(m.start, m.newStart)
	if e.Written < required {
		return fmt.Errorf("the log ends at %d, but everything below %d was promised", e.Written, required)
	}
	if e.Start < m.startLow || e.Start > startHigh {
		return fmt.Errorf("the log starts at %d, it may be %d to %d", e.Start, m.startLow, startHigh)
	}
	var keep []simBatch
	end := e.Start
	for _, b := range possible {
		if b.last < e.Written {
			keep = append(keep, b)
			end = max(end, b.last+1)
		}
	}
	if end != e.Written {
		return fmt.Errorf("the log ends at %d, which is between batches: the last below ends at %d", e.Written, end)
	}
	i := 0
	for i < len(keep) && keep[i].last < e.Start {
		i++
	}
	if err := simSame(got, keep[i:]); err != nil {
		return err
	}
	m.hist, m.start, m.end = keep, e.Start, e.Written
	m.settle(e)
	return nil
}

func (m *simModel) settle(e Ends) {
	m.maybe, m.lowEnd, m.newStart, m.emptied = nil, -1, -1, -1
	m.promised = min(m.promised, m.end)
	m.gathered = e.Written - e.Durable
	m.startLow = min(m.startLow, m.start)
}

// matches checks the log against the model while nothing is in doubt.
func (m *simModel) matches(l *Log) error {
	got, err := simReadAll(l)
	if err != nil {
		return err
	}
	return simSame(got, m.visible())
}

func (m *simModel) visible() []simBatch {
	i := 0
	for i < len(m.hist) && m.hist[i].last < m.start {
		i++
	}
	return m.hist[i:]
}

func simSame(got []batch.Batch, want []simBatch) error {
	for i, b := range got {
		if i >= len(want) {
			return fmt.Errorf("batch at %d was never written, or is gone", b.BaseOffset())
		}
		if !bytes.Equal(b, want[i].bytes) {
			return fmt.Errorf("batch at %d is not the one written at %d", b.BaseOffset(), want[i].base)
		}
	}
	if len(got) < len(want) {
		return fmt.Errorf("batch at %d is missing, of %d", want[len(got)].base, len(want))
	}
	return nil
}

func simReadAll(l *Log) ([]batch.Batch, error) {
	var out []batch.Batch
	e := l.Ends()
	for at := e.Start; at < e.Written; {
		rd, err := l.Read(at, 3000, e.Written, true)
		if err != nil {
			return nil, fmt.Errorf("read at %d: %w", at, err)
		}
		var p []byte
		for _, rg := range rd.Ranges {
			part := make([]byte, rg.Len)
			if n, err := rg.File.ReadAt(part, rg.Pos); int64(n) != rg.Len {
				return nil, err
			}
			p = append(p, part...)
		}
		next := rd.NextOffset
		rd.Release()
		bs, err := batch.Split(nil, p)
		if err != nil {
			return nil, err
		}
		for _, b := range bs {
			if err := batch.CheckCRC(b); err != nil {
				return nil, err
			}
		}
		if next <= at {
			return nil, fmt.Errorf("read at %d, below the end %d, gives nothing", at, e.Written)
		}
		out, at = append(out, bs...), next
	}
	return out, nil
}

// lookups compares the look-ups with a walk over all records.
func (m *simModel) lookups(l *Log, ts int64) error {
	type rec struct{ offset, ts int64 }
	var first, newest *rec
	for _, b := range m.visible() {
		for i, t := range b.times {
			r := rec{b.base + int64(i), t}
			if r.offset < m.start {
				continue
			}
			if first == nil && t >= ts {
				first = &r
			}
			if newest == nil || t > newest.ts {
				newest = &r
			}
		}
	}
	match, ok, err := l.OffsetForTime(ts)
	if err != nil || ok != (first != nil) || ok && (match.Offset != first.offset || match.TimestampMs != first.ts) {
		return fmt.Errorf("look-up of time %d gives %+v, %v, %v; want %+v", ts, match, ok, err, first)
	}
	match, ok, err = l.MaxTimestamp()
	if err != nil || ok != (newest != nil) || ok && (match.Offset != newest.offset || match.TimestampMs != newest.ts) {
		return fmt.Errorf("max timestamp gives %+v, %v, %v; want %+v", match, ok, err, newest)
	}
	for _, offset := range []int64{m.start - 1, m.end + 1} {
		if _, err := l.Read(offset, 100, m.end, true); !errors.Is(err, ErrOffsetOutOfRange) {
			return fmt.Errorf("read at %d outside of the log: %v", offset, err)
		}
	}
	return nil
}

// producersOf is the last batches of each producer, the newest last, within its newest epoch.
func (m *simModel) producersOf() map[int64][]simBatch {
	out := map[int64][]simBatch{}
	for _, b := range m.hist {
		if b.producer < 0 {
			continue
		}
		w := out[b.producer]
		if len(w) > 0 && w[0].epoch != b.epoch {
			w = nil
		}
		if w = append(w, b); len(w) > 5 {
			w = w[1:]
		}
		out[b.producer] = w
	}
	return out
}
