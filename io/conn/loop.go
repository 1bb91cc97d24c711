package conn

import (
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// ErrNoLoop: this platform, or this kind of connection, has no Loop.
var ErrNoLoop = errors.New("connections cannot be waited for together here")

// Socket is a connection that a Loop has taken over. Read and Write wait, as a net.Conn's do; TryRead and TryWrite
// do not. One goroutine at a time reads, and one writes.
//
// While it is armed, the loop calls its ready function when something more has come, or the end; the reads are
// the loop's then. It must read until there is nothing, or less than it has asked for and no end was told of. Disarm,
// by that function alone, gives the reads to another goroutine, which gives them back with Arm.
type Socket struct {
	loop    *Loop
	fd      int
	ready   func(ended bool)
	release func()
	peer    net.Addr
	armed   atomic.Bool

	mu       sync.Mutex
	some     sync.Cond
	readable bool // since the last wait
	writable bool
	down     bool
}

// Turn is of a goroutine that is always busy, mostly in system calls. The runtime takes the processor from one that it
// has not scheduled for 10 ms, and looks out for such ones fifty thousand times a second from then on: so it lets
// itself be scheduled in time. The zero value is ready.
type Turn struct{ began time.Time }

// turnTime is well below the runtime's 10 ms (forcePreemptNS).
const turnTime = 4 * time.Millisecond

// End is called after each piece of work.
func (t *Turn) End() {
	if now := time.Now(); now.Sub(t.began) > turnTime {
		t.began = now
		runtime.Gosched()
	}
}

// RemoteAddr is the peer's address.
func (s *Socket) RemoteAddr() net.Addr { return s.peer }

// Disarm: the loop only wakes who waits in Read. Of ready alone.
func (s *Socket) Disarm() { s.armed.Store(false) }

// wait waits for one of the two flags; false: the socket is closed.
func (s *Socket) wait(flag *bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !*flag && !s.down {
		s.some.Wait()
	}
	*flag = false
	return !s.down
}

// happened wakes who waits.
func (s *Socket) happened(readable, writable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readable = s.readable || readable
	s.writable = s.writable || writable
	s.some.Broadcast()
}

// goDown reports whether it is the first to close.
func (s *Socket) goDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return false
	}
	s.down = true
	s.some.Broadcast()
	return true
}
