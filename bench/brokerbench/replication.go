package brokerbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"platter/bench/cputime"
	"platter/bench/rawload"
	"platter/bench/stats"
)

// Replication is what replication costs in one box: a topic with one replica against one with three, acks=all,
// and how fast a follower that lost its disk is filled again. CPU seconds are each broker's alone.
type Replication struct {
	Bench      string           `json:"bench"`
	Durability string           `json:"durability"`
	Rows       []ReplicationRow `json:"rows"`
	Refills    []stats.Sample   `json:"refills"`        // of a follower: its bytes and CPU seconds
	Bare       []stats.Sample   `json:"bare_refills"`   // the same bytes from the leader's segment by sendfile, a socket and write: the one that writes
	Ratio      stats.Ratio      `json:"refill_of_bare"` // throughput
	Busy       []stats.Sample   `json:"refills_busy"`   // refills while producers keep going
	Quiet      Latency          `json:"producers_alone"`
	Beside     Latency          `json:"producers_beside_refills"`
	Many       Many             `json:"many_partitions"`
}

// ReplicationRow is one batch size.
type ReplicationRow struct {
	BatchBytes int            `json:"batch_bytes"`
	One        []stats.Sample `json:"one_replica"`          // the leader
	Three      []stats.Sample `json:"three_replicas"`       // the leader
	Follower   []stats.Sample `json:"follower"`             // each of the two, on average
	Leader     stats.Ratio    `json:"leader_per_cpu_ratio"` // three over one
	Fetch      []float64      `json:"bytes_per_fetch"`      // of each run with three replicas, mean of the answers to followers
}

const replicationTopic = "bench-replication"

// trio is three brokers and their coordinator.
type trio struct {
	dir     string
	o       Options
	coord   *exec.Cmd
	brokers [3]*child
	client  *kgo.Client
	admin   *kadm.Client
}

func openTrio(ctx context.Context, o Options) (*trio, error) {
	dir, err := tempDir(o.Dir)
	if err != nil {
		return nil, err
	}
	t := &trio{dir: dir, o: o}
	fail := func(err error) (*trio, error) { return nil, errors.Join(err, t.close()) }
	port, err := freePort()
	if err != nil {
		return fail(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	t.coord = exec.Command(o.Exe, "coord", "--listen", addr, "--data", filepath.Join(dir, "coordinator"))
	if err := t.coord.Start(); err != nil {
		t.coord = nil
		return fail(err)
	}
	t.o.Settings = append([]string{"zookeeper.connect=" + addr, "zookeeper.session.timeout.ms=6000", "replica.lag.time.max.ms=5000", "log.segment.bytes=1073741824"}, o.Settings...)
	var seeds []string
	for i := range t.brokers {
		if err := t.start(ctx, i); err != nil {
			return fail(err)
		}
		seeds = append(seeds, t.brokers[i].addr)
	}
	if t.client, err = kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.MetadataMinAge(refillPoll)); err != nil {
		return fail(err)
	}
	t.admin = kadm.NewClient(t.client)
	return t, nil
}

// start starts a broker, over what is in its directory.
func (t *trio) start(ctx context.Context, i int) (err error) {
	dir := t.brokerDir(i)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	t.brokers[i], err = startBroker(ctx, t.o.Exe, dir, append([]string{fmt.Sprintf("broker.id=%d", i)}, t.o.Settings...))
	return err
}

func (t *trio) brokerDir(i int) string { return filepath.Join(t.dir, fmt.Sprintf("broker-%d", i)) }

func (t *trio) close() error {
	if t.client != nil {
		t.client.Close()
	}
	for _, b := range t.brokers {
		if b != nil {
			b.stop()
		}
	}
	if t.coord != nil {
		_ = t.coord.Process.Kill()
		_ = t.coord.Wait()
	}
	return os.RemoveAll(t.dir)
}

// MeasureReplication runs the bench.
func MeasureReplication(ctx context.Context, o Options) (res *Replication, err error) {
	t, err := openTrio(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	res = &Replication{Bench: "replication", Durability: "pagecache"}
	for _, size := range o.BatchBytes {
		row := ReplicationRow{BatchBytes: size}
		for i := range o.Runs {
			for j := range 2 {
				if err := t.produce(ctx, &row, (i+j)%2 == 0); err != nil {
					return nil, err
				}
			}
			fmt.Fprintf(o.Progress, "\r%d-byte batches: pair %d of %d  ", size, i+1, o.Runs)
		}
		fmt.Fprint(o.Progress, "\r\x1b[K")
		row.Leader = stats.PairRatio(row.Three, row.One, stats.Sample.BytesPerCPUSecond)
		res.Rows = append(res.Rows, row)
	}
	if err := t.refills(ctx, res); err != nil {
		return nil, err
	}
	res.Ratio = stats.PairRatio(res.Refills, res.Bare, stats.Sample.BytesPerSecond)
	return res, t.many(ctx, &res.Many)
}

// topic makes the topic anew, led by broker 0.
func (t *trio) topic(ctx context.Context, replicas int) error {
	if _, err := t.admin.DeleteTopic(ctx, replicationTopic); err != nil && !strings.Contains(err.Error(), "UNKNOWN_TOPIC") {
		return err
	}
	// Preferred leaders rotate from topic to topic: an assignment says who leads.
	return t.assigned(ctx, []int32{0, 1, 2}[:replicas])
}

// produce is one run with one replica, or with three.
func (t *trio) produce(ctx context.Context, row *ReplicationRow, three bool) error {
	replicas := 1
	if three {
		replicas = 3
	}
	if err := t.topic(ctx, replicas); err != nil {
		return err
	}
	bytes, send, err := t.load(row.BatchBytes)
	if err != nil {
		return err
	}
	before, err := t.followersCPU()
	if err != nil {
		return err
	}
	fetched, err := t.brokers[0].fetched(ctx)
	if err != nil {
		return err
	}
	sample, err := t.brokers[0].measure(func() (int64, error) { return bytes, send() })
	if err != nil {
		return err
	}
	if !three {
		row.One = append(row.One, sample)
		return nil
	}
	after, err := t.followersCPU()
	if err != nil {
		return err
	}
	now, err := t.brokers[0].fetched(ctx)
	if err != nil {
		return err
	}
	row.Fetch = append(row.Fetch, (now.bytes-fetched.bytes)/max(now.requests-fetched.requests, 1))
	row.Three = append(row.Three, sample)
	sample.CPUSeconds = (after - before).Seconds() / 2
	row.Follower = append(row.Follower, sample)
	return nil
}

// load is RunBytes of batches for the topic, to the leader, acknowledged by all in sync.
func (t *trio) load(batchBytes int) (bytes int64, send func() error, err error) {
	b, _, err := rawload.Shape{BatchBytes: batchBytes, RecordBytes: t.o.RecordBytes}.Batch()
	if err != nil {
		return 0, nil, err
	}
	frames := [][]byte{rawload.ProduceFrame(replicationTopic, 0, -1, b)}
	count := int(max(1, t.o.RunBytes/int64(len(b))))
	return int64(count) * int64(len(b)), func() error {
		return rawload.Pipeline(t.brokers[0].addr, frames, count, t.o.InFlight, 0, rawload.CheckProduce)
	}, nil
}

func (t *trio) followersCPU() (time.Duration, error) {
	each, err := t.cpu()
	if err != nil {
		return 0, err
	}
	return each[1] + each[2], nil
}

// cpu is the CPU time of each broker so far.
func (t *trio) cpu() (each [3]time.Duration, err error) {
	for i, b := range t.brokers {
		if each[i], err = cputime.Of(b.cmd.Process.Pid); err != nil {
			return each, err
		}
	}
	return each, nil
}
