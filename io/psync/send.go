//go:build linux && !portable

package psync

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"platter/io/disk"
	"platter/io/gate"
)

// sendBytesMax is what one call may move, so that a fast peer cannot hold a thread, nor pass by its
// write deadline, for long.
const sendBytesMax = 1 << 20

// SetSend implements disk.SendChooser.
func (fs *FS) SetSend(o disk.SendOptions) error {
	if err := o.Check(); err != nil {
		return err
	}
	if o.Method == "" {
		o.Method = disk.SendAuto
	}
	fs.send.Store(&o)
	return nil
}

func (f *file) SendTo(dst net.Conn, pos, n int64) (int64, error) {
	if err := disk.CheckRange("send", f.path, pos, n); err != nil {
		return 0, err
	}
	if err := f.pins.Enter(); err != nil {
		return 0, disk.Fail("send", f.path, pos, err)
	}
	defer f.leave()
	how := f.fs.send.Load()
	sock, ok := dst.(syscall.Conn)
	if !ok || n <= how.CopyBytesMax || how.Method == disk.SendCopy {
		return disk.CopyTo(dst, (*pinned)(f), pos, n)
	}
	raw, err := sock.SyscallConn()
	if err != nil {
		return 0, err
	}
	s := sendings.Get().(*sending)
	defer s.free()
	s.file, s.pos, s.end = f, pos, pos+n
	s.begin(how.Method)
	defer func() { disk.CountSent(s.method, s.pos-pos) }()
	for s.pos < s.end {
		s.err, s.eof = nil, false
		// Write parks in the poller while step says false, and gives up at the write deadline.
		if err := raw.Write(s.step); err != nil {
			return s.pos - pos, err
		}
		switch {
		case s.eof:
			return s.pos - pos, disk.Fail("send", f.path, s.pos, io.ErrUnexpectedEOF)
		case s.err == unix.EINVAL || s.err == unix.ENOSYS || s.err == unix.EOPNOTSUPP || s.err == unix.EFAULT:
			// This file system or socket cannot be joined in the kernel; or a page of the mapping could
			// not be had (EFAULT), and reading it tells why.
			copied, err := disk.CopyTo(dst, (*pinned)(f), s.pos, s.end-s.pos)
			return s.pos - pos + copied, err
		case s.err == unix.EIO:
			return s.pos - pos, disk.Fail("send", f.path, s.pos, s.err)
		case s.err != nil:
			return s.pos - pos, &net.OpError{Op: string(s.method), Net: dst.LocalAddr().Network(),
				Source: dst.LocalAddr(), Addr: dst.RemoteAddr(), Err: os.NewSyscallError(string(s.method), s.err)}
		}
	}
	return n, nil
}

// sending is one SendTo under way.
type sending struct {
	file     *file
	method   disk.SendMethod
	pos, end int64
	pipe     *pipe    // of splice
	mapping  *mapping // of the mapped path
	eof      bool
	err      error
	step     func(sock uintptr) bool // move, bound once
}

var sendings = sync.Pool{New: func() any {
	s := new(sending)
	s.step = s.move
	return s
}}

// begin gets what the method needs; where that is not to be had, it is sendfile.
func (s *sending) begin(m disk.SendMethod) {
	switch m {
	case disk.SendAuto:
		if s.end-s.pos >= disk.SendSpliceBytesMin {
			m, s.pipe = disk.SendSplice, takePipe()
		}
	case disk.SendSplice:
		s.pipe = takePipe()
	case disk.SendMapped:
		s.mapping = s.file.maps.take(s.file.fd, s.end)
	}
	if s.pipe == nil && s.mapping == nil {
		m = disk.SendFile
	}
	s.method = m
}

func (s *sending) free() {
	if s.pipe != nil {
		s.pipe.give()
	}
	if s.mapping != nil {
		s.file.maps.give(s.mapping)
	}
	*s = sending{step: s.step}
	sendings.Put(s)
}

// move moves at most one chunk; false asks to be called again when the socket has room.
func (s *sending) move(sock uintptr) bool {
	for {
		n, err := s.chunk(int(sock), int(min(s.end-s.pos, sendBytesMax)))
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

// chunk is one go at at most n bytes: 0 without an error is the end of the file. The device's gate is
// taken around what may wait for the disk only, never while the socket is waited for.
func (s *sending) chunk(sock, n int) (int, error) {
	if s.pipe != nil && s.pipe.held > 0 {
		return s.pipe.drain(sock, s.pos+int64(s.pipe.held) < s.end)
	}
	s.file.gate.Enter(gate.Read)
	defer s.file.gate.Leave(gate.Read)
	switch {
	case s.pipe != nil:
		if err := s.pipe.fill(s.file.fd, s.pos, n); err != nil || s.pipe.held == 0 {
			return 0, err
		}
		return s.pipe.drain(sock, s.pos+int64(s.pipe.held) < s.end)
	case s.mapping != nil:
		return s.mapping.write(sock, s.file.fd, s.pos, n)
	}
	// The explicit position: the descriptor's own is shared by all readers.
	at := s.pos
	return unix.Sendfile(sock, s.file.fd, &at, n)
}

// pinned is the file for an operation that has entered already: a Close meanwhile does not end it.
type pinned file

func (p *pinned) Path() string { return p.path }

func (p *pinned) ReadAt(b []byte, pos int64) (int, error) { return (*file)(p).read(b, pos, false) }
