package group

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"platter/coord/cluster"
	"platter/coord/config"
	"platter/coord/controller"
	"platter/coord/group/core"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/clock"
	"platter/io/disk"
	"platter/io/memdisk"
	"platter/replication/host"
)

// broker is a coordinator over real logs on a disk in memory; it is the controller too.
type broker struct {
	t     testing.TB
	fs    disk.FS
	clock clock.Clock
	image atomic.Pointer[cluster.Image]
	host  *host.Host
	store *store.Store
	co    *Coordinator
	epoch int32
	isr   []int32 // nil: the leader alone
	set   map[string]string

	creatable int16   // the controller makes topics of at most so many replicas; 0: of any number
	created   []int16 // replicas of what was created
}

const partitions = 4

func newBroker(t testing.TB, c clock.Clock, settings map[string]string) *broker {
	t.Helper()
	return newBrokerOn(t, memdisk.New(memdisk.Options{}), c, settings)
}

func newBrokerOn(t testing.TB, fs disk.FS, c clock.Clock, settings map[string]string) *broker {
	t.Helper()
	b := &broker{t: t, fs: fs, clock: c, set: map[string]string{
		"offsets.topic.num.partitions": fmt.Sprint(partitions), "log.dirs": "/data",
	}}
	for k, v := range settings {
		b.set[k] = v
	}
	b.image.Store(cluster.NewImage("c"))
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *broker) start() {
	b.t.Helper()
	cfg, _, err := config.Load(b.set, nil)
	must(b.t, err)
	b.store, err = store.Open(context.Background(), store.Config{
		FS: b.fs, Clock: b.clock, Dirs: []string{"/data"}, BrokerID: 1, OpenFilesMax: 60, RetentionCheckMs: 1 << 40, FlushCheckMs: 1 << 40, CheckpointMs: 1 << 40,
		TopicConfig: func(string) commitlog.Config { return b.logConfig() },
	}, nil)
	must(b.t, err)
	b.host = host.New(host.Config{Broker: 1, Store: b.store, Clock: b.clock})
	b.co = New(FromSettings(cfg, Config{
		BrokerID: 1, Replicas: b.host, Image: b.image.Load, Controller: b, Clock: b.clock,
	}))
	if b.image.Load().Topics[Topic] != nil {
		b.lead()
	}
}

func (b *broker) stop() {
	b.co.Close()
	b.host.Close()
	b.store.Close(true)
}

func (b *broker) restart() {
	b.t.Helper()
	b.stop()
	b.start()
	b.ready()
}

func (b *broker) logConfig() commitlog.Config {
	c := commitlog.DefaultConfig()
	c.Compacted, c.DeleteRetention, c.SegmentBytes = true, false, 1<<16
	return c
}

// lead makes this broker lead the topic in a new term.
func (b *broker) lead() {
	b.t.Helper()
	b.epoch++
	b.roles(1)
}

// roles gives leadership to a broker.
func (b *broker) roles(leader int32) {
	b.t.Helper()
	id := store.UUID{1}
	t := &cluster.Topic{Name: Topic, ID: id, Partitions: make([]cluster.Partition, partitions)}
	var states []host.PartitionState
	isr := b.isr
	if isr == nil {
		isr = []int32{leader}
	}
	for p := range int32(partitions) {
		t.Partitions[p] = cluster.Partition{Leader: leader, LeaderEpoch: b.epoch, Replicas: []int32{1}, ISR: []int32{1}}
		states = append(states, host.PartitionState{
			TP: store.TP{Topic: Topic, Partition: p}, TopicID: id, Leader: leader, LeaderEpoch: b.epoch, PartitionEpoch: b.epoch,
			ISR: isr, Replicas: []int32{1, 2}, MinISR: 1, Config: b.logConfig(),
		})
	}
	for _, err := range b.host.Apply(states) {
		must(b.t, err)
	}
	img := *cluster.NewImage("c")
	img.Topics = map[string]*cluster.Topic{Topic: t}
	b.image.Store(&img)
	b.co.RolesChanged([]string{Topic})
}

// CreateTopics makes it a controller.
func (b *broker) CreateTopics(_ context.Context, ts []controller.NewTopic) []controller.Created {
	n := ts[0].ReplicationFactor
	if b.creatable > 0 && n > b.creatable {
		return []controller.Created{{Name: ts[0].Name, Err: controller.ErrInvalidReplication}}
	}
	b.created = append(b.created, n)
	b.lead()
	return []controller.Created{{Name: ts[0].Name}}
}

// ready waits until all shards are loaded.
func (b *broker) ready() {
	b.t.Helper()
	for p := range int32(partitions) {
		b.co.awaitLoaded(context.Background(), p)
		if s, err := b.co.shard(p); err != nil || !s.ready() {
			b.t.Fatalf("partition %d is not ready: %v", p, err)
		}
	}
}

func (b *broker) find(group string) {
	b.t.Helper()
	id, err := b.co.Leader(context.Background(), group)
	if err != nil || id != 1 {
		b.t.Fatalf("coordinator of %s: %d %v", group, id, err)
	}
	b.ready()
}

func (b *broker) commit(group, topic string, offset int64) error {
	r := &CommitRequest{Group: group, Generation: -1, RetentionMs: -1, Offsets: []Committed{{TP: store.TP{Topic: topic}, Offset: core.Offset{Offset: offset, LeaderEpoch: 2, Metadata: "m"}}}}
	if err := b.co.Commit(r); err != nil {
		return err
	}
	return r.Offsets[0].Err
}

func (b *broker) wantOffset(group, topic string, want int64) {
	b.t.Helper()
	got, err := b.co.Fetch(group, []store.TP{{Topic: topic}})
	must(b.t, err)
	if got[0].Offset.Offset != want {
		b.t.Errorf("%s/%s: offset %d, want %d", group, topic, got[0].Offset.Offset, want)
	}
}

func joinRequest(member string) core.JoinRequest {
	return core.JoinRequest{
		MemberID: member, ClientID: "c", SessionTimeoutMs: 10_000, RebalanceTimeoutMs: 10_000, ProtocolType: "consumer",
		Protocols: []core.Protocol{{Name: "range", Metadata: []byte("x")}},
	}
}

// form makes a group of one member.
func (b *broker) form(group string) core.JoinReply {
	b.t.Helper()
	j := b.co.Join(context.Background(), group, joinRequest(""))
	must(b.t, j.Err)
	s := b.co.Sync(context.Background(), group, core.SyncRequest{
		MemberID: j.MemberID, Generation: j.Generation, Assignments: map[string][]byte{j.MemberID: []byte("all")},
	})
	must(b.t, s.Err)
	if string(s.Assignment) != "all" {
		b.t.Fatalf("assignment %q", s.Assignment)
	}
	return j
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func virtual() *clock.Virtual { return clock.NewVirtual(time.Unix(1_700_000_000, 0)) }
