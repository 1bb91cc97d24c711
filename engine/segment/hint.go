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

// lastBelow finds the last of n entries in the file for which keep holds; keep holds for all entries
// before it, unless the file is garbage. It reads O(log n) blocks.
func lastBelow(r ReaderAt, n, width int64, keep func(p []byte) bool) (entry []byte, i int64, err error) {
	const blockEntries = 64
	var block [blockEntries * timeEntryBytes]byte
	lo, hi := int64(0), (n+blockEntries-1)/blockEntries // blocks; the entry is in lo, if anywhere
	read := func(k int64) ([]byte, error) {
		p := block[:min(blockEntries, n-k*blockEntries)*width]
		return p, readFull(r, p, k*blockEntries*width)
	}
	if n == 0 {
		return nil, -1, nil
	}
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		p, err := read(mid)
		if err != nil {
			return nil, -1, err
		}
		if keep(p[:width]) {
			lo = mid
			if !keep(p[int64(len(p))-width:]) {
				break
			}
		} else {
			hi = mid
		}
	}
	p, err := read(lo)
	if err != nil {
		return nil, -1, err
	}
	k := int64(sort.Search(len(p)/int(width), func(i int) bool {
		return !keep(p[int64(i)*width : int64(i+1)*width])
	}))
	if k == 0 {
		return nil, -1, nil
	}
	return p[(k-1)*width : k*width], lo*blockEntries + k - 1, nil
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
