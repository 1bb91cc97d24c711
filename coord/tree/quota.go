package tree

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"platter/coord/zk"
)

// A quota on /a is the two nodes /zookeeper/quota/a/zookeeper_limits, which holds the limits, and
// zookeeper_stats beside it, which holds what there is: nodes and bytes of /a and all below it, written by the
// server without any trace in the node's Stat and without an event. Both hold "count=N,bytes=N", and then perhaps
// "=;byteHardLimit=N;countHardLimit=N"; -1 is no limit (zk.Track). Of quotas on a path and above it the nearest counts.
// (Quotas and DataTree of ZooKeeper 3.8)

// quotas are the paths that have limits, and what an entry has moved so far. It is settled when
// all of an entry has been done, since a multi may fail.
type quotas struct {
	limited map[string]struct{}
	lengths lengths // of these
	moved   []quotaMove
}

type quotaMove struct {
	path         string // that has the quota
	bytes, count int64
	anew         bool // what there is must be counted again
}

// quotaOf is the path whose quota node a path is, by the node's name.
func quotaOf(path, name string) (string, bool) {
	rest, under := strings.CutPrefix(path, zk.QuotaPath)
	of, named := strings.CutSuffix(rest, name)
	return of, under && named && of != ""
}

func (t *Tree) quotaLinked(path string) {
	if of, ok := quotaOf(path, zk.LimitsName); ok {
		t.quotas.limited[of] = struct{}{}
		t.quotas.lengths.add(of)
	}
}

func (t *Tree) quotaUnlinked(path string) {
	if of, ok := quotaOf(path, zk.LimitsName); ok {
		delete(t.quotas.limited, of)
		t.quotas.lengths.remove(of)
	}
}

// limit gives the nearest path at or above that has limits.
func (t *Tree) limit(path string) (string, bool) {
	if len(t.quotas.limited) == 0 {
		return "", false
	}
	for at := path; at != ""; at, _ = split(at) {
		if !t.quotas.lengths.has(at) {
			continue
		}
		if _, ok := t.quotas.limited[at]; ok {
			return at, true
		}
	}
	return "", false
}

func (t *Tree) quotaMoved(path string, bytes, count int64) {
	if at, ok := t.limit(path); ok {
		t.quotas.moved = append(t.quotas.moved, quotaMove{path: at, bytes: bytes, count: count})
	}
}

func (t *Tree) quotaCreated(path string, n *node) {
	if of, ok := quotaOf(path, zk.StatsName); ok {
		t.quotas.moved = append(t.quotas.moved, quotaMove{path: of, anew: true})
	}
	t.quotaMoved(path, int64(len(n.data)), 1)
}

// settleQuotas writes down what an entry has moved.
func (t *Tree) settleQuotas() {
	if len(t.quotas.moved) == 0 {
		return
	}
	anew := map[string]bool{}
	for _, m := range t.quotas.moved {
		anew[m.path] = anew[m.path] || m.anew
	}
	for _, m := range t.quotas.moved {
		if !anew[m.path] {
			t.addStats(m.path, m.bytes, m.count)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(anew)) {
		if anew[path] {
			count, bytes := int64(0), int64(0)
			if n := t.find(path); n != nil {
				n.count(&count, &bytes)
			}
			t.writeStats(path, zk.Track{Count: count, Bytes: bytes})
		}
	}
	t.quotas.moved = t.quotas.moved[:0]
}

func (n *node) count(count, bytes *int64) {
	*count++
	*bytes += int64(len(n.data))
	for child := range n.children.all() {
		child.count(count, bytes)
	}
}

func (t *Tree) addStats(path string, bytes, count int64) {
	n := t.find(zk.QuotaStats(path))
	if n == nil {
		return
	}
	have, ok := zk.ParseTrack(n.data)
	if !ok {
		return
	}
	have.Count += count
	have.Bytes += bytes
	t.writeStats(path, have)
}

func (t *Tree) writeStats(path string, to zk.Track) {
	stats := zk.QuotaStats(path)
	if t.find(stats) != nil {
		t.setBytes(t.own(stats, 0), to.Append(nil))
	}
}

// checkQuota reports QuotaExceeded when bytes and nodes that are to be added go beyond a hard limit that is
// enforced. What goes beyond another limit is only noted.
func (t *Tree) checkQuota(e *Entry, path string, bytes, count int64) zk.Code {
	at, ok := t.limit(path)
	if !ok {
		return zk.OK
	}
	limits, stats := t.find(zk.QuotaLimits(at)), t.find(zk.QuotaStats(at))
	if limits == nil || stats == nil {
		return zk.OK
	}
	most, ok1 := zk.ParseTrack(limits.data)
	have, ok2 := zk.ParseTrack(stats.data)
	if !ok1 || !ok2 {
		// The real server fails over them, but does not see yet what the same multi has written.
		fresh := limits.mzxid == e.Zxid || stats.mzxid == e.Zxid
		if e.Options&EnforceQuota != 0 && !fresh {
			return zk.Marshalling
		}
		return zk.OK
	}
	for _, x := range [...]struct {
		what                   string
		more, have, soft, hard int64
	}{{"nodes", count, have.Count, most.Count, most.CountHard}, {"bytes", bytes, have.Bytes, most.Bytes, most.BytesHard}} {
		limit := x.soft
		if x.hard > -1 {
			limit = x.hard
		}
		if x.more <= 0 || limit < 0 || x.have+x.more <= limit {
			continue
		}
		if x.hard > -1 && e.Options&EnforceQuota != 0 {
			return zk.QuotaExceeded
		}
		t.over = fmt.Sprintf("%s: %d %s, the limit is %d", at, x.have+x.more, x.what, limit)
	}
	return zk.OK
}
