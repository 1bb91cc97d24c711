package spindlebench

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"platter/io/backend"
	"platter/io/disk"
)

// Both benches of directories run in little, tell figures of every load, and leave nothing behind.
func TestDirectories(t *testing.T) {
	fs, _, err := backend.Select("auto")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if !evictable(t, fs, dir) {
		t.Skip("files cannot be dropped from the page cache here: nothing can be measured cold")
	}
	c := DefaultColdDir(fs, dir)
	c.Readers, c.BudgetBytes, c.Rounds, c.Span, c.TailRate = 4, 16<<20, 1, 500*time.Millisecond, 2e6
	r := &ColdResult{Bench: "cold", On: dir}
	if r.Rows, err = c.Run(t.Context(), ColdLoads(4)); err != nil {
		t.Fatal(err)
	}
	for _, rounds := range r.Rows {
		for _, f := range rounds {
			if f.Load.Readers > 0 && f.BytesPerSec <= 0 || f.Load.Tail && f.Append.Count == 0 || f.Load.Lane && f.Lane.Runs == 0 {
				t.Errorf("%+v", f)
			}
		}
	}
	p := DefaultPartitionDir(fs, dir)
	p.RunBytes, p.Rounds = 8<<20, 1
	q := &PartitionResult{Bench: "partitions", On: dir, Durability: "pagecache"}
	if q.Rows, err = p.Run(t.Context(), PartitionWays(16)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	if err := q.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one reader", "lane, by buffers", "16 partitions"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// evictable tries it.
func evictable(t *testing.T, fs disk.FS, dir string) bool {
	t.Helper()
	path := dir + "/probe"
	f, err := fs.Open(path, disk.Create)
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Remove(path)
	defer f.Close()
	const size = 1 << 20
	if _, err := f.WriteV([][]byte{make([]byte, size)}, 0); err != nil {
		t.Fatal(err)
	}
	if f.Sync() != nil || f.Advise(0, size, disk.DontNeed) != nil {
		return false
	}
	have, err := f.Resident(0, size)
	return err == nil && have < size/10
}

func TestAnswers(t *testing.T) {
	var a answers
	stream := []byte{0, 0, 0, 3, 'a', 'b', 'c', 0, 0, 0, 0, 0, 0, 0, 2, 'd', 'e'}
	got := int64(0)
	for i := range stream {
		got = a.take(stream[i : i+1])
	}
	if got != 5 {
		t.Errorf("%d bytes of answers, want 5", got)
	}
	var b answers
	if got := b.take(stream); got != 5 {
		t.Errorf("at once: %d", got)
	}
}
