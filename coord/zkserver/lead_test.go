package zkserver

import (
	"fmt"
	"testing"
	"time"

	"platter/coord/zk"
)

// TestTheLoopHandsBack: what waits when the disk has become swift again is committed by the poller, though no client asks
// for more meanwhile.
func TestTheLoopHandsBack(t *testing.T) {
	s, d := held(t, Config{Dir: "/zk", Pollers: 1})
	p, q := open(t, s, 60_000), open(t, s, 60_000)
	for i := range 20 {
		s.store.syncs.Store(int64(time.Hour)) // it has been slow
		script1(t, d, "sync log.*: hang")
		p.nc.Write(p.frame(zk.OpCreate, createBody(fmt.Sprint("/p", i), nil, 0)))
		eventually(t, func() bool { return outstanding(s) == 1 && s.queue.count() == 0 }) // the loop is at it
		q.nc.Write(q.frame(zk.OpCreate, createBody(fmt.Sprint("/q", i), nil, 0)))
		eventually(t, func() bool { return s.queue.count() == 1 })
		s.store.syncs.Store(-int64(time.Hour)) // it has been swift
		script1(t, d, "")
		for _, w := range []*peer{p, q} {
			if h, _ := w.next(t); h.Err != zk.OK {
				t.Fatal(h)
			}
		}
	}
}
