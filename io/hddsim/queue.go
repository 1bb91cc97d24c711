package hddsim

import (
	"slices"
	"time"

	"platter/io/invariant"
)

// QueueParams are those of the kernel's request queue before a device, with the deadline scheduler
// (Documentation/block/deadline-iosched.rst).
type QueueParams struct {
	Depth         int   // requests that the device holds at once
	RequestMax    int64 // bytes; adjoining requests are merged up to it
	ReadExpire    time.Duration
	WriteExpire   time.Duration
	WritesStarved int // batches of reads that may pass before one of writes
	Batch         int // requests of one kind in order of their place
}

// DefaultQueue is what a SATA drive gets from Linux.
func DefaultQueue() QueueParams {
	return QueueParams{Depth: 32, RequestMax: 1280 << 10, ReadExpire: 500 * time.Millisecond, WriteExpire: 5 * time.Second,
		WritesStarved: 2, Batch: 16}
}

// Queue merges and orders requests before a device. It implements Device.
type Queue struct {
	m      *Machine
	dev    Device
	p      QueueParams
	sorted [2][]*queued // by position
	fifo   [2][]*queued // by age

	inFlight int
	kicked   bool
	kind     Kind // of the batch under way
	batch    int  // how many of it are left
	starved  int
	head     int64 // where the batch is
}

// queued is one request to the device, made of those that adjoin.
type queued struct {
	Request
	parts []*Request
	due   time.Duration
}

// NewQueue puts a queue before a device.
func NewQueue(m *Machine, dev Device, p QueueParams) *Queue {
	invariant.Check(p.Depth > 0 && p.Batch > 0 && p.RequestMax > 0, "bad queue %+v", p)
	return &Queue{m: m, dev: dev, p: p}
}

// SizeBytes is the device's.
func (q *Queue) SizeBytes() int64 { return q.dev.SizeBytes() }

// Stats are the device's.
func (q *Queue) Stats() Stats { return q.dev.Stats() }

// Submit splits what is too long, merges what adjoins, and passes the rest on in its order.
func (q *Queue) Submit(r *Request) {
	if r.Kind == Flush {
		q.dev.Submit(r)
		return
	}
	if r.Len > q.p.RequestMax {
		split(r, q.p.RequestMax, q.Submit)
		return
	}
	if !q.merge(r) {
		n := &queued{Request: *r, parts: []*Request{r}}
		n.due = q.m.now + q.p.ReadExpire
		if r.Kind == Write {
			n.due = q.m.now + q.p.WriteExpire
		}
		n.Done = func() { q.done(n) }
		i, _ := slices.BinarySearchFunc(q.sorted[r.Kind], r.Pos, func(a *queued, pos int64) int { return compare(a.Pos, pos) })
		q.sorted[r.Kind] = slices.Insert(q.sorted[r.Kind], i, n)
		q.fifo[r.Kind] = append(q.fifo[r.Kind], n)
	}
	q.kick()
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// split submits a request in pieces, and is done when all are.
func split(r *Request, most int64, submit func(*Request)) {
	left := int((r.Len + most - 1) / most)
	done := func() {
		if left--; left == 0 {
			r.Done()
		}
	}
	for pos := r.Pos; pos < r.end(); pos += most {
		submit(&Request{Kind: r.Kind, Pos: pos, Len: min(most, r.end()-pos), FUA: r.FUA, More: r.More || pos+most < r.end(), Done: done})
	}
}

// merge joins r to a queued request that ends where it begins, or begins where it ends.
func (q *Queue) merge(r *Request) bool {
	list := q.sorted[r.Kind]
	i, _ := slices.BinarySearchFunc(list, r.Pos, func(a *queued, pos int64) int { return compare(a.Pos, pos) })
	fits := func(n *queued) bool { return n.FUA == r.FUA && n.Len+r.Len <= q.p.RequestMax }
	switch {
	case i > 0 && list[i-1].end() == r.Pos && fits(list[i-1]):
		list[i-1].Len += r.Len
		list[i-1].parts = append(list[i-1].parts, r)
	case i < len(list) && r.end() == list[i].Pos && fits(list[i]):
		list[i].Pos, list[i].Len = r.Pos, list[i].Len+r.Len
		list[i].parts = append(list[i].parts, r)
	default:
		return false
	}
	return true
}

func (q *Queue) done(n *queued) {
	q.inFlight--
	q.kick()
	for _, r := range n.parts {
		r.Done()
	}
}

// kick dispatches after everything that is submitted at this moment, so that it can be merged.
func (q *Queue) kick() {
	if q.kicked {
		return
	}
	q.kicked = true
	q.m.After(0, func() {
		q.kicked = false
		for q.inFlight < q.p.Depth {
			n := q.choose()
			if n == nil {
				return
			}
			q.inFlight++
			q.dev.Submit(&n.Request)
		}
	})
}

// choose goes on with the batch in order of place, or begins one: of reads, unless writes have been passed over too
// often; at the oldest if it is overdue.
func (q *Queue) choose() *queued {
	if q.batch <= 0 || len(q.sorted[q.kind]) == 0 || q.after() == nil {
		switch {
		case len(q.sorted[Read]) > 0 && (len(q.sorted[Write]) == 0 || q.starved < q.p.WritesStarved):
			if q.kind = Read; len(q.sorted[Write]) > 0 {
				q.starved++
			}
		case len(q.sorted[Write]) > 0:
			q.kind, q.starved = Write, 0
		default:
			return nil
		}
		q.batch = q.p.Batch
		if oldest := q.fifo[q.kind][0]; oldest.due <= q.m.now || q.after() == nil {
			if oldest.due > q.m.now {
				oldest = q.sorted[q.kind][0]
			}
			return q.take(oldest)
		}
	}
	return q.take(q.after())
}

// after is the next request of the batch's kind beyond the head, nil at the end.
func (q *Queue) after() *queued {
	list := q.sorted[q.kind]
	i, _ := slices.BinarySearchFunc(list, q.head, func(a *queued, pos int64) int { return compare(a.Pos, pos) })
	if i == len(list) {
		return nil
	}
	return list[i]
}

func (q *Queue) take(n *queued) *queued {
	same := func(a *queued) bool { return a == n }
	q.sorted[n.Kind] = slices.DeleteFunc(q.sorted[n.Kind], same)
	q.fifo[n.Kind] = slices.DeleteFunc(q.fifo[n.Kind], same)
	q.batch--
	q.head = n.end()
	return n
}
