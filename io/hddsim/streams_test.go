package hddsim

import (
	"slices"
	"testing"
	"time"
)

// streams reads n cold files at once, each front to back as sendfile does, and gives their MB/s together, and the slowest's
// part of the fastest's.
func streams(t *testing.T, n int, readahead int64) (rate, fair float64) {
	t.Helper()
	m := &Machine{}
	p := DefaultVolume()
	p.ReadaheadBytes = readahead
	v := NewVolume(m, hdd(m), p)
	got := make([]int64, n)
	var actors []Actor
	for i := range n {
		f, err := v.Place(20<<30, 0)
		if err != nil {
			t.Fatal(err)
		}
		actors = append(actors, func(p *Proc) {
			var h Reader
			const piece = 256 << 10
			for ; ; got[i] += piece {
				p.Read(f, &h, got[i], piece, ReadOptions{NoCopy: true})
				p.Sleep(over(piece, 1250e6))
			}
		})
	}
	const span = 30 * time.Second
	Run(v, span, 1, actors...)
	var sum int64
	for _, g := range got {
		sum += g
	}
	return mbPerSec(sum, span), float64(slices.Min(got)) / float64(slices.Max(got))
}

// Many sequential readers at once are no sequential reader: each change of stream is a way of the arm. Longer readahead
// buys it back.
func TestManyStreams(t *testing.T) {
	one, _ := streams(t, 1, 128<<10)
	near(t, "one stream, MB/s", one, 150, 0.02)
	many, fair := streams(t, 16, 128<<10)
	long, _ := streams(t, 16, 4<<20)
	t.Logf("16 streams: %.0f MB/s, the slowest has %.2f of the fastest; with 4 MiB of readahead %.0f MB/s", many, fair, long)
	if many > 0.6*one || many < 0.2*one || fair < 0.6 || long < 1.5*many {
		t.Errorf("16 streams: %.0f of %.0f MB/s, %.2f, %.0f", many, one, fair, long)
	}
}
