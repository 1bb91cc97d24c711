// Package hang lets one of a broker's disks hang in the kernel, under load.
package hang

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sys/unix"

	"platter/tools/hddlab/lab"
	"platter/tools/hddlab/labtest"
	"platter/tools/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	labtest.Cleanup()
	proc.Cleanup()
	os.Exit(code)
}

const (
	inFlight   = 12_000
	threadsMax = 500
	memoryMax  = 2 << 30
	partitions = 32 // half of them on the disk that will hang
	batchBytes = 32 << 10
	// The appends that will hang are more than the memory for all requests.
	requestBytes = 64 << 20
	hungBytes    = 2 * requestBytes / (inFlight / 2)
	batchCount   = 96 // in each partition, before
	fetchBytes   = 48 << 10
	measureTime  = 2 * time.Second
)

// TestHang is acceptance point 5 of the I/O layer: 12,000 fetches and appends on a disk that hangs leave the process
// alive with few threads and bounded memory, and its other directory served as before; once the disk goes on, all
// are answered.
func TestHang(t *testing.T) {
	for i, backend := range []string{"psync", "uring", "portable"} {
		t.Run(backend, func(t *testing.T) {
			l := labtest.New(t, lab.Config{SizeBytes: 1 << 30})
			h := start(t, l, backend)
			h.fill()
			quiet := h.measure()
			proc.CreateTopic(t, h.Addr(), doomed, 4)
			h.chill()
			check(t, l.Stop())
			w := h.flood()
			h.awaitFull()
			hung := h.measure()
			t.Logf("%d requests hang: %d threads, %d MiB; the other directory: %.0f MB/s before, %.0f MB/s now, ratio %.2f",
				inFlight, h.threads(), h.RSSBytes()>>20, quiet, hung, hung/quiet)
			h.everythingElseWorks(i == 0)
			if n := h.threads(); n >= threadsMax {
				t.Errorf("%d threads", n)
			}
			if n := h.RSSBytes(); n > memoryMax {
				t.Errorf("%d MiB of memory", n>>20)
			}
			check(t, l.Resume())
			check(t, l.SetInstant(true))
			w.answered(t)
			h.produceTo(h.hung[0])
			if i > 0 {
				h.Stop()
				return
			}
			h.awaitGone(doomed)
			h.stopWhileHung()
		})
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(60 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// victim is a broker with two data directories.
type victim struct {
	*proc.Broker
	t          *testing.T
	lab        *lab.Lab
	hung, live []partition
}

func start(t *testing.T, l *lab.Lab, backend string) *victim {
	b := proc.New(t, proc.Binary(t), t.TempDir())
	b.Props["log.dirs"] = filepath.Join(b.Dir, "data") + "," + filepath.Join(l.Mount, "data")
	b.Props["io.backend"] = backend
	b.Props["log.segment.bytes"] = "1048576"
	// What looks after the logs in the background does so all the time.
	b.Props["log.retention.check.interval.ms"] = "500"
	b.Props["log.flush.offset.checkpoint.interval.ms"] = "500"
	b.Props["replica.high.watermark.checkpoint.interval.ms"] = "500"
	b.Props["log.segment.delete.delay.ms"] = "0"
	b.Props["queued.max.request.bytes"] = fmt.Sprint(requestBytes)
	b.Props["socket.request.max.bytes"] = "1048576"
	b.Launch()
	if err := b.WaitReady(60 * time.Second); err != nil {
		if strings.Contains(b.Log(), "not in this build") || strings.Contains(b.Log(), "io_uring") {
			t.Skipf("%s: %s", backend, strings.TrimSpace(b.LogTail(1)))
		}
		t.Fatalf("%v\n%s", err, b.LogTail(20))
	}
	v := &victim{Broker: b, t: t, lab: l}
	proc.CreateTopic(t, b.Addr(), "t", partitions)
	v.locate("t")
	if len(v.hung) == 0 || len(v.live) == 0 {
		t.Fatalf("%d partitions on the modelled disk, %d elsewhere", len(v.hung), len(v.live))
	}
	return v
}

// client is a short-lived admin client.
func (v *victim) client(ask func(context.Context, *kadm.Client) error) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(v.Addr()))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	admin := kadm.NewClient(cl)
	admin.SetTimeoutMillis(int32(answerLimit.Milliseconds())) // what the broker waits for its controller
	return ask(ctx, admin)
}

// locate finds out which directory a topic's partitions are in.
func (v *victim) locate(topic string) {
	v.t.Helper()
	check(v.t, v.client(func(ctx context.Context, c *kadm.Client) error {
		dirs, err := c.DescribeAllLogDirs(ctx, nil)
		if err != nil {
			return err
		}
		for _, broker := range dirs {
			for dir, d := range broker {
				for n := range d.Topics[topic] {
					if at := (partition{topic, n}); strings.HasPrefix(dir, v.lab.Mount) {
						v.hung = append(v.hung, at)
					} else {
						v.live = append(v.live, at)
					}
				}
			}
		}
		return nil
	}))
}

// fill gives every partition some segments.
func (v *victim) fill() {
	v.t.Helper()
	check(v.t, v.lab.SetInstant(true))
	batch := records(v.t, batchBytes)
	p, err := dial(v.Addr())
	check(v.t, err)
	defer p.Close()
	check(v.t, p.SetDeadline(time.Now().Add(2*answerLimit)))
	for _, to := range append(append([]partition(nil), v.hung...), v.live...) {
		for range batchCount {
			check(v.t, p.send(produce(to, batch)))
		}
		for range batchCount {
			check(v.t, p.produced())
		}
	}
	check(v.t, v.lab.SetInstant(false))
}

// produceTo makes one append and waits for it.
func (v *victim) produceTo(to partition) {
	v.t.Helper()
	if err := v.tryProduce(to); err != nil {
		v.t.Errorf("produce to %v: %v", to, err)
	}
}

func (v *victim) tryProduce(to partition) error {
	p, err := dial(v.Addr())
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return err
	}
	if err := p.send(produce(to, records(v.t, 100))); err != nil {
		return err
	}
	return p.produced()
}

// chill writes out what the modelled disk's files have in the page cache, and drops it.
func (v *victim) chill() {
	v.t.Helper()
	check(v.t, v.lab.SetInstant(true))
	check(v.t, filepath.WalkDir(v.lab.Mount, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		if err := f.Sync(); err != nil {
			return err
		}
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	}))
	check(v.t, v.lab.SetInstant(false))
}

// measure produces to and fetches from the live partitions for a while, and returns MB/s in and out together.
func (v *victim) measure() float64 {
	v.t.Helper()
	var moved atomic.Int64
	var wg sync.WaitGroup
	batch := records(v.t, batchBytes)
	begin := time.Now()
	for i := range 4 {
		wg.Go(func() {
			if err := v.work(i, batch, begin.Add(measureTime), &moved); err != nil {
				v.t.Errorf("the other directory: %v", err)
			}
		})
	}
	wg.Wait()
	if moved.Load() == 0 {
		v.t.Error("the other directory is not served")
	}
	return float64(moved.Load()) / 1e6 / time.Since(begin).Seconds()
}

func (v *victim) work(i int, batch []byte, until time.Time, moved *atomic.Int64) error {
	p, err := dial(v.Addr())
	if err != nil {
		return err
	}
	defer p.Close()
	for n := i; time.Now().Before(until); n++ {
		at := v.live[n%len(v.live)]
		if err := p.SetDeadline(time.Now().Add(answerLimit)); err != nil {
			return err
		}
		if err := p.send(produce(at, batch)); err != nil {
			return err
		}
		if err := p.produced(); err != nil {
			return fmt.Errorf("produce to %v: %w", at, err)
		}
		if err := p.send(fetch(at, int64(n%batchCount), fetchBytes)); err != nil {
			return err
		}
		got, err := p.fetched()
		if err != nil {
			return fmt.Errorf("fetch from %v: %w", at, err)
		}
		moved.Add(int64(len(batch) + got))
	}
	return nil
}

// doomed is a topic in both directories, to be deleted while one hangs; fresh comes after.
const doomed, fresh = "doomed", "fresh"

// everythingElseWorks asks what an operator, a client and the background work need of all directories. patient: a topic
// in both directories is deleted too, which the controller waits for a while before it goes on.
func (v *victim) everythingElseWorks(patient bool) {
	v.t.Helper()
	for _, path := range []string{"/metrics", "/health", "/ready"} {
		client := http.Client{Timeout: answerLimit}
		resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", v.Metrics, path))
		if err != nil {
			v.t.Errorf("%s: %v", path, err)
		} else {
			resp.Body.Close()
		}
	}
	ask := func(what string, f func(context.Context, *kadm.Client) error) {
		if err := v.client(f); err != nil {
			v.t.Errorf("%s: %v", what, err)
		}
	}
	ask("metadata", func(ctx context.Context, c *kadm.Client) error {
		_, err := c.Metadata(ctx)
		return err
	})
	ask("log directories", func(ctx context.Context, c *kadm.Client) error {
		_, err := c.DescribeAllLogDirs(ctx, nil)
		return err
	})
	if patient {
		go func() { // answered when the disk is
			_ = v.client(func(ctx context.Context, c *kadm.Client) error {
				_, err := c.DeleteTopic(ctx, doomed)
				return err
			})
		}()
		ask("settings of a topic in both directories", func(ctx context.Context, c *kadm.Client) error {
			value := "3600000"
			_, err := c.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}, "t")
			return err
		})
	}
	ask("a new topic", func(ctx context.Context, c *kadm.Client) error {
		_, err := c.CreateTopic(ctx, 4, 1, nil, fresh)
		return err
	})
	eventually(v.t, "the new topic takes records", func() bool { return v.tryProduce(partition{fresh, 0}) == nil })
	ask("a topic's settings", func(ctx context.Context, c *kadm.Client) error {
		value := "3600000"
		_, err := c.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}, fresh)
		return err
	})
	eventually(v.t, "the topic is deleted", func() bool {
		_ = v.client(func(ctx context.Context, c *kadm.Client) error {
			_, err := c.DeleteTopic(ctx, fresh)
			return err
		})
		return !v.lists(fresh)
	})
	// Checkpoints of the directory that works go on: the file is replaced.
	mark := filepath.Join(v.Dir, "data", "replication-offset-checkpoint")
	before, _ := os.ReadFile(mark)
	v.produceTo(v.live[0])
	eventually(v.t, "the other directory's checkpoint", func() bool {
		now, err := os.ReadFile(mark)
		return err == nil && string(now) != string(before)
	})
}

// stopWhileHung ends the broker while its disk hangs: the other directory is closed cleanly.
func (v *victim) stopWhileHung() {
	v.t.Helper()
	check(v.t, v.lab.Stop())
	p, err := dial(v.Addr())
	check(v.t, err)
	defer p.Close()
	for _, at := range v.hung {
		check(v.t, p.send(produce(at, records(v.t, hungBytes))))
	}
	v.Signal(syscall.SIGTERM)
	eventually(v.t, "the other directory is closed cleanly", func() bool {
		_, err := os.Stat(filepath.Join(v.Dir, "data", ".kafka_cleanshutdown"))
		return err == nil
	})
	check(v.t, v.lab.Resume())
	_ = v.Wait(answerLimit) // it may have given up on the disk, which is told by its exit status
}

// lists says whether the broker knows a topic.
func (v *victim) lists(topic string) (has bool) {
	err := v.client(func(ctx context.Context, c *kadm.Client) error {
		topics, err := c.ListTopics(ctx)
		has = topics.Has(topic)
		return err
	})
	return has || err != nil
}

// awaitGone waits until a topic and its directories are no more.
func (v *victim) awaitGone(topic string) {
	v.t.Helper()
	eventually(v.t, "the topic is deleted", func() bool {
		left, err := filepath.Glob(filepath.Join(v.lab.Mount, "data", topic+"-*"))
		return err == nil && len(left) == 0 && !v.lists(topic)
	})
}

func (v *victim) threads() int {
	v.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.Pid()))
	check(v.t, err)
	for line := range strings.Lines(string(data)) {
		var n int
		if found, _ := fmt.Sscanf(line, "Threads: %d", &n); found == 1 {
			return n
		}
	}
	v.t.Fatal("no Threads in /proc status")
	return 0
}

// calls reads from the metrics how many calls of the modelled disk are in the kernel, how many wait before it, and for how
// many seconds none has come back.
func (v *victim) calls() (inside, waiting, stalled float64) {
	client := http.Client{Timeout: answerLimit}
	resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", v.Metrics))
	if err != nil {
		return 0, 0, 0
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, 0, 0
	}
	for line := range strings.Lines(string(body)) {
		for name, to := range map[string]*float64{"calls_inside": &inside, "calls_waiting": &waiting, "stalled_seconds": &stalled} {
			if strings.HasPrefix(line, "platter_disk_"+name+`{dir="`+v.lab.Mount) {
				_, _ = fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], to)
			}
		}
	}
	return inside, waiting, stalled
}

// awaitFull returns once the disk holds up what it will: nothing more comes in, and the broker has noticed.
func (v *victim) awaitFull() {
	v.t.Helper()
	last, same := -1.0, 0
	eventually(v.t, "the requests have reached the disk", func() bool {
		inside, waiting, stalled := v.calls()
		if n := inside + waiting; n != last || n == 0 {
			last, same = n, 0
		}
		same++
		return same > 5 && stalled > 4
	})
	inside, waiting, _ := v.calls()
	v.t.Logf("%v calls wait in the kernel, %v before it", inside, waiting)
}

// wave is the requests that hang.
type wave struct {
	fetches, produces []*peer
	each              int // produces on one connection
}

// flood sends half as many fetches as there are to be requests, each on a connection of its own while there are
// descriptors, and as many produces, many on one.
func (v *victim) flood() *wave {
	v.t.Helper()
	var limit unix.Rlimit
	check(v.t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	const producers = 300
	fetchers := int(min(inFlight/2, limit.Cur/3-producers))
	w := &wave{each: inFlight / 2 / producers}
	rng := rand.New(rand.NewPCG(1, 1))
	batch := records(v.t, hungBytes)
	connect := func() *peer {
		p, err := dial(v.Addr())
		check(v.t, err)
		v.t.Cleanup(func() { p.Close() })
		return p
	}
	for range producers {
		p := connect()
		w.produces = append(w.produces, p)
		var to []partition
		for range w.each {
			to = append(to, v.hung[rng.IntN(len(v.hung))])
		}
		go func() { // the broker need not take them all at once
			for _, at := range to {
				if err := p.send(produce(at, batch)); err != nil {
					return
				}
			}
		}()
	}
	for i := range inFlight / 2 {
		if i < fetchers {
			w.fetches = append(w.fetches, connect())
		}
		p := w.fetches[i%fetchers]
		check(v.t, p.send(fetch(v.hung[rng.IntN(len(v.hung))], rng.Int64N(batchCount), fetchBytes)))
	}
	return w
}

// answered waits for all answers.
func (w *wave) answered(t *testing.T) {
	t.Helper()
	limit := time.Now().Add(2 * answerLimit)
	var wg sync.WaitGroup
	var good, refused, bad atomic.Int64
	var example atomic.Pointer[error]
	count := func(err error) {
		switch {
		case err == nil:
			good.Add(1)
			return
		case errors.Is(err, kerr.KafkaStorageError): // retriable: enough waits for that disk already
			refused.Add(1)
			return
		}
		bad.Add(1)
		example.CompareAndSwap(nil, &err)
	}
	for _, p := range w.fetches {
		wg.Go(func() {
			_ = p.SetDeadline(limit)
			for range p.sent {
				_, err := p.fetched()
				count(err)
			}
		})
	}
	for _, p := range w.produces {
		wg.Go(func() {
			_ = p.SetDeadline(limit)
			for range w.each {
				count(p.produced())
			}
		})
	}
	wg.Wait()
	t.Logf("%d done, %d appends refused, since enough of them waited for that disk, %d failed", good.Load(), refused.Load(), bad.Load())
	if good.Load() < inFlight/2 {
		t.Errorf("only %d of %d requests were done", good.Load(), inFlight)
	}
	if e := example.Load(); e != nil {
		t.Errorf("%d of %d requests failed, the first with: %v", bad.Load(), inFlight, *e)
	}
}
