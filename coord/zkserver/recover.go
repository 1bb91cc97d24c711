package zkserver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"platter/coord/tree"
	"platter/io/clock"
	"platter/io/disk"
)

// openStore locks the data directories and gives the tree that they hold, everything in it durable. logDir is
// where the log is; "": in dir too.
func openStore(ctx context.Context, d disk.FS, dir, logDir string, log *slog.Logger) (*store, *tree.Tree, error) {
	if logDir == "" {
		logDir = dir
	}
	st := &store{
		fs: d, dir: dir, logDir: logDir, log: log, zeros: make([]byte, growBytes),
		clock: clock.Real{}, snapRetain: snapRetainMin,
	}
	st.syncs.Store(int64(swiftSync)) // until it has shown itself to be quicker
	for _, dir := range st.dirs() {
		if err := disk.MkdirAllSync(d, dir); err != nil {
			st.unlock()
			return nil, nil, err
		}
		lock, err := d.Lock(filepath.Join(dir, lockName))
		if err != nil {
			st.unlock()
			return nil, nil, err
		}
		st.locks = append(st.locks, lock)
	}
	t, err := st.recover(ctx)
	if err != nil {
		if st.file != nil {
			st.file.Close()
		}
		st.unlock()
		return nil, nil, err
	}
	return st, t, nil
}

// dirs are the directories, once each.
func (st *store) dirs() []string {
	if filepath.Clean(st.dir) == filepath.Clean(st.logDir) {
		return []string{st.dir}
	}
	return []string{st.dir, st.logDir}
}

func (st *store) unlock() error {
	var err error
	for _, l := range st.locks {
		err = errors.Join(err, l.Close())
	}
	return err
}

// files are the directory's, by the zxid of their name, ascending.
type files struct {
	snaps, logs []int64
	tmp         []string
}

// errMisplaced: dataLogDir was changed, and the files stayed where they were.
var errMisplaced = errors.New("is not where dataDir and dataLogDir say: move it, or set them as they were")

func (st *store) list() (files, error) {
	var fl files
	for _, dir := range st.dirs() {
		entries, err := st.fs.ReadDir(dir)
		if err != nil {
			return fl, err
		}
		for _, e := range entries {
			home := dir
			switch {
			case strings.HasSuffix(e.Name, tmpSuffix):
				fl.tmp = append(fl.tmp, filepath.Join(dir, e.Name))
			case strings.HasPrefix(e.Name, snapPrefix):
				home = st.dir
				fl.snaps = appendZxid(fl.snaps, e.Name[len(snapPrefix):])
			case strings.HasPrefix(e.Name, logPrefix):
				home = st.logDir
				fl.logs = appendZxid(fl.logs, e.Name[len(logPrefix):])
			}
			if home != dir && len(st.dirs()) > 1 {
				return fl, fmt.Errorf("%s %w", filepath.Join(dir, e.Name), errMisplaced)
			}
		}
	}
	slices.Sort(fl.snaps)
	slices.Sort(fl.logs)
	return fl, nil
}

func appendZxid(zxids []int64, hex string) []int64 {
	v, err := strconv.ParseUint(hex, 16, 64)
	if err != nil || len(hex) != 16 {
		return zxids
	}
	return append(zxids, int64(v))
}

func (st *store) recover(ctx context.Context) (*tree.Tree, error) {
	fl, err := st.list()
	if err != nil {
		return nil, err
	}
	for _, name := range fl.tmp {
		st.fs.Remove(name)
	}
	if len(fl.snaps)+len(fl.logs) == 0 {
		for _, dir := range st.dirs() {
			if err := st.syncAncestors(dir); err != nil {
				return nil, err
			}
		}
	}
	t, err := st.newestSnapshot(fl)
	if err != nil {
		return nil, err
	}
	for i, first := range fl.logs {
		last := i == len(fl.logs)-1
		if !last && fl.logs[i+1] <= t.Zxid()+1 {
			continue // all of it is in the snapshot
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := st.replay(t, first, last); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// syncAncestors makes the way to a fresh directory durable: an earlier start may have made it, and died
// before it was.
func (st *store) syncAncestors(dir string) error {
	for dir := filepath.Clean(dir); ; {
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil
		}
		if err := st.fs.SyncDir(parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		dir = parent
	}
}

// newestSnapshot loads the newest snapshot that is whole; without any the tree is fresh. An older one
// serves as well, since the logs behind it are kept.
func (st *store) newestSnapshot(fl files) (*tree.Tree, error) {
	var damage error
	for _, zxid := range slices.Backward(fl.snaps) {
		path := filepath.Join(st.dir, hexName(snapPrefix, zxid))
		t, size, err := st.loadSnapshot(path)
		if err == nil {
			st.snapped.Store(size)
			return t, nil
		}
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) {
			return nil, err
		}
		st.log.Error("coordinator: snapshot is damaged, trying the one before it", "err", err)
		damage = errors.Join(damage, err)
	}
	if damage != nil && (len(fl.logs) == 0 || fl.logs[0] != 1) {
		return nil, damage // the logs do not reach back to the start
	}
	return tree.New(), nil
}

func (st *store) loadSnapshot(path string) (*tree.Tree, int64, error) {
	f, err := st.fs.Open(path, disk.ReadOnly)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	s, err := newScanner(f, snapMagic)
	if err != nil {
		return nil, 0, damaged(path, 0, err)
	}
	l := tree.NewLoader()
	for {
		chunk, err := s.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, 0, damaged(path, s.pos, err)
		}
		if err := l.Chunk(chunk); err != nil {
			return nil, 0, &CorruptError{path, s.pos, err}
		}
	}
	t, err := l.Finish()
	if err != nil {
		return nil, 0, &CorruptError{path, s.pos, err}
	}
	return t, s.size, nil
}

// damaged makes a CorruptError of what the bytes show, and leaves a failure of the disk as it is.
func damaged(path string, pos int64, err error) error {
	var failed *disk.Error
	if errors.As(err, &failed) {
		return err
	}
	return &CorruptError{path, pos, err}
}

// replay applies a log's entries past the tree's zxid; the last log stays open for appending.
func (st *store) replay(t *tree.Tree, first int64, last bool) error {
	path := filepath.Join(st.logDir, hexName(logPrefix, first))
	f, err := st.fs.Open(path, disk.ReadWrite)
	if err != nil {
		return err
	}
	keep := false
	defer func() {
		if !keep {
			f.Close()
		}
	}()
	s, err := newScanner(f, logMagic)
	if errors.Is(err, errBadHeader) && last && s.size <= fileHeaderBytes {
		// The log was being made: nothing in it was acknowledged.
		if err := st.fs.Remove(path); err != nil {
			return err
		}
		return st.fs.SyncDir(st.logDir)
	}
	if err != nil {
		return damaged(path, 0, err)
	}
	if first > t.Zxid()+1 {
		return &CorruptError{path, 0, fmt.Errorf("starts at zxid %#x, but the state before it ends at %#x", first, t.Zxid())}
	}
	begin := s.pos // of the last frame
	for {
		at := s.pos
		payload, err := s.next()
		if err == io.EOF || errors.Is(err, errBadFrame) {
			break
		}
		if err != nil {
			return err
		}
		begin = at
		if err := applyFrame(t, payload); err != nil {
			return &CorruptError{path, s.pos, err}
		}
	}
	if err := st.checkTail(s, path, last); err != nil {
		return err
	}
	if !last {
		return nil
	}
	keep = true
	return st.resume(f, s, begin)
}

// checkTail tells a torn tail, which only the last log may have, from damage.
func (st *store) checkTail(s *scanner, path string, last bool) error {
	clean, err := s.zeroTail()
	if err != nil || clean {
		return err
	}
	if !last {
		return &CorruptError{path, s.pos, errBadFrame}
	}
	pos, found, err := s.later()
	if err != nil {
		return err
	}
	if found {
		return &CorruptError{path, s.pos, fmt.Errorf("%w, and a whole one behind it at %d", errBadFrame, pos)}
	}
	st.log.Warn("coordinator: cut the torn tail of the log", "path", path, "pos", s.pos, "bytes", s.size-s.pos)
	return nil
}

// resume makes the last log the one to append to: cut behind its last whole frame, which begins at last, and durable.
// That frame, or the header of a log without one, may be in the page cache only. If its sync has failed the cache takes
// it for written, and a sync would do nothing for it: so it is written again.
func (st *store) resume(f disk.File, s *scanner, last int64) error {
	if err := s.rewrite(0, fileHeaderBytes); err != nil {
		return err
	}
	if err := s.rewrite(last, int(s.pos-last)); err != nil {
		return err
	}
	st.file, st.salt = f, s.head.salt
	st.pos, st.end = s.pos, s.pos
	st.since = s.pos
	if s.size > s.pos {
		if err := f.Truncate(s.pos); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return st.fs.SyncDir(st.logDir)
}

// applyFrame applies a frame's entries, but for those that the tree has already.
func applyFrame(t *tree.Tree, payload []byte) error {
	for len(payload) > 0 {
		if len(payload) < 4 {
			return fmt.Errorf("%w: %d bytes at the end of a frame", tree.ErrCorrupt, len(payload))
		}
		n := int64(binary.BigEndian.Uint32(payload))
		if n > int64(len(payload)-4) {
			return fmt.Errorf("%w: entry of %d bytes in a frame with %d left", tree.ErrCorrupt, n, len(payload)-4)
		}
		e, err := tree.DecodeEntry(payload[4 : 4+n])
		if err != nil {
			return err
		}
		payload = payload[4+n:]
		switch {
		case e.Zxid <= t.Zxid():
		case e.Zxid == t.Zxid()+1:
			t.Apply(&e)
		default:
			return fmt.Errorf("%w: entry %#x after %#x", tree.ErrCorrupt, e.Zxid, t.Zxid())
		}
	}
	return nil
}
