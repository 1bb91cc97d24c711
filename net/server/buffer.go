package server

import (
	"context"
	"math/bits"
	"sync"
)

// A frame's buffer starts at firstBytes at most, whatever size was announced, and doubles as bytes
// arrive. Sizes are powers of two from classBytesMin to classBytesMax, which are pooled; larger ones
// are left to the garbage collector.
const (
	firstBytes    = 64 << 10
	classBytesMin = 4 << 10
	classBytesMax = 16 << 20
)

// buffer holds one frame. Its capacity is counted against the budget until free.
type buffer struct {
	bytes  []byte
	budget *budget
	over   bool // holds the budget's overdraft
}

var pools [13]sync.Pool // by power of two above classBytesMin; of *[]byte

func classOf(n int) int {
	return bits.Len(uint(max(n, classBytesMin)-1)) - bits.Len(uint(classBytesMin-1))
}

func takeBytes(n int) []byte {
	if n > classBytesMax {
		return make([]byte, 0, n)
	}
	class := classOf(n)
	if p, ok := pools[class].Get().(*[]byte); ok {
		return (*p)[:0]
	}
	return make([]byte, 0, classBytesMin<<class)
}

func giveBytes(p []byte) {
	if n := cap(p); n >= classBytesMin && n <= classBytesMax && n&(n-1) == 0 {
		p = p[:0]
		pools[classOf(n)].Put(&p)
	}
}

// grow makes room for more of a frame of size bytes, keeping what has arrived.
func (b *buffer) grow(ctx context.Context, size int) error {
	p := takeBytes(min(size, 2*cap(b.bytes)))
	over, err := b.budget.take(ctx, int64(cap(p)), b.over)
	if err != nil {
		return err
	}
	p = append(p, b.bytes...)
	b.budget.give(int64(cap(b.bytes)), false)
	giveBytes(b.bytes)
	b.bytes, b.over = p, over
	return nil
}

// free gives the buffer back; nobody may hold a view on it.
func (b *buffer) free() {
	n := int64(cap(b.bytes))
	giveBytes(b.bytes)
	b.budget.give(n, b.over)
	*b = buffer{}
}

// budget bounds the bytes of all frames in memory. When it is used up, one frame at a time may go over
// it until it is whole and answered, or frames that wait for each other's memory would wait for ever.
type budget struct {
	mu        sync.Mutex
	max, used int64
	overdrawn bool
	waiters   []chan struct{} // woken all at once: rare
}

func newBudget(max int64) *budget { return &budget{max: max} }

// buffer takes memory for n bytes, waiting for it while the budget is used up.
func (g *budget) buffer(ctx context.Context, n int) (*buffer, error) {
	p := takeBytes(n)
	over, err := g.take(ctx, int64(cap(p)), false)
	if err != nil {
		return nil, err
	}
	return &buffer{bytes: p, budget: g, over: over}, nil
}

// take counts n bytes; over says that the caller holds the overdraft, as held said or from now on.
func (g *budget) take(ctx context.Context, n int64, held bool) (over bool, err error) {
	for {
		g.mu.Lock()
		if held || g.used+n <= g.max || !g.overdrawn {
			over = held || g.used+n > g.max
			g.overdrawn = g.overdrawn || over
			g.used += n
			g.mu.Unlock()
			return over, nil
		}
		wait := make(chan struct{})
		g.waiters = append(g.waiters, wait)
		g.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

func (g *budget) give(n int64, over bool) {
	g.mu.Lock()
	g.used -= n
	if over {
		g.overdrawn = false
	}
	waiters := g.waiters
	g.waiters = nil
	g.mu.Unlock()
	for _, w := range waiters {
		close(w)
	}
}
