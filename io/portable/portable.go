// Package portable is the backend that runs wherever Go does: os.File and copying. It is the only one
// outside Linux; `-tags portable` forces it there too.
//
// A WriteV of several small buffers is gathered into one write through a bounded scratch buffer.
// After a failed write os.File may not tell how much of it was done: WriteV then reports too few bytes,
// never too many. Preallocation, write-behind, advice and residency are ErrUnsupported. On darwin Sync is F_FULLFSYNC, on
// Windows FlushFileBuffers, as os.File does it.
package portable

import (
	"os"

	"platter/io/disk"
	"platter/io/gate"
	"platter/io/internal/hostfs"
)

// syncCount bounds the syncs of one FS.Sync.
const syncCount = 16

// readCount bounds the reads of one ReadBatch that are under way at once.
const readCount = 64

// FS implements disk.FS. The zero value is ready; safe for concurrent use.
type FS struct{ hostfs.Paths }

var _ disk.FS = FS{}

// New returns the backend.
func New() FS { return FS{} }

// Name is "portable".
func (FS) Name() string { return "portable" }

var flags = [...]int{
	disk.ReadOnly:  os.O_RDONLY,
	disk.ReadWrite: os.O_RDWR,
	disk.Create:    os.O_RDWR | os.O_CREATE,
	disk.CreateNew: os.O_RDWR | os.O_CREATE | os.O_EXCL,
}

// Open opens path.
func (FS) Open(path string, m disk.Mode) (disk.File, error) {
	g := gate.Process.For(path)
	g.Enter(gate.Write)
	defer g.Leave(gate.Write)
	f, err := os.OpenFile(path, flags[m], 0o644)
	if err != nil {
		return nil, disk.Fail("open", path, -1, err)
	}
	if fi, err := f.Stat(); err != nil || fi.IsDir() {
		f.Close()
		if err == nil {
			err = errDirectory
		}
		return nil, disk.Fail("open", path, -1, err)
	}
	return &file{path: path, f: f, gate: g}, nil
}

// Sync makes all files durable.
func (FS) Sync(files []disk.File) error { return disk.SyncEach(files, syncCount) }

// ReadBatch does the reads side by side. cold has no effect.
func (FS) ReadBatch(reads []disk.Read, _ bool) { disk.ReadEach(reads, readCount) }

// Caps claims nothing.
func (FS) Caps(string) disk.Caps { return disk.Caps{FileSystem: "unknown"} }
