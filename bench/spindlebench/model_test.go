package spindlebench

import (
	"testing"
	"time"
)

func TestTune(t *testing.T) {
	c := DefaultColdModel()
	for _, l := range []Load{
		{Name: "quiet", Tail: true}, {Name: "one", Readers: 1}, {Name: "one+tail", Readers: 1, Tail: true},
		{Name: "one lane", Readers: 1, Lane: true},
		{Name: "plain", Readers: 16, Tail: true}, {Name: "lane", Readers: 16, Lane: true, Tail: true},
		{Name: "lane quiet", Readers: 16, Lane: true},
		{Name: "buffers", Readers: 16, Lane: true, Buffers: true, Tail: true},
	} {
		at := time.Now()
		f, err := c.Run(l)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-10s %6.1f MB/s  least %d most %d  append %v %v %v max %v  tail %v %v max %v; runs %d mean %d KiB reclaimed %d  [%v]", l.Name, f.BytesPerSec/1e6, f.Least>>20, f.Most>>20,
			f.Append.P50, f.Append.P99, f.Append.P999, f.Append.Max, f.TailRead.P50, f.TailRead.P99, f.TailRead.Max, f.Lane.Runs, f.Lane.RunBytes/max(1, f.Lane.Runs)>>10, f.Lane.Reclaimed, time.Since(at))
	}
}
