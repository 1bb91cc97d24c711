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
// tails lose next to nothing. (io/profile's default for it is made of this.)
func TestRecoveryThreads(t *testing.T) {
	for _, c := range []struct {
		tail    int64
		logs    int
		atLeast float64 // how many times faster 8 threads are
		upTo    float64
		what    string
	}{
		{4 << 10, 200, 2, 6, "looks"}, {1 << 20, 200, 1.05, 3, "short tails"}, {64 << 20, 24, 0.9, 1.2, "long tails"},
	} {
		one, eight := recovery(t, 1, c.logs, c.tail), recovery(t, 8, c.logs, c.tail)
		gain := one.Seconds() / eight.Seconds()
		t.Logf("%s: one thread %v, eight %v: %.2f times", c.what, one, eight, gain)
		if gain < c.atLeast || gain > c.upTo {
			t.Errorf("%s: %.2f times", c.what, gain)
		}
	}
}
