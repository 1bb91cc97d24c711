package memdisk

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"platter/io/disk"
)

const (
	// What is remembered between two syncs is bounded: further versions of a sector, sizes and
	// truncations push older ones out, so that a crash cannot choose those any more.
	versionsMax = 3
	sizesMax    = 64
	epochsMax   = 8
)

// content is a file's bytes: as written, as synced, and what happened in between.
type content struct {
	now     *image
	durable *image
	// epochs are the stretches between truncations since the last sync. Never empty.
	epochs []*epoch
}

// epoch is a stretch of writes in which the file only grew.
type epoch struct {
	// floor and start are what the truncation that began it did: everything above floor went, then the
	// size was start. Meaningless in the first epoch after a sync.
	floor, start int64
	sizes        []int64                             // sizes reached, in order
	dirty        map[int64]uint8                     // page → its written sectors, a bit each
	versions     map[int64][]*[disk.SectorBytes]byte // sector → contents before the last
	end          *image                              // the content when the next one began; nil in the last
}

func newContent() *content {
	return &content{now: newImage(), durable: newImage(), epochs: []*epoch{newEpoch(0, 0)}}
}

func newEpoch(floor, start int64) *epoch {
	return &epoch{floor: floor, start: start, dirty: map[int64]uint8{}, versions: map[int64][]*[disk.SectorBytes]byte{}}
}

func (c *content) last() *epoch { return c.epochs[len(c.epochs)-1] }

// writePage writes b, which ends within the page of pos.
func (c *content) writePage(b []byte, pos int64) {
	e := c.last()
	i := pos / pageBytes
	first, last := pos/disk.SectorBytes, (pos+int64(len(b))-1)/disk.SectorBytes
	var written uint8
	for s := first; s <= last; s++ {
		written |= 1 << (s % sectorsPerPage)
	}
	before := e.dirty[i]
	e.dirty[i] = before | written
	for again := before & written; again != 0; again &= again - 1 {
		e.remember(i*sectorsPerPage+int64(bits.TrailingZeros8(again)), c.now)
	}
	copy(c.now.writable(i).b[pos%pageBytes:], b)
	if end := pos + int64(len(b)); end > c.now.size {
		c.now.size = end
	}
}

func (e *epoch) remember(sector int64, im *image) {
	v := (*[disk.SectorBytes]byte)(im.sector(sector))
	kept := e.versions[sector]
	if len(kept) == versionsMax {
		kept = slices.Delete(kept, 0, 1)
	}
	e.versions[sector] = append(kept, v)
}

// grown notes the size that an operation left.
func (c *content) grown() {
	e := c.last()
	if n := len(e.sizes); n > 0 && e.sizes[n-1] == c.now.size {
		return
	}
	if len(e.sizes) == sizesMax {
		e.sizes = slices.Delete(e.sizes, 0, 1)
	}
	e.sizes = append(e.sizes, c.now.size)
}

func (c *content) truncate(size int64) {
	if size >= c.now.size {
		c.now.size = size
		c.grown()
		return
	}
	c.last().end = c.now.share()
	c.now.cut(size)
	if len(c.epochs) == epochsMax {
		// The oldest truncation can no longer be the one at which the crash came.
		c.epochs[2].floor = min(c.epochs[1].floor, c.epochs[2].floor)
		c.epochs = slices.Delete(c.epochs, 1, 2)
	}
	c.epochs = append(c.epochs, newEpoch(size, size))
}

func (c *content) sync() {
	if len(c.epochs) > 1 {
		c.durable = c.now.share()
	} else {
		for i := range c.last().dirty {
			c.durable.pages[i] = c.now.pages[i].share()
		}
		c.durable.size = c.now.size
	}
	c.epochs = []*epoch{newEpoch(0, 0)}
}

// crash makes the content what a power cut may leave of it.
func (c *content) crash(rng *rand.Rand) {
	im := c.durable
	lastEpoch := len(c.epochs) - 1
	if rng.IntN(2) == 0 {
		lastEpoch = rng.IntN(len(c.epochs))
	}
	for i, e := range c.epochs[:lastEpoch+1] {
		if i > 0 {
			im.cut(e.floor)
			im.size = e.start
		}
		c.surviving(e, im, rng)
		if i == lastEpoch {
			im.cut(e.sizeAfter(im.size, rng))
		}
	}
	c.now, c.durable = im.share(), im
	c.epochs = []*epoch{newEpoch(0, 0)}
}

// surviving puts a share of an epoch's sectors into im: none, all, or a random part.
func (c *content) surviving(e *epoch, im *image, rng *rand.Rand) {
	share := []float64{0, 1, 0.1, 0.5, 0.9}[rng.IntN(5)]
	from := e.end
	if from == nil {
		from = c.now
	}
	pages := make([]int64, 0, len(e.dirty))
	for i := range e.dirty {
		pages = append(pages, i)
	}
	slices.Sort(pages)
	for _, i := range pages {
		for bit := range int64(sectorsPerPage) {
			if e.dirty[i]&(1<<bit) == 0 || rng.Float64() >= share {
				continue
			}
			s := i*sectorsPerPage + bit
			v := from.sector(s)
			if old := e.versions[s]; len(old) > 0 && rng.IntN(3) == 0 {
				v = old[rng.IntN(len(old))][:]
			}
			im.setSector(s, v)
		}
	}
}

// sizeAfter chooses the size of a file that crashed in this epoch, which began at size start.
func (e *epoch) sizeAfter(start int64, rng *rand.Rand) int64 {
	if len(e.sizes) == 0 {
		return start
	}
	last := e.sizes[len(e.sizes)-1]
	switch rng.IntN(4) {
	case 0:
		return start
	case 1:
		return e.sizes[rng.IntN(len(e.sizes))]
	case 2:
		if boundaries := last/pageBytes - start/pageBytes; boundaries > 0 {
			return (start/pageBytes + 1 + rng.Int64N(boundaries)) * pageBytes
		}
	}
	return last
}

func (c *content) clone() *content {
	d := &content{now: c.now.share(), durable: c.durable.share()}
	for _, e := range c.epochs {
		f := newEpoch(e.floor, e.start)
		f.sizes = slices.Clone(e.sizes)
		for i, bits := range e.dirty {
			f.dirty[i] = bits
		}
		for s, v := range e.versions {
			f.versions[s] = slices.Clone(v)
		}
		if e.end != nil {
			f.end = e.end.share()
		}
		d.epochs = append(d.epochs, f)
	}
	return d
}
