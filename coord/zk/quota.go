package zk

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Where quotas stand: on /a in /zookeeper/quota/a/zookeeper_limits what may be, and in zookeeper_stats beside it what
// there is (Quotas).
const (
	QuotaPath  = "/zookeeper/quota"
	LimitsName = "/zookeeper_limits"
	StatsName  = "/zookeeper_stats"
)

// QuotaLimits is the path of the limits on a path.
func QuotaLimits(path string) string { return QuotaPath + path + LimitsName }

// QuotaStats is the path of what there is at and below a path that has limits.
func QuotaStats(path string) string { return QuotaPath + path + StatsName }

// Track is what a node of a quota holds; -1 is no limit. What it holds beside that stays, in others, sorted.
type Track struct {
	Count, Bytes, CountHard, BytesHard int64
	others                             []trackPair
	hasCountHard, hasBytesHard         bool
}

type trackPair struct {
	key   string
	value int64
}

// trackBytesMax bounds what is read; a real one is far shorter.
const trackBytesMax = 1 << 10

// NoLimits is a Track that limits nothing.
func NoLimits() Track { return Track{Count: -1, Bytes: -1, CountHard: -1, BytesHard: -1} }

// ParseTrack reads what StatsTrack's constructor reads, and as leniently: zkCli.sh itself writes "bytes=-1=;…".
func ParseTrack(b []byte) (Track, bool) {
	k := NoLimits()
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

func (k *Track) put(key string, value int64) {
	switch key {
	case "count":
		k.Count = value
	case "bytes":
		k.Bytes = value
	case "countHardLimit":
		k.CountHard, k.hasCountHard = value, true
	case "byteHardLimit":
		k.BytesHard, k.hasBytesHard = value, true
	default:
		k.others = slices.DeleteFunc(k.others, func(x trackPair) bool { return x.key == key })
		k.others = append(k.others, trackPair{key, value})
	}
}

// AppendLimits adds the text as zkCli.sh writes limits: all four of them.
func (k Track) AppendLimits(b []byte) []byte {
	k.hasCountHard, k.hasBytesHard = true, true
	return k.Append(b)
}

// Append adds the text as StatsTrack.toString does: count and bytes, then the rest by name.
func (k Track) Append(b []byte) []byte {
	b = fmt.Appendf(b, "count=%d,bytes=%d", k.Count, k.Bytes)
	rest := slices.Clone(k.others)
	if k.hasCountHard {
		rest = append(rest, trackPair{"countHardLimit", k.CountHard})
	}
	if k.hasBytesHard {
		rest = append(rest, trackPair{"byteHardLimit", k.BytesHard})
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
