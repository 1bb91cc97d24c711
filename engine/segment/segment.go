// Package segment is one segment of a partition: the .log file with its offset and time indexes.
//
// A segment is active (it grows) or sealed. Its owner, the commit log, has one writer at a time for Append,
// Seal, Truncate and Recover; Span, FindTime and the other look-ups run beside it, from any goroutine,
// and see only whole batches that were published. Files are opened through the shared handle
// cache for each use, so a segment holds no descriptor of its own.
//
// # Indexes
//
// Index entries are kept in memory and written in groups, so that an append costs one system call; what
// a crash loses of them is rebuilt from the log. They are hints: a look-up checks the batch that an entry
// leads to, and when it is another one the indexes are rebuilt.
//
// # Errors
//
// What is wrong with the bytes is a *CorruptError. After a failed Append the file is as before; when even
// that could not be done, or could not be made durable, the error is ErrUnsafe.
package segment

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"

	"platter/io/disk"
	"platter/io/handles"
)

var (
	// ErrUnsafe: a failed write could not be cut back, so what the file holds is unknown.
	ErrUnsafe = errors.New("failed write could not be undone")
	// ErrGone: the segment was deleted or renamed away.
	ErrGone = errors.New("segment is gone")
)

// PosMax is the largest position in a .log file: Kafka's index has 31 bits for it.
const PosMax = 1<<31 - 1

// Env is what the segments of one partition share.
type Env struct {
	FS      disk.FS
	Handles *handles.Cache
	Dir     string
	Logf    func(format string, args ...any)
	// IntervalBytes is index.interval.bytes, for indexes that are rebuilt.
	IntervalBytes func() int64
	Growth        Growth
	NowMs         func() int64 // for Growth; nil: time stands still
}

// Segment is one segment of an open partition.
type Segment struct {
	Base      int64
	CreatedMs int64 // when the segment was made, or opened as the active one
	env       *Env
	path      string // of the .log file

	// size and end are published together, under mu; a reader that needs both asks published.
	size atomic.Int64 // of the whole batches in the .log file
	end  atomic.Int64 // offset behind the last batch; of a sealed segment: the next one's base
	bad  atomic.Pointer[[]Bad]

	retired atomic.Bool

	mu          sync.Mutex
	offsets     hint
	times       hint
	loaded      bool  // the hints' counts and maxTime are known
	since       int64 // bytes from the batch of the last offset entry on
	maxTime     TimeEntry
	indexedTime int64 // timestamp of the last time entry, -1: none
	// timesChecked: the largest timestamp was compared with the log.
	timesChecked bool
	scanFrom     int64 // offset of the first batch of the last rescan
	uncut        bool  // a truncation failed before its file was cut for good
	cuts         int   // how often the segment was truncated
	flushedAt    int64 // size of the .log when the indexes were last written
	tail         *tail // nil when sealed
	indexDirty   bool  // index files were written since the last sync that covered them

	// The writer's alone.
	reserved   int64 // no need to ask for room below this position
	growBytes  int64 // size of the last preallocation; 0: none yet
	grownMs    int64 // when it was made
	releasable bool  // room was reserved and not given back

	firstTime atomic.Int64 // max timestamp of the first batch; noTime: unknown
}

// Bad is a part of a segment that is not what was written.
type Bad struct {
	Pos, End           int64
	Offset, NextOffset int64 // the offsets that are lost
	Cause              error
}

const noTime = -1 << 63

// Create makes an empty, active segment, over whatever a crash may have left under its names. reserve bytes
// are preallocated, if that can be had.
func Create(env *Env, base, nowMs, reserve int64) (*Segment, error) {
	s := newSegment(env, base)
	s.CreatedMs = nowMs
	for _, suffix := range []string{IndexSuffix, TimeIndexSuffix, TxnIndexSuffix} {
		p := s.pathOf(suffix)
		env.Handles.Forget(p)
		if err := env.FS.Remove(p); err != nil && !disk.IsNotExist(err) {
			return nil, err
		}
	}
	err := s.with(disk.Create, func(f disk.File) error {
		if reserve > 0 && f.Preallocate(0, reserve) == nil {
			s.reserved, s.releasable = reserve, true
		}
		return truncateTo(f, 0)
	})
	if err != nil {
		return nil, err
	}
	s.end.Store(base)
	s.loaded = true
	s.tail = newTail(boundary{last: base - 1})
	return s, nil
}

// Open takes a sealed segment as its files say. end is the next segment's base; synced says that its
// indexes are durable.
func Open(env *Env, f Files, end int64, synced bool) *Segment {
	s := newSegment(env, f.Base)
	s.indexDirty = !synced
	s.size.Store(f.LogBytes)
	s.end.Store(end)
	s.offsets.fileBytes, s.times.fileBytes = f.IndexBytes, f.TimeIndexBytes
	return s
}

func newSegment(env *Env, base int64) *Segment {
	s := &Segment{
		Base: base, env: env, path: filepath.Join(env.Dir, LogName(base)),
		offsets: hint{suffix: IndexSuffix, width: offsetEntryBytes},
		times:   hint{suffix: TimeIndexSuffix, width: timeEntryBytes},
		maxTime: TimeEntry{TimestampMs: -1, Offset: base}, indexedTime: -1,
	}
	s.firstTime.Store(noTime)
	return s
}

// Path is the .log file.
func (s *Segment) Path() string { return s.path }

// SizeBytes is the size of the .log file's whole batches.
func (s *Segment) SizeBytes() int64 { return s.size.Load() }

// published is size and end as they belong together: a batch below the one ends below the other.
func (s *Segment) published() (size, end int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size.Load(), s.end.Load()
}

// End is the offset behind the last batch; of a sealed segment the next one's base.
func (s *Segment) End() int64 { return s.end.Load() }

// Bads are the bad ranges known, by rising position.
func (s *Segment) Bads() []Bad {
	if p := s.bad.Load(); p != nil {
		return *p
	}
	return nil
}

// Acquire pins the .log file.
func (s *Segment) Acquire() (*handles.Ref, error) {
	ref, err := s.env.Handles.Acquire(s.path, disk.ReadWrite)
	if s.retired.Load() { // the path may name another segment by now
		if err == nil {
			ref.Release()
		}
		return nil, ErrGone
	}
	return ref, err
}

func (s *Segment) pathOf(suffix string) string {
	return filepath.Join(s.env.Dir, name(s.Base, suffix))
}

// with runs fn on the .log file.
func (s *Segment) with(m disk.Mode, fn func(disk.File) error) error {
	err := withFile(s.env, s.path, m, func(f disk.File) error {
		if s.retired.Load() {
			return ErrGone
		}
		return fn(f)
	})
	if disk.IsNotExist(err) && s.retired.Load() {
		return ErrGone // renamed away before it could be opened: no fault of the disk
	}
	return err
}

func withFile(env *Env, path string, m disk.Mode, fn func(disk.File) error) error {
	ref, err := env.Handles.Acquire(path, m)
	if err != nil {
		return err
	}
	defer ref.Release()
	return fn(ref.File())
}

// truncateTo is Truncate where there is something to cut: ext4 writes a file back when it is closed after a
// truncation to nothing.
func truncateTo(f disk.File, size int64) error {
	if have, err := f.Size(); err != nil || have == size {
		return err
	}
	return f.Truncate(size)
}

func (s *Segment) logf(format string, args ...any) {
	if s.env.Logf != nil {
		s.env.Logf(format, args...)
	}
}

// Forget closes the segment's files once nobody uses them.
func (s *Segment) Forget() {
	for _, suffix := range fileSuffixes {
		s.env.Handles.Forget(s.pathOf(suffix))
	}
}

// Unsynced gives the files that a sync up to the log end has to cover, when everything below durable is
// synced already: the .log, and of a sealed segment the indexes. The indexes count as synced afterwards:
// they are hints.
func (s *Segment) Unsynced(durable int64) (paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end.Load() > durable && s.size.Load() > 0 {
		paths = append(paths, s.path)
	}
	if s.tail == nil && s.indexDirty {
		paths = append(paths, s.IndexPaths()...)
		s.indexDirty = false
	}
	return paths
}

// IndexPaths are the index files.
func (s *Segment) IndexPaths() []string {
	return []string{s.pathOf(IndexSuffix), s.pathOf(TimeIndexSuffix)}
}

// IndexFull reports whether an index has as many entries as segment.index.bytes allows.
func (s *Segment) IndexFull(indexBytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offsets.count() >= max(1, indexBytes/offsetEntryBytes) || s.times.count() >= max(1, indexBytes/timeEntryBytes-1)
}

// fileSuffixes are a segment's own files, the .log last: while it is there, the segment is.
var fileSuffixes = [...]string{IndexSuffix, TimeIndexSuffix, TxnIndexSuffix, LogSuffix}

// Retire renames the segment's files to .deleted and returns their new paths, to be removed later: reads
// in flight go on, others get ErrGone. The .log goes first: without it the others mean nothing.
func (s *Segment) Retire() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired.Store(true)
	var gone []string
	for i := len(fileSuffixes) - 1; i >= 0; i-- {
		from := s.pathOf(fileSuffixes[i])
		s.env.Handles.Forget(from)
		err := s.env.FS.Rename(from, from+DeletedSuffix)
		if err == nil {
			gone = append(gone, from+DeletedSuffix)
		} else if !disk.IsNotExist(err) {
			return gone, err
		}
	}
	return gone, nil
}
