// Package ceiling holds the bare programs that a broker is measured against: they make only the copies
// that the task needs, so what they reach is what this machine has to give.
//
// Sink: socket → CRC32C → file. Frames are a 4-byte big-endian length and a body; the body's checksum is
// taken, the body is appended to one file, and 8 bytes (position after the body) answer each frame.
//
// Source: file → socket by sendfile. A request is 16 bytes (position, length); the answer is the bytes.
//
// Nothing here validates, indexes, replicates or shares: it is a ceiling, not a broker. It trusts its
// peer, and listens on loopback only.
package ceiling

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Options say which program to be.
type Options struct {
	SinkDir         string // each connection appends to a file of its own here
	SourceFile      string // each connection reads this file; used when SinkDir is empty
	SendBufferBytes int    // of a connection's socket, as the broker's socket.send.buffer.bytes; -1: the system's
}

// Serve answers connections on l until it is closed.
func Serve(l net.Listener, o Options) error {
	for n := 0; ; n++ {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			if err := serveOne(c.(*net.TCPConn), o, n); err != nil && !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, "ceiling:", err)
			}
		}()
	}
}

func serveOne(c *net.TCPConn, o Options, n int) error {
	if o.SendBufferBytes > 0 {
		if err := c.SetWriteBuffer(o.SendBufferBytes); err != nil {
			return err
		}
	}
	if o.SinkDir != "" {
		f, err := os.CreateTemp(o.SinkDir, fmt.Sprintf("sink-%d-", n))
		if err != nil {
			return err
		}
		defer os.Remove(f.Name())
		defer f.Close()
		return receive(c, f)
	}
	f, err := os.Open(o.SourceFile)
	if err != nil {
		return err
	}
	defer f.Close()
	return send(c, f)
}

// readBytes is how much the sink asks the socket for at a time.
const readBytes = 1 << 20

// receive is the sink's loop: it takes what the socket has, sums and appends each whole frame where it lies,
// and answers all of them with one write.
func receive(c net.Conn, f *os.File) error {
	buf := make([]byte, 2*readBytes)
	var answers []byte
	var pos int64
	var sum uint32
	from, to := 0, 0 // the bytes of buf that are not used up
	for {
		answers = answers[:0]
		for to-from >= 4 {
			n := int(binary.BigEndian.Uint32(buf[from:]))
			if 4+n > to-from {
				buf, from, to = room(buf, from, to, 4+n)
				break
			}
			body := buf[from+4 : from+4+n]
			sum ^= crc32.Checksum(body, castagnoli)
			if _, err := f.WriteAt(body, pos); err != nil {
				return err
			}
			pos += int64(n)
			from += 4 + n
			answers = binary.BigEndian.AppendUint64(answers, uint64(pos)^uint64(sum&1)<<63)
		}
		if len(answers) > 0 {
			if _, err := c.Write(answers); err != nil {
				return err
			}
		}
		if from == to {
			from, to = 0, 0
		}
		if len(buf)-to < 4 {
			buf, from, to = room(buf, from, to, readBytes)
		}
		n, err := c.Read(buf[to:min(len(buf), to+readBytes)])
		if err != nil {
			return err
		}
		to += n
	}
}

// room makes the unused bytes of buf fit for a frame of n bytes in all, moving them only if they must be.
func room(buf []byte, from, to, n int) ([]byte, int, int) {
	if from+n <= len(buf) {
		return buf, from, to
	}
	next := buf
	if n > len(buf) {
		next = make([]byte, 2*n)
	}
	return next, 0, copy(next, buf[from:to])
}

// send is the source's loop.
func send(c *net.TCPConn, f *os.File) error {
	r := bufio.NewReaderSize(c, 64)
	var req [16]byte
	for {
		if _, err := io.ReadFull(r, req[:]); err != nil {
			return err
		}
		pos, n := int64(binary.BigEndian.Uint64(req[:])), int64(binary.BigEndian.Uint64(req[8:]))
		if err := sendRange(c, f, pos, n); err != nil {
			return err
		}
	}
}
