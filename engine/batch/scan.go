package batch

import (
	"fmt"
	"io"
	"math"
)

// scan walks over records without looking at keys and values, on bytes that come in chunks: one chunk
// when they are not compressed, else what an inflater gives. It keeps nothing of a record.
//
// A record that lies in one chunk takes the quick way (whole); one that crosses chunks, is larger than
// a chunk, or is wrong in any way is read again byte by byte (slow), which is where errors are made.
type scan struct {
	in   *inflater // nil: p is everything
	p    []byte    // the chunk
	pos  int       // in p
	base int64     // position of p[0]
	left int64     // of the record that slow is in

	baseTimestamp int64
	lo, hi        int64 // timestamps that are accepted, inclusive
	keyRequired   bool

	maxTimestamp int64
	maxDelta     int32
}

func newScan(b Batch, l Limits) scan {
	lo, hi := l.timestamps()
	return scan{
		baseTimestamp: b.BaseTimestamp(), lo: lo, hi: hi, keyRequired: l.KeyRequired,
		maxTimestamp: noTimestamp,
	}
}

// start is the position of the first record.
func (s *scan) start() int64 {
	if s.in == nil {
		return HeaderBytes
	}
	return 0
}

// run walks over count records, whose offset deltas must be 0, 1, 2 …, and the end behind them.
func (s *scan) run(count int32) error {
	for i := s.whole(0, count); i < count; i = s.whole(i+1, count) {
		if err := s.slow(i); err != nil {
			return err
		}
	}
	more, err := s.more()
	if err != nil {
		return err
	}
	if more {
		return s.fail(ErrInvalid, -1, "records", "go on after the last of %d", count)
	}
	return nil
}

// whole walks over records from the i-th as long as they lie in the chunk and are right; it returns
// the index of the first that does not or is not.
func (s *scan) whole(i, count int32) int32 {
	p, pos := s.p, s.pos
	for ; i < count; i++ {
		n, at := varint(p, pos)
		if at < 0 || n < 1 || int(n) > len(p)-at {
			break
		}
		r := p[:at+int(n)]
		delta, at := varlong(r, at+1)
		offset, at := varint(r, at)
		key, at := varint(r, at)
		if at < 0 || offset != i || key < -1 || int(key) > len(r)-at || key < 0 && s.keyRequired {
			break
		}
		value, at := varint(r, at+max(int(key), 0))
		if at < 0 || value < -1 || int(value) > len(r)-at {
			break
		}
		headers, at := varint(r, at+max(int(value), 0))
		if headers != 0 {
			at = skipHeaders(r, at, headers)
		}
		if at != len(r) {
			break
		}
		t := s.baseTimestamp + delta
		if t < s.lo || t > s.hi {
			if t != noTimestamp {
				break
			}
		}
		if t > s.maxTimestamp {
			s.maxTimestamp, s.maxDelta = t, i
		}
		pos = at
	}
	s.pos = pos
	return i
}

// skipHeaders returns the position behind n headers, or -1.
func skipHeaders(r []byte, at int, n int32) int {
	if n < 0 || at < 0 || int(n) > len(r)-at {
		return -1
	}
	for ; n > 0; n-- {
		var size int32
		if size, at = varint(r, at); at < 0 || size < 0 || int(size) > len(r)-at {
			return -1
		}
		if size, at = varint(r, at+int(size)); at < 0 || size < -1 || int(size) > len(r)-at {
			return -1
		}
		at += max(int(size), 0)
	}
	return at
}

// slow reads the i-th record byte by byte, across chunks.
func (s *scan) slow(i int32) error {
	s.left = math.MaxInt64
	n, err := s.num(i, "record length", 1, math.MaxInt32)
	if err != nil {
		return err
	}
	s.left = n
	if err := s.skip(i, "attributes", 1); err != nil {
		return err
	}
	delta, err := s.num(i, "timestamp delta", math.MinInt64, math.MaxInt64)
	if err != nil {
		return err
	}
	if _, err := s.num(i, "offset delta", int64(i), int64(i)); err != nil {
		return err
	}
	if err := s.keyValue(i); err != nil {
		return err
	}
	if err := s.headers(i); err != nil {
		return err
	}
	if s.left != 0 {
		return s.fail(ErrInvalid, i, "record length", "%d leaves %d bytes over", n, s.left)
	}
	t := s.baseTimestamp + delta
	if t != noTimestamp && (t < s.lo || t > s.hi) {
		return s.fail(ErrTimestamp, i, "timestamp", "%d is not within %d and %d", t, s.lo, s.hi)
	}
	if t > s.maxTimestamp {
		s.maxTimestamp, s.maxDelta = t, i
	}
	return nil
}

func (s *scan) keyValue(i int32) error {
	key, err := s.num(i, "key length", -1, math.MaxInt32)
	if err != nil {
		return err
	}
	if key < 0 && s.keyRequired {
		return s.fail(ErrKeyRequired, i, "key", "is null")
	}
	if err := s.skip(i, "key", key); err != nil {
		return err
	}
	value, err := s.num(i, "value length", -1, math.MaxInt32)
	if err != nil {
		return err
	}
	return s.skip(i, "value", value)
}

func (s *scan) headers(i int32) error {
	n, err := s.num(i, "header count", 0, s.left)
	if err != nil {
		return err
	}
	for ; n > 0; n-- {
		key, err := s.num(i, "header key length", 0, math.MaxInt32)
		if err != nil {
			return err
		}
		if err := s.skip(i, "header key", key); err != nil {
			return err
		}
		value, err := s.num(i, "header value length", -1, math.MaxInt32)
		if err != nil {
			return err
		}
		if err := s.skip(i, "header value", value); err != nil {
			return err
		}
	}
	return nil
}

// num reads one varint of the record, within lo and hi, inclusive.
func (s *scan) num(i int32, field string, lo, hi int64) (int64, error) {
	size := 5
	if lo == math.MinInt64 {
		size = 10
	}
	var raw [10]byte
	for n := range size {
		if err := s.need(i, field, 1); err != nil {
			return 0, err
		}
		raw[n] = s.p[s.pos]
		s.pos++
		s.left--
		if raw[n] >= 0x80 {
			continue
		}
		v, ok := decodeNum(raw[:n+1], size)
		if !ok {
			break
		}
		if v < lo || v > hi {
			return 0, s.fail(ErrInvalid, i, field, "is %d, which is not within %d and %d", v, lo, hi)
		}
		return v, nil
	}
	return 0, s.fail(ErrInvalid, i, field, "is a varint that is too long")
}

func decodeNum(raw []byte, size int) (int64, bool) {
	if size == 5 {
		v, at := varint(raw, 0)
		return int64(v), at == len(raw)
	}
	v, at := varlong(raw, 0)
	return v, at == len(raw)
}

// skip passes over n bytes of the record; a length of -1 is none.
func (s *scan) skip(i int32, field string, n int64) error {
	for n > 0 {
		if err := s.need(i, field, n); err != nil {
			return err
		}
		step := min(n, int64(len(s.p)-s.pos))
		s.pos += int(step)
		s.left -= step
		n -= step
	}
	return nil
}

// need makes sure that the record has n more bytes, and the chunk at least one.
func (s *scan) need(i int32, field string, n int64) error {
	if n > s.left {
		return s.fail(ErrInvalid, i, field, "needs %d bytes, the record has %d left", n, s.left)
	}
	more, err := s.more()
	if err != nil {
		return err
	}
	if !more {
		return s.fail(ErrInvalid, i, field, "lies behind the end of the records")
	}
	return nil
}

// more makes sure that the chunk has a byte at pos, fetching the next one; false at the end.
func (s *scan) more() (bool, error) {
	for s.pos == len(s.p) {
		if s.in == nil {
			return false, nil
		}
		p, err := s.in.next()
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		s.base += int64(len(s.p))
		s.p, s.pos = p, 0
	}
	return true, nil
}

func (s *scan) fail(cause error, record int32, field, format string, args ...any) error {
	return &CorruptError{
		Pos: s.base + int64(s.pos), Field: field, Record: record,
		Detail: fmt.Sprintf(format, args...), Cause: cause,
	}
}
