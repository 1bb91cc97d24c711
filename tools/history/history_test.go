package history

import (
	"slices"
	"testing"
)

func rec(seq, offset int64) Record {
	return Record{Partition: 1, Producer: 7, Sequence: seq, Offset: offset}
}

func kinds(vs []Violation) []Kind {
	var ks []Kind
	for _, v := range vs {
		ks = append(ks, v.Kind)
	}
	slices.Sort(ks)
	return slices.Compact(ks)
}

func TestCheckNamesEachBrokenPromise(t *testing.T) {
	for _, c := range []struct {
		name       string
		sent, read []Record
		want       []Kind
	}{
		{"all there", []Record{rec(0, 0), rec(1, 1)}, []Record{rec(0, 0), rec(1, 1)}, nil},
		{"unacknowledged and absent", []Record{rec(0, 0), rec(1, -1)}, []Record{rec(0, 0)}, nil},
		{"unacknowledged and present", []Record{rec(0, 0), rec(1, -1)}, []Record{rec(0, 0), rec(1, 1)}, nil},
		{"lost", []Record{rec(0, 0), rec(1, 1)}, []Record{rec(0, 0)}, []Kind{Lost}},
		{"duplicated", []Record{rec(0, 0)}, []Record{rec(0, 0), rec(0, 1)}, []Kind{Duplicated}},
		{"unacknowledged, twice there", []Record{rec(0, -1)}, []Record{rec(0, 0), rec(0, 1)}, []Kind{Duplicated}},
		{"reordered", []Record{rec(0, 1), rec(1, 0)}, []Record{rec(1, 0), rec(0, 1)}, []Kind{Reordered}},
		{"misplaced", []Record{rec(0, 5)}, []Record{rec(0, 0)}, []Kind{Misplaced}},
		{"hole", []Record{rec(0, 0), rec(1, 2)}, []Record{rec(0, 0), rec(1, 2)}, []Kind{Hole}},
		{"unknown", nil, []Record{rec(0, 0)}, []Kind{Unknown}},
	} {
		if got := kinds(Check(c.sent, c.read)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCheckKeepsStreamsApart(t *testing.T) {
	a := Record{Partition: 0, Producer: 1, Sequence: 0, Offset: 0}
	b := Record{Partition: 0, Producer: 2, Sequence: 0, Offset: 1}
	c := Record{Partition: 1, Producer: 1, Sequence: 0, Offset: 0}
	all := []Record{a, b, c}
	if vs := Check(all, all); len(vs) != 0 {
		t.Fatalf("distinct streams were mixed up: %v", vs)
	}
}

func TestCommitsGoForward(t *testing.T) {
	var c Commits
	a := Committed{"g", 0}
	before := c.Floor()
	c.Acknowledged(a, 10)
	c.Read("g", map[int32]int64{0: 5}, before) // it had begun before the commit
	c.Read("g", map[int32]int64{0: 12}, c.Floor())
	c.Read("other", nil, c.Floor())
	if bad, _, _ := c.Outcome(); len(bad) != 0 {
		t.Errorf("nothing went back, but: %v", bad)
	}
	c.Read("g", map[int32]int64{0: 11}, c.Floor())
	c.Read("g", nil, c.Floor())
	if bad, acked, reads := c.Outcome(); len(bad) != 2 || acked != 1 || reads != 5 {
		t.Errorf("two went back: %v, %d, %d", bad, acked, reads)
	}
}
