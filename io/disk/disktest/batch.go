package disktest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"platter/io/disk"
)

// readBatch reads from several files in one batch: whole and empty ranges, across the end, beyond it,
// bad ones, and from a file that is closed.
func readBatch(e *env) {
	e.fs.ReadBatch(nil, false)
	var files []disk.File
	var data [][]byte
	for i := range 5 {
		data = append(data, noise(100_000*i + 10)[i:])
		files = append(files, e.file(fmt.Sprint("f", i), data[i]))
	}
	closed := e.file("closed", []byte("abc"))
	e.must(closed.Close())
	for _, cold := range []bool{false, true} {
		var reads []disk.Read
		rng := rand.New(rand.NewPCG(3, 3))
		for range 300 { // more than any ring has entries for
			i := rng.IntN(len(files))
			reads = append(reads, disk.Read{File: files[i], Pos: rng.Int64N(int64(len(data[i])) + 5000), Buf: make([]byte, rng.IntN(70_000))})
		}
		bad := len(reads)
		reads = append(reads,
			disk.Read{File: closed, Buf: make([]byte, 1)},
			disk.Read{File: files[1], Buf: make([]byte, 1), Pos: -1},
			disk.Read{File: files[1], Buf: make([]byte, 2), Pos: 1<<63 - 2})
		want := make([]disk.Read, len(reads))
		for i, r := range reads {
			reads[i].N, reads[i].Err = -1, errors.New("never set")
			want[i] = disk.Read{Buf: make([]byte, len(r.Buf))}
			want[i].N, want[i].Err = r.File.ReadAt(want[i].Buf, r.Pos)
		}
		e.fs.ReadBatch(reads, cold)
		for i, r := range reads[:bad] {
			if r.N != want[i].N || r.Err != want[i].Err || !bytes.Equal(r.Buf[:r.N], want[i].Buf[:want[i].N]) {
				e.Fatalf("cold %v: read %d of %d bytes at %d: %d, %v; ReadAt gives %d, %v", cold, i, len(r.Buf), r.Pos,
					r.N, r.Err, want[i].N, want[i].Err)
			}
		}
		e.fails(reads[bad].Err, disk.ErrClosed, "read of a closed file in a batch")
		e.fails(reads[bad+1].Err, nil, "read at -1 in a batch")
		if r := reads[bad+2]; r.N != 0 || r.Err != want[bad+2].Err && r.Err == nil {
			e.Errorf("read at the end of all numbers: %d, %v", r.N, r.Err)
		}
	}
}

// batchesAtOnce reads batches from several goroutines, while syncs of sets run beside them.
func batchesAtOnce(e *env) {
	data := noise(1 << 20)
	var files []disk.File
	for i := range 8 {
		files = append(files, e.file(fmt.Sprint("f", i), data))
	}
	var wg sync.WaitGroup
	for g := range 12 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			reads := make([]disk.Read, 40)
			for range 10 {
				for i := range reads {
					n := rng.IntN(20_000) + 1
					reads[i] = disk.Read{File: files[rng.IntN(len(files))], Pos: rng.Int64N(int64(len(data) - n)), Buf: make([]byte, n)}
				}
				e.fs.ReadBatch(reads, g%2 == 0)
				for _, r := range reads {
					if r.N != len(r.Buf) || r.Err != nil || !bytes.Equal(r.Buf, data[r.Pos:][:r.N]) {
						e.Errorf("%d of %d bytes at %d: %v", r.N, len(r.Buf), r.Pos, r.Err)
						return
					}
				}
			}
		})
	}
	for g := range 3 {
		wg.Go(func() {
			for range 5 {
				if err := e.fs.Sync(files[g:]); err != nil {
					e.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// resident asks about pages that were just written, which some memory may have taken back since, so only
// the limits of an answer can be checked.
func resident(e *env) {
	const size = 1 << 20
	f := e.file("f", noise(size))
	n, err := f.Resident(0, size)
	if !e.fs.Caps(e.dir).Resident {
		e.fails(err, disk.ErrUnsupported, "resident")
		return
	}
	e.must(err)
	if n < 0 || n > size {
		e.Errorf("%d of %d bytes are resident", n, size)
	}
	for _, r := range [][2]int64{{0, 0}, {size, 0}, {1, 1}, {4095, 2}, {size - 1, 1}, {100, size - 100}} {
		if n, err := f.Resident(r[0], r[1]); err != nil || n < 0 || n > r[1] {
			e.Errorf("%d bytes at %d: %d resident, %v", r[1], r[0], n, err)
		}
	}
	e.must(f.Sync())
	if err := f.Advise(0, size, disk.DontNeed); err != nil && !errors.Is(err, disk.ErrUnsupported) {
		e.Error(err)
	}
	if n, err := f.Resident(0, size); err != nil || n < 0 || n > size {
		e.Errorf("after DontNeed %d of %d bytes are resident, %v", n, size, err)
	}
	e.wantContent(f, noise(size))
	_, err = f.Resident(-1, 5)
	e.fails(err, nil, "resident at -1")
	e.must(f.Close())
	_, err = f.Resident(0, 5)
	e.fails(err, disk.ErrClosed, "resident of a closed file")
}

// readsAtTheEnd reads a growing file's end in batches: io.EOF is bare, as ReadAt's.
func readsAtTheEnd(e *env) {
	f := e.file("f", []byte("0123456789"))
	reads := []disk.Read{
		{File: f, Pos: 0, Buf: make([]byte, 10)},
		{File: f, Pos: 5, Buf: make([]byte, 10)},
		{File: f, Pos: 10, Buf: make([]byte, 1)},
		{File: f, Pos: 11, Buf: nil},
	}
	e.fs.ReadBatch(reads, true)
	for i, want := range []struct {
		n   int
		err error
	}{{10, nil}, {5, io.EOF}, {0, io.EOF}, {0, nil}} {
		if reads[i].N != want.n || reads[i].Err != want.err {
			e.Errorf("read %d: %d, %v; want %d, %v", i, reads[i].N, reads[i].Err, want.n, want.err)
		}
	}
}
