package killtest

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"platter/tools/history"
	"platter/tools/proc"
)

var (
	kills = flag.Int("kills", 100, "how often the broker is killed")
	seed  = flag.Uint64("seed", 0, "seed of the moments and the load; 0: from the clock")
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	proc.Cleanup()
	os.Exit(code)
}

const (
	topic          = "killed"
	partitionCount = 6
	producerCount  = 4
)

// TestNothingAcknowledgedIsLost kills the broker with SIGKILL under idempotent load. The page cache
// outlives the process, so every acknowledged record must still be there, once, in order.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	vs, sent, failed := killRun(t, proc.Binary(t), *kills, nil)
	t.Logf("%d kills, %d records sent", *kills, len(sent))
	for _, err := range failed[:min(5, len(failed))] {
		t.Errorf("a producer gave up: %v", err)
	}
	for _, v := range vs[:min(20, len(vs))] {
		t.Error(v)
	}
	if len(vs) > 20 {
		t.Errorf("… and %d more", len(vs)-20)
	}
}

// TestPlantedBugIsFound: a broker whose recovery cuts one batch too many must not pass, or the checker
// above proves nothing.
func TestPlantedBugIsFound(t *testing.T) {
	const plantedKills = 15
	vs, _, failed := killRun(t, proc.Binary(t, "plantedbug"), plantedKills, nil)
	if len(vs) == 0 && len(failed) == 0 {
		t.Fatalf("%d kills of a broker with a planted bug went by unnoticed", plantedKills)
	}
	t.Logf("found: %d violations, %d producers gave up; the first: %v %v", len(vs), len(failed), vs[:min(1, len(vs))], failed[:min(1, len(failed))])
}

func killRun(t *testing.T, bin string, kills int, props map[string]string) ([]history.Violation, []history.Record, []error) {
	t.Helper()
	rnd := proc.Random(t, *seed)
	b := proc.New(t, bin, t.TempDir())
	for k, v := range props {
		b.Props[k] = v
	}
	// Small segments, so that kills also fall into rolls.
	b.Props["log.segment.bytes"] = "1048576"
	b.Start()
	proc.CreateTopic(t, b.Addr(), topic, partitionCount)
	load, err := StartLoad(b.Addr(), topic, partitionCount, producerCount, rnd.Uint64())
	if err != nil {
		t.Fatal(err)
	}
	defer load.Abandon()
	for range kills {
		time.Sleep(time.Duration(rnd.IntN(250)) * time.Millisecond)
		b.Kill()
		b.Launch()
		// One kill in four falls into the start itself.
		if rnd.IntN(4) == 0 {
			time.Sleep(time.Duration(rnd.IntN(60)) * time.Millisecond)
			continue
		}
		if err := b.WaitReady(90 * time.Second); err != nil {
			t.Fatalf("after a kill: %v\n%s", err, b.LogTail(60))
		}
	}
	if err := b.WaitReady(90 * time.Second); err != nil {
		t.Fatalf("after the last kill: %v\n%s", err, b.LogTail(60))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := load.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	read, err := ReadAll(ctx, b.Addr(), topic)
	if err != nil {
		t.Fatal(err)
	}
	b.Stop()
	sent, failed := load.Sent()
	acked := 0
	for _, r := range sent {
		if r.Offset >= 0 {
			acked++
		}
	}
	if acked < kills {
		t.Fatalf("only %d records were acknowledged over %d kills: the load did not run", acked, kills)
	}
	return history.Check(sent, read), sent, failed
}
