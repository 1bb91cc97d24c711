package hddsim

import (
	"math"
	"sort"
	"time"

	"platter/io/disk"
)

// DriveParams describe a drive as its data sheet does. Rates are sustained ones, track changes included.
type DriveParams struct {
	CapacityBytes    int64
	RPM              int
	OuterBytesPerSec int64 // sequential, at position 0
	InnerBytesPerSec int64 // sequential, at the end
	Zones            int   // of equal width; the rate falls from one to the next
	Heads            int   // tracks in a cylinder

	TrackToTrack time.Duration // seek to the next cylinder, and the switch to another head
	AverageSeek  time.Duration // over a third of the stroke
	FullStroke   time.Duration
	WriteSettle  time.Duration // more for a write that had to seek

	QueueDepth int     // commands that it chooses among, the nearest in time first; 1: in order
	Aging      float64 // how much nearer a command counts for each unit of time that it has waited

	CommandOverhead      time.Duration // from the command to its being queued
	InterfaceBytesPerSec int64
	ReadAheadBytes       int64 // read on behind a read while idle; 0: not
	Segments             int   // of the buffer, each with the last bytes of one stream
	WriteCacheBytes      int64 // 0: off; a write is done when it is on the medium
}

// zone is a run of tracks of one length.
type zone struct {
	pos        int64 // of its first byte
	track      int64 // its first
	trackBytes int64
}

// geometry answers where a byte is, and how long the way there takes.
type geometry struct {
	p         DriveParams
	zones     []zone
	cylinders int64
	turn      time.Duration
	skew      time.Duration // from a track's end to the next one's start
	size      int64
	phase     float64 // of the platter at time 0, in turns
}

func newGeometry(p DriveParams, phase float64) *geometry {
	g := &geometry{p: p, turn: time.Minute / time.Duration(p.RPM), skew: p.TrackToTrack + p.WriteSettle, phase: phase}
	lengths := make([]int64, p.Zones)
	var sum int64
	for i := range lengths {
		rate := float64(p.OuterBytesPerSec)
		if p.Zones > 1 {
			rate -= float64(p.OuterBytesPerSec-p.InnerBytesPerSec) * float64(i) / float64(p.Zones-1)
		}
		sectors := math.Round(rate * (g.turn + g.skew).Seconds() / disk.SectorBytes)
		lengths[i] = int64(sectors) * disk.SectorBytes
		sum += lengths[i]
	}
	perZone := (p.CapacityBytes + sum*int64(p.Heads) - 1) / (sum * int64(p.Heads)) // cylinders
	for i, n := range lengths {
		g.zones = append(g.zones, zone{g.size, int64(i) * perZone * int64(p.Heads), n})
		g.size += n * perZone * int64(p.Heads)
	}
	g.cylinders = perZone * int64(p.Zones)
	g.size = min(g.size, p.CapacityBytes)
	return g
}

// place is a byte's place on the platters.
type place struct {
	zone  *zone
	track int64
	in    int64 // bytes from the track's start
}

func (g *geometry) place(pos int64) place {
	i := sort.Search(len(g.zones), func(i int) bool { return g.zones[i].pos > pos }) - 1
	z := &g.zones[i]
	return place{z, z.track + (pos-z.pos)/z.trackBytes, (pos - z.pos) % z.trackBytes}
}

func (g *geometry) cylinder(track int64) int64 { return track / int64(g.p.Heads) }

// angle at which a place begins, in turns.
func (g *geometry) angle(p place) float64 {
	skewed := float64(p.track) * float64(g.skew) / float64(g.turn)
	return frac(float64(p.in)/float64(p.zone.trackBytes) + skewed)
}

// seek is the time to another track: a square root of the distance while the arm speeds up and brakes (a third of
// the stroke), a straight line beyond (Ruemmler and Wilkes, "An introduction to disk drive modeling", 1994).
func (g *geometry) seek(from, to int64, write bool) time.Duration {
	if from == to {
		return 0
	}
	t := g.p.TrackToTrack
	far := g.cylinder(from) - g.cylinder(to)
	if far < 0 {
		far = -far
	}
	if far > 1 {
		third, d := float64(g.cylinders)/3, float64(far)
		if d <= third {
			t += time.Duration(float64(g.p.AverageSeek-t) * math.Sqrt((d-1)/(third-1)))
		} else {
			t = g.p.AverageSeek + time.Duration(float64(g.p.FullStroke-g.p.AverageSeek)*(d-third)/(2*third))
		}
	}
	if write {
		t += g.p.WriteSettle
	}
	return t
}

// missed is how late the head may be and still take the sector: less than one passes in it.
const missed = 3 * time.Microsecond

// wait is the time until the platter has turned to a place, from t on.
func (g *geometry) wait(t time.Duration, p place) time.Duration {
	turns := float64(t%g.turn)/float64(g.turn) + g.phase
	w := time.Duration(frac(g.angle(p)-turns) * float64(g.turn))
	if w > g.turn-missed {
		return 0
	}
	return w
}

// approach is how long a head that stands on a track takes to a position: seek, then wait for the platter.
func (g *geometry) approach(t time.Duration, track, pos int64, write bool) (seek, wait time.Duration) {
	p := g.place(pos)
	seek = g.seek(track, p.track, write)
	return seek, g.wait(t+seek, p)
}

// transfer is the time from the first byte to the last, with the changes of track between.
func (g *geometry) transfer(pos, n int64) time.Duration {
	var t time.Duration
	for n > 0 {
		p := g.place(pos)
		part := min(n, p.zone.trackBytes-p.in)
		t += time.Duration(float64(part) / float64(p.zone.trackBytes) * float64(g.turn))
		pos, n = pos+part, n-part
		if n > 0 {
			t += g.skew
		}
	}
	return t
}

// reached is about how many bytes from pos pass in d.
func (g *geometry) reached(pos int64, d time.Duration) int64 {
	n := int64(d.Seconds() * float64(g.place(min(pos, g.size-1)).zone.trackBytes) / (g.turn + g.skew).Seconds())
	return min(n/disk.SectorBytes*disk.SectorBytes, g.size-pos)
}

func frac(x float64) float64 { return x - math.Floor(x) }
