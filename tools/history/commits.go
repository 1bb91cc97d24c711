package history

import (
	"fmt"
	"maps"
	"sync"
)

// Commits watches the committed offsets of groups: once an offset was acknowledged, or read, nobody reads an older
// one. Of each group's partition only one consumer at a time may commit, and only forward. Safe for concurrent use.
// The zero value is ready.
type Commits struct {
	mu    sync.Mutex
	floor map[Committed]int64
	acked int
	reads int
	bad   []string
}

// Committed names what an offset is committed for.
type Committed struct {
	Group     string
	Partition int32
}

// Floor is what a read that begins now has to give at least. It belongs to the caller.
func (c *Commits) Floor() map[Committed]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.floor)
}

// Acknowledged notes that a commit was.
func (c *Commits) Acknowledged(of Committed, offset int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked++
	c.raise(of, offset)
}

// Read notes what was read of a group: at are its committed offsets, by partition (none: 0 or missing), floor
// is from before the read.
func (c *Commits) Read(group string, at map[int32]int64, floor map[Committed]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	for of, least := range floor {
		if of.Group == group && at[of.Partition] < least {
			c.bad = append(c.bad, fmt.Sprintf("group %s partition %d: offset %d was committed, later %d is read", of.Group, of.Partition, least, at[of.Partition]))
		}
	}
	for p, offset := range at {
		c.raise(Committed{group, p}, offset)
	}
}

func (c *Commits) raise(of Committed, offset int64) {
	if c.floor == nil {
		c.floor = map[Committed]int64{}
	}
	c.floor[of] = max(c.floor[of], offset)
}

// Outcome gives the broken promises, and how many acknowledged commits and reads there were.
func (c *Commits) Outcome() (bad []string, acked, reads int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bad, c.acked, c.reads
}
