package commitlog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"platter/engine/batch"
	"platter/engine/segment"
	"platter/io/disk"
	"platter/io/memdisk"
)

func TestRefusals(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxMessageBytes, c.SegmentBytes = 2000, 3000 })
	corrupt := records(2, 10, nil)
	corrupt[len(corrupt)-1] ^= 1
	for name, c := range map[string]struct {
		batches []batch.Batch
		want    error
	}{
		"no batch":      {nil, ErrEmpty},
		"bad CRC":       {[]batch.Batch{corrupt}, batch.ErrCRC},
		"too large":     {[]batch.Batch{records(1, 2000, nil)}, batch.ErrTooLarge},
		"over segment":  {[]batch.Batch{records(1, 1500, nil), records(1, 1500, nil)}, ErrRecordListTooLarge},
		"transactional": {[]batch.Batch{records(1, 1, func(b *batch.Builder) { b.Transactional, b.ProducerID, b.BaseSequence = true, 1, 0 })}, ErrTransactional},
		"second bad":    {[]batch.Batch{records(1, 1, nil), corrupt}, batch.ErrCRC},
	} {
		if a := r.append(c.batches...); !errors.Is(a.Err, c.want) || a.BaseOffset != -1 {
			t.Errorf("%s: %+v, want %v", name, a, c.want)
		}
	}
	if e := r.log.Ends(); e.Written != 0 || r.log.SizeBytes() != 0 {
		t.Fatalf("something was written: %+v", e)
	}
}

// inEpoch is a batch of two records as a follower gets it.
func inEpoch(base int64, epoch int32) batch.Batch {
	b := records(2, 10, nil)
	b.SetBaseOffset(base)
	b.SetLeaderEpoch(epoch)
	return b
}

func (r *rig) follow(bs ...batch.Batch) (out Appended) {
	r.log.Enqueue(&Append{Origin: Follower, Batches: bs, LeaderEpoch: 99, Done: func(a Appended) { out = a }})
	return out
}

// TestTermWithoutRecords: who began a term, wrote nothing in it, and follows one that has records of an earlier term then
// knows of which term they are.
func TestTermWithoutRecords(t *testing.T) {
	r := newRig(t, nil)
	if a := r.follow(inEpoch(0, 3)); a.Err != nil {
		t.Fatal(a.Err)
	}
	if err := r.log.AssignEpoch(5); err != nil {
		t.Fatal(err)
	}
	if a := r.follow(inEpoch(2, 4), inEpoch(4, 4)); a.Err != nil {
		t.Fatal(a.Err)
	}
	look := func(when string) {
		t.Helper()
		for offset, want := range map[int64]int32{1: 3, 2: 4, 5: 4} {
			if got := r.log.EpochAt(offset); got != want {
				t.Errorf("%s: offset %d is of epoch %d, want %d", when, offset, got, want)
			}
		}
		if e, end := r.log.EndOffsetForEpoch(4); e != 4 || end != 6 {
			t.Errorf("%s: epoch 4 is %d and ends at %d, want 6", when, e, end)
		}
	}
	look("appended")
	r.kill()
	look("after the death of the process")
	if a := r.follow(inEpoch(6, 6)); a.Err != nil || r.log.LatestEpoch() != 6 {
		t.Errorf("the next term: %+v, the newest epoch is %d", a, r.log.LatestEpoch())
	}
	look("in the next term")
}

func TestFollowerKeepsOffsetsAndEpochs(t *testing.T) {
	r := newRig(t, nil)
	at, follow := inEpoch, r.follow
	if a := follow(at(0, 3), at(2, 3), at(10, 5)); a.Err != nil || a.BaseOffset != 0 || a.LastOffset != 11 {
		t.Fatalf("%+v", a)
	}
	if a := follow(at(10, 5)); !errors.Is(a.Err, ErrUnexpectedOffset) {
		t.Fatalf("below the end: %+v", a)
	}
	if a := follow(at(12, 5), at(12, 5)); !errors.Is(a.Err, ErrUnexpectedOffset) {
		t.Fatalf("twice the same: %+v", a)
	}
	for epoch, want := range map[int32][2]int64{2: {2, 0}, 3: {3, 10}, 4: {3, 10}, 5: {5, 12}} {
		if e, end := r.log.EndOffsetForEpoch(epoch); int64(e) != want[0] || end != want[1] {
			t.Errorf("epoch %d ends %d at %d, want %v", epoch, e, end, want)
		}
	}
}

func TestIdempotence(t *testing.T) {
	r := newRig(t, nil)
	seq := func(epoch int16, seq int32) batch.Batch {
		return records(2, 10, func(b *batch.Builder) { b.ProducerID, b.ProducerEpoch, b.BaseSequence = 7, epoch, seq })
	}
	for i := range int32(8) {
		r.mustAppend(seq(0, 2*i))
	}
	for i := int32(3); i < 8; i++ { // the window
		if a := r.append(seq(0, 2*i)); a.Err != nil || !a.Duplicate || a.BaseOffset != int64(2*i) || a.LastOffset != int64(2*i+1) {
			t.Fatalf("retry %d: %+v", i, a)
		}
	}
	if a := r.append(seq(0, 4)); !errors.Is(a.Err, ErrOutOfOrderSequence) {
		t.Fatalf("before the window: %+v", a)
	}
	if a := r.append(seq(0, 18)); !errors.Is(a.Err, ErrOutOfOrderSequence) {
		t.Fatalf("a gap: %+v", a)
	}
	r.mustAppend(seq(1, 0)) // a new epoch starts at 0
	if a := r.append(seq(0, 16)); !errors.Is(a.Err, ErrInvalidProducerEpoch) {
		t.Fatalf("an old epoch: %+v", a)
	}
	if e := r.log.Ends().Written; e != 18 {
		t.Fatalf("the log ends at %d", e)
	}
}

func TestLogAppendTimeAndRecompression(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.LogAppendTime = true
		c.Compression = Compression{Codec: batch.Gzip}
	})
	a := r.mustAppend(records(20, 100, nil))
	if a.LogAppendTimeMs < 1_000_000 {
		t.Fatalf("%+v", a)
	}
	b := r.all()[0]
	if b.Codec() != batch.Gzip || !b.LogAppendTime() || b.MaxTimestamp() != a.LogAppendTimeMs || batch.CheckCRC(b) != nil {
		t.Fatalf("codec %v, time %d, CRC %v", b.Codec(), b.MaxTimestamp(), batch.CheckCRC(b))
	}
	if m, ok, err := r.log.OffsetForTime(a.LogAppendTimeMs); err != nil || !ok || m.Offset != 0 || m.TimestampMs != a.LogAppendTimeMs {
		t.Fatalf("%+v, %v, %v", m, ok, err)
	}
}

// Kafka corrects the header where the records say otherwise.
func TestMaxTimestampIsCorrected(t *testing.T) {
	r := newRig(t, nil)
	b := records(3, 10, nil)
	b.SetMaxTimestamp(5)
	r.mustAppend(b)
	if got := r.all()[0].MaxTimestamp(); got != 1002 {
		t.Fatalf("max timestamp is %d", got)
	}
}

func TestRollByTime(t *testing.T) {
	r := newRig(t, func(c *Config) { c.SegmentMs = 500 })
	at := func(ms int64) batch.Batch {
		bl := batch.NewBuilder()
		bl.Add(ms, nil, nil)
		b, _ := bl.Build()
		return b
	}
	for i, c := range []struct {
		ms    int64
		count int
	}{{1000, 1}, {1500, 1}, {900, 1}, {1501, 2}, {2000, 2}, {2002, 3}} {
		r.mustAppend(at(c.ms))
		if n := r.log.SegmentCount(); n != c.count {
			t.Fatalf("append %d at %d ms: %d segments, want %d", i, c.ms, n, c.count)
		}
	}
}

func TestRetention(t *testing.T) {
	fill := func(change func(*Config)) *rig {
		r := newRig(t, func(c *Config) {
			c.SegmentBytes, c.RetentionMs = 1000, -1
			change(c)
		})
		for range 10 {
			r.mustAppend(records(1, 800, nil)) // at 1000 ms, a segment each
		}
		return r
	}
	end := int64(10)
	for name, c := range map[string]struct {
		change func(*Config)
		nowMs  int64
		hw     int64
		gone   int
	}{
		"nothing is due":            {func(c *Config) {}, 1 << 50, end, 0},
		"bytes":                     {func(c *Config) { c.RetentionBytes = 3400 }, 0, end, 6},
		"bytes below the mark":      {func(c *Config) { c.RetentionBytes = 3400 }, 0, 4, 4},
		"time":                      {func(c *Config) { c.RetentionMs = 100 }, 1101, end, 10},
		"not yet":                   {func(c *Config) { c.RetentionMs = 100 }, 1100, end, 0},
		"compacted, without delete": {func(c *Config) { c.RetentionBytes, c.DeleteRetention = 0, false }, 0, end, 0},
		"no bytes at all":           {func(c *Config) { c.RetentionBytes = 0 }, 0, end, 10},
	} {
		t.Run(name, func(t *testing.T) {
			r := fill(c.change)
			n, err := r.log.Retain(c.nowMs, c.hw)
			if err != nil || n != c.gone {
				t.Fatalf("%d went, %v; want %d", n, err, c.gone)
			}
			e := r.log.Ends()
			if e.Start != int64(c.gone) || e.Written != end {
				t.Fatalf("ends %+v", e)
			}
			r.kill()
			if got := r.log.Ends(); got.Start != e.Start || got.Written != end {
				t.Fatalf("after a restart: %+v", got)
			}
			r.mustAppend(records(1, 1, nil))
		})
	}
}

func TestReadsAtTheEdges(t *testing.T) {
	r := newRig(t, nil)
	for range 5 {
		r.mustAppend(records(2, 100, nil))
	}
	if err := r.log.TrimTo(3); err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int64{-1, 2, 11} {
		if _, err := r.log.Read(offset, 1000, 10, true); !errors.Is(err, ErrOffsetOutOfRange) {
			t.Errorf("at %d: %v", offset, err)
		}
	}
	for _, c := range []struct {
		offset, most, limit int64
		atLeastOne          bool
		batches             int
		next                int64
	}{
		{10, 1000, 10, true, 0, 10}, // at the end
		{4, 1, 10, false, 0, 4},     // the first does not fit
		{4, 1, 10, true, 1, 6},      // but comes if one must
		{4, 1 << 20, 8, true, 2, 8},
		{4, 1 << 20, 7, true, 1, 6}, // a batch that reaches the limit stays out
		{4, 1 << 20, 5, true, 0, 4},
		{4, 1 << 20, 4, true, 0, 4},
		{3, 1 << 20, 1 << 40, true, 4, 10}, // from within a batch
	} {
		rd, err := r.log.Read(c.offset, c.most, c.limit, c.atLeastOne)
		if err != nil {
			t.Fatal(err)
		}
		bs, err := batch.Split(nil, bytesOf(t, rd.Ranges))
		if err != nil || len(bs) != c.batches || rd.NextOffset != c.next {
			t.Errorf("%+v: %d batches, next %d, %v", c, len(bs), rd.NextOffset, err)
		}
		rd.Release()
	}
}

// A read holds its files: what retention deletes meanwhile can still be sent.
func TestReadOutlivesDeletion(t *testing.T) {
	r := newRig(t, func(c *Config) { c.SegmentBytes, c.FileDeleteDelayMs = 1000, 0 })
	for range 5 {
		r.mustAppend(records(1, 800, nil))
	}
	rd, err := r.log.Read(0, 1<<20, 5, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.log.TruncateFully(100); err != nil {
		t.Fatal(err)
	}
	r.clock.advance(1)
	r.runJobs()
	if _, err := r.fs.Stat("/data/t-0/" + segment.LogName(0) + segment.DeletedSuffix); !disk.IsNotExist(err) {
		t.Fatalf("the deleted segment is still there: %v", err)
	}
	if bs, err := batch.Split(nil, bytesOf(t, rd.Ranges)); err != nil || len(bs) < 2 {
		t.Fatalf("%d batches, %v", len(bs), err)
	}
	rd.Release()
}

func TestAFailedSyncTakesTheLogOffline(t *testing.T) {
	r := newRig(t, func(c *Config) { c.FlushMessages = 1 })
	r.mustAppend(records(1, 1, nil))
	r.fs.SetHook(func(o memdisk.Op) error {
		if o.Kind == "sync" {
			return errors.New("medium error")
		}
		return nil
	})
	if a := r.append(records(1, 1, nil)); !errors.Is(a.Err, ErrOffline) {
		t.Fatalf("%+v", a)
	}
	r.fs.SetHook(nil)
	if err := <-r.ioErr; err == nil || !strings.Contains(err.Error(), "medium error") {
		t.Fatal(err)
	}
	_, rerr := r.log.Read(0, 1, 1, true)
	for what, err := range map[string]error{
		"append": r.append(records(1, 1, nil)).Err, "read": rerr, "sync": r.log.Sync(), "roll": r.log.Roll(),
		"truncate": r.log.TruncateTo(0), "close": r.log.Close(true),
	} {
		if !errors.Is(err, ErrOffline) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(r.ioErr) > 0 || r.log.Ends().Durable != 1 {
		t.Fatalf("told more than once, or durable: %+v", r.log.Ends())
	}
}

// A segment that cannot be made for want of room leaves the old one in use.
func TestRollOnAFullDisk(t *testing.T) {
	r := newRig(t, func(c *Config) { c.SegmentBytes = 2100 })
	r.mustAppend(records(1, 900, nil))
	r.mustAppend(records(1, 900, nil))
	r.fs.SetHook(func(o memdisk.Op) error {
		if o.Kind == "create" && strings.HasSuffix(o.Path, segment.LogSuffix) {
			return disk.ErrFull
		}
		return nil
	})
	for range 3 {
		if a := r.append(records(1, 900, nil)); !errors.Is(a.Err, disk.ErrFull) {
			t.Fatalf("%+v", a)
		}
	}
	r.mustAppend(records(1, 10, nil)) // this one still fits
	r.fs.SetHook(nil)
	r.mustAppend(records(1, 900, nil))
	if bs := r.all(); len(bs) != 4 || r.log.SegmentCount() != 2 {
		t.Fatalf("%d batches in %d segments", len(bs), r.log.SegmentCount())
	}
}

// On a LogAppendTime topic the broker's time rolls segments, not the client's.
func TestRollByAppendTime(t *testing.T) {
	r := newRig(t, func(c *Config) { c.LogAppendTime, c.SegmentMs = true, 1000 })
	for _, ms := range []int64{1, 1 << 40, 5} {
		bl := batch.NewBuilder()
		bl.Add(ms, nil, nil)
		b, _ := bl.Build()
		r.mustAppend(b)
	}
	if n := r.log.SegmentCount(); n != 1 {
		t.Fatalf("%d segments", n)
	}
}

// TestRetentionDoesNotBelieveTheFuture: timestamps in microseconds lie thousands of years ahead, and must
// not keep their segments for as long.
func TestRetentionDoesNotBelieveTheFuture(t *testing.T) {
	r := newRig(t, func(c *Config) { c.SegmentBytes, c.RetentionMs = 1000, 60_000 })
	nowMs := r.clock.ms
	for range 5 {
		bl := batch.NewBuilder()
		bl.Add(nowMs*1000, nil, make([]byte, 800))
		b, err := bl.Build()
		if err != nil {
			t.Fatal(err)
		}
		r.mustAppend(b)
	}
	for _, c := range []struct {
		afterMs int64
		gone    int
	}{{30_000, 0}, {600_000, 5}} {
		if n, err := r.log.Retain(nowMs+c.afterMs, 5); err != nil || n != c.gone {
			t.Errorf("%d ms later %d segments went, %v; want %d", c.afterMs, n, err, c.gone)
		}
	}
}

// A roll beside a sync that has not come to the directory yet does not count on it: the entry of the segment
// that it seals could be lost in a power cut, and the next one's stay, behind a hole.
func TestRollBesideSync(t *testing.T) {
	for seed := range uint64(64) {
		r := newRig(t, func(c *Config) { c.Compacted = true })
		r.mustAppend(records(2, 10, nil))
		if err := errors.Join(r.log.Sync(), r.log.Roll()); err != nil {
			t.Fatal(err)
		}
		r.mustAppend(records(3, 10, nil))
		r.log.mu.Lock()
		r.log.target() // a sync begins, and comes no further
		r.log.mu.Unlock()
		if err := r.log.Roll(); err != nil {
			t.Fatal(err)
		}
		r.mustAppend(records(4, 10, nil))
		r.crash(seed)
		next := int64(0)
		for _, b := range r.all() {
			if b.BaseOffset() != next {
				t.Fatalf("seed %d: offset %d comes after %d", seed, b.BaseOffset(), next-1)
			}
			next = b.LastOffset() + 1
		}
	}
}

// Retention brings room back also where the disk has none for a new active segment.
func TestRetentionOnAFullDisk(t *testing.T) {
	r := newRig(t, func(c *Config) { c.SegmentBytes, c.RetentionMs = 1100, 1 })
	for range 3 {
		r.mustAppend(records(1, 900, nil))
	}
	r.fs.SetHook(func(o memdisk.Op) error {
		if o.Kind == "create" && strings.HasSuffix(o.Path, segment.LogSuffix) {
			return disk.ErrFull
		}
		return nil
	})
	for _, want := range []int{2, 0} {
		n, err := r.log.Retain(1<<40, 3)
		if n != want || err != nil && want > 0 {
			t.Fatalf("%d segments went, want %d: %v", n, want, err)
		}
	}
	r.fs.SetHook(nil)
	if n, err := r.log.Retain(1<<40, 3); n != 1 || err != nil || r.log.Ends().Start != 3 {
		t.Fatalf("%d segments went, the log starts at %d: %v", n, r.log.Ends().Start, err)
	}
	if a := r.append(records(1, 900, nil)); a.Err != nil || a.BaseOffset != 3 {
		t.Fatalf("%+v", a)
	}
}

// A process dies between the write and the sync that flush.messages asks for. When the client sends its batch
// again, the answer must not come before the sync either.
func TestRetryAfterDeathIsSynced(t *testing.T) {
	for seed := range uint64(16) {
		r := newRig(t, nil)
		again := func() batch.Batch {
			return records(3, 500, func(b *batch.Builder) { b.ProducerID, b.ProducerEpoch, b.BaseSequence = 7, 0, 0 })
		}
		r.mustAppend(again())
		r.cfg.FlushMessages = 1
		r.kill()
		if a := r.mustAppend(again()); !a.Duplicate || a.LastOffset != 2 {
			t.Fatalf("%+v", a)
		}
		r.crash(seed)
		if e := r.log.Ends(); e.Written != 3 {
			t.Fatalf("seed %d: an acknowledged batch is lost: %+v", seed, e)
		}
	}
}

// Records may carry times of long ago. Their producers are known on after a restart for as long as others: by when
// they wrote.
func TestProducersOfOldRecordsOutliveARestart(t *testing.T) {
	r := newRig(t, func(c *Config) { c.RetentionMs = -1 })
	old := func() batch.Batch {
		return records(2, 10, func(b *batch.Builder) { b.ProducerID, b.ProducerEpoch, b.BaseSequence = 7, 0, 0 })
	}
	r.clock.ms += 10 * r.cfg.ProducerIDExpirationMs
	r.mustAppend(old())
	r.kill()
	now := r.clock.ms
	if _, err := r.log.Retain(now, 2); err != nil {
		t.Fatal(err)
	}
	if a := r.mustAppend(old()); !a.Duplicate {
		t.Fatalf("a batch that was sent again is stored twice: %+v", a)
	}
	if _, err := r.log.Retain(now+r.cfg.ProducerIDExpirationMs, 2); err != nil {
		t.Fatal(err)
	}
	if ps := r.log.Producers(); len(ps) > 0 {
		t.Fatalf("%+v have not expired", ps)
	}
}

// A batch that was taken at its header's word may hold nothing readable: whoever looks into it is told that what is
// stored is bad, not that the request was.
func TestLookUpInGarbage(t *testing.T) {
	r := newRig(t, func(c *Config) { c.ValidateHeaderOnly = true })
	b := records(3, 10, func(b *batch.Builder) { b.Codec = batch.Gzip })
	b[batch.HeaderBytes] ^= 1
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	r.mustAppend(b)
	if _, _, err := r.log.OffsetForTime(1001); !errors.Is(err, ErrCorrupt) {
		t.Errorf("by time: %v", err)
	}
	if _, _, err := r.log.MaxTimestamp(); !errors.Is(err, ErrCorrupt) {
		t.Errorf("the newest: %v", err)
	}
}
