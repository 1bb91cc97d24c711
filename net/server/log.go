package server

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Lines that peers can provoke are bounded, in all and for each cause, so that a flood of one does not
// hide another: a burst, and so many a second.
const (
	logBurst           = 200
	logPerSecond       = 20
	logBurstOfCause    = 10
	logPerSecondOfOne  = 1
	causesKept         = 256
	causeBytesCompared = 120
)

// LimitedLog writes warnings at a bounded rate and says how many like it a line stands for.
type LimitedLog struct {
	log *slog.Logger

	mu     sync.Mutex
	all    bucket
	causes map[string]*bucket
}

// bucket gives out tokens at a rate.
type bucket struct {
	tokens float64
	last   time.Time
	missed int // lines left out since the last one
}

func (b *bucket) take(now time.Time, burst, perSecond float64) bool {
	b.tokens = min(burst, b.tokens+perSecond*now.Sub(b.last).Seconds())
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// NewLimitedLog limits what goes to l by its warnings.
func NewLimitedLog(l *slog.Logger) *LimitedLog {
	return &LimitedLog{log: l, all: bucket{tokens: logBurst, last: time.Now()}, causes: map[string]*bucket{}}
}

// Warn logs as slog's Warn, or counts what it leaves out. Lines are alike when the message and the
// argument "err" are, but for digits.
func (l *LimitedLog) Warn(msg string, args ...any) {
	now := time.Now()
	key := causeOf(msg, args)
	l.mu.Lock()
	b := l.causes[key]
	if b == nil {
		if len(l.causes) == causesKept {
			clear(l.causes)
		}
		b = &bucket{tokens: logBurstOfCause, last: now}
		l.causes[key] = b
	}
	if !b.take(now, logBurstOfCause, logPerSecondOfOne) || !l.all.take(now, logBurst, logPerSecond) {
		b.missed++
		l.mu.Unlock()
		return
	}
	missed := b.missed
	b.missed = 0
	l.mu.Unlock()
	if missed > 0 {
		args = append(args, "suppressed_before", missed)
	}
	l.log.Warn(msg, args...)
}

// causeOf is what lines have in common that are alike.
func causeOf(msg string, args []any) string {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] == "err" {
			msg += ": " + fmt.Sprint(args[i+1])
			break
		}
	}
	if len(msg) > causeBytesCompared {
		msg = msg[:causeBytesCompared]
	}
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, msg)
}
