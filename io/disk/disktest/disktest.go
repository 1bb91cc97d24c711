// Package disktest is the contract of disk.FS as a test suite. Every backend runs the same one.
package disktest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"platter/io/disk"
)

// Run checks one backend. open returns it together with an empty directory in it.
func Run(t *testing.T, open func(t *testing.T) (fs disk.FS, dir string)) {
	for _, c := range []struct {
		name string
		test func(*env)
	}{
		{"OpenModes", openModes},
		{"ReadsAndWrites", readsAndWrites},
		{"BadRanges", badRanges},
		{"Truncate", truncate},
		{"Preallocate", preallocate},
		{"Hints", hints},
		{"ClosedFile", closedFile},
		{"SyncSet", syncSet},
		{"AgainstModel", againstModel},
		{"ReadersBesideTheWriter", readersBesideTheWriter},
		{"Tree", tree},
		{"Rename", rename},
		{"ReadFile", readFile},
		{"RemoveOpenFile", removeOpenFile},
		{"Lock", lock},
		{"Space", space},
		{"SendTo", sendTo},
		{"SendToCutFile", sendToCutFile},
		{"SendToDeadline", sendToDeadline},
		{"SendToLostPeer", sendToLostPeer},
		{"SendToPipe", sendToPipe},
		{"CloseDuringSend", closeDuringSend},
		{"ReadBatch", readBatch},
		{"ReadsAtTheEnd", readsAtTheEnd},
		{"BatchesAtOnce", batchesAtOnce},
		{"Resident", resident},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs, dir := open(t)
			c.test(&env{t, fs, dir})
		})
	}
}

// env is one test's directory.
type env struct {
	*testing.T
	fs  disk.FS
	dir string
}

func (e *env) path(name string) string { return filepath.Join(e.dir, name) }

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// fails wants err to be a *disk.Error of a kind.
func (e *env) fails(err, kind error, what string) {
	e.Helper()
	var de *disk.Error
	switch {
	case err == nil:
		e.Errorf("%s: no error", what)
	case kind != nil && !errors.Is(err, kind):
		e.Errorf("%s: got %v, want %v", what, err, kind)
	case !errors.As(err, &de) || de.Op == "" || de.Path == "":
		e.Errorf("%s: %v does not say operation and path", what, err)
	case errors.As(de.Err, new(*disk.Error)):
		e.Errorf("%s: %v is wrapped twice", what, err)
	}
}

func (e *env) open(name string, m disk.Mode) disk.File {
	e.Helper()
	f, err := e.fs.Open(e.path(name), m)
	e.must(err)
	e.Cleanup(func() { f.Close() })
	return f
}

// file makes a file with the given content.
func (e *env) file(name string, content []byte) disk.File {
	e.Helper()
	f := e.open(name, disk.CreateNew)
	e.write(f, 0, content)
	return f
}

func (e *env) write(f disk.File, pos int64, bufs ...[]byte) {
	e.Helper()
	want := disk.VectorBytes(bufs)
	if n, err := f.WriteV(bufs, pos); err != nil || n != want {
		e.Fatalf("wrote %d of %d: %v", n, want, err)
	}
}

func (e *env) wantContent(f disk.File, want []byte) {
	e.Helper()
	if size, err := f.Size(); err != nil || size != int64(len(want)) {
		e.Fatalf("size %d, %v; want %d", size, err, len(want))
	}
	got := make([]byte, len(want))
	n, err := f.ReadAt(got, 0)
	if n != len(want) || err != nil {
		e.Fatalf("read %d of %d: %v", n, len(want), err)
	}
	if !bytes.Equal(got, want) {
		e.Fatalf("content differs, first at %d", firstDifference(got, want))
	}
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// noise is n bytes that repeat nowhere.
func noise(n int) []byte {
	p := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(p)
	return p
}

func openModes(e *env) {
	for _, m := range []disk.Mode{disk.ReadOnly, disk.ReadWrite} {
		_, err := e.fs.Open(e.path("missing"), m)
		e.fails(err, fs.ErrNotExist, "open of a missing file")
		if !disk.IsNotExist(err) {
			e.Errorf("IsNotExist says no to %v", err)
		}
	}
	for _, m := range []disk.Mode{disk.Create, disk.CreateNew} {
		_, err := e.fs.Open(e.path("no/such/dir/f"), m)
		e.fails(err, fs.ErrNotExist, "create in a missing directory")
		_, err = e.fs.Open(e.dir, m)
		e.fails(err, nil, "create over a directory")
	}
	_, err := e.fs.Open(e.dir, disk.ReadOnly)
	e.fails(err, nil, "open of a directory")

	e.file("f", []byte("abc")).Close()
	_, err = e.fs.Open(e.path("f"), disk.CreateNew)
	e.fails(err, fs.ErrExist, "CreateNew of an existing file")
	for _, m := range []disk.Mode{disk.ReadOnly, disk.ReadWrite, disk.Create} {
		f := e.open("f", m)
		if f.Path() != e.path("f") {
			e.Errorf("path is %s", f.Path())
		}
		e.wantContent(f, []byte("abc"))
	}
	r := e.open("f", disk.ReadOnly)
	if n, err := r.WriteV([][]byte{[]byte("x")}, 0); err == nil || n != 0 {
		e.Errorf("write to a read-only file: %d, %v", n, err)
	}
	if r.Truncate(0) == nil {
		e.Error("truncate of a read-only file worked")
	}
	e.wantContent(r, []byte("abc"))
}

func readsAndWrites(e *env) {
	f := e.open("f", disk.CreateNew)
	e.write(f, 0)
	e.write(f, 0, nil, []byte{})
	e.wantContent(f, nil)

	var want []byte
	var bufs [][]byte
	data := noise(1 << 20)
	for i := range 2500 { // more than any system's vector limit
		b := data[i*100 : i*100+i%90]
		bufs = append(bufs, b)
		want = append(want, b...)
	}
	e.write(f, 0, bufs...)
	e.wantContent(f, want)

	mixed := [][]byte{data[:3], data[3:200_000], data[200_000:200_001], nil, data[200_001:600_000]}
	e.write(f, int64(len(want)), mixed...)
	want = append(want, data[:600_000]...)
	e.wantContent(f, want)

	e.write(f, 10, []byte("over"))
	copy(want[10:], "over")
	e.wantContent(f, want)

	hole := int64(len(want)) + 10_000
	e.write(f, hole, []byte("beyond a hole"))
	want = append(want, make([]byte, 10_000)...)
	want = append(want, "beyond a hole"...)
	e.wantContent(f, want)

	p := make([]byte, 20)
	if n, err := f.ReadAt(p, int64(len(want))-5); n != 5 || err != io.EOF || string(p[:5]) != " hole" {
		e.Errorf("read across the end: %d, %v, %q", n, err, p[:n])
	}
	if n, err := f.ReadAt(p, int64(len(want))+5); n != 0 || err != io.EOF {
		e.Errorf("read beyond the end: %d, %v", n, err)
	}
	if n, err := f.ReadAt(nil, 0); n != 0 || err != nil {
		e.Errorf("empty read: %d, %v", n, err)
	}
}

func badRanges(e *env) {
	f := e.file("f", []byte("abc"))
	const far = int64(1<<63 - 2)
	p := []byte("xxxx")
	_, err := f.ReadAt(p, -1)
	e.fails(err, nil, "read at -1")
	_, err = f.WriteV([][]byte{p}, -1)
	e.fails(err, nil, "write at -1")
	_, err = f.WriteV([][]byte{p}, far)
	e.fails(err, nil, "write beyond 2^63")
	e.fails(f.Truncate(-1), nil, "truncate to -1")
	e.fails(f.Preallocate(far, far), nil, "preallocate beyond 2^63")
	_, err = f.SendTo(nil, 0, -1)
	e.fails(err, nil, "send of -1 bytes")
	e.wantContent(f, []byte("abc"))
}

func truncate(e *env) {
	data := noise(20_000)
	f := e.file("f", data)
	e.must(f.Truncate(10_001))
	e.wantContent(f, data[:10_001])
	e.must(f.Truncate(15_000))
	e.wantContent(f, append(bytes.Clone(data[:10_001]), make([]byte, 4_999)...))
	e.must(f.Truncate(0))
	e.wantContent(f, nil)
	e.must(f.Truncate(9))
	e.wantContent(f, make([]byte, 9))
}

func preallocate(e *env) {
	f := e.file("f", []byte("abc"))
	err := f.Preallocate(0, 1<<20)
	if e.fs.Caps(e.dir).Preallocate {
		e.must(err)
	} else if err != nil {
		e.fails(err, disk.ErrUnsupported, "preallocate")
	}
	e.wantContent(f, []byte("abc"))
	e.write(f, 3, []byte("def"))
	e.must(f.ReleaseTail())
	e.wantContent(f, []byte("abcdef"))
	e.write(f, 6, []byte("ghi"))
	e.wantContent(f, []byte("abcdefghi"))
}

func hints(e *env) {
	f := e.file("f", noise(100_000))
	ok := func(err error, what string) {
		if err != nil {
			e.fails(err, disk.ErrUnsupported, what)
		}
	}
	ok(f.WriteBehind(0, 50_000), "write behind")
	for _, a := range []disk.Advice{disk.Sequential, disk.Random, disk.WillNeed, disk.DontNeed} {
		ok(f.Advise(0, 100_000, a), "advise")
	}
	e.wantContent(f, noise(100_000))
	if c := e.fs.Caps(e.path("not/there/yet")); c != e.fs.Caps(e.dir) || c.FileSystem == "" {
		e.Errorf("capabilities of a path that is not there yet: %+v, of the directory: %+v", c, e.fs.Caps(e.dir))
	}
}

func closedFile(e *env) {
	f := e.file("f", []byte("abc"))
	e.must(f.Close())
	p := make([]byte, 1)
	_, err := f.ReadAt(p, 0)
	e.fails(err, disk.ErrClosed, "read")
	_, err = f.WriteV([][]byte{p}, 0)
	e.fails(err, disk.ErrClosed, "write")
	_, err = f.Size()
	e.fails(err, disk.ErrClosed, "size")
	_, err = f.SendTo(nil, 0, 1)
	e.fails(err, disk.ErrClosed, "send")
	e.fails(f.Sync(), disk.ErrClosed, "sync")
	e.fails(f.Truncate(0), disk.ErrClosed, "truncate")
	e.fails(f.Close(), disk.ErrClosed, "close")
	e.wantContent(e.open("f", disk.ReadOnly), []byte("abc"))
}

func syncSet(e *env) {
	var files []disk.File
	for i := range 40 {
		files = append(files, e.file(string(rune('A'+i)), noise(1000*i)))
	}
	e.must(e.fs.Sync(nil))
	e.must(e.fs.Sync(files[:1]))
	e.must(e.fs.Sync(files))
	e.must(files[7].Close())
	e.must(files[30].Close())
	err := e.fs.Sync(files)
	e.fails(err, disk.ErrClosed, "sync of a set with a closed file")
	var de *disk.Error
	if errors.As(err, &de) && de.Path != files[7].Path() {
		e.Errorf("the error is of %s, not of the first that failed", de.Path)
	}
}

// againstModel does random operations on a file and on a byte slice.
func againstModel(e *env) {
	rng := rand.New(rand.NewPCG(7, 7))
	f := e.open("f", disk.CreateNew)
	var model []byte
	data := noise(1 << 16)
	for range 400 {
		pos := rng.Int64N(int64(len(model)) + 5000)
		switch rng.IntN(4) {
		case 0, 1:
			var bufs [][]byte
			end := pos
			for range rng.IntN(12) {
				from := rng.IntN(len(data))
				b := data[from : from+rng.IntN(min(9000, len(data)-from)+1)]
				bufs = append(bufs, b)
				end += int64(len(b))
			}
			e.write(f, pos, bufs...)
			if joined := bytes.Join(bufs, nil); len(joined) > 0 {
				model = append(model, make([]byte, max(0, end-int64(len(model))))...)
				copy(model[pos:], joined)
			}
		case 2:
			e.must(f.Truncate(pos))
			model = append(model, make([]byte, max(0, pos-int64(len(model))))...)[:pos]
		case 3:
			p := make([]byte, rng.IntN(10_000))
			n, err := f.ReadAt(p, pos)
			want := model[min(pos, int64(len(model))):]
			if !bytes.Equal(p[:n], want[:min(len(p), len(want))]) {
				e.Fatalf("read of %d bytes at %d gave %d wrong ones", len(p), pos, n)
			}
			if (n < len(p)) != (err == io.EOF) {
				e.Fatalf("read of %d bytes gave %d and %v", len(p), n, err)
			}
		}
	}
	e.wantContent(f, model)
}

func readersBesideTheWriter(e *env) {
	f := e.open("f", disk.CreateNew)
	data := noise(1 << 20)
	var published atomic.Int64
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, 2))
			p := make([]byte, 5000)
			for end := int64(0); end < int64(len(data)); end = published.Load() {
				if end == 0 {
					runtime.Gosched()
					continue
				}
				pos := rng.Int64N(end)
				q := p[:min(int64(len(p)), end-pos)]
				if n, err := f.ReadAt(q, pos); n != len(q) || err != nil || !bytes.Equal(q, data[pos:pos+int64(n)]) {
					e.Errorf("%d bytes at %d below the end %d: %d, %v", len(q), pos, end, n, err)
					return
				}
			}
		})
	}
	for pos := 0; pos < len(data); pos += 8192 {
		e.write(f, int64(pos), data[pos:pos+100], data[pos+100:pos+8192])
		published.Store(int64(pos + 8192))
	}
	wg.Wait()
}

func space(e *env) {
	s, err := e.fs.Space(e.dir)
	e.must(err)
	if s.TotalBytes <= 0 || s.FreeBytes < 0 || s.FreeBytes > s.TotalBytes {
		e.Errorf("%+v", s)
	}
	_, err = e.fs.Space(e.path("missing"))
	e.fails(err, nil, "space of a missing path")
}
