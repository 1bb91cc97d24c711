package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"platter/engine/commitlog"
	"platter/io/clock"
	"platter/io/memdisk"
	"platter/io/portable"
)

func realConfig(dirs ...string) Config {
	return Config{
		FS: portable.New(), Clock: clock.Real{}, Dirs: dirs, BrokerID: -1,
		BootID: func() string { return "this one" }, Log: slog.New(slog.DiscardHandler),
	}
}

func nth(i int) TP { return TP{"scale.test", int32(i)} }

// createMany creates n logs from a few goroutines, as a controller's push makes the host do.
func createMany(s *Store, n int) error {
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for i := w; i < n; i += len(errs) {
				l, err := s.Create(nth(i), UUID{1}, commitlog.DefaultConfig())
				if err == nil {
					err = appendTo(l, 3)
				}
				errs[w] = errors.Join(errs[w], err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// BenchmarkCreate1000 and BenchmarkOpen1000 are the two figures that a user waits for: a new topic of 1,000 partitions, and the
// restart after kill -9.
func BenchmarkCreate1000(b *testing.B) {
	for b.Loop() {
		s, err := Open(context.Background(), realConfig(b.TempDir()), nil)
		if err == nil {
			err = createMany(s, 1000)
		}
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		s.Close(false)
		b.StartTimer()
	}
}

func BenchmarkOpen1000(b *testing.B) {
	dir := b.TempDir()
	s, err := Open(context.Background(), realConfig(dir), nil)
	if err == nil {
		err = createMany(s, 1000)
	}
	if err != nil {
		b.Fatal(err)
	}
	if err := s.SetIdentity(1, "c"); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		b.StopTimer()
		s.abandon() // as a killed process would: nothing is written
		b.StartTimer()
		if s, err = Open(context.Background(), realConfig(dir), nil); err != nil {
			b.Fatal(err)
		}
	}
	if len(s.All()) != 1000 {
		b.Fatal("logs are missing")
	}
}

// TestCreatingCostsNoSync: a topic of many partitions must not wait for the disk once for each.
func TestCreatingCostsNoSync(t *testing.T) {
	r := newRig(t).open()
	syncs := 0
	r.disk.SetHook(func(o memdisk.Op) error {
		if o.Kind == "sync" || o.Kind == "syncdir" {
			syncs++
		}
		return nil
	})
	for i := range 100 {
		if _, err := r.s.Create(nth(i), UUID{1}, commitlog.DefaultConfig()); err != nil {
			t.Fatal(err)
		}
	}
	if syncs != 0 {
		t.Errorf("%d syncs for 100 logs", syncs)
	}
}

// TestFewDescriptors runs 2,000 partitions in a process that may open 1,024 files at the most.
func TestFewDescriptors(t *testing.T) {
	const env = "PLATTER_TEST_FEW_DESCRIPTORS"
	if dir := os.Getenv(env); dir != "" {
		fewDescriptors(t, dir)
		return
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("SKIPPED: no shell to set a limit with")
	}
	if out, err := exec.Command(sh, "-c", "ulimit -Sn 1024; ulimit -Hn 1024").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no ulimit -Hn here: %s", out)
	}
	cmd := exec.Command(sh, "-c", `ulimit -Sn 1024; ulimit -Hn 1024; exec "$0" -test.run=^TestFewDescriptors$ -test.v`, os.Args[0])
	cmd.Env = append(os.Environ(), env+"="+memoryDir(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// memoryDir is a directory that costs no disk's time, where there is one.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "platter-store-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func fewDescriptors(t *testing.T, dir string) {
	const n = 2000
	c := realConfig(filepath.Join(dir, "data"))
	c.OpenFilesMax = 600
	for _, clean := range []bool{false, true} {
		s, err := Open(context.Background(), c, nil)
		if err == nil {
			err = createMany(s, n)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if err := readFirst(s.Get(nth(i))); err != nil {
				t.Fatalf("%v: %v", nth(i), err)
			}
		}
		if err := s.Close(clean); err != nil {
			t.Fatal(err)
		}
	}
	var p Progress
	s, err := Open(context.Background(), c, &p)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Snapshot(); got.LogsDone != n || got.LogsTotal != n {
		t.Errorf("progress: %+v", got)
	}
	for i := range n {
		if e := s.Get(nth(i)).Ends(); e.Written != 6 || e.Durable != 6 {
			t.Fatalf("%v: %+v", nth(i), e)
		}
	}
	s.Close(false)
}

func readFirst(l *commitlog.Log) error {
	rd, err := l.Read(0, 1, l.Ends().Written, true)
	if err != nil {
		return err
	}
	defer rd.Release()
	if len(rd.Ranges) == 0 {
		return fmt.Errorf("nothing to read below %+v", l.Ends())
	}
	_, err = rd.Ranges[0].File.ReadAt(make([]byte, 61), rd.Ranges[0].Pos)
	return err
}
