package tree

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"slices"
	"strings"
)

// children is a node's children by name: a linear hash table of small buckets, which grows by one bucket
// at a time. A change after a Capture copies the list of buckets and the one bucket that changes: so
// neither growing nor a snapshot stops the world under a node with a million children.
//
// Like nodes, children and its buckets belong to a generation: of an earlier one they may be shared with a
// Capture. Nil is none at all.
type children struct {
	gen       uint64
	count     int
	nameBytes int // of all names together
	buckets   []bucket
}

// bucket has no order. Its slice is shared with a Capture until gen is the tree's.
type bucket struct {
	gen   uint64
	slots []slot
}

// slot holds the hash beside the node, so that a look-up touches no other nodes.
type slot struct {
	hash uint64
	node *node
}

// bucketFill is the mean number of nodes in a bucket beyond which one more bucket is made.
const bucketFill = 12

var nameSeed = maphash.MakeSeed()

func hashName(name string) uint64 { return maphash.String(nameSeed, name) }

func (c *children) len() int {
	if c == nil {
		return 0
	}
	return c.count
}

func (c *children) allNameBytes() int {
	if c == nil {
		return 0
	}
	return c.nameBytes
}

// index is the bucket of a hash: of a round's buckets, some are split already.
func (c *children) index(hash uint64) int {
	n := len(c.buckets)
	size := roundUp(n)
	if i := int(hash & uint64(size-1)); i < n {
		return i
	}
	return int(hash & uint64(size/2-1))
}

// roundUp is the least power of two that is at least n.
func roundUp(n int) int { return 1 << bits.Len(uint(n-1)) }

// origin is the bucket from which another one was split.
func origin(i int) int { return i - roundUp(i+1)/2 }

func (c *children) get(name string) *node {
	if c == nil {
		return nil
	}
	hash := hashName(name)
	b := &c.buckets[c.index(hash)]
	if i := b.find(hash, name); i >= 0 {
		return b.slots[i].node
	}
	return nil
}

func (b *bucket) find(hash uint64, name string) int {
	for i := range b.slots {
		if b.slots[i].hash == hash && b.slots[i].node.name == name {
			return i
		}
	}
	return -1
}

// put adds a node, or replaces the one of its name, and gives the children that are gen's own.
func (c *children) put(gen uint64, n *node) *children {
	c = c.own(gen)
	hash := hashName(n.name)
	b := c.ownBucket(c.index(hash))
	if i := b.find(hash, n.name); i >= 0 {
		b.slots[i].node = n
		return c
	}
	b.add(slot{hash, n})
	c.nameBytes += len(n.name)
	if c.count++; c.count > bucketFill*len(c.buckets) {
		c.split()
	}
	return c
}

// add grows by little: most buckets are never full.
func (b *bucket) add(s slot) {
	if n := len(b.slots); n == cap(b.slots) {
		grown := make([]slot, n, n+min(n+1, 4))
		copy(grown, b.slots)
		b.slots = grown
	}
	b.slots = append(b.slots, s)
}

// remove takes a node out, and gives the children that are gen's own: nil when none is left.
func (c *children) remove(gen uint64, name string) *children {
	if c.get(name) == nil {
		return c
	}
	if c.count == 1 {
		return nil
	}
	c = c.own(gen)
	hash := hashName(name)
	b := c.ownBucket(c.index(hash))
	at, last := b.find(hash, name), len(b.slots)-1
	b.slots[at] = b.slots[last]
	b.slots[last] = slot{}
	b.slots = b.slots[:last]
	c.nameBytes -= len(name)
	if c.count--; c.count < bucketFill*len(c.buckets)/4 && len(c.buckets) > 1 {
		c.merge()
	}
	return c
}

// split adds a bucket, which takes its share of the one that it is split from.
func (c *children) split() {
	c.buckets = append(c.buckets, bucket{gen: c.gen})
	last := len(c.buckets) - 1
	b := c.ownBucket(origin(last))
	stay := b.slots[:0]
	for _, s := range b.slots {
		if c.index(s.hash) == last {
			c.buckets[last].add(s)
		} else {
			stay = append(stay, s)
		}
	}
	clear(b.slots[len(stay):])
	b.slots = stay
}

// merge takes the last bucket back into the one that it was split from.
func (c *children) merge() {
	last := len(c.buckets) - 1
	slots := c.buckets[last].slots
	c.buckets[last] = bucket{}
	c.buckets = c.buckets[:last]
	into := c.ownBucket(origin(last))
	for _, s := range slots {
		into.add(s)
	}
	if last < cap(c.buckets)/4 {
		c.buckets = slices.Clone(c.buckets)
	}
}

func (c *children) own(gen uint64) *children {
	switch {
	case c == nil:
		return &children{gen: gen, buckets: []bucket{{gen: gen}}}
	case c.gen == gen:
		return c
	}
	return &children{gen: gen, count: c.count, nameBytes: c.nameBytes, buckets: slices.Clone(c.buckets)}
}

func (c *children) ownBucket(i int) *bucket {
	b := &c.buckets[i]
	if b.gen != c.gen {
		b.gen, b.slots = c.gen, slices.Clone(b.slots)
	}
	return b
}

// all gives the nodes in no order. The children must not change meanwhile.
func (c *children) all() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		if c == nil {
			return
		}
		for i := range c.buckets {
			for _, s := range c.buckets[i].slots {
				if !yield(s.node) {
					return
				}
			}
		}
	}
}

// names gives the names, as all does.
func (c *children) names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for n := range c.all() {
			if !yield(n.name) {
				return
			}
		}
	}
}

// sorted gives the nodes by name.
func (c *children) sorted() []*node {
	nodes := make([]*node, 0, c.len())
	for n := range c.all() {
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	return nodes
}
