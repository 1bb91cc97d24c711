// Package cleaner removes what a topic's settings let go: whole segments by age and size. (Compaction comes with its
// own issue.)
//
// It decides nothing about a log, which knows its segments and settings; it walks over all logs of a
// broker, one at a time, so that deleting never floods a disk, and goes on when one of them fails.
package cleaner

import "iter"

// Log is the part of a commit log that retention needs: *commitlog.Log.
type Log interface {
	// Retain removes segments that lie wholly below highWatermark and are out of time or over size, and
	// returns how many went.
	Retain(nowMs, highWatermark int64) (int, error)
}

// Candidate is one log and the bound of what may be removed from it.
type Candidate struct {
	Name          string
	Log           Log
	HighWatermark int64
}

// Failure is a log whose retention failed.
type Failure struct {
	Name string
	Err  error
}

// Retain applies retention at nowMs to each candidate, until stop says so, and returns how many segments went.
func Retain(nowMs int64, logs iter.Seq[Candidate], stop func() bool) (segments int, failures []Failure) {
	for c := range logs {
		if stop() {
			break
		}
		n, err := c.Log.Retain(nowMs, c.HighWatermark)
		segments += n
		if err != nil {
			failures = append(failures, Failure{c.Name, err})
		}
	}
	return segments, failures
}
