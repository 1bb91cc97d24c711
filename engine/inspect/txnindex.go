package inspect

import (
	"encoding/binary"
	"fmt"

	"platter/engine/segment"
)

// A .txnindex lists a segment's aborted transactions, 34 bytes each. Source: Kafka's AbortedTxn.
//
//	pos  size  field
//	  0     2  version (0)
//	  2     8  producer id
//	 10     8  first offset
//	 18     8  last offset
//	 26     8  last stable offset
const (
	txnVersion    = 0
	txnEntryBytes = 34
)

// abortedTxn is one entry.
type abortedTxn struct {
	ProducerID       int64 `json:"producer_id"`
	FirstOffset      int64 `json:"first_offset"`
	LastOffset       int64 `json:"last_offset"`
	LastStableOffset int64 `json:"last_stable_offset"`
}

// readTxnIndex calls fn for each entry of a .txnindex of size bytes.
func readTxnIndex(r segment.ReaderAt, size int64, fn func(abortedTxn) error) error {
	be := binary.BigEndian
	var p [txnEntryBytes]byte
	for pos := int64(0); pos < size; pos += txnEntryBytes {
		if size-pos < txnEntryBytes {
			return &segment.CorruptError{Pos: pos, Cause: segment.ErrTorn}
		}
		if n, err := r.ReadAt(p[:], pos); n < len(p) {
			return err
		}
		if v := be.Uint16(p[:]); v != txnVersion {
			return &segment.CorruptError{Pos: pos, Cause: fmt.Errorf("version %d, want %d", v, txnVersion)}
		}
		t := abortedTxn{
			ProducerID: int64(be.Uint64(p[2:])), FirstOffset: int64(be.Uint64(p[10:])),
			LastOffset: int64(be.Uint64(p[18:])), LastStableOffset: int64(be.Uint64(p[26:])),
		}
		if err := fn(t); err != nil {
			return err
		}
	}
	return nil
}
