package lab

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"platter/io/hddsim"
)

const (
	diskName = "disk"
	diskNode = 2 // its inode; the root is 1
	// requestsMax bounds what the kernel sends at once without anybody waiting for it, as a drive's queue does.
	requestsMax = 32
)

// fileSystem is a FUSE file system with one file, whose bytes are in mem.
type fileSystem struct {
	fuse.RawFileSystem
	mem []byte
	dev *device
}

// newFileSystem maps the bytes: memory that is taken as it is written to, or a sparse file.
func newFileSystem(c Config, dev *device) (*fileSystem, error) {
	fd, flags := -1, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE
	if c.Backing != "" {
		f, err := os.CreateTemp(c.Backing, "hddlab-*.disk")
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if err := os.Remove(f.Name()); err != nil { // it goes with the process, however that ends
			return nil, err
		}
		if err := f.Truncate(c.SizeBytes); err != nil {
			return nil, err
		}
		fd, flags = int(f.Fd()), unix.MAP_SHARED
	}
	mem, err := unix.Mmap(fd, 0, int(c.SizeBytes), unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, fmt.Errorf("mapping a disk of %d bytes: %w", c.SizeBytes, err)
	}
	return &fileSystem{RawFileSystem: fuse.NewDefaultRawFileSystem(), mem: mem, dev: dev}, nil
}

// mountFUSE mounts the file system on dir and serves it.
func (fs *fileSystem) mountFUSE(dir string) (*fuse.Server, error) {
	s, err := fuse.NewServer(fs, dir, &fuse.MountOptions{
		MaxBackground: requestsMax, MaxWrite: requestBytesMax, DisableSplice: true, DisableXAttrs: true,
		FsName: fuseName, Name: fuseName, DirectMountStrict: true,
		MaxInflightRequestBytes: 4 * requestsMax * requestBytesMax,
		ExtraCapabilities:       fuse.CAP_ASYNC_DIO,
	})
	if err != nil {
		return nil, fmt.Errorf("mounting FUSE on %s: %w", dir, err)
	}
	go s.Serve()
	return s, s.WaitMount()
}

// fuseName is what the mount is called, so that labs are found again.
const fuseName = "platter-hddlab"

func (fs *fileSystem) String() string { return fuseName }

func (fs *fileSystem) attr(node uint64, out *fuse.Attr) fuse.Status {
	out.Ino, out.Nlink, out.Blksize = node, 1, sectorBytes
	switch node {
	case fuse.FUSE_ROOT_ID:
		out.Mode = unix.S_IFDIR | 0o700
	case diskNode:
		out.Mode, out.Size = unix.S_IFREG|0o600, uint64(len(fs.mem))
		out.Blocks = out.Size / 512
	default:
		return fuse.ENOENT
	}
	return fuse.OK
}

// forever: nothing changes but by the kernel's own doing.
const forever = 1 << 30

// Lookup knows the one file.
func (fs *fileSystem) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if h.NodeId != fuse.FUSE_ROOT_ID || name != diskName {
		return fuse.ENOENT
	}
	out.NodeId, out.Generation, out.EntryValid, out.AttrValid = diskNode, 1, forever, forever
	return fs.attr(diskNode, &out.Attr)
}

// GetAttr and SetAttr tell the same: times and owners are not kept.
func (fs *fileSystem) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	out.AttrValid = forever
	return fs.attr(in.NodeId, &out.Attr)
}

// SetAttr changes nothing.
func (fs *fileSystem) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	if in.Valid&fuse.FATTR_SIZE != 0 {
		return fuse.EPERM
	}
	out.AttrValid = forever
	return fs.attr(in.NodeId, &out.Attr)
}

// Open opens the file.
func (fs *fileSystem) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if in.NodeId != diskNode {
		return fuse.EPERM
	}
	return fuse.OK
}

// OpenDir and ReadDir show the one file.
func (fs *fileSystem) OpenDir(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status {
	return fuse.OK
}

// ReadDir lists it.
func (fs *fileSystem) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	if in.Offset == 0 {
		out.AddDirEntry(fuse.DirEntry{Name: diskName, Ino: diskNode, Mode: unix.S_IFREG})
	}
	return fuse.OK
}

func (fs *fileSystem) inside(pos uint64, n uint64) bool {
	size := uint64(len(fs.mem))
	return pos <= size && n <= size-pos
}

// Read gives bytes of the mapping itself.
func (fs *fileSystem) Read(_ <-chan struct{}, in *fuse.ReadIn, _ []byte) (fuse.ReadResult, fuse.Status) {
	n := min(uint64(in.Size), uint64(len(fs.mem))-min(in.Offset, uint64(len(fs.mem))))
	if n == 0 {
		return fuse.ReadResultData(nil), fuse.OK
	}
	fs.dev.do(hddsim.Read, int64(in.Offset), int64(n))
	return fuse.ReadResultData(fs.mem[in.Offset : in.Offset+n]), fuse.OK
}

// Write takes bytes within the size.
func (fs *fileSystem) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	if !fs.inside(in.Offset, uint64(len(data))) {
		return 0, fuse.Status(unix.ENOSPC)
	}
	if len(data) > 0 {
		fs.dev.do(hddsim.Write, int64(in.Offset), int64(len(data)))
		copy(fs.mem[in.Offset:], data)
	}
	return uint32(len(data)), fuse.OK
}

// Fsync is the disk's flush.
func (fs *fileSystem) Fsync(<-chan struct{}, *fuse.FsyncIn) fuse.Status {
	fs.dev.do(hddsim.Flush, 0, 0)
	return fuse.OK
}

// Flush is called at a close, and has nothing to do.
func (fs *fileSystem) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

// Fallocate gives memory back where the file system discards, which takes the disk no time.
func (fs *fileSystem) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	if in.Mode&(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_ZERO_RANGE) == 0 {
		return fuse.Status(unix.EOPNOTSUPP)
	}
	if !fs.inside(in.Offset, in.Length) {
		return fuse.EINVAL
	}
	page := uint64(os.Getpagesize())
	from, to := (in.Offset+page-1)/page*page, (in.Offset+in.Length)/page*page
	if from >= to {
		clear(fs.mem[in.Offset : in.Offset+in.Length])
		return fuse.OK
	}
	clear(fs.mem[in.Offset:from])
	clear(fs.mem[to : in.Offset+in.Length])
	// MADV_REMOVE punches a file's hole, MADV_DONTNEED drops private memory; both read as zeros after.
	if unix.Madvise(fs.mem[from:to], unix.MADV_REMOVE) != nil && unix.Madvise(fs.mem[from:to], unix.MADV_DONTNEED) != nil {
		clear(fs.mem[from:to])
	}
	return fuse.OK
}

// StatFs tells the size.
func (fs *fileSystem) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	out.Bsize, out.Frsize, out.NameLen = sectorBytes, sectorBytes, 255
	out.Blocks, out.Files = uint64(len(fs.mem))/sectorBytes, 1
	return fuse.OK
}

// diskPath is the file behind the loop device.
func diskPath(dir string) string { return filepath.Join(dir, "fuse", diskName) }
