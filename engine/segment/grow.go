package segment

import "platter/io/disk"

// Growth is how far a file is grown ahead of its data, so that files which grow side by side do not shred each other's
// extents. An idle partition takes no room: there is none below FirstBytes of data. Sizes are bytes.
type Growth struct {
	FirstBytes int64 // the first chunk, and the least
	MaxBytes   int64 // of a busy partition; 0: no growth ahead
}

// DefaultGrowth is what suits most disks: 1 MiB, up to 64 MiB.
var DefaultGrowth = Growth{FirstBytes: 1 << 20, MaxBytes: 64 << 20}

const (
	// A chunk that is full within growBusyMs is followed by one of twice its size, one that lasted growIdleMs by one of half.
	growBusyMs = 10_000
	growIdleMs = 60_000
	// growPart is the part of the free room that one chunk may take: thousands of partitions do this at once.
	growPart = 64
)

// Next is the size of the chunk that follows one of chunk bytes (0: none yet), which lasted for lastedMs, with freeBytes
// left on the file system. 0: there is no room to play with.
func (g Growth) Next(chunk, lastedMs, freeBytes int64) int64 {
	switch {
	case chunk == 0:
		chunk = g.FirstBytes
	case lastedMs <= growBusyMs:
		chunk *= 2
	case lastedMs >= growIdleMs:
		chunk /= 2
	}
	chunk = min(max(chunk, g.FirstBytes), g.MaxBytes)
	most := freeBytes / growPart / g.FirstBytes * g.FirstBytes
	return min(chunk, most)
}

// growAhead reserves room behind the data. A failure costs nothing but the advantage.
func (s *Segment) growAhead(f disk.File, size, need int64) {
	g := s.env.Growth
	if g.MaxBytes <= 0 || size < g.FirstBytes || need <= s.reserved {
		return
	}
	now := int64(0)
	if s.env.NowMs != nil {
		now = s.env.NowMs()
	}
	space, err := s.env.FS.Space(s.env.Dir)
	chunk := int64(0)
	if err == nil {
		chunk = g.Next(s.growBytes, now-s.grownMs, space.FreeBytes)
	}
	s.grownMs = now
	if chunk == 0 {
		s.reserved = need + g.FirstBytes // ask again then
		return
	}
	s.growBytes = chunk
	if f.Preallocate(size, chunk+need-size) != nil {
		s.reserved = need + g.MaxBytes
		return
	}
	s.reserved, s.releasable = need+chunk, true
}
