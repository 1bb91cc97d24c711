package buf

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func mustGet(t *testing.T, p *Pool, n int) *Buffer {
	t.Helper()
	b, err := p.Get(n)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.B) != n {
		t.Fatalf("asked for %d bytes, got %d", n, len(b.B))
	}
	return b
}

func TestClasses(t *testing.T) {
	last := -1
	for n := 0; n <= 1<<largestBits+3; n = n + 1 + n/97 {
		i, capacity := classOf(n)
		if capacity < n || n > 1<<smallestBits && (capacity-n)*4 > n {
			t.Fatalf("%d bytes in a class of %d", n, capacity)
		}
		if i < last || i > classCount {
			t.Fatalf("%d bytes in class %d after %d", n, i, last)
		}
		if j, again := classOf(capacity); i < classCount && (j != i || again != capacity) {
			t.Fatalf("class %d of %d bytes: its capacity is in class %d", i, capacity, j)
		}
		last = i
	}
}

func TestNothingIsAllocatedOnceWarm(t *testing.T) {
	p := New(512 << 20)
	for _, n := range []int{0, 100, 64 << 10, 1<<20 + 200, 100 << 20} {
		use := func() {
			b, _ := p.Get(n)
			b.Retain()
			b.Release()
			b.Release()
		}
		use()
		if got := testing.AllocsPerRun(10, use); got != 0 {
			t.Errorf("%v allocations for %d bytes", got, n)
		}
	}
}

func TestBudget(t *testing.T) {
	p := New(1 << 20)
	a, b := mustGet(t, p, 512<<10), mustGet(t, p, 512<<10)
	if _, err := p.Get(1); !errors.Is(err, ErrBudget) {
		t.Fatalf("beyond the budget: %v", err)
	}
	a.Release()
	c := mustGet(t, p, 1000) // the idle 512 KiB must go to make room
	if u := p.Usage(); u.Used+u.Idle > u.Budget {
		t.Errorf("%+v", u)
	}
	b.Release()
	c.Release()
	if u := p.Usage(); u.Used != 0 {
		t.Errorf("%+v", u)
	}
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestOneMayGoBeyondTheBudget(t *testing.T) {
	p := New(1 << 20)
	ctx := context.Background()
	all := mustGet(t, p, 1<<20)
	over, err := p.GetWait(ctx, 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.GetWait(soon(t), 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second one beyond the budget: %v", err)
	}
	if err := all.Grow(soon(t), 2<<20, 0); !errors.Is(err, context.DeadlineExceeded) || len(all.B) != 1<<20 {
		t.Errorf("growth of another one beyond the budget: %v", err)
	}
	if err := over.Grow(ctx, 5<<20, 0); err != nil { // it goes on to be whole
		t.Fatal(err)
	}
	over.Retain()
	over.Release()
	got := make(chan *Buffer)
	go func() { b, _ := p.GetWait(ctx, 3<<20); got <- b }()
	for p.Usage().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	over.Release()
	next := <-got // the overdraft is handed on
	if _, err := p.GetWait(soon(t), 1); err == nil {
		t.Error("two hold the overdraft")
	}
	next.Release()
	all.Release()
	if u := p.Usage(); u.Used != 0 || u.Used+u.Idle > u.Budget {
		t.Errorf("%+v", u)
	}
	mustGet(t, p, 1<<20)
	if _, err := p.GetWait(ctx, 1); err != nil {
		t.Errorf("the overdraft was lost: %v", err)
	}
}

func TestWaitersAreServedInOrder(t *testing.T) {
	p := New(1 << 20)
	all := mustGet(t, p, 1<<20)
	over, _ := p.GetWait(context.Background(), 1)
	turns := make(chan int, 3)
	release := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			b, err := p.GetWait(context.Background(), 1<<20)
			if err != nil {
				t.Error(err)
				return
			}
			turns <- i
			<-release
			b.Release()
		})
		for p.Usage().Waiting != i+1 {
			time.Sleep(time.Millisecond)
		}
	}
	if _, err := p.Get(1); !errors.Is(err, ErrBudget) {
		t.Errorf("a newcomer overtook those who wait: %v", err)
	}
	over.Release()
	for want := range 3 {
		if i := <-turns; i != want {
			t.Errorf("%d came in the place of %d", i, want)
		}
		release <- struct{}{}
	}
	wg.Wait()
	all.Release()
}

func TestAGivenUpTurnIsPassedOn(t *testing.T) {
	p := New(1 << 20)
	half := mustGet(t, p, 512<<10)
	over, _ := p.GetWait(context.Background(), 1<<20)
	ctx, giveUp := context.WithCancel(context.Background())
	big := make(chan error, 1)
	go func() {
		_, err := p.GetWait(ctx, 1<<20)
		big <- err
	}()
	for p.Usage().Waiting != 1 {
		time.Sleep(time.Millisecond)
	}
	small := make(chan *Buffer)
	go func() {
		b, _ := p.GetWait(context.Background(), 4<<10)
		small <- b
	}()
	for p.Usage().Waiting != 2 {
		time.Sleep(time.Millisecond)
	}
	giveUp()
	if err := <-big; !errors.Is(err, context.Canceled) {
		t.Errorf("the one that gave up: %v", err)
	}
	over.Release()
	(<-small).Release()
	half.Release()
	if u := p.Usage(); u.Used != 0 || u.Waiting != 0 {
		t.Errorf("%+v", u)
	}
}

func TestGrowKeepsContent(t *testing.T) {
	p := New(64 << 20)
	b := mustGet(t, p, 1000)
	want := bytes.Repeat([]byte("platter "), 125)
	copy(b.B, want)
	for _, n := range []int{1001, 5000, 3 << 20} {
		if err := b.Grow(context.Background(), n, 1000); err != nil {
			t.Fatal(err)
		}
		if len(b.B) != n || !bytes.Equal(b.B[:1000], want) {
			t.Fatalf("%d bytes after a growth to %d", len(b.B), n)
		}
	}
	b.Release()
	if u := p.Usage(); u.Used != 0 {
		t.Errorf("%+v", u)
	}
}

func TestTrimFreesWhatIsNotNeeded(t *testing.T) {
	p := New(64 << 20)
	var burst []*Buffer
	for range 10 {
		burst = append(burst, mustGet(t, p, 1<<20))
	}
	for _, b := range burst {
		b.Release()
	}
	p.Trim()
	mustGet(t, p, 1<<20).Release()
	p.Trim()
	if u := p.Usage(); u.Idle != 1<<20 {
		t.Errorf("idle after the second Trim: %d", u.Idle)
	}
}

func TestReleaseTwicePanics(t *testing.T) {
	b := mustGet(t, New(1<<20), 1)
	b.Release()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	b.Release()
}

func TestConcurrentUseStaysWithinBudget(t *testing.T) {
	const largest = 512 << 10
	p := New(2 << 20)
	ctx := context.Background()
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 100 {
				b, err := p.GetWait(ctx, 1+(g*7919+i*104729)%(largest/2))
				if err != nil {
					t.Error(err)
					return
				}
				b.B[0] = byte(g)
				if err := b.Grow(ctx, largest, 1); err != nil {
					t.Error(err)
					return
				}
				if u := p.Usage(); u.Used > u.Budget+2*largest {
					t.Errorf("%+v", u)
				}
				if b.B[0] != byte(g) {
					t.Error("two have the same buffer")
				}
				b.Release()
			}
		})
	}
	wg.Wait()
	if u := p.Usage(); u.Used != 0 || u.Waiting != 0 || u.Idle > u.Budget {
		t.Errorf("%+v", u)
	}
}

func BenchmarkGetRelease(b *testing.B) {
	p := New(256 << 20)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if x, err := p.Get(64 << 10); err == nil {
				x.Release()
			}
		}
	})
}
