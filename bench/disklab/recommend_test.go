package disklab

import (
	"slices"
	"strings"
	"testing"

	"platter/coord/config"
	"platter/io/profile"
)

// sees is a result with cells of these kinds of figures.
func sees(kind profile.Kind, cells ...Cell) *Result {
	return &Result{Profile: &profile.Profile{Kind: kind}, Cells: cells}
}

func device(op, pattern string, size int64, depth int, opsPerSec float64) Cell {
	return Cell{Group: Device, Name: pattern + " " + op, Op: op, Pattern: pattern, SizeBytes: size, Depth: depth,
		Figures: Figures{Ops: 100, Seconds: 100 / opsPerSec, OpsPerSec: opsPerSec, BytesPerSec: opsPerSec * float64(size), P50: 1e6 / opsPerSec}}
}

func syncs(micros float64) Cell {
	return Cell{Group: Syncs, Name: "sync", Op: Write, SizeBytes: small, Files: 1, SyncEach: true,
		Figures: Figures{Ops: 1000, Seconds: micros / 1e3, OpsPerSec: 1e6 / micros, P50: micros, P99: 3 * micros}}
}

func coldCell(lane bool, low, middle, high, p99 float64) Cell {
	return Cell{Group: Cold, Name: "cold", Readers: 8, Lane: lane, Appender: true,
		Figures: Figures{Ops: 10, Seconds: 1, BytesPerSec: middle, Low: low, High: high, P99: p99}}
}

func segmentCell(size int64, grown bool, write, back float64) Cell {
	return Cell{Group: Segment, Name: "segments", Files: 8, SegmentBytes: size, GrowAhead: grown,
		Figures: Figures{Ops: 10, Seconds: 1, BytesPerSec: write, ReadBack: back}}
}

func TestRecommend(t *testing.T) {
	const mb = 1e6
	hdd := []Cell{device(Read, Random, small, 1, 80), device(Read, Random, small, 4, 110), device(Read, Random, small, 32, 160),
		device(Read, Sequential, long, 32, 143), device(Read, Random, longest, 1, 20), device(Read, Random, longest, 32, 22)}
	nvme := []Cell{device(Read, Random, small, 1, 12_000), device(Read, Random, small, 32, 300_000),
		device(Read, Sequential, long, 32, 3000), device(Read, Random, longest, 1, 250), device(Read, Random, longest, 4, 760),
		device(Read, Random, longest, 32, 780)}
	array := sees(profile.HDD, device(Read, Random, small, 1, 80), device(Read, Sequential, long, 32, 715))
	array.Profile.RAID = &profile.RAID{Level: "raid5", Disks: 6, Data: 5, ChunkBytes: 512 << 10}
	for _, c := range []struct {
		name    string
		r       *Result
		setting string
		value   string // "": no advice
		same    bool
	}{
		{"no figures", sees(profile.HDD), "log.flush.interval.messages", "", false},
		{"dear sync", sees(profile.HDD, syncs(30_000)), "log.flush.interval.messages", Unset, true},
		{"memory's sync", sees(profile.Memory, syncs(8)), "log.flush.interval.messages", Unset, true},
		{"cheap sync", sees(profile.NVMe, syncs(80)), "log.flush.interval.messages", "1", false},

		{"an arm's run", sees(profile.HDD, hdd...), "spindle.cold.run.bytes", "16777216", true},
		{"a set's run", array, "spindle.cold.run.bytes", "67108864", false},
		{"flash's run", sees(profile.NVMe, nvme...), "spindle.cold.run.bytes", "2097152", true},
		{"an arm that goes by another name", sees(profile.NVMe, hdd...), "spindle.cold.run.bytes", "16777216", false},

		{"an arm's depth", sees(profile.HDD, hdd...), "spindle.cold.depth", "1", true},
		{"flash's depth", sees(profile.NVMe, nvme...), "spindle.cold.depth", "16", true},
		{"flash behind a virtual disk", sees(profile.Virtual, nvme...), "spindle.cold.depth", "4", false},

		{"an arm's recovery", sees(profile.HDD, hdd...), "num.recovery.threads.per.data.dir", "4", true},
		{"flash's recovery", sees(profile.NVMe, nvme...), "num.recovery.threads.per.data.dir", "0", true},
		{"a virtual disk's recovery", sees(profile.Virtual, nvme...), "num.recovery.threads.per.data.dir", "32", false},

		{"turns win", sees(profile.HDD, coldCell(false, 50*mb, 60*mb, 70*mb, 9), coldCell(true, 130*mb, 140*mb, 141*mb, 9)), "spindle.cold.reads", "auto", true},
		{"turns lose always", sees(profile.SSD, coldCell(false, 500*mb, 600*mb, 700*mb, 9), coldCell(true, 200*mb, 240*mb, 300*mb, 9)), "spindle.cold.reads", "off", false},
		{"turns lose sometimes", sees(profile.SSD, coldCell(false, 250*mb, 600*mb, 700*mb, 9), coldCell(true, 200*mb, 240*mb, 300*mb, 9)), "spindle.cold.reads", "auto", true},
		{"turns lose, appends gain", sees(profile.SSD, coldCell(false, 500*mb, 600*mb, 700*mb, 90), coldCell(true, 200*mb, 240*mb, 300*mb, 9)), "spindle.cold.reads", "auto", true},

		{"growing loses always", sees(profile.SSD, segmentCell(2<<20, true, 50, 90), segmentCell(2<<20, false, 100, 100),
			segmentCell(8<<20, true, 60, 90), segmentCell(8<<20, false, 100, 100)), "spindle.grow.max.bytes", "-1", false},
		{"growing loses once", sees(profile.SSD, segmentCell(2<<20, true, 50, 90), segmentCell(2<<20, false, 100, 100),
			segmentCell(8<<20, true, 95, 90), segmentCell(8<<20, false, 100, 100)), "spindle.grow.max.bytes", "0", true},
		{"growing wins always, where it is not done", sees(profile.HDD, segmentCell(2<<20, true, 150, 100), segmentCell(2<<20, false, 100, 100),
			segmentCell(8<<20, true, 160, 100), segmentCell(8<<20, false, 100, 100)), "spindle.grow.max.bytes", "67108864", false},
		{"growing loses where it is not done", sees(profile.HDD, segmentCell(2<<20, true, 50, 90), segmentCell(2<<20, false, 100, 100)),
			"spindle.grow.max.bytes", "0", true},
		{"segments", sees(profile.SSD, segmentCell(2<<20, true, 50, 90), segmentCell(8<<20, true, 95, 90)), "log.segment.bytes", "1073741824", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := Recommend(c.r)
			at := slices.IndexFunc(all, func(a Advice) bool { return a.Setting == c.setting })
			if at < 0 {
				if c.value != "" {
					t.Fatalf("no advice on %s", c.setting)
				}
				return
			}
			if a := all[at]; a.Value != c.value || a.Same != c.same {
				t.Errorf("%s=%s, as it is: %v; want %s, %v: %s", a.Setting, a.Value, a.Same, c.value, c.same, a.Why)
			}
		})
	}
}

// What is advised can be written to server.properties as it is: the broker's settings take it.
func TestAdviceIsTakenByTheBroker(t *testing.T) {
	r, err := Run(t.Context(), Options{Model: &Model{Kind: "raid5"}, Seed: 1, FilesMax: 16, modelBytes: 128 << 20})
	if err != nil {
		t.Fatal(err)
	}
	props := map[string]string{}
	for _, a := range r.Advice {
		def, known := config.BrokerDef(a.Setting)
		if !known || a.Value == "" || len(a.Cells) == 0 {
			t.Errorf("%+v, a setting of the broker's: %v", a, known)
		}
		if props[def.Name] = a.Value; a.Value == Unset {
			delete(props, def.Name)
		}
		for _, name := range a.Cells {
			if !slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Name == name }) {
				t.Errorf("%s rests on %q, which was not measured", a.Setting, name)
			}
		}
	}
	if _, warnings, err := config.Load(props, nil); err != nil || len(warnings) > 0 {
		t.Errorf("%v: %v, %v", props, warnings, err)
	}
}

func TestVerdict(t *testing.T) {
	for word, r := range map[string]*Result{
		"one spinning disk":      sees(profile.Virtual, device(Read, Random, small, 1, 80), device(Read, Random, small, 32, 160), device(Read, Sequential, long, 1, 140)),
		"several spinning disks": sees(profile.HDD, device(Read, Random, small, 1, 80), device(Read, Random, small, 32, 680), device(Read, Sequential, long, 1, 700)),
		"slow or throttled":      sees(profile.Virtual, device(Read, Random, small, 1, 900), device(Read, Sequential, long, 1, 140)),
		"behaves like flash:":    sees(profile.Virtual, device(Read, Random, small, 1, 9000), device(Read, Sequential, long, 1, 1400)),
		"as fast as memory":      sees(profile.Virtual, device(Read, Random, small, 1, 90_000), device(Read, Sequential, long, 1, 9000)),
		"faster than a medium":   sees(profile.SSD, syncs(10)),
		"too dear":               sees(profile.HDD, syncs(10_000)),
		"cheap enough":           sees(profile.NVMe, syncs(100)),
	} {
		if got := strings.Join(Verdict(r), "\n"); !strings.Contains(got, word) {
			t.Errorf("%q is missing in: %s", word, got)
		}
	}
}
