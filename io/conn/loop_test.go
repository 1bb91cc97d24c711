package conn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// echo sends back what comes: on the loop, but for the megabytes that begin with an L, on a goroutine.
type echo struct {
	sock *Socket
	done sync.WaitGroup
}

func (e *echo) ready(ended bool) {
	var b [4 << 10]byte
	for {
		n, err := e.sock.TryRead(b[:])
		switch {
		case err != nil:
			e.sock.Disarm()
			e.sock.Free()
			e.done.Done()
			return
		case n == 0:
			return
		case b[0] == 'L':
			e.sock.Disarm()
			go e.goOn(b[:n])
			return
		}
		if m, err := e.sock.TryWrite(b[:n]); m < n || err != nil {
			panic("no room for a short answer")
		}
		if !ended {
			return
		}
	}
}

// goOn is echo for a megabyte, then the loop's again.
func (e *echo) goOn(first []byte) {
	_, err := e.sock.Write(first)
	if err == nil {
		_, err = io.CopyN(e.sock, e.sock, 1<<20-int64(len(first)))
	}
	if err == nil {
		err = e.sock.Arm()
	}
	if err != nil {
		panic(err)
	}
}

func newLoop(t *testing.T) *Loop {
	l, err := NewLoop()
	if errors.Is(err, ErrNoLoop) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Run(func(int) bool { return true })
	}()
	t.Cleanup(func() {
		l.End()
		<-ended
	})
	return l
}

// TestLoopServesManyConnections: what is sent comes back, from the loop and from goroutines that it hands
// connections to; a connection that ends leaves its gate.
func TestLoopServesManyConnections(t *testing.T) {
	l := newLoop(t)
	g, ln := listen(t, Limits{})
	var all sync.WaitGroup
	for i := range 20 {
		client := dial(t, ln)
		e := &echo{}
		e.done.Add(1)
		var err error
		if e.sock, err = l.Take(accept(t, ln), e.ready); err != nil {
			t.Fatal(err)
		}
		if e.sock.RemoteAddr().String() != client.LocalAddr().String() {
			t.Error("the peer is", e.sock.RemoteAddr())
		}
		client.Write([]byte("before it is armed")) // is told of by Arm
		if err := e.sock.Arm(); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			back := make([]byte, 1<<20)
			io.ReadFull(client, back[:len("before it is armed")])
			if string(back[:6]) != "before" {
				t.Errorf("%q came back", back[:18])
			}
			for round := range 3 {
				for n := range 50 {
					text := bytes.Repeat([]byte{byte(i)}, 1+n)
					client.Write(text)
					if io.ReadFull(client, back[:len(text)]); !bytes.Equal(back[:len(text)], text) {
						t.Errorf("round %d: %x came back for %x", round, back[:len(text)], text)
						return
					}
				}
				long := bytes.Repeat([]byte{'L', byte(i), byte(round), 9}, 1<<18)
				go client.Write(long)
				if io.ReadFull(client, back); !bytes.Equal(back, long) {
					t.Errorf("round %d: a megabyte came back changed", round)
					return
				}
			}
			client.Write([]byte("the last"))
			client.(*net.TCPConn).CloseWrite()
			if rest, err := io.ReadAll(client); string(rest) != "the last" || err != nil {
				t.Errorf("%q, %v", rest, err)
			}
			e.done.Wait()
		})
	}
	all.Wait()
	if n := g.OpenCount(); n != 0 {
		t.Errorf("%d connections are still in the gate", n)
	}
}

// TestLoopSocketsClose: Close wakes who reads and who writes, and tells the loop of an armed one; what was written
// before arrives.
func TestLoopSocketsClose(t *testing.T) {
	l := newLoop(t)
	_, ln := listen(t, Limits{})
	told := make(chan error, 1)
	for _, armed := range []bool{false, true} {
		client := dial(t, ln)
		var s *Socket
		s, err := l.Take(accept(t, ln), func(bool) {
			_, err := s.TryRead(make([]byte, 1))
			s.Disarm()
			told <- err
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Write([]byte("hello"))
		if armed {
			if err := s.Arm(); err != nil {
				t.Fatal(err)
			}
		} else {
			go func() {
				_, err := s.Read(make([]byte, 1))
				told <- err
			}()
		}
		s.Close()
		s.Close()
		if err := <-told; err == nil {
			t.Error("a read after Close brought something")
		}
		if b, err := io.ReadAll(client); string(b) != "hello" || err != nil {
			t.Errorf("%q, %v arrived", b, err)
		}
		s.Free()
	}
	client := dial(t, ln)
	s, err := l.Take(accept(t, ln), nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := s.Write(make([]byte, 64<<20)) // nobody reads
		told <- err
	}()
	io.ReadFull(client, make([]byte, 1)) // it has begun
	s.Close()
	if err := <-told; err == nil {
		t.Error("a write that could not end succeeded")
	}
	s.Free()
}
