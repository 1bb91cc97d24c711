package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"platter/engine/checkpoint"
	"platter/engine/commitlog"
	"platter/io/disk"
	"platter/io/faultdisk"
	"platter/io/handles"
	"platter/io/memdisk"
)

// faulty puts a fault injector between the store and the rig's disk.
func (r *rig) faulty() *faultdisk.FS {
	f := faultdisk.New(r.disk, 1, r.clock)
	r.fs = f
	return f
}

func (r *rig) script(f *faultdisk.FS, script string) {
	r.t.Helper()
	if err := f.Script(script); err != nil {
		r.t.Fatal(err)
	}
}

// waitOffline waits until OnOffline was told of n directories; it runs on goroutines of its own.
func (r *rig) waitOffline(n int) []string {
	r.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		r.mu.Lock()
		fails := append([]string(nil), r.fails...)
		r.mu.Unlock()
		if len(fails) >= n {
			return fails
		}
	}
	r.t.Fatalf("%d directories were expected to go offline", n)
	return nil
}

// TestDirectoryFailsAlone: the disk of one of two directories fails while the broker runs.
func TestDirectoryFailsAlone(t *testing.T) {
	r := newRig(t, "d1", "d2")
	f := r.faulty()
	r.open()
	for _, n := range []string{"a-0", "a-1", "a-2", "a-3"} { // d1, d2, d1, d2
		r.create(n, 1)
		r.append(n, 2)
	}
	dead, other := r.s.Get(tp("a-0")), r.s.Get(tp("a-2"))
	r.script(f, "sync d1/a-0/* : EIO")
	if err := dead.Sync(); !errors.Is(err, commitlog.ErrOffline) {
		t.Fatalf("sync: %v", err)
	}
	if fails := r.waitOffline(1); fails[0] != "d1" {
		t.Fatalf("offline: %v", fails)
	}
	r.script(f, "")
	for _, d := range r.s.dirs {
		d.failing.Wait()
	}
	for name, l := range map[string]*commitlog.Log{"the one that failed": dead, "its neighbour": other} {
		if err := appendTo(l, 1); !errors.Is(err, ErrOffline) {
			t.Errorf("append to %s: %v", name, err)
		}
	}
	if r.s.Get(tp("a-0")) != nil || len(r.s.All()) != 2 {
		t.Errorf("logs of a failed directory are served: %v", r.s.All())
	}
	if _, err := r.s.Create(tp("a-0"), UUID{1}, commitlog.DefaultConfig()); !errors.Is(err, ErrOffline) {
		t.Errorf("an empty log takes the place of one that is offline: %v", err)
	}
	if err := r.s.Delete(tp("a-0")); !errors.Is(err, ErrOffline) {
		t.Errorf("delete: %v", err)
	}
	r.append("a-1", 1)
	r.create("b-0", 1) // goes to the other directory
	infos := r.s.Dirs()
	if !errors.Is(infos[0].Offline, ErrOffline) || infos[1].Offline != nil || len(infos[0].Logs) != 2 || len(infos[1].Logs) != 3 {
		t.Errorf("%+v", infos)
	}
	if err := r.s.Checkpoint(); err != nil {
		t.Errorf("checkpoint of the rest: %v", err)
	}
	if err := r.s.Close(true); err != nil {
		t.Errorf("close of the rest: %v", err)
	}
	if has, _ := exists(r.disk, "d1/"+checkpoint.CleanShutdownFile); has {
		t.Error("a failed directory counts as closed cleanly")
	}
	// The page cache of a disk whose sync failed is not believed on the same boot.
	if has, _ := exists(r.disk, "d1/"+checkpoint.BootFile); has {
		t.Error("a failed directory keeps its boot id")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.fails) != 1 {
		t.Errorf("OnOffline was called for %v", r.fails)
	}
}

// TestUnreadableDirectoryAtStart: nobody knows what it holds, so only what is new may be created elsewhere.
func TestUnreadableDirectoryAtStart(t *testing.T) {
	r := newRig(t, "d1", "d2").open()
	r.create("a-0", 1)
	r.close()
	f := r.faulty()
	r.script(f, "list d1 : EIO")
	r.open()
	r.waitOffline(1)
	if _, err := r.s.Create(tp("a-0"), UUID{1}, commitlog.DefaultConfig()); !errors.Is(err, ErrOffline) {
		t.Errorf("create: %v", err)
	}
	if _, err := r.s.CreateNew(tp("new-0"), UUID{2}, commitlog.DefaultConfig()); err != nil {
		t.Errorf("create new: %v", err)
	}
	r.disk.Kill()
	r.script(f, "list * : EIO")
	if err := r.tryOpen(); !errors.Is(err, ErrOffline) || !strings.Contains(err.Error(), "d1") || !strings.Contains(err.Error(), "d2") {
		t.Errorf("no directory is left: %v", err)
	}
	r.script(f, "")
	r.open()
	if got := len(r.s.All()); got != 2 {
		t.Errorf("%d logs", got)
	}
}

func TestLocked(t *testing.T) {
	r := newRig(t, "d1", "d2").open()
	first := r.s
	r.life = nil // a second process
	if err := r.tryOpen(); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "d1 is in use") {
		t.Errorf("%v", err)
	}
	if err := first.Close(true); err != nil {
		t.Fatal(err)
	}
	r.open().close()
}

// TestFullDisk: what needs room is refused, the rest goes on, and writing goes on once there is room.
func TestFullDisk(t *testing.T) {
	r := newRig(t)
	r.c.serial = true
	r.open()
	r.create("a-0", 1)
	r.create("b-0", 1)
	r.append("a-0", 1000)
	r.append("b-0", 5)
	r.disk.SetCapacity(r.disk.UsedBytes())
	if _, err := r.s.Create(tp("c-0"), UUID{1}, commitlog.DefaultConfig()); !errors.Is(err, disk.ErrFull) {
		t.Fatalf("create: %v", err)
	}
	if has, _ := exists(r.disk, "data/c-0"); has {
		t.Error("half a log was left")
	}
	if err := appendTo(r.s.Get(tp("a-0")), 1000); !errors.Is(err, disk.ErrFull) {
		t.Errorf("append: %v", err)
	}
	r.marks[tp("a-0")] = 3
	if err := r.s.Checkpoint(); !errors.Is(err, disk.ErrFull) {
		t.Errorf("checkpoint: %v", err)
	}
	if off := r.s.Dirs()[0].Offline; off != nil {
		t.Fatalf("a full disk took the directory offline: %v", off)
	}
	if err := readFirst(r.s.Get(tp("a-0"))); err != nil {
		t.Errorf("read: %v", err)
	}
	r.kill() // a restart works, too
	if err := readFirst(r.s.Get(tp("a-0"))); err != nil {
		t.Errorf("read after the restart: %v", err)
	}
	if err := r.s.Delete(tp("a-0")); err != nil {
		t.Errorf("delete: %v", err)
	}
	r.clock.Advance(time.Hour)
	r.s.RemoveDeleted(r.clock.NowMs())
	r.append("b-0", 5)
	if err := r.s.Checkpoint(); err != nil {
		t.Errorf("checkpoint: %v", err)
	}
	r.create("c-0", 1)
	r.close()
}

// TestRecreatedTopicsShareTheirSyncs: what checkpoints say of many deleted logs goes with the first that comes back.
func TestRecreatedTopicsShareTheirSyncs(t *testing.T) {
	r := newRig(t).open()
	r.c.serial = true
	const n = 50
	for i := range n {
		l, err := r.s.Create(nth(i), UUID{1}, commitlog.DefaultConfig())
		if err == nil {
			err = appendTo(l, 1)
		}
		if err == nil {
			err = l.Sync()
		}
		if err != nil {
			t.Fatal(err)
		}
		r.marks[nth(i)] = 1
	}
	if err := r.s.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := r.s.Delete(nth(i)); err != nil {
			t.Fatal(err)
		}
	}
	syncs := 0
	r.disk.SetHook(func(o memdisk.Op) error {
		if o.Kind == "sync" || o.Kind == "syncdir" {
			syncs++
		}
		return nil
	})
	for i := range n {
		if _, err := r.s.Create(nth(i), UUID{2}, commitlog.DefaultConfig()); err != nil {
			t.Fatal(err)
		}
	}
	if syncs > 4 { // two for each of the two checkpoints
		t.Errorf("%d syncs", syncs)
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("x", topicNameMax)
	for name, want := range map[string]dirKind{
		"a-0": dirLog, "a-b-12": dirLog, "__consumer_offsets-49": dirLog, "a.b_c-2147483647": dirLog, long + "-0": dirLog,
		"a-delete-0": dirLog, "x-1.y-delete-0": dirLog, "--0": dirLog,
		"a-0.0123456789abcdef0123456789abcdef-delete": dirDeleted,
		"a-0.x-future": dirFuture,
		"a-0.x-stray":  dirStray,
		"a":            dirForeign, "-0": dirForeign, "a-": dirForeign, "a-01": dirForeign, "a-+1": dirForeign, "a--1": dirLog,
		"a-2147483648": dirForeign, "a b-0": dirForeign, "..-0": dirForeign, "lost+found": dirForeign, "": dirForeign,
		"a-delete": dirForeign, "a-0-delete": dirForeign, "a-0.-delete": dirForeign, ".x-delete": dirForeign,
		"__cluster_metadata-0": dirForeign, long + "x-0": dirForeign,
	} {
		p, kind := parseDirName(name)
		if kind != want {
			t.Errorf("%q: kind %d, want %d", name, kind, want)
		}
		if kind == dirLog && dirName(p) != name {
			t.Errorf("%q becomes %q", name, dirName(p))
		}
	}
	for _, p := range []TP{{"a", 0}, {long, 2147483647}} {
		name := deletedName(p)
		if _, kind := parseDirName(name); kind != dirDeleted || len(name) > dirNameMax {
			t.Errorf("%q of %d characters: kind %d", name, len(name), kind)
		}
	}
}

func TestIllegalNamesAreRefused(t *testing.T) {
	r := newRig(t).open()
	for _, p := range []TP{{"", 0}, {"..", 0}, {"a/b", 0}, {"../a", 0}, {"a\x00", 0}, {"a", -1}, {strings.Repeat("x", 250), 0}} {
		if _, err := r.s.Create(p, UUID{1}, commitlog.DefaultConfig()); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", p.Topic, err)
		}
	}
}

// whileSyncing calls a function once, in the middle of a SyncDir of one path.
type whileSyncing struct {
	disk.FS
	path string
	do   func()
}

func (f *whileSyncing) SyncDir(path string) error {
	if do := f.do; path == f.path && do != nil {
		f.do = nil
		do()
	}
	return f.FS.SyncDir(path)
}

// TestDeletedWhileSettling: a log goes while its directory is about to be made durable. Nothing has failed.
func TestDeletedWhileSettling(t *testing.T) {
	r := newRig(t, "d")
	slow := &whileSyncing{FS: r.disk, path: "d/a-0"}
	r.fs = slow
	r.open()
	r.create("a-0", 1)
	r.append("a-0", 3)
	if err := r.s.Get(tp("a-0")).TrimTo(2); err != nil {
		t.Fatal(err)
	}
	slow.do = func() {
		if err := r.s.Delete(tp("a-0")); err != nil {
			t.Error(err)
		}
	}
	if err := r.s.Checkpoint(); err != nil {
		t.Fatalf("checkpoint: %v", err)
	}
	if slow.do != nil {
		t.Fatal("the checkpoint did not settle the log")
	}
	if d := r.s.Dirs()[0]; d.Offline != nil {
		t.Fatal(d.Offline)
	}
}

// TestDeletedByHand: somebody else removes the files of a deleted log before the store does.
func TestDeletedByHand(t *testing.T) {
	r := newRig(t, "d")
	r.open()
	r.create("a-0", 1)
	if err := r.s.Delete(tp("a-0")); err != nil {
		t.Fatal(err)
	}
	infos, err := r.disk.ReadDir("d")
	if err != nil {
		t.Fatal(err)
	}
	removed := 0
	for _, in := range infos {
		if strings.HasSuffix(in.Name, deleteSuffix) {
			removed++
			if err := r.disk.RemoveAll("d/" + in.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if next := r.s.RemoveDeleted(r.clock.NowMs() + 1e9); next != -1 || removed != 1 {
		t.Fatalf("%d removed by hand, next at %d", removed, next)
	}
	if d := r.s.Dirs()[0]; d.Offline != nil {
		t.Fatal(d.Offline)
	}
}

// TestNoHandleLeft: files that all stay in use are no failure of the disk.
func TestNoHandleLeft(t *testing.T) {
	err := disk.Fail("open", "d/a-0/x.log", -1, fmt.Errorf("%w: all 3 are in use", handles.ErrTooManyOpen))
	if deviceFailed(err) || commitlog.DiskFailed(err) {
		t.Fatal("the directory would go offline")
	}
	if eio := disk.Fail("write", "d/a-0/x.log", 0, errors.New("input/output error")); !deviceFailed(eio) || !commitlog.DiskFailed(eio) {
		t.Fatal("the directory would stay online")
	}
}
