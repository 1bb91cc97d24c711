package cluster

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"platter/tools/history"
	"platter/tools/proc"
)

// TestPlantedBugIsFound: brokers that acknowledge acks=all when the leader alone has written must not pass, or the
// faults under load prove nothing.
func TestPlantedBugIsFound(t *testing.T) {
	rnd := proc.Random(t, *seed)
	// A leader that waits for its followers for long: while they stand still it acknowledges, and then it is gone.
	s := newScene(t, proc.Binary(t, "plantedack"), rnd, map[string]string{"replica.lag.time.max.ms": "60000", "zookeeper.session.timeout.ms": "10000"})
	load := s.load(300)
	s.await(load, 100)
	victim := s.victim()
	others := slices.DeleteFunc(slices.Clone(s.c.Brokers), func(b *proc.Broker) bool { return b == victim })
	for _, b := range others {
		b.Signal(syscall.SIGSTOP)
	}
	time.Sleep(time.Second)
	victim.Kill()
	for _, b := range others {
		b.Signal(syscall.SIGCONT)
	}
	time.Sleep(time.Second)
	victim.Start()
	wrong := s.verdict(load, nil, true)
	lost := slices.IndexFunc(wrong, func(what string) bool { return strings.HasPrefix(what, string(history.Lost)) })
	if lost < 0 {
		t.Fatalf("acknowledged records are gone, and the checker has not noticed: %q", wrong[:min(5, len(wrong))])
	}
	t.Logf("%d things are wrong; the first that was lost: %s", len(wrong), wrong[lost])
}
