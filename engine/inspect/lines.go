package inspect

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"platter/engine/batch"
)

// The lines of a dump. Their text is in the manner of kafka-dump-log, so that what people grep for is found.

type corruptLine struct {
	Type  string `json:"type"`
	File  string `json:"file"`
	Cause string `json:"cause"`
}

func (l corruptLine) text() string { return "CORRUPT: " + l.Cause }

// zerosLine is the end of a .log file that holds no batches yet.
type zerosLine struct {
	Type      string `json:"type"`
	File      string `json:"file"`
	Position  int64  `json:"position"`
	SizeBytes int64  `json:"size_bytes"`
}

func (l zerosLine) text() string {
	return fmt.Sprintf("position: %d size: %d zeros to the end of the file", l.Position, l.SizeBytes)
}

type batchLine struct {
	Type            string `json:"type"`
	File            string `json:"file"`
	Position        int64  `json:"position"`
	SizeBytes       int64  `json:"size_bytes"`
	Magic           int8   `json:"magic"`
	BaseOffset      int64  `json:"base_offset"`
	LastOffset      int64  `json:"last_offset"`
	Count           int32  `json:"count"`
	BaseSequence    int32  `json:"base_sequence"`
	LastSequence    int32  `json:"last_sequence"`
	ProducerID      int64  `json:"producer_id"`
	ProducerEpoch   int16  `json:"producer_epoch"`
	LeaderEpoch     int32  `json:"leader_epoch"`
	Transactional   bool   `json:"transactional"`
	Control         bool   `json:"control"`
	DeleteHorizonMs *int64 `json:"delete_horizon_ms,omitempty"`
	TimestampType   string `json:"timestamp_type"`
	MaxTimestampMs  int64  `json:"max_timestamp_ms"`
	Codec           string `json:"codec"`
	CRC             uint32 `json:"crc"`
	Valid           *bool  `json:"valid,omitempty"` // missing: not checked
}

func newBatchLine(path string, e *entry, valid bool) *batchLine {
	b := e.b
	l := &batchLine{
		Type: "batch", File: path, Position: e.pos, SizeBytes: e.size, Magic: b.Magic(),
		BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), Count: b.Count(),
		BaseSequence: b.BaseSequence(), LastSequence: b.LastSequence(),
		ProducerID: b.ProducerID(), ProducerEpoch: b.ProducerEpoch(), LeaderEpoch: b.LeaderEpoch(),
		Transactional: b.Transactional(), Control: b.Control(),
		TimestampType: timestampType(b.LogAppendTime()), MaxTimestampMs: b.MaxTimestamp(),
		Codec: b.Codec().String(), CRC: b.CRC(), Valid: &valid,
	}
	if ms, ok := b.DeleteHorizon(); ok {
		l.DeleteHorizonMs = &ms
	}
	return l
}

func timestampType(logAppend bool) string {
	if logAppend {
		return "LogAppendTime"
	}
	return "CreateTime"
}

func (l *batchLine) text() string {
	var s strings.Builder
	fmt.Fprintf(&s, "baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d producerId: %d producerEpoch: %d",
		l.BaseOffset, l.LastOffset, l.Count, l.BaseSequence, l.LastSequence, l.ProducerID, l.ProducerEpoch)
	fmt.Fprintf(&s, " partitionLeaderEpoch: %d isTransactional: %t isControl: %t", l.LeaderEpoch, l.Transactional, l.Control)
	if l.DeleteHorizonMs != nil {
		fmt.Fprintf(&s, " deleteHorizonMs: %d", *l.DeleteHorizonMs)
	}
	fmt.Fprintf(&s, " position: %d %s: %d size: %d magic: %d compresscodec: %s crc: %d",
		l.Position, l.TimestampType, l.MaxTimestampMs, l.SizeBytes, l.Magic, l.Codec, l.CRC)
	if l.Valid != nil {
		fmt.Fprintf(&s, " isvalid: %t", *l.Valid)
	}
	return s.String()
}

// legacyLine is an entry of magic 0 or 1.
type legacyLine struct {
	Type          string `json:"type"`
	File          string `json:"file"`
	Position      int64  `json:"position"`
	SizeBytes     int64  `json:"size_bytes"`
	Magic         int8   `json:"magic"`
	Offset        int64  `json:"offset"`
	TimestampType string `json:"timestamp_type"`
	TimestampMs   int64  `json:"timestamp_ms"`
	Codec         string `json:"codec"`
	CRC           uint32 `json:"crc"`
	Valid         bool   `json:"valid"`
}

func newLegacyLine(path string, e *entry, valid bool) *legacyLine {
	return &legacyLine{
		Type: "entry", File: path, Position: e.pos, SizeBytes: e.size, Magic: e.old.Magic, Offset: e.old.Offset,
		TimestampType: timestampType(e.old.LogAppendTime), TimestampMs: e.old.TimestampMs,
		Codec: e.old.Codec.String(), CRC: e.old.CRC, Valid: valid,
	}
}

func (l *legacyLine) text() string {
	return fmt.Sprintf("offset: %d position: %d %s: %d size: %d magic: %d compresscodec: %s crc: %d isvalid: %t",
		l.Offset, l.Position, l.TimestampType, l.TimestampMs, l.SizeBytes, l.Magic, l.Codec, l.CRC, l.Valid)
}

// recordLine is one record. Sizes are -1 for null.
type recordLine struct {
	Type          string       `json:"type"`
	File          string       `json:"file"`
	Offset        int64        `json:"offset"`
	TimestampType string       `json:"timestamp_type"`
	TimestampMs   int64        `json:"timestamp_ms"`
	KeyBytes      int          `json:"key_bytes"`
	ValueBytes    int          `json:"value_bytes"`
	Sequence      int32        `json:"sequence"`
	Marker        *marker      `json:"marker,omitempty"` // of a control record
	Headers       []headerLine `json:"headers,omitempty"`
	payload
	old bool // without sequence and headers
}

// payload is a record's content, where it was asked for. Bytes that are no text stand in the second field, as base64.
type payload struct {
	Key         *string `json:"key,omitempty"`
	KeyBase64   *string `json:"key_base64,omitempty"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 *string `json:"value_base64,omitempty"`
	key, value  []byte
	shown       bool
}

type headerLine struct {
	Key         string  `json:"key"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 *string `json:"value_base64,omitempty"`
	value       []byte
}

func (d *Dumper) record(path string, b batch.Batch, r *batch.Record) *recordLine {
	l := &recordLine{
		Type: "record", File: path, Offset: b.BaseOffset() + int64(r.OffsetDelta),
		TimestampType: timestampType(b.LogAppendTime()), TimestampMs: b.TimestampOf(r),
		KeyBytes: sizeOf(r.Key), ValueBytes: sizeOf(r.Value), Sequence: sequenceOf(b, r),
	}
	if b.Control() {
		l.Marker = markerOf(r)
	}
	for _, h := range r.Headers {
		hl := headerLine{Key: h.Key}
		if d.o.Payload {
			hl.value = h.Value
			hl.Value, hl.ValueBase64 = textOrBase64(h.Value)
		}
		l.Headers = append(l.Headers, hl)
	}
	if d.o.Payload && l.Marker == nil {
		l.payload = newPayload(r.Key, r.Value)
	}
	return l
}

func (d *Dumper) legacyRecord(path string, e *batch.LegacyEntry) *recordLine {
	l := &recordLine{
		Type: "record", File: path, Offset: e.Offset, TimestampType: timestampType(e.LogAppendTime), TimestampMs: e.TimestampMs,
		KeyBytes: sizeOf(e.Key), ValueBytes: sizeOf(e.Value), Sequence: -1, old: true,
	}
	if d.o.Payload {
		l.payload = newPayload(e.Key, e.Value)
	}
	return l
}

func (l *recordLine) text() string {
	var s strings.Builder
	fmt.Fprintf(&s, "| offset: %d %s: %d keySize: %d valueSize: %d", l.Offset, l.TimestampType, l.TimestampMs, l.KeyBytes, l.ValueBytes)
	if !l.old {
		keys := make([]string, len(l.Headers))
		for i, h := range l.Headers {
			keys[i] = printable([]byte(h.Key))
			if l.shown {
				keys[i] += "=" + nullable(h.value)
			}
		}
		fmt.Fprintf(&s, " sequence: %d headerKeys: [%s]", l.Sequence, strings.Join(keys, ","))
	}
	if m := l.Marker; m != nil {
		fmt.Fprintf(&s, " endTxnMarker: %s coordinatorEpoch: %d", m.Type, m.CoordinatorEpoch)
	}
	if l.shown {
		fmt.Fprintf(&s, " key: %s payload: %s", nullable(l.key), nullable(l.value))
	}
	return s.String()
}

func newPayload(key, value []byte) payload {
	p := payload{key: key, value: value, shown: true}
	p.Key, p.KeyBase64 = textOrBase64(key)
	p.Value, p.ValueBase64 = textOrBase64(value)
	return p
}

func nullable(p []byte) string {
	if p == nil {
		return "null"
	}
	return printable(p)
}

func textOrBase64(p []byte) (text, b64 *string) {
	if p == nil {
		return nil, nil
	}
	if utf8.Valid(p) {
		s := string(p)
		return &s, nil
	}
	s := base64.StdEncoding.EncodeToString(p)
	return nil, &s
}

func sizeOf(p []byte) int {
	if p == nil {
		return -1
	}
	return len(p)
}

// sequenceOf is a record's sequence, -1 without a producer; it wraps as a batch's does.
func sequenceOf(b batch.Batch, r *batch.Record) int32 {
	if b.BaseSequence() < 0 {
		return -1
	}
	return int32((int64(b.BaseSequence()) + int64(r.OffsetDelta)) & 0x7fffffff)
}

// marker is a control record that ends a transaction, or another kind of control record.
type marker struct {
	Type             string `json:"type"`
	CoordinatorEpoch int32  `json:"coordinator_epoch"` // -1: none
}

// markerOf reads a control record: its key is version and type, 2 bytes each; the value of a transaction's end is version
// (2 bytes) and coordinator epoch (4). Source: Kafka's ControlRecordType and EndTransactionMarker.
func markerOf(r *batch.Record) *marker {
	m := &marker{Type: "UNKNOWN", CoordinatorEpoch: -1}
	if len(r.Key) < 4 {
		return m
	}
	kinds := []string{"ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS"}
	kind := int(binary.BigEndian.Uint16(r.Key[2:]))
	if kind < len(kinds) {
		m.Type = kinds[kind]
	}
	if kind <= 1 && len(r.Value) >= 6 {
		m.CoordinatorEpoch = int32(binary.BigEndian.Uint32(r.Value[2:]))
	}
	return m
}

type offsetLine struct {
	Type     string `json:"type"`
	File     string `json:"file"`
	Offset   int64  `json:"offset"`
	Position int64  `json:"position"`
}

func (l offsetLine) text() string {
	return fmt.Sprintf("offset: %d position: %d", l.Offset, l.Position)
}

type timeLine struct {
	Type      string `json:"type"`
	File      string `json:"file"`
	Timestamp int64  `json:"timestamp_ms"`
	Offset    int64  `json:"offset"`
}

func (l timeLine) text() string {
	return fmt.Sprintf("timestamp: %d offset: %d", l.Timestamp, l.Offset)
}

type txnLine struct {
	Type string `json:"type"`
	File string `json:"file"`
	abortedTxn
}

func (l txnLine) text() string {
	return fmt.Sprintf("version: 0 producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d",
		l.ProducerID, l.FirstOffset, l.LastOffset, l.LastStableOffset)
}
