package disklab

import (
	"fmt"
	"time"
)

// pace shares a real run's time out. Cells that take longer than they were given take it from those that follow, down to a floor;
// what cannot be done in time is left out rather than waited for.
type pace struct {
	time        time.Duration
	until, end  time.Time // when the run wants to be over, and when nothing is begun any more
	total, left float64   // weights
}

// endFactor is how much longer than it was told a run may become, on a disk that is slow beyond expectation; endMin is how
// long it may be at least, for a run that was told to be short.
const (
	endFactor = 1.35
	endMin    = 30 * time.Second
)

// Bounds of the time of a cell of weight 1.
const (
	cellMin = 20 * time.Millisecond
	cellMax = 1500 * time.Millisecond
)

func newPace(cells []Cell, began time.Time, d time.Duration) *pace {
	p := &pace{time: d, until: began.Add(d), end: began.Add(max(endMin, time.Duration(endFactor*float64(d))))}
	for i := range cells {
		p.total += cells[i].weight
	}
	p.left = p.total
	return p
}

// share is the next cell's time: by its weight of what is left, and no less than half of what it would have if all went to plan.
func (p *pace) share(c *Cell, now time.Time) time.Duration {
	floor := time.Duration(float64(p.time) * c.weight / p.total / 2)
	d := floor
	if p.left > 0 {
		d = max(d, time.Duration(float64(p.until.Sub(now))*c.weight/p.left))
	}
	p.left -= c.weight
	return max(cellMin, min(d, time.Duration(c.weight*float64(cellMax))))
}

// room is how long a cell whose share has been taken may last at most, so that the others still get half of theirs.
func (p *pace) room(now time.Time) time.Duration {
	return p.end.Sub(now) - time.Duration(float64(p.time)*p.left/p.total/2)
}

// leaves tells whether a cell that is expected to take d is left out. Files that grow may take what the others can spare, since
// how many a disk carries is what many ask; a single other cell may not. What takes no time is never left out.
func (p *pace) leaves(c *Cell, d, share time.Duration, now time.Time) bool {
	room := p.room(now)
	switch {
	case c.weight == 0:
		return false
	case room < 0:
		return true
	case d <= 3*share:
		return false
	case c.Group == Growing:
		return d > room-time.Duration(float64(p.time)*p.left/p.total/2) // the others get all of theirs
	}
	return d > p.time/cellPart
}

// cellPart is the part of a run that a cell may take which is longer than it should be.
const cellPart = 40

// tooLong is the reason to leave a cell out that would take d.
func tooLong(d time.Duration) skip {
	return skip(fmt.Sprintf("it would take about %s on this disk: a longer --time has room for it", span(d)))
}

// expected is how long a cell will take at the least, by those that were measured before it: 0 where they tell nothing. A closed
// loop does not end before each of its workers has done one operation, nor before all files have been synced.
func expected(cells []Cell, c *Cell) (d time.Duration) {
	for i := range cells {
		o := &cells[i]
		switch {
		case o.Skipped != "" || o.Ops == 0 || o.Group != c.Group || o.Op != c.Op:
		case c.Group == Device && o.BytesPerSec > 0 && o.Pattern == c.Pattern && o.SizeBytes == c.SizeBytes && o.Depth < c.Depth:
			// Whether many at once are faster is to be found out: counted on is that they are half as fast again.
			d = time.Duration(float64(c.SizeBytes) * float64(c.Depth) / o.BytesPerSec / 1.5 * float64(time.Second))
		case c.Group == Growing && o.SyncEach == c.SyncEach && !c.SyncEach && o.Files < c.Files && o.Files >= manyFiles:
			d = time.Duration(o.Seconds * float64(c.Files) / float64(o.Files) * float64(time.Second))
		}
	}
	return d
}

// manyFiles is from how many files on a sync of all is a matter of their number.
const manyFiles = 64
