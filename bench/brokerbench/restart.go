package brokerbench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"platter/bench/stats"
)

// RestartResult says how long the broker took, from the start of the process over data left behind by
// kill -9, until it accepted connections, and until it was registered and ready.
type RestartResult struct {
	Bench            string    `json:"bench"`
	Partitions       int       `json:"partitions"`
	ListenSeconds    []float64 `json:"listen_seconds"`
	ReadySeconds     []float64 `json:"ready_seconds"`
	CleanSeconds     []float64 `json:"clean_ready_seconds"`
	MedianListen     float64   `json:"median_listen_seconds"`
	MedianReady      float64   `json:"median_ready_seconds"`
	MedianCleanReady float64   `json:"median_clean_ready_seconds"`
}

// Restart makes a topic of many partitions with a record in each, then kills and starts the broker again.
func Restart(ctx context.Context, o Options, partitions int) (res *RestartResult, err error) {
	dir, err := tempDir(o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	broker, err := startBroker(ctx, o.Exe, dir, o.Settings)
	if err != nil {
		return nil, err
	}
	defer func() { broker.stop() }()
	if err := seedPartitions(ctx, broker.addr, partitions); err != nil {
		return nil, err
	}
	res = &RestartResult{Bench: "restart", Partitions: partitions}
	for i := range 2 * o.Runs {
		clean := i >= o.Runs
		if clean {
			broker.stop()
		} else {
			_ = broker.cmd.Process.Kill()
			_ = broker.cmd.Wait()
		}
		listen, ready, next, err := broker.again(ctx, o.Exe, dir)
		if err != nil {
			return nil, err
		}
		broker = next
		if clean {
			res.CleanSeconds = append(res.CleanSeconds, ready.Seconds())
			continue
		}
		res.ListenSeconds = append(res.ListenSeconds, listen.Seconds())
		res.ReadySeconds = append(res.ReadySeconds, ready.Seconds())
		fmt.Fprintf(o.Progress, "\rrestart %d of %d  ", i+1, o.Runs)
	}
	fmt.Fprint(o.Progress, "\r\x1b[K")
	res.MedianListen, res.MedianReady = stats.Median(res.ListenSeconds), stats.Median(res.ReadySeconds)
	res.MedianCleanReady = stats.Median(res.CleanSeconds)
	return res, nil
}

// again starts the same broker over the same directory and times it.
func (c *child) again(ctx context.Context, exe, dir string) (listen, ready time.Duration, next *child, err error) {
	next = &child{addr: c.addr, http: c.http}
	next.cmd = commandOver(exe, dir)
	start := time.Now()
	if err := next.cmd.Start(); err != nil {
		return 0, 0, nil, err
	}
	for deadline := start.Add(60 * time.Second); ; {
		conn, err := net.DialTimeout("tcp", c.addr, time.Second)
		if err == nil {
			listen = time.Since(start)
			conn.Close()
			break
		}
		if time.Now().After(deadline) {
			next.stop()
			return 0, 0, nil, fmt.Errorf("the broker does not listen again: %w", err)
		}
		time.Sleep(time.Millisecond)
	}
	if err := next.waitReady(ctx); err != nil {
		next.stop()
		return 0, 0, nil, err
	}
	return listen, time.Since(start), next, nil
}

func seedPartitions(ctx context.Context, addr string, partitions int) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("restart"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, int32(partitions), 1, nil, "restart"); err != nil {
		return err
	}
	rs := make([]*kgo.Record, 10*partitions)
	for i := range rs {
		rs[i] = &kgo.Record{Partition: int32(i % partitions), Value: make([]byte, 500)}
	}
	return cl.ProduceSync(ctx, rs...).FirstErr()
}
