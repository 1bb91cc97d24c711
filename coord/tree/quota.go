package tree

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"platter/coord/zk"
)

// A quota on /a is the two nodes /zookeeper/quota/a/zookeeper_limits, which holds the limits, and
// zookeeper_stats beside it, which holds what there is: nodes and bytes of /a and all below it, written by the
// server without any trace in the node's Stat and without an event. Both hold "count=N,bytes=N", and then perhaps
// "=;byteHardLimit=N;countHardLimit=N"; -1 is no limit. Of quotas on a path and above it the nearest counts.
// (Quotas, StatsTrack and DataTree of ZooKeeper 3.8)
const (
	limitsName = "/zookeeper_limits"
	statsName  = "/zookeeper_stats"
)

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
	rest, under := strings.CutPrefix(path, quotaPath)
	of, named := strings.CutSuffix(rest, name)
	return of, under && named && of != ""
}

func (t *Tree) quotaLinked(path string) {
	if of, ok := quotaOf(path, limitsName); ok {
		t.quotas.limited[of] = struct{}{}
		t.quotas.lengths.add(of)
	}
}

func (t *Tree) quotaUnlinked(path string) {
	if of, ok := quotaOf(path, limitsName); ok {
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
	if of, ok := quotaOf(path, statsName); ok {
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
			t.writeStats(path, track{count: count, bytes: bytes})
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
	n := t.find(quotaPath + path + statsName)
	if n == nil {
		return
	}
	have, ok := parseTrack(n.data)
	if !ok {
		return
	}
	have.count += count
	have.bytes += bytes
	t.writeStats(path, have)
}

func (t *Tree) writeStats(path string, to track) {
	stats := quotaPath + path + statsName
	if t.find(stats) != nil {
		t.setBytes(t.own(stats, 0), to.append(nil))
	}
}

// checkQuota reports QuotaExceeded when bytes and nodes that are to be added go beyond a hard limit that is
// enforced. What goes beyond another limit is only noted.
func (t *Tree) checkQuota(e *Entry, path string, bytes, count int64) zk.Code {
	at, ok := t.limit(path)
	if !ok {
		return zk.OK
	}
	limits, stats := t.find(quotaPath+at+limitsName), t.find(quotaPath+at+statsName)
	if limits == nil || stats == nil {
		return zk.OK
	}
	most, ok1 := parseTrack(limits.data)
	have, ok2 := parseTrack(stats.data)
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
	}{{"nodes", count, have.count, most.count, most.countHard}, {"bytes", bytes, have.bytes, most.bytes, most.bytesHard}} {
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

// track is what a quota's node holds. What it holds beside that stays, in others, sorted.
type track struct {
	count, bytes, countHard, bytesHard int64
	others                             []trackPair
	hasCountHard, hasBytesHard         bool
}

type trackPair struct {
	key   string
	value int64
}

// trackBytesMax bounds what is read; a real one is far shorter.
const trackBytesMax = 1 << 10

// parseTrack reads what StatsTrack's constructor reads, and as leniently: zkCli.sh itself writes "bytes=-1=;…".
func parseTrack(b []byte) (track, bool) {
	k := track{count: -1, bytes: -1, countHard: -1, bytesHard: -1}
	if len(b) > trackBytesMax {
		return k, false
	}
	isSeparator := func(r rune) bool { return r == ',' || r == ';' }
	pairs := strings.FieldsFunc(string(b), isSeparator)
	if len(pairs) > 0 && isSeparator(rune(b[0])) {
		return k, false // an empty pair, though further on several separators are one
	}
	for _, pair := range pairs {
		parts := strings.Split(strings.TrimRight(pair, "="), "=")
		if len(parts) < 2 {
			return k, false
		}
		value := int64(-1)
		if parts[1] != "" {
			v, err := strconv.ParseInt(parts[1], 10, 64)
			if err != nil {
				return k, false
			}
			value = v
		}
		k.put(parts[0], value)
	}
	return k, true
}

func (k *track) put(key string, value int64) {
	switch key {
	case "count":
		k.count = value
	case "bytes":
		k.bytes = value
	case "countHardLimit":
		k.countHard, k.hasCountHard = value, true
	case "byteHardLimit":
		k.bytesHard, k.hasBytesHard = value, true
	default:
		k.others = slices.DeleteFunc(k.others, func(x trackPair) bool { return x.key == key })
		k.others = append(k.others, trackPair{key, value})
	}
}

// append gives the text as StatsTrack.toString does: count and bytes, then the rest by name.
func (k track) append(b []byte) []byte {
	b = fmt.Appendf(b, "count=%d,bytes=%d", k.count, k.bytes)
	rest := slices.Clone(k.others)
	if k.hasCountHard {
		rest = append(rest, trackPair{"countHardLimit", k.countHard})
	}
	if k.hasBytesHard {
		rest = append(rest, trackPair{"byteHardLimit", k.bytesHard})
	}
	slices.SortStableFunc(rest, func(a, b trackPair) int { return cmp.Compare(a.key, b.key) })
	if len(rest) > 0 {
		b = append(b, '=') // as it is there, for older readers
	}
	for _, x := range rest {
		b = fmt.Appendf(b, ";%s=%d", x.key, x.value)
	}
	return b
}
