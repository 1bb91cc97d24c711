package conn

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

func listen(t *testing.T, limits Limits) (*Gate, *Listener) {
	t.Helper()
	nl, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := NewGate(limits)
	l := g.Listener(nl)
	t.Cleanup(func() { l.Close() })
	return g, l
}

func dial(t *testing.T, l *Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(90 * time.Second))
	return c
}

func accept(t *testing.T, l *Listener) net.Conn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// next accepts one in the background.
func next(l *Listener) <-chan net.Conn {
	c := make(chan net.Conn, 1)
	go func() {
		nc, _ := l.Accept()
		c <- nc
	}()
	return c
}

// ended wants the peer to find its connection closed.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := c.Read(make([]byte, 1)); err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the refused one: %v", err)
	}
}

func TestAtTheLimitTheNextOneWaits(t *testing.T) {
	g, l := listen(t, Limits{Max: 2, WaitAtMax: true})
	for range 3 {
		dial(t, l)
	}
	a, b := accept(t, l), accept(t, l)
	third := next(l)
	select {
	case <-third:
		t.Error("a third one was let in")
	case <-time.After(20 * time.Millisecond):
	}
	a.Close()
	a.Close() // counts once
	c := <-third
	if n := g.OpenCount(); n != 2 {
		t.Errorf("%d open", n)
	}
	b.Close()
	c.Close()
	if n := g.OpenCount(); n != 0 {
		t.Errorf("%d open at the end", n)
	}
}

func TestTheLimitIsOfAllListeners(t *testing.T) {
	told := make(chan error, 1)
	g, l := listen(t, Limits{Max: 1, Refused: func(_ net.Addr, err error) { told <- err }})
	nl, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	second := g.Listener(nl)
	defer second.Close()
	dial(t, l)
	first := accept(t, l)
	refused := dial(t, second)
	c := next(second)
	ended(t, refused)
	if err := <-told; !errors.Is(err, ErrLimit) {
		t.Errorf("told %v", err)
	}
	first.Close()
	dial(t, second)
	if nc := <-c; nc == nil {
		t.Error("no connection once there was room")
	} else {
		nc.Close()
	}
}

func TestOneAddressTooMany(t *testing.T) {
	told := make(chan error, 1)
	_, l := listen(t, Limits{
		PerAddressMax: 1, PerAddress: map[string]int{"127.0.0.1": 2},
		Refused: func(_ net.Addr, err error) { told <- err },
	})
	dial(t, l)
	dial(t, l)
	a := accept(t, l)
	accept(t, l)
	refused := dial(t, l)
	c := next(l)
	ended(t, refused)
	if err := <-told; !errors.Is(err, ErrAddressLimit) {
		t.Errorf("told %v", err)
	}
	a.Close()
	dial(t, l)
	if nc := <-c; nc == nil {
		t.Error("no connection after one was closed")
	}
}

func TestAnAddressMayBeLockedOut(t *testing.T) {
	_, l := listen(t, Limits{PerAddress: map[string]int{"127.0.0.1": 0}})
	refused := dial(t, l)
	next(l)
	ended(t, refused)
}

func TestCloseEndsAccept(t *testing.T) {
	for name, limits := range map[string]Limits{"waiting for a peer": {}, "waiting for room": {Max: 1, WaitAtMax: true}} {
		_, l := listen(t, limits)
		if limits.Max > 0 {
			dial(t, l)
			accept(t, l)
		}
		got := make(chan error)
		go func() {
			_, err := l.Accept()
			got <- err
		}()
		l.Close()
		if err := <-got; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: second close: %v", name, err)
		}
	}
}

// flaky is a listener that fails a few times.
type flaky struct {
	net.Listener
	failures int
}

func (f *flaky) Accept() (net.Conn, error) {
	if f.failures > 0 {
		f.failures--
		return nil, syscall.EMFILE
	}
	return f.Listener.Accept()
}

func TestALackOfDescriptorsPasses(t *testing.T) {
	told := 0
	_, l := listen(t, Limits{Refused: func(remote net.Addr, err error) {
		if remote != nil || !errors.Is(err, syscall.EMFILE) {
			t.Errorf("told %v of %v", err, remote)
		}
		told++
	}})
	l.inner = &flaky{l.inner, 2}
	dial(t, l)
	accept(t, l)
	if told != 2 {
		t.Errorf("told %d times", told)
	}
}

func TestConnShowsItsSocket(t *testing.T) {
	_, l := listen(t, Limits{SendBufferBytes: 32 << 10, ReceiveBufferBytes: 32 << 10})
	dial(t, l)
	if _, ok := accept(t, l).(syscall.Conn); !ok {
		t.Error("disk.File.SendTo could not reach the socket")
	}
}
