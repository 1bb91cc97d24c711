package clients

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What the Go clients of the matrix send and expect back, as in python/scenario.py.
const (
	recordCount    = 300
	moreCount      = 100
	partitionCount = 2
)

var startTime = time.Now().Add(-time.Hour).Truncate(time.Millisecond)

// seen is one record as a consumer got it.
type seen struct {
	partition  int32
	offset     int64
	key, value string
}

func valueOf(i int) string { return fmt.Sprintf("value %d %s", i, strings.Repeat("x", i%50)) }

// wantRecords wants exactly the records first to first+count-1, each where it was put. While brokers are restarted, what a
// producer that is not idempotent sends anew may stand in the log twice: so it is with Kafka, and those behind it
// have higher offsets.
func wantRecords(t *testing.T, got []seen, first, count int) {
	t.Helper()
	number := func(s seen) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(s.key, "k"))
		return n
	}
	slices.SortFunc(got, func(a, b seen) int { return cmp.Compare(number(a), number(b)) })
	if len(got) != count {
		t.Fatalf("%d records came, %d were due", len(got), count)
	}
	for i, s := range got {
		n := first + i
		want := seen{int32(n % partitionCount), int64(n / partitionCount), fmt.Sprint("k", n), valueOf(n)}
		if rolled() && s.offset > want.offset {
			want.offset = s.offset
		}
		if s != want {
			t.Fatalf("record %d came as %+v", n, s)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
