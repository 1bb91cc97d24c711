package conn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"platter/io/buf"
)

func frame(content []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(content))), content...)
}

// tape reads fixed bytes, at most step at a time.
type tape struct {
	rest []byte
	step int
}

func (t *tape) Read(p []byte) (int, error) {
	if len(t.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), t.step)], t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

func reader(input []byte, step, max int) (*FrameReader, *buf.Pool) {
	pool := buf.New(64 << 20)
	return NewFrameReader(context.Background(), &tape{rest: input, step: step}, FrameConfig{Pool: pool, BytesMax: max}), pool
}

func TestFramesArriveWhole(t *testing.T) {
	var contents [][]byte
	var input []byte
	for i, size := range []int{0, 1, 10, 3000, 4096, 70_000, 5, 2_000_000, 2_000_000, 0, 300_000} {
		c := bytes.Repeat([]byte{byte(i + 1)}, size)
		for j := 0; j < size; j += 1000 {
			c[j] = byte(j / 1000)
		}
		contents = append(contents, c)
		input = append(input, frame(c)...)
	}
	for _, step := range []int{1, 3, 4096, 100_000, len(input)} {
		r, pool := reader(input, step, 4<<20)
		for i, want := range contents {
			got, err := r.Next()
			if err != nil {
				t.Fatalf("step %d, frame %d: %v", step, i, err)
			}
			if !bytes.Equal(got.B, want) {
				t.Fatalf("step %d: frame %d of %d bytes differs (%d bytes)", step, i, len(want), len(got.B))
			}
			got.Release()
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("after the last frame: %v", err)
		}
		if u := pool.Usage(); u.Used != 0 {
			t.Errorf("%d bytes were not released", u.Used)
		}
	}
}

func TestBadFrames(t *testing.T) {
	for _, c := range []struct {
		name  string
		input string
		want  error
	}{
		{"nothing", "", io.EOF},
		{"cut length", "\x00\x00", ErrCutShort},
		{"only the length", "\x00\x00\x00\x05", ErrCutShort},
		{"cut content", "\x00\x00\x00\x05abc", io.ErrUnexpectedEOF},
		{"too large", "\x00\x10\x00\x01abc", ErrFrameSize},
		{"2^31-1", "\x7f\xff\xff\xffabc", ErrFrameSize},
		{"-1", "\xff\xff\xff\xffabc", ErrFrameSize},
		{"-2^31", "\x80\x00\x00\x00abc", ErrFrameSize},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", ErrTLS},
		{"HTTP", "GET / HTTP/1.1\r\n\r\n", ErrHTTP},
	} {
		r, pool := reader([]byte(c.input), 100, 1<<20)
		if _, err := r.Next(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if u := pool.Usage(); u.Used != 0 {
			t.Errorf("%s: %d bytes were not released", c.name, u.Used)
		}
	}
}

func TestPeekLeavesTheFrame(t *testing.T) {
	r, _ := reader(append(frame([]byte("abc")), "ruok"...), 2, 100)
	for range 2 {
		if p, err := r.Peek(); err != nil || string(p) != "\x00\x00\x00\x03" {
			t.Fatalf("%q, %v", p, err)
		}
	}
	if f, err := r.Next(); err != nil || string(f.B) != "abc" {
		t.Fatalf("%v, %v", f, err)
	}
	if p, err := r.Peek(); err != nil || string(p) != "ruok" {
		t.Fatalf("%q, %v", p, err)
	}
}

// TestAnnouncingCostsNothing is a thousand peers that announce 100 MB, and of which some send a little.
func TestAnnouncingCostsNothing(t *testing.T) {
	pool := buf.New(1 << 30)
	var ends []net.Conn
	failed := make(chan error)
	const peers = 1000
	for i := range peers {
		ours, theirs := net.Pipe()
		ends = append(ends, theirs)
		go func() {
			_, err := NewFrameReader(context.Background(), ours, FrameConfig{Pool: pool, BytesMax: 100 << 20}).Next()
			failed <- err
		}()
		sent := binary.BigEndian.AppendUint32(nil, 100<<20)
		if i%100 == 0 {
			sent = append(sent, make([]byte, 5000)...)
		}
		if _, err := theirs.Write(sent); err != nil {
			t.Fatal(err)
		}
	}
	if u := pool.Usage(); u.Used > 10*FirstBytes {
		t.Errorf("%d peers that announced hold %d bytes", peers, u.Used)
	}
	for _, c := range ends {
		c.Close()
	}
	for range peers {
		if err := <-failed; !errors.Is(err, ErrCutShort) {
			t.Fatal(err)
		}
	}
	if u := pool.Usage(); u.Used != 0 {
		t.Errorf("%d bytes were not released", u.Used)
	}
}

func TestProgressTellsWhatIsOnItsWay(t *testing.T) {
	var told []int
	input := append(frame([]byte("abc")), frame(nil)...)
	r := NewFrameReader(context.Background(), &tape{rest: append(input, 0, 0, 0, 9, 1), step: 2}, FrameConfig{
		Pool: buf.New(1 << 20), BytesMax: 1000, Progress: func(n int) { told = append(told, n) },
	})
	for range 3 {
		r.Next()
	}
	if got, want := fmt.Sprint(told), "[4 3 0 4 0 4 9 0]"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}

func TestAPassedDeadlineBetweenFramesIsNoHarm(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	r := NewFrameReader(context.Background(), ours, FrameConfig{Pool: buf.New(1 << 20), BytesMax: 1000})
	ours.SetReadDeadline(time.Unix(1, 0))
	if _, err := r.Next(); !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ErrCutShort) {
		t.Fatalf("%v", err)
	}
	ours.SetReadDeadline(time.Time{})
	go theirs.Write(frame([]byte("abc")))
	if f, err := r.Next(); err != nil || string(f.B) != "abc" {
		t.Fatalf("%v, %v", f, err)
	}
	ours.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	go theirs.Write(frame([]byte("abcdef"))[:7])
	if _, err := r.Next(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("within a frame: %v", err)
	}
}

func TestNoRoomForAFrame(t *testing.T) {
	pool := buf.New(1 << 20)
	held, _ := pool.Get(1 << 20)
	over, _ := pool.GetWait(context.Background(), 1)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	r := NewFrameReader(ctx, &tape{rest: frame(make([]byte, 100)), step: 50}, FrameConfig{Pool: pool, BytesMax: 1000})
	if _, err := r.Next(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	held.Release()
	over.Release()
}

func TestWhatIsHeldBackGoesOutBeforeAWait(t *testing.T) {
	input := bytes.Repeat(frame([]byte("abc")), 10)
	held, most := 0, 0
	r := NewFrameReader(context.Background(), &tape{rest: input, step: 35}, FrameConfig{
		Pool: buf.New(1 << 20), BytesMax: 1000, BeforeRead: func() error { most, held = max(most, held), 0; return nil },
	})
	for range 10 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		held++
	}
	if most != 5 { // five frames are 35 bytes
		t.Errorf("at most %d were held back", most)
	}
	broken := errors.New("broken")
	r = NewFrameReader(context.Background(), &tape{rest: input, step: 6}, FrameConfig{
		Pool: buf.New(1 << 20), BytesMax: 1000, BeforeRead: func() error {
			if held++; held > 3 {
				return broken
			}
			return nil
		},
	})
	held = 0
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); !errors.Is(err, broken) || errors.Is(err, ErrCutShort) {
		t.Errorf("%v", err)
	}
}

// counting counts the reads.
type counting struct {
	loop
	reads int
}

func (c *counting) Read(p []byte) (int, error) {
	c.reads++
	return c.loop.Read(p)
}

func TestALargeFrameBringsTheNextOnesBeginningAlong(t *testing.T) {
	const frames = 20
	all := bytes.Repeat(frame(make([]byte, 70_000)), frames)
	src := &counting{loop: loop{tape{step: len(all)}, all}}
	r := NewFrameReader(context.Background(), src, FrameConfig{Pool: buf.New(64 << 20), BytesMax: 1 << 20})
	for range frames {
		f, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		f.Release()
	}
	if src.reads > frames+3 {
		t.Errorf("%d reads for %d frames", src.reads, frames)
	}
}

func TestReady(t *testing.T) {
	r, _ := reader(append(append(frame([]byte("abc")), frame([]byte("de"))...), 0, 0, 0, 5, 1), 1000, 100)
	if r.Ready() {
		t.Error("ready before anything was read")
	}
	r.Next()
	if !r.Ready() {
		t.Error("the second frame has come, but is not ready")
	}
	r.Next()
	if r.Ready() {
		t.Error("half a frame is ready")
	}
}

// loop gives the same bytes again and again.
type loop struct {
	tape
	all []byte
}

func (l *loop) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		l.rest = l.all
	}
	return l.tape.Read(p)
}

func TestSteadyFramesAllocateNothing(t *testing.T) {
	input := frame(make([]byte, 1<<20+300))
	r := NewFrameReader(context.Background(), &loop{tape{step: 1 << 20}, input}, FrameConfig{Pool: buf.New(64 << 20), BytesMax: 4 << 20})
	next := func() {
		f, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		f.Release()
	}
	next()
	if n := testing.AllocsPerRun(20, next); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x03abc\x00\x00\x00\x00"), 2)
	f.Add([]byte("\x7f\xff\xff\xff"), 1)
	f.Add([]byte("\x16\x03\x01\x00"), 4)
	f.Fuzz(func(t *testing.T, input []byte, step int) {
		r, pool := reader(input, 1+step&0xffff, 1<<16)
		var again []byte
		for {
			got, err := r.Next()
			if err != nil {
				break
			}
			again = append(again, frame(got.B)...)
			got.Release()
		}
		if !bytes.HasPrefix(input, again) {
			t.Errorf("frames %x are not a prefix of the input %x", again, input)
		}
		if u := pool.Usage(); u.Used != 0 {
			t.Errorf("%d bytes were not released", u.Used)
		}
	})
}
