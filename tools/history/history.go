// Package history decides whether a broker kept its promises: it compares what producers were told with
// what the log holds afterwards. It knows nothing of how the broker works.
//
// A producer numbers its records for each partition: 0, 1, 2, … in the order in which it sends them. The
// checker takes the acknowledged ones (with the offset that the acknowledgement carried) and all records
// read back, and reports every broken promise:
//
//   - lost: acknowledged, but not in the log
//   - duplicated: one record at two offsets
//   - reordered: a later record of one producer before an earlier one
//   - misplaced: acknowledged with one offset, found at another
//   - hole: offsets that are not consecutive (logs without compaction, transactions or trimming)
//   - unknown: a record that nobody sent
package history

import (
	"cmp"
	"fmt"
	"slices"
)

// Record is one record: who sent it, which of that producer's records in the partition it is, and where
// it was put. Offset -1 in Sent: never acknowledged (it may or may not be in the log).
type Record struct {
	Partition int32
	Producer  int32
	Sequence  int64
	Offset    int64
}

// Kind names a broken promise.
type Kind string

// Kinds of violations.
const (
	Lost       Kind = "lost"
	Duplicated Kind = "duplicated"
	Reordered  Kind = "reordered"
	Misplaced  Kind = "misplaced"
	Hole       Kind = "hole"
	Unknown    Kind = "unknown"
)

// Violation is one broken promise.
type Violation struct {
	Kind   Kind
	Record Record
	Detail string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: producer %d partition %d sequence %d offset %d: %s",
		v.Kind, v.Record.Producer, v.Record.Partition, v.Record.Sequence, v.Record.Offset, v.Detail)
}

type stream struct {
	partition, producer int32
}

type key struct {
	stream
	sequence int64
}

// Check compares sent (one entry a record; Offset -1 when not acknowledged) with read (the whole log, in
// the order read). It returns every violation, in no particular order; none means that all promises held.
func Check(sent, read []Record) []Violation {
	var out []Violation
	want := make(map[key]int64, len(sent))
	for _, r := range sent {
		k := keyOf(r)
		// A record that was sent twice by the application counts as acknowledged if either was.
		if old, ok := want[k]; !ok || old < 0 {
			want[k] = r.Offset
		}
	}
	found := make(map[key]int64, len(read))
	for _, r := range read {
		k := keyOf(r)
		if _, ok := want[k]; !ok {
			out = append(out, Violation{Unknown, r, "nobody sent it"})
			continue
		}
		if first, ok := found[k]; ok {
			out = append(out, Violation{Duplicated, r, fmt.Sprintf("already at offset %d", first)})
			continue
		}
		found[k] = r.Offset
	}
	for k, offset := range want {
		if offset < 0 {
			continue
		}
		r := Record{k.partition, k.producer, k.sequence, offset}
		at, ok := found[k]
		switch {
		case !ok:
			out = append(out, Violation{Lost, r, "acknowledged, but not in the log"})
		case at != offset:
			out = append(out, Violation{Misplaced, r, fmt.Sprintf("found at offset %d", at)})
		}
	}
	return append(out, checkOrder(read)...)
}

// checkOrder looks at the log alone: consecutive offsets, and each producer's sequences rising.
func checkOrder(read []Record) []Violation {
	var out []Violation
	byPartition := map[int32][]Record{}
	for _, r := range read {
		byPartition[r.Partition] = append(byPartition[r.Partition], r)
	}
	for _, rs := range byPartition {
		slices.SortStableFunc(rs, func(a, b Record) int { return cmp.Compare(a.Offset, b.Offset) })
		last := map[stream]int64{}
		for i, r := range rs {
			if i > 0 && r.Offset != rs[i-1].Offset+1 {
				out = append(out, Violation{Hole, r, fmt.Sprintf("follows offset %d", rs[i-1].Offset)})
			}
			s := stream{r.Partition, r.Producer}
			if prev, ok := last[s]; ok && r.Sequence < prev {
				out = append(out, Violation{Reordered, r, fmt.Sprintf("comes after sequence %d", prev)})
			}
			last[s] = max(last[s], r.Sequence)
		}
	}
	return out
}

func keyOf(r Record) key { return key{stream{r.Partition, r.Producer}, r.Sequence} }
