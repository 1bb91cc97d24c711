//go:build linux && !portable

package psync

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	// mapBytesMin is the least that is mapped of a file: it may grow that far before it is mapped anew.
	mapBytesMin = 64 << 20
	// mapCountMax bounds the mappings of the process; the kernel's bound is 65,530 (vm.max_map_count). A
	// file that comes beyond is sent by sendfile.
	mapCountMax = 16 << 10
)

var mapCount atomic.Int64

// maps is the mapping of one file. The zero value has none.
type maps struct {
	mu  sync.Mutex
	now *mapping
}

// mapping is the file from its start, beyond its end too, so that the file may grow into it. Only the
// kernel reads through it, in write(2): where the file was cut, this gives EFAULT, while a load by this
// process would be a SIGBUS. Hence no Go code may ever touch the bytes.
type mapping struct {
	p     []byte
	users int // sends under way, and one for being current
}

// take returns a mapping that reaches to end, nil where there is no room for one. The caller gives it back.
func (m *maps) take(fd int, end int64) *mapping {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now == nil || int64(len(m.now.p)) < end {
		next := newMapping(fd, end, m.now)
		if next == nil {
			return nil
		}
		m.retire()
		m.now = next
	}
	m.now.users++
	return m.now
}

// newMapping doubles what there was, so that a growing file is mapped anew only seldom.
func newMapping(fd int, end int64, old *mapping) *mapping {
	const pageBytesMax = 64 << 10
	n := max(end, mapBytesMin)
	if old != nil {
		n = max(n, 2*int64(len(old.p)))
	}
	n = (n + pageBytesMax - 1) &^ (pageBytesMax - 1)
	if bits.UintSize < 64 { // the address space is too small to map logs
		return nil
	}
	if mapCount.Add(1) > mapCountMax {
		mapCount.Add(-1)
		return nil
	}
	p, err := unix.Mmap(fd, 0, int(n), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		mapCount.Add(-1)
		return nil
	}
	return &mapping{p: p, users: 1}
}

// retire lets the current mapping go once its sends have ended. mu is held.
func (m *maps) retire() {
	if m.now != nil {
		m.now.leave()
		m.now = nil
	}
}

func (p *mapping) leave() {
	if p.users--; p.users == 0 {
		_ = unix.Munmap(p.p)
		mapCount.Add(-1)
	}
}

// give ends a send.
func (m *maps) give(p *mapping) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.leave()
}

// close is for the end of the file, when no send is under way.
func (m *maps) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.retire()
}

// drop takes the range's pages out of the process, since pages that are mapped stay in the page cache
// whatever posix_fadvise(2) is told.
func (m *maps) drop(pos, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now == nil || pos >= int64(len(m.now.p)) {
		return
	}
	from := pos &^ (pageBytes - 1)
	to := min(pos+n, int64(len(m.now.p)))
	_ = unix.Madvise(m.now.p[from:to], unix.MADV_DONTNEED)
}

// write sends at most n bytes from pos. The last page of a file reads as zeros beyond the file's end, so
// the size is asked first; and again afterwards, since the file may have been cut meanwhile, and zeros must
// not pass for records. 0 bytes without an error: the file ends before them.
func (p *mapping) write(sock, fd int, pos int64, n int) (int, error) {
	size, err := sizeOf(fd)
	if err != nil || pos >= size {
		return 0, err
	}
	n = int(min(int64(n), size-pos))
	sent, err := unix.Write(sock, p.p[pos:pos+int64(n)])
	if err != nil {
		return 0, err
	}
	if size, err = sizeOf(fd); err != nil || pos+int64(sent) > size {
		return 0, err
	}
	return sent, nil
}

func sizeOf(fd int) (int64, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return st.Size, err
}
