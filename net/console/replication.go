package console

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"platter/coord/controller"
	"platter/coord/node"
	"platter/engine/store"
	"platter/replication/follow"
	"platter/replication/host"
	"platter/replication/replica"
)

// Replication is where the figures of replication come from; they are asked when somebody scrapes.
type Replication struct {
	Host      *host.Host
	Followers func() follow.Stats
	ISR       func() node.ISRStats
	Waiting   func() (requests, messages int) // of the controller
}

// WatchReplication adds them. Called once.
func (m *Metrics) WatchReplication(r Replication) { m.registry.MustRegister(replicationCollector{r}) }

var (
	isrShrinks = desc("kafka_server_replicamanager_isrshrinks_total", "In-sync sets that leaders here have made smaller.")
	isrExpands = desc("kafka_server_replicamanager_isrexpands_total", "In-sync sets that leaders here have made larger.")
	isrFailed  = desc("kafka_server_replicamanager_failedisrupdates_total", "Changes of in-sync sets that leaders here asked for and that were not made.")

	replicationIn    = desc("kafka_server_brokertopicmetrics_replicationbytesin_total", "Bytes of record batches fetched from leaders.")
	fetcherRequests  = desc("kafka_server_fetcherstats_requests_total", "Fetches sent to leaders.")
	fetcherFailures  = desc("platter_replica_fetcher_failures_total", "Fetches that a leader did not answer.")
	fetcherMaxLag    = desc("kafka_server_replicafetchermanager_maxlag", "The largest of kafka_server_fetcherlagmetrics_consumerlag.", "clientId")
	fetcherLag       = desc("kafka_server_fetcherlagmetrics_consumerlag", "Records that a replica here lacked below its leader's high watermark at the last fetch.", "clientId", "topic", "partition")
	failedPartitions = desc("kafka_server_replicafetchermanager_failedpartitionscount", "Partitions that rest after an error, before they are fetched again.", "clientId")
	fetcherParts     = desc("platter_replica_fetcher_partitions", "Partitions of a fetcher.", "leader", "fetcher")
	fetcherFailing   = desc("platter_replica_fetcher_failing", "1: the leader did not answer the last fetch.", "leader", "fetcher")

	lagRecords = desc("platter_replica_lag_records", "The most records that a follower lacks of a partition that this broker leads.", "follower")
	lagBytes   = desc("platter_replica_lag_bytes", "About how many bytes a follower lacks of all partitions that this broker leads.", "follower")

	controllerWaiting = desc("kafka_controller_controllereventmanager_eventqueuesize", "Requests that wait for the controller.")
	controllerUnsent  = desc("kafka_controller_controllerchannelmanager_totalqueuesize", "Messages of the controller that brokers have not taken.")
)

type replicationCollector struct{ r Replication }

// Describe sends the descriptions.
func (c replicationCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{isrShrinks, isrExpands, isrFailed, replicationIn, fetcherRequests, fetcherFailures,
		fetcherMaxLag, fetcherLag, failedPartitions, fetcherParts, fetcherFailing, lagRecords, lagBytes, controllerWaiting, controllerUnsent} {
		out <- d
	}
}

// Collect sends the values of this moment.
func (c replicationCollector) Collect(out chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, v int64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
	}
	isr, st, g := c.r.ISR(), c.r.Followers(), gauge{out}
	count(isrShrinks, isr.Shrinks)
	count(isrExpands, isr.Expands)
	count(isrFailed, isr.Failed)
	count(replicationIn, st.Bytes)
	count(fetcherRequests, st.Requests)
	count(fetcherFailures, st.Failures)
	fetchers(g, st.Fetchers)
	c.followers(g)
	requests, messages := c.r.Waiting()
	g.set(controllerWaiting, int64(requests))
	g.set(controllerUnsent, int64(messages))
}

// replicaClient is what Kafka calls all replicas' fetchers together (ReplicaFetcherManager).
const replicaClient = "Replica"

func fetchers(g gauge, all []follow.FetcherStats) {
	lagMax, failed := int64(0), int64(0)
	for _, f := range all {
		leader, lane := strconv.Itoa(f.Leader), strconv.Itoa(f.Lane)
		failing := int64(0)
		if f.Failing {
			failing = 1
		}
		g.set(fetcherParts, int64(len(f.Partitions)), leader, lane)
		g.set(fetcherFailing, failing, leader, lane)
		for _, p := range f.Partitions {
			if p.Failed {
				failed++
			}
			if p.Lag < 0 {
				continue
			}
			lagMax = max(lagMax, p.Lag)
			g.set(fetcherLag, p.Lag, "ReplicaFetcherThread-"+lane+"-"+leader, p.TP.Topic, strconv.Itoa(int(p.TP.Partition)))
		}
	}
	g.set(fetcherMaxLag, lagMax, replicaClient)
	g.set(failedPartitions, failed, replicaClient)
}

// followers tells how far behind the followers of what this broker leads are.
func (c replicationCollector) followers(g gauge) {
	type lag struct{ records, bytes int64 }
	lags := map[int32]lag{}
	c.r.Host.All(func(_ store.TP, r *replica.Replica) {
		l, leads := r.Leadership()
		log := r.Log()
		if !leads || log == nil {
			return
		}
		ends := log.Ends()
		for _, f := range l.Followers {
			end := max(f.End, ends.Start)
			sum := lags[f.Broker]
			sum.records = max(sum.records, ends.Written-end)
			if end < ends.Written {
				sum.bytes += log.BytesFrom(end)
			}
			lags[f.Broker] = sum
		}
	})
	for id, l := range lags {
		g.set(lagRecords, l.records, strconv.Itoa(int(id)))
		g.set(lagBytes, l.bytes, strconv.Itoa(int(id)))
	}
}

// meter measures the controller, in milliseconds as Kafka does.
type meter struct {
	waited, took, electing prometheus.Histogram
	elected, unclean       prometheus.Counter
}

func newMeter(reg *prometheus.Registry) meter {
	times := func(name, help string) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help,
			Buckets: []float64{0.1, 0.5, 1, 5, 10, 50, 100, 500, 1000, 5000, 30000}})
		reg.MustRegister(h)
		return h
	}
	total := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		reg.MustRegister(c)
		return c
	}
	return meter{
		waited:   times("kafka_controller_controllereventmanager_eventqueuetimems", "Milliseconds that requests and news waited for the controller."),
		took:     times("kafka_controller_controllereventmanager_eventqueueprocessingtimems", "Milliseconds that the controller was at a request or at news."),
		electing: times("kafka_controller_controllerstats_leaderelectionrateandtimems", "Milliseconds of the controller's rounds in which partitions got another leader, until the brokers knew."),
		elected:  total("platter_controller_leaders_elected_total", "Partitions to which this controller gave another leader."),
		unclean:  total("kafka_controller_controllerstats_uncleanleaderelections_total", "Those of them whose new leader was not in sync: records may be lost."),
	}
}

// Controller is what measures this broker's controller.
func (m *Metrics) Controller() controller.Meter { return &m.meter }

func (m *meter) Waited(d time.Duration) { m.waited.Observe(millis(d)) }
func (m *meter) Took(d time.Duration)   { m.took.Observe(millis(d)) }

func (m *meter) Elected(partitions, unclean int, took time.Duration) {
	m.electing.Observe(millis(took))
	m.elected.Add(float64(partitions))
	m.unclean.Add(float64(unclean))
}

func millis(d time.Duration) float64 { return float64(max(d, 0).Microseconds()) / 1000 }
