// Package epoch is a partition's leader-epoch history: which epoch started at which offset (KIP-101,
// KIP-279), kept in the file leader-epoch-checkpoint.
//
// # What a crash may leave
//
// The history in the file may lag or run ahead of the log, but it never loses what was durable before:
//
//   - Ahead of the log end: the owner cuts it with TruncateFromEnd when it opens the log.
//   - Behind: epochs past the recovery point are found in the batches again. So an entry must be
//     durable only before the recovery point passes its start, and the owner calls Sync before that.
//   - A file that replaces an older one is synced before it takes the name; the rename itself may wait
//     for Sync. The first file of a log replaces nothing and is not synced at all, so that
//     creating many partitions costs no sync each.
//   - A file that cannot be read counts as missing: see Open.
//
// A Cache is safe for concurrent use.
package epoch

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"platter/io/disk"
)

// None is the epoch of a log without batches, and the offset that goes with an unknown epoch.
const None = -1

// FileName is the file's name in a partition's directory.
const FileName = "leader-epoch-checkpoint"

// Entry says that the records from StartOffset on were written under Epoch, up to the next entry.
type Entry struct {
	Epoch       int32
	StartOffset int64
}

// Cache is one partition's history: entries with rising epochs and rising start offsets.
type Cache struct {
	mu      sync.RWMutex
	entries []Entry
	file    file
}

// Open reads the history of the partition in dir. A missing file is an empty history. An unreadable
// one gives an empty but usable cache together with an error that is ErrCorrupt: the caller logs it
// and assigns anew from the batches. Any other error is the disk's, with a nil Cache.
func Open(fs disk.FS, dir string) (*Cache, error) {
	c := &Cache{file: file{fs: fs, dir: dir}}
	entries, err := c.file.read()
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return nil, err
	}
	c.entries = entries
	return c, err
}

// Assign records that epoch starts at startOffset. It does nothing when that is known. Entries that contradict
// it (a higher or equal epoch, or a start at or above startOffset) are dropped, as Kafka does: the newest
// word wins. The error is the disk's; the history in memory is then as before.
func (c *Cache) Assign(epoch int32, startOffset int64) error {
	return c.assign(epoch, startOffset, true)
}

// AssignQuiet is Assign without writing the file: for a run of them while a log is recovered, which ends in
// one Write.
func (c *Cache) AssignQuiet(epoch int32, startOffset int64) {
	_ = c.assign(epoch, startOffset, false) // without the file there is nothing that fails
}

func (c *Cache) assign(epoch int32, startOffset int64, write bool) error {
	if epoch < 0 || startOffset < 0 {
		return nil // batches of magic 0 and 1 have no epoch
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.entries); n > 0 && c.entries[n-1].Epoch == epoch && c.entries[n-1].StartOffset <= startOffset {
		return nil
	}
	keep := len(c.entries)
	for keep > 0 && (c.entries[keep-1].Epoch >= epoch || c.entries[keep-1].StartOffset >= startOffset) {
		keep--
	}
	next := append(slices.Clone(c.entries[:keep]), Entry{epoch, startOffset})
	if !write {
		c.entries, c.file.pending = next, true
		return nil
	}
	return c.replace(next)
}

// replace writes next and makes it the history; the lock is held.
func (c *Cache) replace(next []Entry) error {
	if err := c.file.write(next); err != nil {
		return err
	}
	c.entries = next
	return nil
}

// Write writes what AssignQuiet left unwritten.
func (c *Cache) Write() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.file.pending {
		return nil
	}
	return c.file.write(c.entries)
}

// Sync makes the history durable. It costs nothing when it is. Called before the recovery point moves.
func (c *Cache) Sync() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.file.sync(c.entries)
}

// TruncateFromEnd drops the entries that start at or above end: the log was, or is about to be, cut there.
// The file may lag until Sync.
func (c *Cache) TruncateFromEnd(end int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	keep := sort.Search(len(c.entries), func(i int) bool { return c.entries[i].StartOffset >= end })
	if end < 0 || keep == len(c.entries) {
		return nil
	}
	return c.replace(slices.Clone(c.entries[:keep]))
}

// DropUnused is TruncateFromEnd without writing the file: for a log that is closed and ends at end, where a
// term began without a batch. The next leader is told its epoch anew.
func (c *Cache) DropUnused(end int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keep := sort.Search(len(c.entries), func(i int) bool { return c.entries[i].StartOffset >= end })
	if end >= 0 && keep < len(c.entries) {
		c.entries, c.file.pending = slices.Clone(c.entries[:keep]), true
	}
}

// TruncateFromStart drops the entries that end at or below start; the one that holds start now starts there.
func (c *Cache) TruncateFromStart(start int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := sort.Search(len(c.entries), func(i int) bool { return c.entries[i].StartOffset > start }) - 1
	if first < 0 || c.entries[first].StartOffset == start && first == 0 {
		return nil
	}
	next := slices.Clone(c.entries[first:])
	next[0].StartOffset = start
	return c.replace(next)
}

// Clear forgets the history: the log was emptied.
func (c *Cache) Clear() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) == 0 {
		return nil
	}
	return c.replace(nil)
}

// Latest is the newest epoch and where it starts; (None, None) when there is none.
func (c *Cache) Latest() (epoch int32, startOffset int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if n := len(c.entries); n > 0 {
		return c.entries[n-1].Epoch, c.entries[n-1].StartOffset
	}
	return None, None
}

// EndOffsetFor answers OffsetForLeaderEpoch: the largest known epoch not above the requested one, and
// the offset where it ends, which is logEnd for the newest. An epoch above all known, or any when none is
// known, gives (None, None); one below all known gives itself and where the first known one starts
// (KIP-279).
func (c *Cache) EndOffsetFor(requested int32, logEnd int64) (epoch int32, endOffset int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if requested < 0 || len(c.entries) == 0 {
		return None, None
	}
	higher := sort.Search(len(c.entries), func(i int) bool { return c.entries[i].Epoch > requested })
	switch {
	case higher == 0:
		return requested, c.entries[0].StartOffset
	case higher < len(c.entries):
		return c.entries[higher-1].Epoch, c.entries[higher].StartOffset
	case c.entries[higher-1].Epoch == requested:
		return requested, logEnd
	}
	return None, None
}

// At is the epoch of the record at offset; None when it is before all that is known.
func (c *Cache) At(offset int64) int32 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return At(c.entries, offset)
}

// At is Cache.At over entries that rise.
func At(entries []Entry, offset int64) int32 {
	i := sort.Search(len(entries), func(i int) bool { return entries[i].StartOffset > offset })
	if i == 0 {
		return None
	}
	return entries[i-1].Epoch
}

// Entries is a copy of the history.
func (c *Cache) Entries() []Entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Clone(c.entries)
}

func (e Entry) String() string { return fmt.Sprintf("%d@%d", e.Epoch, e.StartOffset) }
