//go:build linux

package conn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// eventsMax is how many sockets one call of epoll_wait tells of.
	eventsMax = 64
	// moreFrom is how many sockets at once make it likely that more have something by now: a turn goes on then.
	moreFrom = 8
	// turnMax is how many a turn tells of, about, when there are as many.
	turnMax = 256
)

// Loop waits for many sockets on one goroutine (epoll(7), edge-triggered): a request of a busy one costs no change
// of goroutines, and one that is idle holds neither a goroutine nor a buffer.
type Loop struct {
	epoll int
	wake  int // an eventfd
	ended atomic.Bool

	mu    sync.Mutex                               // of changes
	socks atomic.Pointer[[]atomic.Pointer[Socket]] // by descriptor
}

// NewLoop makes a loop. Run must be called, and ends it.
func NewLoop() (*Loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)})
	}
	if err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	l := &Loop{epoll: epoll, wake: wake}
	l.socks.Store(new([]atomic.Pointer[Socket]))
	return l, nil
}

// Run serves until End. After each turn, which tells of all sockets that have something, it calls turned with their
// number; with false Run returns, and whoever calls it next goes on. One goroutine at a time may, but for one that is
// in turned and will give false.
func (l *Loop) Run(turned func(sockets int) bool) {
	var turn Turn
	for {
		told := l.tell(-1)
		for n := told; n >= moreFrom && told < turnMax; told += n {
			n = l.tell(0)
		}
		if l.ended.Load() {
			l.close()
			return
		}
		if !turned(told) {
			return
		}
		turn.End()
	}
}

// tell waits for up to so many milliseconds (-1: for ever), and tells of up to eventsMax sockets.
func (l *Loop) tell(ms int) int {
	var events [eventsMax]unix.EpollEvent
	n, err := unix.EpollWait(l.epoll, events[:], ms)
	if err != nil && !errors.Is(err, unix.EINTR) {
		panic(fmt.Sprintf("conn: epoll_wait: %v", err)) // only a bug of ours brings that (epoll_wait(2))
	}
	for i := range max(n, 0) {
		if e := &events[i]; int(e.Fd) == l.wake {
			var count [8]byte
			_, _ = unix.Read(l.wake, count[:]) // it does not block, and what it gives says nothing
		} else if s := l.at(int(e.Fd)); s != nil {
			s.tell(e.Events)
		}
	}
	return max(n, 0)
}

// Wake has the loop end a turn soon, with or without sockets to tell of.
func (l *Loop) Wake() {
	_, _ = unix.Write(l.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // it fails when it is awake two billion times over
}

// End ends Run. The sockets must have been freed.
func (l *Loop) End() {
	l.ended.Store(true)
	l.Wake()
}

func (l *Loop) close() {
	unix.Close(l.epoll)
	unix.Close(l.wake)
}

func (l *Loop) at(fd int) *Socket {
	if all := *l.socks.Load(); fd < len(all) {
		return all[fd].Load()
	}
	return nil
}

// put changes the table, which the loop reads without a lock.
func (l *Loop) put(fd int, s *Socket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := *l.socks.Load()
	if fd >= len(all) {
		grown := make([]atomic.Pointer[Socket], max(2*len(all), fd+eventsMax))
		for i := range all {
			grown[i].Store(all[i].Load())
		}
		l.socks.Store(&grown)
		all = grown
	}
	all[fd].Store(s)
}

// Take makes a Socket of a TCP connection, which must not be used any more; if it came through a Gate, its place there
// lasts until Free. It is not armed. On an error the connection is as it was.
func (l *Loop) Take(nc net.Conn, ready func(ended bool)) (*Socket, error) {
	var c *net.TCPConn
	release := func() {}
	switch x := nc.(type) {
	case *Conn:
		c, release = x.TCPConn, x.leave
	case *net.TCPConn:
		c = x
	default:
		return nil, ErrNoLoop
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("take a socket: %w", err)
	}
	fd := -1
	if controlled := raw.Control(func(own uintptr) { fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) }); controlled != nil {
		err = controlled
	}
	if err != nil {
		return nil, fmt.Errorf("take a socket: %w", err)
	}
	s := &Socket{loop: l, fd: fd, ready: ready, peer: c.RemoteAddr(), release: release}
	s.some.L = &s.mu
	l.put(fd, s)
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, s.interest()); err != nil {
		l.put(fd, nil)
		unix.Close(fd)
		return nil, fmt.Errorf("epoll_ctl: %w", err)
	}
	c.Close() // of the runtime's poller; the connection lives on in fd
	return s, nil
}

func (s *Socket) interest() *unix.EpollEvent {
	return &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff, Fd: int32(s.fd)}
}

// Arm gives the reads to the loop; what has come before is told of, too. On an error they are the caller's still.
func (s *Socket) Arm() error {
	s.mu.Lock() // Free, after what the loop does meanwhile, comes after this
	defer s.mu.Unlock()
	s.armed.Store(true)
	err := unix.EpollCtl(s.loop.epoll, unix.EPOLL_CTL_MOD, s.fd, s.interest())
	if err != nil && s.armed.CompareAndSwap(true, false) {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// tell is the loop's.
func (s *Socket) tell(events uint32) {
	const ended = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	readable := events&(unix.EPOLLIN|ended) != 0
	if readable && s.armed.Load() {
		s.ready(events&ended != 0)
		readable = false
	}
	s.happened(readable, events&(unix.EPOLLOUT|ended) != 0)
}

// TryRead reads what is there: nothing and no error when there is nothing. io.EOF: the end.
func (s *Socket) TryRead(p []byte) (int, error) {
	n, err := s.try(unix.SYS_READ, p)
	if n == 0 && err == nil && len(p) > 0 {
		return 0, io.EOF
	}
	return max(n, 0), err
}

// TryWrite sends what there is room for. Fewer bytes than len(p) without an error: there is no room now.
func (s *Socket) TryWrite(p []byte) (int, error) {
	n, err := s.try(unix.SYS_WRITE, p)
	return max(n, 0), err
}

// try reads or writes, which does not wait: so the runtime need not hear of it. It gives -1 and no error when that would
// have to wait.
func (s *Socket) try(call uintptr, p []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(call, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch errno {
		case 0:
			return int(n), nil
		case unix.EAGAIN:
			return -1, nil
		case unix.EINTR:
		default:
			return 0, os.NewSyscallError("socket", errno)
		}
	}
}

// Read waits for something to read.
func (s *Socket) Read(p []byte) (int, error) {
	for {
		if n, err := s.TryRead(p); n > 0 || err != nil {
			return n, err
		}
		if !s.wait(&s.readable) {
			return 0, net.ErrClosed
		}
	}
}

// Write sends all of p, and waits for room.
func (s *Socket) Write(p []byte) (n int, err error) {
	for {
		m, err := s.TryWrite(p[n:])
		if n += m; n == len(p) || err != nil {
			return n, err
		}
		if m == 0 && !s.wait(&s.writable) {
			return n, net.ErrClosed
		}
	}
}

// Close ends the connection: whoever waits gets an error, and the loop tells of the end. What was written
// before arrives. Free must follow.
func (s *Socket) Close() error {
	if s.goDown() {
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR) // it may be over already
	}
	return nil
}

// Free gives the descriptor back, and the place in the gate. Nobody uses the socket any more.
func (s *Socket) Free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loop.put(s.fd, nil)
	unix.Close(s.fd) // which takes it out of the epoll set: it is the only descriptor
	s.release()
}
