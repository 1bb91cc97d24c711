package frame

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"platter/io/disk"
)

// segments is how many segments with data have left c, and how large they may be.
func segments(t *testing.T, c net.Conn) (count, bytes int) {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var info *unix.TCPInfo
	if cerr := raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	}); cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
	return int(info.Data_segs_out), int(info.Snd_mss)
}

// pairOfSegments is a connection whose segments are as small as on a common network.
func pairOfSegments(t *testing.T, bytes int) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, bytes)
		})
		return errors.Join(err, failed)
	}}
	if client, err = d.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// TestNoSmallPackets sends answers of heads and large ranges in turn, and counts the segments: as many as
// the bytes fill, and a few where the kernel had to let one go early (a stall of 200 ms lifts the cork).
func TestNoSmallPackets(t *testing.T) {
	const ranges, size, tries = 20, 100_001, 10
	f, data := file(t, size)
	for try := 1; ; try++ {
		client, server := pairOfSegments(t, 1448)
		r := New()
		for range ranges {
			r.Bytes(data[:61])
			r.Range(disk.Range{File: f, Len: size})
		}
		n := int(r.Len()) + lengthBytes
		arrived := make(chan error, 1)
		go func() {
			_, err := io.CopyN(io.Discard, client, int64(n))
			arrived <- err
		}()
		if err := r.Send(server, Options{}); err != nil {
			t.Fatal(err)
		}
		r.Release()
		if err := <-arrived; err != nil {
			t.Fatal(err)
		}
		count, mss := segments(t, server)
		least := (n + mss - 1) / mss
		t.Logf("%d bytes in %d segments of at most %d: %d would be full", n, count, mss, least)
		// A head or a range's end by itself would be a segment more for each of the ranges.
		if count <= least+ranges/2 {
			return
		}
		if try == tries {
			t.Fatalf("%d segments where %d would do", count, least)
		}
	}
}
