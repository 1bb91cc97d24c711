package segment

import (
	"fmt"
	"testing"

	"platter/engine/batch"
	"platter/io/disk"
	"platter/io/handles"
	"platter/io/memdisk"
)

type rig struct {
	t   testing.TB
	fs  *memdisk.FS
	env *Env
	log []string
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, fs: memdisk.New(memdisk.Options{})}
	if err := r.fs.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	r.env = &Env{
		FS: r.fs, Handles: handles.New(r.fs, 16), Dir: "/d", IntervalBytes: func() int64 { return 300 },
		Logf: func(f string, a ...any) { r.log = append(r.log, fmt.Sprintf(f, a...)) },
	}
	return r
}

// batchAt is a batch of n records at base with timestamps from ts on.
func batchAt(base int64, n int, ts int64, size int) batch.Batch {
	bl := batch.NewBuilder()
	bl.BaseOffset = base
	for i := range n {
		bl.Add(ts+int64(i), []byte("key"), make([]byte, size))
	}
	b, err := bl.Build()
	if err != nil {
		panic(err)
	}
	return b
}

// fill makes a segment at base with n batches of three records each, and timestamps that rise by ten.
func (r *rig) fill(base int64, n int) *Segment {
	r.t.Helper()
	s, err := Create(r.env, base, 0, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range n {
		b := batchAt(base+int64(3*i), 3, int64(1000+10*i), 20)
		if err := s.Append([]batch.Batch{b}, make([][]byte, 1), 300); err != nil {
			r.t.Fatal(err)
		}
		if err := s.FlushIndexes(false); err != nil {
			r.t.Fatal(err)
		}
	}
	return s
}

// seal closes the segment and opens it again as a sealed one, through new handles.
func (r *rig) seal(s *Segment) *Segment {
	r.t.Helper()
	end := s.End()
	if err := s.Seal(end); err != nil {
		r.t.Fatal(err)
	}
	return r.reopen(s.Base, end)
}

func (r *rig) reopen(base, end int64) *Segment {
	r.t.Helper()
	r.env.Handles = handles.New(r.fs, 16)
	files, err := List(r.fs, "/d")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range files {
		if f.Base == base {
			return Open(r.env, f, end, true)
		}
	}
	r.t.Fatalf("no segment %d in %+v", base, files)
	return nil
}

func (r *rig) write(path string, pos int64, p []byte) {
	r.t.Helper()
	f, err := r.fs.Open(path, disk.Create)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	if pos < 0 {
		pos = 0
		if err := f.Truncate(0); err != nil {
			r.t.Fatal(err)
		}
	}
	if _, err := f.WriteV([][]byte{p}, pos); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) bytes(path string) []byte {
	r.t.Helper()
	p, err := disk.ReadFile(r.fs, path, 1<<30)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// span reads the batches that Span gives.
func (r *rig) span(s *Segment, offset, limit, maxBytes int64, atLeastOne bool) ([]batch.Batch, int64, error) {
	r.t.Helper()
	ref, err := s.Acquire()
	if err != nil {
		r.t.Fatal(err)
	}
	defer ref.Release()
	sp, err := s.Span(ref.File(), offset, limit, maxBytes, atLeastOne)
	if err != nil {
		return nil, 0, err
	}
	p := make([]byte, sp.Len)
	if n, err := ref.File().ReadAt(p, sp.Pos); int64(n) != sp.Len {
		r.t.Fatal(err)
	}
	bs, err := batch.Split(nil, p)
	if err != nil {
		r.t.Fatal(err)
	}
	return bs, sp.NextOffset, nil
}
