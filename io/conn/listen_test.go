package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"
)

func listen(t *testing.T, cfg Config) *Listener {
	t.Helper()
	cfg.Addr = "127.0.0.1:0"
	l, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); l.CloseConns() })
	return l
}

func dial(t *testing.T, l *Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

func accept(t *testing.T, l *Listener) net.Conn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAtTheLimitTheNextOneWaits(t *testing.T) {
	told := make(chan error, 1)
	l := listen(t, Config{Max: 2, Refused: func(_ net.Addr, err error) { told <- err }})
	for range 3 {
		dial(t, l)
	}
	a, b := accept(t, l), accept(t, l)
	third := make(chan net.Conn)
	go func() {
		c, _ := l.Accept()
		third <- c
	}()
	if err := <-told; !errors.Is(err, ErrLimit) {
		t.Errorf("told %v", err)
	}
	if n := l.OpenCount(); n != 2 {
		t.Errorf("%d open", n)
	}
	a.Close()
	a.Close() // counts once
	c := <-third
	if n := l.OpenCount(); n != 2 {
		t.Errorf("%d open", n)
	}
	b.Close()
	c.Close()
	if n := l.OpenCount(); n != 0 {
		t.Errorf("%d open at the end", n)
	}
}

func TestOneAddressTooMany(t *testing.T) {
	told := make(chan error, 1)
	l := listen(t, Config{
		PerAddressMax: 1,
		PerAddress:    map[netip.Addr]int{netip.MustParseAddr("127.0.0.1"): 2},
		Refused:       func(_ net.Addr, err error) { told <- err },
	})
	dial(t, l)
	dial(t, l)
	a := accept(t, l)
	accept(t, l)
	refused := dial(t, l)
	next := make(chan net.Conn)
	go func() {
		c, _ := l.Accept()
		next <- c
	}()
	if _, err := refused.Read(make([]byte, 1)); err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the one too many: %v", err)
	}
	if err := <-told; !errors.Is(err, ErrAddressLimit) {
		t.Errorf("told %v", err)
	}
	a.Close()
	dial(t, l)
	if c := <-next; c == nil {
		t.Error("no connection after one was closed")
	}
}

func TestCloseEndsAccept(t *testing.T) {
	for name, max := range map[string]int{"waiting for a peer": 0, "waiting for room": 1} {
		l := listen(t, Config{Max: max})
		if max > 0 {
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

func TestShutdownClosesWhatStays(t *testing.T) {
	l := listen(t, Config{})
	peer := dial(t, l)
	accept(t, l)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	l.Shutdown(ctx)
	if n := l.OpenCount(); n != 0 {
		t.Errorf("%d open", n)
	}
	if _, err := peer.Read(make([]byte, 1)); err == nil {
		t.Error("the peer was not told")
	}
}

func TestConnShowsItsSocket(t *testing.T) {
	l := listen(t, Config{SendBufferBytes: 32 << 10, ReceiveBufferBytes: 32 << 10})
	dial(t, l)
	if _, ok := accept(t, l).(syscall.Conn); !ok {
		t.Error("disk.File.SendTo could not reach the socket")
	}
}
