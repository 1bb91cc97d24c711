package batch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testdata/kafka-3.9.1 was written by Apache Kafka's own MemoryRecordsBuilder, a file for each magic, codec
// and number of records: v<magic>-<codec>-<count>.bin, from offset 100. kafkaRecord is what it was given.
func kafkaRecord(i int, magic int8) rec {
	r := rec{T: 1700000000000 + int64(i)*7919%1000}
	if i%3 != 0 {
		r.Key = fmt.Appendf(nil, "key-%d", i)
	}
	if i%5 != 4 {
		r.Value = fmt.Appendf(nil, "value %s%d", strings.Repeat("x", i&7), i)
	}
	if magic == 2 && i%4 == 1 {
		h := Header{Key: fmt.Sprint("h", i)}
		if i%8 != 1 {
			h.Value = []byte{1, 2}
		}
		r.Headers = []Header{h}
	}
	if magic == 0 {
		r.T = -1
	}
	return r
}

func TestWhatKafkaWrote(t *testing.T) {
	files, err := filepath.Glob("testdata/kafka-3.9.1/*.bin")
	if err != nil || len(files) != 26 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			p, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var magic int8
			var codec string
			var count int
			name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".bin"), "-", " ")
			if _, err := fmt.Sscanf(name, "v%d %s %d", &magic, &codec, &count); err != nil {
				t.Fatal(err)
			}
			var want []rec
			for i := range count {
				want = append(want, kafkaRecord(i, magic))
			}
			var got []rec
			if magic == 2 {
				got = kafkaBatch(t, p, codec)
			} else {
				got = kafkaSet(t, p, magic, codec)
			}
			if diff := differ(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func kafkaBatch(t *testing.T, p []byte, codec string) []rec {
	bs, err := Split(nil, p)
	if err != nil || len(bs) != 1 {
		t.Fatalf("%d batches, %v", len(bs), err)
	}
	info, err := Check(bs[0], Limits{CheckTimestamps: true, NowMs: 1700000001000, BeforeMaxMs: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if bs[0].Codec().String() != codec || bs[0].BaseOffset() != 100 || bs[0].MaxTimestamp() != info.MaxTimestampMs {
		t.Errorf("codec %v, offset %d, max timestamp %d, of the records %d",
			bs[0].Codec(), bs[0].BaseOffset(), bs[0].MaxTimestamp(), info.MaxTimestampMs)
	}
	if bs[0].Codec() == None {
		// Ours are the same, byte for byte, but for the base offset and an epoch that is unknown to both.
		ours := build(t, None, readAll(t, bs[0])...)
		ours.SetBaseOffset(100)
		if !bytes.Equal(ours, bs[0]) {
			t.Error("the builder writes it differently")
		}
	}
	return readAll(t, bs[0])
}

func kafkaSet(t *testing.T, p []byte, magic int8, codec string) []rec {
	var got []rec
	for len(p) > 0 {
		e, err := ReadLegacy(p)
		if err != nil {
			t.Fatal(err)
		}
		if e.Magic != magic || e.Codec.String() != codec {
			t.Fatalf("%+v", e)
		}
		if err := e.CheckCRC(); err != nil {
			t.Fatal(err)
		}
		p = p[e.SizeBytes:]
		err = WalkLegacy(e, 0, func(x LegacyEntry) error {
			if err := x.CheckCRC(); err != nil {
				return err
			}
			if x.Offset != int64(100+len(got)) {
				t.Errorf("offset %d, want %d", x.Offset, 100+len(got))
			}
			got = append(got, rec{T: x.TimestampMs, Key: clone(x.Key), Value: clone(x.Value)})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return got
}
