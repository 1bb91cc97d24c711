//go:build linux && !portable

package psync

import (
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"platter/io/disk"
	"platter/io/gate"
)

const (
	// copyBytesMax: below it reading and writing beat sendfile (measured on loopback).
	copyBytesMax = 64 << 10
	// sendBytesMax is what one sendfile call may move, so that a fast peer cannot hold a thread, nor
	// pass by its write deadline, for long.
	sendBytesMax = 1 << 20
)

func (f *file) SendTo(dst net.Conn, pos, n int64) (int64, error) {
	if err := disk.CheckRange("send", f.path, pos, n); err != nil {
		return 0, err
	}
	if err := f.pins.Enter(); err != nil {
		return 0, disk.Fail("send", f.path, pos, err)
	}
	defer f.leave()
	sock, ok := dst.(syscall.Conn)
	if !ok || n <= copyBytesMax {
		return disk.CopyTo(dst, (*pinned)(f), pos, n)
	}
	raw, err := sock.SyscallConn()
	if err != nil {
		return 0, err
	}
	s := sending{file: f, pos: pos, end: pos + n}
	step := s.step // one closure for all chunks
	for s.pos < s.end {
		s.err, s.eof = nil, false
		// Write parks in the poller while step says false, and gives up at the write deadline.
		if err := raw.Write(step); err != nil {
			return s.pos - pos, err
		}
		switch {
		case s.eof:
			return s.pos - pos, disk.Fail("send", f.path, s.pos, io.ErrUnexpectedEOF)
		case s.err == unix.EINVAL || s.err == unix.ENOSYS || s.err == unix.EOPNOTSUPP:
			// This file system or socket cannot be joined in the kernel.
			copied, err := disk.CopyTo(dst, (*pinned)(f), s.pos, s.end-s.pos)
			return s.pos - pos + copied, err
		case s.err == unix.EIO:
			return s.pos - pos, disk.Fail("send", f.path, s.pos, s.err)
		case s.err != nil:
			return s.pos - pos, &net.OpError{Op: "sendfile", Net: dst.LocalAddr().Network(),
				Source: dst.LocalAddr(), Addr: dst.RemoteAddr(), Err: os.NewSyscallError("sendfile", s.err)}
		}
	}
	return n, nil
}

// sending is one SendTo under way.
type sending struct {
	file     *file
	pos, end int64
	eof      bool
	err      error
}

// step moves at most one chunk; false asks to be called again when the socket has room. The gate is held
// for the call that touches the file, never while the peer is waited for.
func (s *sending) step(sock uintptr) bool {
	s.file.gate.Enter(gate.Read)
	defer s.file.gate.Leave(gate.Read)
	for {
		// The explicit position: the descriptor's own is shared by all readers.
		at := s.pos
		n, err := unix.Sendfile(int(sock), s.file.fd, &at, int(min(s.end-s.pos, sendBytesMax)))
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return false
		case err != nil:
			s.err = err
		case n == 0:
			s.eof = true
		default:
			s.pos += int64(n)
		}
		return true
	}
}

// pinned is the file for an operation that has entered already: a Close meanwhile does not end it.
type pinned file

func (p *pinned) Path() string { return p.path }

func (p *pinned) ReadAt(b []byte, pos int64) (int, error) { return (*file)(p).read(b, pos, false) }
