package disklab

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"platter/bench/cputime"
)

// worker does the n-th operation of a load; who is the goroutine's number.
type worker func(who int, n int64, rnd *rand.Rand) (bytes int64, err error)

// load is a closed loop: so many operations under way, until the time is up, the operations are done, or one fails.
type load struct {
	depth  int
	time   time.Duration
	opsMax int64 // 0: as many as the time allows
	seed   uint64
	do     worker
	finish func() error // counted too: a sync at the end
}

// run plays a load into a cell.
func (l load) run(ctx context.Context, c *Cell) error {
	var next, bytes atomic.Int64
	var failed atomic.Pointer[error]
	latencies := make([][]time.Duration, l.depth)
	cpu := cpuNow()
	began := time.Now()
	var all sync.WaitGroup
	for who := range l.depth {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(l.seed, uint64(who)))
			for failed.Load() == nil && ctx.Err() == nil {
				n := next.Add(1) - 1
				at := time.Now()
				if l.opsMax > 0 && n >= l.opsMax || n > 0 && at.Sub(began) >= l.time {
					return
				}
				k, err := l.do(who, n, rnd)
				if err != nil {
					failed.Store(&err)
					return
				}
				bytes.Add(k)
				latencies[who] = append(latencies[who], time.Since(at))
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.finish != nil {
		if err := l.finish(); err != nil {
			return err
		}
	}
	c.fill(bytes.Load(), time.Since(began), slices.Concat(latencies...))
	if cpu > 0 {
		c.CPUSeconds = (cpuNow() - cpu).Seconds()
	}
	return nil
}

// cpuNow is this process's processor time, 0 where nobody tells.
func cpuNow() time.Duration {
	d, err := cputime.Of(os.Getpid())
	if err != nil {
		return 0
	}
	return d
}

// fill makes figures of what was done.
func (c *Cell) fill(bytes int64, took time.Duration, latencies []time.Duration) {
	c.Ops, c.Bytes, c.Seconds = int64(len(latencies)), bytes, took.Seconds()
	if took > 0 {
		c.BytesPerSec, c.OpsPerSec = float64(bytes)/c.Seconds, float64(c.Ops)/c.Seconds
	}
	if len(latencies) == 0 {
		return
	}
	slices.Sort(latencies)
	at := func(q float64) float64 {
		return micros(latencies[max(0, int(math.Ceil(q*float64(len(latencies))))-1)])
	}
	c.P50, c.P99, c.Max = at(0.5), at(0.99), at(1)
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
