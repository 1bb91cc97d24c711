package api_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/batch"
	"platter/net/api"
)

// broken changes a good batch.
func broken(change func([]byte)) []byte {
	p := records(1000, "a", "b")
	change(p)
	return p
}

// resealed changes a batch and makes its CRC right again.
func resealed(change func([]byte)) []byte {
	p := records(1000, "a", "b")
	change(p)
	binary.BigEndian.PutUint32(p[17:], crc32.Checksum(p[21:], crc32.MakeTable(crc32.Castagnoli)))
	return p
}

func compressed(c batch.Codec) []byte {
	bl := batch.NewBuilder()
	bl.Codec = c
	bl.Add(1000, []byte("k"), []byte("v"))
	p, err := bl.Build()
	if err != nil {
		panic(err)
	}
	return p
}

func transactional() []byte {
	bl := batch.NewBuilder()
	bl.ProducerID, bl.ProducerEpoch, bl.BaseSequence, bl.Transactional = 7, 0, 0, true
	bl.Add(1000, nil, []byte("v"))
	p, err := bl.Build()
	if err != nil {
		panic(err)
	}
	return p
}

func TestProduceRefusals(t *testing.T) {
	b := startBroker(t, nil)
	id := b.create("t", 1)
	b.create("__consumer_offsets", 1)
	b.create("tiny", 1, "max.message.bytes", "100")
	good := records(1000, "a")
	p := b.dial()
	for _, c := range []struct {
		what    string
		version int16
		topic   string
		part    int32
		acks    int16
		records []byte
		code    api.Code
	}{
		{"good", 9, "t", 0, 1, good, api.None},
		{"acks 2", 9, "t", 0, 2, good, api.InvalidRequiredAcks},
		{"acks -2", 9, "t", 0, -2, good, api.InvalidRequiredAcks},
		{"unknown topic", 9, "nowhere", 0, 1, good, api.UnknownTopicOrPartition},
		{"unknown partition", 9, "t", 5, 1, good, api.UnknownTopicOrPartition},
		{"negative partition", 9, "t", -1, 1, good, api.UnknownTopicOrPartition},
		{"internal topic", 9, "__consumer_offsets", 0, 1, good, api.InvalidTopicException},
		{"null records", 9, "t", 0, 1, nil, api.InvalidRecord},
		{"no records", 9, "t", 0, 1, []byte{}, api.InvalidRecord},
		{"two batches", 9, "t", 0, 1, append(records(1, "a"), records(2, "b")...), api.InvalidRecord},
		{"cut short", 9, "t", 0, 1, good[:len(good)-1], api.InvalidRecord},
		{"cut short in the header", 9, "t", 0, 1, good[:30], api.InvalidRecord},
		{"magic 1", 9, "t", 0, 1, broken(func(p []byte) { p[16] = 1 }), api.InvalidRecord},
		{"magic 9", 9, "t", 0, 1, broken(func(p []byte) { p[16] = 9 }), api.InvalidRecord},
		{"bad CRC", 9, "t", 0, 1, broken(func(p []byte) { p[len(p)-1] ^= 1 }), api.CorruptMessage},
		{"too large", 9, "tiny", 0, 1, records(1000, strings.Repeat("x", 200)), api.MessageTooLarge},
		{"zstd too early", 6, "t", 0, 1, compressed(batch.Zstd), api.UnsupportedCompressionType},
		{"zstd", 7, "t", 0, 1, compressed(batch.Zstd), api.None},
		{"no gzip in it", 9, "t", 0, 1, resealed(func(p []byte) { p[22] |= byte(batch.Gzip) }), api.InvalidRecord},
		{"transactional batch", 9, "t", 0, 1, transactional(), api.TransactionalIDAuthorizationFailed},
		{"control batch", 9, "t", 0, 1, resealed(func(p []byte) { p[22] |= 1 << 5 }), api.InvalidRecord},
		{"lying count", 9, "t", 0, 1, resealed(func(p []byte) { binary.BigEndian.PutUint32(p[57:], 9) }), api.InvalidRecord},
	} {
		got := ask[*kmsg.ProduceResponse](p, c.version, produceRequest(c.topic, id, c.part, c.acks, c.records)).Topics[0].Partitions[0]
		if api.Code(got.ErrorCode) != c.code {
			t.Errorf("%s: %v, want %v", c.what, api.Code(got.ErrorCode), c.code)
			continue
		}
		if c.code != api.None && (got.BaseOffset != -1 || c.version >= 8 && got.ErrorMessage == nil) {
			t.Errorf("%s: base offset %d, message %v", c.what, got.BaseOffset, got.ErrorMessage)
		}
	}
	if !strings.Contains(b.log.String(), "produce refused") {
		t.Error("the log does not say why produces were refused")
	}
}

// The client learns which of its records was refused (KIP-467).
func TestProduceNamesTheBadRecord(t *testing.T) {
	b := startBroker(t, nil)
	id := b.create("t", 1, "message.timestamp.after.max.ms", "1000")
	bl := batch.NewBuilder()
	bl.Add(1000, nil, []byte("milliseconds"))
	bl.Add(1_800_000_000_000_000, nil, []byte("microseconds"))
	p, err := bl.Build()
	if err != nil {
		t.Fatal(err)
	}
	got := ask[*kmsg.ProduceResponse](b.dial(), 9, produceRequest("t", id, 0, 1, p)).Topics[0].Partitions[0]
	if api.Code(got.ErrorCode) != api.InvalidTimestamp || len(got.ErrorRecords) != 1 || got.ErrorRecords[0].RelativeOffset != 1 {
		t.Errorf("%v, records %+v", api.Code(got.ErrorCode), got.ErrorRecords)
	}
}

func TestProduceByTopicID(t *testing.T) {
	b := startBroker(t, nil)
	id := b.create("t", 1)
	p := b.dial()
	got := ask[*kmsg.ProduceResponse](p, 13, produceRequest("", id, 0, -1, records(1, "a"))).Topics[0]
	code(t, "by id", got.Partitions[0].ErrorCode, api.None)
	if got.TopicID != id {
		t.Fatalf("topic id %x, want %x", got.TopicID, id)
	}
	id[0]++
	got = ask[*kmsg.ProduceResponse](p, 13, produceRequest("", id, 0, -1, records(1, "a"))).Topics[0]
	code(t, "by an unknown id", got.Partitions[0].ErrorCode, api.UnknownTopicID)
}

func TestTransactionalIDIsRefusedForGood(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 1)
	p := b.dial()
	produce := produceRequest("t", [16]byte{}, 0, -1, records(1, "a"))
	produce.TransactionID = kmsg.StringPtr("tx")
	code(t, "Produce", ask[*kmsg.ProduceResponse](p, 9, produce).Topics[0].Partitions[0].ErrorCode, api.TransactionalIDAuthorizationFailed)
	init := kmsg.NewPtrInitProducerIDRequest()
	init.TransactionalID = kmsg.StringPtr("tx")
	code(t, "InitProducerID", ask[*kmsg.InitProducerIDResponse](p, 4, init).ErrorCode, api.TransactionalIDAuthorizationFailed)
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorType, find.CoordinatorKey = 1, "tx"
	code(t, "FindCoordinator", ask[*kmsg.FindCoordinatorResponse](p, 3, find).ErrorCode, api.TransactionalIDAuthorizationFailed)
}

func TestIdempotentProducer(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 1)
	p := b.dial()
	a := ask[*kmsg.InitProducerIDResponse](p, 4, kmsg.NewPtrInitProducerIDRequest())
	other := ask[*kmsg.InitProducerIDResponse](p, 0, kmsg.NewPtrInitProducerIDRequest())
	if a.ErrorCode != 0 || a.ProducerID < 0 || a.ProducerID == other.ProducerID || a.ProducerEpoch != 0 {
		t.Fatalf("producer ids %d and %d, epoch %d, %v", a.ProducerID, other.ProducerID, a.ProducerEpoch, api.Code(a.ErrorCode))
	}
	send := func(sequence int32) kmsg.ProduceResponseTopicPartition {
		bl := batch.NewBuilder()
		bl.ProducerID, bl.ProducerEpoch, bl.BaseSequence = a.ProducerID, a.ProducerEpoch, sequence
		bl.Add(1000, nil, fmt.Appendf(nil, "%d", sequence))
		recs, err := bl.Build()
		must(t, err)
		return p.produce("t", 0, recs)
	}
	for _, c := range []struct {
		sequence int32
		offset   int64
		code     api.Code
	}{{0, 0, api.None}, {1, 1, api.None}, {1, 1, api.None}, {0, 0, api.None}, {5, -1, api.OutOfOrderSequenceNumber}, {2, 2, api.None}} {
		if got := send(c.sequence); got.BaseOffset != c.offset || api.Code(got.ErrorCode) != c.code {
			t.Fatalf("sequence %d: offset %d, %v; want %d, %v", c.sequence, got.BaseOffset, api.Code(got.ErrorCode), c.offset, c.code)
		}
	}
}

func TestAcksZero(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 1)
	p := b.dial()
	p.send(9, produceRequest("t", [16]byte{}, 0, 0, records(1, "a")))
	// The next answer is that of the next request.
	got := ask[*kmsg.ListOffsetsResponse](p, 4, listOffsets("t", 0, -1)).Topics[0].Partitions[0]
	if got.Offset != 1 {
		t.Fatalf("log end offset %d after a produce with acks=0, want 1", got.Offset)
	}
	p.send(9, produceRequest("nowhere", [16]byte{}, 0, 0, records(1, "a")))
	p.closed()
}

func TestPipelinedProducesKeepTheirOrder(t *testing.T) {
	b := startBroker(t, nil)
	b.create("t", 1)
	p := b.dial()
	var ids []int32
	req := produceRequest("t", [16]byte{}, 0, -1, nil)
	for i := range 200 {
		req.Topics[0].Partitions[0].Records = records(int64(i), fmt.Sprint(i))
		ids = append(ids, p.send(9, req))
	}
	fetch := fetchRequest("t", [16]byte{}, 0, 0)
	fetchID := p.send(12, fetch) // a barrier: it sees all of them
	for i, id := range ids {
		if got := p.receive(id, req).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; got.BaseOffset != int64(i) {
			t.Fatalf("produce %d is at offset %d", i, got.BaseOffset)
		}
	}
	part := p.receive(fetchID, fetch).(*kmsg.FetchResponse).Topics[0].Partitions[0]
	if part.HighWatermark != 200 {
		t.Fatalf("the fetch behind 200 produces sees %d", part.HighWatermark)
	}
	batches, err := batch.Split(nil, part.RecordBatches)
	must(t, err)
	for i, bt := range batches {
		must(t, batch.Walk(bt, 1<<20, func(r *batch.Record) error {
			if string(r.Value) != fmt.Sprint(i) {
				return fmt.Errorf("record %d is %q", i, r.Value)
			}
			return nil
		}))
	}
}
