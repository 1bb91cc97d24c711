//go:build linux && !portable && !nouring

package uring

import (
	"io"
	"sync"
	"unsafe"

	sys "github.com/iceber/iouring-go/syscall"
	"golang.org/x/sys/unix"

	"platter/io/disk"
	"platter/io/psync"
)

// jobOpsMax is the largest vector of operations that is kept for the next batch.
const jobOpsMax = 4096

// job is what a batch needs beside what its caller gave.
type job struct {
	ops   []op
	index []int // of each op in what the caller gave

	// Of a write:
	device *device
	queue  *queue
	fd     int32
}

var jobs = sync.Pool{New: func() any { return new(job) }}

func (j *job) add(o op, index int) {
	j.ops = append(j.ops, o)
	j.index = append(j.index, index)
}

// release forgets all buffers. Nothing of the job may be used any more.
func (j *job) release() {
	if cap(j.ops) > jobOpsMax {
		return
	}
	clear(j.ops)
	*j = job{ops: j.ops[:0], index: j.index[:0]}
	jobs.Put(j)
}

// ReadBatch does the reads of each device as one submission to its ring. A batch of one, and those that do
// not go through the ring, are read as psync does it.
func (fs *FS) ReadBatch(reads []disk.Read, cold bool) {
	if len(reads) == 0 {
		return
	}
	d := fs.deviceOf(reads[0].File)
	for i := range reads[1:] {
		if fs.deviceOf(reads[i+1].File) != d {
			fs.readSplit(reads, cold)
			return
		}
	}
	fs.readOn(d, reads, cold)
}

// readSplit is ReadBatch for several devices: all at once.
func (fs *FS) readSplit(reads []disk.Read, cold bool) {
	var wg sync.WaitGroup
	for d, part := range fs.split(len(reads), func(i int) disk.File { return reads[i].File }) {
		wg.Go(func() {
			sub := make([]disk.Read, len(part))
			for i, p := range part {
				sub[i] = reads[p]
			}
			fs.readOn(d, sub, cold)
			for i, p := range part {
				reads[p] = sub[i]
			}
		})
	}
	wg.Wait()
}

// Sync makes all files durable: those of one device are one submission to its ring.
func (fs *FS) Sync(files []disk.File) error {
	if len(files) == 0 {
		return nil
	}
	d := fs.deviceOf(files[0])
	for _, f := range files[1:] {
		if fs.deviceOf(f) != d {
			return fs.syncSplit(files)
		}
	}
	_, err := fs.syncOn(d, files)
	return err
}

// syncSplit is Sync for several devices: all at once.
func (fs *FS) syncSplit(files []disk.File) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	first, firstErr := len(files), error(nil)
	for d, part := range fs.split(len(files), func(i int) disk.File { return files[i] }) {
		wg.Go(func() {
			sub := make([]disk.File, len(part))
			for i, p := range part {
				sub[i] = files[p]
			}
			at, err := fs.syncOn(d, sub)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && part[at] < first {
				first, firstErr = part[at], err
			}
		})
	}
	wg.Wait()
	return firstErr
}

// split sorts a set of files by device; nil is the device of files that are not psync's.
func (fs *FS) split(count int, file func(int) disk.File) map[*device][]int {
	parts := map[*device][]int{}
	for i := range count {
		d := fs.deviceOf(file(i))
		parts[d] = append(parts[d], i)
	}
	return parts
}

func (fs *FS) deviceOf(f disk.File) *device {
	if _, ok := psync.Device(f); !ok {
		return nil
	}
	return fs.device(f)
}

// ringFor is the ring that a batch of count goes to, or nil.
func (d *device) ringFor(kind Ops, count int) *queue {
	if d == nil || d.ops&kind == 0 || count < 2 {
		return nil
	}
	return d.ring()
}

func (fs *FS) readOn(d *device, reads []disk.Read, cold bool) {
	kind := WarmReads
	if cold {
		kind = ColdReads
	}
	q := d.ringFor(kind, len(reads))
	if q == nil {
		fs.FS.ReadBatch(reads, cold)
		return
	}
	flags := uint32(0)
	if cold && !d.keeps.Load() {
		flags = unix.RWF_DONTCACHE
	}
	j := jobs.Get().(*job)
	for i := range reads {
		r := &reads[i]
		r.N = 0
		if r.Err = disk.CheckRange("read", r.File.Path(), r.Pos, int64(len(r.Buf))); r.Err != nil {
			continue
		}
		fd, err := psync.Pin(r.File)
		switch {
		case err != nil:
			r.Err = disk.Fail("read", r.File.Path(), r.Pos, err)
		case len(r.Buf) == 0:
			psync.Unpin(r.File)
		default:
			j.add(op{code: sys.IORING_OP_READ, flags: flags, fd: int32(fd),
				ptr: unsafe.Pointer(unsafe.SliceData(r.Buf)), len: len(r.Buf), pos: r.Pos}, i)
		}
	}
	stopped := q.do(j.ops) != nil
	for i := range j.ops {
		r, o := &reads[j.index[i]], &j.ops[i]
		d.finish(r, o, stopped, cold)
		psync.Unpin(r.File)
	}
	j.release()
}

// finish makes the outcome of an operation that of its read.
func (d *device) finish(r *disk.Read, o *op, stopped, cold bool) {
	r.N = o.done
	switch {
	case stopped || o.errno == unix.ECANCELED:
		d.stats.plain.Add(1)
		r.N, r.Err = r.File.ReadAt(r.Buf, r.Pos)
	case o.flags&unix.RWF_DONTCACHE != 0 && (o.errno == unix.EOPNOTSUPP || o.errno == unix.EINVAL):
		d.keeps.Store(true)
		r.N, r.Err = r.File.ReadAt(r.Buf, r.Pos)
	case o.errno != 0:
		r.Err = disk.Fail("read", r.File.Path(), r.Pos+int64(o.done), o.errno)
	case o.done < o.len:
		r.Err = io.EOF
	}
}

// syncOn syncs files of one device; at is which of them was the first that failed.
func (fs *FS) syncOn(d *device, files []disk.File) (at int, err error) {
	q := d.ringFor(Syncs, len(files))
	if q == nil {
		return disk.SyncFirst(files, psync.SyncCount)
	}
	failed := func(i int, e error) {
		if e != nil && (err == nil || i < at) {
			at, err = i, e
		}
	}
	j := jobs.Get().(*job)
	for i, f := range files {
		fd, err := psync.Pin(f)
		if err != nil {
			failed(i, disk.Fail("sync", f.Path(), -1, err))
			continue
		}
		j.add(op{code: sys.IORING_OP_FSYNC, flags: sys.IORING_FSYNC_DATASYNC, fd: int32(fd)}, i)
	}
	stopped := q.do(j.ops) != nil
	for k := range j.ops {
		i, o := j.index[k], &j.ops[k]
		f := files[i]
		switch {
		case stopped || o.errno == unix.ECANCELED: // it was never begun
			d.stats.plain.Add(1)
			failed(i, f.Sync())
		case o.errno != 0:
			failed(i, disk.Fail("sync", f.Path(), -1, o.errno))
		}
		psync.Unpin(f)
	}
	j.release()
	return at, err
}
