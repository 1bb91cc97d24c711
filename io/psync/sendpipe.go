//go:build linux && !portable

package psync

import (
	"sync"

	"golang.org/x/sys/unix"

	"platter/io/disk"
)

// pipeBytes is how much a pipe holds: what a process may ask for without privileges (pipe(7),
// /proc/sys/fs/pipe-max-size). Where the kernel gives less, calls move less.
const pipeBytes = 1 << 20

// pipe is what splice(2) needs between a file and a socket. held bytes in it stand for page cache pages
// that are on their way; nothing is copied.
type pipe struct {
	read, write int
	held        int
}

// pipes are those that rest, and how many there are in all: at most disk.SendPipesMax. A send that finds
// none left goes by sendfile, so peers that do not read cannot hold up others.
var pipes struct {
	sync.Mutex
	idle  []*pipe
	count int
}

// takePipe returns an empty pipe, nil when there are enough or the process has no descriptors left.
func takePipe() *pipe {
	pipes.Lock()
	defer pipes.Unlock()
	if n := len(pipes.idle); n > 0 {
		p := pipes.idle[n-1]
		pipes.idle = pipes.idle[:n-1]
		return p
	}
	if pipes.count == disk.SendPipesMax {
		return nil
	}
	var fds [2]int
	if unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		return nil
	}
	_, _ = unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, pipeBytes)
	pipes.count++
	return &pipe{read: fds[0], write: fds[1]}
}

// give puts the pipe back; one that still holds bytes, of a send that failed, is closed with them.
func (p *pipe) give() {
	pipes.Lock()
	defer pipes.Unlock()
	if p.held == 0 {
		pipes.idle = append(pipes.idle, p)
		return
	}
	unix.Close(p.read)
	unix.Close(p.write)
	pipes.count--
}

// fill takes at most n bytes of the file, from pos, into the empty pipe. held stays 0 at the file's end.
func (p *pipe) fill(fd int, pos int64, n int) error {
	got, err := unix.Splice(fd, &pos, p.write, nil, n, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
	if err != nil {
		return err
	}
	p.held = int(got)
	return nil
}

// drain moves what the pipe holds to the socket; more: further bytes follow it at once.
func (p *pipe) drain(sock int, more bool) (int, error) {
	flags := unix.SPLICE_F_MOVE | unix.SPLICE_F_NONBLOCK
	if more {
		flags |= unix.SPLICE_F_MORE
	}
	n, err := unix.Splice(p.read, nil, sock, nil, p.held, flags)
	if err != nil {
		return 0, err
	}
	p.held -= int(n)
	return int(n), nil
}
