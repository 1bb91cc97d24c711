package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"platter/io/clock"
	"platter/io/disk"
	"platter/io/faultdisk"
	"platter/io/memdisk"
)

var (
	before = bytes.Repeat([]byte("old\n"), 700)
	after  = bytes.Repeat([]byte("the new one\n"), 500)
)

// prepared is a disk on which the file has its old content, durably.
func prepared(t *testing.T) *memdisk.FS {
	t.Helper()
	m := memdisk.New(memdisk.Options{})
	if err := disk.MkdirAllSync(m, "/d"); err != nil {
		t.Fatal(err)
	}
	if err := Write(m, "/d/f", before); err != nil {
		t.Fatal(err)
	}
	return m
}

func content(t *testing.T, fs disk.FS) []byte {
	t.Helper()
	p, err := disk.ReadFile(fs, "/d/f", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// crashes crashes write at each of its operations and after the last, and says what it found wrong.
func crashes(t *testing.T, write func(disk.FS, string, []byte) error) (wrong string) {
	m := prepared(t)
	start := m.Count()
	if err := write(m, "/d/f", after); err != nil {
		t.Fatal(err)
	}
	end := m.Count()
	for n := start + 1; n <= end+1; n++ {
		for seed := range uint64(100) {
			m := prepared(t)
			m.CrashAt(n, seed)
			err := write(m, "/d/f", after)
			if (err == nil) != (n > end) {
				t.Fatalf("crash at %d of %d: %v", n, end, err)
			}
			m.Crash(seed)
			got, err := disk.ReadFile(m, "/d/f", 1<<20)
			if err != nil || !bytes.Equal(got, after) && (n > end || !bytes.Equal(got, before)) {
				return fmt.Sprintf("crash at %d of %d, seed %d left %d bytes, %v", n, end, seed, len(got), err)
			}
			if err := write(m, "/d/f", after[:5]); err != nil {
				t.Fatalf("after the crash at %d: %v", n, err)
			}
			if got := content(t, m); !bytes.Equal(got, after[:5]) {
				t.Fatalf("after the crash at %d: %d bytes", n, len(got))
			}
		}
	}
	return ""
}

func TestACrashLeavesOldOrNew(t *testing.T) {
	if wrong := crashes(t, Write); wrong != "" {
		t.Error(wrong)
	}
}

// TestTheCheckFindsCarelessWriters leaves out each of the two syncs in turn.
func TestTheCheckFindsCarelessWriters(t *testing.T) {
	for _, rule := range []string{"sync *.tmp: lost", "syncdir *: lost"} {
		wrong := crashes(t, func(fs disk.FS, path string, content []byte) error {
			f := faultdisk.New(fs, 1, clock.Real{})
			if err := f.Script(rule); err != nil {
				t.Fatal(err)
			}
			return Write(f, path, content)
		})
		if wrong == "" {
			t.Errorf("with %q nothing was found wrong", rule)
		}
	}
}

func TestAFailureLeavesOld(t *testing.T) {
	for _, script := range []string{
		"create *.tmp: EMFILE", "truncate *.tmp: EIO", "write *.tmp: ENOSPC", "write *.tmp: short 7 ENOSPC",
		"sync *.tmp: EIO", "close *.tmp: EIO", "rename f: EACCES",
	} {
		m := prepared(t)
		f := faultdisk.New(m, 1, clock.Real{})
		if err := f.Script(script); err != nil {
			t.Fatal(err)
		}
		if err := Write(f, "/d/f", after); !errors.Is(err, faultdisk.ErrInjected) {
			t.Errorf("%s: %v", script, err)
		}
		if !bytes.Equal(content(t, m), before) {
			t.Errorf("%s: the old content is gone", script)
		}
		if _, err := m.Stat("/d/f" + Suffix); !disk.IsNotExist(err) {
			t.Errorf("%s: left an unfinished file: %v", script, err)
		}
	}
}

func TestEmpty(t *testing.T) {
	m := prepared(t)
	if err := Write(m, "/d/f", nil); err != nil {
		t.Fatal(err)
	}
	if got := content(t, m); len(got) != 0 {
		t.Errorf("%d bytes", len(got))
	}
}
