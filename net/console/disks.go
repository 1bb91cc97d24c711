package console

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"platter/io/profile"
)

var (
	diskInfo = desc("platter_disk_info", "What is under each data directory, and why it is taken for that.",
		"dir", "device", "kind", "raid", "filesystem", "disks", "reason")
	diskStripe  = desc("platter_disk_stripe_bytes", "Data of one full stripe of the RAID set under a data directory.", "dir")
	diskMissing = desc("platter_disk_raid_missing", "Members that the RAID set under a data directory lacked when the broker started.", "dir")
)

// WatchDisks tells what is under each data directory. Called once.
func (m *Metrics) WatchDisks(profiles []profile.Profile) {
	m.registry.MustRegister(diskCollector(profiles))
}

type diskCollector []profile.Profile

// Describe sends the descriptions.
func (c diskCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{diskInfo, diskStripe, diskMissing} {
		out <- d
	}
}

// Collect sends what was found at the start.
func (c diskCollector) Collect(out chan<- prometheus.Metric) {
	g := gauge{out}
	for _, p := range c {
		raid := ""
		if p.RAID != nil {
			raid = p.RAID.Level
			g.set(diskStripe, p.RAID.StripeBytes(), p.Path)
			g.set(diskMissing, int64(p.RAID.Missing), p.Path)
		}
		names := make([]string, len(p.Disks))
		for i, d := range p.Disks {
			names[i] = d.Name
		}
		g.set(diskInfo, 1, p.Path, p.Device, p.Kind.String(), raid, p.FileSystem, strings.Join(names, " "), p.Reason)
	}
}
