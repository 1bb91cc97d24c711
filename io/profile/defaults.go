package profile

import (
	"fmt"
	"strings"
	"time"
)

// Defaults are what suits a device. Each has a setting that overrides it; sizes are bytes.
type Defaults struct {
	ColdRunBytes     int64 // one read of a cold reader that goes on
	ColdFirstBytes   int64 // its first one
	ColdDepth        int   // such reads at once
	ColdSharePercent int   // of the device's time, while others write

	GrowFirstBytes int64 // how far a log is first grown ahead
	GrowMaxBytes   int64 // and at most; 0: not at all

	WriteBehindBytes int64 // runs whose writeback is begun early; 0: left to the kernel
	DirtyRunBytes    int64 // what a log should gather before the kernel writes it; 0: it does not matter

	DeleteStepBytes int64 // a large file is given back in such steps; 0: at once
	DeletePause     time.Duration

	BlockedCallsMax int // system calls that may wait for the device
	RecoveryThreads int // logs that are loaded at once; 0: one for each core
}

// rotating is what suits one arm: long runs, one at a time. Nothing is grown ahead: room that is taken early lies where the arm will
// not be, while a file system that allocates late lays side by side what it writes in one go (docs/figures.md).
var rotating = Defaults{
	ColdRunBytes: 16 << 20, ColdFirstBytes: 1 << 20, ColdDepth: 1, ColdSharePercent: 90,
	GrowFirstBytes:  1 << 20,
	DirtyRunBytes:   2 << 20,
	DeleteStepBytes: 128 << 20, DeletePause: 100 * time.Millisecond,
	BlockedCallsMax: 64, RecoveryThreads: 4,
}

// solid is what suits flash: any place is as near as another, and many requests at once are wanted.
var solid = Defaults{
	ColdRunBytes: 2 << 20, ColdFirstBytes: 512 << 10, ColdDepth: 8, ColdSharePercent: 100,
	GrowFirstBytes: 1 << 20, GrowMaxBytes: 64 << 20,
	DeleteStepBytes: 1 << 30, DeletePause: 10 * time.Millisecond,
	BlockedCallsMax: 64,
}

// stripeRuns is how many full stripes one run should have, so that its ends, where a stripe is written in part, weigh little.
const stripeRuns = 4

// Defaults are those for what is under the path.
func (p Profile) Defaults() Defaults {
	switch p.Kind {
	case SSD:
		return solid
	case NVMe:
		d := solid
		d.ColdDepth, d.BlockedCallsMax = 16, 128
		return d
	case Memory:
		d := solid
		d.GrowMaxBytes, d.DeleteStepBytes, d.DeletePause = 0, 0, 0 // room taken ahead would be memory
		return d
	case Network:
		d := rotating
		d.ColdDepth = 2                         // one is on its way while the other is being served
		d.DeleteStepBytes, d.DeletePause = 0, 0 // a call to the server for each step, where it knows them at all
		d.DirtyRunBytes = 1 << 20               // the largest write of most servers
		return d
	}
	d := rotating
	if p.RAID != nil {
		p.RAID.fit(&d)
	}
	return d
}

// fit makes runs of a spinning disk's defaults long enough for all members of a set, and gives each copy a reader.
func (r *RAID) fit(d *Defaults) {
	if stripe := r.StripeBytes(); stripe > 0 && stripe <= 64<<20 {
		d.ColdRunBytes = min(max(d.ColdRunBytes, roundUp(stripeRuns*stripe, stripe)), 64<<20)
		d.DirtyRunBytes = max(d.DirtyRunBytes, stripeRuns*stripe)
	}
	d.ColdDepth = min(r.Copies(), 8)
	d.RecoveryThreads = min(4*max(1, r.Disks), 32)
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// Table is the defaults of each kind of device as a Markdown table: a row a setting.
func Table() string {
	columns := []struct {
		name string
		p    Profile
	}{
		{"hdd, unknown, virtual", Profile{Kind: HDD}},
		{"RAID-5 of 6 hdd, chunk 512 KiB", Profile{Kind: HDD, RAID: &RAID{Level: "raid5", Disks: 6, Data: 5, ChunkBytes: 512 << 10}}},
		{"RAID-10 of 4 hdd", Profile{Kind: HDD, RAID: &RAID{Level: "raid10", Disks: 4, Data: 2, ChunkBytes: 512 << 10}}},
		{"ssd", Profile{Kind: SSD}}, {"nvme", Profile{Kind: NVMe}}, {"memory", Profile{Kind: Memory}}, {"network", Profile{Kind: Network}},
	}
	var b strings.Builder
	b.WriteString("| setting |")
	for _, c := range columns {
		b.WriteString(" " + c.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, row := range (Defaults{}).Rows() {
		fmt.Fprintf(&b, "| `%s` |", row.Name)
		for _, c := range columns {
			for _, r := range c.p.Defaults().Rows() {
				if r.Name == row.Name {
					b.WriteString(" " + r.Value + " |")
				}
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Rows is the defaults by the names of the settings that override them.
func (d Defaults) Rows() []Row {
	none := func(n int64, word string) string {
		if n == 0 {
			return word
		}
		return Size(n)
	}
	threads := fmt.Sprint(d.RecoveryThreads)
	if d.RecoveryThreads == 0 {
		threads = "one a core"
	}
	pause := "none"
	if d.DeletePause > 0 {
		pause = d.DeletePause.String()
	}
	return []Row{
		{"spindle.cold.run.bytes", Size(d.ColdRunBytes)},
		{"spindle.cold.first.bytes", Size(d.ColdFirstBytes)},
		{"spindle.cold.depth", fmt.Sprint(d.ColdDepth)},
		{"spindle.cold.share.percent", fmt.Sprint(d.ColdSharePercent)},
		{"spindle.grow.first.bytes", Size(d.GrowFirstBytes)},
		{"spindle.grow.max.bytes", none(d.GrowMaxBytes, "not at all")},
		{"spindle.write.behind.bytes", none(d.WriteBehindBytes, "not at all")},
		{"spindle.dirty.run.bytes", none(d.DirtyRunBytes, "any")},
		{"spindle.delete.step.bytes", none(d.DeleteStepBytes, "at once")},
		{"spindle.delete.pause.ms", pause},
		{"spindle.blocked.calls.max", fmt.Sprint(d.BlockedCallsMax)},
		{"num.recovery.threads.per.data.dir", threads},
	}
}
