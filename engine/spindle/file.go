package spindle

import (
	"net"

	"platter/io/disk"
)

// file is an open .log file. What reads it directly looks at a batch here and there, and may hold locks: it waits
// for the lane only where a reader of ForReaders is being read ahead for anyway.
type file struct {
	disk.File
	t   *tracked
	set *Set
}

// reading is a file as those see it who read on and on.
type reading file

// ForReaders is f for the ranges that readers are sent: what of them is cold waits for its turn on the device. A file that
// no Set has opened is returned as it is. It costs nothing, and lives as long as f.
func ForReaders(f disk.File) disk.File {
	if w, ok := f.(*file); ok && w.t.sp.p.Cold {
		return (*reading)(w)
	}
	return f
}

func (f *file) ReadAt(p []byte, pos int64) (int, error) {
	if !f.t.known.Load() || f.t.isHot(pos) {
		return f.File.ReadAt(p, pos)
	}
	f.t.sp.admit(f.t, f.File, pos, int64(len(p)), true)
	return f.readAt(p, pos)
}

// readAt reads what was admitted: from memory of ours, where it is there.
func (f *file) readAt(p []byte, pos int64) (n int, err error) {
	if f.t.sp.p.Buffers {
		if x := f.t.sp.pin(f.t, pos, int64(len(p))); x != nil {
			defer x.release()
			for _, part := range x.parts {
				n += copy(p[n:], part)
			}
			return n, nil
		}
	}
	return f.File.ReadAt(p, pos)
}

// sendTo sends what was admitted.
func (f *file) sendTo(dst net.Conn, pos, n int64) (int64, error) {
	if f.t.sp.p.Buffers {
		if x := f.t.sp.pin(f.t, pos, n); x != nil {
			defer x.release()
			return x.parts.WriteTo(dst)
		}
	}
	return f.File.SendTo(dst, pos, n)
}

func (f *file) WriteV(bufs [][]byte, pos int64) (int64, error) {
	f.t.sp.begun.Add(1)
	n, err := f.File.WriteV(bufs, pos)
	f.t.sp.ended.Add(1)
	f.t.wrote(pos, n)
	f.t.writeBehind(f.File, pos, n)
	return n, err
}

func (f *file) Truncate(size int64) error {
	err := f.File.Truncate(size)
	f.t.cut(size)
	return err
}

func (f *file) Close() error {
	f.set.closed(f.t)
	return f.File.Close()
}

func (r *reading) Path() string                             { return r.File.Path() }
func (r *reading) Size() (int64, error)                     { return r.File.Size() }
func (r *reading) Sync() error                              { return r.File.Sync() }
func (r *reading) Preallocate(pos, n int64) error           { return r.File.Preallocate(pos, n) }
func (r *reading) ReleaseTail() error                       { return r.File.ReleaseTail() }
func (r *reading) WriteBehind(pos, n int64) error           { return r.File.WriteBehind(pos, n) }
func (r *reading) Advise(pos, n int64, a disk.Advice) error { return r.File.Advise(pos, n, a) }
func (r *reading) Resident(pos, n int64) (int64, error)     { return r.File.Resident(pos, n) }
func (r *reading) WriteV(bufs [][]byte, pos int64) (int64, error) {
	return (*file)(r).WriteV(bufs, pos)
}
func (r *reading) Truncate(size int64) error { return (*file)(r).Truncate(size) }
func (r *reading) Close() error              { return (*file)(r).Close() }

// ReadAt reads in its turn.
func (r *reading) ReadAt(p []byte, pos int64) (n int, err error) {
	_, err = r.serve(pos, int64(len(p)), func(at, piece int64) (int64, error) {
		got, err := (*file)(r).readAt(p[at-pos:at-pos+piece], at)
		n += got
		return int64(got), err
	})
	return n, err
}

// SendTo sends in its turn.
func (r *reading) SendTo(dst net.Conn, pos, n int64) (int64, error) {
	return r.serve(pos, n, func(at, piece int64) (int64, error) { return (*file)(r).sendTo(dst, at, piece) })
}

// serve gives [pos, pos+n) to give: at once when it is in the cache, else piece by piece, each when the lane has it.
func (r *reading) serve(pos, n int64, give func(pos, n int64) (int64, error)) (done int64, err error) {
	t := r.t
	if t.isHot(pos) || n <= 0 || !t.known.Load() && isResident(r.File, pos, n) {
		return give(pos, n)
	}
	for done < n && err == nil {
		at, piece := pos+done, min(n-done, t.sp.p.PieceBytes)
		if !t.isHot(at) {
			t.sp.admit(t, r.File, at, piece, false)
		}
		var got int64
		got, err = give(at, piece)
		t.sp.took(t, at, got)
		done += got
	}
	return done, err
}
