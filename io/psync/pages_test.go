//go:build linux && !portable

package psync

import (
	"path/filepath"
	"testing"
	"time"

	"platter/io/disk"
)

// until repeats what the kernel may undo at any time (it takes pages back, and brings others in), until it
// was seen to hold once.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

const pagesCount = 64

// pagesOf is a file whose pages can be dropped, or the test is skipped.
func pagesOf(t *testing.T, fs *FS) disk.File {
	t.Helper()
	dir := t.TempDir()
	if c := fs.Caps(dir); !c.Resident || !c.Advise || c.FileSystem == "tmpfs" {
		t.Skipf("SKIPPED residency: pages of %s cannot be dropped or counted", c.FileSystem)
	}
	f := create(t, fs, filepath.Join(dir, "f"))
	if _, err := f.WriteV([][]byte{make([]byte, pagesCount*pageBytes)}, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil { // dirty pages cannot be dropped
		t.Fatal(err)
	}
	return f
}

func resident(t *testing.T, f disk.File, pos, n int64) int64 {
	t.Helper()
	got, err := f.Resident(pos, n)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func drop(t *testing.T, f disk.File) {
	t.Helper()
	until(t, "all pages are dropped", func() bool {
		if err := f.Advise(0, pagesCount*pageBytes, disk.DontNeed); err != nil {
			t.Fatal(err)
		}
		return resident(t, f, 0, pagesCount*pageBytes) == 0
	})
}

// TestResident: whole pages count, and a range says that all is there only when it is.
func TestResident(t *testing.T) {
	f := pagesOf(t, New())
	const size = pagesCount
	if err := f.Advise(0, size*pageBytes, disk.Random); err != nil { // nothing is read ahead
		t.Fatal(err)
	}
	until(t, "the second page alone is there", func() bool {
		drop(t, f)
		if _, err := f.ReadAt(make([]byte, 1), pageBytes+7); err != nil {
			t.Fatal(err)
		}
		return resident(t, f, 0, size*pageBytes) == pageBytes
	})
	for _, c := range []struct{ pos, n, want int64 }{
		{pageBytes, pageBytes, pageBytes},
		{pageBytes + 1, 5, 5},
		{pageBytes - 1, 2, 0},         // one of two pages is missing
		{pageBytes - 1, pageBytes, 0}, // likewise
		{0, 2 * pageBytes, pageBytes}, // likewise, but a whole page is there
		{2 * pageBytes, pageBytes, 0},
		{pageBytes, 0, 0},
	} {
		if got := resident(t, f, c.pos, c.n); got > c.want { // the kernel may have taken it back
			t.Errorf("%d bytes at %d: %d are there, want %d", c.n, c.pos, got, c.want)
		}
	}
	fd := f.(*file).fd
	until(t, "mincore and cachestat agree", func() bool {
		a, errA := cachestat(fd, 0, size)
		b, errB := mincore(fd, 0, size)
		if errB != nil {
			t.Fatal(errB)
		}
		return errA != nil || a == b // a kernel before 6.5 has no cachestat
	})
}

// TestColdReadsLeaveNothing: a cold batch leaves no pages, another one leaves all, and a cold one takes
// none away that were there.
func TestColdReadsLeaveNothing(t *testing.T) {
	fs := New()
	f := pagesOf(t, fs)
	if !fs.Caps(filepath.Dir(f.Path())).DontCache {
		t.Skip("SKIPPED cold reads: RWF_DONTCACHE is refused here")
	}
	const size = pagesCount
	var reads []disk.Read
	for i := range int64(8) {
		reads = append(reads, disk.Read{File: f, Buf: make([]byte, size/8*pageBytes), Pos: i * size / 8 * pageBytes})
	}
	read := func(cold bool) int64 {
		fs.ReadBatch(reads, cold)
		for _, r := range reads {
			if r.N != len(r.Buf) || r.Err != nil {
				t.Fatalf("%d of %d bytes, %v", r.N, len(r.Buf), r.Err)
			}
		}
		return resident(t, f, 0, size*pageBytes)
	}
	until(t, "a cold batch leaves nothing", func() bool { drop(t, f); return read(true) == 0 })
	until(t, "another batch leaves all", func() bool { drop(t, f); return read(false) == size*pageBytes })
	until(t, "a cold batch leaves what was there", func() bool {
		read(false)
		return read(true) == size*pageBytes
	})
}
