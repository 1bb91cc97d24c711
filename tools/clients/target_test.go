package clients

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"platter/tools/cluster"
	"platter/tools/proc"
)

// clusterVariable makes all tests of this package run against three brokers, with three replicas of each
// partition: "still" while all of them run, "rolling" while they are restarted one after the other.
const clusterVariable = "PLATTER_TEST_CLUSTER"

func clustered() bool { return os.Getenv(clusterVariable) != "" }

func rolled() bool { return os.Getenv(clusterVariable) == "rolling" }

// shortSession is a session timeout. A member whose goodbye went to the former coordinator is missed by the group's next one until its
// session is over, which begins anew with each coordinator.
const shortSession = 6 * time.Second

// replicas is how many replicas of a partition the tests ask for.
func replicas() int16 {
	if clustered() {
		return 3
	}
	return 1
}

// target is what the clients of a test are pointed at: a broker, or three of them.
type target struct {
	*proc.Broker // the first
	t            *testing.T
	cluster      *cluster.Cluster // nil: it is alone
	rolling      *cluster.Rolling // nil: nobody is restarted
}

// broker starts what the test is run against, with extra properties.
func broker(t *testing.T, props map[string]string) *target {
	t.Helper()
	if clustered() {
		return three(t, props)
	}
	b := proc.New(t, proc.Binary(t), t.TempDir())
	maps.Copy(b.Props, props)
	b.Start()
	return &target{Broker: b, t: t}
}

func three(t *testing.T, props map[string]string) *target {
	t.Helper()
	t.Parallel() // most of the time goes by in waiting for the next restart
	all := map[string]string{
		"default.replication.factor": "3", "offsets.topic.replication.factor": "3", "min.insync.replicas": "2",
		// As in the server.properties that Kafka comes with: else each join of a new group lasts as long as the pause
		// between two restarts.
		"group.initial.rebalance.delay.ms": "0",
	}
	maps.Copy(all, props)
	delete(all, "broker.id") // they are 0, 1 and 2
	bin := proc.Binary(t)
	c := cluster.New(t, bin, 3, cluster.StartCoordinator(t, bin).Addr(), all)
	c.Start()
	to := &target{Broker: c.Brokers[0], t: t, cluster: c}
	switch mode := os.Getenv(clusterVariable); mode {
	case "still":
	case "rolling":
		to.rolling = c.Roll(slices.Clone(c.Brokers))
	default:
		t.Fatalf("%s=%s: it is still or rolling", clusterVariable, mode)
	}
	return to
}

// Addr is the bootstrap list, as most clients take it.
func (to *target) Addr() string {
	if to.cluster == nil {
		return to.Broker.Addr()
	}
	return to.cluster.Bootstrap()
}

// settle ends the restarts: what follows looks at one broker, or stops it itself.
func (to *target) settle() {
	if to.rolling != nil {
		to.rolling.End()
	}
}

// settleWhole is settle, and waits until all replicas of the topic are in sync. Who leads is then as it may be.
func (to *target) settleWhole(topic string) {
	to.t.Helper()
	to.settle()
	if to.cluster != nil {
		to.cluster.AwaitWhole(to.cluster.Admin(), topic)
	}
}

// Stop stops the first broker.
func (to *target) Stop() {
	to.settle()
	to.Broker.Stop()
}

// Kill kills the first broker.
func (to *target) Kill() {
	to.settle()
	to.Broker.Kill()
}

// roundsWait bounds how long a test goes on to see all brokers restarted.
const roundsWait = 5 * time.Minute

// through does work, and does it again while the brokers are restarted, until each of them was since the begin. The
// suffix makes names of their own for each turn; it is empty at first.
func (to *target) through(work func(t *testing.T, suffix string)) {
	work(to.t, "")
	if to.rolling == nil {
		return
	}
	begun := time.Now()
	for turn := 2; to.rolling.Rounds() < 1 && !to.t.Failed(); turn++ {
		if to.rolling.Over() || time.Since(begun) > roundsWait {
			to.t.Fatalf("only %.1f of a round of restarts was seen", to.rolling.Rounds())
		}
		work(to.t, fmt.Sprint("-", turn))
	}
	to.t.Logf("each broker was restarted %.1f times", to.rolling.Rounds())
}

// seeds is a bootstrap list as a slice.
func seeds(addr string) []string { return strings.Split(addr, ",") }
