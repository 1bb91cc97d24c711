package segment

// boundary is a place between two batches: before it ends the batch whose last offset is last, at
// position end.
type boundary struct {
	last int64
	end  int64
}

// tailMax is how many batches the tail remembers.
const tailMax = 64

// tail is the newest batches of an active segment, so that readers close behind the writer find their
// place without touching the disk. The newest boundary is the segment's end.
type tail struct {
	floor boundary   // before the oldest batch that is remembered
	ring  []boundary // grows to tailMax, then wraps
	next  int        // where the next one goes, once wrapped
}

func newTail(end boundary) *tail { return &tail{floor: end} }

func (t *tail) push(b boundary) {
	if len(t.ring) < tailMax {
		t.ring = append(t.ring, b)
		return
	}
	t.floor = t.ring[t.next]
	t.ring[t.next] = b
	t.next = (t.next + 1) % tailMax
}

// at is the i-th boundary, by rising position; -1 is the floor.
func (t *tail) at(i int) boundary {
	if i < 0 {
		return t.floor
	}
	return t.ring[(t.next+i)%len(t.ring)]
}

// below finds the newest boundary that keep accepts; keep accepts all below some place and none above.
// ok is false when the tail does not reach back far enough. i is its index, for at.
func (t *tail) below(keep func(boundary) bool) (i int, ok bool) {
	lo, hi := -1, len(t.ring) // keep(lo) holds, keep(hi) does not
	if !keep(t.floor) {
		return 0, false
	}
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		if keep(t.at(mid)) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, true
}
