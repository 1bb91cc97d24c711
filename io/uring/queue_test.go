//go:build linux && !portable && !nouring

package uring

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	sys "github.com/iceber/iouring-go/syscall"
	"golang.org/x/sys/unix"
)

// patience bounds what must come, on however slow a machine.
const patience = 60 * time.Second

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func testQueue(t testing.TB) *queue {
	t.Helper()
	q, err := start(new(counters))
	if err != nil {
		t.Skipf("uring cannot run: %v", explain(err))
	}
	t.Cleanup(q.close)
	return q
}

// TestNoCompletionIsLost hands over batches of all sizes from many goroutines: each comes back once.
func TestNoCompletionIsLost(t *testing.T) {
	q := testQueue(t)
	var wg sync.WaitGroup
	var want atomic.Uint64
	for g := range 16 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 0))
			for range 200 {
				ops := nops(rng.IntN(400))
				want.Add(uint64(len(ops)))
				if err := q.do(ops); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := q.stats.ops.Load(); got != want.Load() {
		t.Errorf("%d operations, want %d", got, want.Load())
	}
	q.close()
	if q.underway != 0 || len(q.free) != len(q.slots) || len(q.again) != 0 {
		t.Errorf("at the end %d under way, %d of %d slots free, %d to go on", q.underway, len(q.free), len(q.slots), len(q.again))
	}
}

// TestCloseBesideBatches closes while batches come: each is done, or was not begun.
func TestCloseBesideBatches(t *testing.T) {
	for range 20 {
		q := testQueue(t)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for q.do(nops(50)) == nil {
				}
			})
		}
		q.close()
		wg.Wait()
	}
}

// pipe is one end to read through a ring, and one to write.
func pipe(t *testing.T) (from, to int) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(p[0]); unix.Close(p[1]) })
	return p[0], p[1]
}

func readOf(fd int, p []byte) op {
	return op{code: sys.IORING_OP_READ, fd: int32(fd), ptr: unsafe.Pointer(unsafe.SliceData(p)), len: len(p)}
}

// TestShortReadsGoOn reads from a pipe that gives a few bytes at a time.
func TestShortReadsGoOn(t *testing.T) {
	q := testQueue(t)
	from, to := pipe(t)
	want := bytes.Repeat([]byte("0123456789"), 50)
	got := make([]byte, len(want))
	done := make(chan []op)
	go func() {
		ops := []op{readOf(from, got)}
		if err := q.do(ops); err != nil {
			t.Error(err)
		}
		done <- ops
	}()
	for i := 0; i < len(want); i += 100 {
		if _, err := unix.Write(to, want[i:i+100]); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the ring takes what is in the pipe", func() bool {
			n, err := unix.IoctlGetInt(from, unix.TIOCINQ)
			return err == nil && n == 0
		})
	}
	if ops := <-done; ops[0].done != len(want) || ops[0].errno != 0 || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", ops[0].done, ops[0].errno)
	}
}

// TestNewWorkBesideAWait: what is handed over while the ring waits in the kernel is not held up, a batch
// larger than the ring neither.
func TestNewWorkBesideAWait(t *testing.T) {
	q := testQueue(t)
	from, to := pipe(t)
	got := make([]byte, 4)
	done := make(chan []op)
	go func() {
		ops := []op{readOf(from, got)}
		q.do(ops)
		done <- ops
	}()
	for range 50 {
		if err := q.do(nops(3 * entryCount)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-done:
		t.Error("a read of an empty pipe is done")
	default:
	}
	if _, err := unix.Write(to, []byte("late")); err != nil {
		t.Fatal(err)
	}
	if ops := <-done; ops[0].done != 4 || string(got) != "late" {
		t.Errorf("%+v, %q", ops[0], got)
	}
}

// TestSignals interrupts the ring's waits.
func TestSignals(t *testing.T) {
	q := testQueue(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				// Go's own signal for preemption: its handler returns, and calls come back with EINTR.
				unix.Kill(unix.Getpid(), unix.SIGURG)
				time.Sleep(50 * time.Microsecond)
			}
		}
	})
	from, to := pipe(t)
	for range 200 {
		p := make([]byte, 8)
		ops := append(nops(100), readOf(from, p))
		go unix.Write(to, []byte("12345678"))
		if err := q.do(ops); err != nil || ops[100].done != 8 || ops[100].errno != 0 || string(p) != "12345678" {
			t.Fatalf("%v, %+v, %q", err, ops[100], p)
		}
	}
	close(stop)
	wg.Wait()
}

// TestInterruptedOperationsGoOn: EINTR and EAGAIN of an operation are not its end.
func TestInterruptedOperationsGoOn(t *testing.T) {
	for _, errno := range []syscall.Errno{unix.EINTR, unix.EAGAIN} {
		q := &queue{slots: make([]slot, 1)}
		b := &batch{ops: nops(1), left: 1, done: make(chan struct{}, 1)}
		q.slots[0] = slot{op: &b.ops[0], b: b}
		q.underway = 1
		q.done(0, -int32(errno))
		if len(q.again) != 1 || b.left != 1 || q.underway != 0 || q.slots[0].async != (errno == unix.EAGAIN) {
			t.Errorf("%v: %+v", errno, q)
		}
		q.again, q.underway = nil, 1
		q.done(0, 0)
		if len(q.free) != 1 || b.left != 0 || len(b.done) != 1 {
			t.Errorf("%v, then done: %+v", errno, q)
		}
	}
}

func TestHandOverAllocatesNothing(t *testing.T) {
	q := testQueue(t)
	ops := nops(64)
	if n := testing.AllocsPerRun(100, func() { q.do(ops) }); n > 0 {
		t.Errorf("%v allocations a batch", n)
	}
}
