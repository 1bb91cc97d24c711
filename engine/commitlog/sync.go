package commitlog

import (
	"path/filepath"

	"platter/io/disk"
)

// target is what one sync makes durable.
type target struct {
	paths       []string // of files, by rising base
	end         int64
	records     int64
	lineage     int64
	dirChanges  int64
	dir, parent bool
}

// Sync makes all that was written durable and raises the durable end. Appends go on meanwhile. A failed
// one takes the log offline: it is not known what reached the disk.
func (l *Log) Sync() error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.mu.Lock()
	if err := l.ready(); err != nil {
		l.mu.Unlock()
		return err
	}
	t := l.target()
	l.mu.Unlock()
	err := l.syncTarget(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		return l.fail(err)
	}
	l.synced(t)
	return nil
}

// syncLocked is Sync for a caller who holds mu.
func (l *Log) syncLocked() error {
	t := l.target()
	if err := l.syncTarget(t); err != nil {
		return err
	}
	l.synced(t)
	return nil
}

// dirChanged: directory entries were made, or renamed, that no SyncDir which has ended covers. mu is held.
func (l *Log) dirChanged() bool { return l.dirSynced < l.dirChanges }

// target collects what is not durable. mu is held.
func (l *Log) target() target {
	e := l.Ends()
	t := target{
		end: e.Written, records: l.unsynced, lineage: l.lineage,
		dirChanges: l.dirChanges, dir: l.dirChanged(), parent: l.parentChanged,
	}
	if e.Durable == e.Written && !t.dir {
		return t
	}
	for _, s := range l.view.Load().segs {
		t.paths = append(t.paths, s.Unsynced(e.Durable)...)
	}
	return t
}

// synced publishes what a sync has reached. mu is held.
func (l *Log) synced(t target) {
	l.unsynced = max(0, l.unsynced-t.records)
	if t.dir {
		l.dirSynced = max(l.dirSynced, t.dirChanges)
	}
	l.parentChanged = l.parentChanged && !t.parent
	if l.lineage == t.lineage {
		l.setEnds(func(e *Ends) { e.Durable = max(e.Durable, t.end) })
	}
}

func (l *Log) syncTarget(t target) error {
	if l.o.planted == plantedSyncNoData {
		t.paths = nil
	}
	if err := l.syncFiles(t.paths); err != nil {
		return err
	}
	if err := l.epochs.Sync(); err != nil {
		return err
	}
	if t.dir {
		if err := l.o.FS.SyncDir(l.o.Dir); err != nil {
			return err
		}
	}
	if t.parent {
		return l.o.FS.SyncDir(filepath.Dir(l.o.Dir))
	}
	return nil
}

// syncFiles syncs the files that are still there: others were retired, with what they held. One after the
// other, since holding many at once might exhaust the handles.
func (l *Log) syncFiles(paths []string) error {
	for _, p := range paths {
		ref, err := l.o.Handles.Acquire(p, disk.ReadWrite)
		if disk.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		err = ref.File().Sync()
		ref.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// syncDirs makes the log's directory entries durable. mu is held.
func (l *Log) syncDirs() error {
	if err := l.o.FS.SyncDir(l.o.Dir); err != nil {
		return err
	}
	l.dirSynced = l.dirChanges
	if l.parentChanged {
		if err := l.o.FS.SyncDir(filepath.Dir(l.o.Dir)); err != nil {
			return err
		}
		l.parentChanged = false
	}
	return nil
}
