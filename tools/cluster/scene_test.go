package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"platter/tools/hddlab/lab"
	"platter/tools/hddlab/labtest"
	"platter/tools/history"
	"platter/tools/killtest"
	"platter/tools/proc"
)

// scene is a cluster of three brokers to do harm to, and its topic.
type scene struct {
	t           *testing.T
	rnd         *rand.Rand
	coordinator *Coordinator
	c           *Cluster
	adm         *kadm.Client
	net         *Network
	small       map[*proc.Broker]*SmallDisk
	slow        map[*proc.Broker]*lab.Lab
	missing     map[resource]error // what cannot be here, and why
}

// resource is what a kind of fault needs.
type resource string

const (
	nothing     resource = ""
	network     resource = "network"
	smallDisk   resource = "small disk"
	modelDisk   resource = "modelled disk"
	topic                = "load"
	partitions           = 8
	smallDiskMB          = 1500
)

// newScene starts the cluster, over what resources it can have of those that are wanted.
func newScene(t *testing.T, bin string, rnd *rand.Rand, props map[string]string, wanted ...resource) *scene {
	t.Helper()
	s := &scene{t: t, rnd: rnd, small: map[*proc.Broker]*SmallDisk{}, slow: map[*proc.Broker]*lab.Lab{}, missing: map[resource]error{}}
	has := map[resource]bool{}
	for _, r := range wanted {
		has[r] = true
	}
	if has[network] {
		s.net, s.missing[network] = NewNetwork(t)
	}
	if s.net != nil {
		address, wrap := s.net.Host(coordinatorHost)
		s.coordinator = startCoordinator(t, bin, address, wrap...)
	} else {
		s.coordinator = StartCoordinator(t, bin)
	}
	all := map[string]string{
		"log.segment.bytes": "1048576", "min.insync.replicas": "2", "default.replication.factor": "3",
		"offsets.topic.num.partitions": fmt.Sprint(OffsetsPartitions), "metrics.pprof": "true",
	}
	for k, v := range props {
		all[k] = v
	}
	var disks []*SmallDisk
	var err error
	for has[smallDisk] && len(disks) < 2 && err == nil {
		var d *SmallDisk
		if d, err = NewSmallDisk(t, smallDiskMB); err == nil {
			disks = append(disks, d)
		}
	}
	s.missing[smallDisk] = err
	var slow *lab.Lab
	if has[modelDisk] {
		if s.missing[modelDisk] = lab.Check("ext4"); s.missing[modelDisk] == nil {
			slow = labtest.New(t, lab.Config{FS: "ext4", SizeBytes: smallDiskMB << 20})
		}
	}
	s.c = New(t, bin, 3, s.coordinator.Addr(), all)
	for i, b := range s.c.Brokers {
		if s.net != nil {
			s.net.Move(b, s.host(b))
		}
		b.Env = append(b.Env, "PLATTER_SKEWED_CLOCK="+wrongClocks[i])
		switch {
		case i < len(disks):
			disks[i].Put(b)
			s.small[b] = disks[i]
		case i == 2 && slow != nil:
			b.Props["log.dirs"] = filepath.Join(slow.Mount, "data")
			s.slow[b] = slow
		}
	}
	s.c.Start()
	s.adm = s.c.Admin()
	s.c.Create(topic, partitions, 3, nil)
	s.c.AwaitWhole(s.adm, topic)
	return s
}

// threeBrokers starts three of them, as they are by default, with one topic on all of them.
func threeBrokers(t *testing.T, topic string, partitions int32) (*Cluster, *kadm.Client) {
	t.Helper()
	bin := proc.Binary(t)
	c := New(t, bin, 3, StartCoordinator(t, bin).Addr(), nil)
	c.Start()
	c.Create(topic, partitions, 3, nil)
	adm := c.Admin()
	c.AwaitWhole(adm, topic)
	return c, adm
}

// wrongClocks are seconds ahead and pace, by broker, in builds that have a wrong clock. They are less than an hour
// wrong: a broker refuses records that are from farther ahead in its future (message.timestamp.after.max.ms).
var wrongClocks = []string{"0 1", "-1200 1.1", "1200 0.9"}

const coordinatorHost = "coord"

func (s *scene) host(b *proc.Broker) string { return "b" + b.Props["broker.id"] }

// otherHost is another broker's host, or the coordinator's.
func (s *scene) otherHost(b *proc.Broker) string {
	all := []string{coordinatorHost}
	for _, o := range s.c.Brokers {
		if o != b {
			all = append(all, s.host(o))
		}
	}
	return all[s.rnd.IntN(len(all))]
}

// victim is a broker at random, in one of three times the controller.
func (s *scene) victim() *proc.Broker {
	if s.rnd.IntN(3) == 0 {
		ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
		defer cancel()
		if m, err := s.adm.BrokerMetadata(ctx); err == nil && m.Controller >= 0 && int(m.Controller) < len(s.c.Brokers) {
			return s.c.Brokers[m.Controller]
		}
	}
	return s.c.Brokers[s.rnd.IntN(len(s.c.Brokers))]
}

// load starts producers that send so much a second, each.
func (s *scene) load(perSecond int) *killtest.Load {
	s.t.Helper()
	load, err := killtest.Plan{
		Addr: s.c.Bootstrap(), Topic: topic, Partitions: partitions, Producers: 3, Seed: s.rnd.Uint64(),
		ValueBytes: 400, PerSecond: perSecond,
	}.Start()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(load.Abandon)
	return load
}

// await waits until so many records more are acknowledged.
func (s *scene) await(load *killtest.Load, more int) {
	s.t.Helper()
	want := load.Acknowledged() + more
	for begin := time.Now(); load.Acknowledged() < want; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 90*time.Second {
			s.t.Fatalf("not in 90 s: %d records more acknowledged", more)
		}
	}
}

// verdict ends the load, reads all back, and compares; then it stops the brokers and compares the replicas. It gives
// what is wrong. kills: brokers were killed under the load.
func (s *scene) verdict(load *killtest.Load, groups *Groups, kills bool) (wrong []string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 180*time.Second)
	defer cancel()
	defer s.watch("the verdict")()
	if err := load.Stop(ctx); err != nil {
		return []string{err.Error()}
	}
	s.c.AwaitWhole(s.adm, topic)
	read, err := killtest.ReadAll(ctx, s.c.Bootstrap(), topic)
	if err != nil {
		return []string{err.Error()}
	}
	if groups != nil {
		groups.Stop()
		groups.Judge()
	}
	sent, failed := load.Sent()
	for _, err := range failed {
		// A broker that is killed right after it accepted looks to this client as if it wanted TLS, and then it gives up.
		if _, killed := errors.AsType[*kgo.ErrFirstReadEOF](err); killed && kills {
			continue
		}
		wrong = append(wrong, fmt.Sprintf("a producer gave up: %v", err))
	}
	for _, v := range history.Check(sent, read) {
		wrong = append(wrong, v.String())
	}
	s.t.Logf("%d records sent, %d read", len(sent), len(read))
	for _, b := range s.c.Brokers {
		b.Stop()
	}
	if err := s.c.SameBytes(topic, partitions); err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

// watch has the log tell what everybody is at when something takes long. Call what it returns when that is over.
func (s *scene) watch(what string) (over func()) {
	ended, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		select {
		case <-ended:
		case <-time.After(45 * time.Second):
			var own strings.Builder
			_ = pprof.Lookup("goroutine").WriteTo(&own, 1)
			s.t.Logf("%s takes long\n%s== this process\n%s", what, s.c.Stacks(), own.String())
		}
	}()
	return func() {
		close(ended)
		<-told
	}
}

// clean wants nothing to be wrong.
func (s *scene) clean(wrong []string) {
	s.t.Helper()
	for _, what := range wrong[:min(20, len(wrong))] {
		s.t.Error(what)
	}
	if len(wrong) > 20 {
		s.t.Errorf("… and %d more", len(wrong)-20)
	}
}
