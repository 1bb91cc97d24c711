package hddsim

import (
	"fmt"

	"platter/io/invariant"
)

// RAIDParams describe a set of equal members.
type RAIDParams struct {
	Level      int   // 0, 1, 5, 6 or 10
	ChunkBytes int64 // on one member before the next one's turn; a multiple of 4,096
	// StripeCache is how many stripes of 4,096 bytes a member are in work at once or remembered (md's
	// stripe_cache_size; levels 5 and 6).
	StripeCache int
	// Failed is the member that is missing, -1 for none (levels 5 and 6).
	Failed int
}

// DefaultRAID is what mdadm makes.
func DefaultRAID(level int) RAIDParams {
	return RAIDParams{Level: level, ChunkBytes: 512 << 10, StripeCache: 256, Failed: -1}
}

// NewRAID puts a set together from its members. It takes at least two, three for level 5, four for 6, and an even
// number for 10 (which is level 0 over pairs of level 1).
func NewRAID(m *Machine, p RAIDParams, members []Device) (Device, error) {
	least := map[int]int{0: 2, 1: 2, 5: 3, 6: 4, 10: 4}[p.Level]
	switch {
	case least == 0:
		return nil, fmt.Errorf("no RAID level %d here (0, 1, 5, 6 or 10)", p.Level)
	case len(members) < least || p.Level == 10 && len(members)%2 != 0:
		even := map[bool]string{true: ", and an even number"}[p.Level == 10]
		return nil, fmt.Errorf("RAID-%d of %d disks: it takes %d at least%s", p.Level, len(members), least, even)
	case p.ChunkBytes < pageBytes || p.ChunkBytes%pageBytes != 0:
		return nil, fmt.Errorf("RAID chunk of %d bytes: not a multiple of %d", p.ChunkBytes, pageBytes)
	}
	switch p.Level {
	case 0:
		return &stripe{set: newSet(members), chunk: p.ChunkBytes}, nil
	case 1:
		return &mirror{set: newSet(members), duties: make([]duty, len(members))}, nil
	case 10:
		var pairs []Device
		for i := 0; i < len(members); i += 2 {
			pairs = append(pairs, &mirror{set: newSet(members[i : i+2]), duties: make([]duty, 2)})
		}
		return &stripe{set: newSet(pairs), chunk: p.ChunkBytes}, nil
	}
	return newParity(m, p, members), nil
}

// NewArray is a RAID set of equal drives, each behind its queue; the seed gives every platter its own angle.
func NewArray(m *Machine, p RAIDParams, drive DriveParams, drives int, seed uint64) (Device, error) {
	var members []Device
	for i := range drives {
		members = append(members, NewQueue(m, NewDrive(m, drive, seed+uint64(i)), DefaultQueue()))
	}
	return NewRAID(m, p, members)
}

// set is the members of any level.
type set struct {
	members []Device
	each    int64 // bytes of a member that are used
}

func newSet(members []Device) set {
	s := set{members: members, each: members[0].SizeBytes()}
	for _, d := range members {
		s.each = min(s.each, d.SizeBytes())
	}
	return s
}

// Stats is the sum over the members.
func (s *set) Stats() (sum Stats) {
	for _, d := range s.members {
		sum.add(d.Stats())
	}
	return sum
}

// all gives a copy of r to every member, and is done when all are.
func (s *set) all(r *Request) {
	j := joined(r.Done)
	for _, d := range s.members {
		c := *r
		j.add(&c)
		d.Submit(&c)
	}
	j.close()
}

// join calls done when the last of its parts is, and close was called.
type join struct {
	left int
	done func()
}

func joined(done func()) *join { return &join{1, done} }

func (j *join) add(r *Request) {
	j.left++
	r.Done = j.close
}

func (j *join) close() {
	if j.left--; j.left == 0 {
		j.done()
	}
}

// stripe is level 0: chunk after chunk, member after member.
type stripe struct {
	set
	chunk int64
}

// SizeBytes is all members together, in whole chunks.
func (s *stripe) SizeBytes() int64 { return s.each / s.chunk * s.chunk * int64(len(s.members)) }

// Submit gives each member its chunks.
func (s *stripe) Submit(r *Request) {
	if r.Kind == Flush {
		s.all(r)
		return
	}
	n := int64(len(s.members))
	j := joined(r.Done)
	for pos := r.Pos; pos < r.end(); {
		chunk, in := pos/s.chunk, pos%s.chunk
		part := &Request{Kind: r.Kind, Pos: chunk/n*s.chunk + in, Len: min(s.chunk-in, r.end()-pos), FUA: r.FUA, More: r.More}
		j.add(part)
		s.members[chunk%n].Submit(part)
		pos += part.Len
	}
	j.close()
}

// mirror is level 1: writes go to all members, a read to the one that is least busy, or was last near.
type mirror struct {
	set
	duties []duty
}

type duty struct {
	waiting int
	pos     int64 // where the last request ended
}

// SizeBytes is one member's.
func (s *mirror) SizeBytes() int64 { return s.each }

// Submit reads from one member and writes to all.
func (s *mirror) Submit(r *Request) {
	if r.Kind != Read {
		s.all(r)
		return
	}
	i := s.nearest(r)
	l := &s.duties[i]
	l.waiting++
	l.pos = r.end()
	c := *r
	c.Done = func() {
		l.waiting--
		r.Done()
	}
	s.members[i].Submit(&c)
}

// nearest: the member that reads this stream already, else the one with the shortest queue, else the nearest.
func (s *mirror) nearest(r *Request) int {
	best := 0
	for i, l := range s.duties {
		if l.pos == r.Pos && l.pos > 0 {
			return i
		}
		b := s.duties[best]
		if l.waiting < b.waiting || l.waiting == b.waiting && distance(l.pos, r.Pos) < distance(b.pos, r.Pos) {
			best = i
		}
	}
	return best
}

func distance(a, b int64) int64 {
	invariant.Check(a >= 0 && b >= 0, "positions %d and %d", a, b)
	return max(a, b) - min(a, b)
}
