package console

import (
	"github.com/prometheus/client_golang/prometheus"

	"platter/engine/commitlog"
)

var writeBatches = desc("platter_log_write_batches", "Record batches that one vectored write to a log took.")

// WatchWrites adds the histogram of how many batches leave as one write. Called once.
func (m *Metrics) WatchWrites(stats func() commitlog.DepthStats) {
	m.registry.MustRegister(writeCollector(stats))
}

// writeCollector asks at each scrape.
type writeCollector func() commitlog.DepthStats

// Describe sends the description.
func (c writeCollector) Describe(out chan<- *prometheus.Desc) { out <- writeBatches }

// Collect sends the histogram of this moment.
func (c writeCollector) Collect(out chan<- prometheus.Metric) {
	st := c()
	buckets := make(map[float64]uint64, len(st.AtMost))
	for most, n := range st.AtMost {
		buckets[float64(most)] = n
	}
	out <- prometheus.MustNewConstHistogram(writeBatches, st.Writes, float64(st.Batches), buckets)
}
