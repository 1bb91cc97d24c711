package sim

import (
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// A failure prints its seed:
//
//	go test ./tools/sim -run TestCluster -sim.seed 4711 -v
//	PLATTER_SIM_SEEDS=100000 go test ./tools/sim -run TestCluster -timeout 0
var oneSeed = flag.Int64("sim.seed", -1, "run this one seed, and print what happens in it")

const faultsPerSeed = 12

func seeds(t *testing.T, otherwise uint64) (from, to uint64) {
	if *oneSeed >= 0 {
		return uint64(*oneSeed), uint64(*oneSeed) + 1
	}
	if s := os.Getenv("PLATTER_SIM_SEEDS"); s != "" {
		if _, err := fmt.Sscanf(s, "%d-%d", &from, &to); err == nil {
			return from, to
		}
		n, err := strconv.ParseUint(s, 10, 63)
		if err != nil {
			t.Fatalf("PLATTER_SIM_SEEDS=%q, want a number or a range: %v", s, err)
		}
		return 0, n
	}
	if testing.Short() {
		otherwise /= 10
	}
	return 0, otherwise
}

// TestCluster: no seed breaks a promise.
func TestCluster(t *testing.T) {
	from, to := seeds(t, 3000)
	var trace func(string)
	if *oneSeed >= 0 {
		trace = func(s string) { t.Log(s) }
	}
	// Each run is on one goroutine, and has nothing in common with the others.
	var next, failed atomic.Uint64
	next.Store(from)
	failed.Store(math.MaxUint64)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for {
				seed := next.Add(1) - 1
				if seed >= to || failed.Load() != math.MaxUint64 {
					return
				}
				if err := Run(seed, faultsPerSeed, NoBug, trace); err != nil {
					failed.Store(seed)
					t.Errorf("seed %d: %v\nreplay: go test ./tools/sim -run TestCluster -sim.seed %d -v", seed, err, seed)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d seeds", to-from)
}

// TestPlantedBugs: each bug is found within some seeds, by the promise that it breaks.
func TestPlantedBugs(t *testing.T) {
	for _, bug := range []struct {
		plant       Plant
		name, found string
	}{
		{AckWritten, "acknowledged too early", "was acknowledged"},
		{KeepTail, "not cut back", "a consumer was given|was acknowledged"},
		{TrustRejoined, "trusted after a power cut", "was acknowledged"},
		{DropEarly, "not told again", "the cluster is not whole"},
	} {
		t.Run(bug.name, func(t *testing.T) {
			for seed := range uint64(500) {
				if err := Run(seed, faultsPerSeed, bug.plant, nil); err != nil {
					t.Logf("seed %d: %v", seed, err)
					if !regexp.MustCompile(bug.found).MatchString(err.Error()) {
						t.Error("it was found by something else")
					}
					return
				}
			}
			t.Fatal("500 seeds did not find it")
		})
	}
}

// TestReplay: the same seed is the same run, step by step.
func TestReplay(t *testing.T) {
	for seed := range uint64(20) {
		var runs [2][]string
		for i := range runs {
			if err := Run(seed, faultsPerSeed, NoBug, func(s string) { runs[i] = append(runs[i], s) }); err != nil {
				t.Fatal(err)
			}
		}
		for i := range runs[0] {
			if i >= len(runs[1]) || runs[0][i] != runs[1][i] {
				t.Fatalf("seed %d: step %d is %q, and was %q", seed, i, runs[1][min(i, len(runs[1])-1)], runs[0][i])
			}
		}
	}
}
