package store

import (
	"context"
	"fmt"
	"path/filepath"

	"platter/engine/commitlog"
	"platter/io/disk"
)

// Create makes (or returns) the log in the directory with the fewest logs, of those that answer. An existing log with another
// topic id is a stale incarnation: it is deleted first. A zero id asks for nothing and changes nothing.
//
// ErrOffline: the log is in a directory that has failed, or, when a directory could not be read at all,
// may be there; an empty log must not take its place. CreateNew leaves the second case out.
func (s *Store) Create(tp TP, id UUID, c commitlog.Config) (*commitlog.Log, error) {
	return s.create(tp, id, c, false)
}

// CreateNew is Create for a partition that was never led before, and so cannot be in an unreadable directory.
func (s *Store) CreateNew(tp TP, id UUID, c commitlog.Config) (*commitlog.Log, error) {
	return s.create(tp, id, c, true)
}

func (s *Store) create(tp TP, id UUID, c commitlog.Config, isNew bool) (*commitlog.Log, error) {
	if err := checkName(tp); err != nil {
		return nil, err
	}
	defer s.names.Lock(tp)()
	if h := s.find(tp); h != nil {
		if err := h.dir.offline(); err != nil {
			return nil, err
		}
		if stale, err := s.claim(tp, h, id); !stale || err != nil {
			return h.log, err
		}
		s.log.Info("a log of an earlier topic of this name is deleted", "log", tp.String(), "topic_id", s.TopicID(tp).String())
		if err := s.delete(tp, h); err != nil {
			return nil, err
		}
	}
	d, err := s.place(isNew)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tp, err)
	}
	l, err := s.make(d, tp, id, c)
	if err != nil {
		s.settleFailure(d, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.closed {
		l.Discard()
		err = ErrClosed
	}
	if err != nil {
		d.count--
		return nil, err
	}
	s.logs[tp] = &held{tp: tp, log: l, dir: d, id: id}
	return l, nil
}

// claim compares the id of a log that is here with the wanted one: it is stale when they differ. An unknown id is
// learnt. The caller holds the name's lock.
func (s *Store) claim(tp TP, h *held, id UUID) (stale bool, err error) {
	have := s.TopicID(tp)
	if id == have || id == (UUID{}) {
		return false, nil
	}
	if have != (UUID{}) {
		return true, nil
	}
	dir := h.dir.join(dirName(tp))
	h.dir.doubt(dir)
	err = h.dir.marks.lower(h.mark.Load(), tp) // one that was not trusted is not to be found again
	if err == nil {
		err = h.dir.writeTopicID(dir, id)
	}
	if err != nil {
		s.settleFailure(h.dir, err)
		return false, err
	}
	s.mu.Lock()
	h.id = id
	s.mu.Unlock()
	return false, nil
}

// place takes a place in the online directory with the fewest logs. One whose disk hangs is not taken while there are others:
// nobody who waits for the new log would be served.
func (s *Store) place(isNew bool) (*dataDir, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	var best *dataDir
	bestHangs := false
	for _, d := range s.dirs {
		err := d.offline()
		if err != nil && !d.opened && !isNew {
			return nil, err
		}
		if err != nil {
			continue
		}
		hangs := s.c.Hangs != nil && s.c.Hangs(d.path)
		if best == nil || bestHangs && !hangs || hangs == bestHangs && d.count < best.count {
			best, bestHangs = d, hangs
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%w: %w", ErrOffline, s.anyOnline())
	}
	best.count++
	return best, nil
}

// make creates the log's directory and opens the log in it. What checkpoints say of an earlier log of
// the name goes first.
func (s *Store) make(d *dataDir, tp TP, id UUID, c commitlog.Config) (*commitlog.Log, error) {
	if err := s.purge(d, tp); err != nil {
		return nil, err
	}
	dir := d.join(dirName(tp))
	err := d.makeLogDir(tp, id)
	var l *commitlog.Log
	if err == nil {
		l, err = commitlog.Open(context.Background(), s.options(d, tp, c))
	}
	if err != nil {
		d.forget(dir)
		d.fs.RemoveAll(dir) // a courtesy: the next start would load an empty log
		return nil, err
	}
	return l, nil
}

// purge takes back what d's checkpoints say of tp, and with it of all logs that are gone: who recreates a topic of many
// partitions waits for one write, not for one each.
func (s *Store) purge(d *dataDir, tp TP) error {
	for _, f := range []*offsetFile{d.recovery, d.starts, d.marks} {
		dead := []TP{tp}
		if f.get(tp) > 0 {
			dead = f.named(func(other TP) bool { return other == tp || s.find(other) == nil })
		}
		if err := f.lower(0, dead...); err != nil {
			return err
		}
	}
	return nil
}

// Delete closes the log and renames its directory at once; the files go in the background, after
// file.delete.delay.ms. A log that is not here is no error; one whose directory is offline is ErrOffline.
func (s *Store) Delete(tp TP) error {
	defer s.names.Lock(tp)()
	h := s.find(tp)
	if h == nil {
		return nil
	}
	if err := h.dir.offline(); err != nil {
		return err
	}
	return s.delete(tp, h)
}

// delete is called with the name's lock held.
func (s *Store) delete(tp TP, h *held) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	delete(s.logs, tp)
	h.dir.count--
	s.mu.Unlock()
	delayMs := max(0, h.log.Config().FileDeleteDelayMs)
	h.log.Discard()
	from, to := h.dir.join(dirName(tp)), h.dir.join(deletedName(tp))
	h.dir.forget(from)
	if err := s.c.FS.Rename(from, to); err != nil {
		if disk.IsNotExist(err) {
			s.log.Warn("a deleted log's directory was gone already", "path", from)
			return nil
		}
		s.failDir(h.dir, err)
		return fmt.Errorf("delete %s: %w", filepath.Base(from), err)
	}
	h.dir.trash.add(trashed{dir: h.dir, path: to, dueMs: s.c.Clock.NowMs() + delayMs})
	return nil
}

// settleFailure puts a directory offline when err says that its disk failed.
func (s *Store) settleFailure(d *dataDir, err error) {
	if deviceFailed(err) {
		s.failDir(d, err)
	}
}
