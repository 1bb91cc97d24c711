package zkserver

import (
	"strings"
	"sync"
	"sync/atomic"

	"platter/coord/zk"
)

// stats counts what the four-letter words and the admin page tell of.
type stats struct {
	sinceReset

	authFailed    atomic.Int64
	requests      atomic.Int64 // connections made
	refused       atomic.Int64 // connections over a limit
	dropped       atomic.Int64 // connections ended
	bytesReceived atomic.Int64
	expired       atomic.Int64 // sessions
	snapshots     atomic.Int64
	slowSyncs     atomic.Int64
	syncs         summary // milliseconds of the log's syncs
	batches       summary // writes that one sync covered
	namespaces    namespaces
}

// sinceReset is what srst sets back.
type sinceReset struct {
	received, sent atomic.Int64
	reads, writes  summary // milliseconds from a request's arrival to its answer
	replyBytes     summary // size of the replies that hold a record
	lastReplyBytes atomic.Int64
}

// reset is srst.
func (s *stats) reset() {
	s.received.Store(0)
	s.sent.Store(0)
	s.reads.reset()
	s.writes.reset()
	s.replyBytes.reset()
	s.lastReplyBytes.Store(0)
}

// read and wrote count one answered request and the time that it took.
func (s *stats) read(ms int64)  { s.reads.add(ms) }
func (s *stats) wrote(ms int64) { s.writes.add(ms) }

// synced counts one sync of the log, with its write, and what it covered.
func (s *Server) synced(writes int, ms int64) {
	s.stats.batches.add(int64(writes))
	s.stats.syncs.add(ms)
	if limit := s.config.SyncWarn.Milliseconds(); limit > 0 && ms > limit {
		s.stats.slowSyncs.Add(1)
		s.log.Warn("coordinator: a sync of the log was slow", "ms", ms, "writes", writes)
	}
}

// replied counts a reply's size.
func (s *stats) replied(bytes int) {
	if bytes > zk.ReplyHeaderBytes {
		s.replyBytes.add(int64(bytes))
		s.lastReplyBytes.Store(int64(bytes))
	}
}

// latencyMs gives the shortest, mean and longest time of all requests.
func (s *stats) latencyMs() (low int64, mean float64, high int64) {
	r, w := s.reads.get(), s.writes.get()
	n := r.count + w.count
	if n == 0 {
		return 0, 0, 0
	}
	low, high = min(r.min, w.min), max(r.max, w.max)
	switch {
	case r.count == 0:
		low = w.min
	case w.count == 0:
		low = r.min
	}
	return low, float64(r.sum+w.sum) / float64(n), high
}

// summary is count, sum, extremes and a rough distribution of small numbers that are not negative.
type summary struct {
	count, sum, max atomic.Int64
	min             atomic.Int64 // plus 1; 0: nothing yet
	buckets         [24]atomic.Int64
}

// numbers are a summary's at one time.
type numbers struct {
	count, sum, min, max int64
	buckets              [24]int64 // by the number of bits
}

func (x *summary) add(v int64) {
	v = max(v, 0)
	x.count.Add(1)
	x.sum.Add(v)
	for old := x.max.Load(); v > old && !x.max.CompareAndSwap(old, v); old = x.max.Load() {
	}
	for old := x.min.Load(); (old == 0 || v+1 < old) && !x.min.CompareAndSwap(old, v+1); old = x.min.Load() {
	}
	x.buckets[bucket(v)].Add(1)
}

func bucket(v int64) int {
	n := 0
	for ; v > 0 && n < len(summary{}.buckets)-1; v >>= 1 {
		n++
	}
	return n
}

func (x *summary) get() numbers {
	n := numbers{count: x.count.Load(), sum: x.sum.Load(), min: max(x.min.Load()-1, 0), max: x.max.Load()}
	for i := range x.buckets {
		n.buckets[i] = x.buckets[i].Load()
	}
	return n
}

func (x *summary) reset() {
	x.count.Store(0)
	x.sum.Store(0)
	x.max.Store(0)
	x.min.Store(0)
	for i := range x.buckets {
		x.buckets[i].Store(0)
	}
}

func (n numbers) mean() float64 {
	if n.count == 0 {
		return 0
	}
	return float64(n.sum) / float64(n.count)
}

// quantile is at most twice too high.
func (n numbers) quantile(q float64) int64 {
	rest := int64(q * float64(n.count))
	for i, c := range n.buckets {
		if rest -= c; rest < 0 {
			return min(1<<i-1, n.max)
		}
	}
	return n.max
}

// namespacesMax bounds the top nodes that are told apart, and namespaceBytesMax the names of those.
const (
	namespacesMax     = 1000
	namespaceBytesMax = 256
)

// namespaces are bytes read and written below each node of the root, also of those that are gone. Looking one up takes
// no lock.
type namespaces struct {
	mu  sync.Mutex
	all atomic.Pointer[map[string]*namespace]
}

type namespace struct{ reads, writes summary }

// of gives the numbers of the namespace that path is in, nil when it is in none.
func (n *namespaces) of(path string) *namespace {
	if len(path) < 2 || path[0] != '/' {
		return nil
	}
	top, _, _ := strings.Cut(path[1:], "/")
	if all := n.all.Load(); all != nil {
		if x := (*all)[top]; x != nil || len(*all) >= namespacesMax {
			return x
		}
	}
	if len(top) > namespaceBytesMax {
		return nil
	}
	return n.add(strings.Clone(top))
}

func (n *namespaces) add(top string) *namespace {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := map[string]*namespace{}
	if old := n.all.Load(); old != nil {
		for k, v := range *old {
			all[k] = v
		}
	}
	if all[top] == nil {
		all[top] = &namespace{}
		n.all.Store(&all)
	}
	return all[top]
}

func (n *namespaces) read(path string, bytes int) {
	if x := n.of(path); x != nil {
		x.reads.add(int64(len(path) + bytes))
	}
}

func (n *namespaces) wrote(path string, bytes int) {
	if x := n.of(path); x != nil {
		x.writes.add(int64(len(path) + bytes))
	}
}
