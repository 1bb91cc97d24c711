package delivery

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"platter/tools/proc"
)

// consumerArgs tell the child what to read, and what comes first.
type consumerArgs struct {
	Addr, Topic, Group string
	CommitFirst        bool
}

// consume is the child: it reads a few records at a time, commits and "processes" them, which is to print
// them, and between the two stands still until it is told to go on. There is no worse moment to kill it.
func consume(text []byte) error {
	var a consumerArgs
	if err := json.Unmarshal(text, &a); err != nil {
		return err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(a.Addr), kgo.ConsumerGroup(a.Group), kgo.ConsumeTopics(a.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(sessionTimeout), kgo.HeartbeatInterval(sessionTimeout/10), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	orders := bufio.NewReader(os.Stdin)
	ctx := context.Background()
	for {
		fs := cl.PollRecords(ctx, 1+rand.IntN(20))
		records := fs.Records()
		if len(records) == 0 {
			cl.AllowRebalance()
			continue
		}
		first, second := func() error { return process(records) }, func() error { return cl.CommitRecords(ctx, records...) }
		if a.CommitFirst {
			first, second = second, first
		}
		err := first()
		if err == nil {
			fmt.Println("between")
			if _, err := orders.ReadString('\n'); err != nil {
				return nil // the test is gone
			}
			err = second()
		}
		if err != nil {
			// The group has gone on without us: what was not committed comes again, to whoever has it then.
			fmt.Printf("refused %v\n", err)
		}
		cl.AllowRebalance()
	}
}

func process(records []*kgo.Record) error {
	var out strings.Builder
	out.WriteString("processed")
	for _, r := range records {
		out.WriteString(" " + string(r.Value))
	}
	_, err := fmt.Println(out.String())
	return err
}

// sessionTimeout is short, so that a member that was killCount does not hold up the next for long.
const sessionTimeout = 600 * time.Millisecond

// killConsumers has records consumed by one child after another, each killed between its two steps; the last
// one goes on to the end. It returns how often each record was processed.
func killConsumers(t *testing.T, commitFirst bool, records, kills int) map[string]int {
	t.Helper()
	b := startBroker(t)
	fill(t, b.Addr(), "t", records)
	rnd := proc.Random(t, *seed)
	args := consumerArgs{b.Addr(), "t", "g", commitFirst}
	times := map[string]int{}
	for range kills {
		c := proc.StartChild(t, "consume", args)
		for left := 1 + rnd.IntN(4); left > 0; {
			if !heed(t, c, times) {
				continue
			}
			if left--; left > 0 {
				c.Tell("go")
			}
		}
		c.Signal(syscall.SIGKILL)
		for line := range c.Lines {
			t.Errorf("a child that was to stand still said %q", line)
		}
	}
	markEnds(t, b.Addr(), "t")
	c := proc.StartChild(t, "consume", args)
	for ends := 0; ends < partitionCount; {
		if heed(t, c, times) {
			c.Tell("go")
		}
		ends = 0
		for p := range partitionCount {
			ends += min(times[endMark(p)], 1)
		}
	}
	for p := range partitionCount {
		delete(times, endMark(p))
	}
	return times
}

// heed takes the next line of a child, and says whether the child stands between its steps.
func heed(t *testing.T, c *proc.Child, times map[string]int) bool {
	t.Helper()
	select {
	case line, ok := <-c.Lines:
		if !ok {
			t.Fatalf("a consumer has ended by itself: %v", c.Wait())
		}
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "processed":
			for _, v := range strings.Fields(rest) {
				times[v]++
			}
		case "refused":
			t.Log(line)
		}
		return word == "between"
	case <-time.After(60 * time.Second):
		t.Fatal("a consumer reads nothing")
	}
	return false
}

const (
	recordCount = 2000
	killCount   = 8
)

// TestAtLeastOnce: processed first, committed then. Whatever is killed in between is processed again; nothing
// is lost.
func TestAtLeastOnce(t *testing.T) {
	t.Parallel()
	times := killConsumers(t, false, recordCount, killCount)
	lost, doubled := count(times, recordCount)
	t.Logf("%d kills, %d of %d records twice or more", killCount, doubled, recordCount)
	if lost > 0 {
		t.Errorf("%d records were never processed", lost)
	}
	if doubled == 0 {
		t.Error("no record was processed twice: the kills missed their moment")
	}
}

// TestAtMostOnce: committed first, processed then. Whatever is killed in between is lost; nothing is
// processed twice.
func TestAtMostOnce(t *testing.T) {
	t.Parallel()
	times := killConsumers(t, true, recordCount, killCount)
	lost, doubled := count(times, recordCount)
	t.Logf("%d kills, %d of %d records lost", killCount, lost, recordCount)
	if doubled > 0 {
		t.Errorf("%d records were processed more than once", doubled)
	}
	if lost == 0 {
		t.Error("no record was lost: the kills missed their moment")
	}
	if lost > killCount*20 {
		t.Errorf("%d records were lost by %d kills, with 20 under way at most", lost, killCount)
	}
}

func count(times map[string]int, records int) (lost, doubled int) {
	for _, n := range times {
		if n > 1 {
			doubled++
		}
	}
	return records - len(times), doubled
}
