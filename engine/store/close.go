package store

import (
	"errors"
	"sync"
)

// Close closes all logs in parallel; clean also syncs them and writes .kafka_cleanshutdown. A directory of
// which anything failed gets no mark, and recovers at the next start. Each directory is closed by itself: when Close waits
// for a disk that hangs, the others are done. A second Close does nothing.
func (s *Store) Close(clean bool) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	errs := make([]error, len(s.dirs))
	inParallel(s.c.serial, s.dirs, func(d *dataDir) {
		d.loops.Wait()
		d.work.wait()
		if d.offline() == nil {
			errs[d.index] = s.closeDir(d, clean)
		}
		d.work.wait()
		d.release()
	})
	return errors.Join(errs...)
}

// closeDir closes the logs of one directory and, when all went well, marks the directory clean.
func (s *Store) closeDir(d *dataDir, clean bool) error {
	var mu sync.Mutex
	var errs []error
	inParallel(s.c.serial, s.each(d), func(h *held) {
		if err := h.log.Close(clean); err != nil {
			mu.Lock()
			errs = append(errs, err)
			mu.Unlock()
		}
	})
	if !clean || len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, step := range []func() error{
		func() error { return s.settleAll(d) },
		func() error { return s.writeRecovery(d) },
		func() error { return s.writeMarks(d) },
		d.disarm,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// settleAll makes the directories of all logs durable, also of those that hold nothing yet.
func (s *Store) settleAll(d *dataDir) error {
	var mu sync.Mutex
	var errs []error
	inParallel(s.c.serial, d.youngDirs(), func(dir string) {
		if _, err := d.settle(dir); err != nil {
			mu.Lock()
			errs = append(errs, err)
			mu.Unlock()
		}
	})
	return errors.Join(errs...)
}
