package disklab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"platter/io/disk"
)

// A run's files are in a directory of its own, which it holds by a lock that ends with the process: so the next run knows what
// belongs to one that goes on, and what a killed one has left.
const (
	ownPrefix = "platter-bench-disk-"
	ownLock   = "lock"
)

var ownCount atomic.Int64

// ownDir makes the directory in dir and locks it, after what killed runs have left there has been removed.
func ownDir(fs disk.FS, dir string) (own string, lock io.Closer, err error) {
	if err := sweep(fs, dir); err != nil {
		return "", nil, fmt.Errorf("what a killed run has left: %w", err)
	}
	for {
		own = filepath.Join(dir, fmt.Sprintf("%s%d-%d", ownPrefix, os.Getpid(), ownCount.Add(1)))
		if _, err := fs.Stat(own); err == nil {
			continue
		}
		if err := fs.MkdirAll(own); err != nil {
			return "", nil, err
		}
		lock, err := fs.Lock(filepath.Join(own, ownLock))
		switch {
		case errors.Is(err, disk.ErrLocked): // another run took it for a leftover, at the moment between
			continue
		case errors.Is(err, disk.ErrUnsupported):
			return own, nil, nil
		case err != nil:
			return "", nil, errors.Join(err, fs.RemoveAll(own))
		}
		return own, lock, nil
	}
}

// sweep removes directories of runs that were killed: of our name, with our lock in them, which nobody holds.
func sweep(fs disk.FS, dir string) error {
	infos, err := fs.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, in := range infos {
		left := filepath.Join(dir, in.Name)
		if !in.IsDir || !strings.HasPrefix(in.Name, ownPrefix) {
			continue
		}
		if _, err := fs.Stat(filepath.Join(left, ownLock)); err != nil {
			continue
		}
		lock, err := fs.Lock(filepath.Join(left, ownLock))
		if err != nil { // held, or it went away in between
			continue
		}
		if err := removeOwn(fs, left, lock); err != nil {
			return err
		}
	}
	return nil
}

// removeOwn removes a run's directory and gives up its lock: in this order, so that nobody takes what is going for a leftover; the
// other way round where a file that is held cannot be removed.
func removeOwn(fs disk.FS, own string, lock io.Closer) error {
	err := fs.RemoveAll(own)
	if lock != nil {
		cerr := lock.Close()
		if err != nil {
			err = fs.RemoveAll(own)
		}
		err = errors.Join(err, cerr)
	}
	return err
}
