// Package producer is what one partition remembers of the producers that write to it, so that a retried
// batch is found and a lost one is noticed: for each producer id its epoch and a window of its
// last five batches (KIP-98, KIP-360).
//
// # Who calls what
//
// A State belongs to the partition's one appender and is not safe for concurrent use. The appender calls
// Check, then Apply, and writes; batches that were applied but did not reach the log are taken back with
// Rollback to the Mark that was taken before them. Commit forgets the marks.
//
//	m := s.Mark()
//	if v := s.Check(b); v.Kind == producer.Fresh { s.Apply(b) }
//	if write fails { s.Rollback(m) } else { s.Commit() }
//
// The snapshot files in the partition's directory are a hint that shortens recovery: a
// corrupt or missing one costs a longer replay of the log, never a wrong answer. See snapshot.go.
//
// Transactions are not here yet: a transactional batch counts as any other, a control batch moves the
// producer's epoch alone.
package producer

import "math"

// WindowBatches is how many batches of a producer are remembered: Kafka's number, and the most that an
// idempotent client keeps in flight (max.in.flight.requests.per.connection).
const WindowBatches = 5

// None is the producer id, epoch and base sequence of a batch without producer state.
const None = -1

// Batch is what producer state needs to know of a record batch.
type Batch struct {
	ProducerID   int64
	Epoch        int16
	BaseSequence int32 // None in a control batch
	LastSequence int32
	BaseOffset   int64 // only Apply looks at the offsets
	LastOffset   int64
	TimestampMs  int64 // the batch's max timestamp
	// AppendedMs is when the batch was appended, by the broker's clock: producers expire by it, as record
	// timestamps may be long past. Recovery gives the segment's modification time. 0: TimestampMs counts.
	AppendedMs int64
}

// Kind is the outcome of a Check.
type Kind int

const (
	// Fresh: the batch is next in its producer's sequence, or nothing is known of the producer.
	Fresh Kind = iota
	// Duplicate: the very batch is in the window already; the Verdict has where.
	Duplicate
	// OutOfOrder: the sequence has a gap, or went back further than the window reaches.
	OutOfOrder
	// Fenced: a newer epoch of this producer has written here.
	Fenced
)

func (k Kind) String() string {
	switch k {
	case Fresh:
		return "fresh"
	case Duplicate:
		return "duplicate"
	case OutOfOrder:
		return "out of order"
	case Fenced:
		return "fenced"
	}
	return "unknown"
}

// Verdict is the answer of Check. The offsets and the timestamp are those of the original of a Duplicate.
// LastEpoch and LastSequence tell what was known before (None when nothing was), for the error's text.
type Verdict struct {
	Kind         Kind
	BaseOffset   int64
	LastOffset   int64
	TimestampMs  int64
	LastEpoch    int16
	LastSequence int32
}

// slot is one remembered batch.
type slot struct {
	baseSequence int32
	lastSequence int32
	offsetDelta  int32 // last offset - base offset
	lastOffset   int64
	timestampMs  int64
}

// entry is one producer: a ring of slots, the newest at (next-1) mod WindowBatches.
type entry struct {
	slots  [WindowBatches]slot
	next   uint8
	count  uint8
	epoch  int16
	lastMs int64 // of the last append, for expiration
}

func (e *entry) newest() *slot {
	return &e.slots[(int(e.next)+WindowBatches-1)%WindowBatches]
}

func (e *entry) lastSequence() int32 {
	if e.count == 0 {
		return None
	}
	return e.newest().lastSequence
}

func (e *entry) push(s slot) {
	e.slots[e.next] = s
	e.next = (e.next + 1) % WindowBatches
	if e.count < WindowBatches {
		e.count++
	}
}

func (e *entry) find(base, last int32) *slot {
	for i := range e.slots[:e.count] {
		if s := &e.slots[i]; s.baseSequence == base && s.lastSequence == last {
			return s
		}
	}
	return nil
}

// undo is what Rollback puts back.
type undo struct {
	id     int64
	absent bool
	prev   entry
}

// State is the producers of one partition.
type State struct {
	entries map[int64]*entry
	undos   []undo
}

// New returns a state that knows no producer.
func New() *State { return &State{entries: make(map[int64]*entry)} }

// Count is the number of producers known.
func (s *State) Count() int { return len(s.entries) }

// Check judges a client's batch against what was applied so far. A batch without producer id is always
// Fresh. Rules: KIP-98 for sequences, KIP-360 for unknown producers, which may start anywhere.
func (s *State) Check(b Batch) Verdict {
	v := Verdict{BaseOffset: -1, LastOffset: -1, TimestampMs: -1, LastEpoch: None, LastSequence: None}
	if b.ProducerID < 0 {
		return v
	}
	e := s.entries[b.ProducerID]
	if e == nil {
		return v
	}
	v.LastEpoch, v.LastSequence = e.epoch, e.lastSequence()
	switch {
	case b.Epoch < e.epoch:
		v.Kind = Fenced
	case b.BaseSequence < 0: // control batches carry no sequence
	case b.Epoch > e.epoch:
		if b.BaseSequence != 0 {
			v.Kind = OutOfOrder
		}
	default:
		if d := e.find(b.BaseSequence, b.LastSequence); d != nil {
			v.Kind = Duplicate
			v.LastOffset, v.BaseOffset = d.lastOffset, d.lastOffset-int64(d.offsetDelta)
			v.TimestampMs = d.timestampMs
		} else if NextSequence(v.LastSequence) != b.BaseSequence {
			v.Kind = OutOfOrder
		}
	}
	return v
}

// Apply records a batch that is about to be written (or was found in the log). It judges nothing:
// followers and recovery take what the leader wrote. An older epoch than the known one is not recorded.
func (s *State) Apply(b Batch) {
	if b.ProducerID < 0 {
		return
	}
	e := s.entries[b.ProducerID]
	if e == nil {
		s.undos = append(s.undos, undo{id: b.ProducerID, absent: true})
		e = &entry{epoch: b.Epoch}
		s.entries[b.ProducerID] = e
	} else {
		if b.Epoch < e.epoch {
			return
		}
		s.undos = append(s.undos, undo{id: b.ProducerID, prev: *e})
	}
	if b.Epoch != e.epoch {
		*e = entry{epoch: b.Epoch}
	}
	e.lastMs = b.TimestampMs
	if b.AppendedMs != 0 {
		e.lastMs = b.AppendedMs
	}
	if b.BaseSequence < 0 {
		return
	}
	e.push(slot{
		baseSequence: b.BaseSequence, lastSequence: b.LastSequence,
		offsetDelta: int32(b.LastOffset - b.BaseOffset), lastOffset: b.LastOffset, timestampMs: b.TimestampMs,
	})
}

// Mark is a point that Rollback can return to, until Commit.
func (s *State) Mark() int { return len(s.undos) }

// Rollback takes back what was applied since the mark, the newest first. Marks taken before stay good.
func (s *State) Rollback(mark int) {
	for i := len(s.undos) - 1; i >= mark; i-- {
		u := &s.undos[i]
		if u.absent {
			delete(s.entries, u.id)
		} else {
			*s.entries[u.id] = u.prev
		}
	}
	s.undos = s.undos[:mark]
}

// Commit keeps all that was applied; earlier marks are void.
func (s *State) Commit() {
	const keep = 256 // entries; more came from recovery or a burst, and would be held for nothing
	if cap(s.undos) > keep {
		s.undos = nil
	}
	s.undos = s.undos[:0]
}

// Expire forgets producers that have not written for expirationMs (producer.id.expiration.ms) and returns
// how many. Only between Commit and the next Apply.
func (s *State) Expire(nowMs, expirationMs int64) int {
	n := 0
	for id, e := range s.entries {
		if expired(e.lastMs, nowMs, expirationMs) {
			delete(s.entries, id)
			n++
		}
	}
	return n
}

func expired(lastMs, nowMs, expirationMs int64) bool { return nowMs-lastMs >= expirationMs }

// Clear forgets everything, marks included.
func (s *State) Clear() {
	clear(s.entries)
	s.undos = nil
}

// NextSequence is the sequence after seq; 2^31-1 is followed by 0.
func NextSequence(seq int32) int32 {
	if seq == math.MaxInt32 {
		return 0
	}
	return seq + 1
}

// sequenceBefore is the sequence n records before seq.
func sequenceBefore(seq, n int32) int32 {
	if seq < n {
		return math.MaxInt32 - (n - seq) + 1
	}
	return seq - n
}

// Producer is one producer as DescribeProducers tells it.
type Producer struct {
	ProducerID      int64
	Epoch           int16
	LastSequence    int32 // None when it has written no records in this epoch
	LastTimestampMs int64
}

// Producers lists who is known, in no order.
func (s *State) Producers() []Producer {
	ps := make([]Producer, 0, len(s.entries))
	for id, e := range s.entries {
		ps = append(ps, Producer{id, e.epoch, e.lastSequence(), e.lastMs})
	}
	return ps
}
