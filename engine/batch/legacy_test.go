package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// legacy is an entry as kmsg encodes it.
func legacy(magic int8, offset int64, attributes int8, ts int64, key, value []byte) []byte {
	encode := func(size, crc int32) []byte {
		if magic == 0 {
			m := kmsg.MessageV0{Offset: offset, MessageSize: size, CRC: crc, Attributes: attributes, Key: key, Value: value}
			return m.AppendTo(nil)
		}
		m := kmsg.MessageV1{Offset: offset, MessageSize: size, CRC: crc, Magic: 1, Attributes: attributes, Timestamp: ts, Key: key, Value: value}
		return m.AppendTo(nil)
	}
	p := encode(0, 0)
	return encode(int32(len(p)-12), int32(crc32.ChecksumIEEE(p[16:])))
}

func TestLegacyEntries(t *testing.T) {
	for magic := range int8(2) {
		for _, c := range []struct{ key, value []byte }{{nil, nil}, {[]byte{}, []byte("v")}, {[]byte("k"), []byte{}}, {[]byte("k"), nil}} {
			p := legacy(magic, 7, 0, 1234, c.key, c.value)
			e, err := ReadLegacy(append(p, "behind"...))
			if err != nil {
				t.Fatal(err)
			}
			ts := int64(-1)
			if magic == 1 {
				ts = 1234
			}
			if e.Offset != 7 || e.Magic != magic || e.SizeBytes != len(p) || e.TimestampMs != ts || e.CheckCRC() != nil ||
				!bytes.Equal(e.Key, c.key) || (e.Key == nil) != (c.key == nil) || !bytes.Equal(e.Value, c.value) || (e.Value == nil) != (c.value == nil) {
				t.Errorf("%+v", e)
			}
			if m, ok := LegacyMagic(p); !ok || m != magic {
				t.Errorf("magic %d, %v", m, ok)
			}
			if _, err := SizeOf(p); !errors.Is(err, ErrMagic) {
				t.Errorf("SizeOf: %v", err)
			}
			for n := range p {
				if _, err := ReadLegacy(p[:n]); err == nil {
					t.Fatalf("%d of %d bytes are enough", n, len(p))
				}
			}
			e, err = ReadLegacy(flip(p, -1))
			if err == nil {
				err = e.CheckCRC()
			}
			if err == nil {
				t.Error("a flipped byte goes unseen")
			}
		}
	}
	if _, err := ReadLegacy(build(t, None, rec{})); !errors.Is(err, ErrMagic) {
		t.Errorf("a batch v2: %v", err)
	}
}

func TestLegacyWrappers(t *testing.T) {
	for magic := range int8(2) {
		var set []byte
		for i := range int64(3) {
			inner := i
			if magic == 0 {
				inner = 100 + i
			}
			set = append(set, legacy(magic, inner, 0, 10+i, nil, fmt.Append(nil, i))...)
		}
		frame := lz4ed(set)
		if magic == 0 {
			frame[6] ^= 0xff // as Kafka's clients of the time had it
		}
		for codec, payload := range map[int8][]byte{1: gzipped(set), 2: snappy.Encode(nil, set), 3: frame} {
			e, err := ReadLegacy(legacy(magic, 102, codec, 99, nil, payload))
			if err != nil {
				t.Fatal(err)
			}
			var offsets, times []int64
			err = WalkLegacy(e, 0, func(x LegacyEntry) error {
				offsets, times = append(offsets, x.Offset), append(times, x.TimestampMs)
				if string(x.Value) != fmt.Sprint(len(offsets)-1) || x.CheckCRC() != nil {
					t.Errorf("magic %d, codec %d: %+v", magic, codec, x)
				}
				return nil
			})
			want := "[100 101 102] [10 11 12]"
			if magic == 0 {
				want = "[100 101 102] [-1 -1 -1]"
			}
			if got := fmt.Sprint(offsets, times); err != nil || got != want {
				t.Errorf("magic %d, codec %d: %v, %v", magic, codec, got, err)
			}
		}
	}
	// The broker's time is the wrapper's.
	e, err := ReadLegacy(legacy(1, 5, 1|8, 99, nil, gzipped(legacy(1, 0, 0, 10, nil, nil))))
	if err != nil {
		t.Fatal(err)
	}
	err = WalkLegacy(e, 0, func(x LegacyEntry) error {
		if x.TimestampMs != 99 || x.Offset != 5 {
			t.Errorf("%+v", x)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestLegacyHostile(t *testing.T) {
	nested := legacy(1, 0, 1, 0, nil, gzipped(legacy(1, 0, 1, 0, nil, gzipped(legacy(1, 0, 0, 0, nil, nil)))))
	cases := map[string]struct {
		p     []byte
		cause error
	}{
		"wrapper in a wrapper": {nested, ErrInvalid},
		"zstd":                 {legacy(1, 0, 4, 0, nil, zstded(nil)), ErrCodec},
		"bomb":                 {legacy(1, 0, 1, 0, nil, gzipped(make([]byte, 9<<20))), ErrBomb},
		"null value":           {legacy(1, 0, 1, 0, nil, nil), ErrInflate},
		"empty":                {legacy(1, 0, 2, 0, nil, nil), ErrInvalid},
	}
	for name, c := range cases {
		e, err := ReadLegacy(c.p)
		if err == nil {
			err = WalkLegacy(e, 8<<20, func(LegacyEntry) error { return nil })
		}
		if !errors.Is(err, c.cause) {
			t.Errorf("%s: %v, want %v", name, err, c.cause)
		}
	}
	huge := legacy(1, 0, 0, 0, nil, nil)
	binary.BigEndian.PutUint32(huge[8:], 1<<31-1)
	if _, err := ReadLegacy(huge); !errors.Is(err, ErrLength) {
		t.Errorf("size of 2^31-1: %v", err)
	}
	binary.BigEndian.PutUint32(huge[8:], 1<<30)
	if _, err := ReadLegacy(huge); !errors.Is(err, ErrTruncated) {
		t.Errorf("size of 2^30: %v", err)
	}
}
