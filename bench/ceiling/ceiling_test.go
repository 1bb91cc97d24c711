package ceiling

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestSinkAnswersEachFrame: frames of every size, cut anywhere on the way, each answered with the position
// behind it.
func TestSinkAnswersEachFrame(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go Serve(l, Options{SinkDir: t.TempDir()})
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rnd := rand.New(rand.NewPCG(1, 2))
	var sizes []int
	for _, n := range []int{0, 1, 100, 64 << 10, readBytes - 4, readBytes, 3 * readBytes, 5 * readBytes} {
		sizes = append(sizes, n, rnd.IntN(2*readBytes), rnd.IntN(1000))
	}
	go func() {
		for _, n := range sizes {
			frame := append(binary.BigEndian.AppendUint32(nil, uint32(n)), make([]byte, n)...)
			cut := rnd.IntN(len(frame) + 1)
			_, _ = c.Write(frame[:cut])
			_, _ = c.Write(frame[cut:])
		}
	}()
	var want uint64
	for i, n := range sizes {
		want += uint64(n)
		var answer [8]byte
		if _, err := io.ReadFull(c, answer[:]); err != nil {
			t.Fatalf("frame %d of %d bytes: %v", i, n, err)
		}
		if got := binary.BigEndian.Uint64(answer[:]) &^ (1 << 63); got != want {
			t.Fatalf("frame %d of %d bytes: position %d, want %d", i, n, got, want)
		}
	}
}

func TestSourceSendsTheRange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(file, []byte("0123456789"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go Serve(l, Options{SourceFile: file, SendBufferBytes: 102400})
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	req := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, 3), 4)
	if _, err := c.Write(req); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "3456" {
		t.Fatalf("got %q, %v", got, err)
	}
}
