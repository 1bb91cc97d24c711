package memdisk

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"platter/io/clock"
	"platter/io/disk"
)

func newDisk(capacity int64) *FS {
	return New(Options{CapacityBytes: capacity, Clock: clock.NewVirtual(time.Unix(0, 0))})
}

// TestAppendsAgainstHistory appends, overwrites and syncs at random, and checks a crash after every
// operation with a plain history: a sector is what it was at some moment since the last sync, the size
// one that it had, or a page boundary in between.
func TestAppendsAgainstHistory(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := newDisk(0)
		f, err := m.Open("/f", disk.Create)
		if err != nil {
			t.Fatal(err)
		}
		m.SyncDir("/")
		var content []byte
		history := [][]byte{nil} // contents since, and at, the last sync
		for step := range 30 {
			if rng.IntN(5) == 0 {
				f.Sync()
				history = history[:0]
			} else {
				pos := len(content)
				if rng.IntN(3) == 0 {
					pos = rng.IntN(len(content) + 1)
				}
				b := make([]byte, 1+rng.IntN(3000))
				for i := range b {
					b[i] = byte(1 + rng.IntN(255))
				}
				if _, err := f.WriteV([][]byte{b[:len(b)/2], b[len(b)/2:]}, int64(pos)); err != nil {
					t.Fatal(err)
				}
				content = append(bytes.Clone(content[:pos]), append(b, content[min(len(content), pos+len(b)):]...)...)
			}
			history = append(history, content)
			got, err := disk.ReadFile(m.CrashClone(rng.Uint64()), "/f", 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if why := illegal(got, history); why != "" {
				t.Fatalf("seed %d, step %d: %s", seed, step, why)
			}
		}
	}
}

func illegal(got []byte, history [][]byte) string {
	size := len(got)
	if size < len(history[0]) || size > len(history[len(history)-1]) {
		return fmt.Sprintf("size %d, was %d to %d", size, len(history[0]), len(history[len(history)-1]))
	}
	known := size%pageBytes == 0
	for _, h := range history {
		known = known || len(h) == size
	}
	if !known {
		return fmt.Sprintf("size %d was never that", size)
	}
	for at := 0; at < size; at += disk.SectorBytes {
		sector := got[at:min(size, at+disk.SectorBytes)]
		found := false
		for _, h := range history {
			was := make([]byte, disk.SectorBytes)
			if at < len(h) {
				copy(was, h[at:])
			}
			found = found || bytes.Equal(was[:len(sector)], sector)
		}
		if !found {
			return fmt.Sprintf("the sector at %d of %d bytes was never that", at, size)
		}
	}
	return ""
}

// work is a few operations of each kind; it stops at the first error.
func work(m *FS) error {
	for _, line := range [][]string{
		{"mkdir", "/d"}, {"write", "/d/a", "0", "ABCDEFGHIJ"}, {"sync", "/d/a"}, {"syncdir", "/d"},
		{"write", "/d/a", "3", "xy"}, {"write", "/d/tmp", "0", "T"}, {"sync", "/d/tmp"},
		{"rename", "/d/tmp", "/d/a"}, {"truncate", "/d/a", "0"}, {"write", "/d/b", "0", "B"},
		{"syncdir", "/"}, {"remove", "/d/a"}, {"syncdir", "/d"},
	} {
		if err := do(m, line); err != nil {
			return err
		}
	}
	return nil
}

func TestCrashAtEveryOperation(t *testing.T) {
	whole := newDisk(0)
	if err := work(whole); err != nil {
		t.Fatal(err)
	}
	if whole.Crashed() {
		t.Error("crashed without a crash point")
	}
	for n := int64(1); n <= whole.Count(); n++ {
		for seed := range uint64(10) {
			course := func() string {
				m := newDisk(0)
				m.CrashAt(n, seed)
				if err := work(m); !errors.Is(err, ErrCrashed) {
					t.Fatalf("crash at %d: %v", n, err)
				}
				if m.Count() != n || !m.Crashed() {
					t.Fatalf("crash at %d: %d operations, crashed: %v", n, m.Count(), m.Crashed())
				}
				if _, err := m.ReadDir("/"); !errors.Is(err, ErrCrashed) {
					t.Fatalf("read after the crash: %v", err)
				}
				killed := show(m.KillClone())
				m.Crash(seed)
				lost := show(m)
				if err := work(m); err != nil {
					t.Fatalf("crash at %d: the disk does not work afterwards: %v", n, err)
				}
				return killed + "\n" + lost
			}
			if first, second := course(), course(); first != second {
				t.Fatalf("crash at %d, seed %d, went two ways:\n%s\n%s", n, seed, first, second)
			}
		}
	}
}

func TestMkdirAllSyncSurvives(t *testing.T) {
	m := newDisk(0)
	for _, dir := range []string{"/a/b/c", "/a/b/d/e"} {
		if err := disk.MkdirAllSync(m, dir); err != nil {
			t.Fatal(err)
		}
	}
	for seed := range uint64(50) {
		if got := show(m.CrashClone(seed)); got != "/a/ /a/b/ /a/b/c/ /a/b/d/ /a/b/d/e/" {
			t.Fatalf("seed %d left %s", seed, got)
		}
	}
}

func TestHandlesAndLocksDieInACrash(t *testing.T) {
	for name, end := range map[string]func(*FS){"crash": func(m *FS) { m.Crash(1) }, "kill": (*FS).Kill} {
		m := newDisk(0)
		f, _ := m.Open("/f", disk.Create)
		l, _ := m.Lock("/lock")
		m.SyncDir("/")
		end(m)
		if _, err := f.Size(); !errors.Is(err, ErrCrashed) {
			t.Errorf("%s: an old handle: %v", name, err)
		}
		again, err := m.Lock("/lock")
		if err != nil {
			t.Errorf("%s: the lock outlived its process: %v", name, err)
		}
		l.Close()
		if _, err := m.Lock("/lock"); !errors.Is(err, disk.ErrLocked) {
			t.Errorf("%s: closing a dead lock freed the new one: %v", name, err)
		}
		again.Close()
	}
}

func TestACloneIsOnItsOwn(t *testing.T) {
	m := newDisk(0)
	if err := work(m); err != nil {
		t.Fatal(err)
	}
	do(m, []string{"write", "/d/b", "0", "BBB"})
	c := m.KillClone()
	before := show(m)
	do(c, []string{"write", "/d/b", "1", "CCC"})
	do(c, []string{"remove", "/d"})
	if show(m) != before {
		t.Errorf("%s became %s", before, show(m))
	}
	do(m, []string{"write", "/d/b", "0", "DDDDDDDDD"})
	if show(c) != "nothing" {
		t.Errorf("the clone shows %s", show(c))
	}
}

func TestHook(t *testing.T) {
	m := newDisk(0)
	refused := errors.New("refused")
	var seen []Op
	m.SetHook(func(o Op) error {
		seen = append(seen, o)
		m.CrashClone(uint64(o.N)) // allowed here
		if o.Kind == "sync" {
			return refused
		}
		return nil
	})
	f, err := m.Open("/f", disk.Create)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteV([][]byte{[]byte("abc"), []byte("de")}, 7)
	if err := f.Sync(); !errors.Is(err, refused) {
		t.Errorf("sync: %v", err)
	}
	want := []Op{{N: 1, Kind: "create", Path: "/f"}, {N: 2, Kind: "write", Path: "/f", Pos: 7, Len: 5}, {N: 3, Kind: "sync", Path: "/f"}}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("saw %v, want %v", seen, want)
	}
}

func TestFullDisk(t *testing.T) {
	m := newDisk(10 * pageBytes)
	f, _ := m.Open("/f", disk.Create)
	data := bytes.Repeat([]byte("x"), 8*pageBytes)
	if _, err := f.WriteV([][]byte{data}, 0); err != nil {
		t.Fatal(err)
	}
	n, err := f.WriteV([][]byte{data[:pageBytes], data}, 8*pageBytes)
	if n != 2*pageBytes || !errors.Is(err, disk.ErrFull) {
		t.Errorf("wrote %d: %v", n, err)
	}
	if err := f.Truncate(8 * pageBytes); err != nil {
		t.Fatal(err)
	}
	if err := f.Preallocate(0, 10*pageBytes); err != nil {
		t.Errorf("preallocate the last two pages: %v", err)
	}
	g, _ := m.Open("/g", disk.Create)
	if _, err := g.WriteV([][]byte{{1}}, 0); !errors.Is(err, disk.ErrFull) {
		t.Errorf("write where all is reserved: %v", err)
	}
	if _, err := f.WriteV([][]byte{data[:pageBytes]}, 8*pageBytes); err != nil {
		t.Errorf("write to what was reserved: %v", err)
	}
	if err := f.ReleaseTail(); err != nil {
		t.Fatal(err)
	}
	if _, err := g.WriteV([][]byte{{1}}, 0); err != nil {
		t.Errorf("write to what was released: %v", err)
	}
	m.Remove("/f")
	if m.UsedBytes() != 10*pageBytes {
		t.Errorf("a removed file that is open gave its room away: %d used", m.UsedBytes())
	}
	f.Close()
	if s, _ := m.Space("/"); m.UsedBytes() != pageBytes || s.FreeBytes != 9*pageBytes {
		t.Errorf("%d used, %+v", m.UsedBytes(), s)
	}
	m.Crash(3)
	m.SetCapacity(0)
	if h, err := m.Open("/h", disk.Create); err != nil {
		t.Fatal(err)
	} else if _, err := h.WriteV([][]byte{data, data, data}, 0); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}
