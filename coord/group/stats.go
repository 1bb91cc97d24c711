package group

import "platter/coord/group/core"

// Stats counts what this broker coordinates.
type Stats struct {
	Groups  int
	States  map[core.State]int // groups by state; all states are there
	Members int
	Offsets int
	Bytes   int64 // in memory, roughly
	Loading int   // partitions that are not ready yet
}

// Stats looks at all groups.
func (c *Coordinator) Stats() Stats {
	st := Stats{States: map[core.State]int{}, Bytes: c.bytes.Load()}
	for _, s := range core.States() {
		st.States[s] = 0
	}
	for _, s := range c.all() {
		s.mu.Lock()
		if !s.loaded && !s.stopped {
			st.Loading++
		}
		st.Groups += len(s.groups)
		for _, e := range s.groups {
			st.States[e.State()]++
			st.Members += e.Size()
			st.Offsets += len(e.Offsets())
		}
		s.mu.Unlock()
	}
	return st
}
