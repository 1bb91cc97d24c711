package store

import (
	"errors"

	"platter/engine/checkpoint"
	"platter/engine/commitlog"
	"platter/io/disk"
)

// deviceFailed says whether err is the disk's failure, which puts the directory offline: what commitlog takes for one,
// but for what a caller did wrong.
func deviceFailed(err error) bool {
	return commitlog.DiskFailed(err) && !errors.Is(err, disk.ErrClosed) && !errors.Is(err, disk.ErrUnsupported)
}

// failDir puts a directory offline, once: its logs serve nothing any more, and OnOffline is told.
func (s *Store) failDir(d *dataDir, cause error) {
	if !d.failed.CompareAndSwap(nil, &offlineError{d.path, cause}) {
		return
	}
	s.log.Error("a data directory is offline until the next start", "path", d.path, "cause", cause)
	if s.c.OnOffline != nil {
		go s.c.OnOffline(d.path, cause)
	}
	d.failMu.Lock()
	defer d.failMu.Unlock()
	if d.released {
		return
	}
	d.failing.Go(func() {
		for _, h := range s.logsOf(d) {
			h.log.GoOffline(cause)
		}
		s.distrust(d)
	})
}

// logsOf lists the logs of one directory, offline or not.
func (s *Store) logsOf(d *dataDir) []*held {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var logs []*held
	for _, h := range s.logs {
		if h.dir == d {
			logs = append(logs, h)
		}
	}
	return logs
}

// distrust forgets the boot id of a directory that failed: after a failed sync the page cache may show
// what the disk never got, so that the next start must check as after a power cut. The disk may
// refuse this as well; then there is nothing left to do.
func (s *Store) distrust(d *dataDir) {
	if removeFile(d.fs, d.join(checkpoint.BootFile)) == nil {
		d.fs.SyncDir(d.path)
	}
}
