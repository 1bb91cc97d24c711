package producer

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
)

// A snapshot file is named <offset, 20 digits>.snapshot: the state of all producers once every batch
// below offset was applied.
//
//	pos  size  field
//	  0     2  version (1)
//	  2     4  CRC32C of pos 6 to the end
//	  6     4  entry count
//	 10    46  an entry, count times:
//	  +0    8  producer id
//	  +8    2  producer epoch
//	 +10    4  last sequence              (-1: none)
//	 +14    8  last offset                (-1: none)
//	 +22    4  offset delta               (last offset - base offset)
//	 +26    8  timestamp                  (ms, of the last append)
//	 +34    4  coordinator epoch          (-1)
//	 +38    8  current txn first offset   (-1)
//
// Only the newest batch of each window is kept. Source: Kafka's ProducerStateManager (ProducerSnapshot.json).
const (
	snapshotVersion     = 1
	snapshotHeaderBytes = 10
	snapshotEntryBytes  = 46
	snapshotCRCFrom     = 6
)

// SnapshotSuffix ends the names of snapshot files.
const SnapshotSuffix = ".snapshot"

// ErrCorruptSnapshot: the file is not a whole snapshot. The cause is in the text.
var ErrCorruptSnapshot = errors.New("corrupt producer snapshot")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SnapshotEntry is one producer in a snapshot file, field by field.
type SnapshotEntry struct {
	ProducerID            int64 `json:"producer_id"`
	Epoch                 int16 `json:"producer_epoch"`
	LastSequence          int32 `json:"last_sequence"`
	LastOffset            int64 `json:"last_offset"`
	OffsetDelta           int32 `json:"offset_delta"`
	TimestampMs           int64 `json:"timestamp_ms"`
	CoordinatorEpoch      int32 `json:"coordinator_epoch"`
	CurrentTxnFirstOffset int64 `json:"current_txn_first_offset"`
}

// FirstSequence is the sequence that the last batch starts with; -1 when there is none.
func (e *SnapshotEntry) FirstSequence() int32 {
	if e.LastOffset < 0 {
		return None
	}
	return sequenceBefore(e.LastSequence, e.OffsetDelta)
}

// EncodeSnapshot returns the bytes of a snapshot file.
func EncodeSnapshot(entries []SnapshotEntry) []byte {
	be := binary.BigEndian
	p := make([]byte, snapshotHeaderBytes, snapshotHeaderBytes+len(entries)*snapshotEntryBytes)
	be.PutUint16(p, snapshotVersion)
	be.PutUint32(p[snapshotCRCFrom:], uint32(len(entries)))
	for _, e := range entries {
		p = be.AppendUint64(p, uint64(e.ProducerID))
		p = be.AppendUint16(p, uint16(e.Epoch))
		p = be.AppendUint32(p, uint32(e.LastSequence))
		p = be.AppendUint64(p, uint64(e.LastOffset))
		p = be.AppendUint32(p, uint32(e.OffsetDelta))
		p = be.AppendUint64(p, uint64(e.TimestampMs))
		p = be.AppendUint32(p, uint32(e.CoordinatorEpoch))
		p = be.AppendUint64(p, uint64(e.CurrentTxnFirstOffset))
	}
	be.PutUint32(p[2:], crc32.Checksum(p[snapshotCRCFrom:], castagnoli))
	return p
}

// DecodeSnapshot reads a snapshot file's bytes; every error is ErrCorruptSnapshot.
func DecodeSnapshot(p []byte) ([]SnapshotEntry, error) {
	be := binary.BigEndian
	if len(p) < snapshotHeaderBytes {
		return nil, fmt.Errorf("%w: %d bytes, the header alone has %d", ErrCorruptSnapshot, len(p), snapshotHeaderBytes)
	}
	if v := be.Uint16(p); v != snapshotVersion {
		return nil, fmt.Errorf("%w: version %d, want %d", ErrCorruptSnapshot, v, snapshotVersion)
	}
	if want, got := be.Uint32(p[2:]), crc32.Checksum(p[snapshotCRCFrom:], castagnoli); want != got {
		return nil, fmt.Errorf("%w: CRC32C is %08x, the file says %08x", ErrCorruptSnapshot, got, want)
	}
	n := int64(be.Uint32(p[snapshotCRCFrom:]))
	body := p[snapshotHeaderBytes:]
	if n*snapshotEntryBytes != int64(len(body)) {
		return nil, fmt.Errorf("%w: %d entries in %d bytes", ErrCorruptSnapshot, n, len(body))
	}
	entries := make([]SnapshotEntry, n)
	for i := range entries {
		b := body[i*snapshotEntryBytes:]
		entries[i] = SnapshotEntry{
			ProducerID:            int64(be.Uint64(b)),
			Epoch:                 int16(be.Uint16(b[8:])),
			LastSequence:          int32(be.Uint32(b[10:])),
			LastOffset:            int64(be.Uint64(b[14:])),
			OffsetDelta:           int32(be.Uint32(b[22:])),
			TimestampMs:           int64(be.Uint64(b[26:])),
			CoordinatorEpoch:      int32(be.Uint32(b[34:])),
			CurrentTxnFirstOffset: int64(be.Uint64(b[38:])),
		}
		if err := entries[i].check(); err != nil {
			return nil, fmt.Errorf("%w: entry %d: %w", ErrCorruptSnapshot, i, err)
		}
	}
	return entries, nil
}

func (e *SnapshotEntry) check() error {
	switch {
	case e.ProducerID < 0:
		return fmt.Errorf("producer id %d", e.ProducerID)
	case e.LastOffset < 0: // no batch in the window
		return nil
	case e.LastSequence < 0 || e.OffsetDelta < 0 || int64(e.OffsetDelta) > e.LastOffset:
		return fmt.Errorf("last sequence %d, last offset %d, offset delta %d", e.LastSequence, e.LastOffset, e.OffsetDelta)
	}
	return nil
}

// Snapshot returns the state as snapshot entries, sorted by producer id.
func (s *State) Snapshot() []SnapshotEntry {
	out := make([]SnapshotEntry, 0, len(s.entries))
	for id, e := range s.entries {
		se := SnapshotEntry{
			ProducerID: id, Epoch: e.epoch, LastSequence: None, LastOffset: -1,
			TimestampMs: e.lastMs, CoordinatorEpoch: -1, CurrentTxnFirstOffset: -1,
		}
		if e.count > 0 {
			n := e.newest()
			se.LastSequence, se.LastOffset, se.OffsetDelta = n.lastSequence, n.lastOffset, n.offsetDelta
		}
		out = append(out, se)
	}
	slices.SortFunc(out, func(a, b SnapshotEntry) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
	return out
}

// Restore replaces the state by a snapshot's entries, leaving out producers that have expired at nowMs.
func (s *State) Restore(entries []SnapshotEntry, nowMs, expirationMs int64) {
	s.Clear()
	for _, se := range entries {
		if expired(se.TimestampMs, nowMs, expirationMs) {
			continue
		}
		e := &entry{epoch: se.Epoch, lastMs: se.TimestampMs}
		if se.LastOffset >= 0 {
			e.push(slot{
				baseSequence: se.FirstSequence(), lastSequence: se.LastSequence,
				offsetDelta: se.OffsetDelta, lastOffset: se.LastOffset, timestampMs: se.TimestampMs,
			})
		}
		s.entries[se.ProducerID] = e
	}
}
