package console

import (
	"github.com/prometheus/client_golang/prometheus"

	"platter/io/backend"
	"platter/io/disk"
)

var (
	operationInfo = desc("platter_io_operation_info", "The I/O backend of each operation in each data directory, and why.",
		"dir", "filesystem", "operation", "backend", "reason")

	sentBytes = desc("platter_io_sent_bytes_total", "Bytes of logs that went to clients and followers, by the way from the page cache to the socket.", "method")

	ringCount   = desc("platter_io_rings", "io_uring instances: one for each device that had sets of operations.")
	ringBatches = desc("platter_io_ring_batches_total", "Sets of operations that were handed to a ring.")
	ringOps     = desc("platter_io_ring_operations_total", "Operations in these sets.")
	ringEnters  = desc("platter_io_ring_enters_total", "System calls that submitted them and waited.")
	ringPlain   = desc("platter_io_ring_plain_total", "Operations that a ring could not begin, done by plain system calls.")
)

// SetBackend tells which I/O backend is at work, and why.
func (m *Metrics) SetBackend(name, reason string) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "platter_io_backend_info", Help: "The I/O backend at work, and why it was chosen.",
		ConstLabels: prometheus.Labels{"backend": name, "reason": reason},
	}, one))
}

// WatchIO tells what was chosen for each operation, and what goes through rings; rings says false where
// there are none.
func (m *Metrics) WatchIO(choices []backend.Choice, rings func() (backend.RingStats, bool)) {
	m.registry.MustRegister(&ioCollector{choices, rings})
}

type ioCollector struct {
	choices []backend.Choice
	rings   func() (backend.RingStats, bool)
}

func (c *ioCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{operationInfo, sentBytes, ringCount, ringBatches, ringOps, ringEnters, ringPlain} {
		out <- d
	}
}

func (c *ioCollector) Collect(out chan<- prometheus.Metric) {
	for _, o := range c.choices {
		gauge{out}.set(operationInfo, 1, o.Dir, o.FileSystem, o.Op, o.Backend, o.Reason)
	}
	for _, m := range disk.SendMethods {
		if m != disk.SendAuto {
			out <- prometheus.MustNewConstMetric(sentBytes, prometheus.CounterValue, float64(disk.SentBytes(m)), string(m))
		}
	}
	s, ok := c.rings()
	if !ok {
		return
	}
	gauge{out}.set(ringCount, int64(s.Rings))
	for _, v := range []struct {
		desc *prometheus.Desc
		n    uint64
	}{{ringBatches, s.Batches}, {ringOps, s.Ops}, {ringEnters, s.Enters}, {ringPlain, s.Plain}} {
		out <- prometheus.MustNewConstMetric(v.desc, prometheus.CounterValue, float64(v.n))
	}
}
