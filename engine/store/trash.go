package store

import (
	"path/filepath"
	"slices"
	"sync"
	"time"

	"platter/io/disk"
)

// trashed is a renamed directory whose files go when it is due.
type trashed struct {
	dir   *dataDir
	path  string
	dueMs int64 // 0: at once
}

// trash is what is to be removed. It holds paths and no handles.
type trash struct {
	mu   sync.Mutex
	list []trashed
	wake chan struct{}
}

func (t *trash) add(x trashed) {
	t.mu.Lock()
	t.list = append(t.list, x)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// due takes out what is due at nowMs, and says when the next will be; -1: nothing is left.
func (t *trash) due(nowMs int64) (now []trashed, nextMs int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	nextMs = -1
	t.list = slices.DeleteFunc(t.list, func(x trashed) bool {
		if x.dueMs <= nowMs {
			now = append(now, x)
			return true
		}
		if nextMs < 0 || x.dueMs < nextMs {
			nextMs = x.dueMs
		}
		return false
	})
	return now, nextMs
}

// removeLoop removes what is due, one directory after the other.
func (s *Store) removeLoop() {
	for {
		next := s.RemoveDeleted(s.c.Clock.NowMs())
		var later <-chan time.Time
		if next >= 0 {
			later = s.c.Clock.After(time.Duration(max(1, next-s.c.Clock.NowMs())) * time.Millisecond)
		}
		select {
		case <-s.stop:
			return
		case <-s.trash.wake:
		case <-later:
		}
	}
}

// RemoveDeleted removes the files of deleted logs that are due at nowMs, and returns when the next will be (-1:
// none waits). It runs by itself, but for stores without background work.
func (s *Store) RemoveDeleted(nowMs int64) (nextMs int64) {
	due, nextMs := s.trash.due(nowMs)
	synced := map[*dataDir]bool{}
	for _, x := range due {
		if x.dir.offline() != nil || s.stopping() {
			continue // the next start finds it
		}
		// Until the rename is durable a power cut may bring the log back: whole, then.
		if !synced[x.dir] {
			if err := x.dir.entries.do(); err != nil {
				s.failDir(x.dir, err)
				continue
			}
			synced[x.dir] = true
		}
		if err := s.removeTree(x); err != nil {
			s.log.Warn("a deleted log's files stay until the next start", "path", x.path, "error", err)
			s.settleFailure(x.dir, err)
		}
	}
	return nextMs
}

// removeTree removes a deleted log file by file, so that closing the store need not wait for all of them.
func (s *Store) removeTree(x trashed) error {
	infos, err := s.c.FS.ReadDir(x.path)
	if disk.IsNotExist(err) {
		return nil // somebody was faster
	}
	if err != nil {
		return err
	}
	for _, in := range infos {
		if s.stopping() {
			return nil
		}
		if err := s.c.FS.RemoveAll(filepath.Join(x.path, in.Name)); err != nil {
			return err
		}
	}
	return s.c.FS.RemoveAll(x.path)
}

// stopping says whether the store is being closed.
func (s *Store) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}
