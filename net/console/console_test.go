package console

import (
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"platter/coord/cluster"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/io/backend"
)

func serve(t *testing.T, p *store.Progress) (k *Console, m *Metrics, get func(path string) (int, string)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m = NewMetrics()
	k = New(Config{Listener: l, Metrics: m, Progress: p})
	t.Cleanup(func() { k.Close(context.Background()) })
	return k, m, func(path string) (int, string) {
		t.Helper()
		resp, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
}

func TestReadiness(t *testing.T) {
	p := new(store.Progress)
	k, _, get := serve(t, p)
	check := func(path string, code int, body string) {
		t.Helper()
		gotCode, gotBody := get(path)
		if gotCode != code || strings.TrimSpace(gotBody) != body {
			t.Fatalf("%s: %d %s, want %d %s", path, gotCode, gotBody, code, body)
		}
	}
	check("/health", 200, `{"status":"alive"}`)
	check("/ready", 503, `{"state":"starting","recovery":{"logs_total":0,"logs_done":0,"bytes_to_scan":0,"bytes_scanned":0}}`)
	atomic.StoreInt64(&p.LogsTotal, 10)
	atomic.StoreInt64(&p.LogsDone, 4)
	atomic.StoreInt64(&p.BytesToScan, 1000)
	atomic.StoreInt64(&p.BytesScanned, 300)
	check("/ready", 503, `{"state":"recovering","recovery":{"logs_total":10,"logs_done":4,"bytes_to_scan":1000,"bytes_scanned":300}}`)
	atomic.StoreInt64(&p.LogsDone, 10)
	k.SetReady(true)
	check("/ready", 200, `{"state":"running","recovery":{"logs_total":10,"logs_done":10,"bytes_to_scan":1000,"bytes_scanned":300}}`)
	k.SetReady(false)
	if code, body := get("/ready"); code != 503 || !strings.Contains(body, "stopping") {
		t.Fatalf("while stopping: %d %s", code, body)
	}
	if code, _ := get("/nothing"); code != 404 {
		t.Fatalf("an unknown path: %d", code)
	}
}

func TestMetrics(t *testing.T) {
	k, m, get := serve(t, nil)
	k.SetReady(true)
	m.SetBackend("memdisk", "a test")
	m.WatchIO([]backend.Choice{{Dir: "/d", FileSystem: "ext4", Op: "append", Backend: "psync", Reason: "why"}},
		func() (backend.RingStats, bool) { return backend.RingStats{Rings: 1, Batches: 7, Ops: 70}, true })
	img := &cluster.Image{ControllerID: 1, Brokers: []cluster.Broker{{ID: 1}, {ID: 2}}, Topics: map[string]*cluster.Topic{
		"a": {Name: "a", Partitions: []cluster.Partition{
			{Leader: 1, Replicas: []int32{1, 2}, ISR: []int32{1}},
			{Leader: 2, Replicas: []int32{2, 1}, ISR: []int32{2, 1}, OfflineReplicas: []int32{1}},
			{Leader: -1, Replicas: []int32{2}},
		}},
	}}
	m.WatchBroker(Sources{BrokerID: 1, Image: func() *cluster.Image { return img }, MinISR: func(map[string]string) int { return 2 }})
	m.Answered(0, 9, time.Now(), 100)
	m.Answered(0, 9, time.Now(), 100)
	m.Answered(-5, 99, time.Now(), 1) // what a client may ask for does not break anything
	m.Code(0, 3, "UNKNOWN_TOPIC_OR_PARTITION")
	m.Code(0, 9999, "9999")
	m.Topic("a").BytesIn.Add(10)
	m.Topic("a").BytesIn.Add(5)
	m.All.BytesIn.Add(15)
	m.Topic("b").RecordsIn.Inc()
	m.Forget("b")
	m.ConnectionOpened()
	m.ConnectionOpened()
	m.ConnectionClosed()
	code, body := get("/metrics")
	if code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	for _, line := range []string{
		`kafka_server_brokertopicmetrics_bytesin_total{topic="a"} 15`,
		`kafka_server_brokertopicmetrics_bytesin_total{topic=""} 15`,
		`kafka_network_requestmetrics_requests_total{request="Produce",version="9"} 2`,
		`kafka_network_requestmetrics_errors_total{error="UNKNOWN_TOPIC_OR_PARTITION",request="Produce"} 1`,
		`kafka_network_requestmetrics_totaltimems_count{request="Produce"} 2`,
		`kafka_network_requestmetrics_responsebytes_total{request="Produce"} 200`,
		`kafka_server_socket_server_metrics_connection_count 1`,
		`kafka_server_socket_server_metrics_connection_creation_total 2`,
		`kafka_server_replicamanager_partitioncount 2`,
		`kafka_server_replicamanager_leadercount 1`,
		`kafka_server_replicamanager_underreplicatedpartitions 1`,
		`kafka_server_replicamanager_underminisrpartitioncount 1`,
		`kafka_server_replicamanager_offlinereplicacount 1`,
		`kafka_controller_kafkacontroller_activecontrollercount 1`,
		`kafka_controller_kafkacontroller_offlinepartitionscount 1`,
		`kafka_controller_kafkacontroller_globaltopiccount 1`,
		`kafka_controller_kafkacontroller_globalpartitioncount 3`,
		`kafka_controller_kafkacontroller_activebrokercount 2`,
		`kafka_server_kafkaserver_brokerstate 3`,
		`platter_io_backend_info{backend="memdisk",reason="a test"} 1`,
		`platter_io_operation_info{backend="psync",dir="/d",filesystem="ext4",operation="append",reason="why"} 1`,
		`platter_io_ring_batches_total 7`,
		`platter_io_ring_operations_total 70`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
	if regexp.MustCompile(`topic="b"`).MatchString(body) {
		t.Error("a topic that was forgotten is still there")
	}
	if !strings.Contains(body, "go_goroutines") {
		t.Error("the Go runtime's metrics are missing")
	}
}

func TestOnlyTheControllerCountsTheCluster(t *testing.T) {
	_, m, get := serve(t, nil)
	m.WatchBroker(Sources{BrokerID: 2, Image: func() *cluster.Image {
		return &cluster.Image{ControllerID: 1, Topics: map[string]*cluster.Topic{"a": {Partitions: []cluster.Partition{{Leader: -1}}}}}
	}})
	_, body := get("/metrics")
	for _, line := range []string{"kafka_controller_kafkacontroller_activecontrollercount 0", "kafka_controller_kafkacontroller_offlinepartitionscount 0"} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
}

func TestDepthOfWrites(t *testing.T) {
	_, m, get := serve(t, nil)
	m.WatchWrites(func() commitlog.DepthStats {
		return commitlog.DepthStats{Writes: 5, Batches: 100, AtMost: map[uint64]uint64{1: 2, 64: 4}}
	})
	_, body := get("/metrics")
	for _, line := range []string{`platter_log_write_batches_bucket{le="1"} 2`, `platter_log_write_batches_bucket{le="64"} 4`,
		`platter_log_write_batches_bucket{le="+Inf"} 5`, "platter_log_write_batches_sum 100", "platter_log_write_batches_count 5"} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	m := NewMetrics()
	now := time.Now()
	m.Answered(0, 9, now, 1)
	m.Code(0, 0, "NONE")
	m.Topic("t")
	if n := testing.AllocsPerRun(100, func() {
		m.Answered(0, 9, now, 1)
		m.Code(0, 0, "NONE")
		m.Topic("t").BytesIn.Add(1)
	}); n > 1 { // the histogram's exemplar-free path takes none; the key of a map look-up may
		t.Fatalf("counting one request takes %v allocations", n)
	}
}
