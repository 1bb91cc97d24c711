//go:build linux && !portable && !nouring

package uring

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	sys "github.com/iceber/iouring-go/syscall"
	"golang.org/x/sys/unix"
)

// bareRing is a ring of the test's own thread.
func bareRing(t *testing.T, ways []uint32, count uint32) *ring {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	r, err := setUpWith(ways, count)
	if err != nil {
		t.Skipf("uring cannot run: %v", explain(err))
	}
	t.Cleanup(func() {
		if r.fd >= 0 {
			r.close()
		}
	})
	return r
}

func (r *ring) nop(userData uint64) bool {
	e := r.next()
	if e != nil {
		e.PrepOperation(sys.IORING_OP_NOP, -1, 0, 0, 0)
		e.SetUserData(userData)
	}
	return e != nil
}

// TestSetUpFallsBack refuses the best ways to set a ring up, one after the other, as older kernels would.
func TestSetUpFallsBack(t *testing.T) {
	const unknown = 1 << 31
	for first := range setups {
		ways := []uint32{unknown | setups[0], unknown}
		ways = append(ways, setups[first:]...)
		r := bareRing(t, ways, 8)
		if r.flags&unknown != 0 {
			t.Errorf("flags %#x", r.flags)
		}
		if err := r.tryOut(); err != nil {
			t.Errorf("flags %#x: %v", r.flags, err)
		}
		r.close()
	}
}

// TestOverflow lets the completion queue run over: no completion is lost, and none comes twice.
func TestOverflow(t *testing.T) {
	r := bareRing(t, setups, 4) // so 8 completions fit
	const count = 1000
	seen := make([]int, count)
	over := false
	for i := uint64(0); i < count; {
		if r.nop(i) {
			i++
			continue
		}
		if err := r.enter(0); err != nil {
			t.Fatal(err)
		}
		over = over || r.overflown()
		if r.unsent() == 4 { // the kernel takes no more until completions were taken
			r.take(func(userData uint64, _ int32) { seen[userData]++ })
		}
	}
	for done := 0; done < count; {
		if err := r.enter(1); err != nil {
			t.Fatal(err)
		}
		r.take(func(userData uint64, _ int32) { seen[userData]++ })
		done = 0
		for _, n := range seen {
			done += n
		}
	}
	if !over {
		t.Error("the queue did not run over")
	}
	for i, n := range seen {
		if n != 1 {
			t.Errorf("operation %d completed %d times", i, n)
		}
	}
}

// TestFullQueue: a full submission queue gives no entry until the kernel has taken what is there.
func TestFullQueue(t *testing.T) {
	r := bareRing(t, setups, 4)
	for i := range uint64(4) {
		if !r.nop(i) {
			t.Fatalf("no room for entry %d of 4", i)
		}
	}
	if r.nop(4) {
		t.Fatal("a fifth entry in a queue of four")
	}
	if err := r.enter(4); err != nil || r.unsent() != 0 {
		t.Fatalf("%d not taken, %v", r.unsent(), err)
	}
	if !r.nop(4) {
		t.Fatal("no room in an empty queue")
	}
}

// TestWorkersAreBounded asks the kernel for the bound that was set: zeros change nothing.
func TestWorkersAreBounded(t *testing.T) {
	r := bareRing(t, setups, 4)
	var bounds [2]uint32
	if err := sys.IOURingRegister(r.fd, registerIOWQMaxWorkers, unsafe.Pointer(&bounds), 2); err != nil {
		t.Skipf("SKIPPED bound on the kernel's workers: %v", err)
	}
	if bounds != [2]uint32{workersMax, 1} {
		t.Errorf("bounds %v", bounds)
	}
}

// ringsHeld counts what this process holds of rings: descriptors (the eventfds too) and mappings.
func ringsHeld(t *testing.T) (descriptors, mappings int) {
	t.Helper()
	dir, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("SKIPPED leak check: %v", err)
	}
	for _, e := range dir {
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.Contains(to, "io_uring") || strings.Contains(to, "eventfd") {
			descriptors++
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skipf("SKIPPED leak check: %v", err)
	}
	return descriptors, strings.Count(string(maps), "io_uring")
}

// runtimeHasItsOwn waits for the eventfd of Go's network poller, which comes with the first use of it.
func runtimeHasItsOwn(t *testing.T) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	w.Close()
}

// workers counts the kernel's io_uring threads of this process.
func workers() (n int) {
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		name, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/comm")
		if strings.HasPrefix(string(name), "iou-") {
			n++
		}
	}
	return n
}

func TestCloseGivesEverythingBack(t *testing.T) {
	runtimeHasItsOwn(t)
	wasDescriptors, wasMappings := ringsHeld(t)
	for range 20 {
		q, err := start(new(counters))
		if err != nil {
			t.Skipf("uring cannot run: %v", explain(err))
		}
		if err := q.do(nops(300)); err != nil {
			t.Fatal(err)
		}
		q.close()
		if err := q.do(nops(1)); err != errStopped {
			t.Errorf("after close: %v", err)
		}
	}
	descriptors, mappings := ringsHeld(t)
	if descriptors > wasDescriptors || mappings > wasMappings {
		t.Errorf("%d descriptors and %d mappings; before %d and %d", descriptors, mappings, wasDescriptors, wasMappings)
	}
	eventually(t, "the kernel's workers end", func() bool { return workers() == 0 })
}

// TestErrorsOfSetUp: what fails says so, and leaves nothing behind.
func TestErrorsOfSetUp(t *testing.T) {
	runtimeHasItsOwn(t)
	was, _ := ringsHeld(t)
	if _, err := setUpWith(setups, 1<<30); err == nil {
		t.Error("a ring of 2^30 entries")
	}
	if _, err := setUpWith([]uint32{1 << 31}, 4); err == nil {
		t.Error("a ring with a flag that nobody knows")
	}
	if now, _ := ringsHeld(t); now > was {
		t.Errorf("%d descriptors, before %d", now, was)
	}
	for _, c := range []struct {
		err  error
		says string
	}{
		{unix.EPERM, "io_uring_disabled"}, {unix.ENOSYS, "no io_uring"}, {unix.ENOMEM, "locked memory"},
		{unix.EMFILE, "descriptor"}, {unix.EFAULT, "bad address"},
	} {
		if got := explain(c.err).Error(); !strings.Contains(got, c.says) {
			t.Errorf("%v: %q", c.err, got)
		}
	}
}
