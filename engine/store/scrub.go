package store

import (
	"context"
	"errors"
	"time"

	"platter/engine/commitlog"
)

// scrubPauseMs lies between two rounds of the scrub, so that little data is not read all the time.
const scrubPauseMs = 3_600_000

// scrubLoop reads all logs slowly, one after the other, round after round: rot below the recovery point is
// found by nobody else, since sending a batch never looks at its bytes. What is bad is logged, and refused
// to readers from then on.
func (s *Store) scrubLoop(d *dataDir) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	rate := max(1, s.c.ScrubBytesPerSecond/int64(len(s.dirs))) // together they read as fast as they may
	for s.sleep(firstDelayMs) {
		s.scrub(ctx, s.each(d), func(bytes int64) { s.sleep(bytes * 1000 / rate) })
		if !s.sleep(scrubPauseMs) {
			return
		}
	}
}

// Scrub checks every byte of every log that is here, and returns how many ranges are known to be bad. pace is
// called with the bytes that were just read. It runs by itself, at Config.ScrubBytesPerSecond.
func (s *Store) Scrub(ctx context.Context, pace func(bytes int64)) (bad int) {
	return s.scrub(ctx, s.each(nil), pace)
}

func (s *Store) scrub(ctx context.Context, logs []*held, pace func(bytes int64)) (bad int) {
	began := time.Now()
	for _, h := range logs {
		found, err := h.log.Verify(ctx, pace)
		bad += len(found)
		switch {
		case ctx.Err() != nil:
			return bad
		case err != nil && !errors.Is(err, commitlog.ErrClosed) && !errors.Is(err, commitlog.ErrOffline):
			// Who needs what cannot be read will find out; the rest is served until then.
			s.log.Error("a log cannot be read to its end", "log", h.tp.String(), "error", err)
		}
	}
	if bad > 0 {
		s.log.Error("stored data is corrupt; it is not served, and only a good replica could repair it", "ranges", bad)
	} else {
		s.log.Debug("all logs were checked for rot", "took", time.Since(began))
	}
	return bad
}
