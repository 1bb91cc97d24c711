package console

import (
	"github.com/prometheus/client_golang/prometheus"

	"platter/engine/spindle"
)

// A device's schedule, by its name.
var (
	coldStreams   = desc("platter_cold_streams", "Readers whose data has left the page cache, by device.", "device")
	coldWaiting   = desc("platter_cold_waiting", "Of these, reads that wait for their turn.", "device")
	coldHeld      = desc("platter_cold_held_bytes", "What was read for them and not dropped yet.", "device")
	coldRuns      = desc("platter_cold_runs_total", "Long reads made for them.", "device")
	coldBytes     = desc("platter_cold_read_bytes_total", "Bytes of these reads.", "device")
	coldSeconds   = desc("platter_cold_busy_seconds_total", "The device's time that these reads took.", "device")
	coldReclaimed = desc("platter_cold_reclaimed_total", "Readers that lost what was read ahead for them, for want of memory.", "device")
	coldGaveUp    = desc("platter_cold_gave_up_total", "Reads that waited too long for their turn and were made at once.", "device")
	slowRuns      = desc("platter_background_runs_total", "Long reads made in the background, as the scrub's.", "device")
	deletionCuts  = desc("platter_deletion_cuts_total", "Steps in which large files were given back.", "device")
	writtenBehind = desc("platter_write_behind_bytes_total", "Bytes whose writeback was begun before the kernel did.", "device")
	activeFiles   = desc("platter_growing_files", "Logs that were appended to in the last 30 seconds.", "device")
	dirtyBudget   = desc("platter_dirty_background_bytes", "What the kernel keeps dirty before it writes back.")
	dirtyRun      = desc("platter_dirty_run_bytes", "That, divided by the logs that grow: how long the runs of writeback can be.", "device")
	dirtyShort    = desc("platter_dirty_budget_short", "1 when these runs are too short for the device.", "device")
)

// WatchSpindles adds the counts of each device's schedule. Called once.
func (m *Metrics) WatchSpindles(stats func() []spindle.Stats) {
	m.registry.MustRegister(spindleCollector(stats))
}

// spindleCollector asks the schedules at each scrape.
type spindleCollector func() []spindle.Stats

// Describe sends the descriptions.
func (c spindleCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{coldStreams, coldWaiting, coldHeld, coldRuns, coldBytes, coldSeconds, coldReclaimed, coldGaveUp, slowRuns,
		deletionCuts, writtenBehind, activeFiles, dirtyBudget, dirtyRun, dirtyShort} {
		out <- d
	}
}

// Collect sends the values of this moment.
func (c spindleCollector) Collect(out chan<- prometheus.Metric) {
	g := gauge{out}
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	budget := int64(0)
	for _, st := range c() {
		g.set(coldStreams, int64(st.Streams), st.Name)
		g.set(coldWaiting, int64(st.Waiting), st.Name)
		g.set(coldHeld, st.HeldBytes, st.Name)
		count(coldRuns, float64(st.Runs), st.Name)
		count(coldBytes, float64(st.RunBytes), st.Name)
		count(coldSeconds, st.BusyTime.Seconds(), st.Name)
		count(coldReclaimed, float64(st.Reclaimed), st.Name)
		count(coldGaveUp, float64(st.GaveUp), st.Name)
		count(slowRuns, float64(st.BackgroundRuns), st.Name)
		count(deletionCuts, float64(st.Cuts), st.Name)
		count(writtenBehind, float64(st.WriteBehindBytes), st.Name)
		g.set(activeFiles, int64(st.ActiveFiles), st.Name)
		g.set(dirtyRun, st.Dirty.RunBytes, st.Name)
		short := int64(0)
		if st.Dirty.Short {
			short = 1
		}
		g.set(dirtyShort, short, st.Name)
		budget = st.Budget.BackgroundBytes
	}
	g.set(dirtyBudget, budget)
}
