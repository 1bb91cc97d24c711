package node

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"platter/coord/cluster"
	"platter/coord/controller"
	"platter/coord/zkserver"
	"platter/engine/store"
	"platter/io/backend"
	"platter/io/clock"
)

// BenchmarkRestart is a broker's restart after a kill with 1,000 partitions, on the real disk, the coordinator
// with its syncs included: by part, in ms.
func BenchmarkRestart(b *testing.B) {
	for _, shape := range []struct{ topics, partitions int32 }{{1, 1000}, {1000, 1}} {
		b.Run(fmt.Sprintf("%dx%d", shape.topics, shape.partitions), func(b *testing.B) {
			benchmarkRestart(b, shape.topics, shape.partitions)
		})
	}
}

func benchmarkRestart(b *testing.B, topics, partitions int32) {
	fs, _, err := backend.Select("auto")
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	var m *machine
	var zk *zkserver.Server
	spent := map[string]time.Duration{}
	start := func() {
		at := time.Now()
		lap := func(what string) {
			spent[what] += time.Since(at)
			at = time.Now()
		}
		zk, err = zkserver.Start(b.Context(), zkserver.Config{FS: fs, Clock: clock.Real{}, Dir: filepath.Join(dir, "zk"), Addr: "127.0.0.1:0", TickMs: 2000, Log: quiet})
		if err != nil {
			b.Fatal(err)
		}
		lap("coordinator")
		cfg := testConfig()
		cfg.FS, cfg.SessionDir, cfg.Servers = fs, filepath.Join(dir, "data"), []string{zk.Addr().String()}
		m = &machine{cfg: cfg}
		if m.node, err = Connect(b.Context(), cfg); err != nil {
			b.Fatal(err)
		}
		lap("connect")
		m.store, err = store.Open(b.Context(), store.Config{
			FS: fs, Clock: clock.Real{}, Dirs: []string{filepath.Join(dir, "data")}, BrokerID: 1, Log: quiet,
			TopicConfig: m.node.TopicConfig, HighWatermark: m.node.HighWatermark,
		}, &store.Progress{})
		if err != nil {
			b.Fatal(err)
		}
		lap("store")
		if err := m.node.Start(b.Context(), m.store, []cluster.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "127.0.0.1", Port: 9092}}); err != nil {
			b.Fatal(err)
		}
		lap("start")
	}
	start()
	var ts []controller.NewTopic
	for i := range topics {
		ts = append(ts, controller.NewTopic{Name: fmt.Sprintf("t%d", i), PartitionCount: partitions, ReplicationFactor: 1})
	}
	at := time.Now()
	for _, c := range m.node.Controller().CreateTopics(b.Context(), ts) {
		if c.Err != nil {
			b.Fatal(c.Err)
		}
	}
	b.Logf("created in %v", time.Since(at))
	clear(spent)
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		m.kill()
		zk.Close()
		b.StartTimer()
		start()
	}
	b.StopTimer()
	for what, d := range spent {
		b.ReportMetric(float64(d.Microseconds())/1000/float64(b.N), what+"-ms")
	}
	m.kill()
	zk.Close()
}
