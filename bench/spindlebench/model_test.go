package spindlebench

import (
	"testing"
	"time"
)

// claim is a modelled bench in little: half a minute of virtual time.
func claim(device string) ColdModel {
	c := DefaultColdModel(device)
	c.Span, c.WarmUp = 30*time.Second, 5*time.Second
	return c
}

func play(t *testing.T, c ColdModel, l Load) Figures {
	t.Helper()
	f, err := c.Run(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%2d readers, lane %-5v buffers %-5v tail %-5v: %5.1f MB/s, least %d MiB, most %d; append p99 %v max %v, tail reader p99 %v; %d runs of %d KiB",
		l.Readers, l.Lane, l.Buffers, l.Tail, f.BytesPerSec/1e6, f.Least>>20, f.Most>>20, f.Append.P99, f.Append.Max, f.TailRead.P99,
		f.Lane.Runs, f.Lane.RunBytes/max(1, f.Lane.Runs)>>10)
	return f
}

// TestColdLane is what is claimed of the lane: sixteen catch-up readers on cold data together keep at least 70% of one
// sequential reader's MB/s, while an appender and a tail reader at 20 MB/s keep a p99 of at most twice the quiet one. It runs in virtual
// time, so the figures are the same on every machine.
func TestColdLane(t *testing.T) {
	for _, device := range []string{"hdd7200", "hdd5400", "raid10"} {
		t.Run(device, func(t *testing.T) {
			c := claim(device)
			one := play(t, c, Load{Readers: 1})
			quiet := play(t, c, Load{Tail: true})
			plain := play(t, c, Load{Readers: 16, Tail: true})
			for _, buffers := range []bool{false, true} {
				laned := play(t, c, Load{Readers: 16, Lane: true, Buffers: buffers, Tail: true})
				if laned.BytesPerSec < 0.7*one.BytesPerSec {
					t.Errorf("16 readers: %.1f MB/s of one's %.1f", laned.BytesPerSec/1e6, one.BytesPerSec/1e6)
				}
				if laned.Append.P99 > 2*quiet.Append.P99 || laned.TailRead.P99 > 2*quiet.TailRead.P99 {
					t.Errorf("p99 of appends %v and of the tail reader %v, quiet %v and %v", laned.Append.P99, laned.TailRead.P99, quiet.Append.P99, quiet.TailRead.P99)
				}
				if laned.Least < laned.Most*8/10 {
					t.Errorf("turns are not fair: one reader got %d MiB, another %d", laned.Least>>20, laned.Most>>20)
				}
				if laned.Count() == 0 || quiet.Count() == 0 {
					t.Error("nothing was appended")
				}
				if !buffers && laned.BytesPerSec < plain.BytesPerSec {
					t.Errorf("without the lane it is faster: %.1f MB/s", plain.BytesPerSec/1e6)
				}
			}
		})
	}
}

// Many readers: the kernel's queue sorts what the disk's own does not hold, which helps those without the lane.
func TestColdLaneOfMany(t *testing.T) {
	c := claim("hdd7200")
	c.FileBytes = 4 << 30
	plain := play(t, c, Load{Readers: 64, Tail: true})
	laned := play(t, c, Load{Readers: 64, Lane: true, Tail: true})
	if laned.BytesPerSec < 1.2*plain.BytesPerSec {
		t.Errorf("%.1f MB/s with the lane, %.1f without", laned.BytesPerSec/1e6, plain.BytesPerSec/1e6)
	}
}

// A small dirty budget: readers that crowd the disk hold up writeback, and it the appender; the lane leaves it its time.
func TestAppenderIsNotHeldUp(t *testing.T) {
	c := claim("hdd7200")
	c.MemoryBytes = 32 << 20
	c.Params.Lane.MemoryBytes = 12 << 20
	quiet := play(t, c, Load{Tail: true})
	plain := play(t, c, Load{Readers: 16, Tail: true})
	laned := play(t, c, Load{Readers: 16, Lane: true, Tail: true})
	if laned.Append.P99 > 2*quiet.Append.P99 {
		t.Errorf("p99 of appends %v, quiet %v", laned.Append.P99, quiet.Append.P99)
	}
	if plain.Append.P99 < 10*quiet.Append.P99 {
		t.Errorf("the model does not show what the lane is for: p99 %v without it, quiet %v", plain.Append.P99, quiet.Append.P99)
	}
}

// The same seed, the same figures.
func TestModelRepeats(t *testing.T) {
	c := claim("hdd7200")
	c.Span = 5 * time.Second
	l := Load{Readers: 16, Lane: true, Tail: true}
	if a, b := play(t, c, l), play(t, c, l); a != b {
		t.Errorf("two runs differ:\n%+v\n%+v", a, b)
	}
}

// TestPartitions: appends over 256 partitions without sync reach at least 90% of one file's MB/s on the same modelled
// disk, as long as the dirty budget allows it.
func TestPartitions(t *testing.T) {
	c := DefaultPartitionModel()
	c.Span = 40 * time.Second
	limit, rows, err := c.Break(Growth{Name: "256 files", Files: 256}, 0.9)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		t.Logf("%-10s dirty limit %4d MiB: %5.1f MB/s, %.1f pieces a file", r.Growth.Name, r.DirtyBytes>>20, r.BytesPerSec/1e6, r.Pieces)
	}
	t.Logf("at least 90%% of one file's rate down to %d MiB", limit>>20)
	if rows[1].BytesPerSec < 0.9*rows[0].BytesPerSec {
		t.Errorf("256 files %.1f MB/s, one %.1f", rows[1].BytesPerSec/1e6, rows[0].BytesPerSec/1e6)
	}
	if last := rows[len(rows)-1]; last.BytesPerSec >= 0.9*rows[0].BytesPerSec {
		t.Errorf("it does not break at %d MiB", last.DirtyBytes>>20)
	}
}
