package iobench

import (
	"fmt"
	"strings"
)

// Claim is something that a run was asked to show.
type Claim struct {
	What  string `json:"what"`
	Got   string `json:"got"`
	Holds bool   `json:"holds"`
}

// The bounds of the claims.
const (
	levelMin     = 0.95 // auto is not slower: the interval of the ratio lies above
	levelShare   = 0.9  // in so many cells
	coalescedMin = 2.0
	coldTimeMax  = 0.9
	emptyTimeMax = 2.0
)

// claims judges the cells; a claim without cells is left out.
func claims(cells []Cell) (out []Claim) {
	for _, judge := range []func([]Cell) (Claim, bool){autoIsLevel, autoIsTheSame, coalescedWins, coldWins, emptyIsCheap, ringLoses} {
		if c, ok := judge(cells); ok {
			out = append(out, c)
		}
	}
	return out
}

// pickCells are the measured cells that take is true for.
func pickCells(cells []Cell, take func(*Cell) bool) (out []*Cell) {
	for i := range cells {
		if c := &cells[i]; c.Skipped == "" && c.Pairs > 0 && take(c) {
			out = append(out, c)
		}
	}
	return out
}

func autoIsLevel(cells []Cell) (Claim, bool) {
	all := pickCells(cells, func(c *Cell) bool { return c.Group == AutoChoice })
	var behind []string
	for _, c := range all {
		if c.Throughput.Low <= levelMin {
			behind = append(behind, fmt.Sprintf("%s %s %s %.3f (%.3f–%.3f)", c.Op, c.A.How, Size(c.SizeBytes), c.Throughput.Ratio, c.Throughput.Low, c.Throughput.High))
		}
	}
	level := len(all) - len(behind)
	got := fmt.Sprintf("%d of %d cells", level, len(all))
	if len(behind) > 0 {
		got += "; not: " + strings.Join(behind, ", ")
	}
	return Claim{
		What:  fmt.Sprintf("auto is not slower than the backend that it chose: interval above %.2f in nine cells of ten", levelMin),
		Got:   got,
		Holds: float64(level) >= levelShare*float64(len(all)),
	}, len(all) > 0
}

func autoIsTheSame(cells []Cell) (Claim, bool) {
	all := pickCells(cells, func(c *Cell) bool { return c.Group == AutoChoice && c.A.Calls != nil && c.B.Calls != nil })
	same, others := 0, ""
	for _, c := range all {
		if c.A.Calls.same(c.B.Calls) {
			same++
		} else {
			others += fmt.Sprintf("; not: %s %s %s, %+v against %+v", c.Op, c.A.How, Size(c.SizeBytes), *c.A.Calls, *c.B.Calls)
		}
	}
	return Claim{
		What:  "auto asks the same of the kernel as the backend that it chose: reads, writes, operations of a ring",
		Got:   fmt.Sprintf("%d of %d cells", same, len(all)) + others,
		Holds: same == len(all),
	}, len(all) > 0
}

func coalescedWins(cells []Cell) (Claim, bool) {
	all := pickCells(cells, func(c *Cell) bool {
		return c.Group == Coalescing && c.A.Backend == "auto" && c.SizeBytes <= 4<<10 && c.Depth >= deep
	})
	won, least := 0, 0.0
	for i, c := range all {
		if c.Throughput.Ratio >= coalescedMin {
			won++
		}
		if i == 0 || c.Throughput.Ratio < least {
			least = c.Throughput.Ratio
		}
	}
	return Claim{
		What:  fmt.Sprintf("coalesced appends at 4 KiB and below, %d deep, are at least %.0f times plain ones", deep, coalescedMin),
		Got:   fmt.Sprintf("%d of %d cells, the least %.2f", won, len(all), least),
		Holds: won == len(all),
	}, len(all) > 0
}

func coldWins(cells []Cell) (Claim, bool) {
	all := pickCells(cells, func(c *Cell) bool {
		return c.Group == Cold && c.A.Backend == "uring" && c.A.How == Batch && c.SizeBytes == 64<<10
	})
	if len(all) == 0 {
		return Claim{}, false
	}
	t := all[0].Throughput.Inverse()
	return Claim{
		What:  fmt.Sprintf("%d cold reads of 64 KiB in one submission take less than %.1f of the time of as many goroutines", all[0].Depth, coldTimeMax),
		Got:   fmt.Sprintf("time %.2f (%.2f–%.2f), CPU time %.2f", t.Ratio, t.Low, t.High, all[0].CPU.Ratio),
		Holds: t.High < coldTimeMax,
	}, true
}

func emptyIsCheap(cells []Cell) (Claim, bool) {
	all := pickCells(cells, func(c *Cell) bool { return c.Group == Empty && c.Depth >= deep })
	if len(all) == 0 {
		return Claim{}, false
	}
	c := all[0]
	t := c.Throughput.Inverse()
	return Claim{
		What: fmt.Sprintf("an empty operation, %d in a batch, costs at most %.0f times a bare ring's", c.Depth, emptyTimeMax),
		Got: fmt.Sprintf("%.0f ns against %.0f: %.2f (%.2f–%.2f)", 1e9/c.A.BytesPerSecond, 1e9/c.B.BytesPerSecond,
			t.Ratio, t.Low, t.High),
		Holds: t.High <= emptyTimeMax,
	}, true
}

// ringLoses is no claim to hold, but what must not be hidden.
func ringLoses(cells []Cell) (Claim, bool) {
	all := pickCells(cells, func(c *Cell) bool { return c.Group == Backends && c.A.Backend == "uring" })
	var lost []string
	for _, c := range all {
		if c.Throughput.High < 1 {
			lost = append(lost, fmt.Sprintf("%s %s %s %.2f", c.Op, c.A.How, Size(c.SizeBytes), c.Throughput.Ratio))
		}
	}
	got := "nowhere here"
	if len(lost) > 0 {
		got = strings.Join(lost, ", ")
	}
	return Claim{What: "where the ring loses to plain system calls (throughput)", Got: got, Holds: true}, len(all) > 0
}
