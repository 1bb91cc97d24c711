package zkserver

import (
	"testing"

	"platter/coord/zk"
)

// TestWhoReadsIsServed: clients that do not read what they ask for do not keep others from long answers.
func TestWhoReadsIsServed(t *testing.T) {
	bothWays(t, func(t *testing.T, c Config) {
		s, _ := held(t, c)
		p := open(t, s, 60_000)
		const bytes = 900_000
		if h, _ := p.call(t, zk.OpCreate, createBody("/n", make([]byte, bytes), 0)); h.Err != zk.OK {
			t.Fatal(h)
		}
		for range 2 * backlogBytesMax / (6 * bytes) {
			deaf := slowPeer(t, s)
			if r, err := deaf.connect(zk.ConnectRequest{TimeoutMs: 40_000}); err != nil || r.SessionID == 0 {
				t.Fatal(r, err)
			}
			for range 6 {
				deaf.nc.Write(deaf.frame(zk.OpGetData, pathBody("/n", false)))
			}
			if h, _ := p.call(t, zk.OpGetData, pathBody("/n", false)); h.Err != zk.OK {
				t.Fatal(h)
			}
		}
		if n := s.backlog.Load(); n > 2*backlogBytesMax {
			t.Errorf("%d bytes wait to be read", n)
		}
	})
}
