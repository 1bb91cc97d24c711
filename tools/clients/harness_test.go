// Package clients runs real Kafka clients against the real broker process.
package clients

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"testing"
	"time"

	"platter/tools/cluster"
	"platter/tools/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.Cleanup()
	os.Exit(code)
}

// clusterVariable makes all tests of this package run against the first of three brokers, with three replicas of
// each partition: "still" while all of them run, "rolling" while they are restarted one after the other.
const clusterVariable = "PLATTER_TEST_CLUSTER"

// broker starts a broker process with extra properties, or a cluster of them.
func broker(t *testing.T, props map[string]string) *proc.Broker {
	t.Helper()
	if mode := os.Getenv(clusterVariable); mode != "" {
		return firstOfThree(t, props, mode == "rolling")
	}
	b := proc.New(t, proc.Binary(t), t.TempDir())
	for k, v := range props {
		b.Props[k] = v
	}
	b.Start()
	return b
}

// alone skips a test that speaks of a single broker.
func alone(t *testing.T) {
	t.Helper()
	if os.Getenv(clusterVariable) != "" {
		t.Skip("what it looks at is different in a cluster")
	}
}

// firstOfThree starts three brokers. Those that are restarted in a rolling way are the two others: who tests says
// where a client begins, and a client begins with one address.
func firstOfThree(t *testing.T, props map[string]string, rolling bool) *proc.Broker {
	t.Helper()
	all := map[string]string{"default.replication.factor": "3", "offsets.topic.replication.factor": "3", "min.insync.replicas": "2"}
	maps.Copy(all, props)
	id, named := all["broker.id"]
	delete(all, "broker.id")
	bin := proc.Binary(t)
	c := cluster.New(t, bin, 3, cluster.StartCoordinator(t, bin).Addr(), all)
	if named {
		c.Brokers[0].Props["broker.id"] = id
	}
	c.Start()
	if rolling {
		end := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.Roll(end, c.Brokers[1:])
		}()
		t.Cleanup(func() { close(end); <-ended })
	}
	return c.Brokers[0]
}

// need skips the test by name when a program is not on this machine.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("needs %s, which is not installed", p)
		}
	}
}

// run runs a client program with a limit and returns its standard output.
func run(t *testing.T, stdin io.Reader, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = errors.Join(ctx.Err(), err)
		}
		t.Fatalf("%s %q: %v\nstdout: %.2000s\nstderr: %.2000s", name, args, err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes()
}

var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}
