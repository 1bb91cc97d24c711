package follow

import (
	"time"

	"platter/engine/store"
)

// refreshEvery is how often a fetcher looks at all its partitions, for what moves without it: retention moves a log's start.
const refreshEvery = 10 * time.Second

// places are a fetcher's partitions as its leader is asked for them. They belong to the fetcher's goroutine. A round costs by
// what has changed, not by how many they are.
type places struct {
	wanted   []Wanted
	parts    []*part // nil: the place is empty
	at       map[store.TP]int
	empty    []int
	changed  []int
	isNew    []bool  // the place is in changed
	resting  []*part // who is left alone for a while
	count    int
	refresh  time.Time
	turn     int
	bytesMax int32
}

func newPlaces(bytesMax int32) places { return places{at: map[store.TP]int{}, bytesMax: bytesMax} }

// put gives p a place, or takes over the one that its partition has. false: it does not follow (any more).
func (s *places) put(p *part) bool {
	at, follows := p.r.Position()
	if !follows || at.LeaderEpoch != p.epoch {
		s.remove(p.tp)
		return false
	}
	n, placed := s.at[p.tp]
	if !placed {
		if last := len(s.empty) - 1; last >= 0 {
			n, s.empty = s.empty[last], s.empty[:last]
		} else {
			n = len(s.parts)
			s.parts, s.wanted, s.isNew = append(s.parts, nil), append(s.wanted, Wanted{}), append(s.isNew, false)
		}
		s.at[p.tp] = n
		s.count++
	}
	s.parts[n] = p
	if w := (Wanted{p.tp, p.id, at, s.bytesMax}); w != s.wanted[n] {
		s.wanted[n] = w
		s.change(n)
	}
	return true
}

// remove empties a partition's place.
func (s *places) remove(tp store.TP) {
	n, placed := s.at[tp]
	if !placed {
		return
	}
	delete(s.at, tp)
	s.parts[n], s.wanted[n] = nil, Wanted{}
	s.empty = append(s.empty, n)
	s.count--
	s.change(n)
}

func (s *places) change(n int) {
	if !s.isNew[n] {
		s.isNew[n] = true
		s.changed = append(s.changed, n)
	}
}

// asked forgets what had changed, once the leader was told.
func (s *places) asked() {
	for _, n := range s.changed {
		s.isNew[n] = false
	}
	s.changed = s.changed[:0]
	if len(s.parts) > 0 {
		s.turn = (s.turn + 1) % len(s.parts)
	}
}

// rest leaves a partition alone for a while.
func (s *places) rest(p *part) {
	s.remove(p.tp)
	s.resting = append(s.resting, p)
}
