package batch

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
)

// patched is a batch with one change, and the CRC made right again.
func patched(b Batch, change func(Batch)) Batch {
	c := Batch(clone(b))
	change(c)
	if len(c) >= HeaderBytes {
		c.setCRC()
	}
	return c
}

// withRecords is a batch whose records are the given bytes, with all lengths right.
func withRecords(count int32, records []byte) Batch {
	b := append(make(Batch, HeaderBytes), records...)
	b[posMagic] = magicV2
	b.setLength()
	binary.BigEndian.PutUint64(b[posProducerID:], math.MaxUint64)
	binary.BigEndian.PutUint32(b[posLastOffsetDelta:], uint32(count-1))
	binary.BigEndian.PutUint32(b[posCount:], uint32(count))
	b.setCRC()
	return b
}

func put32(pos int, v int32) func(Batch) {
	return func(b Batch) { binary.BigEndian.PutUint32(b[pos:], uint32(v)) }
}

// good is one record: length 8, attributes, times and offset 0, key "k", value "v", no header.
var good = []byte{16, 0, 0, 0, 2, 'k', 2, 'v', 0}

func TestCheckRefuses(t *testing.T) {
	b := build(t, None, rec{T: 1000, Key: []byte("k"), Value: []byte("v")}, rec{T: 2000, Value: []byte("w")})
	now := Limits{CheckTimestamps: true, NowMs: 1500, BeforeMaxMs: 600, AfterMaxMs: 600}
	cases := map[string]struct {
		b     Batch
		l     Limits
		cause error
		field string
	}{
		"nothing":                {b: Batch{}, cause: ErrTruncated, field: "batch length"},
		"cut in the header":      {b: b[:40], cause: ErrTruncated, field: "batch"},
		"cut in the records":     {b: b[:len(b)-1], cause: ErrTruncated, field: "batch"},
		"longer than its length": {b: append(clone(b), 0), cause: ErrLength, field: "batch length"},
		"length too small":       {b: patched(b, put32(posLength, 48)), cause: ErrLength, field: "batch length"},
		"length negative":        {b: patched(b, put32(posLength, -1)), cause: ErrLength, field: "batch length"},
		"length of 2^31-1":       {b: patched(b, put32(posLength, math.MaxInt32)), cause: ErrLength, field: "batch length"},
		"magic 0":                {b: patched(b, func(b Batch) { b[posMagic] = 0 }), cause: ErrMagic, field: "magic"},
		"magic 1":                {b: patched(b, func(b Batch) { b[posMagic] = 1 }), cause: ErrMagic, field: "magic"},
		"magic 3":                {b: patched(b, func(b Batch) { b[posMagic] = 3 }), cause: ErrMagic, field: "magic"},
		"too large":              {b: b, l: Limits{BatchBytesMax: len(b) - 1}, cause: ErrTooLarge, field: "batch"},
		"a bit flipped":          {b: append(clone(b[:len(b)-1]), b[len(b)-1]^1), cause: ErrCRC, field: "CRC32C"},
		"codec 5":                {b: patched(b, func(b Batch) { b[posAttributes+1] |= 5 }), cause: ErrCodec, field: "attributes"},
		"LogAppendTime":          {b: patched(b, func(b Batch) { b[posAttributes+1] |= attrLogAppendTime }), cause: ErrTimestamp, field: "attributes"},
		"count 0":                {b: patched(b, put32(posCount, 0)), cause: ErrInvalid, field: "record count"},
		"count -1":               {b: patched(b, put32(posCount, -1)), cause: ErrInvalid, field: "record count"},
		"count above the delta":  {b: patched(b, put32(posCount, 3)), cause: ErrInvalid, field: "last offset delta"},
		"delta of 2^31-1":        {b: patched(b, put32(posLastOffsetDelta, math.MaxInt32)), cause: ErrInvalid, field: "last offset delta"},
		"delta and count -1":     {b: patched(patched(b, put32(posLastOffsetDelta, -1)), put32(posCount, 0)), cause: ErrInvalid, field: "record count"},
		"fewer records":          {b: withRecords(1, append(clone(good), good...)), cause: ErrInvalid, field: "records"},
		"more records":           {b: withRecords(2, good), cause: ErrInvalid, field: "record length"},
		"2^31-1 records":         {b: withRecords(math.MaxInt32, good), cause: ErrInvalid, field: "record length"},
		"no sequence":            {b: patched(b, func(b Batch) { binary.BigEndian.PutUint64(b[posProducerID:], 5) }), cause: ErrInvalid, field: "base sequence"},
		"null key":               {b: b, l: Limits{KeyRequired: true}, cause: ErrKeyRequired, field: "key"},
		"too old":                {b: b, l: Limits{CheckTimestamps: true, NowMs: 1500, BeforeMaxMs: 499, AfterMaxMs: 600}, cause: ErrTimestamp, field: "timestamp"},
		"too new":                {b: b, l: Limits{CheckTimestamps: true, NowMs: 1500, BeforeMaxMs: 600, AfterMaxMs: 499}, cause: ErrTimestamp, field: "timestamp"},
		"microseconds":           {b: build(t, None, rec{T: 1_800_000_000_000_000}), l: now, cause: ErrTimestamp, field: "timestamp"},
		"record length 0":        {b: withRecords(1, []byte{0}), cause: ErrInvalid, field: "record length"},
		"record length -1":       {b: withRecords(1, []byte{1}), cause: ErrInvalid, field: "record length"},
		"record too long":        {b: withRecords(1, append([]byte{18}, good[1:]...)), cause: ErrInvalid, field: ""},
		"record too short":       {b: withRecords(1, append([]byte{14}, good[1:]...)), cause: ErrInvalid, field: ""},
		"wrong offset delta":     {b: withRecords(1, []byte{16, 0, 0, 2, 2, 'k', 2, 'v', 0}), cause: ErrInvalid, field: "offset delta"},
		"key length -2":          {b: withRecords(1, []byte{16, 0, 0, 0, 3, 'k', 2, 'v', 0}), cause: ErrInvalid, field: "key length"},
		"key of 2^31-1":          {b: withRecords(1, []byte{16, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0x0f}), cause: ErrInvalid, field: "key"},
		"value beyond":           {b: withRecords(1, []byte{16, 0, 0, 0, 2, 'k', 6, 'v', 0}), cause: ErrInvalid, field: "value"},
		"header count -1":        {b: withRecords(1, []byte{16, 0, 0, 0, 2, 'k', 2, 'v', 1}), cause: ErrInvalid, field: "header count"},
		"2^31-1 headers":         {b: withRecords(1, []byte{20, 0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f}), cause: ErrInvalid, field: "header count"},
		"null header key":        {b: withRecords(1, []byte{16, 0, 0, 0, 1, 1, 2, 1, 1}), cause: ErrInvalid, field: "header key length"},
		"varint of 6 bytes":      {b: withRecords(1, []byte{0x90, 0x80, 0x80, 0x80, 0x80, 0, 0}), cause: ErrInvalid, field: "record length"},
		"33 bits":                {b: withRecords(1, []byte{0x90, 0x80, 0x80, 0x80, 0x10, 0, 0}), cause: ErrInvalid, field: "record length"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Check(c.b, c.l)
			if !errors.Is(err, c.cause) {
				t.Fatalf("%v, want %v", err, c.cause)
			}
			var e *CorruptError
			if !errors.As(err, &e) || c.field != "" && e.Field != c.field {
				t.Errorf("%v: blamed on %q, want %q", err, e.Field, c.field)
			}
			if c.cause == ErrInvalid && strings.Contains(err.Error(), "%!") {
				t.Error(err)
			}
			// The same records are as wrong inside every codec.
			if len(c.b) < HeaderBytes || CheckCRC(c.b) != nil || c.b.Codec() != None || c.cause == ErrTooLarge {
				return
			}
			for _, codec := range codecs[1:] {
				z, err := Recompress(c.b, codec, 0, 0)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := Check(z, c.l); !errors.Is(err, c.cause) {
					t.Errorf("%v: %v, want %v", codec, err, c.cause)
				}
			}
		})
	}
}

func TestCheckAccepts(t *testing.T) {
	b := build(t, None, rec{T: 1000, Key: []byte("k")}, rec{T: 2000, Key: []byte("l")})
	cases := map[string]struct {
		b Batch
		l Limits
	}{
		"bounds are inclusive":       {b, Limits{CheckTimestamps: true, NowMs: 1500, BeforeMaxMs: 500, AfterMaxMs: 500}},
		"Kafka's unbounded":          {b, Limits{CheckTimestamps: true, NowMs: 1 << 42, BeforeMaxMs: math.MaxInt64, AfterMaxMs: math.MaxInt64}},
		"no timestamp has no bound":  {build(t, None, rec{T: -1}), Limits{CheckTimestamps: true, NowMs: 1 << 42}},
		"bounds that are not wanted": {b, Limits{NowMs: 1 << 42}},
		"as large as allowed":        {b, Limits{BatchBytesMax: len(b), KeyRequired: true}},
		"lengths longer than needed": {withRecords(1, []byte{0x90, 0, 0, 0, 0, 2, 'k', 2, 'v', 0}), Limits{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Check(c.b, c.l); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestHeaderOnly(t *testing.T) {
	b := build(t, Zstd, rec{T: 1000}, rec{T: 3000}, rec{T: 2000})
	l := Limits{HeaderOnly: true}
	garbage := patched(b, func(b Batch) { b[len(b)-1] ^= 0xff })
	info, err := Check(garbage, l)
	if err != nil || info.MaxTimestampMs != 3000 || info.OffsetDeltaMaxTimestamp != 2 {
		t.Errorf("%+v, %v", info, err)
	}
	l.CheckTimestamps, l.NowMs = true, 1000
	if _, err := Check(garbage, l); !errors.Is(err, ErrTimestamp) {
		t.Errorf("%v, want %v", err, ErrTimestamp)
	}
	plain := patched(build(t, None, rec{T: 1, Value: []byte("v")}), put32(HeaderBytes, -1))
	if _, err := Check(plain, Limits{HeaderOnly: true}); !errors.Is(err, ErrInvalid) {
		t.Errorf("uncompressed records are not walked: %v", err)
	}
}

// Kafka recomputes the header's max timestamp from the records; the appender does it with what Check says.
func TestMaxTimestampThatLies(t *testing.T) {
	b := patched(build(t, LZ4, rec{T: 1000}, rec{T: 3000}, rec{T: 2000}), func(b Batch) {
		binary.BigEndian.PutUint64(b[posMaxTimestamp:], 99)
	})
	info, err := Check(b, Limits{})
	if err != nil || info.MaxTimestampMs != 3000 || info.OffsetDeltaMaxTimestamp != 1 {
		t.Fatalf("%+v, %v", info, err)
	}
	b.SetMaxTimestamp(info.MaxTimestampMs)
	if err := CheckCRC(b); err != nil || b.MaxTimestamp() != 3000 {
		t.Errorf("max timestamp %d, %v", b.MaxTimestamp(), err)
	}
}

// What Check refuses may be in a log all the same: compaction leaves holes, or nothing at all.
func TestWalkTakesWhatLogsHold(t *testing.T) {
	hole := withRecords(1, []byte{16, 0, 0, 6, 2, 'k', 2, 'v', 0})
	put32(posLastOffsetDelta, 9)(hole)
	n := 0
	err := Walk(hole, 0, func(r *Record) error {
		n++
		if r.OffsetDelta != 3 || string(r.Key) != "k" {
			t.Errorf("%+v", r)
		}
		return nil
	})
	if err != nil || n != 1 {
		t.Errorf("%d records, %v", n, err)
	}
	for _, c := range codecs {
		empty := withRecords(0, nil)
		put32(posLastOffsetDelta, 9)(empty)
		empty[posAttributes+1] = byte(c)
		if err := Walk(empty, 0, func(*Record) error { return errors.New("a record") }); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
	stop := errors.New("stop")
	if err := Walk(build(t, Gzip, rec{}, rec{}), 0, func(*Record) error { return stop }); err != stop {
		t.Errorf("%v, want fn's error", err)
	}
}
