package disklab

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"platter/engine/segment"
	"platter/io/profile"
)

// Advice is one setting, by its name in coord/config/tables, and the measurement behind it.
type Advice struct {
	Setting string `json:"setting"`
	Value   string `json:"value"` // as it is written in server.properties
	// Same: Platter does so by itself on this disk; nothing has to be set.
	Same bool `json:"same"`
	// Optional: it may be set by those who want what it gives; nothing is lost without.
	Optional bool   `json:"optional,omitempty"`
	Why      string `json:"why"`
	// Cells are the names of those that it rests on.
	Cells []string `json:"cells"`
}

// Size is the value as people write it, where it is a number of bytes; else "".
func (a Advice) Size() string {
	n, err := strconv.ParseInt(a.Value, 10, 64)
	if err != nil || n <= 0 || !strings.HasSuffix(a.Setting, ".bytes") {
		return ""
	}
	return profile.Size(n)
}

// about is what the settings are, for those who see them for the first time.
var about = map[string]string{
	"log.flush.interval.messages":       "after how many records a log is synced, before they are acknowledged",
	"spindle.cold.reads":                "whether consumers that have fallen behind take turns at the disk",
	"spindle.cold.run.bytes":            "how much is read in one go for a consumer that has fallen behind",
	"spindle.cold.depth":                "how many such reads are under way at once",
	"spindle.grow.max.bytes":            "how far room is taken ahead for a log that grows",
	"log.segment.bytes":                 "how long a log's file gets before the next one is begun",
	"num.recovery.threads.per.data.dir": "how many logs are loaded at once when the broker starts",
}

// About is what the setting is.
func (a Advice) About() string { return about[a.Setting] }

// Unset is the value of a setting that is best left out.
const Unset = "(unset)"

// Recommend derives settings from a run's figures. It is a pure function: what was not measured is not advised on.
func Recommend(r *Result) (out []Advice) {
	for _, f := range []func(*Result) *Advice{
		adviseSync, adviseColdReads, adviseColdRun, adviseColdDepth, adviseGrowth, adviseSegment, adviseRecovery,
	} {
		if a := f(r); a != nil {
			if r.Modelled {
				a.Why += " (modelled)"
			}
			out = append(out, *a)
		}
	}
	rank := func(a Advice) int {
		switch {
		case !a.Same && !a.Optional:
			return 0
		case a.Optional:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(out, func(a, b Advice) int { return rank(a) - rank(b) }) // what is to be done comes first
	return out
}

// each is what one operation of a cell took on average.
func (c *Cell) each() time.Duration {
	return time.Duration(c.Seconds / float64(c.Ops) * float64(time.Second))
}

func (r *Result) defaults() profile.Defaults { return r.Profile.Defaults() }

// cheapSync is what a sync of every append may cost and hardly be felt: about a round trip in a data centre.
const cheapSync = 500 * time.Microsecond

// adviseSync tells whether each append can be synced.
func adviseSync(r *Result) *Advice {
	c := r.smallSync()
	if c == nil {
		return nil
	}
	a := &Advice{Setting: "log.flush.interval.messages", Cells: []string{c.Name}}
	cost := c.each()
	if r.Profile.Kind == profile.Memory {
		a.Value, a.Same = Unset, true
		a.Why = "this is memory: what is in it is lost in a power cut, synced or not"
		return a
	}
	if cost <= cheapSync {
		a.Value, a.Optional = "1", true
		a.Why = fmt.Sprintf("a sync costs %s on average (the slowest of a hundred %s): every append can be synced before it is acknowledged, if you want no acknowledged record lost in a power cut. A partition then takes up to %s appends a second. Where replicas are enough for you, leave it unset",
			span(cost), span(us(c.P99)), count(c.OpsPerSec))
		return a
	}
	a.Value, a.Same = Unset, true
	a.Why = fmt.Sprintf("a sync costs %s on average (the slowest of a hundred %s): with one for each append a partition would take %s appends a second. Rely on replicas, or bound the loss in time with log.flush.interval.ms",
		span(cost), span(us(c.P99)), count(c.OpsPerSec))
	return a
}

// adviseColdReads compares readers in turns with readers each for itself.
func adviseColdReads(r *Result) *Advice {
	find := func(lane bool) *Cell {
		return r.find(func(c *Cell) bool { return c.Group == Cold && c.Readers > 1 && c.Lane == lane && c.BytesPerSec > 0 })
	}
	alone, turns := find(false), find(true)
	if alone == nil || turns == nil {
		return nil
	}
	a := &Advice{Setting: "spindle.cold.reads", Value: "auto", Same: true, Cells: []string{alone.Name, turns.Name}}
	gain := turns.BytesPerSec / alone.BytesPerSec
	a.Why = fmt.Sprintf("%d readers of cold data got %s in turns and %s each for itself; of the appends beside them, 99 of 100 were done within %s and %s",
		turns.Readers, rate(turns.BytesPerSec), rate(alone.BytesPerSec), span(us(turns.P99)), span(us(alone.P99)))
	switch {
	case gain < 0.8 && turns.High < alone.Low && turns.P99 > 0.7*alone.P99: // in every round, and the appender gains nothing either
		a.Value, a.Same = "off", false
		a.Why += ": taking turns costs throughput on this disk. Try it with your own consumers before you keep it (platter bench cold --on DIR)"
	case gain > 1.2 && turns.Low > alone.High:
		a.Why += fmt.Sprintf(": turns give %.1f times as much", gain)
	case gain < 0.8 && turns.P99 <= 0.7*alone.P99:
		a.Why += ": turns cost throughput and keep the appends' times short; leave it, unless catching up matters more to you"
	default:
		a.Why += ": no difference that shows in every round, so leave it"
	}
	return a
}

// coldRunMin and coldRunMax bound what is advised for one run of a cold reader.
const (
	coldRunMin = 512 << 10
	coldRunMax = 64 << 20
)

// adviseColdRun finds the run whose way there takes a tenth of its time: with a seconds to get there and b bytes a second
// then, nine times a·b.
func adviseColdRun(r *Result) *Advice {
	one, seq := r.randomRead(), r.orderRead()
	if one == nil || seq == nil {
		return nil
	}
	there := max(0, 1/one.typical()-small/seq.BytesPerSec)
	want := 9 * there * seq.BytesPerSec
	run := int64(1) << int(math.Round(math.Log2(math.Max(want, coldRunMin))))
	run = min(max(run, coldRunMin), coldRunMax)
	if stripe := r.Profile.RAID.StripeBytes(); stripe > 0 && run < 4*stripe {
		run = min(4*stripe, coldRunMax)
	}
	d := r.defaults().ColdRunBytes
	lost := func(n int64) float64 { return 100 * there / (there + float64(n)/seq.BytesPerSec) }
	a := &Advice{Setting: "spindle.cold.run.bytes", Value: fmt.Sprint(run), Cells: []string{one.Name, seq.Name}}
	a.Why = fmt.Sprintf("going to a place takes %s, and from there %s flow: a run of %s spends %.0f%% of its time on the way, one of %s (what Platter takes on this kind of disk) %.0f%%",
		span(time.Duration(there*float64(time.Second))), rate(seq.BytesPerSec), profile.Size(run), lost(run), profile.Size(d), lost(d))
	if run <= 2*d { // longer than needed does no harm, and half of it loses little
		a.Value, a.Same = fmt.Sprint(d), true
	}
	return a
}

// best is the fastest cell of a group.
func (r *Result) best(g Group, op, pattern string) (best *Cell) {
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Group == g && c.Op == op && c.Pattern == pattern && c.Ops > 0 && (best == nil || c.BytesPerSec > best.BytesPerSec) {
			best = c
		}
	}
	return best
}

// adviseColdDepth finds the fewest long reads at once that give nearly what the most of them give. Arms have nothing to gain:
// what several reads at once save there is the way, and long runs save that too.
func adviseColdDepth(r *Result) *Advice {
	one, small := r.device(Read, Random, longest, 1), r.device(Read, Random, small, 1)
	if one == nil || small == nil {
		return nil
	}
	// In order, one at a time, is the same to flash: two measurements are better than one against a moment's noise.
	if seq := r.device(Read, Sequential, longest, 1); seq != nil && small.OpsPerSec >= armOps && seq.BytesPerSec > one.BytesPerSec {
		one = seq
	}
	d := r.defaults().ColdDepth
	a := &Advice{Setting: "spindle.cold.depth", Value: fmt.Sprint(d), Same: true, Cells: []string{one.Name}}
	if small.OpsPerSec < armOps {
		a.Why = fmt.Sprintf("an arm has to move here: long runs save the way (one read of 4 MiB at a time gives %s already), and more of them at once would only make everybody else wait", rate(one.BytesPerSec))
		return a
	}
	pick, top := one, one.BytesPerSec
	for _, depth := range allDepths[1:] {
		if c := r.device(Read, Random, longest, depth); c != nil {
			top = max(top, c.BytesPerSec)
		}
	}
	for _, depth := range allDepths[1:] {
		if c := r.device(Read, Random, longest, depth); c != nil && pick.BytesPerSec < 0.8*top {
			pick = c
		}
	}
	if pick == one {
		a.Why = fmt.Sprintf("one read of 4 MiB at a time gives %s, the most of any number at once was %s", rate(one.BytesPerSec), rate(top))
	} else {
		a.Cells = append(a.Cells, pick.Name)
		a.Why = fmt.Sprintf("%d reads of 4 MiB at once give %s, one gives %s, the most was %s", pick.Depth, rate(pick.BytesPerSec), rate(one.BytesPerSec), rate(top))
	}
	if pick.Depth > d {
		a.Value, a.Same = fmt.Sprint(pick.Depth), false
		a.Why += fmt.Sprintf(". Platter would take %d", d)
	} else {
		a.Why += fmt.Sprintf("; Platter takes %d", d)
	}
	return a
}

// growMax is how far files are grown ahead at most where that is measured: as Platter does on such a disk, and where it does not
// at all, as it would if it were told to.
func growMax(p *profile.Profile) int64 {
	if d := p.Defaults(); d.GrowMaxBytes > 0 {
		return d.GrowMaxBytes
	}
	return segment.DefaultGrowth.MaxBytes
}

// adviseGrowth compares files that were grown ahead with files that were not. One short run is no proof: it advises
// against what Platter does by itself only where that lost at each length of a segment.
func adviseGrowth(r *Result) *Advice {
	var with, without *Cell
	loses, wins, pairs := true, true, 0
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Group != Segment || c.Ops == 0 || !c.GrowAhead {
			continue
		}
		o := r.find(func(o *Cell) bool { return o.Group == Segment && o.SegmentBytes == c.SegmentBytes && !o.GrowAhead })
		if o == nil {
			continue
		}
		with, without, pairs = c, o, pairs+1 // those of the longest segments are told
		loses = loses && c.BytesPerSec < 0.7*o.BytesPerSec && c.ReadBack < 1.1*o.ReadBack
		wins = wins && c.BytesPerSec > 1.4*o.BytesPerSec && c.ReadBack > 0.9*o.ReadBack
	}
	if with == nil {
		return nil
	}
	on := r.defaults().GrowMaxBytes > 0
	a := &Advice{Setting: "spindle.grow.max.bytes", Value: "0", Same: true, Cells: []string{without.Name, with.Name}}
	a.Why = fmt.Sprintf("%d files side by side took %s grown ahead and %s not", with.Files, rate(with.BytesPerSec), rate(without.BytesPerSec))
	if with.ReadBack > 0 && without.ReadBack > 0 {
		a.Why += fmt.Sprintf("; reading one of them back gave %s and %s", rate(with.ReadBack), rate(without.ReadBack))
	}
	does := "which Platter does not do by itself on such a disk"
	if on {
		does = "as Platter does by itself on such a disk"
	}
	switch {
	case on && loses:
		a.Value, a.Same = "-1", false
		a.Why += ": growing ahead, " + does + ", cost more than it gave at each length of a segment"
	case !on && wins && pairs > 1:
		a.Value, a.Same = fmt.Sprint(growMax(r.Profile)), false
		a.Why += ": growing ahead, " + does + ", gave more at each length of a segment"
	case on && with.BytesPerSec < 0.9*without.BytesPerSec:
		a.Why += ": slower grown ahead, " + does + "; this short run is too little to advise against it (platter bench partitions goes further)"
	default:
		a.Why += ": no reason here to change that files " + map[bool]string{true: "are grown ahead", false: "are not grown ahead"}[on] + ", " +
			"which is what Platter does by itself on such a disk"
	}
	return a
}

// adviseSegment finds the shortest segment that costs nothing.
func adviseSegment(r *Result) *Advice {
	var cells []*Cell
	top := 0.0
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Group == Segment && c.GrowAhead && c.Ops > 0 {
			cells, top = append(cells, c), max(top, c.BytesPerSec)
		}
	}
	if len(cells) < 2 {
		return nil
	}
	a := &Advice{Setting: "log.segment.bytes", Value: fmt.Sprint(1 << 30), Same: true}
	var fastEnough *Cell
	for _, c := range cells {
		a.Cells = append(a.Cells, c.Name)
		if fastEnough == nil && c.BytesPerSec >= 0.85*top {
			fastEnough = c
		}
	}
	a.Why = fmt.Sprintf("segments of %s write at %s, of %s at %s: from %s on their length costs nothing that shows. The default of 1 GiB is well above; a shorter one makes retention finer, and nothing faster",
		profile.Size(cells[0].SegmentBytes), rate(cells[0].BytesPerSec), profile.Size(cells[len(cells)-1].SegmentBytes), rate(cells[len(cells)-1].BytesPerSec),
		profile.Size(fastEnough.SegmentBytes))
	return a
}

// adviseRecovery: at a start after a crash many logs are looked at, in many short reads, and tails are scanned. An arm gains from
// several at once for the looks, and loses for the scans: there the default stands, if several at once gain anything.
func adviseRecovery(r *Result) *Advice {
	one := r.device(Read, Random, small, 1)
	if one == nil {
		return nil
	}
	d := r.defaults().RecoveryThreads
	arm := one.OpsPerSec < armOps && d > 0
	pick := one
	for _, depth := range allDepths[1:] {
		// Each doubling has to bring a fifth at least.
		c := r.device(Read, Random, small, depth)
		if c != nil && (!arm || depth <= d) && c.OpsPerSec >= 1.2*pick.OpsPerSec {
			pick = c
		}
	}
	a := &Advice{Setting: "num.recovery.threads.per.data.dir", Value: fmt.Sprint(pick.Depth), Cells: []string{one.Name}}
	if pick == one {
		a.Why = fmt.Sprintf("the disk does %s short reads a second, and several at once bring no more", count(one.OpsPerSec))
	} else {
		a.Cells = append(a.Cells, pick.Name)
		a.Why = fmt.Sprintf("%d short reads at once give %s a second, one at a time %s", pick.Depth, count(pick.OpsPerSec), count(one.OpsPerSec))
	}
	switch {
	case d == 0 && pick.Depth > 1:
		a.Value, a.Same = "0", true
		a.Why += "; Platter takes a thread a processor, since processors are short before this disk is"
	case arm && pick != one:
		a.Value, a.Same = fmt.Sprint(d), true
		a.Why += fmt.Sprintf("; Platter takes %d threads, and more would cost where long tails are scanned side by side", d)
	case d > 0 && pick.Depth <= 4*d:
		a.Value, a.Same = fmt.Sprint(d), true
		a.Why += fmt.Sprintf("; Platter takes %d, which leaves the disk room for the rest of the start", d)
	}
	return a
}
