//go:build linux && !portable

package psync

import (
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"platter/io/disk"
	"platter/io/gate"
	"platter/io/internal/hostfs"
)

// fileSystems names statfs(2)'s f_type. ext2, ext3 and ext4 share one number.
var fileSystems = map[int64]string{
	unix.EXT4_SUPER_MAGIC:      "ext4",
	unix.XFS_SUPER_MAGIC:       "xfs",
	unix.BTRFS_SUPER_MAGIC:     "btrfs",
	unix.F2FS_SUPER_MAGIC:      "f2fs",
	unix.TMPFS_MAGIC:           "tmpfs",
	unix.OVERLAYFS_SUPER_MAGIC: "overlay",
	unix.NFS_SUPER_MAGIC:       "nfs",
	unix.FUSE_SUPER_MAGIC:      "fuse",
	0x2fc12fc1:                 "zfs",
}

// Caps probes the file system of path once.
func (fs *FS) Caps(path string) disk.Caps {
	g := gate.Process.For(path)
	g.Enter(gate.Read)
	defer g.Leave(gate.Read)
	var st unix.Stat_t
	for dir := hostfs.ExistingParent(path); ; dir = filepath.Dir(dir) {
		if err := unix.Stat(dir, &st); err != nil {
			return disk.Caps{FileSystem: "unknown"}
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return fs.capsOf(uint64(st.Dev), dir)
		}
	}
}

// capsOf probes a device once; meanwhile those who ask of it wait, and nobody else does.
func (fs *FS) capsOf(dev uint64, dir string) disk.Caps {
	fs.capsMu.Lock()
	once := fs.caps[dev]
	if once == nil {
		once = sync.OnceValue(func() disk.Caps { return probe(dir) })
		fs.caps[dev] = once
	}
	fs.capsMu.Unlock()
	return once()
}

// probe asks by doing, on a file without a name (O_TMPFILE). Where that cannot be made, only what every
// Linux file system has is claimed.
func probe(dir string) disk.Caps {
	c := disk.Caps{FileSystem: "unknown", SendFile: true, WriteBehind: true, Advise: true}
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) == nil {
		if name, ok := fileSystems[int64(uint32(st.Type))]; ok {
			c.FileSystem = name
		}
	}
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return c
	}
	defer unix.Close(fd)
	c.Preallocate = unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, 4096) == nil
	c.WriteBehind = unix.SyncFileRange(fd, 0, 4096, unix.SYNC_FILE_RANGE_WRITE) == nil
	c.Advise = unix.Fadvise(fd, 0, 4096, unix.FADV_SEQUENTIAL) == nil
	probePages(fd, &c)
	return c
}
