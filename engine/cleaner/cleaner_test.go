package cleaner

import (
	"errors"
	"slices"
	"testing"
)

type fakeLog struct {
	segments int
	err      error
	asked    []int64
}

func (f *fakeLog) Retain(nowMs, highWatermark int64) (int, error) {
	f.asked = append(f.asked, nowMs, highWatermark)
	return f.segments, f.err
}

func TestRetain(t *testing.T) {
	bad := errors.New("bad")
	logs := []*fakeLog{{segments: 2}, {segments: 1, err: bad}, {segments: 4}}
	var cs []Candidate
	for i, l := range logs {
		cs = append(cs, Candidate{Name: string(rune('a' + i)), Log: l, HighWatermark: int64(i)})
	}
	n, failures := Retain(99, slices.Values(cs), func() bool { return false })
	if n != 7 || len(failures) != 1 || failures[0] != (Failure{"b", bad}) {
		t.Errorf("%d segments, %v", n, failures)
	}
	for i, l := range logs {
		if !slices.Equal(l.asked, []int64{99, int64(i)}) {
			t.Errorf("log %d was asked %v", i, l.asked)
		}
	}
	if n, _ := Retain(99, slices.Values(cs), func() bool { return len(logs[0].asked) == 4 }); n != 2 {
		t.Errorf("stopped after %d segments", n)
	}
}
