// Package txn is the transaction coordinator. For now it hands out producer ids (idempotence, KIP-98);
// transactions come later, and until then a transactional id is refused for good.
//
// Ids come in blocks that the coordinator has reserved for this broker, so that nearly none costs a
// round trip. Half a block before the end the next one is fetched in the background. Ids of a block
// that were not used when the broker ends are lost; there are 2^63.
package txn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

var (
	// ErrTransactionalID: transactions are not served yet. Fatal to the client, never retriable.
	ErrTransactionalID = errors.New("transactional ids are not supported")
	// ErrInvalidRequest: an empty transactional id, or only one of producer id and epoch was given.
	ErrInvalidRequest = errors.New("invalid request")
	// ErrNotReady: no block of ids could be reserved; the client may retry.
	ErrNotReady = errors.New("producer ids are not available now")
)

// blockTimeout bounds one reservation.
const blockTimeout = 10 * time.Second

// Blocks reserves producer ids: [first, first+count).
type Blocks interface {
	ProducerIDBlock(ctx context.Context) (first int64, count int32, err error)
}

// InitRequest is one InitProducerId. TransactionalID nil: none. ProducerID and ProducerEpoch -1: none.
type InitRequest struct {
	TransactionalID *string
	ProducerID      int64
	ProducerEpoch   int16
}

// ProducerIDs hands out producer ids. Safe for concurrent use.
type ProducerIDs struct {
	blocks Blocks
	life   context.Context
	end    context.CancelFunc

	mu       sync.Mutex
	now      block
	next     block
	fetching *fetch // the one reservation under way; nil: none
}

// block is the ids that are left: [first, end).
type block struct {
	first, end, half int64
}

func (b block) empty() bool { return b.first >= b.end }

// fetch is one reservation; err may be read once done is closed.
type fetch struct {
	done chan struct{}
	err  error
}

// New returns an allocator without a block.
func New(b Blocks) *ProducerIDs {
	p := &ProducerIDs{blocks: b}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// Close ends the reservation that may be under way.
func (p *ProducerIDs) Close() { p.end() }

// Init answers InitProducerId: a new producer id, epoch 0. An idempotent producer that names the id and
// epoch it has (KIP-360) gets a new id too, as from Kafka: only transactional ids keep theirs.
func (p *ProducerIDs) Init(ctx context.Context, r InitRequest) (id int64, epoch int16, err error) {
	switch {
	case (r.ProducerID == -1) != (r.ProducerEpoch == -1):
		return -1, -1, fmt.Errorf("%w: producer id %d with epoch %d", ErrInvalidRequest, r.ProducerID, r.ProducerEpoch)
	case r.TransactionalID != nil && *r.TransactionalID == "":
		return -1, -1, fmt.Errorf("%w: the transactional id is empty", ErrInvalidRequest)
	case r.TransactionalID != nil:
		return -1, -1, ErrTransactionalID
	}
	if id, err = p.Next(ctx); err != nil {
		return -1, -1, err
	}
	return id, 0, nil
}

// Next gives an id that nobody had before.
func (p *ProducerIDs) Next(ctx context.Context) (int64, error) {
	for {
		p.mu.Lock()
		if p.now.empty() && !p.next.empty() {
			p.now, p.next = p.next, block{}
		}
		if !p.now.empty() {
			id := p.now.first
			p.now.first++
			if p.now.first >= p.now.half && p.next.empty() {
				p.fetch()
			}
			p.mu.Unlock()
			return id, nil
		}
		f := p.fetch()
		p.mu.Unlock()
		select {
		case <-f.done:
			if f.err != nil {
				return -1, fmt.Errorf("%w: %w", ErrNotReady, f.err)
			}
		case <-ctx.Done():
			return -1, fmt.Errorf("%w: %w", ErrNotReady, ctx.Err())
		}
	}
}

// fetch starts a reservation, or joins the one that is under way. Called under mu.
func (p *ProducerIDs) fetch() *fetch {
	if p.fetching != nil {
		return p.fetching
	}
	f := &fetch{done: make(chan struct{})}
	p.fetching = f
	go func() {
		ctx, cancel := context.WithTimeout(p.life, blockTimeout)
		defer cancel()
		first, count, err := p.blocks.ProducerIDBlock(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		if err == nil {
			p.next = block{first: first, end: first + int64(count), half: first + int64(count)/2}
		}
		p.fetching = nil
		f.err = err
		close(f.done)
	}()
	return f
}
