// Package buf is pooled byte buffers under one budget: frames and scratch space that cannot exceed a
// fixed number of bytes, however many peers ask, and that allocate nothing once they are warm.
//
// # Sizes
//
// A buffer's capacity is the next size class: 512 bytes, then four steps to each doubling, up to 128
// MiB, so at most a quarter is wasted. Larger buffers are accounted, but not kept. All counting is in
// capacities.
//
// # Budget
//
// Buffers in use and idle ones together stay within the budget; idle ones go first. Trim, called now
// and then, frees what a burst has left behind.
//
// Holders that grow, each waiting for what the others have, would wait for ever. So there is one
// overdraft: when the budget is used up, one holder at a time may go beyond it with GetWait and Grow,
// until its last Release. What is in use is therefore at most the budget and one buffer (and, while it
// grows, the one that it grows out of).
//
// # Ownership
//
// Get gives a Buffer with one reference. Whoever holds a reference may use the bytes; Retain adds one
// for another holder, and the last Release gives the buffer back. The bytes are not cleared: a new
// owner finds old content.
package buf

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"platter/io/invariant"
)

// ErrBudget: the budget is in use.
var ErrBudget = errors.New("buffer budget is used up")

const (
	smallestBits  = 9
	largestBits   = 27
	stepsPerPower = 4
	classCount    = (largestBits-smallestBits)*stepsPerPower + 1
	// roundBytes is what capacities beyond the classes are rounded up to.
	roundBytes = 4 << 20
)

// Pool is safe for concurrent use.
type Pool struct {
	budget int64

	mu      sync.Mutex
	used    int64 // capacities of buffers that have a reference
	idle    int64 // and of those that wait for reuse
	classes [classCount]class
	over    bool      // somebody holds the overdraft
	waiters list.List // of *waiter, first come first served
}

// class is the idle buffers of one size; the last one freed is taken first, while it is in the CPU's cache.
type class struct {
	free []*Buffer
	// spare is the fewest that were free since the last Trim.
	spare int
}

type waiter struct {
	bytes int64
	over  bool          // served by the overdraft
	turn  chan struct{} // closed once the bytes are counted as used
}

// Buffer is bytes with an owner. B may be resliced by the owner; the pool remembers the whole.
type Buffer struct {
	B     []byte
	whole []byte
	pool  *Pool
	class int  // classCount: not kept
	over  bool // holds the overdraft
	refs  atomic.Int32
}

// New returns an empty pool with a budget.
func New(budgetBytes int64) *Pool { return &Pool{budget: budgetBytes} }

// classOf is the class of the buffers that hold n bytes, and their capacity.
func classOf(n int) (index, capacity int) {
	invariant.AtLeast(n, 0, "bytes asked for")
	if n <= 1<<smallestBits {
		return 0, 1 << smallestBits
	}
	power := bits.Len(uint(n-1)) - 1 // 2^power < n <= 2^(power+1)
	if power >= largestBits {
		return classCount, (n + roundBytes - 1) / roundBytes * roundBytes
	}
	step := 1 << power / stepsPerPower
	j := (n - 1 - 1<<power) / step
	return (power-smallestBits)*stepsPerPower + j + 1, 1<<power + (j+1)*step
}

// Get returns a buffer with len(B) == n at once, or ErrBudget.
func (p *Pool) Get(n int) (*Buffer, error) {
	index, capacity := classOf(n)
	p.mu.Lock()
	if p.waiters.Len() > 0 || p.used+int64(capacity) > p.budget {
		p.mu.Unlock()
		return nil, fmt.Errorf("%w: %d bytes wanted, %d in all", ErrBudget, n, p.budget)
	}
	p.used += int64(capacity)
	return p.make(n, index, capacity), nil
}

// GetWait is Get that waits for others to release theirs, in the order of the calls, or goes beyond
// the budget when nobody else does. The error is of ctx, which ended first.
func (p *Pool) GetWait(ctx context.Context, n int) (*Buffer, error) { return p.get(ctx, n, false) }

// get waits unless the caller holds the overdraft.
func (p *Pool) get(ctx context.Context, n int, over bool) (*Buffer, error) {
	index, capacity := classOf(n)
	p.mu.Lock()
	fits := p.used+int64(capacity) <= p.budget
	switch {
	case over:
		p.used += int64(capacity)
	case p.waiters.Len() == 0 && (fits || !p.over):
		p.used += int64(capacity)
		over = !fits
		p.over = p.over || over
	default:
		var err error
		if over, err = p.queue(ctx, int64(capacity)); err != nil {
			return nil, fmt.Errorf("wait for %d bytes of memory: %w", n, err)
		}
		p.mu.Lock()
	}
	b := p.make(n, index, capacity)
	b.over = over
	return b, nil
}

// make is called with the lock held and the capacity counted, and releases the lock.
func (p *Pool) make(n, index, capacity int) *Buffer {
	b := p.reuse(index)
	if b == nil {
		p.dropIdle(p.used + p.idle - p.budget)
	}
	p.mu.Unlock()
	if b == nil {
		b = &Buffer{whole: make([]byte, capacity), pool: p, class: index}
	}
	b.refs.Store(1)
	b.B = b.whole[:n]
	return b
}

// queue waits until bytes are counted as used, maybe by the overdraft. It is called with the lock held
// and releases it.
func (p *Pool) queue(ctx context.Context, bytes int64) (over bool, err error) {
	w := &waiter{bytes: bytes, turn: make(chan struct{})}
	place := p.waiters.PushBack(w)
	p.mu.Unlock()
	select {
	case <-w.turn:
		return w.over, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-w.turn: // it came at the same moment
		return w.over, nil
	default:
	}
	p.waiters.Remove(place)
	p.wake() // those behind may need less
	return false, ctx.Err()
}

// wake serves waiters in order for as long as there is room, and one more by the overdraft.
func (p *Pool) wake() {
	for first := p.waiters.Front(); first != nil; first = p.waiters.Front() {
		w := first.Value.(*waiter)
		fits := p.used+w.bytes <= p.budget
		if !fits && p.over {
			return
		}
		w.over = !fits
		p.over = p.over || w.over
		p.used += w.bytes
		p.waiters.Remove(first)
		close(w.turn)
	}
}

func (p *Pool) reuse(index int) *Buffer {
	if index == classCount {
		return nil
	}
	c := &p.classes[index]
	last := len(c.free) - 1
	if last < 0 {
		return nil
	}
	b := c.free[last]
	c.free[last] = nil
	c.free = c.free[:last]
	c.spare = min(c.spare, last)
	p.idle -= int64(len(b.whole))
	return b
}

// dropIdle lets go of at least bytes of idle buffers if there are that many, the largest first.
func (p *Pool) dropIdle(bytes int64) {
	for i := classCount - 1; i >= 0 && bytes > 0; i-- {
		for len(p.classes[i].free) > 0 && bytes > 0 {
			bytes -= int64(len(p.reuse(i).whole))
		}
	}
}

// Retain adds a reference for another holder.
func (b *Buffer) Retain() {
	invariant.AtLeast(b.refs.Add(1), 2, "references of a buffer after Retain")
}

// Release gives one reference back. Nobody touches the bytes after the last one.
func (b *Buffer) Release() {
	refs := b.refs.Add(-1)
	invariant.AtLeast(refs, 0, "references of a buffer after Release")
	if refs > 0 {
		return
	}
	b.B = nil
	p := b.pool
	p.mu.Lock()
	p.used -= int64(len(b.whole))
	if b.over {
		p.over, b.over = false, false
	}
	if b.class < classCount {
		c := &p.classes[b.class]
		c.free = append(c.free, b)
		p.idle += int64(len(b.whole))
	}
	p.wake()
	p.dropIdle(p.used + p.idle - p.budget)
	p.mu.Unlock()
}

// Grow makes len(B) == n and keeps the first keep bytes; only the sole holder may. It waits as GetWait
// does, for the new capacity on top of the old one. On an error the buffer is as it was.
func (b *Buffer) Grow(ctx context.Context, n, keep int) error {
	if n <= len(b.whole) {
		b.B = b.whole[:n]
		return nil
	}
	held := b.over
	larger, err := b.pool.get(ctx, n, held)
	if err != nil {
		return err
	}
	copy(larger.B, b.whole[:keep])
	b.B, b.whole, b.class, larger.whole, larger.class = larger.B, larger.whole, larger.class, b.whole, b.class
	b.over, larger.over = larger.over, false
	larger.Release()
	return nil
}

// Trim frees the idle buffers that were not needed since the last Trim.
func (p *Pool) Trim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.classes {
		c := &p.classes[i]
		for range min(c.spare, len(c.free)) {
			p.reuse(i)
		}
		c.spare = len(c.free)
	}
}

// Usage is a pool's state in bytes, and how many callers wait.
type Usage struct {
	Budget, Used, Idle int64
	Waiting            int
}

// Usage tells the present state.
func (p *Pool) Usage() Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Usage{p.budget, p.used, p.idle, p.waiters.Len()}
}
