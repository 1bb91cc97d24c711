package memdisk

import (
	"math/rand/v2"
)

// place is one name in one directory.
type place struct {
	dir  *node
	name string
}

// change is one change of directory entries that is not durable: an entry appears at to, vanishes at
// from, or both in one.
type change struct {
	node                 *node
	replaced             *node // what was at to before
	from, to             place
	fromSynced, toSynced bool
}

func (c *change) touches(p place) bool { return p.dir != nil && (c.from == p || c.to == p) }

// follows reports whether c can only have happened after b: they share a name, or c removes or replaces
// a directory that b emptied, or both move directories (one might lie in the other by then).
func (c *change) follows(b *change) bool {
	if b.touches(c.from) || b.touches(c.to) {
		return true
	}
	gone := c.replaced
	if c.to.dir == nil {
		gone = c.node
	}
	if gone != nil && gone.isDir() && (b.from.dir == gone || b.to.dir == gone) {
		return true
	}
	return c.movesDir() && b.movesDir()
}

func (c *change) movesDir() bool { return c.node.isDir() && c.from.dir != nil && c.to.dir != nil }

// settle makes the changes that keep says durable, with all that they follow, and leaves the rest
// pending. Oldest first, so that the newest of a name wins.
func (m *FS) settle(keep func(*change) bool) {
	kept := make([]bool, len(m.pending))
	for i := len(m.pending) - 1; i >= 0; i-- {
		if !kept[i] && !keep(m.pending[i]) {
			continue
		}
		kept[i] = true
		for j := range i {
			kept[j] = kept[j] || m.pending[i].follows(m.pending[j])
		}
	}
	var rest []*change
	for i, c := range m.pending {
		if !kept[i] {
			rest = append(rest, c)
			continue
		}
		if c.from.dir != nil {
			delete(c.from.dir.durable, c.from.name)
		}
		if c.to.dir != nil {
			c.to.dir.durable[c.to.name] = c.node
		}
	}
	m.pending = rest
}

// SyncDir makes the directory's entries durable. A rename between two directories is durable once both
// are synced.
func (m *FS) SyncDir(path string) error {
	return m.op(Op{Kind: "syncdir", Path: path}, func() error {
		d, err := m.lookUp(path)
		if err != nil {
			return err
		}
		if !d.isDir() {
			return errNotDirectory
		}
		m.settle(func(c *change) bool {
			c.fromSynced = c.fromSynced || c.from.dir == nil || c.from.dir == d
			c.toSynced = c.toSynced || c.to.dir == nil || c.to.dir == d
			return c.fromSynced && c.toSynced
		})
		return nil
	})
}

// Crash cuts the power: the disk then holds what a power cut may leave of it, chosen by seed, all of it
// durable. Handles and locks from before are dead; the crash point is disarmed.
func (m *FS) Crash(seed uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restart()
	rng := rand.New(rand.NewPCG(seed, 0))
	share := []float64{0, 1, 0.5, 0.9}[rng.IntN(4)]
	m.settle(func(*change) bool { return rng.Float64() < share })
	m.pending = nil
	m.used = 0
	m.root.crash(m, seed)
}

// crash makes what is durable all there is, below n. A file's outcome depends on the seed and on the
// file alone.
func (n *node) crash(m *FS, seed uint64) {
	n.handles = 0
	if !n.isDir() {
		n.content.crash(rand.New(rand.NewPCG(seed, n.id)))
		clear(n.reserved)
		n.unlinked = false
		m.used += int64(n.pageCount()) * pageBytes
		return
	}
	clear(n.children)
	for name, child := range n.durable {
		n.children[name] = child
		child.crash(m, seed)
	}
}

// Kill ends the process: handles and locks are dead, all that was written is there, and still as
// durable as it was. The crash point is disarmed.
func (m *FS) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restart()
	m.root.kill()
	m.used = 0
	m.root.each(func(f *node) { m.used += int64(f.pageCount()) * pageBytes })
}

func (n *node) kill() { n.each(func(f *node) { f.handles = 0 }) }

// each calls f for all files that have a name below n.
func (n *node) each(f func(*node)) {
	if !n.isDir() {
		f(n)
	}
	for _, child := range n.children {
		child.each(f)
	}
}

func (m *FS) restart() {
	m.life++
	m.dead = false
	m.crashAt = 0
	m.locks = map[*node]bool{}
}

// CrashClone is the disk after a power cut at this moment; the disk itself goes on. It may be called
// from a hook.
func (m *FS) CrashClone(seed uint64) *FS {
	c := m.clone()
	c.Crash(seed)
	return c
}

// KillClone is the disk after the death of the process at this moment; the disk itself goes on.
func (m *FS) KillClone() *FS {
	c := m.clone()
	c.Kill()
	return c
}

func (m *FS) clone() *FS {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &FS{clock: m.clock, capacity: m.capacity, used: m.used, nextID: m.nextID, life: m.life, count: m.count}
	copies := map[*node]*node{}
	c.root = m.root.clone(copies)
	for _, p := range m.pending {
		c.pending = append(c.pending, &change{
			node:       p.node.clone(copies),
			replaced:   p.replaced.clone(copies),
			from:       place{p.from.dir.clone(copies), p.from.name},
			to:         place{p.to.dir.clone(copies), p.to.name},
			fromSynced: p.fromSynced, toSynced: p.toSynced,
		})
	}
	return c
}

// clone copies n and all below it, once.
func (n *node) clone(copies map[*node]*node) *node {
	if n == nil {
		return nil
	}
	if c := copies[n]; c != nil {
		return c
	}
	c := &node{id: n.id, modMs: n.modMs, unlinked: n.unlinked}
	copies[n] = c
	if !n.isDir() {
		c.content, c.reserved = n.content.clone(), map[int64]bool{}
		for i := range n.reserved {
			c.reserved[i] = true
		}
		return c
	}
	c.children, c.durable = map[string]*node{}, map[string]*node{}
	for name, child := range n.children {
		c.children[name] = child.clone(copies)
	}
	for name, child := range n.durable {
		c.durable[name] = child.clone(copies)
	}
	return c
}
