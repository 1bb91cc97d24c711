// Package cluster runs several broker processes and their coordinator on loopback, kills, stops and
// restarts them while clients are at work, and looks at what is left: whether anything that was acknowledged
// is lost, and whether the replicas are the same, byte for byte.
package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"platter/tools/proc"
)

// Coordinator is the process that all brokers coordinate by: platter coord.
type Coordinator struct {
	t    testing.TB
	bin  string
	dir  string
	host string
	wrap []string // put in front of the command
	port int
	cmd  *exec.Cmd
	log  proc.Buffer
}

// StartCoordinator starts one over a fresh directory. It is killed when the test ends.
func StartCoordinator(t testing.TB, bin string) *Coordinator {
	return startCoordinator(t, bin, "127.0.0.1")
}

func startCoordinator(t testing.TB, bin, host string, wrap ...string) *Coordinator {
	c := &Coordinator{t: t, bin: bin, dir: t.TempDir(), host: host, wrap: wrap, port: proc.FreePort(t)}
	t.Cleanup(func() {
		c.Kill()
		if t.Failed() {
			t.Logf("coordinator log:\n%.4000s", c.log.String())
		}
	})
	c.Start()
	return c
}

// Addr is what zookeeper.connect names.
func (c *Coordinator) Addr() string { return fmt.Sprintf("%s:%d", c.host, c.port) }

// Start starts the process, again after Kill.
func (c *Coordinator) Start() {
	args := append(slices.Clone(c.wrap), c.bin, "coord", "--listen", c.Addr(), "--data", c.dir, "--set", "tickTime=500", "--set", "admin.enableServer=false")
	c.cmd = exec.Command(args[0], args[1:]...)
	c.cmd.Stdout, c.cmd.Stderr = &c.log, &c.log
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
}

// Kill ends it with SIGKILL; one that does not run is no error.
func (c *Coordinator) Kill() {
	if c.cmd != nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		c.cmd = nil
	}
}

// Cluster is some brokers under one coordinator.
type Cluster struct {
	t       testing.TB
	Brokers []*proc.Broker
}

// SessionTimeoutMs is the brokers' session timeout: how long a host that vanished is missed.
const SessionTimeoutMs = 3000

// New prepares n brokers, with ids from 0; Start starts them. props are added to each one's.
func New(t testing.TB, bin string, n int, zookeeper string, props map[string]string) *Cluster {
	c := &Cluster{t: t}
	for i := range n {
		c.Brokers = append(c.Brokers, c.prepare(bin, i, zookeeper, props))
	}
	return c
}

func (c *Cluster) prepare(bin string, id int, zookeeper string, props map[string]string) *proc.Broker {
	b := proc.New(c.t, bin, c.t.TempDir())
	b.Props["broker.id"] = fmt.Sprint(id)
	b.Props["zookeeper.connect"] = zookeeper
	b.Props["zookeeper.session.timeout.ms"] = fmt.Sprint(SessionTimeoutMs)
	b.Props["replica.lag.time.max.ms"] = "2000"
	b.Props["replica.fetch.backoff.ms"] = "100"
	for k, v := range props {
		b.Props[k] = v
	}
	return b
}

// Add prepares one broker more.
func (c *Cluster) Add(bin, zookeeper string, props map[string]string) *proc.Broker {
	b := c.prepare(bin, len(c.Brokers), zookeeper, props)
	c.Brokers = append(c.Brokers, b)
	return b
}

// Start starts all brokers.
func (c *Cluster) Start() {
	c.t.Helper()
	for _, b := range c.Brokers {
		b.Launch()
	}
	for _, b := range c.Brokers {
		if err := b.WaitReady(60 * time.Second); err != nil {
			c.t.Fatalf("a broker did not become ready: %v\n%s", err, b.LogTail(60))
		}
	}
}

// Bootstrap is all brokers' addresses.
func (c *Cluster) Bootstrap() string {
	var all []string
	for _, b := range c.Brokers {
		all = append(all, b.Addr())
	}
	return strings.Join(all, ",")
}

// Admin connects an administrator's client; it is closed when the test ends.
func (c *Cluster) Admin() *kadm.Client {
	c.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(c.Bootstrap(), ",")...),
		kgo.MetadataMinAge(20*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(cl.Close)
	return kadm.NewClient(cl)
}

// Create creates a topic with so many replicas of each partition.
func (c *Cluster) Create(topic string, partitions int32, replicas int16, configs map[string]string) {
	c.t.Helper()
	values := map[string]*string{}
	for k, v := range configs {
		values[k] = &v
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), 60*time.Second)
	defer cancel()
	if _, err := c.Admin().CreateTopic(ctx, partitions, replicas, values, topic); err != nil {
		c.t.Fatal(err)
	}
}

// Partitions is what the cluster says of a topic, by any broker that answers.
func Partitions(ctx context.Context, adm *kadm.Client, topic string) ([]kadm.PartitionDetail, error) {
	topics, err := adm.ListTopics(ctx, topic)
	if err != nil {
		return nil, err
	}
	d, ok := topics[topic]
	if !ok || d.Err != nil {
		return nil, fmt.Errorf("topic %s: %v", topic, d.Err)
	}
	return d.Partitions.Sorted(), nil
}

// Await waits until what the cluster says of the topic pleases want, within a generous time.
func (c *Cluster) Await(adm *kadm.Client, topic, what string, want func([]kadm.PartitionDetail) bool) {
	c.t.Helper()
	var last []kadm.PartitionDetail
	var err error
	for begin := time.Now(); time.Since(begin) < 90*time.Second; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
		last, err = Partitions(ctx, adm, topic)
		cancel()
		if err == nil && want(last) {
			return
		}
	}
	c.t.Fatalf("not in 90 s: %s; last %+v, %v", what, last, err)
}

// AwaitWhole waits until all partitions of the topic are led, and all replicas in sync: as clients are told, and as the
// coordinator has it. Of a broker that was cut off clients hear what was so before.
func (c *Cluster) AwaitWhole(adm *kadm.Client, topic string) {
	c.t.Helper()
	var replicas []int
	c.Await(adm, topic, "every replica of "+topic+" is in sync", func(ps []kadm.PartitionDetail) bool {
		replicas = nil
		for _, p := range ps {
			if p.Leader < 0 || len(p.ISR) != len(p.Replicas) {
				return false
			}
			replicas = append(replicas, len(p.Replicas))
		}
		return len(replicas) > 0
	})
	c.awaitStates(topic, replicas)
}

// Stacks is what all goroutines of all brokers do, for a test that waits in vain. It needs metrics.pprof=true.
func (c *Cluster) Stacks() string {
	var out strings.Builder
	client := http.Client{Timeout: 10 * time.Second}
	for _, b := range c.Brokers {
		fmt.Fprintf(&out, "== broker %s\n", b.Props["broker.id"])
		resp, err := client.Get("http://" + b.Props["metrics.listener"] + "/debug/pprof/goroutine?debug=1")
		if err != nil {
			fmt.Fprintln(&out, err)
			continue
		}
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 60_000))
		resp.Body.Close()
		out.Write(text)
	}
	return out.String()
}

// whole says whether all replicas of all topics are in sync, as far as is known now.
func (c *Cluster) whole(adm *kadm.Client) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	topics, err := adm.ListTopicsWithInternal(ctx)
	if err != nil {
		return false
	}
	for _, d := range topics {
		for _, p := range d.Partitions {
			if p.Leader < 0 || len(p.ISR) != len(p.Replicas) {
				return false
			}
		}
	}
	return true
}

// SameBytes says how the replicas of a topic's partition differ; nil: they do not. All brokers have to be stopped.
func (c *Cluster) SameBytes(topic string, partitions int32) error {
	for p := range partitions {
		type copied struct {
			broker int
			digest [sha256.Size]byte
			bytes  int
		}
		var all []copied
		for i, b := range c.Brokers {
			data, err := logBytes(filepath.Join(b.Props["log.dirs"], fmt.Sprintf("%s-%d", topic, p)))
			if err != nil {
				return err
			}
			if data != nil {
				all = append(all, copied{i, sha256.Sum256(data), len(data)})
			}
		}
		for _, x := range all[min(1, len(all)):] {
			if !bytes.Equal(x.digest[:], all[0].digest[:]) {
				return fmt.Errorf("%s-%d: brokers %d and %d differ: %d and %d bytes", topic, p, all[0].broker, x.broker, all[0].bytes, x.bytes)
			}
		}
	}
	return nil
}

// logBytes is a partition's log, all segments; nil: there is none.
func logBytes(dir string) ([]byte, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	slices.Sort(names)
	out := []byte{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, data...)
	}
	return out, nil
}
