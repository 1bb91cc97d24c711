package hddsim

import "time"

// blockPages is the unit of the cache's book-keeping: 64 KiB.
const blockPages = 16

// pageCache counts pages, and knows which block was used last.
type pageCache struct {
	resident, dirty, writing int64
	newest, oldest           *block
}

// block is a run of a file's pages. Bit i of a mask is its page i.
type block struct {
	f        *Inode
	n        int64
	resident uint16
	dirty    uint16
	writing  uint16

	newer, older *block
}

func (c *pageCache) unlink(b *block) {
	if b.newer != nil {
		b.newer.older = b.older
	} else {
		c.newest = b.older
	}
	if b.older != nil {
		b.older.newer = b.newer
	} else {
		c.oldest = b.newer
	}
	b.newer, b.older = nil, nil
}

func (c *pageCache) push(b *block) {
	b.older = c.newest
	if c.newest != nil {
		c.newest.newer = b
	} else {
		c.oldest = b
	}
	c.newest = b
}

// touch makes a block the last one to go.
func (c *pageCache) touch(b *block) {
	if c.newest != b {
		c.unlink(b)
		c.push(b)
	}
}

// blocks calls f for each block of a run of pages with the mask of them; missing ones are made where create is set.
func (v *Volume) blocks(f *Inode, r span, create bool, do func(b *block, mask uint16)) {
	for p := r.pos; p < r.end(); {
		n, in := p/blockPages, p%blockPages
		count := min(blockPages-in, r.end()-p)
		b := f.blocks[n]
		if b == nil && create {
			b = &block{f: f, n: n}
			f.blocks[n] = b
			v.cache.push(b)
		}
		if b != nil {
			do(b, uint16((1<<count-1)<<in))
		}
		p += count
	}
}

// has reports whether a page is in memory.
func (f *Inode) has(page int64) bool {
	b := f.blocks[page/blockPages]
	return b != nil && b.resident>>(page%blockPages)&1 != 0
}

func bits(m uint16) (n int64) {
	for ; m != 0; m &= m - 1 {
		n++
	}
	return n
}

// admitPages says that a run is in memory now.
func (v *Volume) admitPages(f *Inode, r span) {
	v.blocks(f, r, true, func(b *block, mask uint16) {
		v.cache.resident += bits(mask &^ b.resident)
		b.resident |= mask
		v.cache.touch(b)
	})
	v.evict()
}

// use makes a run the last to go.
func (v *Volume) use(f *Inode, r span) {
	v.blocks(f, r, false, func(b *block, _ uint16) { v.cache.touch(b) })
}

func (v *Volume) dirtyPages(f *Inode, r span) {
	v.admitPages(f, r)
	fresh := f.dirty.add(r)
	v.blocks(f, r, false, func(b *block, mask uint16) { b.dirty |= mask })
	v.cache.dirty += fresh
	v.flush.note(v, f)
}

// evict drops clean blocks, the oldest first, until the rest fits. Dirty ones go to the end of the line.
func (v *Volume) evict() {
	last := v.cache.newest
	for b := v.cache.oldest; b != nil && v.cache.resident*pageBytes > v.p.MemoryBytes; {
		newer := b.newer
		if b.dirty|b.writing == 0 {
			v.forgetBlock(b)
		} else {
			v.cache.touch(b)
		}
		if b == last {
			return
		}
		b = newer
	}
}

func (v *Volume) forgetBlock(b *block) {
	v.cache.resident -= bits(b.resident)
	v.cache.unlink(b)
	delete(b.f.blocks, b.n)
}

// drop forgets all pages of a file from one on, dirty ones too; what is on its way goes on. It returns what that costs.
func (v *Volume) drop(f *Inode, from int64) time.Duration {
	const end = 1 << 50
	v.cache.dirty -= f.dirty.remove(span{from, end - from})
	var pages int64
	for n, b := range f.blocks {
		if (n+1)*blockPages <= from {
			continue
		}
		mask := uint16(0xffff)
		if n*blockPages < from {
			mask <<= from - n*blockPages
		}
		pages += bits(b.resident & mask)
		v.cache.resident -= bits(b.resident & mask)
		b.resident, b.dirty = b.resident&^mask, b.dirty&^mask
		if b.resident|b.dirty|b.writing == 0 {
			v.cache.unlink(b)
			delete(f.blocks, n)
		}
	}
	v.flush.release(v)
	return time.Duration(pages) * v.p.DropCost
}

// Resident is how many bytes of a range are in memory.
func (v *Volume) Resident(f *Inode, pos, n int64) (bytes int64) {
	end := min(pos+n, f.size)
	for p := pos / pageBytes; p*pageBytes < end; p++ {
		if f.has(p) {
			bytes += min(end, (p+1)*pageBytes) - max(pos, p*pageBytes)
		}
	}
	return bytes
}

// DontNeed drops the clean pages that lie wholly in a range.
func (v *Volume) DontNeed(f *Inode, pos, n int64, done func()) {
	first, end := pageUp(pos)/pageBytes, (pos+n)/pageBytes
	if pos+n >= f.size {
		end = pageUp(f.size) / pageBytes
	}
	var pages int64
	if end > first {
		pages = v.forgetPages(f, span{first, end - first})
	}
	v.m.After(v.p.CallCost+time.Duration(pages)*v.p.DropCost, done)
}

// DropCaches forgets every clean page there is. It takes no time.
func (v *Volume) DropCaches() {
	for b := v.cache.oldest; b != nil; {
		newer := b.newer
		if b.dirty|b.writing == 0 {
			v.forgetBlock(b)
		}
		b = newer
	}
}

// forgetPages drops the clean pages of a run.
func (v *Volume) forgetPages(f *Inode, r span) (pages int64) {
	v.blocks(f, r, false, func(b *block, mask uint16) {
		mask &= b.resident &^ (b.dirty | b.writing)
		b.resident &^= mask
		pages += bits(mask)
		v.cache.resident -= bits(mask)
		if b.resident|b.dirty|b.writing == 0 {
			v.forgetBlock(b)
		}
	})
	return pages
}
