package gate

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Set finds the gate of a path without asking the disk, which may hang: by the roots that were added.
// What is under none of them shares one gate. The zero value is ready; safe for concurrent use.
type Set struct {
	mu    sync.Mutex
	roots atomic.Pointer[[]root] // the longest path first; never changed
	once  sync.Once
	rest  *Gate
}

type root struct {
	path string // clean; with a separator at its end
	gate *Gate
}

// Process is the set that the backends use: the number of threads is a process's, so is the bound.
var Process Set

// Add makes path and all below it go through g, from files opened next on. Roots on one device share a
// gate. A root that is added again moves to the new gate.
func (s *Set) Add(path string, g *Gate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var roots []root
	if old := s.roots.Load(); old != nil {
		roots = slices.Clone(*old)
	}
	for _, p := range spellings(path) {
		roots = slices.DeleteFunc(roots, func(r root) bool { return r.path == p })
		roots = append(roots, root{p, g})
	}
	slices.SortFunc(roots, func(a, b root) int { return len(b.path) - len(a.path) })
	s.roots.Store(&roots)
}

// AddDevices gives the directories a gate of so many places for each device that they are on, 0 for PlacesDefault.
// It asks the file system, once: they may be missing still.
func (s *Set) AddDevices(places int, dirs ...string) {
	if places <= 0 {
		places = PlacesDefault
	}
	gates := map[string]*Gate{}
	for _, dir := range dirs {
		device := deviceOf(dir)
		if gates[device] == nil {
			gates[device] = New(dir, places)
		}
		s.Add(dir, gates[device])
	}
}

// spellings is the path as it was given, and as it is from the root.
func spellings(path string) []string {
	const separator = string(filepath.Separator)
	paths := []string{strings.TrimSuffix(filepath.Clean(path), separator) + separator}
	if abs, err := filepath.Abs(path); err == nil {
		if abs = strings.TrimSuffix(abs, separator) + separator; abs != paths[0] {
			paths = append(paths, abs)
		}
	}
	return paths
}

// For is the gate that path goes through.
func (s *Set) For(path string) *Gate {
	if roots := s.roots.Load(); roots != nil {
		for _, r := range *roots {
			below := r.path
			if len(path) == len(below)-1 {
				below = below[:len(below)-1] // the root itself
			}
			if strings.HasPrefix(path, below) {
				return r.gate
			}
		}
	}
	return s.other()
}

func (s *Set) other() *Gate {
	s.once.Do(func() { s.rest = New("other", PlacesDefault) })
	return s.rest
}

// Stats looks at all gates, that of what is under no root last.
func (s *Set) Stats() []Stats {
	var out []Stats
	var seen []*Gate
	if roots := s.roots.Load(); roots != nil {
		for _, r := range *roots {
			if !slices.Contains(seen, r.gate) {
				seen = append(seen, r.gate)
				out = append(out, r.gate.Stats())
			}
		}
	}
	return append(out, s.other().Stats())
}
