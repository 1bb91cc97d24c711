package iobench

import (
	"encoding/binary"
	"errors"
	"io"
	"net"

	"platter/bench/rawload"
	"platter/io/disk"
)

const sendBufferBytes = 102400

// sendFileBytes is the file that sends take their ranges from, one after the other.
const sendFileBytes = 64 << 20

// sends sends ranges from the page cache to a receiver that throws them away.
type sends struct {
	*based
	conn  net.Conn
	pos   int64
	bytes int64 // of the file
}

func (b *bench) newSends(base *based, how string) (load, error) {
	o := disk.SendOptions{Method: disk.SendMethod(how)}
	if how == AsUsual {
		o = disk.SendOptions{Method: disk.SendAuto, CopyBytesMax: disk.SendCopyBytesMax}
	}
	if err := disk.SetSend(base.fs, o); err != nil {
		return nil, skip("%v", err)
	}
	s := &sends{based: base, bytes: min(sendFileBytes, b.o.BudgetBytes/4)}
	s.bytes -= s.bytes % s.roundBytes()
	s.bytes = max(s.bytes, s.roundBytes())
	if err := base.create(1, s.bytes); err != nil {
		return nil, err
	}
	var err error
	if s.conn, err = net.Dial("tcp", b.peer.addr); err != nil {
		return nil, err
	}
	// As the broker's connections have it (socket.send.buffer.bytes).
	if err := s.conn.(*net.TCPConn).SetWriteBuffer(sendBufferBytes); err != nil {
		return nil, errors.Join(err, s.conn.Close())
	}
	return s, nil
}

func (s *sends) close() error { return errors.Join(s.conn.Close(), s.based.close()) }

func (s *sends) run(m *meter, n int) error {
	var head [8]byte
	binary.BigEndian.PutUint64(head[:], uint64(n)*uint64(s.roundBytes()))
	if _, err := s.conn.Write(head[:]); err != nil {
		return err
	}
	m.start()
	defer m.stop()
	for range n {
		for range s.depth {
			if s.pos+int64(s.size) > s.bytes {
				s.pos = 0
			}
			if _, err := s.files[0].SendTo(s.conn, s.pos, int64(s.size)); err != nil {
				return err
			}
			s.pos += int64(s.size)
		}
		m.round(s.roundBytes())
	}
	_, err := io.ReadFull(s.conn, head[:1]) // all has arrived
	return err
}

// Drain serves receivers on l until it is closed. A connection says how many bytes come (8 bytes, big
// endian), sends them, and gets one byte back when they have been thrown away; again and again.
func Drain(l net.Listener) error {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			for drainOne(c) == nil {
			}
		}()
	}
}

func drainOne(c net.Conn) error {
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint64(head[:])
	if n > 1<<40 {
		return errors.New("more than any bench sends")
	}
	if err := rawload.Discard(c, int64(n)); err != nil {
		return err
	}
	_, err := c.Write(head[:1])
	return err
}

// receiver is the other end of sends: a process of its own, so that its CPU time is not counted, or a
// goroutine.
type receiver struct {
	addr string
	stop func()
}

func startReceiver(exe string) (*receiver, error) {
	if exe != "" {
		return startProcess(exe)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = Drain(l)
	}()
	return &receiver{addr: l.Addr().String(), stop: func() { l.Close(); <-done }}, nil
}
