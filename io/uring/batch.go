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
	kind := WarmReads
	if cold {
		kind = ColdReads
	}
	fs.split(len(reads), func(i int) disk.File { return reads[i].File }, func(d *device, part []int) {
		if part == nil {
			fs.readOn(d, reads, cold, kind)
			return
		}
		sub := make([]disk.Read, len(part))
		for i, p := range part {
			sub[i] = reads[p]
		}
		fs.readOn(d, sub, cold, kind)
		for i, p := range part {
			reads[p] = sub[i]
		}
	})
}

// Sync makes all files durable: those of one device are one submission to its ring.
func (fs *FS) Sync(files []disk.File) error {
	errs := make([]error, len(files))
	fs.split(len(files), func(i int) disk.File { return files[i] }, func(d *device, part []int) {
		if part == nil {
			fs.syncOn(d, files, errs)
			return
		}
		sub, subErrs := make([]disk.File, len(part)), make([]error, len(part))
		for i, p := range part {
			sub[i] = files[p]
		}
		fs.syncOn(d, sub, subErrs)
		for i, p := range part {
			errs[p] = subErrs[i]
		}
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// split calls do for each device of a set of files, at once for all; part is nil for the usual set, that of
// one device. d is nil for files that are not psync's.
func (fs *FS) split(count int, file func(int) disk.File, do func(d *device, part []int)) {
	if count == 0 {
		return
	}
	first, same := fs.deviceOf(file(0)), true
	for i := 1; i < count && same; i++ {
		same = fs.deviceOf(file(i)) == first
	}
	if same {
		do(first, nil)
		return
	}
	parts := map[*device][]int{}
	for i := range count {
		d := fs.deviceOf(file(i))
		parts[d] = append(parts[d], i)
	}
	var wg sync.WaitGroup
	for d, part := range parts {
		wg.Go(func() { do(d, part) })
	}
	wg.Wait()
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

func (fs *FS) readOn(d *device, reads []disk.Read, cold bool, kind Ops) {
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

func (fs *FS) syncOn(d *device, files []disk.File, errs []error) {
	q := d.ringFor(Syncs, len(files))
	if q == nil {
		disk.SyncAll(files, psync.SyncCount, errs)
		return
	}
	j := jobs.Get().(*job)
	for i, f := range files {
		fd, err := psync.Pin(f)
		if err != nil {
			errs[i] = disk.Fail("sync", f.Path(), -1, err)
			continue
		}
		j.add(op{code: sys.IORING_OP_FSYNC, flags: sys.IORING_FSYNC_DATASYNC, fd: int32(fd)}, i)
	}
	stopped := q.do(j.ops) != nil
	for i := range j.ops {
		f, o := files[j.index[i]], &j.ops[i]
		switch {
		case stopped || o.errno == unix.ECANCELED: // it was never begun
			d.stats.plain.Add(1)
			errs[j.index[i]] = f.Sync()
		case o.errno != 0:
			errs[j.index[i]] = disk.Fail("sync", f.Path(), -1, o.errno)
		}
		psync.Unpin(f)
	}
	j.release()
}
