package conn

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// TestTryWriter: a try sends what there is room for and does not wait; what it has sent arrives.
func TestTryWriter(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	src, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	dst, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Close()
	w := NewTryWriter(src)
	if w == nil {
		t.Skip("no such call on this platform")
	}
	chunk := bytes.Repeat([]byte("x"), 64<<10)
	sent := 0
	for {
		n, err := w.Try(chunk)
		if err != nil {
			t.Fatal(err)
		}
		if sent += n; n < len(chunk) {
			break // nobody reads, so it had to come
		}
	}
	src.(*net.TCPConn).CloseWrite()
	if got, err := io.Copy(io.Discard, dst); err != nil || got != int64(sent) {
		t.Errorf("%d bytes arrived of %d (%v)", got, sent, err)
	}
	dst.Close()
	src.Close()
	if _, err := w.Try(chunk); err == nil {
		t.Error("a try on a closed connection succeeds")
	}
	if NewTryWriter(struct{ net.Conn }{src}) != nil {
		t.Error("a connection without a socket gives a writer")
	}
}
