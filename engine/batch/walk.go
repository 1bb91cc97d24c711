package batch

import (
	"fmt"
	"io"
)

// Record is one decoded record; its slices are views on the (decompressed) bytes.
type Record struct {
	Attributes     int8
	TimestampDelta int64
	OffsetDelta    int32
	Key, Value     []byte // nil: null
	Headers        []Header
}

// Header is one record header. A null value is nil.
type Header struct {
	Key   string
	Value []byte
}

// Walk calls fn for each record; the Record is reused between calls, its bytes are valid during fn.
// maxBytes bounds the decompressed size; 0 is DefaultDecompressedBytesMax. fn's error stops the walk
// and is returned. fn must not walk or check another batch.
//
// Walk wants sound records, as many as the header says, and nothing behind them. It takes any batch v2
// that a log may hold: offset deltas with holes, as compaction leaves them, and no records at all.
// It does not look at the CRC.
func Walk(b Batch, maxBytes int64, fn func(*Record) error) error {
	if err := checkFrame(b); err != nil {
		return err
	}
	count := b.Count()
	if count < 0 {
		return bad(ErrInvalid, posCount, "record count", "is %d", count)
	}
	c := b.Codec()
	if c == None {
		w := walk{p: b.Records(), base: HeaderBytes}
		return w.run(count, fn)
	}
	if !c.Valid() {
		return bad(ErrCodec, posAttributes, "attributes", "name codec %d", c)
	}
	if count == 0 && len(b) == HeaderBytes {
		return nil // compaction emptied it; there is no stream to open
	}
	in, err := openInflater(c, b.Records(), maxBytes)
	if err != nil {
		return err
	}
	defer in.close()
	w := walk{in: in}
	return w.run(count, fn)
}

// walk reads whole records: views on the chunk, or copies of those that cross chunks.
type walk struct {
	in   *inflater // nil: p is everything
	p    []byte    // the chunk
	pos  int
	base int64
	copy []byte // a record that crosses chunks
	rec  Record
}

func (w *walk) run(count int32, fn func(*Record) error) error {
	for i := range count {
		at := w.base + int64(w.pos)
		r, err := w.record(i)
		if err != nil {
			return err
		}
		if field := w.rec.decode(r); field != "" {
			return &CorruptError{Pos: at, Field: field, Record: i, Detail: "does not fit the record", Cause: ErrInvalid}
		}
		if err := fn(&w.rec); err != nil {
			return err
		}
	}
	if w.pos == len(w.p) {
		if err := w.fetch(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
	return w.fail(-1, "records", "go on after the last of %d", count)
}

// record returns the bytes of the next record behind its length.
func (w *walk) record(i int32) ([]byte, error) {
	n, at := varint(w.p, w.pos)
	if at < 0 {
		if err := w.join(i, 5); err != nil {
			return nil, err
		}
		n, at = varint(w.p, w.pos)
	}
	if at < 0 || n < 1 {
		return nil, w.fail(i, "record length", "is no length (%d)", n)
	}
	w.pos = at
	if int(n) <= len(w.p)-w.pos {
		w.pos += int(n)
		return w.p[w.pos-int(n) : w.pos], nil
	}
	r := w.copy[:0]
	for len(r) < int(n) {
		if w.pos == len(w.p) {
			if err := w.fetch(); err == io.EOF {
				return nil, w.fail(i, "record", "has %d of %d bytes", len(r), n)
			} else if err != nil {
				return nil, err
			}
		}
		step := min(int(n)-len(r), len(w.p)-w.pos)
		r = append(r, w.p[w.pos:w.pos+step]...)
		w.pos += step
	}
	w.copy = r
	return r, nil
}

// join puts what is left of the chunk before the next one, so that at least n bytes are there, unless
// the records end before.
func (w *walk) join(i int32, n int) error {
	for len(w.p)-w.pos < n {
		rest := append([]byte(nil), w.p[w.pos:]...)
		err := w.fetch()
		if err == io.EOF {
			if len(rest) == 0 {
				return w.fail(i, "record", "is missing")
			}
			return nil
		}
		if err != nil {
			return err
		}
		w.p = append(rest, w.p...)
	}
	return nil
}

// fetch takes the next chunk, which is never empty; io.EOF at the end.
func (w *walk) fetch() error {
	if w.in == nil {
		return io.EOF
	}
	for {
		p, err := w.in.next()
		if err != nil {
			return err
		}
		if len(p) > 0 {
			w.base += int64(w.pos)
			w.p, w.pos = p, 0
			return nil
		}
	}
}

func (w *walk) fail(i int32, field, format string, args ...any) error {
	return &CorruptError{
		Pos: w.base + int64(w.pos), Field: field, Record: i,
		Detail: fmt.Sprintf(format, args...), Cause: ErrInvalid,
	}
}

// decode reads r, a whole record behind its length. It returns the name of the field that does not
// fit, or "".
func (rec *Record) decode(r []byte) string {
	var n int32
	rec.Attributes = int8(r[0])
	at := 1
	if rec.TimestampDelta, at = varlong(r, at); at < 0 {
		return "timestamp delta"
	}
	if rec.OffsetDelta, at = varint(r, at); at < 0 {
		return "offset delta"
	}
	if rec.Key, at = bytesAt(r, at); at < 0 {
		return "key"
	}
	if rec.Value, at = bytesAt(r, at); at < 0 {
		return "value"
	}
	if n, at = varint(r, at); at < 0 || n < 0 || int(n) > len(r)-at {
		return "header count"
	}
	rec.Headers = rec.Headers[:0]
	for ; n > 0; n-- {
		var key, value []byte
		if key, at = bytesAt(r, at); at < 0 || key == nil {
			return "header key"
		}
		if value, at = bytesAt(r, at); at < 0 {
			return "header value"
		}
		rec.Headers = append(rec.Headers, Header{Key: string(key), Value: value})
	}
	if at != len(r) {
		return "record length"
	}
	return ""
}

// bytesAt reads a length and as many bytes at pos; nil for a length of -1, empty for 0.
func bytesAt(p []byte, pos int) ([]byte, int) {
	n, at := varint(p, pos)
	switch {
	case at < 0 || n < -1 || int(n) > len(p)-at:
		return nil, -1
	case n == -1:
		return nil, at
	}
	return p[at : at+int(n) : at+int(n)], at + int(n)
}
