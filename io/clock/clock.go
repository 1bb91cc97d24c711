// Package clock is time as the broker sees it: real, virtual (tests step it) and skewed.
package clock

import "time"

// Clock is safe for concurrent use.
type Clock interface {
	Now() time.Time
	// NowMs is Unix time in milliseconds.
	NowMs() int64
	// After delivers once d has passed.
	After(d time.Duration) <-chan time.Time
	// AfterFunc runs f on its own goroutine once d has passed; stop reports whether it was in time.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}
