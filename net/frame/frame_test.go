package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"platter/io/backend"
	"platter/io/disk"
)

// file is a real file of n random bytes, on whatever backend this platform has.
func file(t testing.TB, n int) (disk.File, []byte) {
	t.Helper()
	p := make([]byte, n)
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range p {
		p[i] = byte(rnd.Uint32())
	}
	fs, _, err := backend.Select("auto")
	if err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open(filepath.Join(t.TempDir(), "ranges"), disk.CreateNew)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.WriteV([][]byte{p}, 0); err != nil {
		t.Fatal(err)
	}
	return f, p
}

// pair is both ends of a TCP connection.
func pair(t testing.TB) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// received sends the reply and returns what arrives of it.
func received(t testing.TB, r *Reply) []byte {
	t.Helper()
	client, server := pair(t)
	failed := make(chan error, 1)
	go func() {
		failed <- r.Send(server, Options{})
		server.Close()
	}()
	p, err := io.ReadAll(client)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReplies(t *testing.T) {
	f, data := file(t, 3<<20)
	rnd := rand.New(rand.NewPCG(7, 8))
	cases := map[string][]int{ // sizes; negative: a range of that many bytes
		"empty":                 {},
		"bytes":                 {10, 0, 20},
		"many bytes":            {100_000, 100_000, 300_000, 1},
		"a small range":         {10, -100, 5},
		"at the edge":           {10, -CopyBytesMax, 5, -CopyBytesMax - 1, 5},
		"ranges that fill it":   {9, -60_000, 9, -60_000, 9, -60_000, 9},
		"a large range":         {10, -2 << 20, 5},
		"range first, and last": {-100_000, -5, 3, -100_000},
	}
	for n := range 20 {
		var sizes []int
		for range rnd.IntN(12) {
			sizes = append(sizes, rnd.IntN(1<<rnd.IntN(18))*(1-2*rnd.IntN(2)))
		}
		cases[string(rune('a'+n))] = sizes
	}
	for name, sizes := range cases {
		t.Run(name, func(t *testing.T) {
			r := New()
			want := make([]byte, 4)
			for _, n := range sizes {
				if n >= 0 {
					r.Bytes(data[:n])
					want = append(want, data[:n]...)
					continue
				}
				pos := rnd.IntN(len(data) + n + 1)
				r.Range(disk.Range{File: f, Pos: int64(pos), Len: int64(-n)})
				want = append(want, data[pos:pos-n]...)
			}
			binary.BigEndian.PutUint32(want, uint32(len(want)-4))
			if r.Len() != int64(len(want)-4) {
				t.Errorf("length %d, want %d", r.Len(), len(want)-4)
			}
			if got := received(t, r); !bytes.Equal(got, want) {
				t.Errorf("%d bytes arrived that differ from the %d wanted", len(got), len(want))
			}
			r.Release()
		})
	}
}

func TestRelease(t *testing.T) {
	r := New()
	n := 0
	r.OnRelease(func() { n++ })
	r.OnRelease(func() { n += 10 })
	b := r.Buffer()
	b.B = append(b.B, "body"...)
	r.Bytes(b.B)
	if got := received(t, r); string(got[4:]) != "body" || n != 0 {
		t.Errorf("%q, released %d before time", got, n)
	}
	r.Release()
	if n != 11 {
		t.Errorf("release ran %d, want each once", n)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second release goes unseen")
		}
	}()
	r.Release()
}

// A range that was cut below the reader must end the connection, not leave a hole in the frame.
func TestFileCutShort(t *testing.T) {
	f, _ := file(t, 200_000)
	for _, n := range []int64{1000, 150_000} {
		r := New()
		r.Bytes([]byte("head"))
		r.Range(disk.Range{File: f, Pos: 199_999, Len: n})
		client, server := pair(t)
		go io.Copy(io.Discard, client)
		if err := r.Send(server, Options{}); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: %v", n, err)
		}
		r.Release()
	}
}

// A peer that does not read runs into the deadline that the server has set.
func TestDeadline(t *testing.T) {
	f, data := file(t, 8<<20)
	for name, add := range map[string]func(*Reply){
		"bytes": func(r *Reply) {
			for range 4 {
				r.Bytes(data)
			}
		},
		"range": func(r *Reply) {
			for range 4 {
				r.Range(disk.Range{File: f, Pos: 0, Len: int64(len(data))})
			}
		},
	} {
		_, server := pair(t)
		r := New()
		add(r)
		if err := server.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if err := r.Send(server, Options{}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		r.Release()
	}
}

// endless is a file that claims any range.
type endless struct{ disk.File }

func TestTooLong(t *testing.T) {
	r := New()
	r.Range(disk.Range{File: endless{}, Len: math.MaxInt32})
	r.Bytes([]byte("x"))
	_, server := pair(t)
	if err := r.Send(server, Options{}); !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
	r.Release()
}

// discard is a connection that takes everything.
type discard struct{ net.Conn }

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func BenchmarkSend(b *testing.B) {
	f, data := file(b, 1<<20)
	for name, add := range map[string]func(*Reply){
		"200 B":             func(r *Reply) { r.Bytes(data[:200]) },
		"20 ranges of 4KiB": func(r *Reply) { many(r, f, data, 20, 4<<10) },
		"20 ranges of 64K":  func(r *Reply) { many(r, f, data, 20, 64<<10) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := New()
				add(r)
				if err := r.Send(discard{}, Options{}); err != nil {
					b.Fatal(err)
				}
				r.Release()
			}
		})
	}
}

func many(r *Reply, f disk.File, data []byte, n int, size int64) {
	for range n {
		r.Bytes(data[:60])
		r.Range(disk.Range{File: f, Len: size})
	}
}

// TestCopyBytesMax: the bound of what is copied is the caller's, 0 is the default.
func TestCopyBytesMax(t *testing.T) {
	f, data := file(t, 300_000)
	for _, most := range []int64{-1, 0, 1000, 1 << 20} {
		client, server := pair(t)
		sent := &sendCounter{File: f}
		r := New()
		r.Bytes(data[:10])
		for _, n := range []int64{500, 50_000, 200_000} {
			r.Range(disk.Range{File: sent, Len: n})
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := r.Send(server, Options{CopyBytesMax: most}); err != nil {
				t.Error(err)
			}
			r.Release()
			server.Close()
		}()
		if p, err := io.ReadAll(client); err != nil || len(p) != 4+10+250_500 {
			t.Errorf("at most %d: %d bytes: %v", most, len(p), err)
		}
		<-done
		// 200,000 bytes are more than is ever gathered.
		if want := map[int64]int{-1: 3, 0: 1, 1000: 2, 1 << 20: 1}[most]; sent.count != want {
			t.Errorf("at most %d: %d ranges went by SendTo, want %d", most, sent.count, want)
		}
	}
}

type sendCounter struct {
	disk.File
	count int
}

func (s *sendCounter) SendTo(dst net.Conn, pos, n int64) (int64, error) {
	s.count++
	return s.File.SendTo(dst, pos, n)
}
