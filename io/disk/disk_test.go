package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"testing"
)

func TestFail(t *testing.T) {
	if Fail("open", "/f", -1, nil) != nil {
		t.Error("an error of nothing")
	}
	own := &Error{Op: "sync", Path: "/g", Pos: -1, Err: ErrFull}
	if got := Fail("write", "/f", 3, own); got != error(own) {
		t.Errorf("wrapped twice: %v", got)
	}
	if got := Fail("write", "/f", 3, fmt.Errorf("segment: %w", own)); got.Error() != "segment: sync /g: no space left on device" {
		t.Errorf("wrapped twice: %v", got)
	}
	for _, c := range []struct {
		err  error
		kind error
		text string
	}{
		{&fs.PathError{Op: "open", Path: "/f", Err: fs.ErrNotExist}, fs.ErrNotExist, "open /f at 3: file does not exist"},
		{&fs.PathError{Op: "read", Path: "/f", Err: os.ErrClosed}, ErrClosed, "open /f at 3: file already closed"},
		{os.NewSyscallError("read", fs.ErrPermission), fs.ErrPermission, "open /f at 3: permission denied"},
		{errors.ErrUnsupported, ErrUnsupported, "open /f at 3: unsupported operation"},
		{ErrLocked, ErrLocked, "open /f at 3: locked by another process"},
		{errors.New("odd"), nil, "open /f at 3: odd"},
	} {
		got := Fail("open", "/f", 3, c.err)
		if c.kind != nil && !errors.Is(got, c.kind) {
			t.Errorf("%v is not %v", got, c.kind)
		}
		if got.Error() != c.text {
			t.Errorf("got %q, want %q", got, c.text)
		}
	}
}

// bytesSource is a file that ends, or fails, where it is told to.
type bytesSource struct {
	data []byte
	err  error
}

func (b bytesSource) Path() string { return "/f" }

func (b bytesSource) ReadAt(p []byte, pos int64) (int, error) {
	n := copy(p, b.data[min(pos, int64(len(b.data))):])
	if n < len(p) {
		return n, b.err
	}
	return n, nil
}

func TestCopyTo(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 50_000)
	var out bytes.Buffer
	if n, err := CopyTo(&out, bytesSource{data, io.EOF}, 7, 400_000); n != 400_000 || err != nil || !bytes.Equal(out.Bytes(), data[7:400_007]) {
		t.Errorf("copied %d: %v", n, err)
	}
	out.Reset()
	n, err := CopyTo(&out, bytesSource{data, io.EOF}, 400_000, 400_000)
	if n != 100_000 || !errors.Is(err, io.ErrUnexpectedEOF) || out.Len() != 100_000 {
		t.Errorf("a file that ended: %d: %v", n, err)
	}
	broken := errors.New("broken")
	if n, err := CopyTo(io.Discard, bytesSource{data[:10], broken}, 0, 20); n != 10 || !errors.Is(err, broken) {
		t.Errorf("a file that failed: %d: %v", n, err)
	}
	r, w := io.Pipe()
	r.CloseWithError(broken)
	if n, err := CopyTo(w, bytesSource{data, io.EOF}, 0, 20); n != 0 || err != broken {
		t.Errorf("a peer that is gone: %d: %v", n, err)
	}
}
