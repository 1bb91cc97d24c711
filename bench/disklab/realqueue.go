package disklab

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"platter/io/disk"
	"platter/io/rawdisk"
)

// queued plays a load of many operations at once from one goroutine, by the kernel's queue: op gives the position of the next
// one, and may change the buffer that is written. done is false where there is no such queue: then a thread does each.
func (t *realTarget) queued(ctx context.Context, c *Cell, d time.Duration, bufs [][]byte, op func(n int64, rnd *rand.Rand, buf []byte) (pos int64)) (done bool, err error) {
	q, err := rawdisk.NewQueue(t.raw, c.Depth)
	if errors.Is(err, disk.ErrUnsupported) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	// Whatever happens, nothing is under way when the buffers are given up.
	defer func() { err = errors.Join(err, q.Close()) }()
	rnd := rand.New(rand.NewPCG(t.o.Seed, 0))
	at := make([]time.Time, c.Depth)
	var latencies []time.Duration
	var bytes, n int64
	flying := 0
	put := func(slot int, now time.Time) {
		q.Put(slot, c.Op == Write, bufs[slot], op(n, rnd, bufs[slot]))
		at[slot], n, flying = now, n+1, flying+1
	}
	cpu, began := cpuNow(), time.Now()
	for slot := range c.Depth {
		put(slot, began)
	}
	for flying > 0 {
		if err := q.Submit(); err != nil {
			return true, err
		}
		ready, err := q.Wait()
		if err != nil {
			return true, err
		}
		now := time.Now()
		for _, r := range ready {
			flying--
			if r.Err != nil {
				return true, r.Err
			}
			bytes += int64(r.N)
			latencies = append(latencies, now.Sub(at[r.Slot]))
			if now.Sub(began) < d && ctx.Err() == nil {
				put(r.Slot, now)
			}
		}
	}
	c.CPUSeconds = (cpuNow() - cpu).Seconds()
	c.fill(bytes, time.Since(began), latencies)
	return true, ctx.Err()
}
