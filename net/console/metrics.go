package console

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Metrics are the broker's counters: made once, shared by the layers of net. The names are those that
// the Prometheus JMX exporter's usual rules make of Kafka's, so that dashboards made for Kafka read
// them. What the data path counts is resolved once and kept by whoever counts; no labels are looked up
// for a request.
type Metrics struct {
	registry *prometheus.Registry

	topics     topicVecs
	byTopic    sync.Map // topic name → *TopicMetrics
	All        *TopicMetrics
	requests   *prometheus.CounterVec
	errors     *prometheus.CounterVec
	times      *prometheus.HistogramVec
	replyBytes *prometheus.CounterVec
	byKey      [keyMax]atomic.Pointer[requestMetrics]

	connections       prometheus.Gauge
	connectionsOpened prometheus.Counter

	// WaitingFetches and WaitingProduces are requests that are held back: long polls, and produces until
	// the high watermark has passed them.
	WaitingFetches, WaitingProduces prometheus.Gauge

	// ReplicationOut counts bytes of record batches that followers fetch.
	ReplicationOut prometheus.Counter
	meter          meter
}

// keyMax and codeMax bound what is kept resolved: API keys, and Kafka's error codes shifted by one. The
// last key, which nobody has, stands for those beyond.
const (
	keyMax     = 128
	codeMax    = 140
	versionMax = 32
)

// TopicMetrics count for one topic, or for all.
type TopicMetrics struct {
	BytesIn, BytesOut, BytesRejected, RecordsIn prometheus.Counter
	ProduceRequests, FetchRequests              prometheus.Counter
	FailedProduce, FailedFetch                  prometheus.Counter
}

type topicVecs struct {
	bytesIn, bytesOut, bytesRejected, recordsIn, produce, fetch, failedProduce, failedFetch *prometheus.CounterVec
}

// requestMetrics are one API key's.
type requestMetrics struct {
	name     string
	versions [versionMax]atomic.Pointer[prometheus.Counter]
	codes    [codeMax]atomic.Pointer[prometheus.Counter]
	time     prometheus.Observer
	bytes    prometheus.Counter
}

// NewMetrics makes the counters.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	topic := func(name, help string) *prometheus.CounterVec {
		return vec("kafka_server_brokertopicmetrics_"+name+"_total", help+" Without a topic: of all topics.", "topic")
	}
	m.topics = topicVecs{
		bytesIn:       topic("bytesin", "Bytes of record batches appended for clients."),
		bytesOut:      topic("bytesout", "Bytes of record batches sent to clients."),
		bytesRejected: topic("bytesrejected", "Bytes of record batches refused."),
		recordsIn:     topic("messagesin", "Records appended for clients."),
		produce:       topic("totalproducerequests", "Produces to a partition."),
		fetch:         topic("totalfetchrequests", "Fetches of a partition."),
		failedProduce: topic("failedproducerequests", "Produces to a partition that failed."),
		failedFetch:   topic("failedfetchrequests", "Fetches of a partition that failed."),
	}
	m.All = m.topics.of("")
	m.requests = vec("kafka_network_requestmetrics_requests_total", "Requests answered.", "request", "version")
	m.errors = vec("kafka_network_requestmetrics_errors_total", "Error codes in answers, NONE included.", "request", "error")
	m.replyBytes = vec("kafka_network_requestmetrics_responsebytes_total", "Bytes of answers.", "request")
	m.times = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "kafka_network_requestmetrics_totaltimems",
		Help:    "Milliseconds from a request's last byte to its answer, a long poll's wait included.",
		Buckets: []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 30000},
	}, []string{"request"})
	m.ReplicationOut = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kafka_server_brokertopicmetrics_replicationbytesout_total", Help: "Bytes of record batches sent to followers."})
	m.registry.MustRegister(m.ReplicationOut)
	m.meter = newMeter(m.registry)
	m.connections = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kafka_server_socket_server_metrics_connection_count", Help: "Open client connections."})
	m.connectionsOpened = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kafka_server_socket_server_metrics_connection_creation_total", Help: "Client connections accepted."})
	waiting := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kafka_server_delayedoperationpurgatory_numdelayedoperations", Help: "Requests held back, by their kind.",
	}, []string{"delayedOperation"})
	m.WaitingFetches, m.WaitingProduces = waiting.WithLabelValues("Fetch"), waiting.WithLabelValues("Produce")
	m.registry.MustRegister(m.times, m.connections, m.connectionsOpened, waiting)
	return m
}

func (v *topicVecs) of(topic string) *TopicMetrics {
	return &TopicMetrics{
		BytesIn:         v.bytesIn.WithLabelValues(topic),
		BytesOut:        v.bytesOut.WithLabelValues(topic),
		BytesRejected:   v.bytesRejected.WithLabelValues(topic),
		RecordsIn:       v.recordsIn.WithLabelValues(topic),
		ProduceRequests: v.produce.WithLabelValues(topic),
		FetchRequests:   v.fetch.WithLabelValues(topic),
		FailedProduce:   v.failedProduce.WithLabelValues(topic),
		FailedFetch:     v.failedFetch.WithLabelValues(topic),
	}
}

// Registry is where further collectors are registered.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Topic returns a topic's counters, made on first use. Only topics that exist may be asked for: each
// stays until Forget.
func (m *Metrics) Topic(topic string) *TopicMetrics {
	if t, ok := m.byTopic.Load(topic); ok {
		return t.(*TopicMetrics)
	}
	t, _ := m.byTopic.LoadOrStore(topic, m.topics.of(topic))
	return t.(*TopicMetrics)
}

// Forget drops the counters of a topic that was deleted.
func (m *Metrics) Forget(topic string) {
	m.byTopic.Delete(topic)
	v := &m.topics
	for _, c := range []*prometheus.CounterVec{v.bytesIn, v.bytesOut, v.bytesRejected, v.recordsIn,
		v.produce, v.fetch, v.failedProduce, v.failedFetch} {
		c.DeleteLabelValues(topic)
	}
}

// Answered counts one answered request.
func (m *Metrics) Answered(key, version int16, received time.Time, replyBytes int64) {
	r := m.request(key)
	r.time.Observe(float64(time.Since(received).Microseconds()) / 1000)
	r.bytes.Add(float64(replyBytes))
	resolved(&r.versions[min(max(int(version), 0), versionMax-1)], func() prometheus.Counter {
		return m.requests.WithLabelValues(r.name, strconv.Itoa(int(version)))
	}).Inc()
}

// Code counts an error code of an answer, by its name.
func (m *Metrics) Code(key, code int16, name string) {
	r := m.request(key)
	resolved(&r.codes[min(max(int(code)+1, 0), codeMax-1)], func() prometheus.Counter {
		return m.errors.WithLabelValues(r.name, name)
	}).Inc()
}

func (m *Metrics) request(key int16) *requestMetrics {
	if key < 0 || key >= keyMax {
		key = keyMax - 1
	}
	slot := &m.byKey[key]
	if r := slot.Load(); r != nil {
		return r
	}
	name := kmsg.NameForKey(key)
	r := &requestMetrics{name: name, time: m.times.WithLabelValues(name), bytes: m.replyBytes.WithLabelValues(name)}
	if !slot.CompareAndSwap(nil, r) {
		return slot.Load()
	}
	return r
}

func resolved(slot *atomic.Pointer[prometheus.Counter], find func() prometheus.Counter) prometheus.Counter {
	if c := slot.Load(); c != nil {
		return *c
	}
	c := find()
	slot.Store(&c)
	return c
}

// WatchMemory adds the gauges of the memory for request frames; called once.
func (m *Metrics) WatchMemory(usage func() (usedBytes, budgetBytes int64)) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "kafka_network_socketserver_memorypoolused", Help: "Bytes that hold requests.",
		}, func() float64 { used, _ := usage(); return float64(used) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "kafka_network_socketserver_memorypoolavailable", Help: "Bytes left for requests.",
		}, func() float64 { used, budget := usage(); return float64(max(budget-used, 0)) }),
	)
}

// ConnectionOpened and ConnectionClosed count client connections.
func (m *Metrics) ConnectionOpened() { m.connections.Inc(); m.connectionsOpened.Inc() }
func (m *Metrics) ConnectionClosed() { m.connections.Dec() }
