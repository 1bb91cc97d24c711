package groups

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// workerEnv makes this test binary a consumer of its own: "addr group balancer instance".
const workerEnv = "PLATTER_TEST_WORKER"

// work is one franz-go consumer that says on its standard output what it owns and what it has done:
//
//	O <generation> <partition>…   after each rebalance
//	R <partition> <from> <to>     records processed, before they are committed
func work(how string) {
	words := strings.Split(how, " ")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	w := &worker{owned: map[int32]bool{}}
	opts := []kgo.Opt{
		kgo.SeedBrokers(words[0]), kgo.ConsumerGroup(words[1]), kgo.ConsumeTopics("t"), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.BlockRebalanceOnPoll(), kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.SessionTimeout(2 * time.Second), kgo.HeartbeatInterval(100 * time.Millisecond), kgo.RebalanceTimeout(5 * time.Second),
		kgo.MetadataMinAge(50 * time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 30 * time.Millisecond }),
		kgo.OnPartitionsAssigned(w.assigned), kgo.OnPartitionsRevoked(w.revoked), kgo.OnPartitionsLost(w.revoked),
	}
	if words[2] == "range" {
		opts = append(opts, kgo.Balancers(kgo.RangeBalancer()))
	}
	if words[3] != "-" {
		opts = append(opts, kgo.InstanceID(words[3]))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer cl.Close()
	for ctx.Err() == nil {
		fs := cl.PollRecords(ctx, 100)
		fs.EachPartition(func(p kgo.FetchTopicPartition) {
			if n := len(p.Records); n > 0 {
				fmt.Println("R", p.Partition, p.Records[0].Offset, p.Records[n-1].Offset)
			}
		})
		_ = cl.CommitUncommittedOffsets(ctx) // refused when the group has gone on: then another reads it again
		cl.AllowRebalance()
	}
}

type worker struct {
	mu    sync.Mutex
	owned map[int32]bool
}

func (w *worker) assigned(_ context.Context, cl *kgo.Client, parts map[string][]int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range parts["t"] {
		w.owned[p] = true
	}
	_, generation := cl.GroupMetadata()
	line := []any{"O", generation}
	for p := range w.owned {
		line = append(line, p)
	}
	slices.SortFunc(line[2:], func(a, b any) int { return int(a.(int32)) - int(b.(int32)) })
	fmt.Println(line...)
}

func (w *worker) revoked(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range parts["t"] {
		delete(w.owned, p)
	}
}
