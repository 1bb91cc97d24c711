package disklab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"platter/io/portable"
)

func tiny(t *testing.T) Options {
	return Options{Dir: t.TempDir(), BudgetBytes: BudgetMin, Time: time.Millisecond, FilesMax: 64, Seed: 1}
}

// entries of a directory.
func entries(t *testing.T, dir string) int {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(es)
}

// Every cell gives figures or says why not, on a real directory, and nothing is left there.
func TestEveryCellOnADirectory(t *testing.T) {
	o := tiny(t)
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		switch {
		case c.Skipped != "":
			t.Logf("%s, %s: left out: %s", c.Group, c.Name, c.Skipped)
		case c.Ops == 0 || c.Seconds <= 0:
			t.Errorf("%s, %s: %+v", c.Group, c.Name, c.Figures)
		}
		if c.Modelled {
			t.Errorf("%s, %s is called modelled", c.Group, c.Name)
		}
	}
	if n := entries(t, o.Dir); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	leftOut := slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Skipped != "" })
	if !leftOut && (len(r.Advice) == 0 || len(r.Verdict) == 0) {
		t.Errorf("advice %v, verdict %v", r.Advice, r.Verdict)
	}
	roundTrip(t, r)
}

// Every cell gives figures on a model, and the word stands wherever they are shown.
func TestEveryCellOnAModel(t *testing.T) {
	for _, m := range []Model{{Kind: "hdd"}, {Kind: "raid5", ChunkBytes: 64 << 10}, {Kind: "nvme"}} {
		t.Run(m.Kind, func(t *testing.T) {
			r, err := Run(context.Background(), Options{Model: &m, Seed: 1, FilesMax: 64, modelBytes: 128 << 20})
			if err != nil {
				t.Fatal(err)
			}
			for i := range r.Cells {
				if c := &r.Cells[i]; c.Ops == 0 || c.Seconds <= 0 || !c.Modelled {
					t.Errorf("%s, %s: %+v", c.Group, c.Name, c)
				}
			}
			for _, a := range r.Advice {
				if !strings.Contains(a.Why, "modelled") {
					t.Errorf("%s: the word is missing: %s", a.Setting, a.Why)
				}
			}
			for _, l := range r.Verdict {
				if !strings.Contains(l, "modelled") {
					t.Errorf("the word is missing: %s", l)
				}
			}
			roundTrip(t, r)
		})
	}
}

// roundTrip: what was written as JSON is read back, shows the same, and compares with itself as level.
func roundTrip(t *testing.T, r *Result) {
	t.Helper()
	p, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Load(bytes.NewReader(p))
	if err != nil {
		t.Fatal(err)
	}
	show := func(r *Result) string {
		var b bytes.Buffer
		if err := errors.Join(r.Print(&b), r.Page(&b), Compare(&b, "a", r, "b", r)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got, want := show(back), show(r); got != want {
		t.Errorf("read back, it shows otherwise")
	}
}

func TestTheSameModelGivesTheSameFigures(t *testing.T) {
	run := func() string {
		r, err := Run(context.Background(), Options{Model: &Model{Kind: "hdd7200"}, Seed: 3, Only: []Group{Device, Syncs}})
		if err != nil {
			t.Fatal(err)
		}
		p, _ := json.Marshal(r)
		return string(p)
	}
	if first, again := run(), run(); first != again {
		t.Error("two runs differ")
	}
}

// What a killed run has left is removed by the next one; what a run that goes on holds, and what only looks alike, is not.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	fs := portable.New()
	alive, lock, err := ownDir(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	killed, dead, err := ownDir(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	dead.Close() // as its end does
	foreign := filepath.Join(dir, ownPrefix+"notes")
	if err := errors.Join(os.Mkdir(foreign, 0o755), os.WriteFile(filepath.Join(killed, "span"), []byte("x"), 0o644)); err != nil {
		t.Fatal(err)
	}
	o := tiny(t)
	o.Dir, o.Only = dir, []Group{Syncs}
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	for path, stays := range map[string]bool{alive: true, killed: false, foreign: true} {
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: %v, should be there: %v", path, err, stays)
		}
	}
	if err := removeOwn(fs, alive, lock); err != nil || entries(t, dir) != 1 {
		t.Errorf("%v, %d entries", err, entries(t, dir))
	}
}

// A slow disk's run is kept within its time: what would take too long is left out.
func TestPace(t *testing.T) {
	cells := plan(Options{FilesMax: filesMax})
	began := time.Unix(0, 0)
	p, now := newPace(cells, began, DefaultTime), began
	for i := range cells {
		c := &cells[i]
		share := p.share(c, now)
		takes := share
		switch { // an arm, with a disk of 20 MB/s behind it
		case c.Group == Device && c.Depth > 1 && c.SizeBytes == longest:
			takes = time.Duration(int64(c.Depth)*c.SizeBytes/20) * time.Microsecond
		case c.Group == Growing && !c.SyncEach && c.Files >= manyFiles:
			takes = time.Duration(c.Files) * 10 * time.Millisecond
		}
		if p.leaves(c, expected(cells[:i], c), share, now) {
			c.Skipped = "too long"
			continue
		}
		now = now.Add(max(share, takes))
		c.fill(int64(takes.Seconds()*20e6), takes, []time.Duration{takes})
	}
	if took := now.Sub(began); took > 2*time.Minute {
		t.Errorf("it takes %v", took)
	}
	for _, g := range Groups {
		if !slices.ContainsFunc(cells, func(c Cell) bool { return c.Group == g && c.Skipped == "" }) {
			t.Errorf("nothing of %s is measured", g)
		}
	}
}

// Interrupted at any cell, a run removes what it made.
func TestCleanUpWhenInterrupted(t *testing.T) {
	for _, group := range Groups {
		t.Run(string(group), func(t *testing.T) {
			o := tiny(t)
			o.Only = []Group{group}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			seen := 0
			o.Progress = func(done, _ int, _ string) {
				if done == 1 {
					seen = entries(t, o.Dir)
					cancel()
				}
			}
			if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
				t.Fatalf("%v", err)
			}
			if n := entries(t, o.Dir); seen != 1 || n != 0 {
				t.Errorf("%d entries while it ran, %d are left", seen, n)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	for name, o := range map[string]Options{
		"no such directory":  {Dir: dir + "/none", BudgetBytes: BudgetMin},
		"a small budget":     {Dir: dir, BudgetBytes: BudgetMin - 1},
		"more than there is": {Dir: dir, BudgetBytes: 1 << 60},
		"no such backend":    {Dir: dir, BudgetBytes: BudgetMin, Backend: "none"},
		"no such model":      {Model: &Model{Kind: "tape"}},
		"one disk of six":    {Model: &Model{Kind: "hdd7200", Disks: 6}},
		"RAID-5 of two":      {Model: &Model{Kind: "raid5", Disks: 2}},
		"an odd RAID-10":     {Model: &Model{Kind: "raid10", Disks: 5}},
		"an odd chunk":       {Model: &Model{Kind: "raid0", ChunkBytes: 5000}},
		"a set of SSDs":      {Model: &Model{Kind: "raid0", Drive: "ssd"}},
		"a huge set":         {Model: &Model{Kind: "raid0", Disks: 1 << 30}},
		"an SSD that turns":  {Model: &Model{Kind: "ssd", RPM: 7200}},
		"a mad turn":         {Model: &Model{Kind: "hdd", RPM: 7}},
		"a tiny disk":        {Model: &Model{Kind: "hdd", CapacityBytes: 1 << 20}},
		"a span beyond":      {Model: &Model{Kind: "hdd", SpanBytes: 1 << 45}},
	} {
		if r, err := Run(context.Background(), o); err == nil || r != nil {
			t.Errorf("%s: taken", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
	if n := entries(t, dir); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"nothing": "", "no JSON": "disk", "another bench": `{"bench":"io"}`, "a kind that is not": `{"bench":"disk","profile":{"Kind":99}}`,
	} {
		if _, err := Load(strings.NewReader(in)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := Load(io.LimitReader(spaces{}, loadMax+5)); err == nil {
		t.Error("a file without end: taken")
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"bench":"disk","cells":[{"group":"device","name":"x","op":"read","pattern":"random","size_bytes":4096,"depth":1,"ops":1,"ops_per_second":0}]}`))
	f.Add([]byte(`{"bench":"disk","profile":{"Kind":1,"RAID":{"Level":"raid5","Data":-1,"ChunkBytes":9}},"advice":[{"setting":"a"}]}`))
	f.Fuzz(func(t *testing.T, p []byte) {
		r, err := Load(bytes.NewReader(p))
		if err != nil {
			return
		}
		Verdict(r)
		Recommend(r)
		if err := errors.Join(r.Print(io.Discard), Compare(io.Discard, "a", r, "b", r)); err != nil {
			t.Fatal(err)
		}
	})
}
