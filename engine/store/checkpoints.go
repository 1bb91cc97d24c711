package store

import (
	"errors"

	"platter/engine/checkpoint"
)

// Checkpoint writes the offset checkpoints of every directory, where they have changed. It runs by itself every
// CheckpointMs. A full disk leaves the old ones, which only makes a later recovery longer.
func (s *Store) Checkpoint() error {
	return errors.Join(s.eachDir(s.writeRecovery), s.eachDir(s.writeMarks))
}

// writeRecovery writes recovery points and log start offsets.
func (s *Store) writeRecovery(d *dataDir) error {
	err := d.recovery.write(func() checkpoint.Offsets {
		return s.gather(d, func(h *held) int64 { return h.log.RecoveryPoint() })
	})
	if err != nil {
		return err
	}
	return s.writeStarts(d)
}

// CheckpointStarts writes the log start offsets of the directories that hold tps: what was trimmed stays
// trimmed after a crash.
func (s *Store) CheckpointStarts(tps ...TP) error {
	dirs := map[*dataDir]bool{}
	for _, tp := range tps {
		if h := s.find(tp); h != nil {
			dirs[h.dir] = true
		}
	}
	return s.eachDir(func(d *dataDir) error {
		if !dirs[d] {
			return nil
		}
		return s.writeStarts(d)
	})
}

func (s *Store) writeStarts(d *dataDir) error {
	// Of a log whose topic id a power cut may still take, no start may be left: the next topic of its
	// name would begin there. (A recovery point comes with a sync, which settles.)
	for _, h := range s.each(d) {
		if h.log.Ends().Start > 0 {
			if _, err := d.settle(h.log.Dir()); err != nil {
				return err
			}
		}
	}
	return d.starts.write(func() checkpoint.Offsets {
		return s.gather(d, func(h *held) int64 { return h.log.Ends().Start })
	})
}

// writeMarks writes the high watermarks. What nobody replicates now keeps the one it had.
func (s *Store) writeMarks(d *dataDir) error {
	return d.marks.write(func() checkpoint.Offsets {
		return s.gather(d, func(h *held) int64 {
			if s.c.HighWatermark != nil {
				if mark, ok := s.c.HighWatermark(h.tp); ok {
					h.mark.Store(mark)
				}
			}
			return h.mark.Load()
		})
	})
}

// gather asks each log of d for an offset; 0 goes without saying.
func (s *Store) gather(d *dataDir, offset func(*held) int64) checkpoint.Offsets {
	logs := s.each(d)
	o := make(checkpoint.Offsets, len(logs))
	for _, h := range logs {
		if v := offset(h); v > 0 {
			o[checkpoint.Key(h.tp)] = v
		}
	}
	return o
}

// eachDir calls fn for the directories that serve. A failed disk puts its directory offline; other errors are
// logged, and returned.
func (s *Store) eachDir(fn func(*dataDir) error) error {
	var errs []error
	for _, d := range s.dirs {
		errs = append(errs, s.inDir(d, fn))
	}
	return errors.Join(errs...)
}

func (s *Store) inDir(d *dataDir, fn func(*dataDir) error) error {
	if d.offline() != nil {
		return nil
	}
	err := fn(d)
	if err != nil {
		s.log.Warn("offset checkpoints were not written", "path", d.path, "error", err)
		s.settleFailure(d, err)
	}
	return err
}
