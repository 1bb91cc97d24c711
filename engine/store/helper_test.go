package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/engine/spindle"
	"platter/io/clock"
	"platter/io/crashdisk"
	"platter/io/disk"
	"platter/io/memdisk"
)

// rig is a broker's store on an in-memory disk, without background work: tests call it themselves.
type rig struct {
	t     testing.TB
	disk  crashdisk.Disk
	fs    disk.FS // the store's door to it
	life  *lifeFS
	clock *clock.Virtual
	boot  int
	c     Config
	care  *spindle.Params // for a Set around the disk
	log   logBuffer

	mu    sync.Mutex
	marks map[TP]int64
	fails []string
	s     *Store
}

// logBuffer gathers what the store logs.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func newRig(t testing.TB, dirs ...string) *rig {
	return newRigOn(t, func(m *memdisk.FS) crashdisk.Disk { return m }, dirs...)
}

// newRigOn is newRig over what on makes of the disk in memory.
func newRigOn(t testing.TB, on func(*memdisk.FS) crashdisk.Disk, dirs ...string) *rig {
	clk := clock.NewVirtual(time.UnixMilli(1_700_000_000_000))
	d := on(memdisk.New(memdisk.Options{Clock: clk}))
	r := &rig{t: t, disk: d, fs: d, clock: clk, marks: map[TP]int64{}}
	if len(dirs) == 0 {
		dirs = []string{"data"}
	}
	r.c = Config{
		Clock: clk, Dirs: dirs, BrokerID: -1, RecoveryThreadsPerDir: 1,
		BootID: func() string { return fmt.Sprint("boot ", r.boot) },
		HighWatermark: func(tp TP) (int64, bool) {
			r.mu.Lock()
			defer r.mu.Unlock()
			m, ok := r.marks[tp]
			return m, ok
		},
		OnOffline: func(dir string, cause error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.fails = append(r.fails, dir)
		},
		Log: slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{ReplaceAttr: noTime})),
	}
	return r
}

func noTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

func (r *rig) tryOpen() error {
	if r.life != nil {
		r.life.ended.Store(true)
	}
	r.life = &lifeFS{FS: r.fs}
	r.c.FS = r.life
	if r.care != nil {
		r.c.Spindles = spindle.New(r.life, r.clock, []spindle.Dir{{Path: r.c.Dirs[0], Params: *r.care}})
		r.c.FS = r.c.Spindles
	}
	s, err := Open(context.Background(), r.c, nil)
	r.s = s
	return err
}

func (r *rig) open() *rig {
	r.t.Helper()
	if err := r.tryOpen(); err != nil {
		r.t.Fatalf("open: %v", err)
	}
	return r
}

// kill is the death of the process, and the next start.
func (r *rig) kill() {
	r.t.Helper()
	r.disk.Kill()
	r.open()
}

// crash is a power cut, and the next start.
func (r *rig) crash(seed uint64) {
	r.t.Helper()
	r.disk.Crash(seed)
	r.boot++
	r.open()
}

func (r *rig) close() {
	r.t.Helper()
	if err := r.s.Close(true); err != nil {
		r.t.Fatalf("close: %v", err)
	}
}

func tp(name string) TP {
	p, ok := ParseDir(name)
	if !ok {
		panic(name)
	}
	return p
}

func (r *rig) create(name string, id byte) *commitlog.Log {
	r.t.Helper()
	l, err := r.s.Create(tp(name), UUID{id}, commitlog.DefaultConfig())
	if err != nil {
		r.t.Fatalf("create %s: %v", name, err)
	}
	return l
}

func records(n int) batch.Batch {
	bl := batch.NewBuilder()
	for i := range n {
		bl.Add(int64(1_700_000_000_000+i), nil, []byte("value"))
	}
	b, err := bl.Build()
	if err != nil {
		panic(err)
	}
	return b
}

func appendTo(l *commitlog.Log, n int) error {
	done := make(chan error, 1)
	l.Enqueue(&commitlog.Append{Batches: []batch.Batch{records(n)}, Done: func(a commitlog.Appended) { done <- a.Err }})
	return <-done
}

func (r *rig) append(name string, n int) {
	r.t.Helper()
	l := r.s.Get(tp(name))
	if l == nil {
		r.t.Fatalf("%s is not here", name)
	}
	if err := appendTo(l, n); err != nil {
		r.t.Fatalf("append to %s: %v", name, err)
	}
}

// ends shows the logs: name, start, end, durable end, topic id's first byte.
func (r *rig) ends() string {
	var lines []string
	for _, p := range r.s.All() {
		e := r.s.Get(p).Ends()
		lines = append(lines, fmt.Sprintf("%s [%d %d) durable %d, id %d", p, e.Start, e.Written, e.Durable, r.s.TopicID(p)[0]))
	}
	return sortedLines(lines)
}

// tree lists the files below the directories; 32 hex digits are shown as a star.
func (r *rig) tree() string {
	r.t.Helper()
	var lines []string
	var walk func(string)
	walk = func(dir string) {
		infos, err := r.disk.ReadDir(dir)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, in := range infos {
			p := path.Join(dir, in.Name)
			if in.IsDir {
				lines = append(lines, hideID(p)+"/")
				walk(p)
				continue
			}
			lines = append(lines, hideID(p))
		}
	}
	for _, d := range r.c.Dirs {
		walk(d)
	}
	return sortedLines(lines)
}

func hideID(p string) string {
	dot := strings.LastIndexByte(p, '.')
	if !strings.Contains(p, deleteSuffix) {
		return p
	}
	end := strings.Index(p, deleteSuffix)
	if dot > end {
		dot = strings.LastIndexByte(p[:end], '.')
	}
	return p[:dot+1] + "*" + p[end:]
}

func (r *rig) read(p string) string {
	b, err := disk.ReadFile(r.disk, p, 1<<20)
	if errors.Is(err, disk.ErrTooLarge) || disk.IsNotExist(err) {
		return "none"
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

func (r *rig) put(p, content string) {
	r.t.Helper()
	err := r.disk.MkdirAll(path.Dir(p))
	if err == nil {
		var f disk.File
		if f, err = r.disk.Open(p, disk.Create); err == nil {
			f.Truncate(0)
			_, err = f.WriteV([][]byte{[]byte(content)}, 0)
			f.Close()
		}
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// lifeFS is the disk as one process sees it: what a goroutine of a dead process still tries does not happen.
type lifeFS struct {
	disk.FS
	ended atomic.Bool
}

var errDead = errors.New("the process is dead")

func (l *lifeFS) check(op, path string) error {
	if l.ended.Load() {
		return disk.Fail(op, path, -1, errDead)
	}
	return nil
}

func (l *lifeFS) Open(p string, m disk.Mode) (disk.File, error) {
	if err := l.check("open", p); err != nil {
		return nil, err
	}
	return l.FS.Open(p, m)
}

func (l *lifeFS) Rename(from, to string) error {
	if err := l.check("rename", from); err != nil {
		return err
	}
	return l.FS.Rename(from, to)
}

func (l *lifeFS) Remove(p string) error {
	if err := l.check("remove", p); err != nil {
		return err
	}
	return l.FS.Remove(p)
}

func (l *lifeFS) RemoveAll(p string) error {
	if err := l.check("remove", p); err != nil {
		return err
	}
	return l.FS.RemoveAll(p)
}

func (l *lifeFS) MkdirAll(p string) error {
	if err := l.check("mkdir", p); err != nil {
		return err
	}
	return l.FS.MkdirAll(p)
}

func (l *lifeFS) SyncDir(p string) error {
	if err := l.check("syncdir", p); err != nil {
		return err
	}
	return l.FS.SyncDir(p)
}
