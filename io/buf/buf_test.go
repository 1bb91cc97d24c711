package buf

import (
	"bytes"
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
	if _, err := p.Get(1<<20 + 1); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("more than the budget: %v", err)
	}
	a, b := mustGet(t, p, 512<<10), mustGet(t, p, 512<<10)
	if _, err := p.Get(1); !errors.Is(err, ErrBudget) {
		t.Fatalf("beyond the budget: %v", err)
	}
	if _, err := p.GetWait(1, time.Millisecond); !errors.Is(err, ErrBudget) {
		t.Fatalf("beyond the budget, waited: %v", err)
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

func TestWaitersAreServedInOrder(t *testing.T) {
	p := New(1 << 20)
	all := mustGet(t, p, 1<<20)
	var order []int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, n := range []int{1 << 20, 1 << 20, 4 << 10} {
		wg.Go(func() {
			b, err := p.GetWait(n, time.Minute)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			b.Release()
		})
		for p.Usage().Waiting != i+1 {
			time.Sleep(time.Millisecond)
		}
	}
	if _, err := p.Get(1); !errors.Is(err, ErrBudget) {
		t.Errorf("a newcomer overtook those who wait: %v", err)
	}
	all.Release()
	wg.Wait()
	if len(order) != 3 || order[0] != 0 || order[1] != 1 {
		t.Errorf("served in order %v", order)
	}
}

func TestAGivenUpTurnIsPassedOn(t *testing.T) {
	p := New(1 << 20)
	half := mustGet(t, p, 512<<10)
	big := make(chan error, 1)
	go func() {
		_, err := p.GetWait(1<<20, 50*time.Millisecond)
		big <- err
	}()
	for p.Usage().Waiting != 1 {
		time.Sleep(time.Millisecond)
	}
	small, err := p.GetWait(4<<10, time.Minute) // fits as soon as the big one gives up
	if err != nil {
		t.Fatal(err)
	}
	if err := <-big; !errors.Is(err, ErrBudget) {
		t.Errorf("the big one: %v", err)
	}
	small.Release()
	half.Release()
}

func TestGrowKeepsContent(t *testing.T) {
	p := New(64 << 20)
	b := mustGet(t, p, 1000)
	want := bytes.Repeat([]byte("platter "), 125)
	copy(b.B, want)
	for _, n := range []int{1001, 5000, 3 << 20} {
		if err := b.Grow(n, 1000, 0); err != nil {
			t.Fatal(err)
		}
		if len(b.B) != n || !bytes.Equal(b.B[:1000], want) {
			t.Fatalf("%d bytes after a growth to %d", len(b.B), n)
		}
	}
	if err := b.Grow(63<<20, 1000, 0); !errors.Is(err, ErrBudget) {
		t.Fatalf("growth beyond the budget: %v", err)
	}
	if !bytes.Equal(b.B[:1000], want) {
		t.Error("a failed growth lost the content")
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
	p := New(2 << 20)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 300 {
				b, err := p.GetWait(1+(g*7919+i*104729)%(512<<10), time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				b.B[0], b.B[len(b.B)-1] = byte(g), byte(g)
				if u := p.Usage(); u.Used+u.Idle > u.Budget {
					t.Errorf("%+v", u)
				}
				if b.B[0] != byte(g) || b.B[len(b.B)-1] != byte(g) {
					t.Error("two have the same buffer")
				}
				b.Release()
			}
		})
	}
	wg.Wait()
	if u := p.Usage(); u.Used != 0 || u.Waiting != 0 {
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
