package zkserver

import (
	"context"
	"testing"

	"platter/coord/zk"
	"platter/io/buf"
	ioconn "platter/io/conn"
)

// TestWhoReadsIsServed: clients that do not read what they ask for do not keep others from long answers.
func TestWhoReadsIsServed(t *testing.T) {
	bothWays(t, func(t *testing.T, c Config) {
		const longBytes, bytes = 20 << 20, 900_000
		c.FrameBytesMax = longBytes + 1<<10
		s, _ := held(t, c)
		p := open(t, s, 60_000)
		p.frames = ioconn.NewFrameReader(context.Background(), p.nc, ioconn.FrameConfig{Pool: buf.New(2 * longBytes), BytesMax: longBytes})
		for path, n := range map[string]int{"/long": longBytes, "/n": bytes} {
			if h, _ := p.call(t, zk.OpCreate, createBody(path, make([]byte, n), 0)); h.Err != zk.OK {
				t.Fatal(h)
			}
		}
		for full := false; !full; { // until one deaf client more is one too many
			deaf := slowPeer(t, s)
			if r, err := deaf.connect(zk.ConnectRequest{TimeoutMs: 40_000}); err != nil || r.SessionID == 0 {
				t.Fatal(r, err)
			}
			before := s.backlog.Load()
			deaf.nc.Write(deaf.frame(zk.OpGetData, pathBody("/long", false)))
			eventually(t, func() bool { return s.backlog.Load() != before })
			full = s.backlog.Load() > backlogBytesMax
		}
		for range 20 {
			if h, _ := p.call(t, zk.OpGetData, pathBody("/n", false)); h.Err != zk.OK {
				t.Fatal(h)
			}
		}
		eventually(t, func() bool { return s.backlog.Load() <= backlogBytesMax })
	})
}
