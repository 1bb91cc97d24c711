package zkserver

import (
	"fmt"
	"net"
	"sync"
)

// connTable counts connections against the limits.
type connTable struct {
	mu     sync.Mutex
	max    int
	maxOf  int // for each address; 0: no limit
	all    map[*conn]struct{}
	byHost map[string]int
	closed bool
}

func (t *connTable) init(max, maxOf int) {
	t.max, t.maxOf = max, maxOf
	t.all, t.byHost = map[*conn]struct{}{}, map[string]int{}
}

func hostOf(c *conn) string {
	host, _, err := net.SplitHostPort(c.nc.RemoteAddr().String())
	if err != nil {
		return c.nc.RemoteAddr().String()
	}
	return host
}

// add counts c in, or says which limit it would break.
func (t *connTable) add(c *conn) error {
	host := hostOf(c)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return ErrClosed
	case len(t.all) >= t.max:
		return fmt.Errorf("%d connections, the most there may be", t.max)
	case t.maxOf > 0 && t.byHost[host] >= t.maxOf:
		return fmt.Errorf("%d connections from %s, the most there may be (maxClientCnxns)", t.maxOf, host)
	}
	t.all[c] = struct{}{}
	t.byHost[host]++
	return nil
}

func (t *connTable) remove(c *conn) {
	host := hostOf(c)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, c)
	if t.byHost[host]--; t.byHost[host] <= 0 {
		delete(t.byHost, host)
	}
}

func (t *connTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}

// closeAll closes every connection, and lets no more in.
func (t *connTable) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for c := range t.all {
		c.close()
		c.abandon()
	}
}
