package spindle

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"platter/io/disk"
	"platter/io/memdisk"
)

// TestJudgeDirty: sizes in MiB.
func TestJudgeDirty(t *testing.T) {
	datadriven.RunTest(t, "testdata/dirty.txt", func(t *testing.T, d *datadriven.TestData) string {
		var background, need, memory int64
		var active int
		d.ScanArgs(t, "background", &background)
		d.ScanArgs(t, "active", &active)
		d.ScanArgs(t, "need", &need)
		d.ScanArgs(t, "memory", &memory)
		v := JudgeDirty(DirtyBudget{2 * background * mib, background * mib}, active, need*mib, memory*mib)
		return fmt.Sprintf("runs of %d KiB, short %v, needs %d MiB\n%s\n", v.RunBytes>>10, v.Short, v.NeedBytes/mib, v.Advice)
	})
}

// proc makes the kernel's files on a disk in memory.
func proc(t *testing.T, files map[string]string) disk.FS {
	t.Helper()
	fs := memdisk.New(memdisk.Options{})
	for path, text := range files {
		if err := fs.MkdirAll(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		f, err := fs.Open(path, disk.Create)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteV([][]byte{[]byte(text)}, 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return fs
}

const memInfoText = "MemTotal:       24684688 kB\nMemFree:        13912688 kB\nMemAvailable:   20480000 kB\nHugePages_Total:       0\n"

func TestReadDirtyBudget(t *testing.T) {
	files := map[string]string{
		"/proc/meminfo": memInfoText, "/proc/sys/vm/dirty_bytes": "0\n", "/proc/sys/vm/dirty_ratio": "20\n",
		"/proc/sys/vm/dirty_background_bytes": "0\n", "/proc/sys/vm/dirty_background_ratio": "10\n",
	}
	fs := proc(t, files)
	const available = 20480000 << 10
	if b, err := ReadDirtyBudget(fs); err != nil || b != (DirtyBudget{available / 100 * 20, available / 100 * 10}) {
		t.Errorf("by ratios: %+v, %v", b, err)
	}
	if n := MemoryDefault(fs); n != memoryMax {
		t.Errorf("cold readers get %d", n)
	}
	files["/proc/sys/vm/dirty_bytes"], files["/proc/sys/vm/dirty_background_bytes"] = "1000000", "2000000"
	if b, err := ReadDirtyBudget(proc(t, files)); err != nil || b != (DirtyBudget{1000000, 500000}) {
		t.Errorf("by bytes, the background above the limit: %+v, %v", b, err)
	}
	files["/proc/sys/vm/dirty_bytes"] = "many"
	if _, err := ReadDirtyBudget(proc(t, files)); err == nil || !strings.Contains(err.Error(), "dirty_bytes") {
		t.Errorf("nonsense: %v", err)
	}
	if _, err := ReadDirtyBudget(memdisk.New(memdisk.Options{})); !disk.IsNotExist(err) {
		t.Errorf("no such system: %v", err)
	}
	if n := MemoryDefault(memdisk.New(memdisk.Options{})); n != memoryUnknown {
		t.Errorf("of unknown memory cold readers get %d", n)
	}
}

func FuzzMemInfo(f *testing.F) {
	f.Add([]byte(memInfoText), "MemTotal")
	f.Add([]byte("MemTotal: -5 kB"), "MemTotal")
	f.Add([]byte("MemTotal:"), "MemTotal")
	f.Fuzz(func(t *testing.T, p []byte, key string) {
		if n := memInfo(p, key); n < 0 {
			t.Errorf("%d", n)
		}
	})
}

// behindFS notes what is written behind.
type behindFS struct {
	disk.FS
	mu   sync.Mutex
	runs []int64
}

type behindFile struct {
	disk.File
	fs *behindFS
}

func (b *behindFS) Open(path string, m disk.Mode) (disk.File, error) {
	f, err := b.FS.Open(path, m)
	return &behindFile{f, b}, err
}

func (f *behindFile) WriteBehind(pos, n int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.runs = append(f.fs.runs, pos, n)
	return nil
}

// A short run is never written behind, and none where nobody asked for it.
func TestWriteBehind(t *testing.T) {
	for _, c := range []struct{ setting, run int64 }{{0, 0}, {1, 8 * mib}, {16 * mib, 16 * mib}} {
		s, cached, dir := newBench(t, func(p *Params) { p.WriteBehindBytes = c.setting })
		b := &behindFS{FS: cached}
		s.FS = b
		f, err := s.Open(filepath.Join(dir, "1.log"), disk.Create)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, mib)
		for pos := int64(0); pos < 40*mib; pos += mib {
			if _, err := f.WriteV([][]byte{buf}, pos); err != nil {
				t.Fatal(err)
			}
			for until := time.Now().Add(time.Minute); len(s.spindles[0].behind) > 0 && time.Now().Before(until); {
				time.Sleep(time.Millisecond)
			}
		}
		var want []int64
		for pos := int64(0); c.run > 0 && pos+c.run <= 40*mib; pos += c.run {
			want = append(want, pos, c.run)
		}
		b.mu.Lock()
		if !slices.Equal(b.runs, want) {
			t.Errorf("setting %d: runs %v, want %v", c.setting, b.runs, want)
		}
		b.mu.Unlock()
		if n := s.Stats()[0].ActiveFiles; n != 1 {
			t.Errorf("%d files grow", n)
		}
		f.Close()
	}
}
