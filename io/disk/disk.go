// Package disk is the only contract between Platter and files.
//
// An FS is one I/O backend (psync, portable, memdisk, faultdisk around another).
// Everything above io/ opens, writes, renames and syncs data files through it,
// so that a test can crash, tear or fill any of them.
//
// # What may run at once
//
// An FS and a File are safe for concurrent use, with one exception: WriteV,
// Truncate, Preallocate and ReleaseTail on one File belong to that file's single
// writer. ReadAt and SendTo may run beside the writer; they see whole or partial
// bytes of a write that is under way, so readers stay below an end that the
// writer has published.
//
// # What is assumed of the hardware
//
// A write is atomic in no unit larger than a sector (512 bytes). Bytes that were
// written but not synced may survive a crash in any subset of sectors, and so may
// the file size. Sync makes the file's bytes and size durable; a new, renamed or
// removed directory entry is durable only after SyncDir of its directory. A failed
// Sync says nothing about what reached the disk and is never retried.
//
// # Errors
//
// Every error is an *Error that wraps the cause once with operation, path and
// position. Match with errors.Is against ErrFull, ErrClosed, ErrShortWrite,
// ErrUnsupported, ErrLocked, fs.ErrNotExist, fs.ErrExist. Two exceptions: ReadAt
// gives io.EOF bare, because the users of an io.ReaderAt compare it with ==, and
// SendTo gives the errors of the connection as the connection's own (net.Error),
// so that a lost peer is never taken for a lost disk.
package disk

import (
	"io"
	"net"
)

// SectorBytes is the largest unit that a crash is assumed never to tear.
const SectorBytes = 512

// Mode says how Open treats the file.
type Mode int

const (
	// ReadOnly opens an existing file for reading.
	ReadOnly Mode = iota
	// ReadWrite opens an existing file.
	ReadWrite
	// Create opens for reading and writing, and creates the file when it is missing.
	Create
	// CreateNew is Create, but fs.ErrExist when the file is there.
	CreateNew
)

// Advice is a hint on how a range will be used; a backend may ignore it.
type Advice int

const (
	// Sequential: the range will be read in order.
	Sequential Advice = iota
	// Random: no readahead is wanted.
	Random
	// WillNeed: read the range into the page cache now.
	WillNeed
	// DontNeed: drop the range's clean pages from the page cache.
	DontNeed
)

// Info is what Stat and ReadDir tell of one entry. ModTimeMs is in Unix milliseconds.
type Info struct {
	Name      string
	SizeBytes int64
	IsDir     bool
	ModTimeMs int64
}

// Space is the room of the file system under a path, in bytes.
type Space struct {
	TotalBytes int64
	FreeBytes  int64
}

// Caps is what the backend can do for files under a path, probed once per file system.
type Caps struct {
	FileSystem  string // "ext4", "xfs", "tmpfs", "memory", or "unknown"
	Preallocate bool   // Preallocate reserves room without changing the size
	SendFile    bool   // SendTo moves bytes inside the kernel
	WriteBehind bool   // WriteBehind starts writeback of a range
	Advise      bool   // Advise reaches the kernel
	Resident    bool   // Resident tells what is in the page cache
	DontCache   bool   // cold reads leave nothing behind in the page cache (RWF_DONTCACHE)
	BatchRead   bool   // ReadBatch is one submission, not a thread a read
	// NoWaitAppend and NoWaitRead: the file system takes a buffered write or read that may not wait
	// (RWF_NOWAIT). Where it does not, io_uring hands every one to a thread of the kernel.
	NoWaitAppend, NoWaitRead bool
}

// Read is one positional read of a batch.
type Read struct {
	File File
	Buf  []byte // the backend's until ReadBatch returns
	Pos  int64
	N    int   // filled in, as ReadAt's result
	Err  error // likewise: io.EOF bare where the file ends
}

// FS is one I/O backend. Paths are native; the backend adds nothing to them.
type FS interface {
	// Name is the backend's name as io.backend spells it.
	Name() string
	// Open opens path. The caller closes the File.
	Open(path string, m Mode) (File, error)
	// Stat describes one entry.
	Stat(path string) (Info, error)
	// ReadDir lists a directory, sorted by name.
	ReadDir(path string) ([]Info, error)
	// MkdirAll creates path and its missing parents.
	MkdirAll(path string) error
	// Rename moves an entry, replacing a file at the target. Durable after SyncDir of both directories.
	Rename(from, to string) error
	// Remove deletes a file or an empty directory. On Unix a file that is open stays readable to its
	// holders; Windows refuses to remove or rename it, so close first where that matters.
	Remove(path string) error
	// RemoveAll deletes a tree; a missing path is no error.
	RemoveAll(path string) error
	// SyncDir makes the entries of the directory durable (a no-op where the platform has no such call).
	SyncDir(path string) error
	// Sync makes all files durable as File.Sync would, in whatever way is cheapest for a set.
	// The error is of the first file that failed; all were tried.
	Sync(files []File) error
	// ReadBatch does all reads as ReadAt would, in whatever way is cheapest for a set, and returns when
	// all are done. cold: the pages need not stay in the page cache; what was there before stays.
	ReadBatch(reads []Read, cold bool)
	// Lock takes an exclusive lock on path, creating the file; ErrLocked when another process has it.
	// Closing releases it. The lock dies with the process.
	Lock(path string) (io.Closer, error)
	// Space tells the room of the file system that holds path.
	Space(path string) (Space, error)
	// Caps tells what can be done for files under path.
	Caps(path string) Caps
}

// File is one open file.
type File interface {
	Path() string
	// Size is the file's length in bytes.
	Size() (int64, error)
	// ReadAt reads len(p) bytes at pos, as io.ReaderAt: fewer only with an error, io.EOF at the end.
	ReadAt(p []byte, pos int64) (int, error)
	// WriteV writes the buffers one after the other at pos, on the caller's goroutine, as few system
	// calls as the platform's vector limit needs. The buffers are read only, and only until it returns.
	// On an error n bytes from pos are in the file's page cache and the rest is undefined: the writer
	// cuts back with Truncate.
	WriteV(bufs [][]byte, pos int64) (n int64, err error)
	// Resident tells how many of the n bytes from pos, all of which lie below the file's end, are in the
	// page cache: n only when all are. It is counted in whole pages, those that the range touches in part
	// as missing when they are, so it never says too much. By the time it returns it may have changed.
	// ErrUnsupported where the platform does not tell.
	Resident(pos, n int64) (bytes int64, err error)
	// SendTo sends n bytes from pos to dst: inside the kernel where Caps.SendFile says so, the range is
	// large, and dst shows its socket (SyscallConn; a wrapper that embeds a *net.TCPConn does, and its
	// own Write is then passed by), else by copying through a bounded buffer. Zero bytes short of n
	// (the file was cut below the reader) is io.ErrUnexpectedEOF, and the bytes before it were sent.
	// A write deadline on dst is honoured. A Close meanwhile does not disturb it.
	SendTo(dst net.Conn, pos, n int64) (int64, error)
	// Sync makes the file's bytes and size durable (fdatasync). Never retry a failed one.
	Sync() error
	// Truncate sets the size, dropping what is above, zero-filling what is new.
	Truncate(size int64) error
	// Preallocate reserves n bytes from pos without changing the size. ErrUnsupported and ErrFull are
	// the caller's to ignore: it is an optimisation.
	Preallocate(pos, n int64) error
	// ReleaseTail gives back what Preallocate reserved beyond the file's size.
	ReleaseTail() error
	// WriteBehind starts writeback of a range without waiting; not a durability call.
	WriteBehind(pos, n int64) error
	// Advise hints at the use of a range.
	Advise(pos, n int64, a Advice) error
	// Close releases the file. It does not sync.
	Close() error
}

// Range is n bytes of a file: what a read of the log gives and a reply sends.
// Whoever made it keeps the file open until it is released.
type Range struct {
	File File
	Pos  int64
	Len  int64
}
