package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// slabBytes is how much input is read into one piece of memory; records are views on it.
const slabBytes = 256 << 10

// splitter cuts a stream at a delimiter. What it returns stays valid: a piece of memory is never used
// twice, and goes when the last record in it was sent.
type splitter struct {
	r     io.Reader
	delim []byte
	max   int // of one record; more is an error
	slab  []byte
	from  int // start of what was not returned yet
	to    int // end of what was read
	seen  int // up to where no delimiter begins
	count int
	eof   bool
}

func newSplitter(r io.Reader, delim string, max int) *splitter {
	return &splitter{r: r, delim: []byte(delim), max: max, slab: make([]byte, slabBytes)}
}

// next returns the next piece without its delimiter, io.EOF after the last. A last piece without a
// delimiter counts; nothing behind the last delimiter does not.
func (s *splitter) next() ([]byte, error) {
	for {
		if i := bytes.Index(s.slab[s.seen:s.to], s.delim); i >= 0 {
			end := s.seen + i
			return s.take(end, end+len(s.delim))
		}
		// A delimiter of several bytes may have begun at the end.
		s.seen = max(s.from, s.to-len(s.delim)+1)
		if s.eof {
			if s.from == s.to {
				return nil, io.EOF
			}
			return s.take(s.to, s.to)
		}
		if s.to-s.from > s.max+len(s.delim) {
			return nil, s.tooLarge(s.to - s.from)
		}
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
}

func (s *splitter) take(end, next int) ([]byte, error) {
	p := s.slab[s.from:end:end]
	s.from, s.seen = next, next
	s.count++
	if len(p) > s.max {
		return nil, s.tooLarge(len(p))
	}
	return p, nil
}

func (s *splitter) tooLarge(n int) error {
	return fmt.Errorf("record %d of the input has %d bytes or more; at most %d go into one", s.count+1, n, s.max)
}

// fill reads more, into new memory when the old is full; what is pending moves along.
func (s *splitter) fill() error {
	if s.to == len(s.slab) {
		pending := s.slab[s.from:s.to]
		slab := make([]byte, max(slabBytes, 2*len(pending)))
		copy(slab, pending)
		s.seen -= s.from
		s.slab, s.from, s.to = slab, 0, len(pending)
	}
	for range 100 {
		n, err := s.r.Read(s.slab[s.to:])
		s.to += n
		if errors.Is(err, io.EOF) {
			s.eof = true
			return nil
		}
		if n > 0 || err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}
