package disklab

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// us is a number of microseconds.
func us(v float64) time.Duration { return time.Duration(v * float64(time.Microsecond)) }

// span writes a duration with two or three digits.
func span(d time.Duration) string {
	switch {
	case d <= 0:
		return "0"
	case d < time.Millisecond:
		return fmt.Sprintf("%.0f µs", float64(d)/1e3)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// rate writes bytes a second.
func rate(v float64) string {
	switch {
	case v >= 10e9:
		return fmt.Sprintf("%.0f GB/s", v/1e9)
	case v >= 1e9:
		return fmt.Sprintf("%.1f GB/s", v/1e9)
	case v >= 10e6:
		return fmt.Sprintf("%.0f MB/s", v/1e6)
	case v >= 1e6:
		return fmt.Sprintf("%.1f MB/s", v/1e6)
	}
	return fmt.Sprintf("%.2f MB/s", v/1e6)
}

// count writes a number with about three digits and commas.
func count(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.1f", v)
	}
	v = math.Min(math.Round(v), 1e15)
	if digits := int(math.Log10(v)); digits > 2 {
		unit := math.Pow10(digits - 2)
		v = math.Round(v/unit) * unit
	}
	return commas(int64(v))
}

// commas writes a whole number.
func commas(n int64) string {
	s := fmt.Sprint(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// What the figures of 4-KiB reads at random, one at a time, are taken for.
const (
	armOps    = 400    // at most: an arm has to move, or something as slow
	flashOps  = 3000   // at least: no arm
	memoryOps = 50_000 // at least: faster than flash answers
)

// randomRead and orderRead are what reading is judged by: the device itself, and where that cannot be had, what the page cache gives of it.
func (r *Result) randomRead() *Cell {
	if c := r.device(Read, Random, small, 1); c != nil {
		return c
	}
	return r.find(func(c *Cell) bool { return c.Group == Cached && c.Op == Read && c.Pattern == Random })
}

func (r *Result) orderRead() *Cell {
	if c := r.best(Device, Read, Sequential); c != nil {
		return c
	}
	return r.best(Cached, Read, Sequential)
}

// smallSync is an append of 4 KiB and its sync.
func (r *Result) smallSync() *Cell {
	return r.find(func(c *Cell) bool { return c.Group == Syncs && c.Files == 1 && c.SizeBytes == small })
}

// Verdict says in plain words what kind of disk was seen: first how it behaves, then what it is good for.
func Verdict(r *Result) (lines []string) {
	add := func(format string, args ...any) {
		s := fmt.Sprintf(format, args...)
		if r.Modelled && !strings.Contains(s, "(modelled)") {
			s = strings.TrimSuffix(s, ".") + " (modelled)."
		}
		lines = append(lines, s)
	}
	if one, seq := r.randomRead(), r.orderRead(); one != nil && seq != nil {
		add("%s", r.kindSeen(one))
		factor := seq.BytesPerSec / one.BytesPerSec
		add("In order it reads %s; 4 KiB at a time at random %s (%s reads a second). That is a factor of %s: %s",
			rate(seq.BytesPerSec), rate(one.BytesPerSec), count(one.OpsPerSec), count(factor), soWhat(factor))
	}
	if w, s := r.device(Write, Random, small, 1), r.best(Device, Write, Sequential); w != nil && s != nil {
		add("In order it writes %s; 4 KiB at a time at random %s (%s writes a second): a factor of %s.", rate(s.BytesPerSec), rate(w.BytesPerSec),
			count(w.OpsPerSec), count(s.BytesPerSec/w.BytesPerSec))
	}
	if c := r.smallSync(); c != nil {
		word := "too dear for every append; Platter does not sync on the way of a request unless it is told to"
		switch cost := c.each(); {
		case cost < 50*time.Microsecond:
			word = "faster than a medium can be: a protected cache, memory, or a disk that only says it is done"
		case cost <= cheapSync:
			word = "cheap enough for every append, where that is wanted"
		}
		add("A sync costs %s on average (one in a hundred more than %s): %s.", span(c.each()), span(us(c.P99)), word)
	}
	switch n, one, many, next := r.carries(); {
	case n > 0 && next == nil:
		add("It carries %s partitions that grow side by side, as many as were tried: so many files at once write %s, one file alone %s.",
			commas(int64(n)), rate(many), rate(one))
	case n > 0:
		add("It carries %s partitions that grow side by side: so many files at once write %s, one file alone %s. At %s it is %s.",
			commas(int64(n)), rate(many), rate(one), commas(int64(next.Files)), rate(next.BytesPerSec))
	case one > 0 && next != nil:
		add("Many files that grow side by side cost throughput even at %d of them: one file alone writes %s, so many %s.", next.Files, rate(one), rate(next.BytesPerSec))
	}
	return lines
}

// carries finds up to how many growing files keep four fifths of one file's rate, what they give, and the first cell beyond
// that, nil where there is none. n is 0 where even the fewest do not.
func (r *Result) carries() (n int, one, many float64, next *Cell) {
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Group != Growing || c.SyncEach || c.Ops == 0 {
			continue
		}
		switch {
		case c.Files == 1:
			one = c.BytesPerSec
		case c.BytesPerSec >= 0.8*one && one > 0:
			n, many, next = c.Files, c.BytesPerSec, nil
		case next == nil:
			next = c
		}
	}
	return n, one, many, next
}

// kind is what a disk behaves like.
type kind int

const (
	asMemory kind = iota
	asFlash
	asSlow
	asArms
	asArm
)

var kindNames = [...]string{"memory", "flash", "slow or throttled", "several spinning disks", "one spinning disk"}

// typical is how many operations a second would be done if each took what half of them take: what a busy machine adds to a few
// tells nothing of the disk.
func (c *Cell) typical() float64 {
	if c.P50 <= 0 {
		return c.OpsPerSec
	}
	return 1e6 / c.P50
}

// behaves judges by one read of 4 KiB at a time at random, and by how much more 32 at once are; gain is 0 where that was not measured.
func (r *Result) behaves(one *Cell) (k kind, gain float64) {
	if many := r.device(Read, Random, small, 32); many != nil && one.Group == Device {
		gain = many.OpsPerSec / one.typical()
	}
	switch ops := one.typical(); {
	case ops >= memoryOps:
		return asMemory, gain
	case ops >= flashOps:
		return asFlash, gain
	case ops >= armOps:
		return asSlow, gain
	case gain > 3.5:
		return asArms, gain
	}
	return asArm, gain
}

// kindSeen says how the disk behaves, and what the kernel says that it is.
func (r *Result) kindSeen(one *Cell) (seen string) {
	k, gain := r.behaves(one)
	switch k {
	case asMemory:
		seen = "It answers as fast as memory: a RAM disk, or a cache before the disk (a host's, a controller's) that holds all that was measured"
	case asFlash:
		seen = "It behaves like flash: any place is as near as another"
	case asSlow:
		seen = "It behaves like flash behind a network, or a slow or throttled virtual disk: no arm has to move, but each operation takes its time"
	case asArms:
		return fmt.Sprintf("It behaves like several spinning disks together: one read at random takes an arm's time, but 32 at once give %.1f times as many", gain) + r.source()
	case asArm:
		seen = fmt.Sprintf("It behaves like one spinning disk: each place elsewhere costs about %s of moving and waiting for the platter", span(us(one.P50)))
	}
	if only := map[bool]string{true: " only"}[k == asArm]; gain > 0 && k != asMemory {
		seen += fmt.Sprintf("; 32 reads at once give%s %.1f times as many", only, gain)
	}
	return seen + r.source()
}

// source is who says so.
func (r *Result) source() string {
	if r.Modelled {
		return ". It is a model: " + r.On + "."
	}
	return fmt.Sprintf(". The kernel says: %s.", r.Profile)
}

func soWhat(factor float64) string {
	switch {
	case factor > 300:
		return "everything depends on keeping it sequential."
	case factor > 20:
		return "keep it sequential where you can; many requests at once help the rest."
	}
	return "order matters little here."
}
