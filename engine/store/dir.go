package store

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"platter/engine/checkpoint"
	"platter/engine/commitlog"
	"platter/io/atomicfile"
	"platter/io/disk"
	"platter/io/handles"
)

// dataDir is one data directory.
type dataDir struct {
	fs    disk.FS
	path  string
	index int // in Config.Dirs
	lock  io.Closer
	meta  checkpoint.Meta

	recovery *offsetFile
	starts   *offsetFile
	marks    *offsetFile // high watermarks

	clean    bool // .kafka_cleanshutdown was there
	sameBoot bool // the machine has not restarted since the directory was last open

	count  int  // logs, and places taken for logs that are being made; guarded by Store.mu
	opened bool // it was read: what it holds is known
	failed atomic.Pointer[offlineError]

	trash trash // what is to be removed
	files *handles.Cache
	work  background // syncs of sealed segments and the like
	loops sync.WaitGroup
	space spaceOf
	// backlog is of all appends to the directory; nil: not bounded.
	backlog *commitlog.Backlog
	// failing is what is still to be done once the directory has failed; nothing is begun once released.
	failing  sync.WaitGroup
	failMu   sync.Mutex
	released bool

	entries groupSync // of the directory itself
	mu      sync.Mutex
	young   map[string]*settling // log directories that are not durable yet, by path
}

// settling is a log directory whose entry and partition.metadata are still to be made durable.
type settling struct {
	mu   sync.Mutex
	done bool
}

// offlineError is why a directory is offline.
type offlineError struct {
	dir   string
	cause error
}

func (e *offlineError) Error() string {
	return fmt.Sprintf("data directory %s is offline: %v", e.dir, e.cause)
}
func (e *offlineError) Unwrap() []error { return []error{ErrOffline, e.cause} }

func newDataDir(fs disk.FS, path string, index int) *dataDir {
	file := func(name string) *offsetFile { return &offsetFile{fs: fs, path: filepath.Join(path, name)} }
	d := &dataDir{
		fs: fs, path: path, index: index, young: map[string]*settling{},
		recovery: file(checkpoint.RecoveryPointFile),
		starts:   file(checkpoint.LogStartOffsetFile),
		marks:    file(checkpoint.HighWatermarkFile),
	}
	d.trash.wake = make(chan struct{}, 1)
	d.entries.sync = func() error { return fs.SyncDir(path) }
	return d
}

// offline is nil for a directory that serves.
func (d *dataDir) offline() error {
	if e := d.failed.Load(); e != nil {
		return e
	}
	return nil
}

// join is a path in the directory.
func (d *dataDir) join(name string) string { return filepath.Join(d.path, name) }

// take makes the directory when it is missing, and locks it.
func (d *dataDir) take() error {
	if err := disk.MkdirAllSync(d.fs, d.path); err != nil {
		return err
	}
	lock, err := d.fs.Lock(d.join(checkpoint.LockFile))
	if errors.Is(err, disk.ErrLocked) {
		return fmt.Errorf("%s is in use by another process: is a broker running on it? %w", d.path, err)
	}
	d.lock = lock
	return err
}

// read reads what the directory says of itself; bootID is this boot's. Corrupt checkpoints are reported to warn.
func (d *dataDir) read(bootID string, warn func(string, ...any)) error {
	p, err := checkpoint.ReadFile(d.fs, d.join(checkpoint.MetaFile), checkpoint.FileBytesMax)
	switch {
	case disk.IsNotExist(err):
		d.meta = checkpoint.Meta{BrokerID: -1}
	case err != nil:
		return err
	default:
		if d.meta, err = checkpoint.ParseMeta(p); err != nil {
			return fmt.Errorf("%s: %w", d.join(checkpoint.MetaFile), err)
		}
	}
	for _, f := range []*offsetFile{d.recovery, d.starts, d.marks} {
		corrupt, err := f.load()
		if err != nil {
			return err
		}
		if corrupt != nil {
			warn("an unreadable checkpoint counts as missing", "error", corrupt)
		}
	}
	if d.clean, err = exists(d.fs, d.join(checkpoint.CleanShutdownFile)); err != nil {
		return err
	}
	boot, err := checkpoint.ReadFile(d.fs, d.join(checkpoint.BootFile), checkpoint.FileBytesMax)
	if err != nil && !disk.IsNotExist(err) && !errors.Is(err, checkpoint.ErrCorrupt) {
		return err
	}
	d.sameBoot = bootID != "" && checkpoint.ParseBoot(boot) == bootID
	return nil
}

// arm is the step from reading to serving, once all logs are loaded: from now on a start is unclean. The
// mark goes first: a power cut in between must find neither the mark nor this boot's id. The sync also
// settles what the last process had begun: the checkpoints that were read, if not yet durable, must not
// give way to older ones.
func (d *dataDir) arm(bootID string) error {
	if d.clean {
		if err := removeFile(d.fs, d.join(checkpoint.CleanShutdownFile)); err != nil {
			return err
		}
	}
	if err := d.fs.SyncDir(d.path); err != nil {
		return err
	}
	if d.sameBoot || bootID == "" {
		return nil
	}
	return atomicfile.Write(d.fs, d.join(checkpoint.BootFile), checkpoint.FormatBoot(bootID))
}

// disarm marks a clean close; the logs and checkpoints are durable.
func (d *dataDir) disarm() error {
	return atomicfile.Write(d.fs, d.join(checkpoint.CleanShutdownFile), checkpoint.FormatCleanShutdown(-1))
}

// identify writes meta.properties unless it says so already.
func (d *dataDir) identify(brokerID int32, clusterID string) error {
	m := d.meta
	m.BrokerID, m.ClusterID = brokerID, clusterID
	if m == d.meta {
		return nil
	}
	if err := atomicfile.Write(d.fs, d.join(checkpoint.MetaFile), checkpoint.FormatMeta(m)); err != nil {
		return err
	}
	d.meta = m
	return nil
}

// topicID reads a log's partition.metadata; zero when there is none. corrupt tells of one that is unreadable: a power
// cut may tear one that was never synced, and then nothing durable was promised of its log.
func (d *dataDir) topicID(tp TP) (id UUID, corrupt, err error) {
	path := filepath.Join(d.join(dirName(tp)), checkpoint.PartitionFile)
	p, err := checkpoint.ReadFile(d.fs, path, checkpoint.FileBytesMax)
	if disk.IsNotExist(err) {
		return UUID{}, nil, nil
	}
	if err == nil {
		if id, err = checkpoint.ParsePartition(p); err == nil {
			return id, nil, nil
		}
		err = fmt.Errorf("%s: %w", path, err)
	}
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return UUID{}, err, nil
	}
	return UUID{}, nil, err
}

// makeLogDir makes a log's directory with its topic id, without a sync: settle does that.
func (d *dataDir) makeLogDir(tp TP, id UUID) error {
	dir := d.join(dirName(tp))
	if err := d.fs.MkdirAll(dir); err != nil {
		return err
	}
	d.doubt(dir)
	return d.writeTopicID(dir, id)
}

// writeTopicID writes partition.metadata; a zero id has none.
func (d *dataDir) writeTopicID(dir string, id UUID) error {
	if id == (UUID{}) {
		return nil
	}
	f, err := d.fs.Open(filepath.Join(dir, checkpoint.PartitionFile), disk.Create)
	if err != nil {
		return err
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteV([][]byte{checkpoint.FormatPartition(id)}, 0)
	}
	return errors.Join(err, f.Close())
}

// settle makes a young log directory durable: its topic id, its entries, and its own entry in the data directory. It
// costs nothing, and says false, for one that is.
func (d *dataDir) settle(dir string) (did bool, err error) {
	d.mu.Lock()
	s := d.young[dir]
	d.mu.Unlock()
	if s == nil {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return false, nil
	}
	err = d.syncLogDir(dir)
	d.mu.Lock()
	defer d.mu.Unlock()
	same := d.young[dir] == s // not forgotten, nor a successor of the same name
	if disk.IsNotExist(err) && !same {
		return false, nil // it was deleted meanwhile
	}
	if err != nil {
		return false, err
	}
	s.done = true
	if same {
		delete(d.young, dir)
	}
	return true, nil
}

// syncLogDir is the work of settle.
func (d *dataDir) syncLogDir(dir string) error {
	f, err := d.fs.Open(filepath.Join(dir, checkpoint.PartitionFile), disk.ReadWrite)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	} else if disk.IsNotExist(err) {
		err = nil
	}
	if err == nil {
		err = d.fs.SyncDir(dir)
	}
	if err == nil {
		err = d.entries.do()
	}
	return err
}

// doubt says that nobody knows whether a log directory is durable: settle will see to it.
func (d *dataDir) doubt(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.young[dir] = &settling{}
}

// youngDirs lists those in doubt.
func (d *dataDir) youngDirs() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.young))
}

// forget drops a young directory that is gone.
func (d *dataDir) forget(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.young, dir)
}

// groupSync lets callers that come together share one sync: each is served by one that began after it came.
type groupSync struct {
	sync    func() error
	mu      sync.Mutex
	running *syncRun
	next    *syncRun
}

type syncRun struct {
	done chan struct{}
	err  error
}

func (g *groupSync) do() error {
	g.mu.Lock()
	if g.running != nil { // too late for that one
		if g.next == nil {
			g.next = &syncRun{done: make(chan struct{})}
		}
		r := g.next
		g.mu.Unlock()
		<-r.done
		return r.err
	}
	r := &syncRun{done: make(chan struct{})}
	g.running = r
	g.mu.Unlock()
	g.run(r)
	return r.err
}

// run does r, and hands what has gathered meanwhile to a goroutine.
func (g *groupSync) run(r *syncRun) {
	r.err = g.sync()
	g.mu.Lock()
	g.running, g.next = g.next, nil
	follower := g.running
	g.mu.Unlock()
	close(r.done)
	if follower != nil {
		go g.run(follower)
	}
}

func exists(fs disk.FS, path string) (bool, error) {
	_, err := fs.Stat(path)
	if disk.IsNotExist(err) {
		return false, nil
	}
	return err == nil, err
}

func removeFile(fs disk.FS, path string) error {
	if err := fs.Remove(path); err != nil && !disk.IsNotExist(err) {
		return err
	}
	return nil
}
