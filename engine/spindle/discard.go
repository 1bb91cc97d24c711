package spindle

import (
	"errors"
	"path/filepath"
	"time"

	"platter/io/disk"
)

// ErrStopped: a removal was broken off. What is left of the file is to be removed another time.
var ErrStopped = errors.New("removal was stopped")

const (
	// readersMax is how long a removal waits for those who still read the file: cut short, they would lose their connections.
	readersMax  = 10 * time.Minute
	readersLook = 250 * time.Millisecond
)

// Discard removes a file that counts as gone: to the program by its name, and, before this is called, to whoever might need it.
// A large one is cut in steps of CutBytes first, with pauses, since giving back gigabytes at once keeps a disk's journal
// and its head from everything else. One file of a device at a time. The file's directory is synced before the first cut: a file whose
// new name a power cut can take back must then still be whole. Should the process die half-way a shorter file of that
// name is left. Once stop is closed ErrStopped comes back soon.
func (s *Set) Discard(path string, stop <-chan struct{}) error {
	sp := s.of(path)
	if sp == nil || sp.p.CutBytes <= 0 {
		return s.Remove(path)
	}
	info, err := s.FS.Stat(path)
	if err != nil || info.IsDir || info.SizeBytes <= sp.p.CutBytes {
		return s.Remove(path)
	}
	select {
	case sp.cutting <- struct{}{}:
	case <-stop:
		return ErrStopped
	}
	defer func() { <-sp.cutting }()
	if unread, err := s.awaitReaders(sp, path, stop); err != nil {
		return err
	} else if unread {
		if err := s.cut(sp, path, stop); err != nil {
			return err
		}
	}
	return s.Remove(path)
}

// awaitReaders waits until nobody has the file open; false: somebody does not let go.
func (s *Set) awaitReaders(sp *Spindle, path string, stop <-chan struct{}) (unread bool, err error) {
	for waited := time.Duration(0); waited < readersMax; waited += readersLook {
		s.mu.Lock()
		t := s.files[path]
		unread := t == nil || t.opens == 0
		s.mu.Unlock()
		if unread {
			return true, nil
		}
		if err := sp.pause(readersLook, stop); err != nil {
			return false, err
		}
	}
	return false, nil
}

// cut shortens the file step by step, from its end.
func (s *Set) cut(sp *Spindle, path string, stop <-chan struct{}) error {
	if err := s.FS.SyncDir(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := s.FS.Open(path, disk.ReadWrite)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	for size > sp.p.CutBytes {
		size -= sp.p.CutBytes
		if err := f.Truncate(size); err != nil {
			return err
		}
		sp.cuts.Add(1)
		if err := sp.pause(sp.p.CutPause, stop); err != nil {
			return err
		}
	}
	return nil
}

func (sp *Spindle) pause(d time.Duration, stop <-chan struct{}) error {
	select {
	case <-stop:
		return ErrStopped
	case <-sp.clock.After(d):
		return nil
	}
}
