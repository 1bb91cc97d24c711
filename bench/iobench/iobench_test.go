package iobench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"platter/bench/stats"
	"platter/io/backend"
)

// tiny is the smallest run: what is tested is that every kind of cell works, not what it measures.
func tiny(t *testing.T) Options {
	return Options{
		Dir: t.TempDir(), BudgetBytes: 64 << 20, Seed: 1,
		SampleTime: time.Microsecond, CellTime: time.Microsecond, PairsMin: 1, PairsMax: 2,
	}
}

func left(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestEveryCellKindRuns makes a run of one cell of each kind, as short as it can be.
func TestEveryCellKindRuns(t *testing.T) {
	o := tiny(t)
	type kind struct{ op, a, b string }
	seen := map[kind]bool{}
	o.take = func(c *Cell) bool {
		k := kind{c.Op, c.A.Backend + c.A.How, c.B.How}
		fresh := !seen[k]
		seen[k] = true
		return fresh
	}
	steps := 0
	o.Progress = func(done, total int, _ string) { steps++ }
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if steps != len(r.Cells)+1 || len(r.Cells) == 0 {
		t.Errorf("%d steps of progress for %d cells", steps, len(r.Cells))
	}
	groups := map[Group]bool{}
	names := map[string]bool{}
	for i := range r.Cells {
		c := &r.Cells[i]
		groups[c.Group] = true
		if names[c.Name()] {
			t.Errorf("twice: %s", c.Name())
		}
		names[c.Name()] = true
		if c.Skipped != "" {
			t.Logf("skipped: %s: %s", c.Name(), c.Skipped)
			continue
		}
		if c.Pairs == 0 || len(c.A.Samples) != c.Pairs || len(c.B.Samples) != c.Pairs ||
			c.A.BytesPerSecond <= 0 || c.B.BytesPerSecond <= 0 || !(c.Throughput.Low <= c.Throughput.Ratio && c.Throughput.Ratio <= c.Throughput.High) {
			t.Errorf("%s: %+v", c.Name(), *c)
		}
	}
	for _, g := range []Group{Coalescing, AutoChoice, Cold} {
		if !groups[g] {
			t.Errorf("no cells of group %s", g)
		}
	}
	if len(r.Claims) == 0 {
		t.Error("nothing is claimed")
	}
	if got := left(t, o.Dir); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
	if r.Env.Kernel == "" || r.Env.FileSystem == "" || r.Env.Backends["portable"] != "runs" {
		t.Errorf("%+v", r.Env)
	}
	var again Result
	p, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(p, &again); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, &again); d != "" {
		t.Errorf("not the same after JSON: %s", d)
	}
	if loaded, err := Load(bytes.NewReader(p)); err != nil || len(loaded.Cells) != len(r.Cells) {
		t.Errorf("loaded: %v", err)
	}
}

// TestNothingIsLeftWhenItIsStopped ends the context in the middle.
func TestNothingIsLeftWhenItIsStopped(t *testing.T) {
	o := tiny(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o.Progress = func(done, _ int, _ string) {
		if done == 2 {
			cancel()
		}
	}
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if got := left(t, o.Dir); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestOthersFilesAreLeftAlone(t *testing.T) {
	o := tiny(t)
	o.Only = "append 1 KiB, 1 files"
	if err := os.Mkdir(o.Dir+"/platter-bench-io-1", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if got := left(t, o.Dir); len(got) != 1 || got[0] != "platter-bench-io-1" {
		t.Errorf("in the directory: %v", got)
	}
	o.Dir += "/none"
	if _, err := Run(context.Background(), o); err == nil {
		t.Error("a directory that is not there is taken")
	}
}

func TestFullPlanHasTheGrid(t *testing.T) {
	fs, _, err := backend.Select("auto")
	if err != nil {
		t.Fatal(err)
	}
	defer closeFS(fs)
	o := Options{Full: true}
	o.setDefaults()
	sizes, files, names := map[int]bool{}, map[int]bool{}, map[string]bool{}
	for _, c := range plan(o, fs, t.TempDir()) {
		sizes[c.SizeBytes], files[c.Files] = true, true
		if names[c.Name()] {
			t.Errorf("twice: %s", c.Name())
		}
		names[c.Name()] = true
		if int64(c.SizeBytes)*int64(c.Depth) > 16<<20 {
			t.Errorf("%s: a round of %d bytes", c.Name(), c.SizeBytes*c.Depth)
		}
	}
	for _, n := range allSizes {
		if !sizes[n] {
			t.Errorf("no cell of %d bytes", n)
		}
	}
	for _, n := range allFiles {
		if !files[n] {
			t.Errorf("no cell of %d files", n)
		}
	}
}

func samples(perSecond ...float64) (ss []stats.Sample) {
	for _, v := range perSecond {
		ss = append(ss, stats.Sample{Bytes: 1e6, Seconds: 1e6 / v, CPUSeconds: 2e6 / v})
	}
	return ss
}

func cell(g Group, op, a, aHow, b, bHow string, ratio, low, high float64) Cell {
	return Cell{
		Group: g, Op: op, SizeBytes: 4096, Files: 1, Depth: deep, Pairs: 3,
		A:          Side{Backend: a, How: aHow, BytesPerSecond: ratio, Typical: []float64{ratio}, Samples: samples(ratio)},
		B:          Side{Backend: b, How: bHow, BytesPerSecond: 1, Typical: []float64{1}, Samples: samples(1)},
		Throughput: stats.Interval{Ratio: ratio, Low: low, High: high},
	}
}

func TestClaims(t *testing.T) {
	calls := &Calls{Reads: 1000, Writes: 5, RingOps: 64}
	auto := func(low float64) Cell {
		c := cell(AutoChoice, OpRead, "auto", Plain, "psync", Plain, 1, low, 1.1)
		c.A.Calls, c.B.Calls = calls, &Calls{Reads: 1010, Writes: 9, RingOps: 64}
		return c
	}
	cold := cell(Cold, OpCold, "uring", Batch, "psync", Goroutines, 1.25, 1.2, 1.3)
	cold.SizeBytes = 64 << 10
	good := []Cell{
		auto(0.96), auto(0.97), auto(0.98), auto(0.99), auto(0.99), auto(0.99), auto(0.99), auto(0.99), auto(0.99), auto(0.9),
		cell(Coalescing, OpAppend, "auto", Coalesced, "auto", Plain, 2.5, 2.4, 2.6),
		cold,
		cell(Empty, OpNop, "uring", ByRing, "uring", BareRing, 0.7, 0.6, 0.8),
		cell(Backends, OpRead, "uring", Batch, "psync", Batch, 0.8, 0.7, 0.9),
		{Group: Coalescing, Op: OpAppend, A: Side{Backend: "auto"}, Depth: deep, Skipped: "no room"},
	}
	got := claims(good)
	if len(got) != 6 {
		t.Errorf("%d claims", len(got))
	}
	for _, c := range got {
		if !c.Holds {
			t.Errorf("does not hold: %+v", c)
		}
	}
	if last := got[5].Got; !strings.Contains(last, "0.80") {
		t.Errorf("where the ring loses: %s", last)
	}
	bad := []Cell{
		auto(0.96), auto(0.9),
		cell(Coalescing, OpAppend, "auto", Coalesced, "auto", Plain, 1.9, 1.8, 2.6),
		cell(Empty, OpNop, "uring", ByRing, "uring", BareRing, 0.4, 0.3, 0.5),
	}
	bad[0].B.Calls = &Calls{Reads: 1010, Writes: 9, RingOps: 0}
	slow := cold
	slow.Throughput = stats.Interval{Ratio: 1.2, Low: 1.1, High: 1.3} // time up to 0.91
	for _, c := range claims(append(bad, slow)) {
		if c.Holds {
			t.Errorf("holds: %+v", c)
		}
	}
	if got := claims(nil); len(got) != 0 {
		t.Errorf("claims of nothing: %+v", got)
	}
}

func TestCompare(t *testing.T) {
	one := &Result{Cells: []Cell{
		cell(Coalescing, OpAppend, "auto", Coalesced, "auto", Plain, 3, 3, 3),
		cell(AutoChoice, OpAppend, "auto", Coalesced, "psync", Coalesced, 5, 5, 5),
	}}
	two := &Result{Cells: []Cell{cell(Coalescing, OpAppend, "portable", Coalesced, "auto", Plain, 7, 7, 7)}}
	want := []Row{
		{OpAppend, 4096, 1, deep, "auto", Plain, []float64{1, 1}, []float64{2e9, 2e9}},
		{OpAppend, 4096, 1, deep, "auto", Coalesced, []float64{3, 0}, []float64{4e8, 0}},
		{OpAppend, 4096, 1, deep, "portable", Coalesced, []float64{0, 7}, []float64{0, 2e9 / 7}},
		{OpAppend, 4096, 1, deep, "psync", Coalesced, []float64{1, 0}, []float64{2e9, 0}},
	}
	round := cmp.Comparer(func(a, b float64) bool { return a == b || a-b < 1e-6*b && b-a < 1e-6*b })
	if d := cmp.Diff(want, Compare([]*Result{one, two}), round); d != "" {
		t.Error(d)
	}
}

func TestLoadRefusesOtherThings(t *testing.T) {
	for _, text := range []string{"", "{}", "[1]", `{"cells":[]}`, `{"cells":"x"}`} {
		if _, err := Load(strings.NewReader(text)); err == nil {
			t.Errorf("%q is taken for a result", text)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"cells":[{"op":"append","a":{"samples":[{"bytes":1,"seconds":1}]}}]}`))
	f.Fuzz(func(t *testing.T, p []byte) {
		if r, err := Load(bytes.NewReader(p)); err == nil {
			Compare([]*Result{r, r})
		}
	})
}
