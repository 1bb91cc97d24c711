package batch

import (
	"bytes"
	"hash/crc32"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/klauspost/compress/snappy"
)

// kmsg is the independent truth about batches.

func TestKmsgReadsOurs(t *testing.T) {
	for name, recs := range samples() {
		b := build(t, None, recs...)
		b.SetBaseOffset(77)
		var k kmsg.RecordBatch
		if err := k.ReadFrom(b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(k.AppendTo(nil), b) {
			t.Errorf("%s: kmsg writes it differently", name)
		}
		if k.FirstOffset != 77 || k.NumRecords != int32(len(recs)) || k.LastOffsetDelta != b.LastOffsetDelta() ||
			k.FirstTimestamp != b.BaseTimestamp() || k.MaxTimestamp != b.MaxTimestamp() || uint32(k.CRC) != b.CRC() ||
			k.ProducerID != -1 || k.ProducerEpoch != -1 || k.FirstSequence != -1 || k.PartitionLeaderEpoch != -1 {
			t.Errorf("%s: %+v", name, k)
		}
		p := k.Records
		for i, want := range recs {
			n, used := varintOf(p)
			var r kmsg.Record
			if err := r.ReadFrom(p[:used+int(n)]); err != nil {
				t.Fatalf("%s, record %d: %v", name, i, err)
			}
			p = p[used+int(n):]
			if !bytes.Equal(r.Key, want.Key) || (r.Key == nil) != (want.Key == nil) || !bytes.Equal(r.Value, want.Value) ||
				r.OffsetDelta != int32(i) || r.TimestampDelta64+k.FirstTimestamp != want.T || len(r.Headers) != len(want.Headers) {
				t.Fatalf("%s, record %d: %.200v, want %.200v", name, i, r, want)
			}
		}
		if len(p) > 0 {
			t.Errorf("%s: %d bytes left over", name, len(p))
		}
	}
}

func varintOf(p []byte) (int32, int) {
	v, at := varint(p, 0)
	return v, at
}

func TestWeReadKmsgs(t *testing.T) {
	for name, recs := range samples() {
		var records []byte
		for i, want := range recs {
			r := kmsg.Record{OffsetDelta: int32(i), TimestampDelta64: want.T - recs[0].T, Key: want.Key, Value: want.Value}
			for _, h := range want.Headers {
				r.Headers = append(r.Headers, kmsg.Header{Key: h.Key, Value: h.Value})
			}
			body := r.AppendTo(nil)
			r.Length = int32(len(body) - 1) // behind the length's own byte
			records = r.AppendTo(records)
		}
		for _, c := range []Codec{None, Gzip, Snappy, LZ4, Zstd} {
			payload := map[Codec]func([]byte) []byte{
				None: func(p []byte) []byte { return p }, Gzip: gzipped, Zstd: func(p []byte) []byte { return zstded(p) },
				Snappy: func(p []byte) []byte { return snappy.Encode(nil, p) }, LZ4: func(p []byte) []byte { return lz4ed(p) },
			}[c](records)
			k := kmsg.RecordBatch{
				Magic: 2, Attributes: int16(c), LastOffsetDelta: int32(len(recs) - 1), FirstTimestamp: recs[0].T,
				ProducerID: 9, ProducerEpoch: 1, FirstSequence: 3, NumRecords: int32(len(recs)), Records: payload,
			}
			k.Length = int32(len(k.AppendTo(nil)) - 12)
			k.CRC = int32(crc32.Checksum(k.AppendTo(nil)[21:], castagnoli))
			b := Batch(k.AppendTo(nil))
			if _, err := Check(b, Limits{}); err != nil {
				t.Fatalf("%s, %v: %v", name, c, err)
			}
			if b.ProducerID() != 9 || b.ProducerEpoch() != 1 || b.BaseSequence() != 3 {
				t.Errorf("%s: producer %d, %d, %d", name, b.ProducerID(), b.ProducerEpoch(), b.BaseSequence())
			}
			if diff := differ(recs, readAll(t, b)); diff != "" {
				t.Errorf("%s, %v: %s", name, c, diff)
			}
		}
	}
}
