package lane

import (
	"math"
	"slices"
	"sort"
)

const maxPos = math.MaxInt64

// interval is the bytes [from, to).
type interval struct{ from, to int64 }

// intervals is a set of bytes: rising, apart from each other.
type intervals []interval

// at is the index of the first interval that ends above pos.
func (v intervals) at(pos int64) int {
	return sort.Search(len(v), func(i int) bool { return v[i].to > pos })
}

func (v intervals) covers(from, to int64) bool {
	i := v.at(from)
	return from >= to || i < len(v) && v[i].from <= from && to <= v[i].to
}

// gap is the first position at or above pos that is not in the set, and where the set goes on behind it.
func (v intervals) gap(pos int64) (from, to int64) {
	i := v.at(pos)
	if i < len(v) && v[i].from <= pos {
		pos = v[i].to
		i++
	}
	if i < len(v) {
		return pos, v[i].from
	}
	return pos, maxPos
}

// add joins [from, to) to the set, and returns how many bytes it has grown by.
func (v *intervals) add(from, to int64) (grown int64) {
	if from >= to {
		return 0
	}
	grown = to - from
	s := *v
	lo := sort.Search(len(s), func(i int) bool { return s[i].to >= from })
	hi := lo
	for ; hi < len(s) && s[hi].from <= to; hi++ {
		grown -= max(0, min(s[hi].to, to)-max(s[hi].from, from))
	}
	if lo < hi {
		from, to = min(from, s[lo].from), max(to, s[hi-1].to)
	}
	*v = slices.Replace(s, lo, hi, interval{from, to})
	return grown
}

// remove takes [from, to) out of the set, and returns how many bytes it has shrunk by.
func (v *intervals) remove(from, to int64) (shrunk int64) {
	var kept intervals
	for _, x := range *v {
		cut := min(x.to, to) - max(x.from, from)
		if cut <= 0 {
			kept = append(kept, x)
			continue
		}
		shrunk += cut
		if x.from < from {
			kept = append(kept, interval{x.from, from})
		}
		if x.to > to {
			kept = append(kept, interval{to, x.to})
		}
	}
	*v = kept
	return shrunk
}

// without is what of the set lies outside of others.
func (v intervals) without(others intervals) intervals {
	left := slices.Clone(v)
	for _, o := range others {
		left.remove(o.from, o.to)
	}
	return left
}
