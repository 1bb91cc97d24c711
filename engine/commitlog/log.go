package commitlog

import (
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"

	"platter/engine/epoch"
	"platter/engine/producer"
	"platter/engine/segment"
	"platter/io/disk"
	"platter/io/handles"
)

// Log is one open partition. Safe for concurrent use.
type Log struct {
	o      Options
	env    *segment.Env
	cfg    atomic.Pointer[Config]
	epochs *epoch.Cache
	view   atomic.Pointer[view]
	failed atomic.Pointer[error] // why nothing is served any more
	queue  queue

	// mu is the appender's: whoever writes, rolls, cuts or retires segments holds it.
	mu        sync.Mutex
	producers *producer.State
	chunk     chunk
	// lineage counts truncations, so that a sync which ran beside one moves no recovery point.
	lineage int64
	// unsynced is the records that were appended since the last sync, for flush.messages.
	unsynced int64
	// dirChanges counts changes of directory entries, dirSynced those that a SyncDir has covered.
	dirChanges, dirSynced int64
	parentChanged         bool // the log's own entry is not durable
	// dirty: the files need work before they can count as cleanly closed.
	dirty         bool
	snapshots     snapshots
	snapshotBytes int64
	// unfinished goes on with a truncation that a full disk interrupted: before it is done nothing else may change
	// the log (resume).
	unfinished func() error

	syncMu sync.Mutex // one sync at a time

	endsMu sync.Mutex
	ends   Ends
}

// view is the segments at one moment, by rising base offset; the last is active. It is never changed.
type view struct{ segs []*segment.Segment }

func (v *view) active() *segment.Segment { return v.segs[len(v.segs)-1] }

// find is the index of the segment that offset falls into.
func (v *view) find(offset int64) int {
	return max(0, sort.Search(len(v.segs), func(i int) bool { return v.segs[i].Base > offset })-1)
}

// Dir is where the log lives.
func (l *Log) Dir() string { return l.o.Dir }

// Config is the current settings.
func (l *Log) Config() Config { return *l.cfg.Load() }

// SetConfig changes the settings for what comes next.
func (l *Log) SetConfig(c Config) { l.cfg.Store(&c) }

// Ends returns the log's offsets.
func (l *Log) Ends() Ends {
	l.endsMu.Lock()
	defer l.endsMu.Unlock()
	return l.ends
}

func (l *Log) setEnds(change func(*Ends)) {
	l.endsMu.Lock()
	defer l.endsMu.Unlock()
	change(&l.ends)
}

// RecoveryPoint is the offset up to which everything is synced: what the owner checkpoints.
func (l *Log) RecoveryPoint() int64 { return l.Ends().Durable }

// SizeBytes is the size of all segments' .log files.
func (l *Log) SizeBytes() int64 {
	n := int64(0)
	for _, s := range l.view.Load().segs {
		n += s.SizeBytes()
	}
	return n
}

// BytesFrom is about how many bytes of record batches there are from an offset to the end: whole segments as they are,
// and of the one that the offset is in the share that its place among the offsets gives. It touches no disk.
func (l *Log) BytesFrom(offset int64) int64 {
	n := int64(0)
	for _, s := range l.view.Load().segs {
		base, end, size := s.Base, s.End(), s.SizeBytes()
		switch {
		case offset <= base:
			n += size
		case offset < end:
			n += int64(float64(size) * float64(end-offset) / float64(end-base))
		}
	}
	return n
}

// SegmentCount is the number of segments.
func (l *Log) SegmentCount() int { return len(l.view.Load().segs) }

// BadRanges are those known so far.
func (l *Log) BadRanges() []BadRange {
	var out []BadRange
	for _, s := range l.view.Load().segs {
		for _, b := range s.Bads() {
			out = append(out, BadRange{s.Path(), b.Pos, b.End, b.Offset, b.NextOffset, b.Cause})
		}
	}
	return out
}

func (l *Log) logf(format string, args ...any) {
	if l.o.Logf != nil {
		l.o.Logf("%s: %s", l.o.Dir, fmt.Sprintf(format, args...))
	}
}

// status is nil while the log is served, else ErrClosed or ErrOffline with its cause.
func (l *Log) status() error {
	if p := l.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// fail takes the log offline when err says that the disk cannot be trusted any more, and returns the
// error to hand on.
func (l *Log) fail(err error) error {
	if !DiskFailed(err) {
		return err
	}
	offline := fmt.Errorf("%w: %w", ErrOffline, err)
	if !l.failed.CompareAndSwap(nil, &offline) {
		return l.status()
	}
	if l.o.OnIOError != nil {
		go l.o.OnIOError(err)
	}
	return offline
}

// DiskFailed says whether err means that the data directory can be trusted no more. What is no failure of the
// disk does not, and of those neither a full disk nor a shortage of descriptors: both pass.
func DiskFailed(err error) bool {
	if errors.Is(err, segment.ErrUnsafe) {
		return true
	}
	var failed *disk.Error
	if !errors.As(err, &failed) || isFull(err) {
		return false
	}
	for _, passes := range []error{segment.ErrGone, handles.ErrTooManyOpen, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, passes) {
			return false
		}
	}
	return true
}

func (l *Log) background(f func()) {
	if l.o.Background != nil {
		l.o.Background(f)
		return
	}
	go f()
}
