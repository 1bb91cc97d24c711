package follow

import (
	"bytes"
	"sync/atomic"
	"testing"

	"platter/engine/batch"
	"platter/engine/commitlog"
)

// sealed is a batch that says it is compressed, with a valid checksum, of bytes that no codec can read.
func sealed(t *testing.T, offset int64, c batch.Codec) batch.Batch {
	t.Helper()
	bl := batch.NewBuilder()
	for range 3 {
		bl.Add(1000, nil, bytes.Repeat([]byte{0xf7}, 5000))
	}
	bl.Codec = c
	b, err := bl.Build()
	if err != nil {
		t.Fatal(err)
	}
	for i := batch.HeaderBytes; i < len(b); i++ {
		b[i] = byte(i*31) | 0x80
	}
	b.SetBaseOffset(offset)
	b.SetLeaderEpoch(0)
	b.SetMaxTimestamp(b.MaxTimestamp() + 1) // which sums anew
	return b
}

// TestNothingIsReadInside: a follower takes batches by their checksum and offsets, and never looks into them: what cannot be
// decompressed is replicated byte for byte.
func TestNothingIsReadInside(t *testing.T) {
	r := newRig(t)
	log, err := r.stores[1].Create(tp, topicID, commitlog.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	offset := int64(0)
	for _, c := range []batch.Codec{batch.Gzip, batch.Snappy, batch.LZ4, batch.Zstd} {
		b := sealed(t, offset, c)
		if _, err := batch.Check(b, batch.Limits{DecompressedBytesMax: 1 << 20}); err == nil {
			t.Fatalf("%v: a producer could send it", c)
		}
		done := make(chan error, 1)
		log.Enqueue(&commitlog.Append{Batches: []batch.Batch{b}, Origin: commitlog.Follower, Done: func(a commitlog.Appended) { done <- a.Err }})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		offset = b.LastOffset() + 1
	}
	lead, follower := r.replica(1, tp, 1, 0), r.replica(3, tp, 1, 0)
	r.manager.Follow(tp, topicID, follower)
	r.same(lead, follower)
	if e := follower.Log().Ends(); e.Written != offset {
		t.Errorf("the follower ends at %d, and %d was written", e.Written, offset)
	}
}

// TestBadChecksum: what was changed on its way is refused, and asked for again.
func TestBadChecksum(t *testing.T) {
	r := newRig(t)
	lead, follower := r.replica(1, tp, 1, 0), r.replica(3, tp, 1, 0)
	r.produce(lead, "a", "b", "c")
	var changed atomic.Int32
	r.set(func() {
		r.answered = func(g *Given) {
			if len(g.Records) > 0 && changed.Load() < 3 {
				changed.Add(1)
				g.Records[len(g.Records)-1] ^= 1
			}
		}
	})
	r.manager.Follow(tp, topicID, follower)
	r.same(lead, follower)
	if n := changed.Load(); n != 3 {
		t.Errorf("%d answers were changed", n)
	}
}
