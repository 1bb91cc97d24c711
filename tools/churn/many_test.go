package churn

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"platter/tools/proc"
)

const (
	manyMembers    = 200
	manyPartitions = 400
	// growthMax bounds what such a group may cost the broker in resident memory, connections included.
	growthMax = 256 << 20
)

// TestManyMembers: 200 members share 400 partitions; half of them go at once, and as many come again. Each time the
// group comes to rest, with every partition at one member; and the broker's memory stays bounded.
func TestManyMembers(t *testing.T) {
	for _, cooperative := range []bool{false, true} {
		t.Run(fmt.Sprintf("cooperative=%v", cooperative), func(t *testing.T) {
			b := startBroker(t)
			cl := newClient(t, b.Addr())
			proc.CreateTopic(t, b.Addr(), "many", manyPartitions)
			var rs []*kgo.Record
			for p := range manyPartitions {
				rs = append(rs, &kgo.Record{Topic: "many", Partition: int32(p), Value: []byte("x")})
			}
			producer := newClient(t, b.Addr(), kgo.RecordPartitioner(kgo.ManualPartitioner()))
			if err := producer.ProduceSync(t.Context(), rs...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			before := b.RSSBytes()
			cfg := Config{
				Addr: b.Addr(), Group: "many", Topic: "many", Cooperative: cooperative,
				Session: 10 * time.Second, Rebalance: 60 * time.Second,
			}
			var l ledger
			var members []*inside
			comeTo := func(n int) {
				t.Helper()
				begin := time.Now()
				for len(members) > n {
					members[0].leave()
					members = members[1:]
				}
				for len(members) < n {
					members = append(members, startInside(t, cfg, &l))
				}
				until(t, fmt.Sprintf("a stable group of %d", n), func() bool { return settled(cl, "many", n) && shared(l.all(), n) })
				t.Logf("%d members have settled after %v, broker at %d MiB", n, time.Since(begin).Round(time.Millisecond), b.RSSBytes()>>20)
			}
			comeTo(manyMembers)
			comeTo(manyMembers / 2)
			comeTo(manyMembers)
			ends := logEnds(t, cl, "many")
			until(t, "every record to be processed", func() bool { return l.covers(ends) })
			report(t, Check(l.all(), ends))
			for _, m := range members {
				m.leave()
			}
			if grown := b.RSSBytes() - before; grown > growthMax {
				t.Errorf("the broker has grown by %d MiB", grown>>20)
			}
		})
	}
}

// shared says whether in the last generation so many members have all partitions between them.
func shared(events []Event, members int) bool {
	last := int32(0)
	for _, e := range events {
		last = max(last, e.Generation)
	}
	told, partitions := map[string]bool{}, map[int32]bool{}
	for _, e := range events {
		if e.Kind != Assigned || e.Generation != last {
			continue
		}
		told[e.Member] = true
		for _, p := range e.Partitions {
			partitions[p] = true
		}
	}
	return len(told) == members && len(partitions) == manyPartitions
}
