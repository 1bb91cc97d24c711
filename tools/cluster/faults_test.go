package cluster

import (
	"context"
	"flag"
	"os"
	"syscall"
	"testing"
	"time"

	"platter/tools/history"
	"platter/tools/killtest"
	"platter/tools/proc"
)

var (
	faults = flag.Int("faults", 40, "how many faults there are")
	seed   = flag.Uint64("seed", 0, "seed of the faults and the load; 0: from the clock")
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	proc.Cleanup()
	os.Exit(code)
}

// TestFaultsUnderLoad kills, suspends and restarts brokers and the coordinator at random, one broker at a time,
// under idempotent producers with acks=all: what was acknowledged is there, once and in order, and in the end
// all replicas are the same.
func TestFaultsUnderLoad(t *testing.T) {
	rnd := proc.Random(t, *seed)
	const topic, partitions = "load", 8
	coordinator := StartCoordinator(t, proc.Binary(t))
	c := New(t, proc.Binary(t), 3, coordinator.Addr(), map[string]string{
		"log.segment.bytes": "1048576", "min.insync.replicas": "2", "default.replication.factor": "3",
	})
	c.Start()
	c.Create(topic, partitions, 3, nil)
	adm := c.Admin()
	c.AwaitWhole(adm, topic)
	load, err := killtest.StartLoad(c.Bootstrap(), topic, partitions, 3, rnd.Uint64())
	if err != nil {
		t.Fatal(err)
	}
	defer load.Abandon()
	counts := map[string]int{}
	for range *faults {
		time.Sleep(time.Duration(rnd.IntN(400)) * time.Millisecond)
		b := c.Brokers[rnd.IntN(len(c.Brokers))]
		pause := time.Duration(rnd.IntN(2000)) * time.Millisecond
		switch rnd.IntN(8) {
		case 0, 1, 2:
			counts["kill"]++
			b.Kill()
			time.Sleep(pause)
			b.Launch()
		case 3:
			counts["kill and long absence"]++
			b.Kill()
			time.Sleep(SessionTimeoutMs*time.Millisecond + pause)
			b.Launch()
		case 4:
			counts["suspend"]++
			b.Signal(syscall.SIGSTOP)
			time.Sleep(2 * pause)
			b.Signal(syscall.SIGCONT)
		case 5, 6:
			counts["stop"]++
			b.Stop()
			time.Sleep(pause / 4)
			b.Launch()
		case 7:
			counts["coordinator"]++
			coordinator.Kill()
			time.Sleep(pause / 2)
			coordinator.Start()
		}
		if err := b.WaitReady(60 * time.Second); err != nil {
			t.Fatalf("after a fault: %v\n%s", err, b.LogTail(60))
		}
	}
	t.Logf("faults: %v", counts)
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	if err := load.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	c.AwaitWhole(adm, topic)
	read, err := killtest.ReadAll(ctx, c.Bootstrap(), topic)
	if err != nil {
		t.Fatal(err)
	}
	sent, failed := load.Sent()
	for _, err := range failed[:min(5, len(failed))] {
		t.Errorf("a producer gave up: %v", err)
	}
	vs := history.Check(sent, read)
	for _, v := range vs[:min(20, len(vs))] {
		t.Error(v)
	}
	t.Logf("%d records sent, %d read", len(sent), len(read))
	for _, b := range c.Brokers {
		b.Stop()
	}
	if err := c.SameBytes(topic, partitions); err != nil {
		t.Error(err)
	}
}
