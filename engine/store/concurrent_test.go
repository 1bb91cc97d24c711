package store

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"platter/engine/commitlog"
	"platter/io/clock"
)

// TestConcurrentUse lets everything that may run at once run at once; the race detector looks on. What is closed
// cleanly at the end opens again as it was.
func TestConcurrentUse(t *testing.T) {
	r := newRig(t, "d1", "d2")
	c := r.c
	c.FS, c.Clock = r.disk, clock.Real{}
	c.RetentionCheckMs, c.CheckpointMs, c.HighWatermarkMs, c.FlushCheckMs = 5, 3, 2, math.MaxInt64
	c.RecoveryThreadsPerDir = 4
	s, err := Open(context.Background(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := commitlog.DefaultConfig()
	cfg.FileDeleteDelayMs, cfg.FlushMs, cfg.SegmentBytes = 1, 10, 500
	var wg sync.WaitGroup
	for w := range uint64(6) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(w, 1))
			for range 150 {
				p := nth(rng.IntN(8))
				switch rng.IntN(8) {
				case 0:
					err := s.Delete(p)
					if err != nil {
						t.Errorf("delete: %v", err)
					}
				case 1:
					s.All()
					s.Dirs()
					s.HighWatermarkCheckpoint(p)
				default:
					l, err := s.Create(p, UUID{byte(1 + rng.IntN(2)), 1}, cfg)
					if err != nil {
						t.Errorf("create: %v", err)
						continue
					}
					// Another may have deleted it meanwhile.
					if err := appendTo(l, 2); err != nil && !errors.Is(err, commitlog.ErrClosed) {
						t.Errorf("append: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	want := map[TP]int64{}
	for _, p := range s.All() {
		want[p] = s.Get(p).Ends().Written
	}
	if err := s.Close(true); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(context.Background(), c, nil); err != nil {
		t.Fatal(err)
	}
	defer s.Close(false)
	if len(s.All()) != len(want) {
		t.Errorf("%d logs, %d were closed", len(s.All()), len(want))
	}
	for p, end := range want {
		if l := s.Get(p); l == nil || l.Ends().Written != end {
			t.Errorf("%v ended at %d, now %v", p, end, l)
		}
	}
}
