package server

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestAFloodOfOneCauseHidesNoOther(t *testing.T) {
	out := new(logged)
	l := NewLimitedLog(slog.New(slog.NewTextHandler(out, nil)))
	for i := range 1000 {
		l.Warn("connection closed", "peer", i, "err", fmt.Errorf("frame of %d bytes", i))
	}
	l.Warn("connection closed", "peer", 1, "err", errors.New("a TLS hello"))
	if n := strings.Count(out.String(), "frame of"); n < logBurstOfCause || n > logBurstOfCause+3 {
		t.Errorf("%d lines of the flood", n)
	}
	if !strings.Contains(out.String(), "a TLS hello") {
		t.Error("the other cause is missing")
	}
}
