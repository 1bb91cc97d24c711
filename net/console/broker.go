package console

import (
	"runtime"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"platter/coord/cluster"
	"platter/engine/commitlog"
	"platter/engine/store"
	"platter/replication/host"
	"platter/replication/replica"
)

// Sources is where the gauges of a broker come from; they are asked when somebody scrapes.
type Sources struct {
	BrokerID int32
	Image    func() *cluster.Image
	MinISR   func(overrides map[string]string) int // min.insync.replicas of a topic
	Store    Logs                                  // *store.Store
	Host     *host.Host                            // nil: what this broker leads is taken from the image
}

// Logs is what the gauges need of the store.
type Logs interface {
	All() []store.TP
	Get(store.TP) *commitlog.Log
	Dirs() []store.DirInfo
}

// WatchBroker adds the gauges of a broker. Called once, when it serves.
func (m *Metrics) WatchBroker(s Sources) { m.registry.MustRegister(&brokerCollector{s}) }

func one() float64 { return 1 }

// SetVersion tells what runs: the version as the banner has it. Called once, at start.
func (m *Metrics) SetVersion(version string) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "platter_build_info", Help: "Version of Platter and of Go.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
	}, one))
}

// brokerState adds Kafka's broker state: 1 starting, 2 recovering, 3 running, 6 stopping.
func (m *Metrics) brokerState(state func() (int, string)) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kafka_server_kafkaserver_brokerstate", Help: "1 starting, 2 recovering, 3 running, 6 stopping.",
	}, func() float64 { n, _ := state(); return float64(n) }))
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	partitionCount    = desc("kafka_server_replicamanager_partitioncount", "Replicas on this broker.")
	leaderCount       = desc("kafka_server_replicamanager_leadercount", "Partitions that this broker leads.")
	underReplicated   = desc("kafka_server_replicamanager_underreplicatedpartitions", "Led partitions with replicas out of sync.")
	atMinISR          = desc("kafka_server_replicamanager_atminisrpartitioncount", "Led partitions with just as many in-sync replicas as min.insync.replicas.")
	underMinISR       = desc("kafka_server_replicamanager_underminisrpartitioncount", "Led partitions with fewer in-sync replicas than min.insync.replicas.")
	offlineReplicas   = desc("kafka_server_replicamanager_offlinereplicacount", "Replicas on this broker whose directory failed.")
	activeController  = desc("kafka_controller_kafkacontroller_activecontrollercount", "1 on the controller.")
	offlinePartitions = desc("kafka_controller_kafkacontroller_offlinepartitionscount", "Partitions without a leader, as the controller sees it.")
	imbalance         = desc("kafka_controller_kafkacontroller_preferredreplicaimbalancecount", "Partitions that another broker leads than the first of their replicas, as the controller sees it.")
	globalTopics      = desc("kafka_controller_kafkacontroller_globaltopiccount", "Topics of the cluster, as the controller sees it.")
	globalPartitions  = desc("kafka_controller_kafkacontroller_globalpartitioncount", "Partitions of the cluster, as the controller sees it.")
	activeBrokers     = desc("kafka_controller_kafkacontroller_activebrokercount", "Registered brokers, as the controller sees it.")

	logSize     = desc("kafka_log_log_size", "Bytes of a partition's segments.", "topic", "partition")
	logStart    = desc("kafka_log_log_logstartoffset", "Log start offset.", "topic", "partition")
	logEnd      = desc("kafka_log_log_logendoffset", "Log end offset, exclusive.", "topic", "partition")
	logSegments = desc("kafka_log_log_numlogsegments", "Segments of a partition.", "topic", "partition")

	offlineDirs = desc("kafka_log_logmanager_offlinelogdirectorycount", "Data directories that failed.")
	dirFree     = desc("platter_log_dir_free_bytes", "Room left in the file system of a data directory.", "dir")
	dirTotal    = desc("platter_log_dir_total_bytes", "Size of the file system of a data directory.", "dir")
	dirOnline   = desc("platter_log_dir_online", "0: the data directory failed.", "dir")
)

// brokerCollector reads the broker's state at each scrape.
type brokerCollector struct{ s Sources }

func (b *brokerCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{partitionCount, leaderCount, underReplicated, underMinISR, atMinISR, offlineReplicas,
		activeController, offlinePartitions, imbalance, globalTopics, globalPartitions, activeBrokers,
		logSize, logStart, logEnd, logSegments, offlineDirs, dirFree, dirTotal, dirOnline} {
		out <- d
	}
}

func (b *brokerCollector) Collect(out chan<- prometheus.Metric) {
	b.collectImage(gauge{out})
	b.collectLogs(gauge{out})
}

// gauge sends values.
type gauge struct{ out chan<- prometheus.Metric }

func (g gauge) set(d *prometheus.Desc, v int64, labels ...string) {
	g.out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
}

// tally counts over the image's partitions.
type tally struct{ mine, led, under, underMin, atMin, offlineMine, partitions, offline, imbalanced int64 }

// own counts the replicas of this broker as they are, which the image may not know yet.
func (n *tally) own(h *host.Host) {
	n.mine, n.led, n.under, n.underMin, n.atMin = 0, 0, 0, 0, 0
	h.All(func(_ store.TP, r *replica.Replica) {
		n.mine++
		if l, leads := r.Leadership(); leads {
			n.lead(l.ISR, l.Replicas, l.MinISR)
		}
	})
}

func (b *brokerCollector) collectImage(g gauge) {
	img, id := b.s.Image(), b.s.BrokerID
	var n tally
	for _, t := range img.Topics {
		minISR := 1
		if b.s.MinISR != nil {
			minISR = b.s.MinISR(t.Configs)
		}
		for i := range t.Partitions {
			n.add(&t.Partitions[i], id, minISR)
		}
	}
	if b.s.Host != nil {
		n.own(b.s.Host)
	}
	g.set(partitionCount, n.mine)
	g.set(leaderCount, n.led)
	g.set(underReplicated, n.under)
	g.set(underMinISR, n.underMin)
	g.set(atMinISR, n.atMin)
	g.set(offlineReplicas, n.offlineMine)
	if img.ControllerID != id || id < 0 {
		n, img = tally{}, &cluster.Image{ControllerID: -1}
	}
	controller := int64(0)
	if img.ControllerID == id {
		controller = 1
	}
	g.set(activeController, controller)
	g.set(offlinePartitions, n.offline)
	g.set(imbalance, n.imbalanced)
	g.set(globalTopics, int64(len(img.Topics)))
	g.set(globalPartitions, n.partitions)
	g.set(activeBrokers, int64(len(img.Brokers)))
}

func (n *tally) add(p *cluster.Partition, id int32, minISR int) {
	n.partitions++
	if p.Leader < 0 {
		n.offline++
	}
	if len(p.Replicas) > 0 && p.Leader != p.Replicas[0] {
		n.imbalanced++
	}
	if slices.Contains(p.Replicas, id) {
		n.mine++
	}
	if slices.Contains(p.OfflineReplicas, id) {
		n.offlineMine++
	}
	if p.Leader != id {
		return
	}
	n.lead(len(p.ISR), len(p.Replicas), min(minISR, len(p.Replicas)))
}

// lead counts a partition that this broker leads.
func (n *tally) lead(isr, replicas, minISR int) {
	n.led++
	if isr < replicas {
		n.under++
	}
	switch {
	case isr < minISR:
		n.underMin++
	case isr == minISR:
		n.atMin++
	}
}

func (b *brokerCollector) collectLogs(g gauge) {
	if b.s.Store == nil {
		return
	}
	for _, tp := range b.s.Store.All() {
		l := b.s.Store.Get(tp)
		if l == nil {
			continue
		}
		partition, ends := strconv.Itoa(int(tp.Partition)), l.Ends()
		g.set(logSize, l.SizeBytes(), tp.Topic, partition)
		g.set(logStart, ends.Start, tp.Topic, partition)
		g.set(logEnd, ends.Written, tp.Topic, partition)
		g.set(logSegments, int64(l.SegmentCount()), tp.Topic, partition)
	}
	failed := int64(0)
	for _, d := range b.s.Store.Dirs() {
		online := int64(1)
		if d.Offline != nil {
			online = 0
			failed++
		}
		g.set(dirOnline, online, d.Path)
		g.set(dirFree, d.Space.FreeBytes, d.Path)
		g.set(dirTotal, d.Space.TotalBytes, d.Path)
	}
	g.set(offlineDirs, failed)
}
