package server

import (
	"log/slog"
	"sync"
	"time"
)

// Lines that peers can provoke are bounded: a burst, and so many a second.
const (
	logBurst     = 20
	logPerSecond = 5
)

// LimitedLog writes warnings at a bounded rate and says how many it left out.
type LimitedLog struct {
	log *slog.Logger

	mu     sync.Mutex
	tokens float64
	last   time.Time
	missed int
}

// NewLimitedLog limits what goes to l by its warnings.
func NewLimitedLog(l *slog.Logger) *LimitedLog {
	return &LimitedLog{log: l, tokens: logBurst, last: time.Now()}
}

// Warn logs as slog's Warn, or counts what it leaves out.
func (l *LimitedLog) Warn(msg string, args ...any) {
	l.mu.Lock()
	now := time.Now()
	l.tokens = min(logBurst, l.tokens+logPerSecond*now.Sub(l.last).Seconds())
	l.last = now
	if l.tokens < 1 {
		l.missed++
		l.mu.Unlock()
		return
	}
	l.tokens--
	missed := l.missed
	l.missed = 0
	l.mu.Unlock()
	if missed > 0 {
		args = append(args, "suppressed_before", missed)
	}
	l.log.Warn(msg, args...)
}
