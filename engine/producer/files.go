package producer

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"platter/engine/checkpoint"
	"platter/io/disk"
)

// snapshotBytesMax bounds the memory that reading one snapshot may take: 5.8 million producers.
const snapshotBytesMax = 256 << 20

// SnapshotName is the file name of the snapshot at offset.
func SnapshotName(offset int64) string { return fmt.Sprintf("%020d%s", offset, SnapshotSuffix) }

// ParseSnapshotName gives the offset in a snapshot file's name; ok is false for any other name.
func ParseSnapshotName(name string) (offset int64, ok bool) {
	digits, found := strings.CutSuffix(name, SnapshotSuffix)
	if !found || digits == "" {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	offset, err := strconv.ParseInt(digits, 10, 64)
	return offset, err == nil
}

// ListSnapshots gives the offsets of the snapshots in a partition's directory, ascending.
func ListSnapshots(fs disk.FS, dir string) ([]int64, error) {
	infos, err := fs.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	return SnapshotsIn(infos), nil
}

// SnapshotsIn is ListSnapshots over a directory listing that the caller has already.
func SnapshotsIn(infos []disk.Info) []int64 {
	var offsets []int64
	for _, in := range infos { // sorted by name, hence by offset: all names are 20 digits long
		if o, ok := ParseSnapshotName(in.Name); ok && !in.IsDir {
			offsets = append(offsets, o)
		}
	}
	return offsets
}

// WriteSnapshot writes the state as the snapshot at offset. It is not synced: after a power
// cut its CRC tells whether it is whole, and if not, an older one and a longer replay do.
func (s *State) WriteSnapshot(fs disk.FS, dir string, offset int64) (err error) {
	f, err := fs.Open(filepath.Join(dir, SnapshotName(offset)), disk.Create)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	// Only what is there: ext4 writes a file back when it is closed after a truncation to nothing.
	if size, err := f.Size(); err != nil {
		return err
	} else if size > 0 {
		if err := f.Truncate(0); err != nil {
			return err
		}
	}
	_, err = f.WriteV([][]byte{EncodeSnapshot(s.Snapshot())}, 0)
	return err
}

// ReadSnapshot reads one snapshot file: ErrCorruptSnapshot, or the disk's own error.
func ReadSnapshot(fs disk.FS, path string) ([]SnapshotEntry, error) {
	p, err := checkpoint.ReadFile(fs, path, snapshotBytesMax)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return nil, fmt.Errorf("%w: %w", ErrCorruptSnapshot, err)
	}
	if err != nil {
		return nil, err
	}
	entries, err := DecodeSnapshot(p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return entries, nil
}

// Load replaces the state by the newest good snapshot in (start, end] and returns the offset from which the
// log's batches have to be applied: start when there is no such snapshot. Snapshots outside of that
// range and corrupt ones are deleted, as Kafka does. offsets is from ListSnapshots or SnapshotsIn.
func (s *State) Load(fs disk.FS, dir string, offsets []int64, start, end, nowMs, expirationMs int64) (from int64, err error) {
	s.Clear()
	from = start
	loaded := false
	for i := len(offsets) - 1; i >= 0; i-- {
		o, path := offsets[i], filepath.Join(dir, SnapshotName(offsets[i]))
		if o > start && o <= end {
			if loaded {
				continue
			}
			entries, err := ReadSnapshot(fs, path)
			if err == nil {
				s.Restore(entries, nowMs, expirationMs)
				from, loaded = o, true
				continue
			}
			if !errors.Is(err, ErrCorruptSnapshot) {
				return from, err
			}
		}
		if err := remove(fs, path); err != nil {
			return from, err
		}
	}
	return from, nil
}

// RemoveSnapshots deletes the snapshots of dir for which drop says so, and reports whether any went. The
// removal is durable after a SyncDir. A truncation does it, and syncs, before it cuts the log: a snapshot
// that outlives its records would judge other records later.
func RemoveSnapshots(fs disk.FS, dir string, drop func(offset int64) bool) (removed bool, err error) {
	offsets, err := ListSnapshots(fs, dir)
	if err != nil {
		return false, err
	}
	for _, o := range offsets {
		if !drop(o) {
			continue
		}
		if err := remove(fs, filepath.Join(dir, SnapshotName(o))); err != nil {
			return removed, err
		}
		removed = true
	}
	return removed, nil
}

func remove(fs disk.FS, path string) error {
	if err := fs.Remove(path); err != nil && !disk.IsNotExist(err) {
		return err
	}
	return nil
}
