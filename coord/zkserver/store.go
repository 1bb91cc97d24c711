package zkserver

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"platter/coord/tree"
	"platter/io/clock"
	"platter/io/disk"
)

const (
	lockName   = ".lock"
	logPrefix  = "log."
	snapPrefix = "snapshot."
	tmpSuffix  = ".tmp"
	// growBytes is written as zeros ahead of the log's end: a sync inside the file's size is cheaper
	// than one that moves it. So is one that finds the zeros on the disk already: they are written when less than
	// growAheadBytes are left, and between two syncs.
	growBytes      = 256 << 10
	growAheadBytes = growBytes / 2
	// quickSync is a sync beside which a change of goroutines counts. On a slower disk a connection's reader
	// does not commit: it goes on reading.
	quickSync = 2 * time.Millisecond
	// swiftSync is one that costs less than what goes on around it when many write: for its time nobody else need
	// be heard.
	swiftSync = 500 * time.Microsecond
	// snapAfterBytes of log, or twice the size of the last snapshot if that is more, make a new one due.
	snapAfterBytes = 8 << 20
	// snapRetainMin is how many snapshots stay at least, with the logs behind the oldest: ZooKeeper's own
	// least autopurge.snapRetainCount.
	snapRetainMin = 3
)

// store is the data directory: snapshot.<zxid> and log.<zxid>, hexadecimal, with the frames of
// frames.go. A snapshot holds the state as of its zxid; a log the entries from its zxid on, in the
// order of their zxids without a gap, one frame for all that one sync covered:
//
//	payload  {length u32 | entry}*
//
// A frame is written only after the one before it was synced. So a damaged frame with nothing whole
// behind it was being written when the power went: the torn tail, never acknowledged, is cut. With a
// whole frame behind it, or in any log but the last, it is damage to what was acknowledged: an error.
//
// What is assumed of the disk: a sync that succeeds has made durable what was written before it and since the last
// one that failed; bytes that were written and not synced may survive in any subset of sectors, and be read until then.
//
// The committer alone appends and rolls; one goroutine at a time writes a snapshot.
type store struct {
	fs     disk.FS
	dir    string // of snapshots
	logDir string
	log    *slog.Logger
	locks  []io.Closer

	file   disk.File // the last log; nil until something is written
	salt   uint32
	pos    int64 // where the next frame goes
	end    int64 // the file's size: zeros from pos on
	frame  []byte
	zeros  []byte
	since  int64 // bytes of log since the last snapshot
	writes int   // and entries, of those that this process wrote

	quick   atomic.Bool  // the last sync took less than quickSync
	syncs   atomic.Int64 // about how long a sync takes now (ns); the committer's to change
	snapped atomic.Int64 // the last snapshot's size in bytes

	// Of whoever writes a snapshot:
	clock      clock.Clock
	snapRetain int           // at least snapRetainMin
	snapCount  int           // entries that make a snapshot due; 0: bytes alone do
	purgeEvery time.Duration // 0: after every snapshot; below: never
	purged     time.Time     // zero: not yet
}

func hexName(prefix string, zxid int64) string { return fmt.Sprintf("%s%016x", prefix, uint64(zxid)) }

// errFull: the disk has no room, or the process no descriptor for another file. Nothing of what was to be appended
// is on the disk, and the next append may succeed.
var errFull = errors.New("no room for the coordinator's log")

// append makes entries durable. But for errFull an error is final.
func (st *store) append(entries []*proposal) error {
	if st.file == nil {
		if err := st.create(entries[0].entry.Zxid); err != nil {
			return err
		}
	}
	b := beginFrame(st.frame[:0])
	for _, p := range entries {
		at := len(b)
		b = p.entry.Append(append(b, 0, 0, 0, 0))
		binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	}
	sealFrame(b, st.salt, st.pos)
	if st.frame = b; cap(b) > 2*growBytes {
		st.frame = nil
	}
	if err := st.write(b); err != nil {
		return err
	}
	began := time.Now()
	if err := st.file.Sync(); err != nil {
		return err
	}
	st.took(time.Since(began))
	st.pos += int64(len(b))
	st.since += int64(len(b))
	st.writes += len(entries)
	return nil
}

// took notes how long a sync took.
func (st *store) took(d time.Duration) {
	st.quick.Store(d < quickSync)
	st.syncs.Store((7*st.syncs.Load() + int64(min(d, 8*swiftSync))) / 8)
}

// swift reports whether syncs take less than swiftSync.
func (st *store) swift() bool { return st.syncs.Load() < int64(swiftSync) }

// write puts a frame at pos, and zeros behind it when the file must grow.
func (st *store) write(b []byte) error {
	bufs := [][]byte{b}
	end := st.pos + int64(len(b))
	if end > st.end {
		bufs = append(bufs, st.zeros)
		end += int64(len(st.zeros))
	}
	_, err := st.file.WriteV(bufs, st.pos)
	if errors.Is(err, disk.ErrFull) { // perhaps there is room without the zeros
		end = st.pos + int64(len(b))
		_, err = st.file.WriteV(bufs[:1], st.pos)
	}
	if err == nil {
		st.end = max(st.end, end)
		return nil
	}
	if !errors.Is(err, disk.ErrFull) {
		return err
	}
	// Part of the frame may be there: it is refused, so it must not come back after a crash.
	if err := st.file.Truncate(st.pos); err != nil {
		return err
	}
	if err := st.file.Sync(); err != nil {
		return err
	}
	st.end = st.pos
	return fmt.Errorf("%w: %w", errFull, err)
}

// growAhead writes zeros behind the log's end when few are left there, and has the disk begin with them: the next sync
// need not wait for them. When it fails, write does it.
func (st *store) growAhead() {
	if st.file == nil || st.end-st.pos >= growAheadBytes {
		return
	}
	if _, err := st.file.WriteV([][]byte{st.zeros}, st.end); err != nil {
		return
	}
	st.file.WriteBehind(st.end, growBytes)
	st.end += growBytes
}

// create starts the log whose first entry has zxid.
func (st *store) create(zxid int64) error {
	path := filepath.Join(st.logDir, hexName(logPrefix, zxid))
	var salt [4]byte
	rand.Read(salt[:])
	head := fileHeader{logMagic, binary.BigEndian.Uint32(salt[:]), zxid}
	f, err := st.fs.Open(path, disk.Create)
	if err != nil {
		return refusal(err)
	}
	if err := st.begin(f, head.append(nil)); err != nil {
		f.Close()
		st.fs.Remove(path)
		return refusal(err)
	}
	st.file, st.salt = f, head.salt
	st.pos, st.end = fileHeaderBytes, fileHeaderBytes
	return nil
}

// begin makes an empty file with a header durable.
func (st *store) begin(f disk.File, head []byte) error {
	err := f.Truncate(0)
	if err == nil {
		_, err = f.WriteV([][]byte{head}, 0)
	}
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return st.fs.SyncDir(st.logDir)
}

// refusal makes errFull of what passes by itself and has left nothing behind.
func refusal(err error) error {
	for _, passes := range []error{disk.ErrFull, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, passes) {
			return fmt.Errorf("%w: %w", errFull, err)
		}
	}
	return err
}

// roll ends the log: the next entry starts another one. What was written is durable already, and the
// zeros behind it do no harm when they stay.
func (st *store) roll() {
	st.since, st.writes = 0, 0
	if st.file == nil {
		return
	}
	err := errors.Join(st.file.Truncate(st.pos), st.file.Close())
	if err != nil {
		st.log.Warn("coordinator: ending a log", "err", err)
	}
	st.file = nil
}

// snapshotDue reports whether so much log has gathered that a snapshot is worth its while.
func (st *store) snapshotDue() bool {
	return st.since > max(snapAfterBytes, 2*st.snapped.Load()) || st.snapCount > 0 && st.writes >= st.snapCount
}

// saveSnapshot makes a snapshot durable under its name, then removes what it makes superfluous.
func (st *store) saveSnapshot(c *tree.Capture) error {
	path := filepath.Join(st.dir, hexName(snapPrefix, c.Zxid()))
	f, err := st.fs.Open(path+tmpSuffix, disk.Create)
	if err != nil {
		return err
	}
	size, err := writeSnapshot(f, c)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = st.fs.Rename(path+tmpSuffix, path)
	}
	if err != nil {
		st.fs.Remove(path + tmpSuffix)
		return err
	}
	if err := st.fs.SyncDir(st.dir); err != nil {
		return err
	}
	st.snapped.Store(size)
	return st.purgeIfDue()
}

func (st *store) purgeIfDue() error {
	now := st.clock.Now()
	if st.purgeEvery < 0 || !st.purged.IsZero() && now.Sub(st.purged) < st.purgeEvery {
		return nil
	}
	st.purged = now
	return st.purge()
}

func writeSnapshot(f disk.File, c *tree.Capture) (size int64, err error) {
	if err := f.Truncate(0); err != nil {
		return 0, err
	}
	var salt [4]byte
	rand.Read(salt[:])
	head := fileHeader{snapMagic, binary.BigEndian.Uint32(salt[:]), c.Zxid()}
	b := head.append(nil)
	if _, err := f.WriteV([][]byte{b}, 0); err != nil {
		return 0, err
	}
	size = fileHeaderBytes
	err = c.Encode(func(chunk []byte) error {
		b = append(beginFrame(b[:0]), chunk...)
		sealFrame(b, head.salt, size)
		if _, err := f.WriteV([][]byte{b}, size); err != nil {
			return err
		}
		f.WriteBehind(size, int64(len(b))) // a hint: the sync at the end has less to do at once
		size += int64(len(b))
		return nil
	})
	if err != nil {
		return 0, err
	}
	return size, f.Sync()
}

// purge removes all but the newest snapshots and the logs that they need.
func (st *store) purge() error {
	files, err := st.list()
	if err != nil {
		return err
	}
	if len(files.snaps) <= st.snapRetain {
		return nil
	}
	oldest := files.snaps[len(files.snaps)-st.snapRetain]
	for _, zxid := range files.snaps {
		if zxid < oldest {
			err = errors.Join(err, st.fs.Remove(filepath.Join(st.dir, hexName(snapPrefix, zxid))))
		}
	}
	// A log is needed unless the next one starts at or before the first entry past the snapshot.
	for i, zxid := range files.logs {
		if i+1 < len(files.logs) && files.logs[i+1] <= oldest+1 {
			err = errors.Join(err, st.fs.Remove(filepath.Join(st.logDir, hexName(logPrefix, zxid))))
		}
	}
	for _, dir := range st.dirs() {
		err = errors.Join(err, st.fs.SyncDir(dir))
	}
	return err
}

// close syncs nothing: every acknowledged write is durable already.
func (st *store) close() error {
	st.roll()
	return st.unlock()
}
