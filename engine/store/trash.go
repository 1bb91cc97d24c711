package store

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"platter/engine/segment"
	"platter/engine/spindle"
	"platter/io/disk"
)

// trashed is a renamed directory whose files go when it is due, or a retired file of a log.
type trashed struct {
	dir   *dataDir
	path  string
	file  bool
	dueMs int64 // 0: at once
}

// trash is what is to be removed from one data directory. It holds paths and no handles.
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

// removeLoop removes from d what is due, one after the other.
func (s *Store) removeLoop(d *dataDir) {
	for {
		next := s.removeDue(d, s.c.Clock.NowMs())
		var later <-chan time.Time
		if next >= 0 {
			later = s.c.Clock.After(time.Duration(max(1, next-s.c.Clock.NowMs())) * time.Millisecond)
		}
		select {
		case <-s.stop:
			return
		case <-d.trash.wake:
		case <-later:
		}
	}
}

// RemoveDeleted removes the files of deleted logs that are due at nowMs, and returns when the next will be (-1:
// none waits). It runs by itself, but for stores without background work.
func (s *Store) RemoveDeleted(nowMs int64) (nextMs int64) {
	nextMs = -1
	for _, d := range s.dirs {
		if next := s.removeDue(d, nowMs); next >= 0 && (nextMs < 0 || next < nextMs) {
			nextMs = next
		}
	}
	return nextMs
}

func (s *Store) removeDue(d *dataDir, nowMs int64) (nextMs int64) {
	due, nextMs := d.trash.due(nowMs)
	synced := false
	for _, x := range due {
		if d.offline() != nil || s.stopping() {
			continue // the next start finds it
		}
		if x.file {
			if err := s.discard(x.path); err != nil {
				s.keepTrash(x, err)
			}
			continue
		}
		// Until the rename is durable a power cut may bring the log back: whole, then.
		if !synced {
			if err := d.entries.do(); err != nil {
				s.failDir(d, err)
				continue
			}
			synced = true
		}
		if err := s.removeTree(x); err != nil {
			s.keepTrash(x, err)
		}
	}
	return nextMs
}

// keepTrash tells of what could not be removed.
func (s *Store) keepTrash(x trashed, err error) {
	if errors.Is(err, spindle.ErrStopped) {
		return // the next start finds it
	}
	s.log.Warn("what was deleted stays until the next start", "path", x.path, "error", err)
	s.settleFailure(x.dir, err)
}

// discard removes a file without holding up the disk.
func (s *Store) discard(path string) error {
	var err error
	if s.c.Spindles != nil {
		err = s.c.Spindles.Discard(path, s.stop)
	} else {
		err = s.c.FS.Remove(path)
	}
	if disk.IsNotExist(err) {
		return nil // somebody was faster
	}
	return err
}

// retired takes over a file that a log of d has retired.
func (s *Store) retired(d *dataDir, path string) error {
	if !s.removes() && !s.c.serial || !strings.HasSuffix(path, segment.LogSuffix+segment.DeletedSuffix) {
		return s.c.FS.Remove(path)
	}
	d.trash.add(trashed{dir: d, path: path, file: true})
	return nil
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
		path := filepath.Join(x.path, in.Name)
		remove := s.discard
		if in.IsDir {
			remove = s.c.FS.RemoveAll
		}
		if err := remove(path); err != nil {
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
