package epoch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"platter/engine/checkpoint"
	"platter/io/disk"
	"platter/io/memdisk"
)

// TestTranscript runs the scripts in testdata/cache: each line is one call; the history and the file follow.
func TestTranscript(t *testing.T) {
	datadriven.RunTest(t, "testdata/cache", func(t *testing.T, d *datadriven.TestData) string {
		m := memdisk.New(memdisk.Options{})
		if err := m.MkdirAll("d"); err != nil {
			t.Fatal(err)
		}
		c := empty(t, m)
		var out strings.Builder
		for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
			var a, b int64
			word, args, _ := strings.Cut(line, " ")
			fmt.Sscan(args, &a, &b)
			var err error
			switch word {
			case "assign":
				err = c.Assign(int32(a), b)
			case "quiet":
				c.AssignQuiet(int32(a), b)
			case "write":
				err = c.Write()
			case "end":
				err = c.TruncateFromEnd(a)
			case "start":
				err = c.TruncateFromStart(a)
			case "clear":
				err = c.Clear()
			case "ask":
				e, o := c.EndOffsetFor(int32(a), b)
				fmt.Fprintf(&out, "%s: %d %d\n", line, e, o)
				continue
			case "at":
				fmt.Fprintf(&out, "%s: %d\n", line, c.At(a))
				continue
			default:
				t.Fatalf("unknown word %q", word)
			}
			p, ferr := checkpoint.ReadFile(m, filepath.Join("d", FileName), 1<<20)
			if ferr != nil {
				p = []byte("none")
			}
			e, o := c.Latest()
			fmt.Fprintf(&out, "%s: %v latest %d@%d file %q %v\n", line, c.Entries(), e, o, p, err)
		}
		return out.String()
	})
}

// empty is the cache of a new directory.
func empty(t *testing.T, m *memdisk.FS) *Cache {
	t.Helper()
	c, err := Open(m, "d")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParse(t *testing.T) {
	got, err := Parse([]byte("0\n2\n0 0\n3 1500\n"))
	if err != nil || cmp.Diff([]Entry{{0, 0}, {3, 1500}}, got) != "" {
		t.Errorf("%v, %v", got, err)
	}
	for in, want := range map[string]string{
		"0\n2\n3 0\n3 5\n": "line 4: 3@5 does not rise above 3@0",
		"0\n2\n3 5\n4 5\n": "line 4: 4@5 does not rise above 3@5",
		"0\n1\n-1 5\n":     "line 3: -1@5 is negative",
		"0\n1\n1\n":        "line 3: 1 fields",
	} {
		if _, err := Parse([]byte(in)); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("0\n2\n0 0\n3 1500\n"))
	f.Add([]byte("0\n0\n"))
	f.Fuzz(func(t *testing.T, p []byte) {
		entries, err := Parse(p)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again, err := Parse(Format(entries))
		if err != nil || cmp.Diff(entries, again) != "" {
			t.Fatalf("%v becomes %v, %v", entries, again, err)
		}
	})
}

func TestUnreadableFileIsAnEmptyHistory(t *testing.T) {
	m := memdisk.New(memdisk.Options{})
	if err := m.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	c := empty(t, m)
	if err := c.Assign(1, 0); err != nil {
		t.Fatal(err)
	}
	f, err := m.Open(filepath.Join("d", FileName), disk.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(3); err != nil {
		t.Fatal(err)
	}
	c, err = Open(m, "d")
	if !errors.Is(err, ErrCorrupt) || c == nil || len(c.Entries()) != 0 {
		t.Fatalf("%v, %v", c, err)
	}
	if err := c.Assign(2, 7); err != nil {
		t.Fatal(err)
	}
	if c, err = Open(m, "d"); err != nil || fmt.Sprint(c.Entries()) != "[2@7]" {
		t.Fatalf("%v, %v", c, err)
	}
}

// TestCrash checks the promise of the package comment: whatever happens after a Sync, a power cut leaves a
// readable history that begins with what the Sync saw, as far as that was not truncated since.
func TestCrash(t *testing.T) {
	for seed := range uint64(400) {
		m := memdisk.New(memdisk.Options{})
		if err := m.MkdirAll("d"); err != nil {
			t.Fatal(err)
		}
		if err := m.SyncDir("."); err != nil {
			t.Fatal(err)
		}
		c := empty(t, m)
		rng := rand.New(rand.NewPCG(seed, 1))
		m.CrashAt(m.Count()+1+rng.Int64N(40), seed)
		var synced []Entry // durable, and not contradicted since
		cut := func(end int64) {
			for len(synced) > 0 && synced[len(synced)-1].StartOffset >= end {
				synced = synced[:len(synced)-1]
			}
		}
		end, epoch := int64(0), int32(0)
		for !m.Crashed() {
			end += 1 + rng.Int64N(5)
			switch rng.IntN(6) {
			case 0, 1, 2:
				epoch++
				c.Assign(epoch, end)
			case 3:
				end = rng.Int64N(end + 1)
				cut(end)
				c.TruncateFromEnd(end)
			case 4, 5:
				if c.Sync() == nil {
					synced = c.Entries()
				}
			}
		}
		m.Crash(seed)
		c, err := Open(m, "d")
		if err != nil && len(synced) > 0 {
			t.Fatalf("seed %d: %v is lost: %v", seed, synced, err)
		}
		got := c.Entries()
		if len(got) < len(synced) || cmp.Diff(synced, got[:len(synced)], cmp.Transformer("", func(e Entry) string { return e.String() })) != "" && len(synced) > 0 {
			t.Fatalf("seed %d: %v after the crash, %v was synced", seed, got, synced)
		}
	}
}
