package group

import (
	"errors"
	"fmt"
	"time"

	"platter/coord/group/core"
	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/io/disk"
	"platter/replication/replica"
)

// rec is one record to be stored; a nil value is a tombstone.
type rec struct{ key, value []byte }

// item is the records of one decision; they stand together in one batch. done is called once, under the
// shard's mu, in the order of the log.
type item struct {
	records []rec
	done    func(err error)
}

// batchBytesAim is where a batch that gathers the records of many stops to grow.
const batchBytesAim = 256 << 10

// recordOverhead is more than a record takes beside key and value.
const recordOverhead = 32

func (it *item) sizeBytes() int {
	n := 0
	for _, r := range it.records {
		n += len(r.key) + len(r.value) + recordOverhead
	}
	return n
}

// write is one append under way.
type write struct {
	items    []*item
	finished bool
	err      error
	stop     func() bool // ends the watch over the wait for its replicas; nil: there is none
}

// push queues an item; flush appends it. Called under mu.
func (s *shard) push(e *entry, it *item) {
	done := it.done
	e.busy++
	it.done = func(err error) {
		e.busy--
		done(err)
	}
	if s.stopped {
		it.done(ErrNotCoordinator)
		return
	}
	s.queue = append(s.queue, it)
}

// flush appends what is queued, unless somebody does already: whoever does takes what all others queue
// meanwhile.
func (s *shard) flush() {
	for {
		s.mu.Lock()
		if s.writing || len(s.queue) == 0 {
			s.mu.Unlock()
			return
		}
		s.writing = true
		w := s.takeQueue()
		s.mu.Unlock()
		if !s.append(w) {
			go s.appendLater(w)
			return
		}
		s.wrote()
	}
}

func (s *shard) wrote() {
	s.mu.Lock()
	s.writing = false
	s.mu.Unlock()
}

// nextTermLook is how often it is looked whether a leader has its next epoch, besides when it says so.
const nextTermLook = 100 * time.Millisecond

// appendLater appends what came while the leader was being given its next epoch, and then what has been queued since.
// It has a goroutine of its own: who called append may be who the partition waits for.
func (s *shard) appendLater(w *write) {
	late := s.c.cfg.Clock.After(s.c.cfg.CommitTimeout)
	moved := replica.NewWaiter()
	if r, err := s.c.replicaOf(s.partition); err == nil {
		r.Watch(moved)
		defer r.Unwatch(moved)
	}
	for !s.append(w) {
		select {
		case <-moved.C:
		case <-s.c.cfg.Clock.After(nextTermLook):
		case <-late:
			s.appended(w, replica.ErrTimeout)
			s.wrote()
			s.flush()
			return
		}
	}
	s.wrote()
	s.flush()
}

// takeQueue takes what fits one batch. Called under mu.
func (s *shard) takeQueue() *write {
	n, size := 0, 0
	for n < len(s.queue) {
		size += s.queue[n].sizeBytes()
		if n > 0 && size > batchBytesAim {
			break
		}
		n++
	}
	w := &write{items: s.queue[:n:n]}
	if s.queue = s.queue[n:]; len(s.queue) == 0 {
		s.queue = nil
	}
	s.flying = append(s.flying, w)
	return w
}

// append hands a write to the partition; false: it is to be tried again, once the leader has its next epoch or has
// lost the leadership.
func (s *shard) append(w *write) bool {
	cfg := &s.c.cfg
	bl := batch.NewBuilder()
	bl.Codec = cfg.Codec
	now := s.now()
	for _, it := range w.items {
		for _, r := range it.records {
			bl.Add(now, r.key, r.value)
		}
	}
	if bl.Count() == 0 {
		s.appended(w, nil)
		return true
	}
	b, err := bl.Build()
	if err != nil {
		s.appended(w, err)
		return true
	}
	r, err := s.c.replicaOf(s.partition)
	if err != nil {
		s.appended(w, err)
		return true
	}
	again := false
	cancel := r.Append(&replica.Append{
		Batches: []batch.Batch{b}, Acks: cfg.CommitAcks, Unbroken: true, LedSince: s.led.since,
		Done: func(a commitlog.Appended) {
			if errors.Is(a.Err, replica.ErrNextTerm) {
				again = true
				return
			}
			s.appended(w, a.Err)
		},
	})
	if cancel == nil {
		return !again
	}
	s.mu.Lock()
	if !w.finished {
		w.stop = cfg.Clock.AfterFunc(cfg.CommitTimeout, cancel)
	}
	s.mu.Unlock()
	return true
}

// appended takes a write's outcome. Outcomes are acted on in the order of the log.
func (s *shard) appended(w *write, err error) {
	s.mu.Lock()
	w.finished, w.err = true, err
	if w.stop != nil {
		w.stop()
	}
	for len(s.flying) > 0 && s.flying[0].finished {
		first := s.flying[0]
		s.flying[0] = nil
		s.flying = s.flying[1:]
		for _, it := range first.items {
			if s.stopped && first.err == nil {
				// It is in the log, but whether it counts is for the next coordinator to say.
				it.done(ErrNotCoordinator)
				continue
			}
			it.done(first.err)
		}
	}
	s.alarm()
	s.mu.Unlock()
	s.flush()
}

// commitError is what a client is told when its commit could not be stored.
func commitError(err error) error {
	switch {
	case errors.Is(err, batch.ErrTooLarge), errors.Is(err, commitlog.ErrRecordListTooLarge):
		return fmt.Errorf("%w: %w", ErrCommitTooLarge, err)
	}
	return storageError(err)
}

// stateError is what members are told when their group's state could not be stored.
func stateError(err error) error {
	switch {
	case errors.Is(err, batch.ErrTooLarge), errors.Is(err, commitlog.ErrRecordListTooLarge):
		return fmt.Errorf("%w: %w", ErrStateTooLarge, err)
	case errors.Is(err, replica.ErrTimeout):
		return fmt.Errorf("%w: %w", core.ErrRebalanceInProgress, err)
	}
	return storageError(err)
}

// storageError translates the partition's errors to those of a coordinator, as Kafka does. A full disk is
// no reason to look for another coordinator.
func storageError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, replica.ErrUnknownPartition), errors.Is(err, replica.ErrNotEnoughReplicas),
		errors.Is(err, replica.ErrNotEnoughReplicasAfterAppend), errors.Is(err, disk.ErrFull):
		return fmt.Errorf("%w: %w", ErrNotAvailable, err)
	case errors.Is(err, replica.ErrNotLeader), errors.Is(err, commitlog.ErrOffline), errors.Is(err, commitlog.ErrClosed):
		return fmt.Errorf("%w: %w", ErrNotCoordinator, err)
	}
	return err
}
