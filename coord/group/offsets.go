package group

import (
	"fmt"
	"math"

	"platter/coord/group/core"
	"platter/coord/group/record"
	"platter/engine/store"
)

// Committed is one partition's offset in a request or an answer. CommitMs is set here. Err is for this
// partition alone; in a request it is skipped when it has one already.
type Committed struct {
	TP store.TP
	core.Offset
	Err error
}

// NoOffset is what is told of a partition without a committed offset.
var NoOffset = core.Offset{Offset: -1, LeaderEpoch: -1}

// CommitRequest is one OffsetCommit. MemberID "" and Generation -1: consumers that assign their partitions
// themselves.
type CommitRequest struct {
	Group      string
	MemberID   string
	InstanceID *string
	Generation int32
	// RetentionMs is how long the offsets are to be kept; -1: as the broker is set.
	RetentionMs int64
	Offsets     []Committed // their Err is set when they were not stored
}

// commitRecordsMax bounds the offsets of one request; as many do not fit a batch of any usual size.
const commitRecordsMax = 1 << 20

// Commit stores offsets, and returns when they are committed. An error is for all of them.
func (c *Coordinator) Commit(r *CommitRequest) error {
	s, err := c.find(r.Group)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	err = s.do(func(now int64) { s.commit(r, now, done) })
	if err != nil {
		return err
	}
	return commitError(<-done)
}

// commit checks and queues. Called under mu.
func (s *shard) commit(r *CommitRequest, now int64, done chan error) {
	e := s.groups[r.Group]
	if e == nil {
		if r.Generation >= 0 { // of a group that has been forgotten
			done <- core.ErrIllegalGeneration
			return
		}
		e = s.group(r.Group, now)
	}
	if err := e.CheckCommit(now, r.MemberID, r.InstanceID, r.Generation); err != nil {
		done <- err
		s.settle(e)
		return
	}
	it := &item{}
	for i := range r.Offsets {
		s.prepare(e, r, &r.Offsets[i], now, it)
		if len(it.records) > commitRecordsMax {
			done <- fmt.Errorf("%w: more than %d offsets", ErrCommitTooLarge, commitRecordsMax)
			s.settle(e)
			return
		}
	}
	it.done = func(err error) {
		if err == nil {
			for i := range r.Offsets {
				if o := &r.Offsets[i]; o.Err == nil {
					e.Commit(o.TP, o.Offset)
				}
			}
		}
		s.settle(e)
		done <- err
	}
	s.push(e, it)
}

// prepare makes a record of one offset, or says why not.
func (s *shard) prepare(e *entry, r *CommitRequest, o *Committed, now int64, it *item) {
	max := min(s.c.cfg.MetadataBytesMax, math.MaxInt16)
	_, known := e.Offset(o.TP)
	switch {
	case o.Err != nil:
		return
	case len(o.Metadata) > max:
		o.Err = fmt.Errorf("%w: %d bytes, at most %d", ErrMetadataTooLarge, len(o.Metadata), max)
		return
	case !known && s.c.full():
		s.c.warn("groups take all the memory that they may; an offset is refused", "group", r.Group, "bytes", s.c.bytes.Load())
		o.Err = fmt.Errorf("%w: groups take all the memory that they may", ErrNotAvailable)
		return
	}
	o.TP.Topic = s.c.names.of(o.TP.Topic)
	o.CommitMs, o.ExpireMs = now, -1
	if r.RetentionMs >= 0 {
		o.ExpireMs = now + r.RetentionMs
	}
	it.records = append(it.records, rec{
		record.Key{Kind: record.Offset, Group: r.Group, TP: o.TP}.Append(nil), record.AppendOffset(nil, o.Offset),
	})
}

// Fetch gives a group's committed offsets: those of tps, in their order, where Offset -1 means none, or all
// of them, in no order, when tps is nil.
func (c *Coordinator) Fetch(group string, tps []store.TP) ([]Committed, error) {
	s, err := c.find(group)
	if err != nil {
		return nil, err
	}
	var out []Committed
	err = s.do(func(int64) {
		e := s.groups[group]
		for _, tp := range tps {
			o := NoOffset
			if e != nil {
				if known, ok := e.Offset(tp); ok {
					o = known
				}
			}
			out = append(out, Committed{TP: tp, Offset: o})
		}
		if tps == nil && e != nil {
			for tp, o := range e.Offsets() {
				out = append(out, Committed{TP: tp, Offset: o})
			}
		}
	})
	return out, err
}

// DeleteOffsets deletes committed offsets, and returns when that is committed: an error for each partition,
// or one for all. A partition without an offset is no error.
func (c *Coordinator) DeleteOffsets(group string, tps []store.TP) ([]error, error) {
	if group == "" {
		return nil, ErrInvalidGroup
	}
	s, err := c.find(group)
	if err != nil {
		return nil, err
	}
	each := make([]error, len(tps))
	done := make(chan error, 1)
	err = s.do(func(int64) {
		e := s.groups[group]
		if e == nil {
			done <- core.ErrNoGroup
			return
		}
		var gone []store.TP
		for i, tp := range tps {
			err := e.CheckDeleteOffset(tp.Topic)
			if err == core.ErrSubscribed {
				each[i] = err
				continue
			}
			if err != nil {
				done <- err
				return
			}
			if _, ok := e.Offset(tp); ok {
				gone = append(gone, tp)
			}
		}
		if len(gone) == 0 {
			done <- nil
			return
		}
		s.forget(e, gone, func(err error) { done <- err })
	})
	if err != nil {
		return nil, err
	}
	return each, commitError(<-done)
}
