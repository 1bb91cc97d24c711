package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"platter/coord/cluster"
	"platter/coord/controller"
	"platter/coord/internal/coordtest"
	"platter/coord/zkclient"
	"platter/engine/batch"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/memdisk"
	"platter/replication/replica"
)

var quiet = coordtest.Quiet

// machine is one broker's disk with an embedded coordinator and what runs on it.
type machine struct {
	t    *testing.T
	disk *memdisk.FS
	zk   *coordtest.Coordinator // nil: another's
	cfg  Config
	dirs []string // beside /data
	logs logged

	node  *Node
	store *store.Store
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, disk: memdisk.New(memdisk.Options{})}
	m.cfg = testConfig()
	m.cfg.FS, m.cfg.Log = m.disk, slog.New(slog.NewTextHandler(&m.logs, nil))
	m.zk = coordtest.Start(t, m.disk)
	m.cfg.Servers = []string{m.zk.Addr}
	return m
}

// logged keeps what the node says.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) contains(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), s)
}

// neverWaited: the broker did not wait for a former session of its own to expire.
func (m *machine) neverWaited() {
	m.t.Helper()
	m.logs.mu.Lock()
	defer m.logs.mu.Unlock()
	if strings.Contains(m.logs.text.String(), "waiting for its end") {
		m.t.Errorf("the former session was waited out:\n%s", m.logs.text.String())
	}
}

func testConfig() Config {
	return Config{
		SessionTimeout: coordtest.SessionTimeout,
		ConnectTimeout: 60 * time.Second,
		Clock:          clock.Real{}, Log: quiet,
		SessionDir: "/data", BrokerID: 1, GenerateID: true, ReservedIDMax: 1000,
		PartitionCountDefault: 1, ReplicationDefault: 1,
		LogConfig: func(o map[string]string) commitlog.Config {
			c := commitlog.DefaultConfig()
			if o["max.message.bytes"] != "" {
				fmt.Sscan(o["max.message.bytes"], &c.MaxMessageBytes)
			}
			return c
		},
		MinISR: func(map[string]string) int { return 1 },
		CheckTopic: func(_ string, o map[string]string) error {
			if _, bad := o["bad"]; bad {
				return errors.New("bad is no setting")
			}
			return nil
		},
	}
}

// start runs a broker as cmd does.
func (m *machine) start() error {
	n, err := Connect(m.t.Context(), m.cfg)
	if err != nil {
		return err
	}
	s, err := store.Open(m.t.Context(), store.Config{
		FS: m.disk, Clock: clock.Real{}, Dirs: append([]string{"/data"}, m.dirs...), BrokerID: m.cfg.BrokerID, Log: quiet,
		TopicConfig: n.TopicConfig, HighWatermark: n.HighWatermark, OnOffline: n.OnOffline,
	}, &store.Progress{})
	if err != nil {
		n.Stop(m.t.Context())
		return err
	}
	if err := n.Start(m.t.Context(), s, []cluster.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "127.0.0.1", Port: 9092}}); err != nil {
		n.Stop(m.t.Context())
		s.Close(false)
		return err
	}
	m.node, m.store = n, s
	return nil
}

func (m *machine) mustStart() {
	m.t.Helper()
	coordtest.Must(m.t, m.start())
}

func (m *machine) stop() {
	m.t.Helper()
	coordtest.Must(m.t, m.node.Stop(m.t.Context()))
	coordtest.Must(m.t, m.store.Close(true))
}

// kill ends the broker as a kill -9 does: the session lives on.
func (m *machine) kill() {
	m.node.end()
	<-m.node.ended
	m.node.control.Stop()
	m.node.zk.Load().Drop()
	m.node.Host().Close()
	m.store.Close(false)
}

func (m *machine) create(name string, partitions int32) {
	m.t.Helper()
	out := m.node.Controller().CreateTopics(m.t.Context(), []controller.NewTopic{{Name: name, PartitionCount: partitions, ReplicationFactor: -1}})
	coordtest.Must(m.t, out[0].Err)
}

func (m *machine) produce(tp store.TP) commitlog.Appended {
	m.t.Helper()
	r, err := m.node.Host().Replica(tp)
	coordtest.Must(m.t, err)
	b := record(m.t)
	done := make(chan commitlog.Appended, 1)
	r.Append(&replica.Append{Batches: []batch.Batch{b}, Acks: -1, Done: func(a commitlog.Appended) { done <- a }})
	a := <-done
	coordtest.Must(m.t, a.Err)
	return a
}

func record(t *testing.T) batch.Batch {
	t.Helper()
	bl := batch.NewBuilder()
	bl.Add(time.Now().UnixMilli(), []byte("k"), []byte("v"))
	b, err := bl.Build()
	coordtest.Must(t, err)
	return b
}

// TestLife: create, write, stop, start; kill, start; what was written is there, in new terms.
func TestLife(t *testing.T) {
	m := newMachine(t)
	m.mustStart()
	m.create("t", 3)
	tp := store.TP{Topic: "t", Partition: 2}
	if a := m.produce(tp); a.BaseOffset != 0 {
		t.Fatalf("first record at %d", a.BaseOffset)
	}
	m.stop()
	zk := m.zk.Client()
	if names, _, err := zk.Children(t.Context(), cluster.BrokerIDsPath, nil); err != nil || len(names) != 0 {
		t.Fatalf("after a clean stop there are %v, %v", names, err)
	}

	m.mustStart()
	if a := m.produce(tp); a.BaseOffset != 1 {
		t.Fatalf("second record at %d", a.BaseOffset)
	}
	first := m.node.epoch.Load()
	m.kill()
	m.mustStart()
	m.neverWaited()
	if m.node.epoch.Load() <= first {
		t.Error("the broker epoch did not rise")
	}
	if a := m.produce(tp); a.BaseOffset != 2 {
		t.Fatalf("third record at %d", a.BaseOffset)
	}
	p := m.node.Image().Topic("t").Partitions[2]
	if p.Leader != 1 || p.LeaderEpoch != 2 || m.node.Image().ControllerEpoch != 3 {
		t.Errorf("after two restarts: %+v", p)
	}
	r, err := m.node.Host().Replica(tp)
	coordtest.Must(t, err)
	if s, err := r.State(2); err != nil || s.HighWatermark != 3 || s.LogEnd != 3 || s.TopicID != m.node.Image().Topic("t").ID {
		t.Errorf("state %+v, %v", s, err)
	}
	if e := r.Log().LatestEpoch(); e != 2 {
		t.Errorf("log's epoch %d", e)
	}
	m.stop()
}

func TestDeleteAndRecreate(t *testing.T) {
	m := newMachine(t)
	m.mustStart()
	defer m.stop()
	m.create("t", 2)
	tp := store.TP{Topic: "t", Partition: 1}
	m.produce(tp)
	id := m.node.Image().Topic("t").ID
	coordtest.Must(t, m.node.Controller().DeleteTopics(t.Context(), []string{"t"})[0])
	if _, err := m.node.Host().Replica(tp); !errors.Is(err, replica.ErrUnknownPartition) {
		t.Fatalf("replica of a deleted topic: %v", err)
	}
	if _, ok := m.node.Host().TopicName(id); ok || m.node.Image().TopicByID(id) != nil || len(m.store.All()) != 0 {
		t.Fatal("something of the topic is left")
	}
	m.create("t", 1)
	if a := m.produce(store.TP{Topic: "t"}); a.BaseOffset != 0 {
		t.Fatalf("the new topic starts at %d", a.BaseOffset)
	}
}

// TestDirectoryFails: the partitions in it lose their leader, the others go on; a restart with the disk
// mended brings them back.
func TestDirectoryFails(t *testing.T) {
	m := newMachine(t)
	m.dirs = []string{"/more"}
	m.mustStart()
	m.create("t", 4)
	var there, here store.TP
	for _, d := range m.store.Dirs() {
		if d.Path == "/more" {
			there = d.Logs[0]
		} else {
			here = d.Logs[0]
		}
	}
	m.produce(there)
	m.disk.SetHook(func(o memdisk.Op) error {
		if strings.HasPrefix(o.Path, "/more") {
			return errors.New("input/output error")
		}
		return nil
	})
	r, err := m.node.Host().Replica(there)
	coordtest.Must(t, err)
	done := make(chan commitlog.Appended, 1)
	r.Append(&replica.Append{Batches: []batch.Batch{record(t)}, Acks: 1, Done: func(a commitlog.Appended) { done <- a }})
	if a := <-done; a.Err == nil {
		t.Fatal("written on a broken disk")
	}
	coordtest.Eventually(t, "the partition has no leader", func() bool {
		p := m.node.Image().Topic("t").Partitions[there.Partition]
		return p.Leader == -1 && len(p.OfflineReplicas) == 1
	})
	m.produce(here)
	if p := m.node.Image().Topic("t").Partitions[here.Partition]; p.Leader != 1 {
		t.Errorf("the other partition: %+v", p)
	}
	m.kill()
	m.disk.SetHook(nil)
	m.mustStart()
	if a := m.produce(there); a.BaseOffset != 1 {
		t.Errorf("record at %d", a.BaseOffset)
	}
	m.stop()
}

// TestSecondBroker: two processes with one id.
func TestSecondBroker(t *testing.T) {
	m := newMachine(t)
	m.mustStart()
	defer m.stop()
	other := &machine{t: t, disk: memdisk.New(memdisk.Options{}), cfg: m.cfg}
	other.cfg.FS, other.cfg.BrokerID, other.cfg.SessionTimeout = other.disk, 1, 2*time.Second
	if err := other.start(); !errors.Is(err, ErrRegistered) {
		t.Errorf("a second broker of the same id: %v", err)
	}
}

// TestGhost: without the session's file a killed broker's registration has to expire; the broker waits for that.
func TestGhost(t *testing.T) {
	m := newMachine(t)
	m.cfg.SessionTimeout = 4 * time.Second // longer than a restart takes on a busy machine
	m.mustStart()
	m.create("t", 1)
	m.kill()
	coordtest.Must(t, m.disk.Remove("/data/"+SessionFile))
	err := m.start()
	for limit := time.Now().Add(60 * time.Second); errors.Is(err, ErrRegistered) && time.Now().Before(limit); {
		err = m.start() // the coordinator was held up, took it for a pause, and gave all sessions their full time again
	}
	coordtest.Must(t, err)
	defer m.stop()
	if !strings.Contains(m.logs.text.String(), "waiting for its end") {
		t.Error("it did not wait")
	}
	coordtest.Eventually(t, "the partition is led", func() bool {
		topic := m.node.Image().Topic("t")
		return topic != nil && topic.Partitions[0].LeaderEpoch >= 1
	})
}

func TestForeignCluster(t *testing.T) {
	m := newMachine(t)
	zk := m.zk.Client()
	coordtest.Must(t, zk.Ensure(t.Context(), cluster.BrokerIDsPath, nil))
	_, err := zk.Create(t.Context(), cluster.BrokerPath(5), []byte(`{"version":5,"endpoints":["PLAINTEXT://h:1"],"jmx_port":-1}`), zkclient.Ephemeral)
	coordtest.Must(t, err)
	var foreign *cluster.ForeignError
	if err := m.start(); !errors.As(err, &foreign) || foreign.ID != 5 {
		t.Fatalf("joined somebody's cluster: %v", err)
	}
	if _, err := zk.Exists(t.Context(), cluster.ClusterIDPath, nil); !errors.Is(err, zkclient.ErrNoNode) {
		t.Error("and changed something in it")
	}
}

func TestIdentity(t *testing.T) {
	m := newMachine(t)
	m.cfg.BrokerID = -1
	m.mustStart()
	if id := m.node.BrokerID(); id != 1001 {
		t.Errorf("generated id %d", id)
	}
	m.stop()
	m.mustStart()
	if id := m.node.BrokerID(); id != 1001 {
		t.Errorf("after a restart: id %d", id)
	}
	m.stop()
	m.cfg.Chroot = "/elsewhere"
	if err := m.start(); !errors.Is(err, ErrIdentity) {
		t.Errorf("another cluster: %v", err)
	}
}

// TestIdentityLost: logs whose meta.properties is gone are served by the broker that the cluster knows them of.
func TestIdentityLost(t *testing.T) {
	for name, content := range map[string]string{"missing": "", "garbage": "\x00\xffgarbage"} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.cfg.BrokerID = -1
			m.mustStart()
			m.create("t", 2)
			m.produce(store.TP{Topic: "t", Partition: 1})
			m.stop()
			coordtest.Must(t, m.disk.Remove("/data/meta.properties"))
			if content != "" {
				f, err := m.disk.Open("/data/meta.properties", disk.Create)
				coordtest.Must(t, err)
				_, err = f.WriteV([][]byte{[]byte(content)}, 0)
				coordtest.Must(t, errors.Join(err, f.Close()))
			}
			m.mustStart()
			defer m.stop()
			if id := m.node.BrokerID(); id != 1001 {
				t.Fatalf("id %d", id)
			}
			if a := m.produce(store.TP{Topic: "t", Partition: 1}); a.BaseOffset != 1 {
				t.Errorf("the log goes on at %d", a.BaseOffset)
			}
		})
	}
}

// TestLogsLost: a partition whose directory is gone, or that of another topic, starts empty, and not silently.
func TestLogsLost(t *testing.T) {
	for name, lose := range map[string]func(m *machine) error{
		"directory gone": func(m *machine) error { return m.disk.Rename("/data/t-1", "/elsewhere") },
		"another topic's": func(m *machine) error {
			f, err := m.disk.Open("/data/t-1/partition.metadata", disk.Create)
			if err != nil {
				return err
			}
			_, err = f.WriteV([][]byte{[]byte("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAMQ")}, 0)
			return errors.Join(err, f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.mustStart()
			m.create("t", 2)
			m.produce(store.TP{Topic: "t", Partition: 1})
			m.stop()
			if m.logs.contains("start empty") {
				t.Error("new partitions count as lost")
			}
			coordtest.Must(t, lose(m))
			m.mustStart()
			defer m.stop()
			if a := m.produce(store.TP{Topic: "t", Partition: 1}); a.BaseOffset != 0 {
				t.Errorf("the log goes on at %d", a.BaseOffset)
			}
			if !m.logs.contains("start empty") || !m.logs.contains("t-1") || m.logs.contains("t-0") {
				t.Error("the log does not tell of t-1 alone")
			}
		})
	}
}

// TestConfigChange: overrides that a tool writes reach replicas and image.
func TestConfigChange(t *testing.T) {
	m := newMachine(t)
	m.mustStart()
	defer m.stop()
	m.create("t", 1)
	zk := m.zk.Client()
	set := func(path, value, entity string) {
		t.Helper()
		err := zk.Ensure(t.Context(), path, nil)
		coordtest.Must(t, err)
		_, err = zk.Set(t.Context(), path, []byte(value), -1)
		coordtest.Must(t, err)
		_, err = zk.Create(t.Context(), cluster.ConfigChangeSequencePath(), cluster.EncodeConfigChange(entity), zkclient.PersistentSequential)
		coordtest.Must(t, err)
	}
	set("/config/topics/t", `{"version":1,"config":{"max.message.bytes":"77"}}`, "topics/t")
	coordtest.Eventually(t, "the topic has its new limit", func() bool {
		r, err := m.node.Host().Replica(store.TP{Topic: "t"})
		return err == nil && r.Log().Config().MaxMessageBytes == 77 && m.node.Image().Topic("t").Configs["max.message.bytes"] == "77"
	})
	set("/config/brokers/<default>", `{"version":1,"config":{"a":"b"}}`, "brokers/<default>")
	set("/config/brokers/1", `{"version":1,"config":{"c":"d"}}`, "brokers/1")
	coordtest.Eventually(t, "the image has the brokers' overrides", func() bool {
		c := m.node.Image().BrokerConfigs
		return c[""]["a"] == "b" && c["1"]["c"] == "d"
	})
	set("/config/topics/t", `{"version":1,"config":{"bad":"x","max.message.bytes":"78"}}`, "topics/t")
	coordtest.Eventually(t, "the good part counts", func() bool {
		c := m.node.Image().Topic("t").Configs
		return c["max.message.bytes"] == "78" && len(c) == 1
	})
	set("/config/topics/t", `junk`, "topics/t")
	set("/config/topics/t", `{"version":1,"config":{}}`, "topics/t")
	coordtest.Eventually(t, "the default is back", func() bool {
		return m.node.Image().Topic("t").Configs["max.message.bytes"] == ""
	})
}

// endSession ends the broker's session behind its back. The broker takes the session's connection back
// meanwhile, so it may need several tries.
func (m *machine) endSession() {
	m.t.Helper()
	m.end(m.node.zk.Load().Session())
}

// end ends a session that another uses.
func (m *machine) end(id int64, password []byte) {
	m.t.Helper()
	for {
		thief, err := zkclient.Connect(m.t.Context(), zkclient.Config{Servers: m.cfg.Servers, SessionTimeout: m.cfg.SessionTimeout, SessionID: id, Password: password})
		if errors.Is(err, zkclient.ErrSessionExpired) {
			return
		}
		if errors.Is(err, zkclient.ErrConnectionLoss) {
			continue // the broker was quicker
		}
		coordtest.Must(m.t, err)
		if thief.Close() == nil {
			return
		}
	}
}

// TestExpiry: the session is lost; data goes on, and the broker comes back by itself.
func TestExpiry(t *testing.T) {
	m := newMachine(t)
	m.mustStart()
	defer m.stop()
	m.create("t", 1)
	first := m.node.epoch.Load()
	m.endSession()
	coordtest.Eventually(t, "the broker is registered anew", func() bool {
		return m.node.epoch.Load() > first && m.node.Image().Topic("t").Partitions[0].LeaderEpoch == 1
	})
	if a := m.produce(store.TP{Topic: "t"}); a.BaseOffset != 0 {
		t.Errorf("record at %d", a.BaseOffset)
	}
	m.create("u", 1)
	if id, err := m.node.ProducerIDs().Next(t.Context()); err != nil || id != 0 {
		t.Errorf("producer id %d, %v", id, err)
	}
}

// TestExpiryWhileStopping: a broker that finds its session expired while it leaves has left, which is no error.
func TestExpiryWhileStopping(t *testing.T) {
	m := newMachine(t)
	m.mustStart()
	m.node.end() // it does not register anew
	<-m.node.ended
	m.endSession()
	m.stop()
}

// TestCoordinatorAway: the coordinator restarts under a broker that goes on.
func TestCoordinatorAway(t *testing.T) {
	m := newMachine(t)
	m.mustStart()
	defer m.stop()
	m.create("t", 1)
	m.zk.Stop()
	m.produce(store.TP{Topic: "t"})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if out := m.node.Controller().CreateTopics(ctx, []controller.NewTopic{{Name: "u", PartitionCount: 1, ReplicationFactor: 1}}); out[0].Err == nil {
		t.Error("a topic was created without a coordinator")
	}
	m.zk.Restart()
	coordtest.Eventually(t, "topics can be created again", func() bool {
		out := m.node.Controller().CreateTopics(t.Context(), []controller.NewTopic{{Name: "v", PartitionCount: 1, ReplicationFactor: 1}})
		return out[0].Err == nil || errors.Is(out[0].Err, controller.ErrTopicExists)
	})
	if p := m.node.Image().Topic("t").Partitions[0]; p.LeaderEpoch != 0 {
		t.Errorf("the same session, and a new term: %+v", p)
	}
	m.produce(store.TP{Topic: "v"})
}

func TestSessionFile(t *testing.T) {
	for _, junk := range []string{"", "{", `{"version":2}`, `{"version":1,"session":"x"}`, `{"version":1,"session":"0x1","password":"AA=="}`} {
		if _, _, err := parseSession("f", []byte(junk)); err == nil {
			t.Errorf("%q is taken for a session", junk)
		}
	}
}

func FuzzSessionFile(f *testing.F) {
	f.Add([]byte(`{"version":1,"session":"0x1000a3f","password":"AAAAAAAAAAAAAAAAAAAAAA=="}`))
	f.Add([]byte(`{"version":1,"session":"-1"}`))
	f.Fuzz(func(t *testing.T, p []byte) {
		if _, password, err := parseSession("f", p); err == nil && len(password) != 16 {
			t.Error("a password of another size")
		}
	})
}
