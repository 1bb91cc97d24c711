// Package coordinators holds the broker to what it promises of its coordinator, over each of the three: the one
// inside, `platter coord`, and Apache ZooKeeper where it is installed.
package coordinators

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"platter/coord/zkclient"
	"platter/tools/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, c := range started {
		if c.up {
			c.Kill()
		}
	}
	proc.Cleanup()
	os.Exit(code)
}

const (
	patience = 120 * time.Second
	idPath   = "/brokers/ids/0"
)

// outside is a coordinator that all tests of its kind share, each in a chroot.
type outside struct {
	*proc.Coordinator
	up bool
}

var (
	started = map[string]*outside{}
	chroots atomic.Int64
)

func outsideOf(t *testing.T, kind string) *outside {
	t.Helper()
	c := started[kind]
	if c == nil {
		dir, err := os.MkdirTemp("", "platter-coordinators-")
		if err != nil {
			t.Fatal(err)
		}
		p, err := proc.StartCoordinator(kind, proc.Binary(t), dir)
		if err != nil && kind == proc.ZooKeeper {
			t.Skipf("Apache ZooKeeper: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		c = &outside{p, true}
		started[kind] = c
	}
	if !c.up {
		c.back(t)
	}
	return c
}

func (c *outside) away() {
	c.Kill()
	c.up = false
}

func (c *outside) back(t *testing.T) {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	c.up = true
}

// site is one broker with its coordinator.
type site struct {
	*proc.Broker
	t       *testing.T
	ctx     context.Context
	outside *outside // nil: the coordinator is inside
	connect []string
	chroot  string
}

// overEach runs a test over every kind.
func overEach(t *testing.T, sessionMs int, f func(t *testing.T, s *site)) {
	over(t, []string{proc.Embedded, proc.Alone, proc.ZooKeeper}, sessionMs, f)
}

// separate are the coordinators that live and die without the broker.
var separate = []string{proc.Alone, proc.ZooKeeper}

func over(t *testing.T, kinds []string, sessionMs int, f func(t *testing.T, s *site)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { f(t, prepare(t, kind, sessionMs)) })
	}
}

func prepare(t *testing.T, kind string, sessionMs int) *site {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	s := &site{Broker: proc.New(t, proc.Binary(t), t.TempDir()), t: t, ctx: ctx}
	delete(s.Props, "zookeeper.connect")
	s.Props["zookeeper.session.timeout.ms"] = fmt.Sprint(sessionMs)
	if kind == proc.Embedded {
		addr := fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t))
		s.connect = []string{addr}
		s.Props["coordinator.listener"] = addr
		s.Props["coordinator.tick.ms"] = fmt.Sprint(proc.CoordinatorTickMs)
		return s
	}
	s.outside = outsideOf(t, kind)
	s.connect, s.chroot = []string{s.outside.Addr}, fmt.Sprintf("/c%d", chroots.Add(1))
	s.Props["zookeeper.connect"] = s.outside.Addr + s.chroot
	return s
}

// zk is a client of the coordinator, as another tool would be.
func (s *site) zk() *zkclient.Client {
	s.t.Helper()
	c, err := zkclient.Connect(s.ctx, zkclient.Config{Servers: s.connect, Chroot: s.chroot})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Drop)
	return c
}

// eventually repeats a check until it is content; err says what is still missing.
func (s *site) eventually(what string, check func() error) {
	s.t.Helper()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-s.ctx.Done():
			s.t.Fatalf("%s: %v", what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// registered waits for a registration that is not the one of epoch old.
func (s *site) registered(zk *zkclient.Client, old int64) (st zkclient.Stat) {
	s.t.Helper()
	s.eventually("the broker is not registered", func() (err error) {
		if st, err = zk.Exists(s.ctx, idPath, nil); err == nil && st.Czxid == old {
			err = errors.New("still the old registration")
		}
		return err
	})
	return st
}

func (s *site) client(opts ...kgo.Opt) *kgo.Client {
	s.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(s.Addr()), kgo.MetadataMinAge(20 * time.Millisecond)}, opts...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(cl.Close)
	return cl
}

func (s *site) createTopic(name string) {
	s.t.Helper()
	adm := kadm.NewClient(s.client())
	s.eventually("a topic cannot be made", func() error {
		r, err := adm.CreateTopic(s.ctx, 1, 1, nil, name)
		if r.Err != nil {
			return r.Err
		}
		return err
	})
}

// roundTrip produces and reads a record back.
func (s *site) roundTrip(topic, text string) {
	s.t.Helper()
	if err := s.client().ProduceSync(s.ctx, &kgo.Record{Topic: topic, Value: []byte(text)}).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
	c := s.client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for {
		fs := c.PollFetches(s.ctx)
		if s.ctx.Err() != nil {
			s.t.Fatalf("%q is not read back: %v", text, fs.Err())
		}
		for _, r := range fs.Records() {
			if string(r.Value) == text {
				return
			}
		}
	}
}

// setConfig changes a topic's setting in the coordinator, as Kafka's tools of ZooKeeper's days did.
func (s *site) setConfig(zk *zkclient.Client, topic, name, value string) {
	s.t.Helper()
	config, err := json.Marshal(map[string]any{"version": 1, "config": map[string]string{name: value}})
	if err != nil {
		s.t.Fatal(err)
	}
	change := fmt.Sprintf(`{"version":2,"entity_path":"topics/%s"}`, topic)
	if err := zk.Ensure(s.ctx, "/config/topics/"+topic, config); err != nil {
		s.t.Fatal(err)
	}
	if _, err := zk.Set(s.ctx, "/config/topics/"+topic, config, -1); err != nil {
		s.t.Fatal(err)
	}
	if _, err := zk.Create(s.ctx, "/config/changes/config_change_", []byte(change), zkclient.PersistentSequential); err != nil {
		s.t.Fatal(err)
	}
}

// config waits for a topic's setting to have a value, as the broker tells it.
func (s *site) config(topic, name, value string) {
	s.t.Helper()
	adm := kadm.NewClient(s.client())
	s.eventually("a change of a setting is not seen", func() error {
		rs, err := adm.DescribeTopicConfigs(s.ctx, topic)
		if err != nil {
			return err
		}
		r, err := rs.On(topic, nil)
		if err != nil {
			return err
		}
		for _, c := range r.Configs {
			if c.Key == name && c.MaybeValue() == value {
				return nil
			}
		}
		return fmt.Errorf("%s is not %s", name, value)
	})
}
