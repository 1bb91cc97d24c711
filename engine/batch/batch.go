// Package batch is the record batch v2 as a view on bytes that somebody else owns:
// find, check, patch in place, walk, build. A batch is never copied to be read.
//
//	pos  size  field
//	  0     8  base offset            (outside the CRC, patched by the appender)
//	  8     4  batch length           (bytes from pos 12)
//	 12     4  partition leader epoch (outside the CRC, patched by the appender)
//	 16     1  magic                  (2)
//	 17     4  CRC32C                 (of pos 21 to the end)
//	 21     2  attributes             (bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon)
//	 23     4  last offset delta
//	 27     8  base timestamp         (ms)
//	 35     8  max timestamp          (ms)
//	 43     8  producer id            (-1: none)
//	 51     2  producer epoch
//	 53     4  base sequence
//	 57     4  record count
//	 61     …  records, compressed as a whole when a codec is set
//
// Source: Kafka's DefaultRecordBatch javadoc, KIP-98.
package batch

// HeaderBytes is the size of everything before the records.
const HeaderBytes = 61

// Batch is a view on exactly one whole batch (LogOverheadBytes + batch length bytes).
type Batch []byte
