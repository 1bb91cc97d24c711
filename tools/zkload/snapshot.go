package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"platter/tools/zkwire"
)

const (
	snapFillBatch   = 500    // creates in a multi
	snapFanout      = 1000   // children of a node
	snapEvery       = 20_000 // writes after which the server makes a snapshot (snapCount)
	snapSessions    = 8      // that write meanwhile
	snapLookEvery   = time.Millisecond
	snapTempPattern = "snapshot.*.tmp"
)

// snapshot shows what a snapshot costs those who write meanwhile: their latency while one is being written beside that
// of the rest of the run, over a tree of many nodes, whose data they change at random: the worst for a copy-on-write.
func snapshot(o *options) error {
	dir, err := os.MkdirTemp(o.dir, "zkload")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	launch, err := coordLauncher(o.ours, dir, fmt.Sprint("snapCount=", snapEvery))
	if err != nil {
		return err
	}
	s, _, err := begin(launch, dir)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := fill(s.addr, o.nodes, make([]byte, o.size)); err != nil {
		return err
	}
	full := residentBytes(s.pid)
	var writing atomic.Bool // a snapshot is
	stop := make(chan struct{})
	var look sync.WaitGroup
	snapshots, most := 0, full
	look.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(snapLookEvery):
			}
			found, _ := filepath.Glob(filepath.Join(dir, "*", snapTempPattern))
			if now := len(found) > 0; now != writing.Load() {
				writing.Store(now)
				if most = max(most, residentBytes(s.pid)); now {
					snapshots++
				}
			}
		}
	})
	during, beside, err := writeFor(s.addr, o, &writing)
	close(stop)
	look.Wait()
	if err != nil {
		return err
	}
	fmt.Printf("%d nodes of %d bytes, %d snapshots; MB resident %.0f, at most %.0f\n", o.nodes, o.size, snapshots, float64(full)/1e6, float64(most)/1e6)
	fmt.Printf("%-22s %9s %9s %9s %9s %9s   ms\n", "writes", "count", "p50", "p99", "p99.9", "max")
	for _, x := range []struct {
		name string
		took []time.Duration
	}{{"during a snapshot", during}, {"at other times", beside}} {
		slices.Sort(x.took)
		fmt.Printf("%-22s %9d %9.2f %9.2f %9.2f %9.2f\n", x.name, len(x.took), ms(quantile(x.took, .5)), ms(quantile(x.took, .99)),
			ms(quantile(x.took, .999)), ms(quantile(x.took, 1)))
	}
	return nil
}

func snapNode(i int) string { return fmt.Sprintf("/snap/%d/%d", i/snapFanout, i%snapFanout) }

// fill makes so many nodes below /snap, some at once.
func fill(addr string, nodes int, data []byte) error {
	c, err := open(addr)
	if err != nil {
		return err
	}
	defer c.End()
	if err := ensure(c, "/snap", nil); err != nil {
		return err
	}
	var creates []zkwire.Body
	for i := range nodes {
		if i%snapFanout == 0 {
			creates = append(creates, zkwire.Create(fmt.Sprintf("/snap/%d", i/snapFanout), nil, 0))
		}
		creates = append(creates, zkwire.Create(snapNode(i), data, 0))
		if len(creates) < snapFillBatch && i < nodes-1 {
			continue
		}
		r, err := c.Do(zkwire.OpMulti, func(e *zkwire.Enc) {
			for _, create := range creates {
				e.MultiHeader(zkwire.OpCreate, false)
				create(e)
			}
			e.MultiHeader(-1, true)
		})
		if err == nil && r.Err != 0 {
			err = fmt.Errorf("multi: error %d", r.Err)
		}
		if err != nil {
			return err
		}
		creates = creates[:0]
	}
	return nil
}

// writeFor has sessions write to nodes at random, one write at a time each, and gives how long those took that began
// or ended while flag was set, and the others.
func writeFor(addr string, o *options, flag *atomic.Bool) (set, unset []time.Duration, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	end := time.Now().Add(o.dur)
	data := make([]byte, o.size)
	for range snapSessions {
		c, err := open(addr)
		if err != nil {
			return nil, nil, err
		}
		all.Go(func() {
			defer c.End()
			var took [2][]time.Duration
			var failed error
			for failed == nil && time.Now().Before(end) {
				began, at, before := time.Now(), 0, flag.Load()
				var r zkwire.Reply
				r, failed = c.Do(zkwire.OpSetData, zkwire.Set(snapNode(rand.IntN(o.nodes)), data, -1))
				if failed == nil && r.Err != 0 {
					failed = fmt.Errorf("set: error %d", r.Err)
				}
				if before || flag.Load() {
					at = 1
				}
				took[at] = append(took[at], time.Since(began))
			}
			mu.Lock()
			defer mu.Unlock()
			set, unset = append(set, took[1]...), append(unset, took[0]...)
			if failed != nil {
				err = failed
			}
		})
	}
	all.Wait()
	return set, unset, err
}
