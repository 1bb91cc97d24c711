package hddsim

import (
	"errors"
	"time"

	"platter/io/invariant"
)

// VolumeParams are the machine's memory, the kernel's settings and the file system's habits.
type VolumeParams struct {
	MemoryBytes     int64 // of the page cache
	DirtyBytes      int64 // vm.dirty_bytes: writers wait as this is approached
	BackgroundBytes int64 // vm.dirty_background_bytes: writeback begins
	Expire          time.Duration
	Interval        time.Duration // between looks for what has expired
	WritebackBytes  int64         // of one file in its turn; 0: the kernel's rule, half a second's worth, 4 MiB at least
	WritesMax       int           // requests of writeback under way
	RequestMax      int64         // bytes of one request

	ReadaheadBytes int64 // the largest window (read_ahead_kb)

	WindowMax int64 // a growing file gets blocks in windows as long as itself, up to this (ext4's normalised requests)

	CommitInterval time.Duration // of the file system's journal
	JournalBytes   int64

	CallCost        time.Duration // of any system call
	CopyBytesPerSec int64         // between a caller's buffer and the page cache
	DropCost        time.Duration // of taking one page out of the cache
}

// DefaultVolume is a machine with 8 GiB of page cache and Linux's defaults: writers are slowed from 15% dirty on,
// writeback begins at 10%.
func DefaultVolume() VolumeParams {
	const memory = 8 << 30
	return VolumeParams{
		MemoryBytes: memory, DirtyBytes: memory / 5, BackgroundBytes: memory / 10,
		Expire: 30 * time.Second, Interval: 5 * time.Second, WritesMax: 128, RequestMax: 1 << 20,
		ReadaheadBytes: 128 << 10, WindowMax: 8 << 20,
		CommitInterval: 5 * time.Second, JournalBytes: 128 << 20,
		CallCost: 2 * time.Microsecond, CopyBytesPerSec: 4e9, DropCost: 60 * time.Nanosecond,
	}
}

// ErrNoRoom: no block of the volume is free.
var ErrNoRoom = errors.New("no room on the modelled volume")

// Volume is a file system and its page cache over a device. Every verb takes a function that is called at the
// machine's time when the verb is done; until then its arguments stay as they are. Positions and lengths are bytes.
//
// Files are written to memory and reach the device by writeback, inode by inode, in runs; blocks are allocated when they
// are written (delayed allocation) or preallocated. What is not modelled: the processors are never short, and directories
// cost nothing beyond the journal.
type Volume struct {
	m     *Machine
	dev   Device
	p     VolumeParams
	space *space
	cache pageCache
	flush flusher
	log   journal

	bitmaps map[int64]bool // block groups whose bitmap is in memory
	made    int64
}

// NewVolume formats a device.
func NewVolume(m *Machine, dev Device, p VolumeParams) *Volume {
	invariant.Check(p.CallCost > 0 && p.CopyBytesPerSec > 0 && p.RequestMax >= pageBytes && p.WritesMax > 0 &&
		p.BackgroundBytes <= p.DirtyBytes && p.DirtyBytes <= p.MemoryBytes, "bad volume %+v", p)
	v := &Volume{m: m, dev: dev, p: p, space: newSpace(dev.SizeBytes() / pageBytes * pageBytes), bitmaps: map[int64]bool{}}
	v.log.area = span{v.space.left / 2 / pageBytes * pageBytes, p.JournalBytes / pageBytes * pageBytes}
	v.space.reserve(v.log.area)
	v.log.home = map[int64]bool{}
	v.flush.rate = 100e6
	return v
}

// Machine is the one it runs on.
func (v *Volume) Machine() *Machine { return v.m }

// Device is the one below.
func (v *Volume) Device() Device { return v.dev }

// FreeBytes is the room that is left.
func (v *Volume) FreeBytes() int64 { return v.space.left }

// DirtyBytes is what is in memory only, or on its way to the device.
func (v *Volume) DirtyBytes() int64 { return (v.cache.dirty + v.cache.writing) * pageBytes }

// ResidentBytes is what is in memory.
func (v *Volume) ResidentBytes() int64 { return v.cache.resident * pageBytes }

// Inode is one file of a volume.
type Inode struct {
	id      int64
	size    int64
	extents layout
	blocks  map[int64]*block
	dirty   runs // pages
	flying  []*writing
	loading []*load
	behind  runs // pages that go when they have been read

	queued  bool // for writeback
	since   time.Duration
	cursor  int64 // the page at which writeback goes on
	changed bool  // its size or blocks, since the last commit
	logged  bool  // the running transaction knows of it
	gone    bool
}

// Size is the file's length in bytes.
func (f *Inode) Size() int64 { return f.size }

// Extents is in how many pieces it lies on the device, so far.
func (f *Inode) Extents() int { return len(f.extents) }

// Create makes an empty file.
func (v *Volume) Create() *Inode {
	v.made++
	f := &Inode{id: v.made, blocks: map[int64]*block{}, changed: true}
	v.log.touch(v, f)
	return f
}

// Place makes a file that is on the device already and not in memory, in pieces of at most pieceBytes (0: as few as
// there are). It takes no time.
func (v *Volume) Place(size, pieceBytes int64) (*Inode, error) {
	f := v.Create()
	f.changed = false
	for whole := pageUp(size); f.size < whole; {
		n := whole - f.size
		if pieceBytes > 0 {
			n = min(n, pageUp(pieceBytes))
		}
		got, ok := v.space.take(-1, n)
		if !ok {
			return nil, ErrNoRoom
		}
		f.extents.put(extent{span{f.size, got.len}, got.pos})
		f.size += got.len
	}
	f.size = size
	return f, nil
}

func pageUp(n int64) int64 { return (n + pageBytes - 1) / pageBytes * pageBytes }

// pagesOf is the pages that a range of bytes touches.
func pagesOf(pos, n int64) span {
	if n <= 0 {
		return span{pos / pageBytes, 0}
	}
	first := pos / pageBytes
	return span{first, (pos+n-1)/pageBytes - first + 1}
}

func (s span) bytes() span { return span{s.pos * pageBytes, s.len * pageBytes} }

// sliceBytes is after how much a writer is asked whether it has to wait.
const sliceBytes = 128 << 10

// Write puts n bytes at pos into memory. A writer waits when too much is dirty, and reads first what it overwrites
// in part.
func (v *Volume) Write(f *Inode, pos, n int64, done func()) {
	v.m.After(v.p.CallCost, func() { v.writeSlice(f, pos, n, done) })
}

func (v *Volume) writeSlice(f *Inode, pos, n int64, done func()) {
	if n <= 0 || f.gone {
		done()
		return
	}
	part := min(n, sliceBytes-pos%sliceBytes)
	v.flush.admit(v, func() {
		v.fillEdges(f, pos, part, func() {
			v.dirtyPages(f, pagesOf(pos, part))
			if f.size < pos+part {
				f.size = pos + part
				f.changed = true
				v.log.touch(v, f)
			}
			v.m.After(over(part, v.p.CopyBytesPerSec), func() { v.writeSlice(f, pos+part, n-part, done) })
		})
	})
}

// fillEdges reads the pages that a write covers in part, where they are not in memory and hold something.
func (v *Volume) fillEdges(f *Inode, pos, n int64, then func()) {
	j := joined(then)
	edge := func(at int64) {
		if p := at / pageBytes; p*pageBytes < f.size && !f.has(p) {
			v.fetch(f, span{p, 1}, j)
		}
	}
	if pos%pageBytes != 0 {
		edge(pos)
	}
	if end := pos + n; end%pageBytes != 0 && end < f.size {
		edge(end)
	}
	j.close()
}

// Truncate sets the size; what is beyond is dropped, from memory and from the device.
func (v *Volume) Truncate(f *Inode, size int64, done func()) {
	cost := v.p.CallCost + v.drop(f, pageUp(size)/pageBytes)
	f.size, f.changed = size, true
	v.log.touch(v, f)
	v.free(f, pageUp(size), cost, done)
}

// Remove deletes a file: its pages are dropped, its blocks returned, block group by block group; a group's bitmap
// that is not in memory has to be read.
func (v *Volume) Remove(f *Inode, done func()) {
	cost := v.p.CallCost + v.drop(f, 0)
	f.gone = true
	v.log.touch(v, f)
	v.free(f, 0, cost, done)
}

// groupBytes is what one bitmap of 4,096 bytes covers.
const groupBytes = pageBytes * 8 * pageBytes

func (v *Volume) free(f *Inode, size int64, cost time.Duration, done func()) {
	var missing []int64
	for _, r := range f.extents.cutTo(size) {
		for g := r.pos / groupBytes; g*groupBytes < r.end(); g++ {
			v.log.touchAt(v, g*groupBytes)
			if !v.bitmaps[g] {
				v.bitmaps[g] = true
				missing = append(missing, g*groupBytes)
			}
		}
		v.space.give(r)
	}
	var next func()
	next = func() {
		if len(missing) == 0 {
			done()
			return
		}
		at := missing[0]
		missing = missing[1:]
		v.dev.Submit(&Request{Kind: Read, Pos: at, Len: pageBytes, Done: next})
	}
	v.m.After(cost, next)
}

// allocate gives the holes of a run blocks, after those of what stands before it.
func (v *Volume) allocate(f *Inode, r span) error {
	var holes []span
	f.extents.pieces(r, func(part span, dev int64) {
		if dev < 0 {
			holes = append(holes, part)
		}
	})
	for _, h := range holes {
		if h.end() >= pageUp(f.size) {
			h = v.window(f, h)
		}
		for h.len > 0 {
			goal := int64(-1)
			if i := f.extents.find(h.pos); i > 0 && f.extents[i-1].end() == h.pos {
				goal = f.extents[i-1].dev + f.extents[i-1].len
			}
			got, ok := v.space.take(goal, h.len)
			if !ok {
				return ErrNoRoom
			}
			f.extents.put(extent{span{h.pos, got.len}, got.pos})
			for g := got.pos / groupBytes; g*groupBytes < got.end(); g++ {
				v.bitmaps[g] = true
				v.log.touchAt(v, g*groupBytes)
			}
			h = span{h.pos + got.len, h.len - got.len}
			f.changed = true
		}
	}
	v.log.touch(v, f)
	return nil
}

// window is the hole at a file's end made longer: to the next multiple of a power of two about the file's size.
func (v *Volume) window(f *Inode, h span) span {
	n := int64(pageBytes)
	for n < f.size && n < v.p.WindowMax {
		n *= 2
	}
	return span{h.pos, max(h.len, (h.end()+n-1)/n*n-h.pos)}
}

// Preallocate gives a range its blocks now, in as few pieces as there are.
func (v *Volume) Preallocate(f *Inode, pos, n int64, done func(error)) {
	first := pos / pageBytes * pageBytes
	err := v.allocate(f, span{first, pageUp(pos+n) - first})
	v.m.After(v.p.CallCost, func() { done(err) })
}

// ReleaseTail returns the blocks beyond the end.
func (v *Volume) ReleaseTail(f *Inode, done func()) {
	f.changed = true
	v.free(f, max(pageUp(f.size), f.dirtyEnd()), v.p.CallCost, done)
}

func (f *Inode) dirtyEnd() int64 {
	if len(f.dirty) == 0 {
		return 0
	}
	return f.dirty[len(f.dirty)-1].end() * pageBytes
}
