package segment

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"platter/io/disk"
)

// Suffixes of the files in a partition's directory. What ends with Deleted waits to be removed; Cleaned
// and Swap are the two stages of a compaction's replacement (Kafka's LogFileUtils).
const (
	LogSuffix       = ".log"
	IndexSuffix     = ".index"
	TimeIndexSuffix = ".timeindex"
	TxnIndexSuffix  = ".txnindex"
	SnapshotSuffix  = ".snapshot"
	DeletedSuffix   = ".deleted"
	CleanedSuffix   = ".cleaned"
	SwapSuffix      = ".swap"
)

const nameDigits = 20

func name(offset int64, suffix string) string { return fmt.Sprintf("%020d%s", offset, suffix) }

// LogName, IndexName, TimeIndexName, TxnIndexName and SnapshotName are file names for an offset.
func LogName(base int64) string        { return name(base, LogSuffix) }
func IndexName(base int64) string      { return name(base, IndexSuffix) }
func TimeIndexName(base int64) string  { return name(base, TimeIndexSuffix) }
func TxnIndexName(base int64) string   { return name(base, TxnIndexSuffix) }
func SnapshotName(offset int64) string { return name(offset, SnapshotSuffix) }

// ParseName splits the name of a segment's file into its offset and what follows the digits.
func ParseName(name string) (offset int64, suffix string, ok bool) {
	if len(name) <= nameDigits || strings.Trim(name[:nameDigits], "0123456789") != "" {
		return 0, "", false
	}
	offset, err := strconv.ParseInt(name[:nameDigits], 10, 64)
	return offset, name[nameDigits:], err == nil && offset >= 0
}

// Files are one segment's files in a directory: sizes in bytes, -1 for what is missing.
type Files struct {
	Base                                 int64
	LogBytes, IndexBytes, TimeIndexBytes int64
	TxnIndexBytes, SnapshotBytes         int64
	ModTimeMs                            int64 // of the .log file
}

// List finds the segments in dir, by rising base offset. Files that belong to no .log file are left out.
func List(fs disk.FS, dir string) ([]Files, error) {
	infos, err := fs.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	return FromInfos(infos), nil
}

// FromInfos is List over a directory listing that the caller has already.
func FromInfos(infos []disk.Info) []Files {
	byBase := make(map[int64]*Files)
	for _, in := range infos {
		base, suffix, ok := ParseName(in.Name)
		if !ok || in.IsDir {
			continue
		}
		f := byBase[base]
		if f == nil {
			f = &Files{Base: base, LogBytes: -1, IndexBytes: -1, TimeIndexBytes: -1, TxnIndexBytes: -1, SnapshotBytes: -1}
			byBase[base] = f
		}
		switch suffix {
		case LogSuffix:
			f.LogBytes, f.ModTimeMs = in.SizeBytes, in.ModTimeMs
		case IndexSuffix:
			f.IndexBytes = in.SizeBytes
		case TimeIndexSuffix:
			f.TimeIndexBytes = in.SizeBytes
		case TxnIndexSuffix:
			f.TxnIndexBytes = in.SizeBytes
		case SnapshotSuffix:
			f.SnapshotBytes = in.SizeBytes
		}
	}
	out := make([]Files, 0, len(byBase))
	for _, f := range byBase {
		if f.LogBytes >= 0 {
			out = append(out, *f)
		}
	}
	slices.SortFunc(out, func(a, b Files) int { return cmp.Compare(a.Base, b.Base) })
	return out
}
