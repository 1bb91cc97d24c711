package client

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseAge(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"PT0S": 0, "PT1H30M": 90 * time.Minute, "P7D": 7 * 24 * time.Hour, "P1W": 7 * 24 * time.Hour,
		"P1DT2H3M4.5S": 26*time.Hour + 3*time.Minute + 4500*time.Millisecond, "36h": 36 * time.Hour, "1h30m": 90 * time.Minute,
	} {
		if got, err := ParseAge(text); err != nil || got != want {
			t.Errorf("%s: %v %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "P", "PT", "P1DT", "P1Y", "1d", "-1h", "PT-1H", "P999999D", "soon"} {
		if got, err := ParseAge(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func TestParseDateTime(t *testing.T) {
	noon := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for _, text := range []string{
		"2026-07-01T12:00:00.000", "2026-07-01T12:00:00", "2026-07-01T12:00", "2026-07-01T12:00:00Z",
		"2026-07-01T14:00:00.000+02:00", "2026-07-01T14:00:00+0200", "2026-07-01T06:00:00-06",
	} {
		if got, err := ParseDateTime(text); err != nil || !got.Equal(noon) {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	if got, err := ParseDateTime("2026-07-01T12:00:00.250"); err != nil || got.Sub(noon) != 250*time.Millisecond {
		t.Errorf("%v %v", got, err)
	}
	for _, text := range []string{"", "12:00", "2026-13-01", "2026-07-01 12:00:00", "1782907200000"} {
		if got, err := ParseDateTime(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func TestReadOffsetsCSV(t *testing.T) {
	got, err := ReadOffsetsCSV(strings.NewReader("# topic,partition,offset\r\na,0,5\r\n\"a\", 1, 9223372036854775807\n\nb.c,0,0"))
	if err != nil || len(got) != 3 || got[1] != (FileOffset{"a", 1, math.MaxInt64}) || got[2] != (FileOffset{"b.c", 0, 0}) {
		t.Errorf("%v %v", got, err)
	}
	for text, want := range map[string]string{
		"": "no line", "a,0": "line 1", "a,0,1,2": "line 1", "a,0,1\na,0,2": "line 2", "a,-1,1": "line 1", "a,0,-1": "line 1",
		",0,1": "line 1", "a,0,1\na,x,1": "line 2", "a,2147483648,1": "line 1", "a,0,\"": "line 1",
	} {
		if _, err := ReadOffsetsCSV(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestShiftDoesNotRunOver(t *testing.T) {
	for _, c := range [][3]int64{{5, 3, 8}, {5, -3, 2}, {5, -9, -4}, {5, math.MaxInt64, math.MaxInt64}, {5, math.MinInt64, math.MinInt64 + 5}} {
		if got := shifted(c[0], c[1]); got != c[2] {
			t.Errorf("%d by %d: %d", c[0], c[1], got)
		}
	}
}
