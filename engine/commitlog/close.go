package commitlog

import (
	"context"
	"errors"
	"path/filepath"

	"platter/engine/segment"
)

// Close writes indexes and a producer snapshot, syncs all of it when clean is true, and closes. Closing
// twice is no error. After an error the log was not closed cleanly: it must be recovered.
func (l *Log) Close(clean bool) error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	unfinished := error(nil)
	if l.status() == nil {
		unfinished = l.resume()
	}
	closed := error(ErrClosed)
	if !l.failed.CompareAndSwap(nil, &closed) {
		err := l.status()
		if errors.Is(err, ErrClosed) {
			return nil
		}
		l.forget()
		return err
	}
	err := unfinished
	if err == nil {
		err = l.writeState(clean)
	}
	l.forget()
	if DiskFailed(err) && l.o.OnIOError != nil {
		go l.o.OnIOError(err)
	}
	return err
}

// writeState brings the files to where the next Open needs no scan. mu is held.
func (l *Log) writeState(clean bool) error {
	e := l.Ends()
	if !l.dirty && (e.Durable == e.Written || !clean) {
		return nil
	}
	active := l.view.Load().active()
	if err := active.Finish(); err != nil {
		return err
	}
	if err := l.snapshot(e.Written); err != nil {
		return err
	}
	if !clean {
		return nil
	}
	l.epochs.DropUnused(e.Written)
	l.dirChanges++
	t := l.target()
	t.paths = append(append(t.paths, active.IndexPaths()...), l.pathOf(segment.SnapshotName(e.Written)))
	if err := l.syncTarget(t); err != nil {
		return err
	}
	l.synced(t)
	return nil
}

// Discard closes without writing anything more and forgets the log's handles, so that its directory
// can be renamed and removed. Reads in flight keep their files.
func (l *Log) Discard() {
	l.mu.Lock()
	defer l.mu.Unlock()
	closed := error(ErrClosed)
	l.failed.CompareAndSwap(nil, &closed)
	l.forget()
}

func (l *Log) forget() {
	for _, s := range l.view.Load().segs {
		s.Forget()
	}
}

func (l *Log) pathOf(name string) string { return filepath.Join(l.o.Dir, name) }

// Verify reads every byte of the log with CRC, through pace (called with the bytes just read, may be
// nil), adds what is bad to the bad ranges, and returns those. For a slow scrub: a file that cannot be read is an
// error, but takes nothing offline, since nobody has asked for these bytes.
func (l *Log) Verify(ctx context.Context, pace func(bytes int64)) ([]BadRange, error) {
	for _, s := range l.view.Load().segs {
		if err := l.status(); err != nil {
			return nil, err
		}
		if err := s.Verify(ctx, pace); err != nil && !errors.Is(err, segment.ErrGone) {
			return l.BadRanges(), err
		}
	}
	return l.BadRanges(), nil
}
