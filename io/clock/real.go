package clock

import "time"

// Real is the machine's clock. The zero value is ready.
type Real struct{}

// Now is time.Now.
func (Real) Now() time.Time { return time.Now() }

// NowMs is Unix time in milliseconds.
func (Real) NowMs() int64 { return time.Now().UnixMilli() }

// After is time.After.
func (Real) After(d time.Duration) <-chan time.Time { return time.After(d) }

// AfterFunc is time.AfterFunc.
func (Real) AfterFunc(d time.Duration, f func()) (stop func() bool) { return time.AfterFunc(d, f).Stop }
