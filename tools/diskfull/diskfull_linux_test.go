// Package diskfull lets a real broker process fill its file system, a small tmpfs of the test's own.
package diskfull

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sys/unix"

	"platter/tools/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.Cleanup()
	os.Exit(code)
}

const (
	fsBytes    = "48m"
	valueBytes = 64 << 10
)

// smallDisk mounts a tmpfs, and unmounts it when the test ends.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+fsBytes); err != nil {
		t.Skipf("needs root to mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func client(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addr), kgo.AllowAutoTopicCreation(),
		kgo.RecordRetries(2), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.UnknownTopicRetries(3))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// fill produces numbered records until one is refused; it returns how many were acknowledged, and why it ended.
func fill(ctx context.Context, cl *kgo.Client, topic string, from, most int) (int, error) {
	for i := from; i < from+most; i++ {
		v := make([]byte, valueBytes)
		binary.BigEndian.PutUint64(v, uint64(i))
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: v}).FirstErr(); err != nil {
			return i, err
		}
	}
	return from + most, nil
}

// readAll wants the records 0 to n-1, in order; one more, whose answer was lost, is allowed.
func readAll(t *testing.T, ctx context.Context, addr, topic string, n int) {
	t.Helper()
	cl := client(t, addr, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for next := 0; next < n; {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatalf("after %d of %d records: %v", next, n, err)
		}
		for r := range fs.RecordsAll() {
			if got := int(binary.BigEndian.Uint64(r.Value)); got != next {
				t.Fatalf("record %d stands where %d should", got, next)
			}
			next++
		}
	}
}

// TestFullDisk: produces are refused with a clear error and the log stays whole; fetch, restart and
// delete work; writing goes on once there is room.
func TestFullDisk(t *testing.T) {
	dir := smallDisk(t)
	b := proc.New(t, proc.Binary(t), dir)
	b.Props["log.segment.bytes"] = "4194304"
	b.Props["log.segment.delete.delay.ms"] = "0"
	b.Props["num.partitions"] = "1"
	b.Start()
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	cl := client(t, b.Addr())
	if n, err := fill(ctx, cl, "small", 0, 3); err != nil {
		t.Fatalf("after %d records: %v", n, err)
	}
	n, err := fill(ctx, cl, "big", 0, 2000)
	if err == nil {
		t.Fatalf("%d records fit on %s", n, fsBytes)
	}
	if !errors.Is(err, kerr.KafkaStorageError) {
		t.Errorf("the refusal is %v, want a storage error", err)
	}
	if !strings.Contains(b.Log(), "no space") {
		t.Errorf("the log does not say that the disk is full:\n%s", b.LogTail(20))
	}
	if n < 200 {
		t.Errorf("only %d records of %d bytes fit on %s", n, valueBytes, fsBytes)
	}
	readAll(t, ctx, b.Addr(), "big", n)
	readAll(t, ctx, b.Addr(), "small", 3)

	b.Kill()
	b.Start()
	readAll(t, ctx, b.Addr(), "big", n)
	b.Stop()
	b.Start()
	readAll(t, ctx, b.Addr(), "big", n)

	cl = client(t, b.Addr())
	if _, err := kadm.NewClient(cl).DeleteTopic(ctx, "big"); err != nil {
		t.Fatalf("a topic cannot be deleted on a full disk: %v", err)
	}
	deadline := time.Now().Add(90 * time.Second)
	at := 3
	for {
		if at, err = fill(ctx, cl, "small", at, 50); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no writing after the delete: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	readAll(t, ctx, b.Addr(), "small", at)
	b.Stop()
}
