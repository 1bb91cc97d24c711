package commitlog

import (
	"errors"
	"fmt"
	"sync"

	"platter/engine/batch"
	"platter/engine/producer"
	"platter/engine/segment"
	"platter/io/disk"
)

const (
	// What one vectored write takes at most.
	chunkBatches = 64
	chunkBytes   = 4 << 20
	// writerRounds is how many chunks' worth of others' appends a caller writes before a goroutine
	// takes over, so that one connection does not work for all others for ever.
	writerRounds = 16
)

// queue is the appends that wait for the writer.
type queue struct {
	mu    sync.Mutex
	items []*Append
	head  int
	busy  bool // somebody is the writer
	group []*Append
}

// Enqueue validates a's batches on the caller's goroutine, before any lock, and queues it in call
// order. The caller that finds no writer at work becomes the writer: it writes what all others have queued,
// as few vectored writes as the bound allows, then returns. Failures come by Done too.
func (l *Log) Enqueue(a *Append) {
	a.result = Appended{BaseOffset: -1, LastOffset: -1, LogAppendTimeMs: -1, LogStartOffset: -1}
	if err := l.prepare(a); err != nil {
		a.result.Err = err
		l.finish(a)
		return
	}
	if err := l.o.Backlog.enter(a.bytes); err != nil {
		a.result.Err = err
		l.finish(a)
		return
	}
	a.held = a.bytes
	q := &l.queue
	q.mu.Lock()
	q.items = append(q.items, a)
	if q.busy {
		q.mu.Unlock()
		return
	}
	q.busy = true
	q.mu.Unlock()
	l.drain()
}

func (l *Log) finish(a *Append) {
	l.o.Backlog.leave(a.held)
	a.held = 0
	if a.result.LogStartOffset < 0 {
		a.result.LogStartOffset = l.Ends().Start
	}
	a.Done(a.result)
}

// drain is the writer: it writes the queue, group by group.
func (l *Log) drain() {
	for range writerRounds {
		group := l.queue.take()
		if group == nil {
			return
		}
		l.commit(group)
		for i, a := range group {
			l.finish(a)
			group[i] = nil
		}
	}
	go l.drain()
}

// take removes the next group from the queue; nil: the queue is empty and nobody is the writer any more.
func (q *queue) take() []*Append {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.items) {
		q.items, q.head, q.busy = q.items[:0], 0, false
		return nil
	}
	q.group = q.group[:0]
	batches, bytes := 0, int64(0)
	for ; q.head < len(q.items); q.head++ {
		a := q.items[q.head]
		batches, bytes = batches+len(a.Batches), bytes+a.bytes
		if len(q.group) > 0 && (batches > chunkBatches || bytes > chunkBytes) {
			break
		}
		q.group = append(q.group, a)
		q.items[q.head] = nil
	}
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return q.group
}

// commit writes a group, and syncs it when flush.messages says so. The outcomes stand in the appends.
func (l *Log) commit(group []*Append) {
	l.mu.Lock()
	err := l.ready()
	for _, a := range group {
		if err != nil {
			a.result.Err = err
			continue
		}
		l.write(a)
	}
	l.flushChunk()
	sync := err == nil && l.unsynced >= l.Config().FlushMessages
	l.mu.Unlock()
	if !sync || l.o.planted == plantedEarlyAck {
		return
	}
	if err := l.Sync(); err != nil {
		for _, a := range group {
			if a.result.Err == nil {
				a.result.Err = err
			}
		}
	}
}

// prepare is what can be checked and changed before the append's turn has come.
func (l *Log) prepare(a *Append) error {
	if len(a.Batches) == 0 {
		return ErrEmpty
	}
	if err := l.status(); err != nil {
		return err
	}
	c := l.cfg.Load()
	limits := batch.Limits{
		BatchBytesMax: c.MaxMessageBytes, DecompressedBytesMax: c.DecompressedBytesMax, KeyRequired: c.Compacted,
		BeforeMaxMs: c.TimestampBeforeMaxMs, AfterMaxMs: c.TimestampAfterMaxMs, NowMs: l.o.Clock.NowMs(),
		CheckTimestamps: !c.LogAppendTime, HeaderOnly: c.ValidateHeaderOnly,
	}
	a.bytes = 0
	for i := range a.Batches {
		var err error
		if a.Origin == Follower {
			err = checkReplicated(a.Batches, i)
		} else {
			err = prepareClient(&a.Batches[i], c, limits)
		}
		if err != nil {
			return err
		}
		a.bytes += int64(len(a.Batches[i]))
	}
	if a.Origin == Client && a.bytes > c.SegmentBytes {
		return fmt.Errorf("%w: %d bytes, a segment has %d", ErrRecordListTooLarge, a.bytes, c.SegmentBytes)
	}
	return nil
}

func checkReplicated(bs []batch.Batch, i int) error {
	b := bs[i]
	if err := batch.CheckCRC(b); err != nil {
		return err
	}
	if b.LastOffsetDelta() < 0 || i > 0 && b.BaseOffset() <= bs[i-1].LastOffset() {
		return fmt.Errorf("%w: batch %d at offset %d", ErrUnexpectedOffset, i, b.BaseOffset())
	}
	return nil
}

func prepareClient(b *batch.Batch, c *Config, limits batch.Limits) error {
	info, err := batch.Check(*b, limits)
	if err != nil {
		return err
	}
	switch {
	case b.Control():
		return fmt.Errorf("%w: clients must not write control records", batch.ErrInvalid)
	case b.Transactional():
		return ErrTransactional
	}
	b.SetMaxTimestamp(info.MaxTimestampMs)
	if c.Compression.Producer || b.Codec() == c.Compression.Codec {
		return nil
	}
	nb, err := batch.Recompress(*b, c.Compression.Codec, c.Compression.Level, c.DecompressedBytesMax)
	if err != nil {
		return err
	}
	if c.MaxMessageBytes > 0 && len(nb) > c.MaxMessageBytes {
		return fmt.Errorf("%w: %d bytes as %v, allowed are %d", batch.ErrTooLarge, len(nb), c.Compression.Codec, c.MaxMessageBytes)
	}
	*b = nb
	return nil
}

// chunk is what the next vectored write takes: batches with their offsets set, of one segment.
type chunk struct {
	batches []batch.Batch
	bufs    [][]byte
	members []*Append // whose outcome hangs on it
	bytes   int64
	next    int64 // offset behind the last batch
	mark    int   // producers as they were before it
	records int64
}

func (c *chunk) reset() {
	clear(c.batches)
	clear(c.bufs)
	clear(c.members)
	c.batches, c.bufs, c.members = c.batches[:0], c.bufs[:0], c.members[:0]
	c.bytes, c.records = 0, 0
}

// write puts an append into the chunk: a client's as one unit, a follower's batch by batch. mu is held.
func (l *Log) write(a *Append) {
	a.result.LogStartOffset = l.Ends().Start
	if a.Origin == Client {
		l.place(a, a.Batches)
		return
	}
	for i := range a.Batches {
		if l.place(a, a.Batches[i:i+1]); a.result.Err != nil {
			return
		}
	}
}

// place gives the batches their offsets, judges their sequences, and puts them into the chunk.
func (l *Log) place(a *Append, bs []batch.Batch) {
	bytes := int64(0)
	for _, b := range bs {
		bytes += int64(len(b))
	}
	appendTime := l.stamp(a, bs)
	if err := l.rollFor(a, bs, bytes); err != nil {
		a.result.Err = err
		return
	}
	c := &l.chunk
	if len(c.batches)+len(bs) > chunkBatches || c.bytes+bytes > chunkBytes {
		l.flushChunk()
	}
	if a.result.Err != nil { // what stood before these batches did not reach the log
		return
	}
	if len(c.members) == 0 {
		c.next, c.mark = l.Ends().Written, l.producers.Mark()
	}
	mark, next := l.producers.Mark(), c.next
	duplicate, err := l.assign(a, bs, &next)
	if err != nil {
		l.producers.Rollback(mark)
		a.result.Err = err
		return
	}
	c.members = append(c.members, a)
	if duplicate {
		l.producers.Rollback(mark)
		return
	}
	if a.result.BaseOffset < 0 {
		a.result.BaseOffset = bs[0].BaseOffset()
	}
	a.result.LastOffset, a.result.LogAppendTimeMs = next-1, appendTime
	c.batches = append(c.batches, bs...)
	c.bytes += bytes
	c.records += next - c.next
	c.next = next
}

// stamp sets LogAppendTime where the topic wants it.
func (l *Log) stamp(a *Append, bs []batch.Batch) int64 {
	if a.Origin != Client || !l.Config().LogAppendTime {
		return -1
	}
	now := l.o.Clock.NowMs()
	for _, b := range bs {
		b.SetLogAppendTime(now)
	}
	return now
}

// assign sets offsets and leader epochs from *next on, which it moves, and judges the producers.
func (l *Log) assign(a *Append, bs []batch.Batch, next *int64) (duplicate bool, err error) {
	now := l.o.Clock.NowMs()
	for i, b := range bs {
		if a.Origin == Client {
			b.SetBaseOffset(*next)
			b.SetLeaderEpoch(a.LeaderEpoch)
			v := l.producers.Check(producerBatch(b, now))
			if v.Kind == producer.Duplicate && (i == 0 || duplicate) {
				if !duplicate {
					a.result.BaseOffset = v.BaseOffset
				}
				a.result.LastOffset, a.result.Duplicate, duplicate = v.LastOffset, true, true
				a.result.LogAppendTimeMs = -1
				if l.Config().LogAppendTime {
					a.result.LogAppendTimeMs = v.TimestampMs
				}
				continue
			}
			if err := verdictError(v, b); err != nil || duplicate {
				a.result.BaseOffset, a.result.LastOffset, a.result.Duplicate = -1, -1, false
				if err == nil {
					err = fmt.Errorf("%w: a new batch behind a duplicate one", ErrOutOfOrderSequence)
				}
				return false, err
			}
		} else if b.BaseOffset() < *next {
			return false, fmt.Errorf("%w: %d, the end is %d", ErrUnexpectedOffset, b.BaseOffset(), *next)
		}
		// An older epoch than the newest that is known corrects the history: this broker began a term here, wrote nothing in
		// it, and the next leader has records of an earlier one.
		if latest, _ := l.epochs.Latest(); b.LeaderEpoch() != latest {
			l.epochs.AssignQuiet(b.LeaderEpoch(), b.BaseOffset())
		}
		if err := l.epochs.Write(); err != nil {
			return false, l.fail(err)
		}
		l.producers.Apply(producerBatch(b, now))
		*next = b.LastOffset() + 1
	}
	return duplicate, nil
}

func producerBatch(b batch.Batch, nowMs int64) producer.Batch {
	return producer.Batch{
		ProducerID: b.ProducerID(), Epoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence(), LastSequence: b.LastSequence(),
		BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), TimestampMs: b.MaxTimestamp(), AppendedMs: nowMs,
	}
}

func verdictError(v producer.Verdict, b batch.Batch) error {
	switch v.Kind {
	case producer.Fenced:
		return fmt.Errorf("%w: producer %d writes with epoch %d, known is %d", ErrInvalidProducerEpoch, b.ProducerID(), b.ProducerEpoch(), v.LastEpoch)
	case producer.OutOfOrder, producer.Duplicate:
		return fmt.Errorf("%w: producer %d epoch %d sends %d, the last was %d of epoch %d",
			ErrOutOfOrderSequence, b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(), v.LastSequence, v.LastEpoch)
	}
	return nil
}

// flushChunk writes the chunk; when that fails, all its members fail and the log is as before. mu is held.
func (l *Log) flushChunk() {
	c := &l.chunk
	defer c.reset()
	if len(c.batches) == 0 {
		return
	}
	for len(c.bufs) < len(c.batches) {
		c.bufs = append(c.bufs, nil)
	}
	active, cfg := l.view.Load().active(), l.cfg.Load()
	err := l.status()
	if err == nil {
		err = active.Append(c.batches, c.bufs, cfg.IndexIntervalBytes)
	}
	if err != nil {
		l.producers.Rollback(c.mark)
		l.unassign()
		err = l.fail(err)
		for _, a := range c.members {
			if a.result.Err == nil {
				a.result = Appended{BaseOffset: -1, LastOffset: -1, LogAppendTimeMs: -1, LogStartOffset: a.result.LogStartOffset, Err: err}
			}
		}
		return
	}
	l.o.Depths.note(len(c.batches))
	l.setEnds(func(e *Ends) { e.Written = c.next })
	l.producers.Commit()
	l.unsynced += c.records
	l.dirty = true
	l.snapshots.grown += c.bytes
	if err := active.FlushIndexes(false); err != nil {
		_ = l.fail(err) // the records are in the log: the append itself succeeded
	}
	l.maybeSnapshot()
}

// unassign drops leader epochs of batches that did not reach the log.
func (l *Log) unassign() {
	end := l.Ends().Written
	if _, start := l.epochs.Latest(); start > end {
		if err := l.epochs.TruncateFromEnd(end + 1); err != nil {
			_ = l.fail(err)
		}
	}
}

func isFull(err error) bool {
	return (errors.Is(err, disk.ErrFull) || errors.Is(err, disk.ErrShortWrite)) && !errors.Is(err, segment.ErrUnsafe)
}
