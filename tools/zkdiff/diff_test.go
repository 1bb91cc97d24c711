package main

import (
	"flag"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"platter/tools/zktest"
)

var seed = flag.Uint64("seed", 0, "first seed of the comparison; 0: from the clock")

func ours(t *testing.T) *target {
	t.Helper()
	return mustTarget(t, zktest.Ours(t, ourConfig()))
}

func mustTarget(t *testing.T, addr string) *target {
	t.Helper()
	x, err := newTarget(addr, shortMs, longMs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.close)
	return x
}

// TestRecorded replays what was recorded of Apache's server.
func TestRecorded(t *testing.T) {
	f, err := os.Open("testdata/apache-3.8.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	runs, err := readRecorded(f)
	if err != nil || len(runs) == 0 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	s := ours(t)
	for _, x := range runs {
		replay(t, s, x)
	}
}

// replay plays a recorded run; what differs must differ three times, or the machine was too busy for a timeout.
func replay(t *testing.T, s *target, x recorded) {
	t.Helper()
	var got []string
	var err error
	for range 3 {
		got, err = s.play(x.steps)
		if err == nil && cmp.Equal(got, x.lines) {
			return
		}
	}
	t.Errorf("seed %s: %v\n-Apache +ours\n%s", x.seed, err, cmp.Diff(x.lines, got))
}

// duration is how long the comparison runs: PLATTER_ZKDIFF_SECONDS, or a few seconds.
func duration(t *testing.T) time.Duration {
	seconds := 15
	if testing.Short() {
		seconds = 3
	}
	if v := os.Getenv("PLATTER_ZKDIFF_SECONDS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		seconds = n
	}
	return time.Duration(seconds) * time.Second
}

// TestLikeApache plays new scripts on both servers, for as long as it is given.
func TestLikeApache(t *testing.T) {
	theirs := mustTarget(t, zktest.Real(t, realOptions()).Addr)
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixMilli())
	}
	t.Logf("from seed %d on (replay with -seed)", first)
	p := &pair{ours(t), theirs}
	n := uint64(0)
	for end := time.Now().Add(duration(t)); time.Now().Before(end); n++ {
		d, err := p.check(first + n)
		if err != nil {
			t.Fatal(err)
		}
		if d != nil {
			t.Fatal(d)
		}
	}
	t.Logf("%d scripts", n)
}

// TestFindsABug: a server with one small mistake is told from a sound one, and the script that shows it is short.
// The mistake stands between the client and the server: another error code.
func TestFindsABug(t *testing.T) {
	sound := ours(t)
	p := &pair{mustTarget(t, liar(t, zktest.Ours(t, ourConfig()))), sound}
	for seed := range uint64(200) {
		d, err := p.check(seed)
		if err != nil {
			t.Fatal(err)
		}
		if d == nil {
			continue
		}
		if len(d.steps) > 3 {
			t.Errorf("shrunk to %d steps only:\n%s", len(d.steps), d)
		}
		return
	}
	t.Error("the mistake was not found")
}
