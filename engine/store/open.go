package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"platter/engine/commitlog"
	"platter/engine/segment"
	"platter/io/disk"
	"platter/io/handles"
)

// Progress is how far recovery is; safe to read, by Snapshot, while Open runs.
type Progress struct {
	LogsTotal, LogsDone       int64
	BytesToScan, BytesScanned int64
}

// Snapshot is a copy of p at this moment.
func (p *Progress) Snapshot() Progress {
	return Progress{
		LogsTotal: atomic.LoadInt64(&p.LogsTotal), LogsDone: atomic.LoadInt64(&p.LogsDone),
		BytesToScan: atomic.LoadInt64(&p.BytesToScan), BytesScanned: atomic.LoadInt64(&p.BytesScanned),
	}
}

// Open locks the directories, checks meta.properties, and loads every log, in parallel, in the recovery
// order of the design. It never talks to a network. p may be nil.
//
// A directory that fails goes offline, and the others serve. The errors that come back: ErrLocked,
// ErrIdentity, ErrDuplicate, a corrupt meta.properties, ctx's own, and those of all
// directories when none is left.
func Open(ctx context.Context, c Config, p *Progress) (*Store, error) {
	s, err := newStore(c)
	if err != nil {
		return nil, err
	}
	if p == nil {
		p = &Progress{}
	}
	if err := s.open(ctx, p); err != nil {
		s.abandon()
		return nil, err
	}
	s.startLoops()
	return s, nil
}

// filesMin is how many open files a directory needs at least.
const filesMin = 8

func newStore(c Config) (*Store, error) {
	if len(c.Dirs) == 0 {
		return nil, errors.New("log.dirs names no directory")
	}
	if c.OpenFilesMax <= 0 {
		c.OpenFilesMax = OpenFilesDefault
	}
	if c.ForDir == nil {
		c.ForDir = func(string) DirParams { return DirParams{Growth: segment.DefaultGrowth} }
	}
	if c.HighWatermarkMs <= 0 {
		c.HighWatermarkMs = c.CheckpointMs
	}
	if c.TopicConfig == nil {
		c.TopicConfig = func(string) commitlog.Config { return commitlog.DefaultConfig() }
	}
	if c.BootID == nil {
		c.BootID = kernelBootID
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	s := &Store{
		c: c, log: c.Log,
		logs: map[TP]*held{}, brokerID: -1, stop: make(chan struct{}),
	}
	seen := map[string]bool{}
	for i, path := range c.Dirs {
		path = filepath.Clean(path)
		if seen[path] {
			return nil, fmt.Errorf("log.dirs names %s twice", path)
		}
		seen[path] = true
		d := newDataDir(c.FS, path, i)
		d.files = handles.New(c.FS, max(filesMin, c.OpenFilesMax/len(c.Dirs)))
		d.work.serial = c.serial
		if c.BacklogBytesMax > 0 {
			d.backlog = &commitlog.Backlog{BytesMax: c.BacklogBytesMax}
			if c.Hangs != nil {
				d.backlog.Hangs = func() bool { return c.Hangs(path) }
			}
		}
		s.dirs, s.work = append(s.dirs, d), append(s.work, &d.work)
	}
	return s, nil
}

// open does the work of Open; on an error the caller abandons the store.
func (s *Store) open(ctx context.Context, p *Progress) error {
	bootID := s.c.BootID()
	for _, d := range s.dirs {
		if err := s.readDir(d, bootID); err != nil {
			return err
		}
	}
	if err := s.checkIdentity(); err != nil {
		return err
	}
	found, err := s.scan()
	if err != nil {
		return err
	}
	atomic.StoreInt64(&p.LogsTotal, int64(len(found)))
	if err := s.loadAll(ctx, found, p); err != nil {
		return err
	}
	for _, d := range s.dirs {
		if d.offline() == nil {
			if err := d.arm(bootID); err != nil {
				s.failDir(d, err)
			}
		}
	}
	return s.anyOnline()
}

// readDir locks and reads one directory. What is the user's to mend is returned; a disk's failure puts
// the directory offline.
func (s *Store) readDir(d *dataDir, bootID string) error {
	err := d.take()
	if err == nil {
		err = d.read(bootID, s.log.Warn)
	}
	var diskErr *disk.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrLocked) || !errors.As(err, &diskErr):
		return err
	}
	s.failDir(d, err)
	return nil
}

// anyOnline gives the causes when no directory is left.
func (s *Store) anyOnline() error {
	var causes []error
	for _, d := range s.dirs {
		err := d.offline()
		if err == nil {
			return nil
		}
		causes = append(causes, err)
	}
	return errors.Join(causes...)
}

// location is a log that was found, and where.
type location struct {
	tp  TP
	dir *dataDir
}

// scan lists the directories' entries: the logs to load, and the deleted ones to remove.
func (s *Store) scan() ([]location, error) {
	var found []location
	at := map[TP]*dataDir{}
	for _, d := range s.dirs {
		if d.offline() != nil {
			continue
		}
		infos, err := s.c.FS.ReadDir(d.path)
		if err != nil {
			s.failDir(d, err)
			continue
		}
		for _, in := range infos {
			if !in.IsDir {
				continue
			}
			tp, kind := parseDirName(in.Name)
			switch kind {
			case dirDeleted:
				d.trash.add(trashed{dir: d, path: d.join(in.Name)})
			case dirLog:
				if other := at[tp]; other != nil {
					return nil, fmt.Errorf("%w: %s is in %s and in %s; move one of them away", ErrDuplicate, tp, other.path, d.path)
				}
				at[tp] = d
				found = append(found, location{tp, d})
			default:
				if strings.HasPrefix(in.Name, ".") {
					continue // hidden, as the coordinator's
				}
				s.log.Warn("a directory that is no log of this broker is left alone", "path", d.join(in.Name))
			}
		}
		d.opened = true
	}
	return found, nil
}

// threads is how many logs of a directory are loaded at a time.
func (s *Store) threads(d *dataDir) int {
	if s.c.RecoveryThreadsPerDir > 0 {
		return s.c.RecoveryThreadsPerDir
	}
	if n := s.c.ForDir(d.path).RecoveryThreads; n > 0 {
		return n
	}
	return runtime.NumCPU()
}

// loadAll opens the logs, several at a time in each directory.
func (s *Store) loadAll(ctx context.Context, found []location, p *Progress) error {
	byDir := make([][]location, len(s.dirs))
	for _, f := range found {
		byDir[f.dir.index] = append(byDir[f.dir.index], f)
	}
	var wg sync.WaitGroup
	for i, logs := range byDir {
		var next atomic.Int64
		for range min(s.threads(s.dirs[i]), len(logs)) {
			wg.Go(func() {
				for {
					i := int(next.Add(1)) - 1
					if i >= len(logs) || ctx.Err() != nil || logs[i].dir.offline() != nil {
						return
					}
					s.loadOne(ctx, logs[i], p)
				}
			})
		}
	}
	wg.Wait()
	return ctx.Err()
}

// loadOne opens one log; one that cannot be opened takes its directory offline, as in Kafka.
func (s *Store) loadOne(ctx context.Context, at location, p *Progress) {
	d, tp := at.dir, at.tp
	id, corrupt, err := d.topicID(tp)
	if corrupt != nil {
		s.log.Warn("an unreadable topic id counts as unknown", "error", corrupt)
	}
	if err != nil {
		s.failDir(d, err)
		return
	}
	dir := d.join(dirName(tp))
	if !d.clean {
		d.doubt(dir)
	}
	o := s.options(d, tp, s.c.TopicConfig(tp.Topic))
	o.RecoveryPoint, o.LogStartOffset = d.recovery.get(tp), d.starts.get(tp)
	o.CleanShutdown, o.SameBoot = d.clean, d.sameBoot
	o.Progress = func(toScan, scanned int64) {
		atomic.AddInt64(&p.BytesToScan, toScan)
		atomic.AddInt64(&p.BytesScanned, scanned)
	}
	l, err := commitlog.Open(ctx, o)
	if err != nil {
		if ctx.Err() == nil {
			s.failDir(d, fmt.Errorf("%s: %w", tp, err))
		}
		return
	}
	mark := d.marks.get(tp)
	if id == (UUID{}) && !d.clean {
		mark = 0 // it may be of an earlier log of this name
	}
	h := &held{tp: tp, log: l, dir: d, id: id}
	h.mark.Store(mark)
	s.mu.Lock()
	s.logs[tp] = h
	d.count++
	s.mu.Unlock()
	atomic.AddInt64(&p.LogsDone, 1)
}

// options are what every log of d is opened with.
func (s *Store) options(d *dataDir, tp TP, c commitlog.Config) commitlog.Options {
	growth := s.c.ForDir(d.path).Growth
	return commitlog.Options{
		FS: settlingFS{s.c.FS, d}, Handles: d.files, Clock: s.c.Clock,
		Dir: d.join(dirName(tp)), Topic: tp.Topic, Partition: tp.Partition, Config: c,
		Growth:    &growth,
		Depths:    &s.depths,
		Backlog:   d.backlog,
		Remove:    func(path string) error { return s.retired(d, path) },
		OnIOError: func(cause error) { s.failDir(d, fmt.Errorf("%s: %w", tp, cause)) },
		LowerRecoveryPoint: func(offset int64) error {
			if err := d.recovery.lower(offset, tp); err != nil {
				return err
			}
			return d.starts.lower(offset, tp)
		},
		Background: d.work.run,
		Logf:       func(format string, args ...any) { s.log.Warn(fmt.Sprintf(format, args...), "log", tp.String()) },
	}
}

// settlingFS makes a log's own directory durable in its data directory before anything in it is reported to be.
type settlingFS struct {
	disk.FS
	dir *dataDir
}

func (f settlingFS) SyncDir(path string) error {
	if path == f.dir.path {
		return f.dir.entries.do()
	}
	if did, err := f.dir.settle(path); did || err != nil {
		return err
	}
	return f.FS.SyncDir(path)
}

// abandon undoes a failed Open.
func (s *Store) abandon() {
	for _, h := range s.logs {
		h.log.Discard()
	}
	s.work.wait()
	for _, d := range s.dirs {
		d.release()
	}
}

// release gives up files and lock.
func (d *dataDir) release() {
	d.failMu.Lock()
	d.released = true
	d.failMu.Unlock()
	d.failing.Wait()
	d.files.Close()
	if d.lock != nil {
		d.lock.Close() // nothing of value is in a lock file
		d.lock = nil
	}
}
