package epoch

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"platter/engine/checkpoint"
	"platter/io/disk"
)

// ErrCorrupt: leader-epoch-checkpoint is not what its format says.
var ErrCorrupt = checkpoint.ErrCorrupt

// file is leader-epoch-checkpoint, in Kafka's line format:
//
//	0                      version
//	2                      number of entries
//	0 0                    epoch, start offset; both rise
//	3 1500
type file struct {
	fs       disk.FS
	dir      string
	durable  bool // a synced version with entries is under the name: a replacement must be synced first
	unsynced bool // the version under the name was never synced
	pending  bool // the history in memory is not written yet
	renamed  bool // the directory entry is not durable yet

	content []Entry // what is under the name
}

func (f *file) path() string { return filepath.Join(f.dir, FileName) }

func (f *file) read() ([]Entry, error) {
	p, err := checkpoint.ReadFile(f.fs, f.path(), checkpoint.FileBytesMax)
	if disk.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := Parse(p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path(), err)
	}
	// Whether a former process synced it is unknown: take the careful side both ways.
	f.durable, f.unsynced, f.renamed = len(entries) > 0, true, true
	f.content = entries
	return entries, nil
}

// write replaces the file, unless it says that already. Synced before it takes the name if what it
// replaces matters.
func (f *file) write(entries []Entry) error {
	if len(entries) > 0 && slices.Equal(entries, f.content) {
		f.pending = false
		return nil
	}
	err := f.replace(Format(entries))
	if err != nil {
		return err
	}
	f.unsynced, f.pending, f.renamed = !f.durable, false, true
	f.content = slices.Clone(entries)
	return nil
}

func (f *file) replace(p []byte) (err error) {
	tmp := f.path() + ".tmp"
	w, err := f.fs.Open(tmp, disk.Create)
	if err != nil {
		return err
	}
	err = w.Truncate(0)
	if err == nil {
		_, err = w.WriteV([][]byte{p}, 0)
	}
	if err == nil && f.durable {
		err = w.Sync()
	}
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = f.fs.Rename(tmp, f.path())
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(f.fs.Remove(tmp)))
	}
	return nil
}

// sync makes what is under the name durable, writing first what is pending.
func (f *file) sync(entries []Entry) error {
	if f.pending {
		if err := f.write(entries); err != nil {
			return err
		}
	}
	if f.unsynced {
		w, err := f.fs.Open(f.path(), disk.ReadWrite)
		if err != nil {
			return err
		}
		err = w.Sync()
		if cerr := w.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
		f.unsynced = false
	}
	if f.renamed {
		if err := f.fs.SyncDir(f.dir); err != nil {
			return err
		}
		f.renamed, f.durable = false, len(entries) > 0
	}
	return nil
}

func ignoreMissing(err error) error {
	if disk.IsNotExist(err) {
		return nil
	}
	return err
}

// Parse reads the file's bytes; every error is ErrCorrupt.
func Parse(p []byte) ([]Entry, error) {
	var entries []Entry
	err := checkpoint.ParseLines(p, func(line []byte) error {
		var v [2]int64
		if err := checkpoint.ParseInts(line, v[:], 32, 64); err != nil {
			return err
		}
		e := Entry{int32(v[0]), v[1]}
		if e.Epoch < 0 || e.StartOffset < 0 {
			return fmt.Errorf("%v is negative", e)
		}
		if n := len(entries); n > 0 && (entries[n-1].Epoch >= e.Epoch || entries[n-1].StartOffset >= e.StartOffset) {
			return fmt.Errorf("%v does not rise above %v", e, entries[n-1])
		}
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// Format returns the file's bytes.
func Format(entries []Entry) []byte {
	p := checkpoint.AppendLinesHeader(nil, len(entries))
	for _, e := range entries {
		p = append(strconv.AppendInt(p, int64(e.Epoch), 10), ' ')
		p = append(strconv.AppendInt(p, e.StartOffset, 10), '\n')
	}
	return p
}
