package segment

import (
	"errors"
	"sort"

	"platter/io/disk"
)

// A group of index entries is written once groupEntries have gathered or the log has grown by groupBytes:
// so much of the tail is scanned after the death of the process.
const (
	groupEntries = 64
	groupBytes   = 1 << 20
	// pendingMax bounds what is kept while the disk is full; then the oldest half is dropped.
	pendingMax = 4096
)

// hint is one index file: entries on disk, and behind them entries that are not written yet.
type hint struct {
	suffix    string
	width     int64
	fileBytes int64  // size of the file as listed, -1: missing; only until loaded
	disk      int64  // entries in the file
	trimmed   bool   // the file is known to end behind them
	pending   []byte // entries to be written
}

func (h *hint) count() int64 { return h.disk + int64(len(h.pending))/h.width }

func (h *hint) add(entry func([]byte) []byte) {
	if int64(len(h.pending)) >= pendingMax*h.width {
		half := pendingMax / 2 * h.width
		h.pending = append(h.pending[:0], h.pending[half:]...)
	}
	h.pending = entry(h.pending)
}

// stale: the file that was found holds more than what counts.
func (h *hint) stale() bool { return h.fileBytes > h.disk*h.width }

// write appends the pending entries to the file.
func (h *hint) write(s *Segment) error {
	if len(h.pending) == 0 && h.trimmed {
		return nil
	}
	err := withFile(s.env, s.pathOf(h.suffix), disk.Create, func(f disk.File) error {
		dropped := false
		if !h.trimmed {
			size, err := f.Size()
			if dropped = size > h.disk*h.width; err == nil && dropped {
				err = f.Truncate(h.disk * h.width)
			}
			if err != nil {
				return err
			}
		}
		h.trimmed = false
		if len(h.pending) > 0 {
			if _, err := f.WriteV([][]byte{h.pending}, h.disk*h.width); err != nil {
				return errors.Join(err, f.Truncate(h.disk*h.width))
			}
		}
		h.trimmed = true
		if dropped { // old entries that come back after a power cut could not be told from good ones
			return f.Sync()
		}
		return nil
	})
	if err != nil {
		return err
	}
	h.disk += int64(len(h.pending)) / h.width
	h.pending = h.pending[:0]
	return nil
}

// cut keeps the first n entries.
func (h *hint) cut(n int64) {
	if n <= h.disk {
		h.disk, h.trimmed, h.pending = n, false, h.pending[:0]
		return
	}
	h.pending = h.pending[:(n-h.disk)*h.width]
}

// anywhere is a guess for lastBelow when nothing is known: it halves from the middle.
const anywhere = 0.5

// blockEntries is how many index entries a look-up reads at once.
const blockEntries = 64

// lastBelow finds the last of n entries in the file for which keep holds; keep holds for all entries
// before it, unless the file is garbage. guess is where it may be, from 0 to 1: the search widens from
// there in doubling steps, so it reads a few blocks when the guess is good, and O(log n) always.
func lastBelow(r ReaderAt, n, width int64, guess float64, keep func(p []byte) bool) (entry []byte, i int64, err error) {
	if n == 0 {
		return nil, -1, nil
	}
	var block [blockEntries * timeEntryBytes]byte
	read := func(k int64) ([]byte, error) {
		p := block[:min(blockEntries, n-k*blockEntries)*width]
		return p, readFull(r, p, k*blockEntries*width)
	}
	// keep holds for the first entry of block lo, and not for that of block hi.
	lo, hi := int64(-1), (n+blockEntries-1)/blockEntries
	mid := min(max(int64(guess*float64(hi)), 0), hi-1)
	for step := int64(1); hi-lo > 1; step *= 2 {
		p, err := read(mid)
		if err != nil {
			return nil, -1, err
		}
		if !keep(p[:width]) {
			hi = mid
			mid = max(hi-step, (lo+hi)/2)
			continue
		}
		lo = mid
		if hi-lo == 1 || !keep(p[int64(len(p))-width:]) {
			return lastInBlock(p, lo, width, keep)
		}
		mid = min(lo+step, (lo+hi)/2)
	}
	if lo < 0 {
		return nil, -1, nil
	}
	p, err := read(lo)
	if err != nil {
		return nil, -1, err
	}
	return lastInBlock(p, lo, width, keep)
}

func lastInBlock(p []byte, block, width int64, keep func(p []byte) bool) ([]byte, int64, error) {
	k := int64(sort.Search(len(p)/int(width), func(i int) bool {
		return !keep(p[int64(i)*width : int64(i+1)*width])
	}))
	if k == 0 {
		return nil, -1, nil
	}
	return p[(k-1)*width : k*width], block*blockEntries + k - 1, nil
}

// lastPending is lastBelow over the entries in memory.
func (h *hint) lastPending(keep func(p []byte) bool) []byte {
	n := len(h.pending) / int(h.width)
	k := sort.Search(n, func(i int) bool {
		return !keep(h.pending[int64(i)*h.width : int64(i+1)*h.width])
	})
	if k == 0 {
		return nil
	}
	return h.pending[int64(k-1)*h.width : int64(k)*h.width]
}
