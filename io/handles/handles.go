// Package handles keeps at most a fixed number of files open: a strict,
// reference-counted LRU. A partition's files are opened on use and closed when
// others need the room, so thousands of partitions run under a small descriptor
// limit. A file that is referenced is never closed.
//
// A file is closed without a sync: what was written stays in the page cache, and
// a later Sync through a new handle still covers it (and, on Linux 4.13 and
// newer, still reports a writeback that failed in between).
//
// A file that is open for writing also serves those who ask to read. Opening and
// closing happen outside the cache's lock, so a slow disk holds up only those who
// wait for the same file.
package handles

import (
	"container/list"
	"errors"
	"fmt"
	"sync"
	"time"

	"platter/io/disk"
	"platter/io/invariant"
)

// ErrTooManyOpen: all files of the cache stayed pinned for as long as Acquire waits.
var ErrTooManyOpen = errors.New("too many open files")

// waitMax bounds how long Acquire waits for a pinned file to be released. Pins last for one read or
// reply; one that lasts longer has a stuck holder.
const waitMax = 10 * time.Second

// Cache is safe for concurrent use.
type Cache struct {
	fs   disk.FS
	max  int
	wait time.Duration

	mu      sync.Mutex
	open    map[key]*entry
	idle    list.List // of *entry with no Ref, least recently used first
	slots   int       // entries that have, or are about to have, an open file
	waiters list.List // of chan struct{}, each to be closed when a slot may be free
}

type key struct {
	path     string
	writable bool
}

// entry is one open file. Its fields are guarded by the cache's lock, but for file and err, which
// are set before ready is closed.
type entry struct {
	key       key
	ready     chan struct{}
	file      disk.File
	err       error
	refs      int
	forgotten bool
	place     *list.Element // in idle
}

// Ref pins one open file until Release, which is called exactly once.
type Ref struct {
	cache *Cache
	entry *entry
}

// New returns a cache over fs that holds at most max open files.
func New(fs disk.FS, max int) *Cache {
	invariant.AtLeast(max, 1, "room for open files")
	return &Cache{fs: fs, max: max, wait: waitMax, open: map[key]*entry{}}
}

// Acquire opens path (or finds it open) and pins it. When all max files are pinned it waits for one
// to be released, and gives ErrTooManyOpen after a bounded wait. disk.CreateNew always opens anew.
func (c *Cache) Acquire(path string, m disk.Mode) (*Ref, error) {
	k := key{path, m != disk.ReadOnly}
	if m == disk.CreateNew {
		c.Forget(path)
	}
	var timeout <-chan time.Time
	for {
		c.mu.Lock()
		if e := c.find(k); e != nil && m != disk.CreateNew {
			c.pin(e)
			c.mu.Unlock()
			<-e.ready
			if e.err != nil {
				return nil, e.err
			}
			return &Ref{c, e}, nil
		}
		if c.slots < c.max {
			e := c.reserve(k)
			c.mu.Unlock()
			return c.openInto(e, m)
		}
		if c.idle.Len() > 0 {
			victim := c.idle.Front().Value.(*entry)
			c.drop(victim)
			c.mu.Unlock()
			c.close(victim)
			continue
		}
		turn := make(chan struct{})
		place := c.waiters.PushBack(turn)
		c.mu.Unlock()
		if timeout == nil {
			timer := time.NewTimer(c.wait)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-turn:
		case <-timeout:
			c.giveUp(turn, place)
			return nil, disk.Fail("open", path, -1, fmt.Errorf("%w: all %d are in use", ErrTooManyOpen, c.max))
		}
	}
}

// find prefers the very mode, and lets a reader use a writer's file.
func (c *Cache) find(k key) *entry {
	if e := c.open[k]; e != nil || k.writable {
		return e
	}
	return c.open[key{k.path, true}]
}

func (c *Cache) pin(e *entry) {
	if e.place != nil {
		c.idle.Remove(e.place)
		e.place = nil
	}
	e.refs++
}

func (c *Cache) reserve(k key) *entry {
	e := &entry{key: k, ready: make(chan struct{}), refs: 1}
	if c.open[k] == nil {
		c.open[k] = e
	} else { // two CreateNew at once: the second is nobody else's
		e.forgotten = true
	}
	c.slots++
	return e
}

func (c *Cache) openInto(e *entry, m disk.Mode) (*Ref, error) {
	e.file, e.err = c.fs.Open(e.key.path, m)
	if e.err != nil {
		c.mu.Lock()
		c.unlink(e)
		c.freeSlot()
		c.mu.Unlock()
	}
	close(e.ready)
	if e.err != nil {
		return nil, e.err
	}
	return &Ref{c, e}, nil
}

// unlink takes e out of the map, unless another has its place.
func (c *Cache) unlink(e *entry) {
	if c.open[e.key] == e {
		delete(c.open, e.key)
	}
}

// drop takes an idle entry out; the caller closes it.
func (c *Cache) drop(e *entry) {
	c.unlink(e)
	c.idle.Remove(e.place)
	e.place = nil
}

// close closes a dropped entry's file and then, not before, gives its slot away.
func (c *Cache) close(e *entry) {
	e.file.Close() // unsynced bytes are the writer's business; there is nobody here to tell
	c.mu.Lock()
	c.freeSlot()
	c.mu.Unlock()
}

func (c *Cache) freeSlot() {
	c.slots--
	c.wakeOne()
}

func (c *Cache) wakeOne() {
	if first := c.waiters.Front(); first != nil {
		close(c.waiters.Remove(first).(chan struct{}))
	}
}

// giveUp leaves the queue; a turn that came at the same moment is passed on.
func (c *Cache) giveUp(turn chan struct{}, place *list.Element) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-turn:
		c.wakeOne()
	default:
		c.waiters.Remove(place)
	}
}

// Forget drops path: it is closed at once, or when its last Ref is released; the next Acquire opens
// anew. Called before a file is renamed or deleted.
func (c *Cache) Forget(path string) {
	for _, writable := range []bool{false, true} {
		c.mu.Lock()
		e := c.open[key{path, writable}]
		c.forget(e)
	}
}

// forget is called with the lock held and releases it.
func (c *Cache) forget(e *entry) {
	if e == nil {
		c.mu.Unlock()
		return
	}
	e.forgotten = true
	c.unlink(e)
	idle := e.place != nil
	if idle {
		c.drop(e)
	}
	c.mu.Unlock()
	if idle {
		c.close(e)
	}
}

// Close forgets every file.
func (c *Cache) Close() {
	for {
		c.mu.Lock()
		var any *entry
		for _, any = range c.open {
			break
		}
		c.forget(any)
		if any == nil {
			return
		}
	}
}

// File is the pinned file, valid until Release.
func (r *Ref) File() disk.File { return r.entry.file }

// Release unpins.
func (r *Ref) Release() {
	c, e := r.cache, r.entry
	if c == nil {
		invariant.Check(false, "a Ref of %s was released twice", e.key.path)
	}
	r.cache = nil
	c.mu.Lock()
	e.refs--
	if e.refs > 0 {
		c.mu.Unlock()
		return
	}
	if e.forgotten {
		c.mu.Unlock()
		c.close(e)
		return
	}
	e.place = c.idle.PushBack(e)
	c.wakeOne()
	c.mu.Unlock()
}
