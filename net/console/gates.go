package console

import (
	"github.com/prometheus/client_golang/prometheus"

	"platter/io/gate"
)

var (
	gatePlaces  = desc("platter_disk_calls_max", "System calls that may wait for a disk at a time.", "dir")
	gateInside  = desc("platter_disk_calls_inside", "System calls that are in the kernel for a disk.", "dir")
	gateWaiting = desc("platter_disk_calls_waiting", "Calls that wait, without a thread, for others to come back.", "dir")
	gateWaited  = desc("platter_disk_calls_waited_total", "Calls that had to wait so.", "dir")
	gateLongest = desc("platter_disk_calls_wait_seconds_max", "The longest such wait.", "dir")
	gateStalled = desc("platter_disk_stalled_seconds", "How long a disk that calls wait for has answered none of them.", "dir")
)

// WatchGates adds the gauges of the bounds on blocked threads. Called once.
func (m *Metrics) WatchGates(stats func() []gate.Stats) {
	m.registry.MustRegister(gateCollector(stats))
}

// gateCollector asks the gates at each scrape.
type gateCollector func() []gate.Stats

// Describe sends what there is.
func (c gateCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{gatePlaces, gateInside, gateWaiting, gateWaited, gateLongest, gateStalled} {
		out <- d
	}
}

// Collect sends the values of this moment.
func (c gateCollector) Collect(out chan<- prometheus.Metric) {
	for _, s := range c() {
		for _, v := range []struct {
			desc  *prometheus.Desc
			value float64
		}{
			{gatePlaces, float64(s.Places)}, {gateInside, float64(s.Inside)}, {gateWaiting, float64(s.Waiting)},
			{gateLongest, s.Longest.Seconds()}, {gateStalled, s.Stalled.Seconds()},
		} {
			out <- prometheus.MustNewConstMetric(v.desc, prometheus.GaugeValue, v.value, s.Name)
		}
		out <- prometheus.MustNewConstMetric(gateWaited, prometheus.CounterValue, float64(s.Waited), s.Name)
	}
}
