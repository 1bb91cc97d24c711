package store

import (
	"math"
	"time"

	"platter/engine/cleaner"
)

// firstDelayMs bounds how long after the start the slow loops first run: Kafka's 30 s.
const firstDelayMs = 30_000

// startLoops starts the background work that Config asks for, for each directory its own.
func (s *Store) startLoops() {
	for _, d := range s.dirs {
		s.startLoopsOf(d)
	}
}

func (s *Store) startLoopsOf(d *dataDir) {
	every := func(ms int64, fn func()) {
		if ms > 0 {
			d.loops.Go(func() { s.every(ms, fn) })
		}
	}
	every(s.c.RetentionCheckMs, func() { s.retain(d, s.c.Clock.NowMs()) })
	every(s.c.CheckpointMs, func() { _ = s.inDir(d, s.writeRecovery) }) // errors were logged
	every(s.c.HighWatermarkMs, func() { _ = s.inDir(d, s.writeMarks) })
	if s.c.FlushCheckMs > 0 {
		d.loops.Go(func() { s.flushLoop(d) })
	}
	if s.c.ScrubBytesPerSecond > 0 {
		d.loops.Go(func() { s.scrubLoop(d) })
	}
	if s.removes() {
		d.loops.Go(func() { s.removeLoop(d) })
	}
}

// removes says whether what is deleted goes by itself.
func (s *Store) removes() bool { return s.c.RetentionCheckMs > 0 || s.c.CheckpointMs > 0 }

func (s *Store) every(ms int64, fn func()) {
	wait := min(ms, firstDelayMs)
	for s.sleep(wait) {
		fn()
		wait = ms
	}
}

// sleep is false when the store is being closed.
func (s *Store) sleep(ms int64) bool {
	const longest = math.MaxInt64 / int64(time.Millisecond)
	select {
	case <-s.stop:
		return false
	case <-s.c.Clock.After(time.Duration(min(ms, longest)) * time.Millisecond):
		return true
	}
}

// Retain applies retention to every log at nowMs and returns how many segments went. It runs by itself every
// RetentionCheckMs.
func (s *Store) Retain(nowMs int64) (n int) {
	for _, d := range s.dirs {
		n += s.retain(d, nowMs)
	}
	return n
}

func (s *Store) retain(d *dataDir, nowMs int64) int {
	logs := s.each(d)
	n, failures := cleaner.Retain(nowMs, func(yield func(cleaner.Candidate) bool) {
		for _, h := range logs {
			mark, ok := int64(math.MaxInt64), true
			if s.c.HighWatermark != nil {
				mark, ok = s.c.HighWatermark(h.tp)
			}
			if ok && !yield(cleaner.Candidate{Name: h.tp.String(), Log: h.log, HighWatermark: mark}) {
				return
			}
		}
	}, s.stopping)
	for _, f := range failures {
		s.log.Warn("retention of a log failed", "log", f.Name, "error", f.Err)
	}
	return n
}

// Bounds of how often flush.ms is looked at, where log.flush.scheduler.interval.ms leaves it open.
const (
	flushPollMinMs = 10
	flushPollMaxMs = 1000
)

// flushLoop syncs each log of d whose oldest unsynced record is flush.ms old.
func (s *Store) flushLoop(d *dataDir) {
	wait := int64(flushPollMaxMs)
	for s.sleep(wait) {
		nowMs := s.c.Clock.NowMs()
		next := s.flushDue(d, nowMs)
		wait = s.c.FlushCheckMs
		if wait == math.MaxInt64 {
			wait = min(max(next-nowMs, flushPollMinMs), flushPollMaxMs)
		}
	}
}

// FlushDue syncs the logs that are due by their flush.ms at nowMs, and returns when the next one will be (2^63-1: none).
// It runs by itself, as FlushCheckMs says. One call at a time.
func (s *Store) FlushDue(nowMs int64) (nextMs int64) {
	nextMs = math.MaxInt64
	for _, d := range s.dirs {
		nextMs = min(nextMs, s.flushDue(d, nowMs))
	}
	return nextMs
}

func (s *Store) flushDue(d *dataDir, nowMs int64) (nextMs int64) {
	nextMs = math.MaxInt64
	var due []*held
	for _, h := range s.each(d) {
		flushMs := h.log.Config().FlushMs
		if e := h.log.Ends(); e.Durable >= e.Written || flushMs < 0 || flushMs == math.MaxInt64 {
			h.cleanAtMs = nowMs
			if e.Durable >= e.Written && flushMs >= 0 && flushMs < nextMs-nowMs {
				nextMs = nowMs + flushMs // if it is written to right now
			}
			continue
		}
		at := h.cleanAtMs + min(flushMs, math.MaxInt64-h.cleanAtMs)
		if at > nowMs {
			nextMs = min(nextMs, at)
			continue
		}
		due = append(due, h)
	}
	inParallel(s.c.serial, due, func(h *held) {
		if err := h.log.Sync(); err != nil {
			s.log.Warn("flush.ms: a log was not synced", "error", err)
			s.settleFailure(h.dir, err)
			return
		}
		h.cleanAtMs = nowMs
	})
	for _, h := range due {
		nextMs = min(nextMs, nowMs+max(h.log.Config().FlushMs, 0))
	}
	return nextMs
}
