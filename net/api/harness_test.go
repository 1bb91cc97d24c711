package api_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/coord/cluster"
	"platter/coord/config"
	"platter/coord/group"
	"platter/coord/node"
	"platter/coord/zkserver"
	"platter/engine/batch"
	"platter/engine/store"
	"platter/io/clock"
	"platter/io/memdisk"
	"platter/net/api"
	"platter/net/console"
	"platter/net/server"
)

// broker is a whole broker on a disk in memory.
type broker struct {
	t       testing.TB
	addr    string
	node    *node.Node
	store   *store.Store
	server  *server.Server
	metrics *console.Metrics
	log     *logged
	fs      *memdisk.FS
}

// logged is a log that the test reads.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startBroker starts a broker with settings; it ends with the test.
func startBroker(t testing.TB, settings map[string]string) *broker {
	t.Helper()
	ctx := context.Background()
	b := &broker{t: t, log: new(logged), fs: memdisk.New(memdisk.Options{})}
	log := slog.New(slog.NewTextHandler(b.log, nil))
	cfg, _, err := config.Load(settings, map[string]string{"log.dirs": "/data", "broker.id": "1"})
	must(t, err)
	zk, err := zkserver.Start(ctx, zkserver.Config{FS: b.fs, Clock: clock.Real{}, Dir: "/coordinator", Addr: "127.0.0.1:0", Log: log})
	must(t, err)
	t.Cleanup(func() { zk.Close() })

	b.node, err = node.Connect(ctx, node.Config{
		Servers: []string{zk.Addr().String()}, SessionTimeout: 40 * time.Second, ConnectTimeout: 60 * time.Second,
		FS: b.fs, Clock: clock.Real{}, Log: log, SessionDir: "/data", BrokerID: 1, ReservedIDMax: 1000,
		PartitionCountDefault: int32(cfg.Int("num.partitions")), ReplicationDefault: 1,
		LogConfig: cfg.Log, MinISR: cfg.MinISR, CheckTopic: config.CheckTopic, SetDynamic: cfg.SetDynamic,
	})
	must(t, err)
	b.store, err = store.Open(ctx, store.Config{
		FS: b.fs, Clock: clock.Real{}, Dirs: []string{"/data"}, BrokerID: 1, ClusterID: b.node.ClusterID(),
		OpenFilesMax: 80, RecoveryThreadsPerDir: 2, RetentionCheckMs: 300_000, FlushCheckMs: 300_000, CheckpointMs: 300_000,
		TopicConfig: b.node.TopicConfig, HighWatermark: b.node.HighWatermark, OnOffline: b.node.OnOffline,
	}, nil)
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	b.addr = l.Addr().String()
	port := int32(l.Addr().(*net.TCPAddr).Port)
	must(t, b.node.Start(ctx, b.store, []cluster.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "127.0.0.1", Port: port}}))

	groups := group.New(group.FromSettings(cfg, group.Config{
		BrokerID: b.node.BrokerID(), Replicas: b.node.Host(), Image: b.node.Image, Controller: b.node.Controller(),
		Clock: clock.Real{}, Log: log,
	}))
	b.node.Watch(groups)
	groups.RolesChanged(nil)
	b.metrics = console.NewMetrics()
	h := api.New(api.Deps{
		BrokerID: b.node.BrokerID(), Replicas: api.HostReplicas(b.node.Host()), Image: b.node.Image,
		Controller: b.node.Controller(), Store: b.store, Overrides: b.node, ProducerIDs: b.node.ProducerIDs(), Groups: groups, Peer: b.node, Config: cfg,
		Clock: clock.Real{}, Log: log, Metrics: b.metrics, FetchFilesMax: 40,
	})
	h.Joined()
	b.server, err = server.New(server.Config{
		Listeners: []server.Listener{{Name: "PLAINTEXT", Listener: l}}, Handler: h, Log: log, Metrics: b.metrics,
		DrainMax: time.Second,
	})
	must(t, err)
	b.server.Start()
	t.Cleanup(func() {
		b.server.Close(ctx)
		groups.Close()
		b.node.Stop(ctx)
		b.store.Close(true)
	})
	return b
}

// awaitPoll waits until a fetch is held.
func (b *broker) awaitPoll() {
	b.t.Helper()
	for range 12_000 {
		families, err := b.metrics.Registry().Gather()
		must(b.t, err)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "kafka_server_delayedoperationpurgatory_numdelayedoperations" &&
					m.GetLabel()[0].GetValue() == "Fetch" && m.GetGauge().GetValue() > 0 {
					return
				}
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	b.t.Fatal("no fetch is held")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// peer is a raw connection.
type peer struct {
	t    testing.TB
	nc   net.Conn
	next int32
}

func (b *broker) dial() *peer { return b.dialFor(b.t) }

// dialFor connects for a test within the broker's.
func (b *broker) dialFor(t testing.TB) *peer {
	t.Helper()
	nc, err := net.Dial("tcp", b.addr)
	must(t, err)
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(60 * time.Second))
	return &peer{t: t, nc: nc}
}

// send sends a request of the version given, and returns its correlation id.
func (p *peer) send(version int16, req kmsg.Request) int32 {
	p.t.Helper()
	req.SetVersion(version)
	p.next++
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test"))
	_, err := p.nc.Write(f.AppendRequest(nil, req, p.next))
	must(p.t, err)
	return p.next
}

// frame reads one answer, behind its length.
func (p *peer) frame() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(p.nc, size[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(p.nc, body)
	return body, err
}

// receive reads the answer to req, and insists on the correlation id and on every byte: encoding what
// was decoded must give what came.
func (p *peer) receive(id int32, req kmsg.Request) kmsg.Response {
	p.t.Helper()
	body, err := p.frame()
	must(p.t, err)
	if got := int32(binary.BigEndian.Uint32(body)); got != id {
		p.t.Fatalf("correlation id %d, want %d", got, id)
	}
	body = body[4:]
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	if resp.IsFlexible() && resp.Key() != int16(kmsg.ApiVersions) {
		if body[0] != 0 {
			p.t.Fatalf("header tags of an answer: %d", body[0])
		}
		body = body[1:]
	}
	if err := resp.ReadFrom(body); err != nil {
		p.t.Fatalf("%s version %d: %v in % x", kmsg.NameForKey(req.Key()), req.GetVersion(), err, body)
	}
	if again := resp.AppendTo(nil); !bytes.Equal(again, body) {
		p.t.Fatalf("%s version %d: %d bytes came, %d are understood\n% x\n% x", kmsg.NameForKey(req.Key()), req.GetVersion(), len(body), len(again), body, again)
	}
	return resp
}

func ask[R kmsg.Response](p *peer, version int16, req kmsg.Request) R {
	p.t.Helper()
	return p.receive(p.send(version, req), req).(R)
}

// closed insists that the broker closes the connection without a further byte.
func (p *peer) closed() {
	p.t.Helper()
	n, err := io.Copy(io.Discard, p.nc)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		p.t.Fatal("the connection stays open")
	}
	if n > 0 {
		p.t.Fatalf("%d bytes came where the connection should be closed", n)
	}
}

// client is a franz-go client.
func (b *broker) client(opts ...kgo.Opt) *kgo.Client {
	b.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.addr), kgo.RequestRetries(3)}, opts...)...)
	must(b.t, err)
	b.t.Cleanup(c.Close)
	return c
}

// create creates a topic and returns its id.
func (b *broker) create(name string, partitions int32, configs ...string) [16]byte {
	b.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 10_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, 1
	for i := 0; i < len(configs); i += 2 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = configs[i], &configs[i+1]
		t.Configs = append(t.Configs, c)
	}
	req.Topics = append(req.Topics, t)
	resp := ask[*kmsg.CreateTopicsResponse](b.dial(), 7, req)
	if code := resp.Topics[0].ErrorCode; code != 0 {
		b.t.Fatalf("create %s: %v", name, api.Code(code))
	}
	return resp.Topics[0].TopicID
}

// records makes a batch of values with timestamps from ms on.
func records(ms int64, values ...string) []byte {
	bl := batch.NewBuilder()
	for i, v := range values {
		bl.Add(ms+int64(i), []byte("k"), []byte(v))
	}
	p, err := bl.Build()
	if err != nil {
		panic(err)
	}
	return p
}

// produceRequest produces to one partition, by name and by id.
func produceRequest(topic string, id [16]byte, partition int32, acks int16, recs []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = acks, 5000
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = topic, id
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, recs
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func (p *peer) produce(topic string, partition int32, recs []byte) kmsg.ProduceResponseTopicPartition {
	p.t.Helper()
	return ask[*kmsg.ProduceResponse](p, 9, produceRequest(topic, [16]byte{}, partition, -1, recs)).Topics[0].Partitions[0]
}

func fetchRequest(topic string, id [16]byte, partition int32, offset int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxBytes, req.MinBytes, req.MaxWaitMillis = -1, 50<<20, 1, 0
	req.SessionEpoch = -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = topic, id
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = partition, offset, 1<<20, -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func (p *peer) fetch(req *kmsg.FetchRequest) kmsg.FetchResponseTopicPartition {
	p.t.Helper()
	return ask[*kmsg.FetchResponse](p, 12, req).Topics[0].Partitions[0]
}

func code(t testing.TB, what string, got int16, want api.Code) {
	t.Helper()
	if api.Code(got) != want {
		t.Fatalf("%s: %v, want %v", what, api.Code(got), want)
	}
}
