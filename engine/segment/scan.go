package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"platter/engine/batch"
)

// ReaderAt is what scans read from: a disk.File, or an os.File in tests.
type ReaderAt = io.ReaderAt

// Causes of a CorruptError, beside those of package batch.
var (
	ErrTorn   = errors.New("batch is cut short by the end of the segment")
	ErrOffset = errors.New("batch offset is impossible here")
	ErrIndex  = errors.New("index contradicts the log")
)

// CorruptError is a batch or an index entry that is not what it should be.
type CorruptError struct {
	Path  string // "" when unknown
	Pos   int64
	Cause error // ErrTorn, ErrOffset, ErrIndex, batch.ErrCRC, …
}

func (e *CorruptError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("corrupt at %d: %v", e.Pos, e.Cause)
	}
	return fmt.Sprintf("%s: corrupt at %d: %v", e.Path, e.Pos, e.Cause)
}

func (e *CorruptError) Unwrap() error { return e.Cause }

// ScanOptions: the zero value reads headers only and takes any whole batch.
type ScanOptions struct {
	CRC           bool  // read whole batches and check their CRC32C
	Whole         bool  // Batch() gives whole batches, not headers alone
	BatchBytesMax int64 // a longer batch is corrupt; 0: 1 GiB
	NextOffset    int64 // batches must start at or above it
	LimitOffset   int64 // batches must end below it; 0: no limit

	near bool // the scan is expected to end soon: read little at first
}

// Scanner walks the batches of a .log file in order, with bounded memory: a chunk, or one batch when
// whole batches are wanted. Close gives its buffer back.
//
//	for sc.Next() { use sc.Batch(), sc.Pos() }
//	if err := sc.Err(); err != nil { … }
type Scanner struct {
	r    ReaderAt
	end  int64 // of the bytes to scan
	o    ScanOptions
	pos  int64 // of the current batch
	next int64 // position behind it
	off  int64 // offset behind it
	err  error

	head  [batch.HeaderBytes]byte // of the current batch
	cur   batch.Batch
	win   []byte // what of the file is buffered, from winAt
	winAt int64
	chunk *[]byte
}

const (
	chunkBytes      = 256 << 10
	batchBytesLimit = 1 << 30
	// A header-only scan over batches of this size and more reads just the headers.
	sparseBatchBytes = 16 << 10
	sparseReadBytes  = 512
	nearReadBytes    = 4 << 10
	denseReadBytes   = 64 << 10
	// crcPos is where a batch's CRC stands, crcFromPos where the bytes start that it covers.
	crcPos     = 17
	crcFromPos = 21
)

var (
	chunks     = sync.Pool{New: func() any { b := make([]byte, chunkBytes); return &b }}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// NewScanner scans [pos, end) of r.
func NewScanner(r ReaderAt, pos, end int64, o ScanOptions) *Scanner {
	s := new(Scanner)
	s.init(r, pos, end, o)
	return s
}

func (s *Scanner) init(r ReaderAt, pos, end int64, o ScanOptions) {
	if o.BatchBytesMax <= 0 {
		o.BatchBytesMax = batchBytesLimit
	}
	*s = Scanner{r: r, end: end, o: o, pos: pos, next: pos, off: o.NextOffset, chunk: chunks.Get().(*[]byte)}
}

// Close ends the scan; the Scanner's batch is not used any more.
func (s *Scanner) Close() {
	if s.chunk != nil {
		if len(*s.chunk) == chunkBytes { // one that grew to hold a whole batch is not worth keeping
			chunks.Put(s.chunk)
		}
		s.chunk, s.win, s.cur = nil, nil, nil
	}
}

// Next moves to the next batch; false at the end or at the first bad one (see Err).
func (s *Scanner) Next() bool {
	if s.err != nil || s.next >= s.end || s.chunk == nil {
		return false
	}
	size, err := s.readHeader(s.next)
	if err == nil {
		s.cur = s.head[:]
		if s.o.Whole {
			s.cur, err = s.view(s.next, size, chunkBytes)
		}
	}
	if err == nil && s.o.CRC {
		err = s.checkCRC(s.next, size)
	}
	if err != nil {
		s.err, s.cur = err, nil
		return false
	}
	s.pos, s.next = s.next, s.next+size
	s.off = batch.Batch(s.head[:]).LastOffset() + 1
	return true
}

// readHeader reads the header at pos into head and checks that a whole batch can stand there.
func (s *Scanner) readHeader(pos int64) (size int64, err error) {
	if s.end-pos < batch.HeaderBytes {
		return 0, &CorruptError{Pos: pos, Cause: ErrTorn}
	}
	ahead := int64(denseReadBytes)
	if s.o.CRC || s.o.Whole {
		ahead = chunkBytes
	} else if s.next-s.pos >= sparseBatchBytes {
		ahead = sparseReadBytes
	} else if s.o.near {
		ahead = min(max(2*int64(len(s.win)), nearReadBytes), denseReadBytes)
	}
	p, err := s.view(pos, batch.HeaderBytes, ahead)
	if err != nil {
		return 0, err
	}
	copy(s.head[:], p)
	n, err := batch.SizeOf(p)
	if err != nil {
		return 0, &CorruptError{Pos: pos, Cause: err}
	}
	size = int64(n)
	b := batch.Batch(s.head[:])
	switch {
	case size > s.o.BatchBytesMax:
		return 0, &CorruptError{Pos: pos, Cause: batch.ErrLength}
	case size > s.end-pos:
		return 0, &CorruptError{Pos: pos, Cause: ErrTorn}
	case b.BaseOffset() < s.off || b.LastOffsetDelta() < 0 || b.LastOffset() < b.BaseOffset(),
		s.o.LimitOffset > 0 && b.LastOffset() >= s.o.LimitOffset,
		s.cur != nil && b.BaseOffset() > s.off && !s.gapFits(pos+size, b.LastOffset()):
		return 0, &CorruptError{Pos: pos, Cause: ErrOffset}
	}
	return size, nil
}

// gapFits looks at the batch behind one that does not join the batch before it. The CRC does not cover
// the offset: when the one behind goes on from further below, it is this one's offset that is wrong.
func (s *Scanner) gapFits(pos, last int64) bool {
	if s.end-pos < batch.HeaderBytes {
		return true
	}
	p, err := s.view(pos, batch.HeaderBytes, sparseReadBytes)
	if err != nil {
		return true // told when it is read in turn
	}
	behind := batch.Batch(p)
	if _, err := batch.SizeOf(p); err != nil || behind.BaseOffset() < s.off {
		return true
	}
	return behind.BaseOffset() > last
}

// view gives n bytes at pos; when they have to be read, ahead bytes are read with them. Valid until the
// next view.
func (s *Scanner) view(pos, n, ahead int64) ([]byte, error) {
	if from := pos - s.winAt; from >= 0 && from+n <= int64(len(s.win)) {
		return s.win[from : from+n], nil
	}
	want := min(max(n, ahead), s.end-pos)
	buf := *s.chunk
	if want > int64(len(buf)) {
		buf = make([]byte, want)
		s.chunk = &buf
	}
	got, err := s.r.ReadAt(buf[:want], pos)
	if int64(got) < n {
		s.win = nil
		if err == nil || errors.Is(err, io.EOF) {
			err = &CorruptError{Pos: pos, Cause: ErrTorn}
		}
		return nil, err
	}
	s.win, s.winAt = buf[:got], pos
	return s.win[:n], nil
}

func (s *Scanner) checkCRC(pos, size int64) error {
	var sum uint32
	for at := pos + crcFromPos; at < pos+size; {
		n := min(pos+size-at, chunkBytes)
		if in := s.winAt + int64(len(s.win)) - at; in > 0 && in < n {
			n = in // take what is buffered first
		}
		p, err := s.view(at, n, chunkBytes)
		if err != nil {
			return err
		}
		sum = crc32.Update(sum, castagnoli, p)
		at += n
	}
	if sum != binary.BigEndian.Uint32(s.head[crcPos:]) {
		return &CorruptError{Pos: pos, Cause: batch.ErrCRC}
	}
	return nil
}

// Batch is the current batch, valid until Next; only its header (batch.HeaderBytes) unless Whole.
func (s *Scanner) Batch() batch.Batch { return s.cur }

// Pos is where the current batch starts, SizeBytes its size.
func (s *Scanner) Pos() int64       { return s.pos }
func (s *Scanner) SizeBytes() int64 { return s.next - s.pos }

// End is the position behind the last good batch, NextOffset the offset behind it.
func (s *Scanner) End() int64        { return s.next }
func (s *Scanner) NextOffset() int64 { return s.off }

// Err is nil at a clean end, a *CorruptError at a bad batch, or the read's error.
func (s *Scanner) Err() error { return s.err }
