package disktest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"platter/io/disk"
)

// patience bounds what must come, on however slow a machine.
const patience = 30 * time.Second

// pair is a TCP connection on loopback, both ends.
func (e *env) pair() (client, server *net.TCPConn) {
	e.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	e.must(err)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	e.must(err)
	s, err := l.Accept()
	e.must(err)
	e.Cleanup(func() { c.Close(); s.Close() })
	c.SetDeadline(time.Now().Add(patience))
	s.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

// notOfTheDisk wants the error of a connection.
func (e *env) notOfTheDisk(err error) {
	e.Helper()
	if err == nil || errors.As(err, new(*disk.Error)) {
		e.Errorf("a lost connection gave %v", err)
	}
}

func sendTo(e *env) {
	data := noise(3<<20 + 17)
	f := e.file("f", data)
	var wg sync.WaitGroup
	for _, r := range [][2]int64{{0, 0}, {0, 1}, {5, 64 << 10}, {1, 64<<10 + 1}, {12_345, 1 << 20}, {0, int64(len(data))}, {int64(len(data)) - 9, 9}} {
		wg.Go(func() {
			pos, n := r[0], r[1]
			client, server := e.pair()
			got := make(chan []byte, 1)
			go func() {
				b, _ := io.ReadAll(client)
				got <- b
			}()
			sent, err := f.SendTo(server, pos, n)
			server.Close()
			if sent != n || err != nil {
				e.Errorf("sent %d of %d at %d: %v", sent, n, pos, err)
			}
			if !bytes.Equal(<-got, data[pos:pos+n]) {
				e.Errorf("%d bytes at %d arrived wrong", n, pos)
			}
		})
	}
	wg.Wait()
}

func sendToCutFile(e *env) {
	data := noise(300_000)
	f := e.file("f", data)
	for _, pos := range []int64{0, 299_000, 300_000, 400_000} {
		client, server := e.pair()
		got := make(chan []byte, 1)
		go func() {
			b, _ := io.ReadAll(client)
			got <- b
		}()
		sent, err := f.SendTo(server, pos, 500_000)
		server.Close()
		e.fails(err, io.ErrUnexpectedEOF, "send beyond the end")
		want := data[min(pos, 300_000):]
		if b := <-got; sent != int64(len(want)) || !bytes.Equal(b, want) {
			e.Errorf("from %d: sent %d, arrived %d, want %d", pos, sent, len(b), len(want))
		}
	}
}

// sendToDeadline sends to a peer that does not read.
func sendToDeadline(e *env) {
	f := e.open("f", disk.CreateNew)
	const size = 64 << 20 // more than socket buffers hold
	e.must(f.Truncate(size))
	_, server := e.pair()
	server.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	sent, err := f.SendTo(server, 0, size)
	var ne net.Error
	if !errors.As(err, &ne) || !ne.Timeout() || sent >= size {
		e.Errorf("sent %d, %v; want a timeout", sent, err)
	}
	e.notOfTheDisk(err)
	if _, err := f.SendTo(server, 0, 10); err == nil {
		e.Error("a send after the deadline worked")
	}
}

func sendToLostPeer(e *env) {
	f := e.open("f", disk.CreateNew)
	const size = 64 << 20
	e.must(f.Truncate(size))
	client, server := e.pair()
	client.SetLinger(0) // reset
	client.Close()
	_, err := f.SendTo(server, 0, size)
	e.notOfTheDisk(err)
	server.Close()
	_, err = f.SendTo(server, 0, size)
	e.notOfTheDisk(err)
}

// sendToPipe sends to a connection without a socket.
func sendToPipe(e *env) {
	data := noise(200_000)
	f := e.file("f", data)
	a, b := net.Pipe()
	defer a.Close()
	got := make(chan []byte, 1)
	go func() {
		p := make([]byte, len(data)-1)
		io.ReadFull(b, p)
		got <- p
	}()
	if n, err := f.SendTo(a, 1, int64(len(data)-1)); err != nil || n != int64(len(data)-1) {
		e.Errorf("sent %d: %v", n, err)
	}
	if !bytes.Equal(<-got, data[1:]) {
		e.Error("arrived wrong")
	}
}

// closeDuringSend closes the file while a slow peer holds up a send: it goes on.
func closeDuringSend(e *env) {
	const size = 64 << 20
	f := e.open("f", disk.CreateNew)
	e.must(f.Truncate(size))
	client, server := e.pair()
	done := make(chan error, 1)
	go func() {
		_, err := f.SendTo(server, 0, size)
		done <- err
		server.Close()
	}()
	if _, err := io.ReadFull(client, make([]byte, 1<<20)); err != nil {
		e.Fatal(err)
	}
	e.must(f.Close())
	if n, _ := io.Copy(io.Discard, client); n != size-1<<20 {
		e.Errorf("%d bytes came after the close", n)
	}
	e.must(<-done)
}
