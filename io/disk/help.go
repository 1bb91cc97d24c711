package disk

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// CopyBytes is the size of the buffers that CopyTo borrows.
const CopyBytes = 128 << 10

var copyBufs = sync.Pool{New: func() any { return new([CopyBytes]byte) }}

// Source is the part of a File that CopyTo reads.
type Source interface {
	Path() string
	io.ReaderAt
}

// CopyTo sends n bytes of f from pos to dst through a pooled buffer: SendTo for backends, ranges and
// connections that the kernel cannot join. The end of the file before n is io.ErrUnexpectedEOF.
func CopyTo(dst io.Writer, f Source, pos, n int64) (sent int64, err error) {
	buf := copyBufs.Get().(*[CopyBytes]byte)
	defer copyBufs.Put(buf)
	defer func() { CountSent(SendCopy, sent) }()
	for sent < n {
		chunk := buf[:min(n-sent, CopyBytes)]
		got, readErr := f.ReadAt(chunk, pos+sent)
		if got > 0 {
			wrote, writeErr := dst.Write(chunk[:got])
			sent += int64(wrote)
			if writeErr != nil {
				return sent, writeErr
			}
		}
		if got == len(chunk) {
			continue
		}
		if readErr == nil || errors.Is(readErr, io.EOF) {
			readErr = io.ErrUnexpectedEOF
		}
		return sent, Fail("send", f.Path(), pos+sent, readErr)
	}
	return sent, nil
}

// SyncEach calls Sync on every file from at most parallel goroutines, and returns the error of the
// first file in the list that failed. All are tried.
func SyncEach(files []File, parallel int) error {
	_, err := SyncFirst(files, parallel)
	return err
}

// SyncFirst is SyncEach that also tells which file was the first that failed.
func SyncFirst(files []File, parallel int) (first int, err error) {
	if len(files) == 1 {
		return 0, files[0].Sync()
	}
	errs := make([]error, len(files))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(parallel, len(files)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(files) {
					return
				}
				errs[i] = files[i].Sync()
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return i, err
		}
	}
	return 0, nil
}

// ReadEach does every read of a batch by its file's ReadAt, from at most parallel goroutines, the
// caller's among them.
func ReadEach(reads []Read, parallel int) {
	ReadEachBy(reads, parallel, func(r *Read) { r.N, r.Err = r.File.ReadAt(r.Buf, r.Pos) })
}

// ReadEachBy is ReadEach with read in ReadAt's place; it sets N and Err.
func ReadEachBy(reads []Read, parallel int, read func(*Read)) {
	var next atomic.Int64
	run := func() {
		for i := int(next.Add(1)) - 1; i < len(reads); i = int(next.Add(1)) - 1 {
			read(&reads[i])
		}
	}
	var wg sync.WaitGroup
	for range min(parallel, len(reads)) - 1 {
		wg.Go(run)
	}
	run()
	wg.Wait()
}

// ErrTooLarge: a file is larger than its reader allows.
var ErrTooLarge = errors.New("file is larger than its limit")

// ReadFile reads a whole file of at most max bytes; a larger one is ErrTooLarge.
func ReadFile(fs FS, path string, max int64) ([]byte, error) {
	f, err := fs.Open(path, ReadOnly)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > max {
		return nil, Fail("read", path, -1, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, size, max))
	}
	p := make([]byte, size)
	n, err := f.ReadAt(p, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return p[:n], nil
}

// MkdirAllSync is MkdirAll with every new directory made durable in its parent.
func MkdirAllSync(fs FS, path string) error {
	path = filepath.Clean(path)
	var parents []string
	for p := path; ; p = filepath.Dir(p) {
		if _, err := fs.Stat(p); err == nil || filepath.Dir(p) == p {
			break
		}
		parents = append(parents, filepath.Dir(p))
	}
	if err := fs.MkdirAll(path); err != nil {
		return err
	}
	for _, p := range parents {
		if err := fs.SyncDir(p); err != nil {
			return err
		}
	}
	return nil
}

// VectorBytes is the size of all buffers together.
func VectorBytes(bufs [][]byte) (n int64) {
	for _, b := range bufs {
		n += int64(len(b))
	}
	return n
}

// CheckRange refuses positions and lengths that no file has.
func CheckRange(op, path string, pos, n int64) error {
	if pos < 0 || n < 0 || pos+n < 0 {
		return &Error{Op: op, Path: path, Pos: pos, Err: fmt.Errorf("bad range: position %d, length %d", pos, n)}
	}
	return nil
}
