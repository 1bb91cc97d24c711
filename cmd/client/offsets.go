package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Start is where to begin to read a partition, as -o spells it.
type Start struct {
	kind startKind
	n    int64 // offset, count from the end, or Unix time in ms
}

type startKind int

const (
	fromBeginning startKind = iota
	fromEnd
	fromOffset
	fromLast // n records before the end
	fromTime
)

// ParseStart reads beginning, end, N (an offset), -N (the last N records) and s@T (the first record at or
// after T, Unix time in milliseconds).
func ParseStart(s string) (Start, error) {
	switch s {
	case "beginning", "earliest", "":
		return Start{kind: fromBeginning}, nil
	case "end", "latest":
		return Start{kind: fromEnd}, nil
	case "stored":
		return Start{}, fmt.Errorf("stored: this reads without a group, so nothing is stored; name an offset")
	}
	text, kind := s, fromOffset
	if rest, ok := strings.CutPrefix(s, "s@"); ok {
		text, kind = rest, fromTime
	} else if rest, ok := strings.CutPrefix(s, "-"); ok {
		text, kind = rest, fromLast
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return Start{}, fmt.Errorf("%q is not beginning, end, an offset, -N or s@TIME", s)
	}
	return Start{kind: kind, n: n}, nil
}

// span is what is to be read of a partition: from inclusive, to exclusive (the end as it is now, or where
// -o e@T says).
type span struct{ from, to int64 }

// spans finds where to begin in each partition, and where it ends at present. until above 0 is a Unix
// time in ms: the end is then the first record at or after it.
func spans(ctx context.Context, adm *kadm.Client, topic string, partitions []int32, start Start, until int64) (map[int32]span, error) {
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, cause(err)
	}
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, cause(err)
	}
	var times, untils kadm.ListedOffsets
	if start.kind == fromTime {
		if times, err = adm.ListOffsetsAfterMilli(ctx, start.n, topic); err != nil {
			return nil, cause(err)
		}
	}
	if until > 0 {
		if untils, err = adm.ListOffsetsAfterMilli(ctx, until, topic); err != nil {
			return nil, cause(err)
		}
	}
	if len(partitions) == 0 {
		partitions = slices.Sorted(maps.Keys(ends[topic]))
	}
	out := map[int32]span{}
	for _, p := range partitions {
		low, err := lookup(starts, topic, p)
		if err != nil {
			return nil, err
		}
		high, err := lookup(ends, topic, p)
		if err != nil {
			return nil, err
		}
		s := span{from: low, to: high}
		switch start.kind {
		case fromEnd:
			s.from = high
		case fromLast:
			s.from = max(low, high-start.n)
		case fromOffset:
			if s.from = start.n; start.n < low || start.n > high {
				return nil, fmt.Errorf("%s [%d]: offset %d is out of range: from %d to %d", topic, p, start.n, low, high)
			}
		case fromTime:
			if s.from, err = lookup(times, topic, p); err != nil {
				return nil, err
			}
		}
		if until > 0 {
			if s.to, err = lookup(untils, topic, p); err != nil {
				return nil, err
			}
		}
		out[p] = s
	}
	return out, nil
}

func lookup(l kadm.ListedOffsets, topic string, partition int32) (int64, error) {
	o, ok := l.Lookup(topic, partition)
	if !ok {
		return 0, fmt.Errorf("%s has no partition %d", topic, partition)
	}
	if o.Err != nil {
		return 0, topicError(fmt.Sprintf("%s [%d]", topic, partition), o.Err, "")
	}
	return o.Offset, nil
}
