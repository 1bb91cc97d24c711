package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"platter/engine/checkpoint"
	"platter/engine/segment"
	"platter/engine/store"
	"platter/io/disk"
)

// Severity says what a finding means.
type Severity int

const (
	// Note: unusual, but a log can be like that: holes that compaction left, an index that will be rebuilt.
	Note Severity = iota
	// Bad: what is stored is not what was written, or would be cut at the next start.
	Bad
)

func (s Severity) String() string {
	if s == Bad {
		return "BAD"
	}
	return "note"
}

// Finding is one thing that was noticed. Pos is a byte position in the file, -1 for all of it.
type Finding struct {
	Severity Severity
	Path     string
	Pos      int64
	Text     string
}

func (f Finding) String() string {
	if f.Pos < 0 {
		return fmt.Sprintf("%s %s: %s", f.Severity, f.Path, f.Text)
	}
	return fmt.Sprintf("%s %s at %d: %s", f.Severity, f.Path, f.Pos, f.Text)
}

// Summary counts what was verified.
type Summary struct {
	Logs, Segments, Batches, Records, Bytes int64
	Bad, Notes                              int64
}

// Verifier checks data directories and the directories of single logs. Its fields are set before use.
type Verifier struct {
	FS disk.FS
	// Shallow leaves the records inside batches out: their CRC is checked, and they are not decoded.
	Shallow bool
	// Report is told of each finding as it is found.
	Report func(Finding)
	// Progress, when set, is told how many more bytes of .log files were read.
	Progress func(bytes int64)

	sum   Summary
	clean bool           // of the target
	shown map[string]int // findings by path
}

// findingsMax bounds how many findings of one file are reported: a broken index has one an entry.
const findingsMax = 20

// ErrNoLogs: a directory is neither a data directory nor a log's.
var ErrNoLogs = errors.New("neither a data directory nor a log's directory")

// Target is what Verify was asked to look at: a data directory with its logs, or one log.
type Target struct {
	DataDir string   // "" when one log alone was asked for
	Logs    []string // directories
	Bytes   int64    // of the .log files
	clean   bool     // it was closed in order: nothing may be unfinished
	lock    io.Closer
}

// Open finds the logs below dir and takes the data directory's lock, so that no broker writes to it meanwhile:
// disk.ErrLocked when one has it. A directory without a lock file was never open; nothing is created.
func (v *Verifier) Open(dir string) (*Target, error) {
	dir = filepath.Clean(dir)
	_, dirs, err := list(v.FS, dir)
	if err != nil {
		return nil, err
	}
	t := &Target{DataDir: dir}
	for _, d := range dirs {
		if _, ok := store.ParseDir(filepath.Base(d)); ok {
			t.Logs = append(t.Logs, d)
		}
	}
	if isLog, err := v.isLog(dir); err != nil {
		return nil, err
	} else if isLog {
		t.Logs, t.DataDir = []string{dir}, ""
	} else if has, err := exists(v.FS, filepath.Join(dir, checkpoint.MetaFile)); err != nil {
		return nil, err
	} else if len(t.Logs) == 0 && !has {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoLogs)
	}
	for _, l := range t.Logs {
		segs, err := segment.List(v.FS, l)
		if err != nil {
			return nil, err
		}
		for _, s := range segs {
			t.Bytes += s.LogBytes
		}
	}
	return t, v.lock(t, dir)
}

// Close gives the lock back.
func (t *Target) Close() error {
	if t.lock == nil {
		return nil
	}
	return t.lock.Close()
}

func (v *Verifier) lock(t *Target, dir string) error {
	root := t.DataDir
	if root == "" {
		root = filepath.Dir(dir)
	}
	var err error
	if t.clean, err = exists(v.FS, filepath.Join(root, checkpoint.CleanShutdownFile)); err != nil {
		return err
	}
	path := filepath.Join(root, checkpoint.LockFile)
	has, err := exists(v.FS, path)
	if err != nil || !has {
		return err
	}
	t.lock, err = v.FS.Lock(path)
	if errors.Is(err, disk.ErrLocked) {
		return fmt.Errorf("%s is in use: stop the broker first: %w", root, err)
	}
	return err
}

// isLog says whether dir is one log's directory.
func (v *Verifier) isLog(dir string) (bool, error) {
	segs, err := segment.List(v.FS, dir)
	if err != nil || len(segs) > 0 {
		return err == nil, err
	}
	return exists(v.FS, filepath.Join(dir, checkpoint.PartitionFile))
}

// Verify checks what Open found, and adds to the summary. The error is the disk's or ctx's; what is wrong with
// the data is reported.
func (v *Verifier) Verify(ctx context.Context, t *Target) error {
	v.clean = t.clean
	ends := map[checkpoint.Key]int64{}
	for _, dir := range t.Logs {
		end, err := v.log(ctx, dir)
		if err != nil {
			return err
		}
		if tp, ok := store.ParseDir(filepath.Base(dir)); ok {
			ends[checkpoint.Key(tp)] = end
		}
	}
	if t.DataDir == "" {
		return nil
	}
	return v.dataDir(t.DataDir, ends)
}

// Summary is what was verified so far.
func (v *Verifier) Summary() Summary { return v.sum }

func (v *Verifier) report(s Severity, path string, pos int64, format string, args ...any) {
	if s == Bad {
		v.sum.Bad++
	} else {
		v.sum.Notes++
	}
	if v.Report == nil {
		return
	}
	if v.shown == nil {
		v.shown = map[string]int{}
	}
	v.shown[path]++
	switch n := v.shown[path]; {
	case n <= findingsMax:
		v.Report(Finding{s, path, pos, fmt.Sprintf(format, args...)})
	case n == findingsMax+1:
		v.Report(Finding{s, path, -1, "there is more of that"})
	}
}

// dataDir checks the data directory's own files against the ends of its logs.
func (v *Verifier) dataDir(dir string, ends map[checkpoint.Key]int64) error {
	path := filepath.Join(dir, checkpoint.MetaFile)
	p, err := checkpoint.ReadFile(v.FS, path, checkpoint.FileBytesMax)
	switch {
	case disk.IsNotExist(err):
		v.report(Note, path, -1, "is missing: the directory has no owner")
	case err == nil:
		_, err = checkpoint.ParseMeta(p)
		fallthrough
	default:
		if err := v.unreadable(path, err); err != nil {
			return err
		}
	}
	for _, name := range []string{checkpoint.RecoveryPointFile, checkpoint.HighWatermarkFile,
		checkpoint.LogStartOffsetFile, checkpoint.CleanerOffsetFile} {
		path := filepath.Join(dir, name)
		offsets, err := checkpoint.ReadOffsets(v.FS, path)
		if err := v.unreadable(path, err); err != nil {
			return err
		}
		for k, o := range offsets {
			if end, ok := ends[k]; ok && o > end {
				v.report(Bad, path, -1, "%s-%d: offset %d lies beyond the log's end, %d", k.Topic, k.Partition, o, end)
			}
		}
	}
	return nil
}

// unreadable reports a file whose content is corrupt; other errors come back.
func (v *Verifier) unreadable(path string, err error) error {
	if err != nil && errors.Is(err, checkpoint.ErrCorrupt) {
		v.report(Bad, path, -1, "%s", without(path, err))
		return nil
	}
	return err
}

// without is an error's text without the path that is named beside it.
func without(path string, err error) string { return strings.TrimPrefix(err.Error(), path+": ") }

func exists(fs disk.FS, path string) (bool, error) {
	_, err := fs.Stat(path)
	if disk.IsNotExist(err) {
		return false, nil
	}
	return err == nil, err
}
