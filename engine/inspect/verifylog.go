package inspect

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"platter/engine/checkpoint"
	"platter/engine/epoch"
	"platter/engine/producer"
	"platter/engine/segment"
	"platter/io/disk"
)

// logCheck is the check of one log.
type logCheck struct {
	*Verifier
	dir    string
	next   int64         // the offset behind the last batch
	epochs []epoch.Entry // none: the log has no readable history
	// epochBad stops the complaints about the history after the first: one lost entry disagrees with
	// every batch.
	epochBad bool
}

// log checks one log's directory and returns its end.
func (v *Verifier) log(ctx context.Context, dir string) (end int64, err error) {
	v.sum.Logs++
	infos, err := v.FS.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	c := &logCheck{Verifier: v, dir: dir}
	if err := c.metadata(); err != nil {
		return 0, err
	}
	segs := segment.FromInfos(infos)
	if len(segs) > 0 {
		c.next = segs[0].Base
	}
	for i, s := range segs {
		limit := int64(math.MaxInt64)
		if i+1 < len(segs) {
			limit = segs[i+1].Base
		}
		if err := c.segment(ctx, s, limit); err != nil {
			return 0, err
		}
	}
	if len(segs) == 0 {
		v.report(Note, dir, -1, "has no segment")
	}
	c.history()
	for _, o := range producer.SnapshotsIn(infos) {
		if err := c.snapshot(o); err != nil {
			return 0, err
		}
	}
	return c.next, nil
}

func (c *logCheck) path(name string) string { return filepath.Join(c.dir, name) }

// metadata reads the small files.
func (c *logCheck) metadata() error {
	path := c.path(checkpoint.PartitionFile)
	p, err := checkpoint.ReadFile(c.FS, path, checkpoint.FileBytesMax)
	if err == nil {
		_, err = checkpoint.ParsePartition(p)
	}
	if err != nil && !disk.IsNotExist(err) {
		if err := c.unreadable(path, err); err != nil {
			return err
		}
	}
	path = c.path(epoch.FileName)
	p, err = checkpoint.ReadFile(c.FS, path, checkpoint.FileBytesMax)
	if disk.IsNotExist(err) {
		return nil
	}
	if err == nil {
		c.epochs, err = epoch.Parse(p)
	}
	return c.unreadable(path, err)
}

// history checks the leader epochs against the log's end, once that is known.
func (c *logCheck) history() {
	if n := len(c.epochs); n > 0 && c.epochs[n-1].StartOffset > c.next {
		c.report(Note, c.path(epoch.FileName), -1, "epoch %v starts beyond the log's end, %d: the next start drops it", c.epochs[n-1], c.next)
	}
}

// epochOf compares a batch's leader epoch with the history.
func (c *logCheck) epochOf(path string, e *entry) {
	if c.epochBad || e.legacy() || e.b.LeaderEpoch() < 0 {
		return
	}
	have := epoch.At(c.epochs, e.first())
	if have != epoch.None && have != e.b.LeaderEpoch() {
		c.report(Bad, path, e.pos, "the batch at offset %d has leader epoch %d, %s says %d", e.first(), e.b.LeaderEpoch(), epoch.FileName, have)
		c.epochBad = true
	}
}

func (c *logCheck) snapshot(offset int64) error {
	path := c.path(producer.SnapshotName(offset))
	entries, err := producer.ReadSnapshot(c.FS, path)
	if errors.Is(err, producer.ErrCorruptSnapshot) {
		c.report(Bad, path, -1, "%s", without(path, err))
		return nil
	}
	if err != nil {
		return err
	}
	if offset > c.next {
		c.report(Note, path, -1, "lies beyond the log's end, %d: the next start drops it", c.next)
	}
	seen := map[int64]bool{}
	for _, e := range entries {
		if e.LastOffset >= offset {
			c.report(Bad, path, -1, "producer %d has its last batch at %d, not below the snapshot's offset", e.ProducerID, e.LastOffset)
		}
		if seen[e.ProducerID] {
			c.report(Bad, path, -1, "producer %d is in it twice", e.ProducerID)
		}
		seen[e.ProducerID] = true
	}
	return nil
}

// problem is the text of a batch's error, without the position, which the finding has.
func problem(err error) string {
	var corrupt *segment.CorruptError
	if errors.As(err, &corrupt) {
		return corrupt.Cause.Error()
	}
	return fmt.Sprint(err)
}
