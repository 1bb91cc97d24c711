package hddsim

import (
	"testing"
	"time"
)

// recovery is how long it takes to load logs whose files are spread over a disk: two looks into the indexes, then the
// tail from beginning to end.
func recovery(t *testing.T, threads, logs int, tail int64) time.Duration {
	t.Helper()
	m := &Machine{}
	v := NewVolume(m, hdd(m), DefaultVolume())
	place := func(size int64) *Inode {
		f, err := v.Place(size, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	var tails, indexes []*Inode
	for range logs {
		tails = append(tails, place(tail))
		place(256 << 20)
		indexes = append(indexes, place(10<<20))
		place(256 << 20)
	}
	next := 0
	var actors []Actor
	for range threads {
		actors = append(actors, func(p *Proc) {
			for next < logs {
				i := next
				next++
				p.Read(indexes[i], &Reader{}, 5<<20, 4096, ReadOptions{})
				p.Read(indexes[i], &Reader{}, 9<<20, 4096, ReadOptions{})
				var h Reader
				for pos := int64(0); pos < tail; pos += 256 << 10 {
					p.Read(tails[i], &h, pos, 256<<10, ReadOptions{})
				}
			}
		})
	}
	return Run(v, time.Hour, 1, actors...)
}

// Logs are loaded by several threads even on a disk with one arm: short looks gain from its choice among them, and long
// tails lose some. (io/profile's default is made of this.)
func TestRecoveryThreads(t *testing.T) {
	for _, c := range []struct {
		tail  int64
		logs  int
		least float64 // how many times as fast as one thread 4 are
		most  float64
		what  string
	}{
		{4 << 10, 200, 1.8, 4, "looks"}, {1 << 20, 200, 0.95, 2, "short tails"}, {64 << 20, 24, 0.7, 1.1, "long tails"},
	} {
		one, four, eight := recovery(t, 1, c.logs, c.tail), recovery(t, 4, c.logs, c.tail), recovery(t, 8, c.logs, c.tail)
		gain := one.Seconds() / four.Seconds()
		t.Logf("%s: one thread %v, four %v: %.2f times as fast; eight: %.2f", c.what, one, four, gain, one.Seconds()/eight.Seconds())
		if gain < c.least || gain > c.most {
			t.Errorf("%s: %.2f times as fast", c.what, gain)
		}
	}
}
