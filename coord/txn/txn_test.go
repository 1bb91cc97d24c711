package txn

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// blocks hands out blocks of ten; it may be told to fail, or to wait.
type blocks struct {
	mu    sync.Mutex
	next  int64
	calls int
	fail  error
	gate  chan struct{}
}

func (b *blocks) ProducerIDBlock(ctx context.Context) (int64, int32, error) {
	b.mu.Lock()
	gate := b.gate
	b.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if b.fail != nil {
		return 0, 0, b.fail
	}
	b.next += 10
	return b.next - 10, 10, nil
}

func TestIDsAreUnique(t *testing.T) {
	p := New(&blocks{})
	defer p.Close()
	var mu sync.Mutex
	seen := map[int64]bool{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				id, err := p.Next(t.Context())
				mu.Lock()
				if err != nil || seen[id] {
					t.Errorf("id %d, %v", id, err)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
}

// TestPrefetch: while the next block is on its way, the ids at hand go on.
func TestPrefetch(t *testing.T) {
	b := &blocks{}
	p := New(b)
	defer p.Close()
	if id, err := p.Next(t.Context()); id != 0 || err != nil {
		t.Fatal(id, err)
	}
	b.mu.Lock()
	b.gate = make(chan struct{})
	b.mu.Unlock()
	for want := int64(1); want < 10; want++ {
		if id, err := p.Next(t.Context()); id != want || err != nil {
			t.Fatal(id, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := p.Next(ctx); !errors.Is(err, ErrNotReady) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("without a block: %v", err)
	}
	close(b.gate)
	if id, err := p.Next(t.Context()); id != 10 || err != nil {
		t.Fatal(id, err)
	}
}

func TestFailure(t *testing.T) {
	cause := errors.New("away")
	b := &blocks{fail: cause}
	p := New(b)
	defer p.Close()
	if _, err := p.Next(t.Context()); !errors.Is(err, ErrNotReady) || !errors.Is(err, cause) {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.fail = nil
	b.mu.Unlock()
	if id, err := p.Next(t.Context()); id != 0 || err != nil {
		t.Fatal(id, err)
	}
}

func TestInit(t *testing.T) {
	p := New(&blocks{})
	defer p.Close()
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		r    InitRequest
		want error
	}{
		"new":                    {InitRequest{ProducerID: -1, ProducerEpoch: -1}, nil},
		"again":                  {InitRequest{ProducerID: 3, ProducerEpoch: 0}, nil},
		"id alone":               {InitRequest{ProducerID: 3, ProducerEpoch: -1}, ErrInvalidRequest},
		"epoch alone":            {InitRequest{ProducerID: -1, ProducerEpoch: 3}, ErrInvalidRequest},
		"empty transactional id": {InitRequest{TransactionalID: text(""), ProducerID: -1, ProducerEpoch: -1}, ErrInvalidRequest},
		"transactional id":       {InitRequest{TransactionalID: text("t"), ProducerID: -1, ProducerEpoch: -1}, ErrTransactionalID},
	} {
		id, epoch, err := p.Init(t.Context(), c.r)
		if !errors.Is(err, c.want) || err == nil && epoch != 0 || err != nil && (id != -1 || epoch != -1) {
			t.Errorf("%s: %d, %d, %v", name, id, epoch, err)
		}
	}
}
