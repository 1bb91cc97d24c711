// Package inspect reads data directories from outside, for `platter log dump` and `platter log verify`: those of
// Platter and those of Apache Kafka since 0.11, and what older Kafkas left in them (magic 0 and 1).
//
// It never writes. Dump shows what is in a file and works beside a running broker; Verify compares the
// files of a log with each other and wants the directory for itself. What they read is taken for hostile: memory is
// bounded by one batch, and what is wrong is reported, with file and position, and never a panic.
package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"platter/engine/batch"
	"platter/engine/checkpoint"
	"platter/engine/epoch"
	"platter/engine/segment"
	"platter/io/disk"
)

// inflateBytesMax bounds what one batch may inflate to.
const inflateBytesMax = 1 << 30

// Kind is what a file in a data directory is.
type Kind int

// Kinds, in the order in which a directory is shown.
const (
	Other Kind = iota
	Meta
	Partition
	Epochs
	Offsets
	Snapshot
	Log
	Index
	TimeIndex
	TxnIndex
)

// KindOf tells a file's kind by its name, and the offset that the name carries.
func KindOf(name string) (k Kind, offset int64) {
	switch name {
	case checkpoint.MetaFile:
		return Meta, 0
	case checkpoint.PartitionFile:
		return Partition, 0
	case epoch.FileName:
		return Epochs, 0
	case checkpoint.RecoveryPointFile, checkpoint.HighWatermarkFile, checkpoint.LogStartOffsetFile, checkpoint.CleanerOffsetFile:
		return Offsets, 0
	}
	offset, suffix, ok := segment.ParseName(name)
	if !ok {
		return Other, 0
	}
	switch suffix {
	case segment.LogSuffix:
		return Log, offset
	case segment.IndexSuffix:
		return Index, offset
	case segment.TimeIndexSuffix:
		return TimeIndex, offset
	case segment.TxnIndexSuffix:
		return TxnIndex, offset
	case segment.SnapshotSuffix:
		return Snapshot, offset
	}
	return Other, 0
}

// Find lists the files below path that Dump can show, in its order: path itself when it is a file, else those in the
// directory, and, of a data directory, those of its logs.
func Find(fs disk.FS, path string) ([]string, error) {
	in, err := fs.Stat(path)
	if err != nil {
		return nil, err
	}
	if !in.IsDir {
		if k, _ := KindOf(filepath.Base(path)); k == Other {
			return nil, fmt.Errorf("%s: not the name of a log's file: want <20 digits>.log, .index, .timeindex, .txnindex or .snapshot, %s or a checkpoint",
				path, epoch.FileName)
		}
		return []string{path}, nil
	}
	files, dirs, err := list(fs, path)
	if err != nil {
		return nil, err
	}
	for _, d := range dirs {
		inner, _, err := list(fs, d)
		if err != nil {
			return nil, err
		}
		files = append(files, inner...)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no log's files in it", path)
	}
	return files, nil
}

// list gives a directory's known files, in the order of Dump, and its directories.
func list(fs disk.FS, dir string) (files, dirs []string, err error) {
	infos, err := fs.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	type known struct {
		path   string
		offset int64
		kind   Kind
	}
	var found []known
	for _, in := range infos {
		if in.IsDir {
			dirs = append(dirs, filepath.Join(dir, in.Name))
		} else if k, o := KindOf(in.Name); k != Other {
			found = append(found, known{filepath.Join(dir, in.Name), o, k})
		}
	}
	slices.SortStableFunc(found, func(a, b known) int {
		if a.offset != b.offset && a.kind >= Snapshot && b.kind >= Snapshot { // a segment's files together
			return int(min(1, max(-1, a.offset-b.offset)))
		}
		return int(a.kind - b.kind)
	})
	for _, f := range found {
		files = append(files, f.path)
	}
	return files, dirs, nil
}

// entry is one batch, or one entry of an old message set, of a .log file.
type entry struct {
	pos, size int64
	b         batch.Batch       // v2: whole, or the header alone when scanning headers
	old       batch.LegacyEntry // magic 0 and 1; b is nil then
}

func (e *entry) legacy() bool { return e.b == nil }

// first and last are the offsets that the entry covers. Those inside an old wrapper are not known without
// inflating it.
func (e *entry) first() int64 {
	if e.legacy() {
		return e.old.Offset
	}
	return e.b.BaseOffset()
}

func (e *entry) last() int64 {
	if e.legacy() {
		return e.old.Offset
	}
	return e.b.LastOffset()
}

func (e *entry) maxTimestamp() int64 {
	if e.legacy() {
		return e.old.TimestampMs
	}
	return e.b.MaxTimestamp()
}

func (e *entry) checkCRC() error {
	if e.legacy() {
		return e.old.CheckCRC()
	}
	return batch.CheckCRC(e.b)
}

// errStop ends a scan without an error.
var errStop = errors.New("stop")

// scanLog calls fn for each entry of a .log file, until the end or the first place that cannot be read as
// one: then the error is a *segment.CorruptError. CRCs are fn's to check. fn may return errStop.
func scanLog(r segment.ReaderAt, size int64, headersOnly bool, fn func(*entry) error) error {
	next := int64(0) // the offset behind the last entry
	for pos := int64(0); pos < size; {
		end, err := scanBatches(r, pos, size, &next, headersOnly, fn)
		var corrupt *segment.CorruptError
		if !errors.As(err, &corrupt) {
			if errors.Is(err, errStop) {
				return nil
			}
			return err
		}
		again, oldErr := scanOld(r, end, size, &next, fn)
		switch {
		case errors.Is(oldErr, errStop):
			return nil
		case oldErr != nil:
			return oldErr
		case again == end: // no old entry either
			return err
		}
		pos = again
	}
	return nil
}

// zeroTail says whether a file holds nothing but zeros from pos on: room that Kafka has preallocated, or a size that a
// power cut kept without the bytes. The next start cuts it.
func zeroTail(r segment.ReaderAt, pos, size int64) bool {
	buf := make([]byte, 64<<10)
	for pos < size {
		p := buf[:min(int64(len(buf)), size-pos)]
		if n, _ := r.ReadAt(p, pos); n < len(p) {
			return false
		}
		for _, b := range p {
			if b != 0 {
				return false
			}
		}
		pos += int64(len(p))
	}
	return true
}

func scanBatches(r segment.ReaderAt, pos, size int64, next *int64, headersOnly bool, fn func(*entry) error) (end int64, err error) {
	sc := segment.NewScanner(r, pos, size, segment.ScanOptions{Whole: !headersOnly, NextOffset: *next})
	defer sc.Close()
	for sc.Next() {
		if err := fn(&entry{pos: sc.Pos(), size: sc.SizeBytes(), b: sc.Batch()}); err != nil {
			return 0, err
		}
		*next = sc.Batch().LastOffset() + 1
	}
	return sc.End(), sc.Err()
}

// oldBytesMax bounds one entry of an old message set.
const oldBytesMax = 1 << 30

// scanOld reads entries of old message sets from pos on, as long as there are some.
func scanOld(r segment.ReaderAt, pos, size int64, next *int64, fn func(*entry) error) (end int64, err error) {
	const magicPos = 16
	var head [magicPos + 1]byte
	var buf []byte
	for size-pos >= int64(len(head)) {
		if _, err := r.ReadAt(head[:], pos); err != nil {
			return pos, err
		}
		if _, ok := batch.LegacyMagic(head[:]); !ok {
			return pos, nil
		}
		n := int64(int32(binary.BigEndian.Uint32(head[8:]))) + batch.LogOverheadBytes
		if n < int64(len(head)) || n > oldBytesMax {
			return pos, &segment.CorruptError{Pos: pos, Cause: batch.ErrLength}
		}
		if n > size-pos {
			return pos, &segment.CorruptError{Pos: pos, Cause: segment.ErrTorn}
		}
		buf = slices.Grow(buf[:0], int(n))[:n]
		if _, err := r.ReadAt(buf, pos); err != nil {
			return pos, err
		}
		old, err := batch.ReadLegacy(buf)
		if err != nil {
			return pos, &segment.CorruptError{Pos: pos, Cause: err}
		}
		if old.Offset < *next {
			return pos, &segment.CorruptError{Pos: pos, Cause: segment.ErrOffset}
		}
		if err := fn(&entry{pos: pos, size: n, old: old}); err != nil {
			return pos, err
		}
		*next = old.Offset + 1
		pos += n
	}
	return pos, nil
}

// printable shows hostile bytes in one line: as they are when they are plain text, else quoted.
func printable(p []byte) string {
	s := string(p)
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' || r >= 0x80 && r < 0xa0 }) {
		return fmt.Sprintf("%q", s)
	}
	return s
}
